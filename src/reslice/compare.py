"""Compare: the checked rows against the base, slice by slice. Only temporary tables are written."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime, timedelta
from zoneinfo import ZoneInfo

from reslice import parameters
from reslice.contract import Unit
from reslice.engines.base import Engine
from reslice.errors import Failure, Refused
from reslice.ranges import Moment
from reslice.tables import Family
from reslice.values import Checked, Diff


def compare(engine: Engine, checked: Checked) -> Diff:
    """Return what the staged rows would change; equal row counts and fingerprints mean unchanged, never an empty join.

    Raises Refused[slice_off_unit] when the target holds values in the range that belong to no slice.
    """
    try:
        return engine.compare(checked.staged)
    except ValueError as error:
        contract = checked.staged.contract
        found = (
            f"{contract.table} holds a {contract.slice.column} in the range that is no {contract.slice.unit}: {error}"
        )
        asked = contract.quote("slice", f"unit: {contract.slice.unit}")
        failure = Failure("slice_off_unit", asked, (found,), f"correct or delete those rows of {contract.table}")
        raise Refused(contract.name, [failure], unchanged=f"{contract.table} is as it was") from error


DAYS = frozenset({Family.DATE, Family.TEXT, Family.INTEGER})
"""Slice columns whose `:end` is a day, which a comparison with a timestamp takes for its first instant."""


def warnings(checked: Checked, diff: Diff) -> tuple[str, ...]:
    """Say what no check and no guard sees, and a person should look at."""
    return (*_end_missing(checked, diff), *_repeated_hour_empty(checked, diff))


def _repeated_hour_empty(checked: Checked, diff: Diff) -> tuple[str, ...]:
    """Say when, of an hour that the clock shows twice, only the later one has rows.

    date_trunc('hour', …) of an instant puts both into the later one on some databases; only a control would tell.
    """
    scope = diff.scope
    if scope.unit is not Unit.HOUR:
        return ()
    filled = {each.slice for each in diff.slices if each.staged.rows}
    found = [
        scope.label(before)
        for moment in filled
        if isinstance(moment, datetime) and (before := _same_hour_before(moment, scope.zone)) is not None
        if before not in filled and scope.contains(before)
    ]
    source = checked.staged.contract.source.name
    return tuple(
        f"{label} has no rows, and the same hour of the clock after it has; if {source} cuts hours with"
        " date_trunc('hour', …), both are counted as the later one"
        for label in sorted(found)
    )


def _same_hour_before(moment: datetime, zone: str) -> datetime | None:
    """Return the hour before, where the clock shows the same as at `moment`; None everywhere else."""
    if moment.year in (MINYEAR, MAXYEAR):  # beyond the calendar there is no hour, and no clock that changes
        return None
    before = moment - timedelta(hours=1)
    here = ZoneInfo(zone)
    same = moment.astimezone(here).replace(tzinfo=None) == before.astimezone(here).replace(tzinfo=None)
    return before if same else None


def _end_missing(checked: Checked, diff: Diff) -> tuple[str, ...]:
    """Say when the end of the range may be missing without a guard: nothing is there on either side to compare.

    A source that compares a timestamp with the day `:end` stops at its midnight, and so loses the last day of every
    range. Where the target holds that day, the guard `empty_slice` stops it; on a first load only this tells.
    """
    contract, scope = checked.staged.contract, diff.scope
    family = checked.staged.target.column(contract.slice.column).family
    if family not in DAYS or contract.slice.unit is not Unit.DAY or "end" not in parameters.names(contract.source.text):
        return ()
    end = scope.hull.end
    others = [each.slice for each in diff.slices if each.staged.rows or each.base.rows]
    is_cut_short = end not in others and (scope.count == 1 or _day_before(end) in others)
    if not is_cut_short:
        return ()
    return (
        f"{scope.label(end)}, the last slice, has no rows on either side; if {contract.source.name} compares a"
        " timestamp with :end, it stops at that day's midnight: filter by :start_instant and :end_instant",
    )


def _day_before(day: Moment) -> Moment | None:
    return day - timedelta(days=1) if day.toordinal() > 1 else None
