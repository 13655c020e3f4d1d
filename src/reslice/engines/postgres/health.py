"""What doctor asks of a PostgreSQL database about a target, beyond what engines ask alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.health import SqlHealth
from reslice.engines.postgres import ahead, rights, surroundings
from reslice.engines.postgres.catalog import select_columns
from reslice.engines.postgres.probe import probed
from reslice.engines.postgres.records import PostgresLedger
from reslice.engines.refusals import next_rights
from reslice.errors import Refused
from reslice.findings import Finding
from reslice.health import LedgerHealth, Observation, Place, Rights
from reslice.tables import Column, Target

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession

OLDEST, TESTED = "16", ("16", "18")
"""The oldest version that reslice works on, and those it is tested with."""

_HAS_ZONE = re.compile(r"(?i)time\s+zone|timezone\s*\(|at\s+local")
_OF_UTC = re.compile(r"(?i)time\s+zone\s+'utc'|timezone\s*\(\s*'utc'")

_VIEWS = """
SELECT DISTINCT n.nspname, c.relname
FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_rewrite AS w ON w.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
JOIN pg_catalog.pg_class AS c ON c.oid = w.ev_class
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = CAST($name AS regclass) AND c.oid <> d.refobjid
ORDER BY 1, 2
"""


class PostgresHealth(SqlHealth):
    """Answers the questions of doctor from one session's database. `pooler` says what a proxy was seen to do."""

    stand_in = "function"
    hour_cut = "date_trunc('hour', …) of the instant itself"
    cut_at_risk = "wall time"

    def __init__(self, session: PostgresSession, records: PostgresLedger) -> None:
        super().__init__(session, records)
        self._postgres = session
        self.pooler: str | None = None

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
            return tuple(surroundings.server(self._session, self.pooler))

    def _stand_ins(self) -> list[tuple[str]]:
        return []  # only the server's own are called, and one of those that was replaced has no name of its own

    def merges_hours(self, cut: str) -> bool:
        """Whether `date_trunc('hour', cut)` makes one hour of two: an instant is cut as one, and wall time is not."""
        return _HAS_ZONE.search(cut) is not None and _OF_UTC.search(cut) is None

    # --- rights -----------------------------------------------------------------------------------------------------

    def rights(self, contract: Contract, target: Target) -> Rights:
        """Say what this role may do with the target, and what a run needs beside it: temporary tables and a ledger."""
        session = self._postgres
        with session.translated(contract, "the rights of this role"):
            role, is_readable = session.execute(
                "SELECT current_user, has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
                " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
                " WHERE n.nspname = $schema AND c.relname = $table",
                {"schema": target.schema, "table": target.table},
            )[0]
            missing = [*self._missing(contract, target)]
        held = f"the role {role} may write the table and the ledger, and make temporary tables"
        return Rights(held, tuple(missing), bool(is_readable))

    def _missing(self, contract: Contract, target: Target) -> Iterator[tuple[str, str]]:
        """Yield what a run would be refused for, each with what helps."""
        try:
            rights.refuse_without_temporary(self._postgres, contract)
        except Refused as refused:
            yield from ((found, failure.next) for failure in refused.failures for found in failure.found)
        needs_view = ahead.needs_view(self._postgres, contract, target)
        for found in rights.lacking(self._postgres, contract.ledger.schema, target, needs_view=needs_view):
            yield found, next_rights(self._session.role)

    def ledger(self, contract: Contract, target: Target) -> LedgerHealth:
        """Look at the ledger of a target; one that this role may not read is not taken to be absent."""
        schema = contract.ledger.schema
        with self._session.translated(contract, "the ledger"):
            may_use = rights.place_of(self._postgres, schema).may_use
            held = rights.held_in(self._postgres, schema)
        hidden = [name for name in rights.LEDGER if name in held and not (may_use and "SELECT" in held[name].granted)]
        if hidden:
            return LedgerHealth(exists=False, hidden=tuple(hidden), grant=next_rights(self._session.role))
        return super().ledger(contract, target)

    # --- keys, neighbours and files ---------------------------------------------------------------------------------

    def _columns_of(self, select: str, values: Mapping[str, Any], contract: Contract) -> tuple[Column, ...]:
        """Let the server read the SELECT, and then plan it, by which it looks at rights; nothing is executed."""
        columns = select_columns(self._postgres, select, values)
        self._session.execute(f"EXPLAIN {select}", values)
        return columns

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
        return probed(self._postgres, contract, column, self.pooler)
