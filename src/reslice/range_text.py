"""The RANGE a user types, and a scheduler's interval, read as the first and the last slice they name.

Every text either gives two slices or an error of kind `range_unreadable`, `range_open`, `range_off_unit` or
`range_reversed`. Nothing is rounded: a bound that is not a slice's boundary is refused, with the range that would work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from reslice import moments
from reslice.contract import SliceColumn, Unit
from reslice.errors import Failure, Misused, Refused
from reslice.moments import Moment

Bounds = tuple[Moment, Moment]
Value = TypeVar("Value")

_UNCHANGED = "nothing was read or written"
_EXPECTED = (
    "a RANGE is a day 2026-01-02, a week 2026-W02, a month 2026-01, a quarter 2026-Q1, a year 2026 or an hour "
    "2026-01-02T05:00, or two of them, both included: 2026-01-01..2026-01-31"
)
_EXPECTED_INTERVAL = (
    "an interval is two dates or times, the second not included: 2026-01-01 2026-01-02, or "
    "2026-01-01T00:00:00+00:00 2026-01-02T00:00:00+00:00"
)
_EMPTY = "the interval is empty: its end is not included; a scheduler needs a timetable that has data intervals"
_OUTSIDE = "reaches outside the years 0001 to 9999 in UTC"
_INFINITE = ("", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf")
_YEAR = re.compile(r"([0-9]{4})")
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_QUARTER = re.compile(r"([0-9]{4})-Q([1-4])")
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})")
_CLOCK = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ]"
    r"(?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?)?"
    r"(?P<offset>Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2})(?::?(?P<seconds>[0-9]{2}))?)?)?"
)


@dataclass(frozen=True, slots=True)
class _Days:
    """A bound that names whole days, as ordinals; the last week of 9999 ends beyond the calendar."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Clock:
    """A bound with a time of day, at a UTC offset or (None) on the wall of the contract's zone.

    A fraction of a second that is not zero stands in `wall` as one microsecond.
    """

    text: str
    wall: datetime
    offset: timedelta | None

    def instants(self, zone: str) -> tuple[datetime, ...]:
        """Return the instants it may mean: one, two where the local clock is set back, none where it is skipped."""
        if self.offset is not None:
            return ((self.wall - self.offset).replace(tzinfo=UTC),)
        return moments.occurrences(self.wall, zone)


_Bound = _Days | _Clock


class _OffUnitError(Exception):
    """A bound is not the boundary of a slice; says what it is."""


def read_range(text: str, slice: SliceColumn) -> Bounds:
    """Return the first and the last slice of a RANGE.

    Raises Misused `range_unreadable`; Refused `range_open`, `range_off_unit`, `range_reversed`.
    """
    about = f"the range {_shown(text)}"
    parts = [part.strip() for part in text.split("..")]
    if len(parts) > 2 or parts == [""]:
        raise _unreadable(about, [f"{_shown(text)} is no range"], _EXPECTED)
    try:
        start, end = _read_both(about, (parts[0], parts[-1]), slice, _EXPECTED)
        first, last = _resolve(about, (start, _start), (end, _end), slice, _cover)
        if first > last:
            raise _reversed(about, f"{start.text} is after {end.text}", _text(_cover(end, start, slice), slice))
    except OverflowError as error:
        raise _unreadable(about, [f"{_shown(text)} {_OUTSIDE}"], _EXPECTED) from error
    return first, last


def read_interval(start: str, end: str, slice: SliceColumn) -> Bounds:
    """Return the first and the last slice of a half-open interval: the last one is the slice before `end`.

    Values with an offset are converted to the contract's zone, others are local to it; where a local hour is repeated,
    the first one is meant. Raises Misused `range_unreadable`; Refused `range_open`, `range_off_unit`, `range_reversed`.
    """
    about = f"the interval {_shown(start)} {_shown(end)}"
    try:
        left, right = _read_both(about, (start.strip(), end.strip()), slice, _EXPECTED_INTERVAL)
        odd = [each.text for each in (left, right) if isinstance(each, _Days) and not _DAY.fullmatch(each.text)]
        if odd:
            raise _unreadable(about, [f"{text} is neither a date nor a time" for text in odd], _EXPECTED_INTERVAL)
        first, beyond = _resolve(about, (left, _boundary), (right, _boundary), slice, _cover_interval)
        if first >= beyond:
            raise _reversed_interval(about, (first, beyond), slice)
        return first, _slice_before(beyond, slice)
    except OverflowError as error:
        found = f"{_shown(start)} {_shown(end)} {_OUTSIDE}"
        raise _unreadable(about, [found], _EXPECTED_INTERVAL) from error


