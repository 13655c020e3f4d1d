"""DuckDB: one process owns the file, one snapshot per transaction, update/update conflicts only.

Three facts shape this engine. Two transactions that each insert see no conflict, so every publish first updates the
table's fence row. A concurrent UPDATE of a row that a publish deletes is lost in silence, so the publish first gives
every measure of the slices another value, which DuckDB does see. And COMMIT of an aborted transaction raises nothing,
so success is read from the ledger afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from reslice import ledger
from reslice.contract import Contract, Method, Reconciliation, SqlFile
from reslice.engines import measure, sql
from reslice.engines.base import Capability, ReadBack, Support
from reslice.engines.controls import control_lines
from reslice.engines.duckdb import query as query_text
from reslice.engines.duckdb.errors import misused, query_failed
from reslice.engines.duckdb.health import DuckDBHealth
from reslice.engines.duckdb.publish import publish
from reslice.engines.duckdb.records import LEDGER_LOCK, DuckDBLedger
from reslice.engines.duckdb.refusals import refuse_hidden_rows, refuse_replaced_functions
from reslice.engines.duckdb.replaced import replaced_rows
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.duckdb.survey import DuckDBSurvey
from reslice.engines.duckdb.target import describe, query_columns
from reslice.engines.publication import Entry, Publication, scope_of
from reslice.engines.sql import Names, quote
from reslice.errors import Failure
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Scope, moment_from_column
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
    Run,
    SliceDiff,
    Staged,
    Target,
)


class DuckDB(DuckDBSession):
    """One connection to one DuckDB database."""

    name = "duckdb"
    version = duckdb.__version__
    methods: Mapping[Method, Capability] = {
        Method.REPLACE_SLICE: Capability(Support.YES),
        Method.MERGE: Capability(Support.YES),
        Method.APPEND_VERSION: Capability(Support.YES),
        Method.REPLACE_PARTITION: Capability(
            Support.NEVER, "DuckDB tables have no partitions to replace; use replace_slice"
        ),
    }

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, shown: str, path: Path | None) -> None:
        super().__init__(connection, shown)
        self._path = path
        self.ledger = DuckDBLedger(self, self._touched_since)
        self._replaced: dict[str, str] = {}
        self.survey = DuckDBSurvey(self, path)
        self.health = DuckDBHealth(self, self.ledger)
        self._turns: dict[str, list[int]] = {}
        self._published_by: dict[str, str] = {}

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

    def stage(self, contract: Contract, target: Target, scope: Scope, opened: Opened | None = None) -> Staged:
        """Evaluate source, controls and base in one snapshot into temporary tables; the target is not touched."""
        token = secrets.token_hex(6)
        names = _names(token)
        self._timeout = contract.timeouts.statement
        with self.translated(contract, f"the rows of {target.resolved}"):
            self._pin(contract)
            target = self.ledger.versioned(contract, target, opened)
            with LEDGER_LOCK:  # numbers and snapshots are in one order
                self.execute("BEGIN TRANSACTION")
                self.execute(f"SELECT 1 FROM {sql.target_name(target)} LIMIT 0")
                self.ledger.take_order(contract, target, token, opened)
            refuse_replaced_functions(contract, self.execute(sql.known_answer_select(self.dialect))[0])
            source = self._stage_query(contract, target, scope, contract.source, names.source)
            control: tuple[Column, ...] = ()
            if contract.controls is not None:
                control = self._stage_query(contract, target, scope, contract.controls.query, names.control)
            select = sql.base_select(self.dialect, contract, target, scope, columns_of(contract))
            self.execute(query_text.create(names.base, select))
            self.execute("COMMIT")
            self._timeout = None
        return Staged(contract, target, scope, token, source, control)

    def stage_replaced(
        self, contract: Contract, target: Target, scope: Scope, undone: LedgerRun, opened: Opened | None = None
    ) -> Staged:
        """Put what a run replaced, and the base, of one snapshot, into temporary tables; the target is not touched."""
        token = secrets.token_hex(6)
        names = _names(token)
        self._timeout = contract.timeouts.statement
        with self.translated(contract, f"the rows of {target.resolved}"):
            self._pin(contract)
            target = self.ledger.versioned(contract, target, opened)
            with LEDGER_LOCK:
                self.execute("BEGIN TRANSACTION")
                self.execute(f"SELECT 1 FROM {sql.target_name(target)} LIMIT 0")
                self.ledger.take_order(contract, target, token, opened)
            refuse_replaced_functions(contract, self.execute(sql.known_answer_select(self.dialect))[0])
            rows = replaced_rows(self, contract, target, undone)
            hashed = columns_of(contract)
            staged = Staged(contract, target, scope, token, (), restores=undone.id)
            self._replaced[token] = sql.kept_select(self.dialect, staged, rows, hashed)
            self.execute(query_text.create(names.staged, self._replaced[token]))
            select = sql.base_select(self.dialect, contract, target, scope, hashed)
            self.execute(query_text.create(names.base, select))
            self.execute("COMMIT")
            self._timeout = None
            repeated = self.execute(sql.repeated_select(contract, names.staged))[0][0]
        return replace(staged, repeated=int(repeated))

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
            self._pin(contract)
            first, last = self.execute(f"SELECT {texts} FROM {sql.relation(target)}")[0]
        if first is None:
            return None
        family, cut = column.family.value, contract.slice
        start, end = (moment_from_column(text, family, cut.unit, cut.timezone) for text in (first, last))
        return start, end

    def _pin(self, contract: Contract) -> None:
        """Pin what the meaning of a source may depend on."""
        self.execute(f"SET TimeZone = {sql.text_literal(contract.slice.timezone)}")

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
        with self.translated(staged.contract, f"the rows of {staged.contract.source.name}"):
            select = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
            self.execute(query_text.create(names.staged, select))
            return measure.inspect(self, staged, names)

    def compare(self, staged: Staged) -> Diff:
        """Compare the staged rows with the base."""
        with self.translated(staged.contract, "the comparison"):
            return measure.compare(self, staged, _names(staged.token))

    def compare_stagings(self, first: Staged, second: Staged) -> tuple[str, ...]:
        """Name the columns in which two stagings differ."""
        with self.translated(first.contract, "the comparison"):
            return measure.compare_stagings(self, first, _names(first.token), _names(second.token))

    def reconcile(self, staged: Staged, query: Reconciliation) -> tuple[ControlLine, ...]:
        """Compare what a downstream reader reports with the target's own rows, slice by slice, in one snapshot."""
        contract, target = staged.contract, staged.target
        token = secrets.token_hex(6)
        names = _names(token)
        with self.translated(contract, query.query.name), self.transaction():
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
        entry = Entry(opened, run, groups, self.ledger.staged_order(staged))
        publication = self._publication(staged, slices, compared)
        published = publish(self, publication, entry)
        self._turns.setdefault(staged.token, []).append(published.order)
        self._published_by[staged.token] = opened.id
        if alone:
            self.ledger.add_part(opened, published, publication.kept)
        return published

    def _publication(
        self, staged: Staged, slices: tuple[SliceDiff, ...], compared: tuple[Scope, Fingerprint] | None = None
    ) -> Publication:
        """Return the publish of `slices`; `compared` is what must not have moved, the slices themselves unless said."""
        written = scope_of(staged.scope, slices)
        scope, base = compared or (written, sum((each.base for each in slices), Fingerprint()))
        where = ledger.place(staged.target.catalog, staged.contract.ledger.schema)
        points = staged.target.has_pointers
        return Publication(staged, slices, written, scope, base, where, _names(staged.token), points)

    def publish_statements(self, staged: Staged, slices: tuple[SliceDiff, ...], diff: Diff | None) -> tuple[str, ...]:
        """Return the SQL that recomputes and replaces `slices`, in order; none when there is nothing to replace.

        One commit compares the whole `diff` again; a commit of one slice, with None, that slice alone.
        """
        if not slices:
            return ()
        names = _names(staged.token)
        contract = staged.contract
        compared = None if diff is None else (staged.scope, diff.base)
        publication = self._publication(staged, slices, compared)
        if staged.restores:
            select = query_text.create(names.staged, self._replaced[staged.token])
            return f"-- what {staged.restores} replaced\n{select}", *publication.shown(self.dialect)
        body, values = query_text.over_range(contract, staged.target, staged.scope.hull, contract.source)
        bound = ", ".join(f"${name} = {sql.text_literal(value)}" for name, value in values.items())
        cast = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
        return (
            f"-- {contract.source.name}, with {bound}\n" + query_text.create(names.source, query_text.subquery(body)),
            f"-- cast once to the target's types\n{query_text.create(names.staged, cast)}",
            *publication.shown(self.dialect),
        )

    def read_back(self, staged: Staged, slices: tuple[SliceDiff, ...]) -> ReadBack:
        """Read the committed slices in a new snapshot and name those that are not the staged rows."""
        with self.ending(), self.translated(staged.contract, "reading the slices back"):
            return self._publication(staged, slices).read_back(
                self, self._turns[staged.token], self._published_by[staged.token]
            )

    def _touched_since(self, contract: Contract, target: Target, since: str) -> list[Moment]:
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


def _names(token: str) -> Names:
    """Return the temporary tables of one staging; temp.main is this connection's own, so no table of a user is met."""
    words = ("source", "staged", "base", "control", "slices", "diff", "rows")
    return Names(*(f"temp.main.{quote(f'reslice_{word}_{token}')}" for word in words))
