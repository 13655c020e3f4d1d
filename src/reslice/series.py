"""Series: what a measure added up to in each slice of a run, before and after it. Nothing is written.

The ledger keeps which rows a slice held, by their fingerprint, and not what they add up to. They are summed where they
still are: in the table, or where a run keeps what it replaced. Of rows that are nowhere any more, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Refused
from reslice.fingerprint import columns_of
from reslice.ranges import Range, Scope
from reslice.recorded import LedgerRun, LedgerSlice, SliceRows
from reslice.restore import moment_of
from reslice.totals import added_up, is_finite
from reslice.values import Fingerprint, Number


@dataclass(frozen=True, slots=True)
class Amount:
    """The rows of one side of a slice, and what they add up to; `is_known` says whether that can still be said."""

    rows: int
    total: Number | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Point:
    """One slice of a run. Rows that are the same ones on both sides have not `moved`."""

    slice: str
    before: Amount
    after: Amount
    moved: bool


def row_points(run: LedgerRun) -> tuple[Point, ...]:
    """Return how many rows each slice had before and after; the ledger knows that for good."""

    def point(each: LedgerSlice, after: str) -> Point:
        before, left = _rows(each.fingerprint_base), _rows(after)
        return Point(each.slice, Amount(before, before), Amount(left, left), moved=after != each.fingerprint_base)

    return tuple(point(each, after) for each, after in _sides(run))


def points(engine: Engine, contract: Contract, run: LedgerRun, measure: str) -> tuple[Point, ...]:
    """Return what `measure` added up to in each slice before and after a run, as far as it is still known.

    After a run that wrote nothing stands what it would have written. Raises Refused[contract_changed] when the contract
    or the table has other columns or slices than the run.
    """
    if run.columns != columns_of(contract):
        found = f"{run.id} compared {', '.join(run.columns)}; the contract names {', '.join(columns_of(contract))}"
        raise _refused(contract, run, found)
    if not run.slice_rows:
        return ()
    scope, target = _scope(contract, run), engine.target(contract)
    gone = sorted(set(contract.columns) - {column.name for column in target.columns})
    if gone:
        raise _refused(contract, run, f"{target.resolved} has no column {', '.join(gone)}")
    sums = engine.ledger.sums(contract, target, run, scope, measure)
    deltas = dict(_deltas(run, measure))
    return tuple(_point(each, after, sums, deltas) for each, after in _sides(run))


def _sides(run: LedgerRun) -> Iterator[tuple[LedgerSlice, str]]:
    """Yield each slice with the rows that stand for its end: those it was left with, or those that were recomputed."""
    has_written = any(each.fingerprint_after is not None for each in run.slice_rows)
    for each in run.slice_rows:
        left = each.fingerprint_base if has_written else each.fingerprint_staged
        yield each, each.fingerprint_after or left


def _point(
    each: LedgerSlice, after: str, sums: Mapping[SliceRows, Number | None], deltas: Mapping[str, Number]
) -> Point:
    first = _amount(each.slice, each.fingerprint_base, sums)
    last = _amount(each.slice, after, sums)
    moved = after != each.fingerprint_base
    delta = deltas.get(each.slice) if moved else None
    if delta is not None and first.is_known and not last.is_known:
        last = replace(last, total=added_up((first.total or 0, delta)), is_known=is_finite(first.total))
    return Point(each.slice, first, last, moved)


def _amount(label: str, fingerprint: str, sums: Mapping[SliceRows, Number | None]) -> Amount:
    rows = SliceRows(label, fingerprint)
    count = _rows(fingerprint)
    return Amount(count, sums.get(rows), is_known=count == 0 or rows in sums)


def _rows(fingerprint: str) -> int:
    return Fingerprint.parse(fingerprint).rows


def _deltas(run: LedgerRun, measure: str) -> Iterator[tuple[str, Number]]:
    """Yield by how much the measure moved in each slice of which the ledger holds every group that moved."""
    groups: dict[str, list[Number]] = {}
    for group in run.groups:
        sides = [_number(side, measure) for side in (group.after, group.before)]
        groups.setdefault(group.slice, []).append(added_up((sides[0], -sides[1])))
    for each in run.slice_rows:
        values = groups.get(each.slice, [])
        if len(values) == each.added + each.changed + each.removed and is_finite(*values):
            yield each.slice, added_up(values)


def _number(side: Mapping[str, object] | None, measure: str) -> Number:
    """Return a measure of a group as a number; the ledger has decimals as text."""
    value = None if side is None else side.get(measure)
    return Decimal(value) if isinstance(value, str) else value if isinstance(value, int) else 0


def _scope(contract: Contract, run: LedgerRun) -> Scope:
    """Return the slices that the ledger lists of a run."""
    moments = []
    for each in run.slice_rows:
        moment = moment_of(contract, run, each.slice)
        if moment is None:
            found = f"{run.id} names {each.slice}, which is no {contract.slice.unit} of the contract as it is now"
            raise _refused(contract, run, found)
        moments.append(moment)
    one = Range(contract.slice.unit, contract.slice.timezone, moments[0], moments[0])
    return Scope.of(one).plus(moments)


def _refused(contract: Contract, run: LedgerRun, found: str) -> Refused:
    asked = "a measure of a run, added up by slices as the contract has them now"
    failure = Failure("contract_changed", asked, (found,), f"reslice show {run.id} --diff")
    return Refused(f"{contract.name}, series of {run.id}", [failure], unchanged="nothing was written")