# Reading: text to days or a clock.


def _read_both(about: str, texts: tuple[str, str], slice: SliceColumn, expected: str) -> tuple[_Bound, _Bound]:
    """Read two bounds, naming every one that cannot be read; an open one is refused after that."""
    found: list[str] = []
    bounds: list[_Bound] = []
    for text in dict.fromkeys(texts):
        if text.lower() in _INFINITE:
            continue
        try:
            bounds.append(_read(text, slice.unit))
        except ValueError as error:
            found.append(f"{_shown(text)}: {error}")
    if found:
        raise _unreadable(about, found, expected)
    if any(text.lower() in _INFINITE for text in texts):
        instead = _text(_cover(bounds[0], bounds[0], slice), slice) if bounds else ""
        raise _open(about, texts, instead)
    return bounds[0], bounds[-1]


def _read(text: str, unit: Unit) -> _Bound:
    """Read one bound; ValueError says why it is none."""
    if found := _CLOCK.fullmatch(text):
        return _read_clock(text, found)
    first, last = _read_days(text)
    if last > moments.DAY_LAST and unit is not Unit.WEEK:
        raise ValueError("it ends after 9999-12-31")
    return _Days(text, first, last)


def _read_days(text: str) -> tuple[int, int]:
    """Return the first and last day of a day, week, month, quarter or year, as ordinals."""
    if found := _DAY.fullmatch(text):
        day = _valid_day(found[1])
        return day.toordinal(), day.toordinal()
    if found := _WEEK.fullmatch(text):
        year, week = int(found[1]), int(found[2])
        day = _valid(lambda: date.fromisocalendar(year, week, 1), "there is no such week")
        return day.toordinal(), day.toordinal() + 6
    if found := _QUARTER.fullmatch(text):
        return _unit_days(int(found[1]), int(found[2]) * 3 - 2, Unit.QUARTER)
    if found := _MONTH.fullmatch(text):
        return _unit_days(int(found[1]), int(found[2]), Unit.MONTH)
    if found := _YEAR.fullmatch(text):
        first, _ = _unit_days(int(found[1]), 1, Unit.MONTH)
        return first, date(int(found[1]), 12, 31).toordinal()
    raise ValueError("it is no day, week, month, quarter, year or hour")


def _unit_days(year: int, month: int, unit: Unit) -> tuple[int, int]:
    """Return the first and last day of the month or quarter that begins with a month."""
    day = _valid(lambda: date(year, month, 1), "there is no such month; years are 0001 to 9999")
    return day.toordinal(), moments.day_after(day, unit) - 1


def _read_clock(text: str, found: re.Match[str]) -> _Clock:
    """Read a date with a time of day; ValueError when there is no such day, time or offset."""
    day = _valid_day(found["day"])
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    microsecond = 1 if (found["fraction"] or "").strip("0") else 0
    clock = _valid(lambda: time(hour, minute, second, microsecond), "there is no such time of day")
    return _Clock(text, datetime.combine(day, clock), _read_offset(found))


def _read_offset(found: re.Match[str]) -> timedelta | None:
    """Read Z or a UTC offset; None when there is none."""
    if not found["offset"]:
        return None
    if found["offset"] == "Z":
        return timedelta(0)
    hours, minutes, seconds = (int(found[part] or 0) for part in ("hours", "minutes", "seconds"))
    east = _valid(lambda: time(hours, minutes, seconds), "there is no such UTC offset")
    offset = timedelta(hours=east.hour, minutes=east.minute, seconds=east.second)
    return -offset if found["sign"] == "-" else offset


def _valid_day(text: str) -> date:
    """Return the day written YYYY-MM-DD; ValueError when the calendar has none."""
    return _valid(lambda: date.fromisoformat(text), "there is no such day")


