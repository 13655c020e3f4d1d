"""Closed ranges of slices, and what a run covers: the nouns that say which rows may be replaced.

A Range is a run of slices with both ends included; a Scope is one or more of them. Both are values with exact counts,
lazy iteration and a text that reads back. How a range is typed is `range_text`; the calendar is `moments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from reslice import moments, range_text
from reslice.contract import ClosedThrough, SliceColumn, Unit
from reslice.moments import Moment, moment_from_column

__all__ = [
    "ColumnBounds",
    "Moment",
    "OpenSlices",
    "Range",
    "Scope",
    "is_closed",
    "moment_from_column",
    "open_slices",
    "parse",
    "parse_interval",
]

_SHOWN_SLICES = 5
# In an ISO text column five-digit years sort before 9999, so the bound after the last day is the character after "9".
_AFTER_EVERY_DATE = ":"


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The values of a range in the slice column, as text that the column's type reads.

    `start` and `end` are both included: `end` is the last day, or the last microsecond, of the last slice. `next` is
    the first value after the range; rows of the range are `>= start AND < next`. With `local` the texts are wall times
    that the engine must read in the contract's zone; where a day's last hour is shown twice, an engine that takes the
    first of the two has an `end` an hour short, and the instant before `next` is the right one.
    """

    start: str
    end: str
    next: str
    local: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A closed run of slices in a zone: `start` is the first and `end` the last, both included."""

    unit: Unit
    zone: str
    start: Moment
    end: Moment

    def __post_init__(self) -> None:
        assert self.start <= self.end, f"the range {self.start}..{self.end} ends before it starts"

    @property
    def count(self) -> int:
        """How many slices it has, without walking them."""
        return moments.count(self.start, self.end, self.unit, self.zone)

    def slices(self) -> Iterator[Moment]:
        """Yield the slices in order, one at a time."""
        return moments.walk(self.start, self.end, self.unit, self.zone)

    def label(self, moment: Moment) -> str:
        """Return how one slice is written; it reads back as the same slice."""
        return moments.label(moment, self.unit, self.zone)

    @property
    def text(self) -> str:
        """The RANGE a user would type for it."""
        first, last = self.label(self.start), self.label(self.end)
        return first if first == last else f"{first}..{last}"

    @property
    def words(self) -> str:
        """How many slices that is, and that both ends count."""
        return "1 slice" if self.start == self.end else f"both {self.unit}s included, {self.count} slices"

    def contains(self, moment: Moment) -> bool:
        """Whether a slice is one of the range."""
        return self.start <= moment <= self.end

    @property
    def bounds_are_instants(self) -> bool:
        """Whether `wall_bounds` are instants with an offset, and not local wall times."""
        return self.unit is Unit.HOUR

    def wall_bounds(self) -> tuple[str, str]:
        """Return the beginning of the first slice (included) and the end of the last one (not included).

        They are local wall times, for the engine to read in the zone; for hours they are instants.
        """
        if isinstance(self.start, datetime):
            start, after = self._hour_texts()
            return f"{start}+00", f"{after}+00"
        return f"{self.start} 00:00:00", f"{moments.day_text(self._day_after)} 00:00:00"

    def column_values(self, family: str) -> ColumnBounds:
        """Return the range in a slice column whose values are of this family (the text of a `tables.Family`)."""
        if isinstance(self.start, datetime):
            return self._hour_values(family)
        first, last, after = (moments.day_text(day) for day in self._days)
        match family:
            case "date":
                return ColumnBounds(first, last, after)
            case "timestamp" | "timestamptz":
                end = f"{last} 23:59:59.999999"
                return ColumnBounds(f"{first} 00:00:00", end, f"{after} 00:00:00", local=family == "timestamptz")
            case "integer":
                return ColumnBounds(_digits(first), _digits(last), _digits(after))
            case "text":
                return self._text_values(first, last, after)
        raise AssertionError(f"a slice column is never of kind {family}")

    @property
    def _day_after(self) -> int:
        """The ordinal of the day after the range; beyond the calendar when it ends with it."""
        return moments.day_after(self.end, self.unit)

    @property
    def _days(self) -> tuple[int, int, int]:
        """The ordinals of the first day, the last day and the day after."""
        return self.start.toordinal(), self._day_after - 1, self._day_after

    def _text_values(self, first: str, last: str, after: str) -> ColumnBounds:
        """Return the range in a column of ISO text, which is compared as text."""
        if self._day_after <= moments.DAY_LAST:
            return ColumnBounds(first, last, after)
        return ColumnBounds(first, moments.day_text(moments.DAY_LAST), _AFTER_EVERY_DATE)

    def _hour_values(self, family: str) -> ColumnBounds:
        """Return the range of hours in a column of instants, or in a timestamp column declared to be UTC."""
        assert family == "timestamptz" or (family == "timestamp" and self.zone == "UTC"), f"no hours in {family}"
        suffix = "+00" if family == "timestamptz" else ""
        start, after = self._hour_texts()
        end = _wall_text(self._hour_after - timedelta(seconds=1)) if self._hour_after else "9999-12-31 23:59:59"
        return ColumnBounds(f"{start}{suffix}", f"{end}.999999{suffix}", f"{after}{suffix}")

    def _hour_texts(self) -> tuple[str, str]:
        """Return the UTC wall times of the first hour and of the hour after the last."""
        assert isinstance(self.start, datetime)
        return _wall_text(self.start), _wall_text(self._hour_after) if self._hour_after else "10000-01-01 00:00:00"

    @property
    def _hour_after(self) -> datetime | None:
        after = moments.following(self.end, self.unit, self.zone)
        assert after is None or isinstance(after, datetime)
        return after


def _wall_text(instant: datetime) -> str:
    """Return the UTC wall time of an instant, to the second."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def _digits(day: str) -> str:
    """Return a day as an integer yyyymmdd is written."""
    return str(int(day.replace("-", "")))


