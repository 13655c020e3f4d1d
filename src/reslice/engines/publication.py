"""One publish, as data: which slices, under which conditions, and every statement in order.

`plan --sql` prints these statements and a publish executes them; there is no second place where they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reslice import ledger
from reslice.contract import Method, StampValue
from reslice.engines import methods, sql, versions
from reslice.engines.base import ReadBack
from reslice.engines.dialect import Dialect
from reslice.engines.methods import Step
from reslice.engines.session import Session
from reslice.engines.sql import Names, quote
from reslice.engines.touch import Touch
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Range, Scope, moment_from_column
from reslice.tables import Family
from reslice.values import Fingerprint, GroupDiff, Opened, Run, SliceDiff, Staged


def scope_of(scope: Scope, slices: tuple[SliceDiff, ...]) -> Scope:
    """Return `slices` as ranges; `scope` itself when they are none, which no statement is then made for."""
    if not slices:
        return scope
    first, *rest = (each.slice for each in slices)
    return Scope.of(Range(scope.unit, scope.zone, first, first)).plus(rest)


TOLD = (Step.TOUCH,)
"""Steps that a statement does not tell by itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger is told in the same commit. `run` closes the run's row; None leaves it open for more slices.

    `groups` are those of the written slices, each with its position in the diff.
    """

    opened: Opened
    run: Run | None
    groups: tuple[tuple[int, GroupDiff], ...]
    staged_order: int
    warnings: tuple[str, ...] = ()
    """What happened on the way to this commit, which is in the run's warnings as well."""


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
    points: bool = False
    """Whether pointers at versions have to move although the method is another one."""

    @property
    def after(self) -> Fingerprint:
        """What the written slices must hold afterwards."""
        return sum((each.staged for each in self.slices), Fingerprint())

    @property
    def kept(self) -> str:
        """The table that keeps the replaced rows."""
        return ledger.kept_table(self.where, self.staged.target)

    def within(self, dialect: Dialect, scope: Scope, row: str = "") -> str:
        """Return the condition that a row of the target, or of the staged rows, lies in `scope`."""
        contract = self.staged.contract
        column = sql.slice_column(contract, self.staged.target)
        value = f"{row}.{quote(column.name)}" if row else quote(column.name)
        return sql.within(dialect, value, column, contract.slice, scope)

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
        digest, condition = f"SELECT (count(*), {self._own_sum(dialect)})", self.within(dialect, scope)
        return (
            f"SELECT ({digest} FROM {sql.relation(self.staged.target)} WHERE {condition})\n"
            f"  IS NOT DISTINCT FROM ({digest} FROM {relation} WHERE {condition})"
        )

    def digest(self, dialect: Dialect, relation: str, scope: Scope, beside: Sequence[str] = ()) -> str:
        """Return the SELECT of how many rows a relation has in `scope`, and the sum of the database's own hashes.

        They are of the contract's columns, and of those `beside` them. Of the staged rows a float counts at its
        declared scale: merge leaves a row that is equal at it as it is.
        """
        sums = self._own_sum(dialect, beside, at_scale=relation == self.names.staged)
        return f"SELECT count(*), {sums} FROM {relation} WHERE {self.within(dialect, scope)}"

    def _own_sum(self, dialect: Dialect, beside: Sequence[str] = (), *, at_scale: bool = False) -> str:
        contract, target = self.staged.contract, self.staged.target
        scales = sql.scales(contract) if at_scale else {}
        values = [
            dialect.shown(quote(name), column, scales[name])
            if column.family is Family.FLOAT and name in scales
            else dialect.plain(quote(name), column)
            for name in (*columns_of(contract), *beside)
            for column in [target.column(name)]
        ]
        return f"sum({dialect.own_hash(values)})"

    def written_back(self, dialect: Dialect) -> str:
        """Return the SELECT that reads the written slices back, before the commit."""
        if dialect.reads_back_by_own_hash:
            sums = self._own_sum(dialect, at_scale=True)
            rows = f"{sql.relation(self.staged.target)} WHERE {self.within(dialect, self.written)}"
            return f"SELECT count(*), {sums} FROM {rows}"
        return self.fingerprint(dialect, self.written)

    def pointing(self, dialect: Dialect) -> str:
        """Return the condition that pointers move: always by append_version, otherwise where it was the method once."""
        staged = self.staged
        if staged.contract.method is Method.APPEND_VERSION:
            return "true"
        return versions.points_condition(dialect, staged, self.names, self.where, self.written)

    @property
    def stamps(self) -> frozenset[str]:
        """The parameters that staged rows take when they are written; a restore puts the old stamps back."""
        if self.staged.restores:
            return frozenset()
        return frozenset(stamp.value.value for stamp in self.staged.contract.stamps)

    @property
    def stamps_time(self) -> bool:
        """Whether a stamp takes the run's time."""
        return StampValue.RUN_TIME.value in self.stamps

    def shown(self, dialect: Dialect) -> tuple[str, ...]:
        """Return the statements of the commit, in order, as a person reads them."""
        writes = methods.writes(self, dialect, Touch.OTHER)
        return (
            "BEGIN TRANSACTION",
            self.fence(),
            f"-- must be true: {self.base}, as it was compared\n{self.holds(dialect, self.names.base, self.compared)}",
            *(f"-- {each.step}\n{each.statement}" if each.step in TOLD else each.statement for each in writes),
            f"-- must be {self.after}, as it was staged\n{self.written_back(dialect)}",
            f"-- the run's row in {self.where}.runs, its slices and its groups",
            "COMMIT",
        )

    def read_back(self, session: Session, turns: Sequence[int], run_id: str, *, has_staged: bool = True) -> ReadBack:
        """Read the written slices, and in the same snapshot whether others took a turn since the first of `turns`.

        Where versions stay in the table the one before is read as well: what changed there is not current any more.
        Without the staged rows, which went with a connection that was lost, their fingerprints say what was staged.
        """
        table = {"table_name": self.staged.target.resolved}
        holds = self.holds(session.dialect, self.names.staged, self.written) if has_staged else "SELECT false"
        generation = f"SELECT generation FROM {self.where}.fences WHERE table_name = $table_name"
        is_held, now = session.execute(f"SELECT ({holds}), ({generation})", table)[0]
        is_later = now != turns[0] + len(turns) - 1
        if not is_held:
            return ReadBack(self._differing(session), is_later=is_later)
        if self.staged.contract.method is Method.APPEND_VERSION:
            return ReadBack(self._altered_before(session, run_id), is_later=is_later)
        return ReadBack(())

    def moved(self, session: Session) -> tuple[str, ...]:
        """Name the slices that are not what was compared."""
        live = self._fingerprints(session, sql.relation(self.staged.target)) if self.slices else {}
        return tuple(each.label for each in self.slices if live.get(each.slice, Fingerprint()) != each.base)

    def _differing(self, session: Session) -> tuple[str, ...]:
        """Name the written slices that are not the staged rows."""
        live = self._fingerprints(session, sql.relation(self.staged.target))
        return tuple(each.label for each in self.slices if live.get(each.slice, Fingerprint()) != each.staged)

    def _altered_before(self, session: Session, run_id: str) -> tuple[str, ...]:
        """Name the written slices whose version before is not what was compared: somebody wrote to it meanwhile."""
        contract, target = self.staged.contract, self.staged.target
        pointers = versions.pointers_before(self.where, run_id)
        rows = versions.rows_select(session.dialect, contract, target, self.where, pointers)
        live = self._fingerprints(session, f"({rows}) AS version_before")
        return tuple(each.label for each in self.slices if live.get(each.slice, Fingerprint()) != each.base)

    def _fingerprints(self, session: Session, relation: str) -> dict[Moment, Fingerprint]:
        """Return the fingerprint of every written slice of which a relation holds rows."""
        staged = self.staged
        column = sql.slice_column(staged.contract, staged.target)
        select = sql.rows_select(session.dialect, staged.contract, staged.target, relation, self.written)
        text = session.dialect.slice_text("slice", column)
        rows = session.execute(
            f"SELECT {text}, row_count, total FROM (SELECT {sql.SLICE} AS slice, count(*) AS row_count,"
            f" sum({sql.HASH}) AS total FROM ({select}) AS live GROUP BY 1) AS slices"
        )
        family, cut = column.family.value, staged.scope
        return {
            moment_from_column(value, family, cut.unit, cut.zone): Fingerprint(int(count), int(total))
            for value, count, total in rows
        }