def _valid(make: Callable[[], Value], reason: str) -> Value:
    """Return what `make` makes; where the calendar has no such thing, ValueError with our own reason."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(reason) from error


# Resolving: days or a clock to a slice.


_Side = Callable[[_Bound, SliceColumn], Moment]
_Covering = Callable[[_Bound, _Bound, SliceColumn], Bounds]


def _resolve(
    about: str, start: tuple[_Bound, _Side], end: tuple[_Bound, _Side], slice: SliceColumn, cover: _Covering
) -> Bounds:
    """Return both bounds as slices; Refused names every bound that is no boundary, and the range that holds both."""
    found: list[str] = []
    resolved: list[Moment] = []
    for bound, side in (start, end):
        try:
            resolved.append(side(bound, slice))
        except _OffUnitError as error:
            found.append(str(error))
    if found:
        raise _off_unit(about, found, slice, _text(cover(start[0], end[0], slice), slice))
    return resolved[0], resolved[1]


def _start(bound: _Bound, slice: SliceColumn) -> Moment:
    """Return the slice that begins where the bound begins."""
    if slice.unit is Unit.HOUR:
        return _hours(bound, slice.timezone)[0]
    days = _whole_days(bound, slice.unit)
    day = date.fromordinal(days.first)
    first = moments.slice_of(day, slice.unit)
    if first != day:
        name = moments.label(first, slice.unit, slice.timezone)
        raise _OffUnitError(f"{day} is not the first day of a {slice.unit}: {name} begins on {first}")
    return first


def _end(bound: _Bound, slice: SliceColumn) -> Moment:
    """Return the slice that ends where the bound ends."""
    if slice.unit is Unit.HOUR:
        return _hours(bound, slice.timezone)[-1]
    days = _whole_days(bound, slice.unit)
    first = moments.slice_of(date.fromordinal(min(days.last, moments.DAY_LAST)), slice.unit)
    last = moments.day_after(first, slice.unit) - 1
    if last != days.last:
        name, day = moments.label(first, slice.unit, slice.timezone), moments.day_text(days.last)
        raise _OffUnitError(f"{day} is not the last day of a {slice.unit}: {name} ends on {moments.day_text(last)}")
    return first


def _boundary(bound: _Bound, slice: SliceColumn) -> Moment:
    """Return the slice that begins exactly at a date or time of an interval."""
    if slice.unit is Unit.HOUR:
        return _hours(bound, slice.timezone)[0]
    if isinstance(bound, _Days):
        return _start(bound, slice)
    day = _local(bound, slice.timezone).date()
    if bound.offset is None:
        is_start = bound.wall.time() == time.min
    else:
        is_start = bound.instants(slice.timezone)[0] in moments.day_starts(day, slice.timezone)
    if not is_start:
        raise _OffUnitError(f"{bound.text} is within {day}, in {slice.timezone}")
    return _start(_Days(bound.text, day.toordinal(), day.toordinal()), slice)


def _whole_days(bound: _Bound, unit: Unit) -> _Days:
    """Return the bound when it names whole days; a time of day is off, also midnight."""
    if isinstance(bound, _Days):
        return bound
    raise _OffUnitError(
        f"{bound.text} has a time of day and slices are {unit}s: "
        f"recomputing a part of a {unit} would lose the rows of its other part"
    )


def _hours(bound: _Bound, zone: str) -> tuple[datetime, ...]:
    """Return the first and the last hour slice of a bound, which may be one."""
    if isinstance(bound, _Clock):
        try:
            hours = tuple(moments.check_hour(instant, zone) for instant in bound.instants(zone))
        except ValueError as error:
            raise _OffUnitError(f"{bound.text} is not the start of an hour in {zone}: {error}") from error
        if not hours:
            raise _OffUnitError(f"{bound.text} is skipped by the clock in {zone}")
        return hours
    first = _hours_of_first(range(bound.first, bound.last + 1), zone)
    last = _hours_of_first(range(bound.last, bound.first - 1, -1), zone)
    if not first or not last:
        raise _OffUnitError(f"{bound.text} is skipped by the calendar in {zone}")
    return moments.check_hour(first[0], zone), moments.check_hour(last[-1], zone)


def _hours_of_first(days: Sequence[int], zone: str) -> tuple[datetime, ...]:
    """Return the hours of the first of the days that has any: a zone that moved over the date line skipped one."""
    return next(filter(None, (moments.hours_of_day(date.fromordinal(day), zone) for day in days)), ())


# The range that would work, for `next`.


def _cover(start: _Bound, end: _Bound, slice: SliceColumn) -> Bounds:
    """Return the slices that hold the beginning of one bound and the end of the other, in order."""
    low, high = sorted((_holding(start, slice, is_end=False), _holding(end, slice, is_end=True)))
    return low, high


def _cover_interval(start: _Bound, end: _Bound, slice: SliceColumn) -> Bounds:
    """Return the slices that hold what lies between two bounds of which the second is not included."""
    try:
        high = _slice_before(_boundary(end, slice), slice)
    except _OffUnitError:
        high = _holding(end, slice, is_end=True)
    low = _holding(start, slice, is_end=False)
    return min(low, high), max(low, high)


def _holding(bound: _Bound, slice: SliceColumn, *, is_end: bool) -> Moment:
    """Return the slice that holds the beginning, or the end, of a bound."""
    wall = _local(bound, slice.timezone, is_end=is_end)
    if slice.unit is not Unit.HOUR:
        return moments.slice_of(wall.date(), slice.unit)
    return moments.hour_of(wall.astimezone(UTC), slice.timezone)


def _local(bound: _Bound, zone: str, *, is_end: bool = False) -> datetime:
    """Return the beginning, or the end, of a bound as an aware local time."""
    place = ZoneInfo(zone)
    if isinstance(bound, _Clock):
        if bound.offset is not None:
            return bound.instants(zone)[0].astimezone(place)
        return bound.wall.replace(tzinfo=place, fold=int(is_end))
    if is_end:
        return moments.last_instant(date.fromordinal(min(bound.last, moments.DAY_LAST)), zone)
    return datetime.combine(date.fromordinal(bound.first), time.min, tzinfo=place)


def _slice_before(moment: Moment, slice: SliceColumn) -> Moment:
    """Return the slice before one."""
    if isinstance(moment, datetime):
        return moments.hour_of(moment - timedelta(seconds=1), slice.timezone)
    return moments.slice_of(moment - timedelta(days=1), slice.unit)


def _text(bounds: Bounds, slice: SliceColumn) -> str:
    """Return a RANGE that reads back as these slices."""
    first, last = (moments.label(moment, slice.unit, slice.timezone) for moment in bounds)
    return first if first == last else f"{first}..{last}"


# What is said.


def _shown(text: str) -> str:
    """Return a user's text so that it is safe and short enough to print."""
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return short if short and short.isprintable() else repr(short)