@dataclass(frozen=True, slots=True)
class Scope:
    """The ranges a run covers: in order, apart from each other, of one unit and zone."""

    ranges: tuple[Range, ...]

    def __post_init__(self) -> None:
        assert self.ranges, "a scope covers at least one slice"

    @classmethod
    def of(cls, range: Range) -> Scope:
        """Return the scope of one range."""
        return cls((range,))

    @classmethod
    def parse(cls, text: str, slice: SliceColumn) -> Scope:
        """Read the `text` of a scope back; raises as `parse` does."""
        return cls(_merge(parse(part, slice) for part in text.split(",")))

    def plus(self, moments: Iterable[Moment]) -> Scope:
        """Return a scope that covers these slices too; slices side by side become one range."""
        added = (Range(self.unit, self.zone, moment, moment) for moment in set(moments))
        return Scope(_merge([*self.ranges, *added]))

    @property
    def unit(self) -> Unit:
        """The unit of every slice."""
        return self.ranges[0].unit

    @property
    def zone(self) -> str:
        """The zone of every slice."""
        return self.ranges[0].zone

    @property
    def hull(self) -> Range:
        """The one range from the first slice to the last, gaps included."""
        return Range(self.unit, self.zone, self.ranges[0].start, self.ranges[-1].end)

    @property
    def count(self) -> int:
        """How many slices it has, without walking them."""
        return sum(each.count for each in self.ranges)

    @property
    def text(self) -> str:
        """The RANGE a user would type for it: ranges separated by commas."""
        return ",".join(each.text for each in self.ranges)

    @property
    def words(self) -> str:
        """How many slices that is, and that ends count."""
        return self.hull.words if len(self.ranges) == 1 else f"both ends included, {self.count} slices"

    def contains(self, moment: Moment) -> bool:
        """Whether a slice is covered."""
        return any(each.contains(moment) for each in self.ranges)

    def label(self, moment: Moment) -> str:
        """Return how one slice is written; it reads back as the same slice."""
        return self.ranges[0].label(moment)

    def slices(self) -> Iterator[Moment]:
        """Yield the slices in order, one at a time."""
        for each in self.ranges:
            yield from each.slices()


