"""DuckDB: one process owns the file, one snapshot per transaction, update/update conflicts only.

Three facts shape this engine. Two transactions that each insert see no conflict, so every publish first updates the
table's fence row. A concurrent UPDATE of a row that a publish deletes is lost in silence, so the publish first gives
every measure of the slices another value, which DuckDB does see. And COMMIT of an aborted transaction raises nothing,
so success is read from the ledger afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from reslice.contract import Contract, Method
from reslice.engines import sql
from reslice.engines.base import Capability, Support
from reslice.engines.duckdb.health import DuckDBHealth
from reslice.engines.duckdb.publish import publish
from reslice.engines.duckdb.records import LEDGER_LOCK, DuckDBLedger
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.duckdb.survey import DuckDBSurvey
from reslice.engines.duckdb.target import describe
from reslice.engines.engine import SqlEngine
from reslice.engines.publication import Entry, Publication
from reslice.engines.refusals import refuse_hidden_rows
from reslice.ranges import Moment, moment_from_column
from reslice.tables import Target
from reslice.values import Opened, Published


class DuckDB(SqlEngine, DuckDBSession):
    """One connection to one DuckDB database."""

    name = "duckdb"
    version = duckdb.__version__
    address = ""
    temporary = "temp.main"
    methods: Mapping[Method, Capability] = {
        Method.REPLACE_SLICE: Capability(Support.YES),
        Method.MERGE: Capability(Support.YES),
        Method.APPEND_VERSION: Capability(Support.YES),
        Method.REPLACE_PARTITION: Capability(
            Support.NEVER, "DuckDB tables have no partitions to replace; use replace_slice"
        ),
    }

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, shown: str, path: Path | None) -> None:
        DuckDBSession.__init__(self, connection, shown)
        SqlEngine.__init__(self)
        self._path = path
        self.ledger: DuckDBLedger = DuckDBLedger(self, self.touched_since)
        self.survey = DuckDBSurvey(self, path)
        self.health = DuckDBHealth(self, self.ledger)

    def close(self) -> None:
        """Let go of the connection; its temporary tables are gone."""
        self.ledger.close()
        super().close()

    # --- reading the database ---------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the database's clock."""
        with self.translated(None, "the clock of the database"):
            text = self.execute("SELECT CAST(timezone('UTC', now()) AS VARCHAR)")[0][0]
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    def target(self, contract: Contract) -> Target:
        """Describe the live table; Refused[target_missing] when there is none of that name."""
        with self.translated(contract, f"what {contract.table} is"):
            target = describe(self, contract, self._path)
        refuse_hidden_rows(contract, target, self.dialect.row_id)
        return target

    @contextmanager
    def _snapshot(self, contract: Contract, target: Target, token: str, opened: Opened | None) -> Iterator[None]:
        """Open the snapshot, and give it its number while no other staging of this process does."""
        self._timeout = contract.timeouts.statement
        with LEDGER_LOCK:  # numbers and snapshots are in one order
            self.execute("BEGIN TRANSACTION")
            self.execute(f"SELECT 1 FROM {sql.target_name(target)} LIMIT 0")
            self.ledger.take_order(contract, target, token, opened)
        yield
        self.execute("COMMIT")
        self._timeout = None

    def _publish(self, publication: Publication, entry: Entry) -> Published:
        return publish(self, publication, entry)

    def extent(self, contract: Contract, target: Target) -> tuple[Moment, Moment] | None:
        """Return the first and the last slice of which the target holds rows; None when it holds none.

        Rows whose value is no day of the calendar lie in no slice.
        """
        column = sql.slice_column(contract, target)
        value = self.dialect.plain(sql.quote(column.name), column)
        inside = self.dialect.in_calendar(value, column)
        ends = [f"{word}({value}) FILTER (WHERE {inside})" for word in ("min", "max")]
        starts = [self.dialect.slice_start(end, column, contract.slice) for end in ends]
        texts = ", ".join(self.dialect.slice_text(start, column) for start in starts)
        with self.translated(contract, f"the slices of {target.resolved}"):
            self.pin(contract)
            first, last = self.execute(f"SELECT {texts} FROM {sql.relation(target)}")[0]
        if first is None:
            return None
        family, cut = column.family.value, contract.slice
        start, end = (moment_from_column(text, family, cut.unit, cut.timezone) for text in (first, last))
        return start, end
