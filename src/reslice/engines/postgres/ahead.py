"""What an owner makes ahead of the first run, so that the role that runs needs to make nothing: as SQL, or done.

These are the ledger, the table that keeps the replaced rows of each target, and the view of the current versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from reslice import ledger, moments
from reslice.contract import Contract, Method, SqlFile, Unit
from reslice.engines import query as query_text
from reslice.engines import sql, versions
from reslice.engines.base import LedgerScript
from reslice.engines.postgres import rights
from reslice.engines.postgres.current_view import Held, held, make_soon
from reslice.engines.postgres.marks import written_out
from reslice.engines.refusals import refuse_foreign_tables
from reslice.engines.session import SqlSession
from reslice.engines.sql import quote
from reslice.engines.view import can_have_versions, is_up_to_date, with_versions
from reslice.ranges import Scope
from reslice.tables import Target

_READS = """
SELECT DISTINCT n.nspname, c.relname
FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_rewrite AS w ON w.oid = d.objid
JOIN pg_catalog.pg_class AS c ON c.oid = d.refobjid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND w.ev_class = CAST($view AS regclass) AND c.oid <> w.ev_class
    AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2
"""


def script(session: SqlSession, contract: Contract, target: Target | None, role: str | None) -> LedgerScript:
    """Return the statements that make what is missing, and those that give a role what a run needs."""
    schema = contract.ledger.schema
    place = rights.place_of(session, schema)
    present = rights.present_in(session, schema)
    refuse_foreign_tables(contract, ledger.foreign_tables(present))
    made = ledger.create_statements(quote(schema), present, None if place.is_there else quote(schema))
    if target is not None and target.kind == "table":
        live = sql.dotted(target.schema, target.table)
        made += [ledger.create_kept(name, live, target) for name in _lacks_kept(schema, present, target)]
        if needs_view(session, contract, target):
            made += versions.view(session.dialect, contract, target).statements
    unread: list[str] = []
    reads = [*reads_of(session, contract, target, unread)] if target is not None else []
    sequences = rights.sequences_of(session, target.number) if target is not None else []
    counts = [f"{quote(where)}.{quote(name)}" for where, name, _ in sequences]
    named = role or place.role
    granted = rights.grants(contract, target, named, place.database, [*dict.fromkeys(reads)], counts)
    return LedgerScript(tuple(made), granted, (*_unknown(session, named), *unread))


def _unknown(session: SqlSession, role: str) -> list[str]:
    """Say that the server has no such role."""
    is_there = session.execute("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $role", {"role": role})
    return [] if is_there else [f"the server has no role {role}: make it before the script is run"]


def _lacks_kept(schema: str, present: set[tuple[str, str]], target: Target) -> list[str]:
    """Return the table which keeps replaced rows; none where it is there."""
    name = rights.kept_name(target)
    return [] if any(table == name for table, _ in present) else [f"{quote(schema)}.{quote(name)}"]


def needs_view(session: SqlSession, contract: Contract, target: Target) -> bool:
    """Whether the view of the current versions is missing, or not as the contract needs it."""
    if contract.method is not Method.APPEND_VERSION or not can_have_versions(contract, target):
        return False
    return not is_up_to_date(session, contract, target)


def reads_of(session: SqlSession, contract: Contract, target: Target, unread: list[str]) -> Iterator[str]:
    """Yield what the SQL files of a contract read, as quoted names; `unread` is told where that is not known."""
    text = "2026-01-01"
    if contract.slice.unit is not Unit.HOUR:
        first = moments.slice_of(date.fromisoformat(text), contract.slice.unit)
        text = moments.label(first, contract.slice.unit, contract.slice.timezone)
    scope = Scope.parse(text, contract.slice)
    files = [contract.source, *(each.query for each in contract.downstream)]
    files += [contract.controls.query] if contract.controls is not None else []
    for file in files:
        body, values = query_text.over_range(session.dialect, contract, target, scope.hull, file)
        yield from _reads(session, file, written_out(body, values), unread)
    if contract.affected is not None:
        body, values = query_text.since(contract.affected, "2026-01-01 00:00:00")
        yield from _reads(session, contract.affected, written_out(body, values), unread)


def _reads(session: SqlSession, file: SqlFile, body: str, unread: list[str]) -> list[str]:
    """Return what a query reads: what a view of it depends on, which is made, asked, and rolled back."""
    view = f"pg_temp.{quote('reslice_reads')}"
    try:
        session.check_select(file, body)
        session.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        session.execute(f"CREATE TEMPORARY VIEW {view} AS SELECT 1 AS one FROM (\n{body}\n) AS query")
        return [f"{quote(schema)}.{quote(name)}" for schema, name in session.execute(_READS, {"view": view})]
    except session.driver_error as error:
        unread.append(f"what {file.name} reads is not known, and not granted: {session.words_of(error)}")
        return []
    finally:
        session.roll_back()


def make(session: SqlSession, contract: Contract, target: Target) -> tuple[list[str], list[str]]:
    """Make what a run of the target would make beside the ledger; return the tables and the views that were made."""
    if target.kind != "table":
        return [], []
    schema = contract.ledger.schema
    kept = _lacks_kept(schema, rights.present_in(session, schema), target)
    for name in kept:
        session.execute(ledger.create_kept_of_types(name, target))
    tables = [rights.kept_name(target)] if kept else []
    if not needs_view(session, contract, target):
        return tables, []
    where = ledger.place(target.catalog, schema)
    pointers = f"{versions.current_pointers(where, target)} AND version <> '' LIMIT 1"
    return tables, [_made_view(session, contract, replace(target, has_pointers=bool(session.execute(pointers))))]


def _made_view(session: SqlSession, contract: Contract, target: Target) -> str:
    target = with_versions(session, contract, target)
    try:
        make_soon(session, contract, target)
    except Held as error:
        session.roll_back()
        raise held(session, contract, target) from error
    return f"{target.schema}.{versions.view_name(target)}"
