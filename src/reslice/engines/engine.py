"""What engines share: staging, measuring, and what a publish is made of. An engine is a session of its database.

What differs is how a snapshot is opened, how the one commit of a publish is made safe from others, and what the
database says of itself.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace

from reslice import ledger
from reslice.contract import Contract, Reconciliation, SqlFile
from reslice.engines import measure, sql
from reslice.engines import query as query_text
from reslice.engines.base import ReadBack
from reslice.engines.controls import control_lines
from reslice.engines.failures import misused
from reslice.engines.publication import Entry, Publication, scope_of
from reslice.engines.records import Records
from reslice.engines.refusals import refuse_replaced_functions
from reslice.engines.replaced import replaced_rows
from reslice.engines.session import SqlSession
from reslice.engines.sql import Names, quote
from reslice.errors import Failure
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Scope
from reslice.recorded import LedgerRun
from reslice.tables import Column, Target
from reslice.values import Approved, ControlLine, Diff, Findings, Fingerprint, Opened, Published, Run, SliceDiff, Staged


class SqlEngine(SqlSession):
    """A session that stages, compares and publishes."""

    ledger: Records
    temporary: str
    """The schema of temporary tables, which is this connection's own: no table of a user is met there."""

    def __init__(self) -> None:
        self._replaced: dict[str, str] = {}
        self._turns: dict[str, list[int]] = {}
        self._published_by: dict[str, str] = {}

    @abstractmethod
    def _snapshot(
        self, contract: Contract, target: Target, token: str, opened: Opened | None
    ) -> AbstractContextManager[None]:
        """Return one snapshot of the database, numbered in order for a run; temporary tables outlive it."""

    @abstractmethod
    def _publish(self, publication: Publication, entry: Entry) -> Published:
        """Replace the slices in one commit; the target is as before or wholly replaced."""

    def _shown(self, publication: Publication) -> tuple[str, ...]:
        """Return the statements of a publish, in order, as a person reads them."""
        return publication.shown(self.dialect)

    def _shown_base(self, publication: Publication) -> tuple[str, ...]:
        """Return the statement that makes the base, where a publish keeps rows out of it."""
        return ()

    def _beside(self, contract: Contract, target: Target) -> tuple[str, ...]:
        """Return the columns that the base of a run has beside those of the contract."""
        return ()

    def _base_select(self, contract: Contract, target: Target, scope: Scope, opened: Opened | None) -> str:
        """Return the SELECT of the base; of what is only looked at, no more columns are read than the contract's."""
        beside = () if opened is None else self._beside(contract, target)
        return sql.base_select(self.dialect, contract, target, scope, beside)

    def _refuse_writing(self, query: SqlFile) -> None:
        """Refuse a SQL file that did more than read when it was evaluated, where a SELECT can do that."""
        return

    # --- staging ----------------------------------------------------------------------------------------------------

    def stage(self, contract: Contract, target: Target, scope: Scope, opened: Opened | None = None) -> Staged:
        """Evaluate source, controls and base in one snapshot into temporary tables; the target is not touched."""
        token = secrets.token_hex(6)
        names = self.names(token)
        with self.translated(contract, f"the rows of {target.resolved}"):
            self.pin(contract)
            target = self.ledger.versioned(contract, target, opened)
            with self._snapshot(contract, target, token, opened):
                refuse_replaced_functions(contract, self.execute(sql.known_answer_select(self.dialect))[0])
                source = self._stage_query(contract, target, scope, contract.source, names.source)
                control: tuple[Column, ...] = ()
                if contract.controls is not None:
                    control = self._stage_query(contract, target, scope, contract.controls.query, names.control)
                self.execute(query_text.create(names.base, self._base_select(contract, target, scope, opened)))
        return Staged(contract, target, scope, token, source, control)

    def stage_replaced(
        self, contract: Contract, target: Target, scope: Scope, undone: LedgerRun, opened: Opened | None = None
    ) -> Staged:
        """Put what a run replaced, and the base, of one snapshot, into temporary tables; the target is not touched."""
        token = secrets.token_hex(6)
        names = self.names(token)
        with self.translated(contract, f"the rows of {target.resolved}"):
            self.pin(contract)
            target = self.ledger.versioned(contract, target, opened)
            with self._snapshot(contract, target, token, opened):
                refuse_replaced_functions(contract, self.execute(sql.known_answer_select(self.dialect))[0])
                rows = replaced_rows(self, contract, target, undone)
                staged = Staged(contract, target, scope, token, (), restores=undone.id)
                self._replaced[token] = sql.kept_select(self.dialect, staged, rows, columns_of(contract))
                self.execute(query_text.create(names.staged, self._replaced[token]))
                self.execute(query_text.create(names.base, self._base_select(contract, target, scope, opened)))
            repeated = self.execute(sql.repeated_select(contract, names.staged))[0][0]
        return replace(staged, repeated=int(repeated))

    def _stage_query(
        self, contract: Contract, target: Target, scope: Scope, query: SqlFile, table: str
    ) -> tuple[Column, ...]:
        """Evaluate a SQL file once, with its parameters bound, into a temporary table; return its columns."""
        body, values = query_text.over_range(self.dialect, contract, target, scope.hull, query)
        try:
            self.check_select(query, body)
            self.execute(query_text.create(table, query_text.subquery(body)), values)
        except self.driver_error as error:
            raise self.query_failed(contract, query, error) from error
        self._refuse_writing(query)
        return self.columns_of(table, contract.columns)

    # --- measuring --------------------------------------------------------------------------------------------------

    def inspect(self, staged: Staged) -> Findings:
        """Cast the staged rows to the target's types and measure every rule of the contract on them."""
        names = self.names(staged.token)
        with self.translated(staged.contract, f"the rows of {staged.contract.source.name}"):
            select = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
            self.execute(query_text.create(names.staged, select))
            return measure.inspect(self, staged, names)

    def compare(self, staged: Staged) -> Diff:
        """Compare the staged rows with the base."""
        with self.translated(staged.contract, "the comparison"):
            return measure.compare(self, staged, self.names(staged.token))

    def compare_stagings(self, first: Staged, second: Staged) -> tuple[str, ...]:
        """Name the columns in which two stagings differ."""
        with self.translated(first.contract, "the comparison"):
            return measure.compare_stagings(self, first, self.names(first.token), self.names(second.token))

    def reconcile(self, staged: Staged, query: Reconciliation) -> tuple[ControlLine, ...]:
        """Compare what a downstream reader reports with the target's own rows, slice by slice, in one snapshot."""
        contract, target = staged.contract, staged.target
        token = secrets.token_hex(6)
        names = self.names(token)
        with self.translated(contract, query.query.name), self.transaction():
            columns = self._stage_query(contract, target, staged.scope, query.query, names.control)
            select = sql.base_select(self.dialect, contract, target, staged.scope)
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
        published = self._publish(publication, entry)
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
        return Publication(staged, slices, written, scope, base, where, self.names(staged.token), points)

    def publish_statements(self, staged: Staged, slices: tuple[SliceDiff, ...], diff: Diff | None) -> tuple[str, ...]:
        """Return the SQL that recomputes and replaces `slices`, in order; none when there is nothing to replace.

        One commit compares the whole `diff` again; a commit of one slice, with None, that slice alone.
        """
        if not slices:
            return ()
        names = self.names(staged.token)
        contract = staged.contract
        compared = None if diff is None else (staged.scope, diff.base)
        publication = self._publication(staged, slices, compared)
        if staged.restores:
            select = query_text.create(names.staged, self._replaced[staged.token])
            replaced = f"-- what {staged.restores} replaced\n{select}"
            return replaced, *self._shown_base(publication), *self._shown(publication)
        body, values = query_text.over_range(self.dialect, contract, staged.target, staged.scope.hull, contract.source)
        bound = ", ".join(f"${name} = {sql.text_literal(value)}" for name, value in values.items())
        cast = sql.staged_select(self.dialect, staged, names, columns_of(staged.contract))
        return (
            f"-- {contract.source.name}, with {bound}\n" + query_text.create(names.source, query_text.subquery(body)),
            *self._shown_base(publication),
            f"-- cast once to the target's types\n{query_text.create(names.staged, cast)}",
            *self._shown(publication),
        )

    def read_back(self, staged: Staged, slices: tuple[SliceDiff, ...]) -> ReadBack:
        """Read the committed slices in a new snapshot and name those that are not the staged rows."""
        with self.ending(), self.translated(staged.contract, "reading the slices back"):
            return self._publication(staged, slices).read_back(
                self, self._turns[staged.token], self._published_by[staged.token]
            )

    def touched_since(self, contract: Contract, target: Target, since: str) -> list[Moment]:
        """Return the slices that the contract's affected query names for corrections since an instant, UTC."""
        query = contract.affected
        assert query is not None, "affected is asked only where the contract declares it"
        self.pin(contract)
        body, values = query_text.since(query, since)
        try:
            self.check_select(query, body)
            return measure.affected_moments(self, contract, target, body, values)
        except self.driver_error as error:
            raise self.query_failed(contract, query, error) from error
        except ValueError as error:
            found = f"{query.name} returns a value that is no {contract.slice.unit}: {error}"
            failure = Failure("source_invalid", f"{query.name} names slices", (found,), f"correct {query.name}")
            raise misused(query.name, failure) from error

    def names(self, token: str) -> Names:
        """Return the temporary tables of one staging."""
        words = ("source", "staged", "base", "control", "slices", "diff", "rows")
        return Names(*(f"{self.temporary}.{quote(f'reslice_{word}_{token}')}" for word in words))
