"""The rights that a role needs to run: what a refusal names, and what an owner is asked to make and to grant.

The catalog of PostgreSQL tells everybody what there is, whoever may read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reslice import ledger
from reslice.contract import Contract
from reslice.engines import versions
from reslice.engines.refusals import next_rights
from reslice.engines.session import Session
from reslice.engines.sql import column_list, quote
from reslice.errors import Failure, Refused
from reslice.tables import Target

WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE")
TARGET = WORDS
KEPT = ("SELECT", "INSERT", "DELETE")
"""What a run does with the table that keeps replaced rows; it deletes what is older than `ledger.keep_days`."""

LEDGER: Mapping[str, tuple[str, ...]] = {
    "runs": ("SELECT", "INSERT", "UPDATE"),
    "run_slices": ("SELECT", "INSERT"),
    "run_groups": ("SELECT", "INSERT", "DELETE"),
    "fences": ("SELECT", "INSERT", "UPDATE"),
    "prunings": ("SELECT", "INSERT", "UPDATE"),
    "pointers": ("SELECT", "INSERT", "UPDATE"),
    "versions": ("SELECT", "INSERT"),
}
"""What a run does with each table of the ledger."""

_PLACE = """
SELECT
    current_user, current_database(), n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
    coalesce(has_schema_privilege(n.oid, 'CREATE'), false), has_database_privilege(current_database(), 'CREATE')
FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $schema
"""

_TABLES = """
SELECT
    c.relname, pg_has_role(c.relowner, 'USAGE'),
    has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
    has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
    ARRAY(
        SELECT a.attname FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    )
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $schema AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""

_SEQUENCES = """
SELECT n.nspname, s.relname, has_sequence_privilege(s.oid, 'USAGE')
FROM pg_catalog.pg_attrdef AS a
JOIN pg_catalog.pg_depend AS d
    ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_catalog.pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
JOIN pg_catalog.pg_namespace AS n ON n.oid = s.relnamespace
WHERE a.adrelid = CAST($number AS oid)
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The schema of a ledger as a role finds it, whether or not there is one."""

    role: str
    database: str
    is_there: bool
    may_use: bool
    may_make_tables: bool
    may_make_schemas: bool


@dataclass(frozen=True, slots=True)
class Held:
    """One table of a schema: whether this role owns it, what it may do with it, and its columns."""

    is_own: bool
    granted: frozenset[str]
    columns: frozenset[str]


def place_of(session: Session, schema: str) -> Place:
    """Return how a role finds a schema."""
    return Place(*session.execute(_PLACE, {"schema": schema})[0])


def held_in(session: Session, schema: str) -> dict[str, Held]:
    """Return every table and view of a schema, also those that this role may not read."""
    rows = session.execute(_TABLES, {"schema": schema})
    return {name: _held(is_own, granted, columns) for name, is_own, *granted, columns in rows}


def _held(is_own: bool, granted: Sequence[bool], columns: Collection[str]) -> Held:
    words = (word for word, has in zip(WORDS, granted, strict=True) if has)
    return Held(is_own, frozenset(words), frozenset(columns))


def present_in(session: Session, schema: str) -> set[tuple[str, str]]:
    """Return the tables and columns of a schema, also of those that this role may not read."""
    return {(table, column) for table, held in held_in(session, schema).items() for column in held.columns}


def sequences_of(session: Session, number: int | None) -> list[tuple[str, str, bool]]:
    """Return the sequences that defaults of a table draw from: schema, name, and whether this role may use it."""
    return [(schema, sequence, has) for schema, sequence, has in session.execute(_SEQUENCES, {"number": number})]


def lacking_sequences(session: Session, number: int, role: str, table: str) -> Iterator[str]:
    """Yield the sequences of a table that a role may not draw from."""
    for schema, sequence, may_use in sequences_of(session, number):
        if not may_use:
            yield f"the role {role} lacks USAGE on {schema}.{sequence}, a sequence that {table} counts by"


def lacking(session: Session, schema: str, target: Target | None, *, needs_view: bool) -> tuple[str, ...]:
    """Return what a run needs beside its target, and this role can neither use as it is nor make.

    `needs_view` says whether the view of the current versions has to be made.
    """
    place = place_of(session, schema)
    return *_lacking_ledger(session, schema, place, target), *_lacking_beside(session, place, target, needs_view)


def _lacking_ledger(session: Session, schema: str, place: Place, target: Target | None) -> Iterator[str]:
    if not place.is_there:
        if not place.may_make_schemas:
            yield f"there is no schema {schema}, and the role {place.role} may not make one in {place.database}"
        return
    if not place.may_use:
        yield f"the role {place.role} may not use the schema {schema}"
        return
    held = held_in(session, schema)
    for table in ledger.TABLES:
        wanted = frozenset(column.name for column in table.columns)
        yield from _lacking(held.get(table.name), f"{schema}.{table.name}", place, LEDGER[table.name], wanted)
    if target is not None and target.kind == "table":
        kept = kept_name(target)
        words = f"{schema}.{kept}, which keeps the rows of {target.beside} that are replaced"
        yield from _lacking(held.get(kept), words, place, KEPT, frozenset())


