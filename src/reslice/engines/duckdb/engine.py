"""DuckDB: one process owns the file, one snapshot per transaction, update/update conflicts only.

Three facts shape this engine. Two transactions that each insert see no conflict, so every publish first updates the
table's fence row. A concurrent UPDATE of a row that a publish deletes is lost in silence, so the publish first gives
every measure of the slices another value, which DuckDB does see. And COMMIT of an aborted transaction raises nothing,
so success is read from the ledger afterwards.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

import reslice
from reslice import ledger
from reslice.contract import Contract, Method, Reconciliation, SqlFile
from reslice.engines import measure, sql
from reslice.engines.affected import FIRST_INSTANT, affected
from reslice.engines.base import Capability, Support
from reslice.engines.controls import control_lines
from reslice.engines.duckdb import query as query_text
from reslice.engines.duckdb.errors import failed, misused, query_failed, unknown
from reslice.engines.duckdb.publish import publish
from reslice.engines.duckdb.refusals import refuse_foreign_tables, refuse_replaced_functions, refuse_second_ledger
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.duckdb.target import describe, query_columns
from reslice.engines.publication import Entry, Publication, scope_of
from reslice.engines.sql import Names, quote
from reslice.errors import Failure
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Scope
from reslice.values import (
    Approved,
    Column,
    ControlLine,
    Diff,
    Findings,
    Fingerprint,
    LedgerRun,
    Opened,
    Published,
    Request,
    Run,
    SliceDiff,
    Staged,
    State,
    Target,
)

_ALIVE: set[str] = set()
"""Engines of this process that are open. A DuckDB file is open in one process, so a run of any other is not alive."""

_LEDGER_LOCK = threading.Lock()
_last_order = 0


class DuckDB(DuckDBSession):
    """One connection to one DuckDB database."""

    name = "duckdb"
    version = duckdb.__version__
    methods: Mapping[Method, Capability] = {
        Method.REPLACE_SLICE: Capability(Support.YES),
        Method.MERGE: Capability(
            Support.NOT_YET, "merge is not built yet; replace_slice gives the same committed rows"
        ),
        Method.APPEND_VERSION: Capability(Support.NOT_YET, "append_version is not built yet; replaced rows are kept"),
        Method.REPLACE_PARTITION: Capability(
            Support.NEVER, "DuckDB tables have no partitions to replace; use replace_slice"
        ),
    }

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, shown: str, path: Path | None) -> None:
        super().__init__(connection)
        self.shown = shown
        self._path = path
        self._token = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._staged_orders: dict[str, int] = {}
        self._parts: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        """Let go of the connection; its temporary tables are gone."""
        _ALIVE.discard(self._token)
        super().close()

    # --- reading the database ---------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the database's clock."""
        with self._translated(None, "the clock of the database"):
            text = self.execute("SELECT CAST(timezone('UTC', now()) AS VARCHAR)")[0][0]
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    def target(self, contract: Contract) -> Target:
        """Describe the live table; Refused[target_missing] when there is none of that name."""
        with self._translated(contract, f"what {contract.table} is"):
            return describe(self, contract, self._path)

    def stage(self, contract: Contract, target: Target, scope: Scope, opened: Opened | None = None) -> Staged:
        """Evaluate source, controls and base in one snapshot into temporary tables; the target is not touched."""
        token = secrets.token_hex(6)
        names = _names(token)
        self._timeout = contract.timeouts.statement
        with self._translated(contract, f"the rows of {target.resolved}"):
            self._pin(contract)
            with _LEDGER_LOCK:
                self.execute("BEGIN TRANSACTION")
                order = self._take_order(contract, target, opened)
            refuse_replaced_functions(contract, self.execute(sql.known_answer_select(self.dialect))[0])
            source = self._stage_query(contract, target, scope, contract.source, names.source)
            control: tuple[Column, ...] = ()
            if contract.controls is not None:
                control = self._stage_query(contract, target, scope, contract.controls.query, names.control)
            select = sql.base_select(self.dialect, contract, target, scope, columns_of(contract))
            self.execute(query_text.create(names.base, select))
            self.execute("COMMIT")
            self._timeout = None
        self._staged_orders[token] = order
        return Staged(contract, target, scope, token, source, control)

    def _pin(self, contract: Contract) -> None:
        """Pin what the meaning of a source may depend on."""
        self.execute(f"SET TimeZone = {sql.text_literal(contract.slice.timezone)}")

    def _take_order(self, contract: Contract, target: Target, opened: Opened | None) -> int:
        """Fix the snapshot and take the next number of staging, so that numbers and snapshots are in one order."""
        global _last_order
        self.execute(f"SELECT 1 FROM {sql.target_name(target)} LIMIT 0")
        if opened is None:
            return 0
        where = ledger.place(target.catalog, contract.ledger.schema)
        stored = int(self.execute(f"SELECT coalesce(max(staged_order), 0) FROM {where}.runs")[0][0])
        _last_order = max(_last_order, stored) + 1
        return _last_order

    def _stage_query(
        self, contract: Contract, target: Target, scope: Scope, query: SqlFile, table: str
    ) -> tuple[Column, ...]:
        """Evaluate a SQL file once, with its parameters bound, into a temporary table; return its columns."""
        body, values = query_text.over_range(contract, target, scope.hull, query)
        try:
            query_text.check_select(query, body)
            self.execute(query_text.create(table, query_text.subquery(body)), values)
        except duckdb.Error as error:
            raise query_failed(contract, query, error) from error
        return query_columns(self, table, contract.columns)

    # --- measuring --------------------------------------------------------------------------------------------------

    def inspect(self, staged: Staged) -> Findings:
        """Cast the staged rows to the target's types and measure every rule of the contract on them."""
        names = _names(staged.token)
        with self._translated(staged.contract, f"the rows of {staged.contract.source.name}"):
            select = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
            self.execute(query_text.create(names.staged, select))
            return measure.inspect(self, staged, names)

    def compare(self, staged: Staged) -> Diff:
        """Compare the staged rows with the base."""
        with self._translated(staged.contract, "the comparison"):
            return measure.compare(self, staged, _names(staged.token))

    def compare_stagings(self, first: Staged, second: Staged) -> tuple[str, ...]:
        """Name the columns in which two stagings differ."""
        with self._translated(first.contract, "the comparison"):
            return measure.compare_stagings(self, first, _names(first.token), _names(second.token))

    def reconcile(self, staged: Staged, query: Reconciliation) -> tuple[ControlLine, ...]:
        """Compare what a downstream reader reports with the target's own rows, slice by slice, in one snapshot."""
        contract, target = staged.contract, staged.target
        token = secrets.token_hex(6)
        names = _names(token)
        with self._translated(contract, query.query.name), self.transaction():
            columns = self._stage_query(contract, target, staged.scope, query.query, names.control)
            select = sql.base_select(self.dialect, contract, target, staged.scope, columns_of(contract))
            self.execute(query_text.create(names.base, select))
            reader = Staged(contract, target, staged.scope, token, staged.source_columns, columns)
            problems, lines = control_lines(self, reader, names, query, names.base)
        if problems:
            found = tuple(problem.example for problem in problems)
            failure = Failure(
                "source_invalid", f"downstream {query.name}: one row per slice", found, f"correct {query.query.name}"
            )
            raise misused(query.query.name, failure)
        return lines

    # --- publishing -------------------------------------------------------------------------------------------------

    def publish(
        self, staged: Staged, approved: Approved, slices: tuple[SliceDiff, ...], opened: Opened, run: Run | None
    ) -> Published:
        """Replace `slices` and write their ledger rows in one commit; the target is as before or wholly replaced."""
        alone = run is None
        compared = None if alone else (staged.scope, approved.diff.base)
        written = {each.label for each in slices}
        numbered = enumerate(approved.diff.groups, start=1)
        groups = tuple((position, group) for position, group in numbered if group.slice in written)
        entry = Entry(opened, run, groups, self._staged_orders[staged.token])
        publication = self._publication(staged, slices, compared)
        published = publish(self, publication, entry)
        if alone:
            self._add_part(opened, publication, published)
        return published

    def _add_part(self, opened: Opened, publication: Publication, published: Published) -> None:
        """Remember what the ledger is told of a run of many commits when it ends: its last order, its time in all."""
        before = self._parts.get(opened.id, {"lock_milliseconds": 0})
        self._parts[opened.id] = {
            "publish_order": published.order,
            "lock_milliseconds": before["lock_milliseconds"] + published.lock_milliseconds,
            "kept_table": publication.kept,
        }

    def _publication(
        self, staged: Staged, slices: tuple[SliceDiff, ...], compared: tuple[Scope, Fingerprint] | None = None
    ) -> Publication:
        """Return the publish of `slices`; `compared` is what must not have moved, the slices themselves unless said."""
        written = scope_of(staged.scope, slices)
        scope, base = compared or (written, sum((each.base for each in slices), Fingerprint()))
        where = ledger.place(staged.target.catalog, staged.contract.ledger.schema)
        return Publication(staged, slices, written, scope, base, where, _names(staged.token))

    def publish_statements(self, staged: Staged, slices: tuple[SliceDiff, ...], diff: Diff | None) -> tuple[str, ...]:
        """Return the SQL that recomputes and replaces `slices`, in order; none when there is nothing to replace.

        One commit compares the whole `diff` again; a commit of one slice, with None, that slice alone.
        """
        if not slices:
            return ()
        names = _names(staged.token)
        contract = staged.contract
        body, values = query_text.over_range(contract, staged.target, staged.scope.hull, contract.source)
        bound = ", ".join(f"${name} = {sql.text_literal(value)}" for name, value in values.items())
        compared = None if diff is None else (staged.scope, diff.base)
        cast = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
        return (
            f"-- {contract.source.name}, with {bound}\n" + query_text.create(names.source, query_text.subquery(body)),
            f"-- cast once to the target's types\n{query_text.create(names.staged, cast)}",
            *self._publication(staged, slices, compared).shown(self.dialect),
        )

    def read_back(self, staged: Staged, slices: tuple[SliceDiff, ...]) -> tuple[str, ...]:
        """Read the committed slices in a new snapshot and name those that are not the staged rows."""
        with self.ending(), self._translated(staged.contract, "reading the slices back"):
            return self._publication(staged, slices).differing(self)

    # --- the ledger -------------------------------------------------------------------------------------------------

    def open_run(self, request: Request, target: Target) -> Opened:
        """Commit the request to the ledger, which is made when absent, and close runs whose process is gone."""
        where = ledger.place(target.catalog, request.contract.ledger.schema)
        about = {
            "process": self._token,
            "tool_version": reslice.__version__,
            "engine_version": f"duckdb {self.version}",
        }
        with _LEDGER_LOCK, self._translated(request.contract, "the ledger"), self.transaction():
            present = self._ledger_columns(request.contract, target)
            refuse_foreign_tables(request.contract, ledger.foreign_tables(present))
            refuse_second_ledger(self, request.contract, target)
            for statement in ledger.create_statements(where, present):
                self.execute(statement)
            _ALIVE.add(self._token)
            abandoned = ledger.abandon(self, where, sorted(_ALIVE))
            opened = ledger.open_request(self, where, request, target, about)
            kept = ledger.kept_table(where, target)
            self.execute(ledger.create_kept(kept, sql.target_name(target), target))
        return Opened(opened.id, abandoned)

    def close_run(
        self, staged: Staged | None, contract: Contract, target: Target, opened: Opened, run: Run, state: State
    ) -> None:
        """Commit how a run ended that publishes nothing more; the target is not touched."""
        where = ledger.place(target.catalog, contract.ledger.schema)
        order = self._staged_orders.get(staged.token) if staged else None
        more = {"staged_order": order, **self._parts.get(opened.id, {})}
        with self.ending(), self._translated(contract, "the ledger"):
            try:
                with _LEDGER_LOCK, self.transaction():
                    self._refuse_to_claim(where, contract, opened, run)
                    if ledger.close(self, where, opened.id, run, state, more):
                        ledger.insert_rest(self, where, opened.id, run)
            except duckdb.Error:
                self.roll_back()
                if ledger.state_of(self, where, opened.id) is not state:  # the answer to the commit may have been lost
                    raise

    def _refuse_to_claim(self, where: str, contract: Contract, opened: Opened, run: Run) -> None:
        """Raise OutcomeUnknown when the ledger does not hold every slice that a run of many commits has published."""
        if not run.slices_done:
            return
        landed = ledger.count_published(self, where, opened.id)
        if landed != len(run.slices_done):
            found = f"{len(run.slices_done)} slices were committed, and the ledger holds {landed}"
            raise unknown(contract, run.scope, opened.id, found)

    def affected(self, contract: Contract, target: Target, scope: Scope) -> tuple[Moment, ...]:
        """Return the slices outside `scope` that corrections touch and no run has covered since."""

        def touched_since(since: str) -> list[Moment]:
            return self._affected_since(contract, target, since)

        with self._translated(contract, "which slices corrections touch"):
            if not self._has_ledger(contract.ledger.schema, target.catalog):
                return tuple(moment for moment in touched_since(FIRST_INSTANT) if not scope.contains(moment))
            where = ledger.place(target.catalog, contract.ledger.schema)
            return affected(self, where, contract, target, scope, touched_since)

    def _affected_since(self, contract: Contract, target: Target, since: str) -> list[Moment]:
        query = contract.affected
        assert query is not None, "affected is asked only where the contract declares it"
        self._pin(contract)
        body, values = query_text.since(query, since)
        try:
            query_text.check_select(query, body)
            return measure.affected_moments(self, contract, target, body, values)
        except duckdb.Error as error:
            raise query_failed(contract, query, error) from error
        except ValueError as error:
            found = f"{query.name} returns a value that is no {contract.slice.unit}: {error}"
            failure = Failure("source_invalid", f"{query.name} names slices", (found,), f"correct {query.name}")
            raise misused(query.name, failure) from error

    def _ledger_columns(self, contract: Contract, target: Target) -> set[tuple[str, str]]:
        rows = self.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = $catalog"
            " AND schema_name = $schema",
            {"catalog": target.catalog, "schema": contract.ledger.schema},
        )
        return {(table, column) for table, column in rows}

    def _has_ledger(self, schema: str, catalog: str | None = None) -> bool:
        return any(catalog in (None, found) for found in self._ledger_catalogs(schema))

    def _ledger_catalogs(self, schema: str) -> list[str]:
        rows = self.execute(
            "SELECT database_name FROM duckdb_columns() WHERE schema_name = $schema AND table_name = 'runs'"
            " AND column_name = 'contract_digest' ORDER BY database_name <> current_database(), database_name",
            {"schema": schema},
        )
        return [row[0] for row in rows]

    def runs(self, ledger_schema: str, target: str | None, limit: int) -> tuple[LedgerRun, ...]:
        """Return the newest runs of the ledger, newest first; none when there is no ledger."""
        found: list[LedgerRun] = []
        with self._translated(None, "the ledger"):
            for catalog in self._ledger_catalogs(ledger_schema):
                found += map(_seen, ledger.runs(self, ledger.place(catalog, ledger_schema), target, limit))
        return tuple(sorted(found, key=lambda run: run.requested_at, reverse=True)[:limit])

    def find_runs(self, ledger_schema: str, reference: str) -> tuple[LedgerRun, ...]:
        """Return the runs a reference may mean, each with its slices and groups; none when there is no ledger."""
        matches: list[LedgerRun] = []
        with self._translated(None, "the ledger"):
            for catalog in self._ledger_catalogs(ledger_schema):
                where = ledger.place(catalog, ledger_schema)
                matches += [ledger.whole(self, where, _seen(run)) for run in ledger.find(self, where, reference)]
        return tuple(matches)

    @contextmanager
    def _translated(self, contract: Contract | None, doing: str) -> Iterator[None]:
        """Roll back whatever is open when an error passes, and tell one of the driver as one of ours."""
        try:
            yield
        except duckdb.Error as error:
            self.roll_back()
            about, place = (contract.name, contract.table) if contract else (self.shown, "every table")
            raise failed(about, error, doing, unchanged=f"{place} is as it was; nothing was written") from error
        except BaseException:
            self.roll_back()
            raise


def _names(token: str) -> Names:
    """Return the temporary tables of one staging; temp.main is this connection's own, so no table of a user is met."""
    words = ("source", "staged", "base", "control", "slices", "diff")
    return Names(*(f"temp.main.{quote(f'reslice_{word}_{token}')}" for word in words))


def _seen(run: LedgerRun) -> LedgerRun:
    """Return a run with whether it is at work now."""
    return replace(run, alive=run.state == State.REQUESTED and run.process in _ALIVE)
