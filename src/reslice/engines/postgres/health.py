"""What doctor asks of a PostgreSQL database about a target, beyond what engines ask alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reslice import ledger
from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.health import FUNCTIONS, SqlHealth
from reslice.engines.postgres import surroundings
from reslice.engines.postgres.catalog import BASE_TYPE, KIND, TYPES
from reslice.engines.postgres.dialect import family_of
from reslice.engines.postgres.probe import probed
from reslice.engines.postgres.records import PostgresLedger
from reslice.engines.sql import quote
from reslice.findings import Finding, some
from reslice.health import LedgerHealth, Observation, Place, Rights
from reslice.values import Column, Target

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession

OLDEST, TESTED = "16", ("16", "18")
"""The oldest version that reslice works on, and those it is tested with."""

_HAS_ZONE = re.compile(r"(?i)time\s+zone|timezone\s*\(|at\s+local")
_OF_UTC = re.compile(r"(?i)time\s+zone\s+'utc'|timezone\s*\(\s*'utc'")

_MAY = """
SELECT current_user, current_database(), has_database_privilege(current_database(), 'TEMPORARY'),
    has_database_privilege(current_database(), 'CREATE'), n.oid IS NOT NULL,
    coalesce(has_schema_privilege(n.oid, 'USAGE'), false), coalesce(has_schema_privilege(n.oid, 'CREATE'), false)
FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $schema
"""

_MAY_WITH_TABLES = """
SELECT c.relname, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'),
    has_table_privilege(c.oid, 'UPDATE')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $schema AND c.relkind IN ('r', 'p') AND c.relname = ANY(CAST($names AS text[]))