def _lacking(
    held: Held | None, name: str, place: Place, needed: Sequence[str], wanted: frozenset[str]
) -> Iterator[str]:
    """Yield what keeps a role from using one table of the ledger, or from making it."""
    if held is None:
        if not place.may_make_tables:
            yield f"there is no table {name}; the role {place.role} may not make it"
        return
    missing = [word for word in needed if word not in held.granted]
    if missing:
        yield f"the role {place.role} lacks {', '.join(missing)} on {name}"
    columns = sorted(wanted - held.columns)
    if columns and not held.is_own:
        yield f"{name} lacks {', '.join(columns)}, from an older version, and the role {place.role} does not own it"


def _lacking_beside(session: Session, place: Place, target: Target | None, needs_view: bool) -> Iterator[str]:
    """Yield what is missing beside the ledger: the view of the current versions of the target."""
    if target is None or target.kind != "table" or not needs_view:
        return
    there = held_in(session, target.schema).get(versions.view_name(target))
    name = f"{target.schema}.{versions.view_name(target)}"
    if there is None and not place_of(session, target.schema).may_make_tables:
        yield f"there is no view {name} of the current versions, and the role {place.role} may not make it"
    elif there is not None and not there.is_own:
        yield f"the view {name} is not as the contract needs it, and the role {place.role} does not own it"


def kept_name(target: Target) -> str:
    """Return the name of the table that keeps replaced rows of the target, without its schema."""
    return ledger.kept_table("", target).rpartition(".")[2].strip('"')


def grants(
    contract: Contract, target: Target | None, role: str, database: str, reads: Sequence[str], counts: Sequence[str]
) -> tuple[str, ...]:
    """Return the statements that give a role what a run needs, and nothing more.

    `reads` are what the SQL files of the contract read, and `counts` the sequences of the target, as quoted names.
    """
    to, where = f"TO {quote(role)}", quote(contract.ledger.schema)
    schemas = [contract.ledger.schema, *([target.schema] if target is not None else [])]
    statements = [
        f"GRANT CONNECT, TEMPORARY ON DATABASE {quote(database)} {to}",
        f"GRANT USAGE ON SCHEMA {column_list(dict.fromkeys(reversed(schemas)))} {to}",
    ]
    if target is not None:
        live = f"{quote(target.schema)}.{quote(target.table)}"
        statements.append(f"GRANT {', '.join(TARGET)} ON {live} {to}")
    statements += [f"GRANT USAGE ON SEQUENCE {name} {to}" for name in counts]
    statements += [f"GRANT USAGE ON SCHEMA {schema} {to}" for schema in _schemas(reads, schemas)]
    statements += [f"GRANT SELECT ON {', '.join(reads)} {to}"] if reads else []
    tables: dict[tuple[str, ...], list[str]] = {}
    for name, words in LEDGER.items():
        tables.setdefault(words, []).append(f"{where}.{quote(name)}")
    if target is not None and target.kind == "table":
        tables.setdefault(KEPT, []).append(f"{where}.{quote(kept_name(target))}")
    statements += [f"GRANT {', '.join(words)} ON {', '.join(names)} {to}" for words, names in tables.items()]
    return tuple(statements)


def _schemas(reads: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the quoted schemas of quoted names, but for those that are known."""
    found = dict.fromkeys(name.partition('"."')[0] + '"' for name in reads)
    return [name for name in found if name not in {quote(each) for each in known}]


def refuse_unreadable_versions(session: Session, contract: Contract, target: Target) -> None:
    """Refuse where the ledger has versions and this role may not read which of them are current."""
    schema = contract.ledger.schema
    place = place_of(session, schema)
    if not place.is_there:
        return
    held = held_in(session, schema)
    names = [name for name in ("runs", "pointers", "versions") if name in held]
    missing = [f"{schema}.{name}" for name in names if "SELECT" not in held[name].granted]
    if missing or (names and not place.may_use):
        what = f"USAGE on the schema {schema}" if not place.may_use else f"SELECT on {', '.join(missing)}"
        found = f"the role {place.role} lacks {what}, which says which versions of {target.beside} are current"
        failure = Failure(
            "target_rights", contract.quote("method", f"method: {contract.method}"), (found,), next_rights(place.role)
        )
        raise Refused(contract.name, [failure], unchanged="nothing was written")


def unreadable(session: Session, schema: str, tables: Collection[str]) -> tuple[str, ...]:
    """Return what keeps this role from reading tables of a ledger; nothing where the schema holds no ledger."""
    place, held = place_of(session, schema), held_in(session, schema)
    if "runs" not in held or "contract_digest" not in held["runs"].columns:
        return ()
    missing = [f"{schema}.{name}" for name in tables if name in held and "SELECT" not in held[name].granted]
    if place.may_use and not missing:
        return ()
    what = f"SELECT on {', '.join(missing)}" if place.may_use else f"USAGE on the schema {schema}"
    return f"the role {place.role} may not read the ledger in schema {schema}", f"it lacks {what}"


def refuse_without_temporary(session: Session, contract: Contract) -> None:
    """Refuse where this role may make no temporary tables, which everything is computed in."""
    role, database, has = session.execute(
        "SELECT current_user, current_database(), has_database_privilege(current_database(), 'TEMPORARY')"
    )[0]
    if not has:
        found = f"the role {role} may make no temporary tables in {database}"
        after = f"have its owner run  GRANT TEMPORARY ON DATABASE {quote(database)} TO {quote(role)}"
        failure = Failure("target_rights", "rows are staged in temporary tables", (found,), after)
        raise Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