def _merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the same slices as sorted ranges that neither overlap nor touch."""
    merged: list[Range] = []
    for each in sorted(ranges, key=lambda range: range.start):
        last = merged[-1] if merged else None
        after = moments.following(last.end, last.unit, last.zone) if last else None
        if last and (after is None or each.start <= after):
            merged[-1] = Range(last.unit, last.zone, last.start, max(last.end, each.end))
        else:
            merged.append(each)
    return tuple(merged)


def parse(text: str, slice: SliceColumn) -> Range:
    """Return the closed range that a RANGE names: a unit, a coarser period, or `A..B` with both ends included.

    A bound that does not begin (or, on the right, end) a slice is refused, never rounded. Raises Misused
    `range_unreadable`; Refused `range_open`, `range_off_unit`, `range_reversed`.
    """
    start, end = range_text.read_range(text, slice)
    return Range(slice.unit, slice.timezone, start, end)


def parse_interval(start: str, end: str, slice: SliceColumn) -> Range:
    """Return the closed range of a scheduler's interval, whose end is not included.

    Values with a UTC offset are instants; others are local to the contract's zone. Raises as `parse` does.
    """
    first, last = range_text.read_interval(start, end, slice)
    return Range(slice.unit, slice.timezone, first, last)


def is_closed(moment: Moment, closed: ClosedThrough, now: datetime, slice: SliceColumn) -> bool:
    """Whether a slice can be taken as complete: its last instant has passed, and it lies within the limit.

    `now` is the database's clock, aware. Days, also those of the limit, are days of the contract's zone.
    """
    zone = slice.timezone
    if isinstance(moment, datetime):
        after = moments.following(moment, slice.unit, zone)
        has_passed = isinstance(after, datetime) and after <= now
        last_day = moment.astimezone(ZoneInfo(zone)).toordinal()
    else:
        last_day = moments.day_after(moment, slice.unit) - 1
        has_passed = last_day < moments.DAY_LAST and moments.last_instant(date.fromordinal(last_day), zone) < now
    return has_passed and last_day <= _limit(closed, now, zone)


def _limit(closed: ClosedThrough, now: datetime, zone: str) -> int:
    """Return the ordinal of the last day that the contract calls closed."""
    if closed.on is not None:
        return closed.on.toordinal()
    return now.astimezone(ZoneInfo(zone)).toordinal() - (closed.days_ago or 0)


def last_over(now: datetime, slice: SliceColumn) -> Moment:
    """Return the last slice whose end has passed by `now`, an aware instant: the one before the slice `now` lies in."""
    if slice.unit is Unit.HOUR:
        return moments.hour_of(moments.hour_of(now, slice.timezone) - timedelta(microseconds=1), slice.timezone)
    first = moments.slice_of(now.astimezone(ZoneInfo(slice.timezone)).date(), slice.unit)
    return moments.slice_of(first - timedelta(days=1), slice.unit)


@dataclass(frozen=True, slots=True)
class OpenSlices:
    """The slices of a scope that are not closed: how many, and the first few."""

    count: int
    first: tuple[Moment, ...]


def open_slices(scope: Scope, closed: ClosedThrough, now: datetime, slice: SliceColumn) -> OpenSlices:
    """Return the slices that are still filling. Every slice after an open one is open, so few are looked at."""
    found = [part for each in scope.ranges if (part := _open_part(each, closed, now, slice))]
    first = (moment for part in found for moment in part.slices())
    return OpenSlices(sum(part.count for part in found), tuple(islice(first, _SHOWN_SLICES)))


def _open_part(range: Range, closed: ClosedThrough, now: datetime, slice: SliceColumn) -> Range | None:
    """Return the slices at the end of a range that are open; None when all are closed."""
    if is_closed(range.end, closed, now, slice):
        return None
    if not is_closed(range.start, closed, now, slice):
        return range
    closed_last, open_first = range.start, range.end
    while (middle := _between(closed_last, open_first, slice)) != closed_last:
        if is_closed(middle, closed, now, slice):
            closed_last = middle
        else:
            open_first = middle
    return Range(range.unit, range.zone, open_first, range.end)


def _between(low: Moment, high: Moment, slice: SliceColumn) -> Moment:
    """Return a slice halfway; `low` itself only when `high` is the next slice."""
    after = moments.following(low, slice.unit, slice.timezone)
    assert after is not None, "a slice before another has a next one"
    if after >= high:
        return low
    if isinstance(low, datetime) and isinstance(high, datetime):
        middle: Moment = moments.hour_of(low + (high - low) / 2, slice.timezone)
    else:
        middle = moments.slice_of(date.fromordinal((low.toordinal() + high.toordinal()) // 2), slice.unit)
    return max(middle, after)