ORDER BY c.relname
"""

_VIEWS = """
SELECT DISTINCT n.nspname, c.relname
FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_rewrite AS w ON w.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
JOIN pg_catalog.pg_class AS c ON c.oid = w.ev_class
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = CAST($name AS regclass) AND c.oid <> d.refobjid
ORDER BY 1, 2
"""

_UPDATED = {"runs", "fences"}
"""The tables of the ledger whose rows change."""


def no_pooler() -> str | None:
    """Return that no proxy was looked for."""
    return None


class PostgresHealth(SqlHealth):
    """Answers the questions of doctor from one session's database. `find_pooler` says what a proxy was seen to do."""

    stand_in = "function"
    hour_cut = "date_trunc('hour', …) of the instant itself"
    cut_at_risk = "wall time"

    def __init__(self, session: PostgresSession, records: PostgresLedger) -> None:
        super().__init__(session, records)
        self._postgres = session
        self.find_pooler: Callable[[], str | None] = no_pooler

    def place(self) -> Place:
        """Say which database it is, and whether reslice works on this version of it."""
        with self._session.translated(None, "the version of the server"):
            version, number, database = self._session.execute(
                "SELECT current_setting('server_version'), current_setting('server_version_num'), current_database()"
            )[0]
        major = str(int(number) // 10000)
        is_too_old = int(major) < int(OLDEST)
        words = version.split()[0]
        upgrade = "use a newer server"
        return Place(self._session.shown, words, OLDEST, TESTED, is_too_old, major in TESTED, upgrade, database)

    def server(self) -> tuple[Finding, ...]:
        """Say whether the server takes writes, holds text that is known, and gives a session to itself."""
        with self._session.translated(None, "the settings of the server"):
            return tuple(surroundings.server(self._session, self.find_pooler()))

    def _stand_ins(self) -> list[tuple[str]]:
        return [
            (name,)
            for (name,) in self._session.execute(
                "SELECT CAST(CAST(p.oid AS regprocedure) AS text) FROM pg_catalog.pg_proc AS p"
                " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname <> 'pg_catalog'"
                " AND n.nspname = ANY(current_schemas(false)) AND p.proname = ANY(CAST($names AS text[])) ORDER BY 1",
                {"names": list(FUNCTIONS)},
            )
        ]

    def merges_hours(self, cut: str) -> bool:
        """Whether `date_trunc('hour', cut)` makes one hour of two: an instant is cut as one, and wall time is not."""
        return _HAS_ZONE.search(cut) is not None and _OF_UTC.search(cut) is None

    # --- rights -----------------------------------------------------------------------------------------------------

    def rights(self, contract: Contract, target: Target) -> Rights:
        """Say what this role may do with the target, and what a run needs beside it: temporary tables and a ledger."""
        with self._session.translated(contract, "the rights of this role"):
            role, database, may_stage, *_ = may = self._session.execute(_MAY, {"schema": contract.ledger.schema})[0]
            missing = [*self._ledger_rights(contract, target, may)]
            is_readable = bool(
                self._session.execute(
                    "SELECT has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
                    " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
                    " WHERE n.nspname = $schema AND c.relname = $table",
                    {"schema": target.schema, "table": target.table},
                )[0][0]
            )
        if not may_stage:
            found = f"the role {role} may make no temporary tables in the database {database}, where rows are staged"
            missing.insert(0, (found, f"GRANT TEMPORARY ON DATABASE {quote(database)} TO {quote(role)}"))
        held = f"the role {role} may write the table, make temporary tables, and keep the ledger"
        return Rights(held, tuple(missing), is_readable)

    def _ledger_rights(self, contract: Contract, target: Target, may: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
        role, database, _, may_create, has_schema, may_use, may_add = may
        schema = contract.ledger.schema
        make = "have the owner make the ledger and grant its use: reslice init --ledger --sql  prints the statements"
        if not has_schema:
            if not may_create:
                yield f"there is no ledger yet, and the role {role} may make no schema in the database {database}", make
            return
        if not may_use:
            return  # nothing of the ledger can be read: that is said of it
        tables = self._ledger_tables(contract, target)
        wanted = [*(table.name for table in ledger.TABLES), self._kept_name(contract, target)]
        absent = [name for name in wanted if name not in tables]
        if absent and not may_add:
            yield f"the role {role} may make no table in the schema {schema}, which lacks {some(absent)}", make
        closed = [
            name
            for name, (reads, inserts, updates) in tables.items()
            if reads and not (inserts and (updates or name not in _UPDATED))
        ]
        if closed:
            yield f"the role {role} may not write {some(closed)} of the ledger", _granted(schema, role)

    def _kept_name(self, contract: Contract, target: Target) -> str:
        kept = ledger.kept_table(ledger.place(target.catalog, contract.ledger.schema), target)
        return kept.rpartition(".")[2].strip('"')

    def _ledger_tables(self, contract: Contract, target: Target) -> dict[str, tuple[bool, bool, bool]]:
        """Return the tables of the ledger that are there, and whether this role may read, insert and update."""
        names = [*(table.name for table in ledger.TABLES), self._kept_name(contract, target)]
        rows = self._session.execute(_MAY_WITH_TABLES, {"schema": contract.ledger.schema, "names": names})
        return {name: (bool(reads), bool(inserts), bool(updates)) for name, reads, inserts, updates in rows}

    def ledger(self, contract: Contract, target: Target) -> LedgerHealth:
        """Look at the ledger of a target; one that this role may not read is not taken to be absent."""
        schema = contract.ledger.schema
        with self._session.translated(contract, "the ledger"):
            tables = self._ledger_tables(contract, target)
            role, *_, may_use, _ = self._session.execute(_MAY, {"schema": schema})[0]
            hidden = tuple(name for name, (reads, *_) in tables.items() if not (reads and may_use))
        if hidden:
            return LedgerHealth(exists=False, hidden=hidden, grant=_granted(schema, role))
        return super().ledger(contract, target)

    # --- keys, neighbours and files ---------------------------------------------------------------------------------

    def _columns_of(self, select: str, values: Mapping[str, Any], contract: Contract) -> tuple[Column, ...]:
        """Let the server read the SELECT, and then plan it, by which it looks at rights; nothing is executed."""
        columns = self._postgres.parsed(select, values)
        self._session.execute(f"EXPLAIN {select}", values)
        rows = self._session.execute(
            "SELECT pg_catalog.format_type(a.atttypid, a.atttypmod), "
            f"{BASE_TYPE}, {KIND} FROM unnest(CAST($types AS oid[]), CAST($modifiers AS integer[]))"
            f" WITH ORDINALITY AS a (atttypid, atttypmod, place){TYPES} ORDER BY a.place",
            {"types": [each[1] for each in columns], "modifiers": [each[2] for each in columns]},
        )
        return tuple(
            Column(name, type_text, family_of(base, kind))
            for (name, *_), (type_text, base, kind) in zip(columns, rows, strict=True)
        )

    def _key(self, contract: Contract, target: Target, columns: list[str]) -> str:
        """Return the DDL of a unique key: it begins with the slice column, and so serves to find slices as well."""
        names = sorted(columns, key=lambda name: name != contract.slice.column)
        nulls = " NULLS NOT DISTINCT" if self.key_is_null_safe(contract, target) else ""
        parts = [surroundings.indexed(contract, target, name) for name in names]
        with self._session.translated(contract, f"the keys of {target.resolved}"):
            how = surroundings.building(self._session, target)
        return (
            f"CREATE UNIQUE INDEX {how}{surroundings.index_name(target, 'grain')} ON"
            f" {sql.dotted(target.schema, target.table)} ({', '.join(parts)}){nulls}"
        )

    def null_safe_keys(self, target: Target) -> tuple[frozenset[str], ...]:
        """Return the unique keys of the target to which NULL is a value like any other."""
        with self._session.translated(None, f"the keys of {target.resolved}"):
            rows = self._session.execute(
                "SELECT ARRAY(SELECT a.attname FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.indrelid"
                " AND a.attnum = ANY(CAST(i.indkey AS smallint[]))) FROM pg_catalog.pg_index AS i"
                " WHERE i.indrelid = CAST($name AS regclass) AND i.indnullsnotdistinct",
                {"name": sql.target_name(target)},
            )
        return tuple(frozenset(names) for (names,) in rows)

    def key_is_null_safe(self, contract: Contract, target: Target) -> bool:
        """Whether the key of `key_statement` takes NULL for a value: where the contract allows it in a key."""
        return any(column.nulls_allowed and column.name not in target.not_null for column in contract.grain)

    def views(self, target: Target) -> tuple[str, ...]:
        """Name the views, also materialised ones, that read the table itself."""
        with self._session.translated(None, "the views of the database"):
            rows = self._session.execute(_VIEWS, {"name": sql.target_name(target)})
        own = (target.schema, versions.view_name(target)) if target.current else None
        return tuple(f"{schema}.{name}".removeprefix("public.") for schema, name in rows if (schema, name) != own)

    def table(self, contract: Contract, target: Target) -> tuple[Finding, ...]:
        """Say what hangs on the table, and what it costs to find a slice in it."""
        with self._session.translated(contract, f"what hangs on {target.resolved}"):
            return tuple(surroundings.table(self._session, contract, target))

    def probe(self, contract: Contract, target: Target) -> tuple[Observation, ...]:
        """Try in a schema of its own, which is gone afterwards, what this server does."""
        column = sql.slice_column(contract, target)
        return probed(self._postgres, contract, column, self.find_pooler())


def _granted(schema: str, role: str) -> str:
    """Return the statements that let a role keep a ledger that is there."""
    return (
        f"GRANT USAGE, CREATE ON SCHEMA {quote(schema)} TO {quote(role)};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {quote(schema)} TO {quote(role)}"
    )
