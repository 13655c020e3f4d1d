"""Which column of a job's query decides the slice, and over which range the job's own text runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from reslice import ranges
from reslice.contract import SliceColumn
from reslice.errors import ResliceError
from reslice.init.names import is_day
from reslice.ranges import Scope
from reslice.reading.bounds import Bounding, is_value, read
from reslice.reading.marks import MARK
from reslice.reading.outputs import JobQuery, Output, unit_of
from reslice.tables import Family, Target

_DAY = re.compile(r"\s*(\d{4})-?(\d\d)-?(\d\d)")
_TYPED = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ})
_POSSIBLE = _TYPED | {Family.TEXT, Family.INTEGER}
_WRAPPERS = (exp.Cast, exp.TryCast, exp.Date, exp.TsOrDsToDate, exp.Paren, exp.Convert, exp.StrToDate, exp.StrToTime)


@dataclass(frozen=True, slots=True)
class JobSlice:
    """The column that decides the slice, and why it is taken for it."""

    name: str
    why: str


def choose(
    query: JobQuery,
    outputs: Sequence[Output],
    conditions: Sequence[Bounding],
    filters: Sequence[exp.Expr],
    target: Target | None,
) -> JobSlice | None:
    """Return the column that what the job deletes, and what it reads, speak of; None when nothing does."""
    filtered = {column.name.lower() for each in filters for column in each.find_all(exp.Column)}
    filtered |= {each.name.lower() for each in filters if isinstance(each, exp.Identifier)}
    families = {column.name.lower(): column.family for column in target.columns} if target else {}
    best, points_most = None, 0
    for each in outputs:
        family = families.get(each.name.lower())
        if (families and family not in _POSSIBLE) or (each.origin is not None and each.origin.find(exp.AggFunc)):
            continue
        points, why = _points(query, each, conditions, filtered, family)
        if points > points_most:
            best, points_most = JobSlice(each.name, why), points
    return best


def _points(
    query: JobQuery, output: Output, conditions: Sequence[Bounding], filtered: set[str], family: Family | None
) -> tuple[int, str]:
    grounds: list[tuple[int, str]] = []
    if output.name.lower() in filtered:
        grounds.append((100, "the job deletes by it, or writes its partition"))
    if output.origin is not None and output.select is not None:
        behind = query.names_behind(output.origin, output.select)
        if is_value(output.origin):
            grounds.append((45, "the job writes its date into it"))
        if any(behind & each.names for each in conditions):
            grounds.append((40, "the job filters by what it is made from"))
        if unit_of(output.origin) is not None:
            grounds.append((15, "the job cuts a time to it"))
    if is_day(output.name):
        grounds.append((10, "by its name"))
    if family in _TYPED:
        grounds.append((10, "by its type"))
    return sum(points for points, _ in grounds), grounds[0][1] if grounds else ""


def related(
    query: JobQuery, slice_output: Output | None, conditions: Sequence[Bounding], name: str
) -> tuple[list[Bounding], list[str]]:
    """Return the conditions that limit the slice, on what it is made from or with the same dates; and doubts."""
    behind = {name.lower()}
    if slice_output is not None and slice_output.origin is not None and slice_output.select is not None:
        behind |= query.names_behind(slice_output.origin, slice_output.select)
    own = [each for each in conditions if each.names & behind]
    texts = {value.sql() for each in own for value in each.values}
    if slice_output is not None and slice_output.origin is not None and is_value(slice_output.origin):
        texts.add(slice_output.origin.sql())
        texts |= {part.sql() for part in slice_output.origin.find_all(exp.Literal)}
    marks = {mark for text in texts for mark in MARK.findall(text)}
    others = [
        each
        for each in conditions
        if each not in own
        and any(value.sql() in texts or marks & set(MARK.findall(value.sql())) for value in each.values)
    ]
    doubts = [
        f"range: {query.shown(each.left)} is limited by the same dates, and now by the range as well"
        for each in others
        if own
    ]
    return [*own, *others], list(dict.fromkeys(doubts))


def range_of(conditions: Iterable[Bounding], filters: Iterable[exp.Expr], name: str, slice_of: SliceColumn) -> str:
    """Return the range that the job's own dates mean; empty where they are placeholders or no range of slices."""
    on_target = [
        found
        for condition in filters
        for found in read(condition, exp.select(), "")
        if found.names == {name.lower()} or not found.names
    ]
    for group in (on_target, list(conditions)):
        text = _range_of(group, slice_of)
        if text:
            return text
    return ""


def _range_of(found: Sequence[Bounding], slice_of: SliceColumn) -> str:
    low = high = ""
    is_open = False
    for each in found:
        days = [day_text(value) for value in each.values]
        if not all(days) or not days:
            continue
        if each.kind in ("equal", "in", "between"):
            low, high, is_open = min(days), max(days), False
            break
        if each.kind == "low" and not low:
            low = days[0]
        elif each.kind == "high" and not high:
            high, is_open = days[0], each.is_open
    if not low or not high:
        return ""
    try:
        if is_open:
            return Scope.of(ranges.parse_interval(low, high, slice_of)).text
        return Scope.parse(f"{low}..{high}" if low != high else low, slice_of).text
    except ResliceError:
        return ""


def day_text(value: exp.Expr) -> str:
    """Return the day that a value is written as; empty when it is a placeholder or computed."""
    while isinstance(value, _WRAPPERS):
        inner = value.args.get("expression") if isinstance(value, exp.Convert) else value.this
        if not isinstance(inner, exp.Expr):
            return ""
        value = inner
    found = _DAY.match(value.name) if isinstance(value, exp.Literal) else None
    return f"{found[1]}-{found[2]}-{found[3]}" if found else ""
