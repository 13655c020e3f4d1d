"""One publish, as data: which slices, under which conditions, and every statement in order.

`plan --sql` prints these statements and a publish executes them; there is no second place where they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reslice import ledger
from reslice.contract import StampValue
from reslice.engines import sql
from reslice.engines.base import ReadBack
from reslice.engines.session import Session
from reslice.engines.sql import Dialect, Names, Touch, quote
from reslice.fingerprint import columns_of
from reslice.ranges import Range, Scope, moment_from_column
from reslice.values import Fill, Fingerprint, GroupDiff, Opened, Run, SliceDiff, Staged


def scope_of(scope: Scope, slices: tuple[SliceDiff, ...]) -> Scope:
    """Return `slices` as ranges; `scope` itself when they are none, which no statement is then made for."""
    if not slices:
        return scope
    first, *rest = (each.slice for each in slices)
    return Scope.of(Range(scope.unit, scope.zone, first, first)).plus(rest)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger is told in the same commit. `run` closes the run's row; None leaves it open for more slices.

    `groups` are those of the written slices, each with its position in the diff.
    """

    opened: Opened
    run: Run | None
    groups: tuple[tuple[int, GroupDiff], ...]
    staged_order: int


@dataclass(frozen=True, slots=True)
class Publication:
    """What one commit replaces: `slices`, which are `written`; `compared` must still hold the fingerprint `base`."""

    staged: Staged
    slices: tuple[SliceDiff, ...]
    written: Scope
    compared: Scope
    base: Fingerprint
    where: str
    names: Names

    @property
    def after(self) -> Fingerprint:
        """What the written slices must hold afterwards."""
        return sum((each.staged for each in self.slices), Fingerprint())

    @property
    def kept(self) -> str:
        """The table that keeps the replaced rows."""
        return ledger.kept_table(self.where, self.staged.target)

    def within(self, dialect: Dialect, scope: Scope) -> str:
        """Return the condition that a row of the target, or of the staged rows, lies in `scope`."""
        contract = self.staged.contract
        column = sql.slice_column(contract, self.staged.target)
        return sql.within(dialect, quote(column.name), column, contract.slice, scope)

    def fence(self) -> str:
        """Return the statement that comes first and must touch exactly one row."""
        return ledger.fence_statement(self.where)

    def fingerprint(self, dialect: Dialect, scope: Scope) -> str:
        """Return the SELECT of the target's fingerprint over `scope`."""
        contract, target = self.staged.contract, self.staged.target
        condition = self.within(dialect, scope)
        return sql.fingerprint_select(dialect, contract, target, columns_of(contract), condition)

    def content(self, dialect: Dialect, table: str) -> str:
        """Return the SELECT of how many written rows `table` holds and what they add up to, in words."""
        contract, target = self.staged.contract, self.staged.target
        sums = "".join(
            f" || {sql.text_literal(f', {measure.name} ')} || coalesce(CAST(sum({shown}) AS VARCHAR), 'NULL')"
            for measure in sql.numeric_measures(contract, target)
            for shown in [dialect.shown(quote(measure.name), target.column(measure.name), measure.scale)]
        )
        rows = "count(*) || CASE count(*) WHEN 1 THEN ' row' ELSE ' rows' END"
        return f"SELECT {rows}{sums} FROM {table} WHERE {self.within(dialect, self.written)}"

    def holds(self, dialect: Dialect, relation: str, scope: Scope) -> str:
        """Return the SELECT of whether the target holds, in `scope`, the very rows of a temporary relation of ours."""
        contract, target = self.staged.contract, self.staged.target
        row = dialect.own_hash([dialect.plain(quote(name), target.column(name)) for name in columns_of(contract)])
        digest, condition = f"SELECT (count(*), sum({row}))", self.within(dialect, scope)
        return (
            f"SELECT ({digest} FROM {sql.target_name(target)} WHERE {condition})\n"
            f"  IS NOT DISTINCT FROM ({digest} FROM {relation} WHERE {condition})"
        )

    def keep(self, dialect: Dialect) -> str:
        """Return the statement that keeps the rows about to be replaced; it takes the parameter `run_id`.

        It takes every column there is, so that one that was added since the target was looked at is an error.
        """
        target = self.staged.target
        computed = [column.name for column in target.columns if column.fill is Fill.GENERATED]
        every = f"* EXCLUDE ({sql.column_list(computed)})" if computed else "*"
        condition = self.within(dialect, self.written)
        return f"INSERT INTO {self.kept}\nSELECT $run_id, {every} FROM {sql.target_name(target)} WHERE {condition}"

    def touch(self, dialect: Dialect, touch: Touch) -> str:
        """Return the UPDATE after which a concurrent UPDATE of these rows is a conflict; empty when there is none."""
        contract, target = self.staged.contract, self.staged.target
        return sql.touch_statement(dialect, contract, target, self.within(dialect, self.written), touch)

    def delete(self, dialect: Dialect) -> str:
        """Return the DELETE of the slices."""
        return sql.delete_statement(self.staged.target, self.within(dialect, self.written))

    def insert(self, dialect: Dialect) -> str:
        """Return the INSERT of the staged rows; stamps take the parameters `run_time` and `run_id`."""
        condition = self.within(dialect, self.written)
        return sql.insert_statement(self.staged.contract, self.staged.target, self.names, condition)

    @property
    def stamps(self) -> frozenset[str]:
        """The parameters the INSERT takes."""
        return frozenset(stamp.value.value for stamp in self.staged.contract.stamps)

    @property
    def stamps_time(self) -> bool:
        """Whether a stamp takes the run's time."""
        return StampValue.RUN_TIME.value in self.stamps

    def shown(self, dialect: Dialect) -> tuple[str, ...]:
        """Return the statements of the commit, in order, as a person reads them."""
        touch = self.touch(dialect, Touch.OTHER)
        return (
            "BEGIN TRANSACTION",
            self.fence(),
            f"-- must be true: {self.base}, as it was compared\n{self.holds(dialect, self.names.base, self.compared)}",
            self.keep(dialect),
            *([f"-- so that a concurrent UPDATE is a conflict and not lost\n{touch}"] if touch else []),
            self.delete(dialect),
            self.insert(dialect),
            f"-- must be {self.after}, as it was staged\n{self.fingerprint(dialect, self.written)}",
            f"-- the run's row in {self.where}.runs, its slices and its groups",
            "COMMIT",
        )

    def read_back(self, session: Session, turns: Sequence[int]) -> ReadBack:
        """Read the written slices, and in the same snapshot whether others took a turn since the first of `turns`."""
        table = {"table_name": self.staged.target.resolved}
        holds = self.holds(session.dialect, self.names.staged, self.written)
        generation = f"SELECT generation FROM {self.where}.fences WHERE table_name = $table_name"
        is_held, now = session.execute(f"SELECT ({holds}), ({generation})", table)[0]
        if is_held:
            return ReadBack(())
        return ReadBack(self._differing(session), is_later=now != turns[0] + len(turns) - 1)

    def _differing(self, session: Session) -> tuple[str, ...]:
        """Name the written slices that are not the staged rows."""
        staged = self.staged
        column = sql.slice_column(staged.contract, staged.target)
        select = sql.base_select(
            session.dialect, staged.contract, staged.target, self.written, columns_of(staged.contract)
        )
        text = session.dialect.slice_text("slice", column)
        rows = session.execute(
            f"SELECT {text}, row_count, total FROM (SELECT {sql.SLICE} AS slice, count(*) AS row_count,"
            f" sum({sql.HASH}) AS total FROM ({select}) AS live GROUP BY 1) AS slices"
        )
        live = {
            moment_from_column(row[0], column.family.value, staged.scope.unit, staged.scope.zone): Fingerprint(
                int(row[1]), int(row[2])
            )
            for row in rows
        }
        return tuple(each.label for each in self.slices if live.get(each.slice, Fingerprint()) != each.staged)
