"""PostgreSQL: many sessions write at the same time, so everything that must not change is locked while it is decided.

Staging is one REPEATABLE READ transaction that writes only temporary tables; nothing of the facts leaves the server.
A publish is a second, short transaction. See `publish` for what keeps two of them, and live writers, apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from reslice.contract import Contract, Method, SqlFile
from reslice.engines import sql
from reslice.engines.base import Capability, ReadBack, Support
from reslice.engines.engine import SqlEngine
from reslice.engines.postgres import locks
from reslice.engines.postgres.connection import address_of
from reslice.engines.postgres.connection_errors import pooled
from reslice.engines.postgres.health import PostgresHealth
from reslice.engines.postgres.publish import publish
from reslice.engines.postgres.reading import READ_ONLY, refuse_writing
from reslice.engines.postgres.records import PostgresLedger
from reslice.engines.postgres.rights import refuse_without_temporary
from reslice.engines.postgres.session import PostgresSession, milliseconds
from reslice.engines.postgres.statements import beside, shown, shown_base
from reslice.engines.postgres.survey import PostgresSurvey
from reslice.engines.postgres.target import describe
from reslice.engines.postgres.waiting import stagings_of, waited
from reslice.engines.publication import Entry, Publication
from reslice.engines.publishing import base_moved, equal_moved
from reslice.engines.sql import text_literal
from reslice.ranges import Moment, moment_from_column
from reslice.tables import Target
from reslice.values import Diff, Opened, Published, Run, SliceDiff, Staged

PARTITIONS = (
    "swapping partitions takes a lock that waits for every reader and makes every reader wait; use replace_slice, which"
    " replaces a partition's rows as well"
)


class Postgres(SqlEngine, PostgresSession):
    """One connection to one PostgreSQL database."""

    name = "postgresql"
    temporary = "pg_temp"
    methods: Mapping[Method, Capability] = {
        Method.REPLACE_SLICE: Capability(Support.YES),
        Method.MERGE: Capability(Support.YES),
        Method.APPEND_VERSION: Capability(Support.YES),
        Method.REPLACE_PARTITION: Capability(Support.NEVER, PARTITIONS),
    }

    def __init__(
        self, connection: psycopg.Connection[Any], *, shown: str, reopen: Callable[[], psycopg.Connection[Any]]
    ) -> None:
        PostgresSession.__init__(self, connection, shown, reopen)
        SqlEngine.__init__(self)
        self.version = str(connection.info.parameter_status("server_version") or "").split()[0]
        self.address = address_of(connection.info.host, connection.info.port)
        self.ledger: PostgresLedger = PostgresLedger(self, self.touched_since, self.version, self._still_as_compared)
        self.survey = PostgresSurvey(self)
        self.health = PostgresHealth(self, self.ledger)

    def close(self) -> None:
        """Let go of the connection; its temporary tables and locks are gone."""
        self.ledger.close()
        PostgresSession.close(self)

    # --- reading the database ---------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the database's clock."""
        with self.translated(None, "the clock of the database"):
            text = self.execute("SELECT CAST(timezone('UTC', clock_timestamp()) AS text)")[0][0]
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    def target(self, contract: Contract) -> Target:
        """Describe the live table; Refused[target_missing] when there is none of that name."""
        with self.translated(contract, f"what {contract.table} is"):
            self.pin(contract)
            return describe(self, contract)

    @contextmanager
    def _snapshot(self, contract: Contract, target: Target, token: str, opened: Opened | None) -> Iterator[None]:
        """Open the snapshot, and give it its number while no other staging of this table does."""
        limit = contract.timeouts.statement
        key = locks.key(locks.STAGING, text_literal(target.resolved))
        if self.health.pooler is not None:
            unchanged = f"{contract.table} is as it was; nothing was written"
            raise pooled(self.shown, self.health.pooler, unchanged=unchanged)
        refuse_without_temporary(self, contract)
        if opened is not None:  # numbers and snapshots are in one order
            self._end_when_idle(milliseconds(contract.timeouts.idle))  # whoever holds the lock and is gone lets go
            self._wait_for(contract.timeouts.wait)
            with waited(self, contract, stagings_of(contract, target)):
                self.execute(f"SELECT pg_advisory_lock({key})")
            self._wait_for(contract.timeouts.lock)
        try:
            self.ledger.take_order(contract, target, token, opened)
            self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE")
            statement = "0" if limit is None else milliseconds(limit)
            self.execute("SELECT set_config('statement_timeout', $limit, true)", {"limit": statement})
        finally:
            if opened is not None and not self.is_lost:
                self.execute(f"SELECT pg_advisory_unlock({key})")
                self._end_when_idle("0")
        yield
        self.commit()

    def _wait_for(self, limit: timedelta) -> None:
        """Let no lock be waited for longer from now on."""
        self.execute("SELECT set_config('lock_timeout', $limit, false)", {"limit": milliseconds(limit)})

    def _beside(self, contract: Contract, target: Target) -> tuple[str, ...]:
        return beside(contract, target)

    def _refuse_writing(self, query: SqlFile) -> None:
        refuse_writing(self, query)

    def touched_since(self, contract: Contract, target: Target, since: str) -> list[Moment]:
        """Return the slices that corrections since an instant touch, from a transaction that cannot write."""
        self.execute(READ_ONLY)
        found = super().touched_since(contract, target, since)
        self.commit()
        return found

    def _end_when_idle(self, limit: str) -> None:
        """Have the server end the session when it says nothing for so long outside of a transaction; 0 is for ever."""
        self.execute("SELECT set_config('idle_session_timeout', $limit, false)", {"limit": limit})

    def extent(self, contract: Contract, target: Target) -> tuple[Moment, Moment] | None:
        """Return the first and the last slice of which the target holds rows; None when it holds none.

        Rows whose value is no day of the calendar lie in no slice. An index of the slice column serves both ends.
        """
        column = sql.slice_column(contract, target)
        value = self.dialect.plain(sql.quote(column.name), column)
        inside = self.dialect.in_calendar(value, column)
        ends = (f"(SELECT {word}({value}) FROM {sql.relation(target)} WHERE {inside})" for word in ("min", "max"))
        starts = [self.dialect.slice_start(end, column, contract.slice) for end in ends]
        texts = ", ".join(self.dialect.slice_text(start, column) for start in starts)
        with self.translated(contract, f"the slices of {target.resolved}"):
            self.pin(contract)
            first, last = self.execute(f"SELECT {texts}")[0]
        if first is None:
            return None
        family, cut = column.family.value, contract.slice
        start, end = (moment_from_column(text, family, cut.unit, cut.timezone) for text in (first, last))
        return start, end

    # --- publishing -------------------------------------------------------------------------------------------------

    def _shown(self, publication: Publication) -> tuple[str, ...]:
        return shown(publication, self.dialect)

    def _shown_base(self, publication: Publication) -> tuple[str, ...]:
        return (shown_base(publication, self.dialect),)

    def _publish(self, publication: Publication, entry: Entry) -> Published:
        if entry.run is None and not self.was_reopened:
            self._index(publication)
        return publish(self, publication, entry)

    def _index(self, publication: Publication) -> None:
        """Let each of many commits find its slice in the temporary tables without reading all of them."""
        staged, names = publication.staged, publication.names
        if staged.token in self._turns:
            return
        with self.translated(staged.contract, "the staged rows"):
            for relation in (names.base, names.staged):
                self.execute(f"CREATE INDEX ON {relation} ({sql.quote(staged.contract.slice.column)})")

    def _still_as_compared(self, staged: Staged, run: Run) -> None:
        """Refuse when the slices are no longer what a run compared that found nothing to do."""
        assert run.diff is not None, "nothing to do is found by comparing"
        if run.slices_done:
            self._still_equal(staged, run.diff, run.slices_done)
            return
        publication = self._publication(staged, (), (staged.scope, run.diff.base))
        if not self.execute(publication.holds(self.dialect, publication.names.base, staged.scope))[0][0]:
            raise base_moved(self, publication)

    def _still_equal(self, staged: Staged, diff: Diff, done: Collection[str]) -> None:
        """Refuse when slices are no longer what was compared that a run of many commits found equal and left.

        Their fingerprints tell: the staged rows may have gone with a connection that was lost.
        """
        equal = tuple(each for each in diff.slices if each.label not in done)
        if moved := self._publication(staged, equal).moved(self):
            raise equal_moved(staged, moved)

    def read_back(self, staged: Staged, slices: tuple[SliceDiff, ...]) -> ReadBack:
        """Read the committed slices in a new snapshot and name those that are not the staged rows."""
        with self.ending(), self.translated(staged.contract, "reading the slices back"):
            publication = self._publication(staged, slices)
            turns, run_id = self._turns[staged.token], self._published_by[staged.token]
            return publication.read_back(self, turns, run_id, has_staged=not self.was_reopened)