def _unreadable(about: str, found: list[str], expected: str) -> Misused:
    return Misused(about, [Failure("range_unreadable", expected, tuple(found), "")], unchanged=_UNCHANGED)


def _open(about: str, texts: tuple[str, str], instead: str) -> Refused:
    side = " and ".join(name for name, text in zip(("start", "end"), texts, strict=True) if text.lower() in _INFINITE)
    found = (f"the range has no {side}",)
    failure = Failure("range_open", "a range is closed: its first and its last slice are both named", found, instead)
    return Refused(about, [failure], unchanged=_UNCHANGED)


def _off_unit(about: str, found: list[str], slice: SliceColumn, instead: str) -> Refused:
    asked = f"a range begins and ends where one of its slices does, and slices are {slice.unit}s"
    failure = Failure("range_off_unit", asked, tuple(dict.fromkeys(found)), instead)
    return Refused(about, [failure], unchanged=_UNCHANGED)


def _reversed(about: str, found: str, instead: str) -> Refused:
    failure = Failure("range_reversed", "a range ends at or after its start", (found,), instead)
    return Refused(about, [failure], unchanged=_UNCHANGED)


def _reversed_interval(about: str, bounds: Bounds, slice: SliceColumn) -> Refused:
    """Return the refusal of an interval without a slice; meant may be that one slice, or the swapped range."""
    first, beyond = bounds
    if first == beyond:
        return _reversed(about, _EMPTY, _text((first, first), slice))
    return _reversed(about, "the interval ends before it starts", _text((beyond, _slice_before(first, slice)), slice))
