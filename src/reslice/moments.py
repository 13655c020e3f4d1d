"""The calendar of slices: which slices there are, how they are written, and what a column holds for one.

A slice is named by its first moment. For days and longer units that is a date, and all arithmetic is done on the index
of the unit, a plain integer. For hours it is the UTC instant at which a local hour begins (its local minute is 0), so
that a day of 23 or 25 hours and a zone half an hour off are counted as the clock on the wall shows them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

from reslice.contract import Unit

Moment: TypeAlias = date | datetime
"""A slice: the date of its first day, or for hours the aware UTC instant at which it begins."""

DAY_LAST = date.max.toordinal()
"""The ordinal of 9999-12-31; the unit after the last one begins on an ordinal beyond it."""

_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)
# Where a zone's offset changed by a part of an hour, no zone has changed it back within 60 days.
_PROBE = timedelta(days=28)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.0{1,9})?")


# Days and longer units: the index of a unit is an integer, and the next unit has the next index.


def index_of(day: date, unit: Unit) -> int:
    """Return the index of the unit that holds `day`."""
    match unit:
        case Unit.DAY:
            return day.toordinal()
        case Unit.WEEK:
            return (day.toordinal() - 1) // 7  # 0001-01-01, ordinal 1, is a Monday
        case Unit.MONTH:
            return day.year * 12 + day.month - 1
        case Unit.QUARTER:
            return day.year * 4 + (day.month - 1) // 3
        case Unit.HOUR:
            raise AssertionError("an hour has no index: it is an instant")


def first_day(index: int, unit: Unit) -> int:
    """Return the ordinal of the first day of a unit; beyond DAY_LAST for the unit after the calendar's last one."""
    match unit:
        case Unit.DAY:
            return index
        case Unit.WEEK:
            return index * 7 + 1
        case _:
            months = 1 if unit is Unit.MONTH else 3
            year, month = divmod(index * months, 12)
            return date(year, month + 1, 1).toordinal() if year <= date.max.year else DAY_LAST + 1


def slice_of(day: date, unit: Unit) -> date:
    """Return the first day of the unit that holds `day`."""
    return date.fromordinal(first_day(index_of(day, unit), unit))


def day_after(first: date, unit: Unit) -> int:
    """Return the ordinal of the day after the unit that begins on `first`."""
    return first_day(index_of(first, unit) + 1, unit)


def day_text(ordinal: int) -> str:
    """Return the ISO text of a day, also of the few days after 9999-12-31 that end or follow a unit."""
    if ordinal > DAY_LAST:
        return f"10000-01-{ordinal - DAY_LAST:02d}"
    return date.fromordinal(ordinal).isoformat()


# Hours: instants, walked in UTC.


def offset_at(instant: datetime, zone: str) -> timedelta:
    """Return the zone's UTC offset at an instant."""
    if zone == "UTC":
        return timedelta(0)
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None, "a zone has an offset at every instant"
    return offset


def hour_after(instant: datetime, zone: str) -> datetime:
    """Return the first instant strictly after this one at which a local hour begins."""
    offset = offset_at(instant, zone)
    found = _on_the_hour(instant + _SECOND, offset)
    if offset_at(found, zone) == offset:
        return found
    turn = _clock_change(instant, found, zone)
    return _on_the_hour(turn, offset_at(turn, zone))


def _on_the_hour(instant: datetime, offset: timedelta) -> datetime:
    """Return the first instant at or after this one whose local minute is 0 under a fixed offset."""
    local = instant - datetime(1, 1, 1, tzinfo=UTC) + offset
    return instant + (-local) % _HOUR


def _clock_change(before: datetime, after: datetime, zone: str) -> datetime:
    """Return the instant at which the offset of `before` stops, at or before `after`; to the second."""
    offset = offset_at(before, zone)
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if offset_at(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after


def hour_of(instant: datetime, zone: str) -> datetime:
    """Return the hour slice that an instant belongs to: the last local hour that began at or before it."""
    if zone == "UTC":
        return instant.replace(minute=0, second=0, microsecond=0)
    # A local hour lasts less than two hours, also on the day a clock is set by a part of an hour.
    found = hour_after(instant - 3 * _HOUR, zone)
    while (later := hour_after(found, zone)) <= instant:
        found = later
    return found


@lru_cache(maxsize=256)
def count_hours(start: datetime, end: datetime, zone: str) -> int:
    """Return how many local hours begin from `start` to `end`, both of them hour slices and both counted.

    While the offset's minutes stay the same, a local hour begins every hour of elapsed time, whatever daylight saving
    does. Only the hours at which the minutes change (Lord Howe Island, the end of local mean time) are looked at.
    """
    if zone == "UTC":
        return (end - start) // _HOUR + 1
    count, at = 1, start
    while at < end:
        hours = _hours_alike(at, min(end - at, _PROBE), zone)
        count, at = count + hours, at + hours * _HOUR
        if at < end and hours == 0:
            count, at = count + 1, hour_after(at, zone)
    return count


def _hours_alike(at: datetime, ahead: timedelta, zone: str) -> int:
    """Return for how many whole hours, up to `ahead`, the minutes of the zone's offset stay as they are."""
    minutes = offset_at(at, zone) % _HOUR
    most = ahead // _HOUR
    if offset_at(at + most * _HOUR, zone) % _HOUR == minutes:
        return most
    return bisect_left(range(most), True, key=lambda hour: offset_at(at + hour * _HOUR, zone) % _HOUR != minutes) - 1


def occurrences(wall: datetime, zone: str) -> tuple[datetime, ...]:
    """Return the instants at which a local clock shows `wall`: none when it is skipped, two when it is repeated.

    Raises OverflowError for a local time that has no UTC date in years 0001 to 9999.
    """
    if zone == "UTC":
        return (wall.replace(tzinfo=UTC),)
    place = ZoneInfo(zone)
    found = (wall.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1))
    return tuple(sorted({each for each in found if each.astimezone(place).replace(tzinfo=None) == wall}))


def first_of_two(wall_text: str, zone: str) -> str | None:
    """Return the UTC wall text of the earlier instant at which a local clock shows a time, if it shows it twice.

    In Havana and in the Azores that time is a midnight, every autumn. Engines take one of the two, and not all the
    same; a range that began or ended at the later one would leave an hour to the wrong day.
    """
    try:
        found = occurrences(datetime.fromisoformat(wall_text), zone)
    except (ValueError, OverflowError):  # beyond the calendar, where no clock is set back
        return None
    return found[0].replace(tzinfo=None).isoformat(" ") if len(found) > 1 else None


def hours_of_day(day: date, zone: str) -> tuple[datetime, ...]:
    """Return the instants at which the hours of a local day begin: 23 to 25, or none for a day that was skipped."""
    return tuple(sorted(at for hour in range(24) for at in occurrences(datetime.combine(day, time(hour)), zone)))


def last_instant(day: date, zone: str) -> datetime:
    """Return the last microsecond of a local day; of the later one when the clock shows it twice."""
    return datetime.combine(day, time.max, tzinfo=ZoneInfo(zone)).replace(fold=1)


# Any unit.


def following(moment: Moment, unit: Unit, zone: str) -> Moment | None:
    """Return the next slice, or None when it begins after the year 9999."""
    if isinstance(moment, datetime):
        return hour_after(moment, zone) if moment < datetime.max.replace(tzinfo=UTC) - _HOUR else None
    day = day_after(moment, unit)
    return date.fromordinal(day) if day <= DAY_LAST else None


def count(start: Moment, end: Moment, unit: Unit, zone: str) -> int:
    """Return how many slices there are from `start` to `end`, both counted."""
    if isinstance(start, datetime) and isinstance(end, datetime):
        return count_hours(start, end, zone)
    return index_of(end, unit) - index_of(start, unit) + 1


def walk(start: Moment, end: Moment, unit: Unit, zone: str) -> Iterator[Moment]:
    """Yield the slices from `start` to `end`, both included, one at a time."""
    at: Moment | None = start
    while at is not None and at <= end:
        yield at
        at = following(at, unit, zone)


def label(moment: Moment, unit: Unit, zone: str) -> str:
    """Return how a slice is written: text that reads back as the same slice.

    Hours outside UTC carry their offset, because the clock shows some hours twice.
    """
    if isinstance(moment, datetime):
        if zone == "UTC":
            return moment.replace(tzinfo=None).isoformat(timespec="minutes")
        return moment.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes")
    match unit:
        case Unit.WEEK:
            year, week, _ = moment.isocalendar()
            return f"{year:04d}-W{week:02d}"
        case Unit.MONTH:
            return f"{moment.year:04d}-{moment.month:02d}"
        case Unit.QUARTER:
            return f"{moment.year:04d}-Q{(moment.month + 2) // 3}"
        case _:
            return moment.isoformat()


def check_hour(instant: datetime, zone: str) -> datetime:
    """Return the instant when a local hour begins at it; ValueError when it is within one.

    Raises OverflowError when its local day is not wholly within the calendar in UTC, because there the hour before or
    after it cannot be told.
    """
    local = instant if zone == "UTC" else instant.astimezone(ZoneInfo(zone))
    if zone != "UTC" and not 1 < local.toordinal() < DAY_LAST:
        raise OverflowError(f"{local.date()} in {zone} is not wholly within the years 0001 to 9999 in UTC")
    if (local.minute, local.second, local.microsecond) != (0, 0, 0):
        raise ValueError(f"{local.isoformat()} is within an hour")
    return instant


# What a slice column holds.


def moment_from_column(text: str, family: str, unit: Unit, zone: str) -> Moment:
    """Return the slice whose value a slice column holds, read from the text an engine casts it to.

    Timestamps with time zone are given as their UTC wall text. Nothing is truncated: a value that is not the first
    moment of its unit, or not written as expected, raises ValueError. A local midnight that the clock shows twice is
    the first moment either way, because engines differ in which of the two they take.
    """
    try:
        moment = _read_value(text, family, unit, zone)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 0001 to 9999 in {zone}") from error
    if isinstance(moment, datetime):
        return moment
    if unit is Unit.HOUR or slice_of(moment, unit) != moment:
        raise ValueError(f"{text!r} is not the first moment of its {unit}")
    return moment


def _read_value(text: str, family: str, unit: Unit, zone: str) -> Moment:
    """Read a day, or an instant where slices are hours; whether a day begins its unit is not looked at."""
    match family:
        case "date" | "text":
            return _read_date(text)
        case "integer" if re.fullmatch(r"[0-9]{1,8}", text):
            digits = text.zfill(8)
            return _read_date(f"{digits[:4]}-{digits[4:6]}-{digits[6:]}")
        case "timestamp" | "timestamptz" if unit is Unit.HOUR:
            return check_hour(_read_timestamp(text).replace(tzinfo=UTC), zone)
        case "timestamp":
            return _midnight(_read_timestamp(text))
        case "timestamptz":
            return _local_day(_read_timestamp(text), zone)
    raise ValueError(f"{text!r} is no slice value of a column of kind {family}")


def _read_date(text: str) -> date:
    """Read YYYY-MM-DD and nothing else; ValueError otherwise."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is no date written YYYY-MM-DD")
    return date.fromisoformat(text)


def _read_timestamp(text: str) -> datetime:
    """Read a wall time to the second; ValueError when it is written otherwise or has a fraction that is not zero."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no timestamp on a whole second")
    return datetime.fromisoformat(f"{found[1]} {found[2]}")


def _midnight(wall: datetime) -> date:
    """Return the day that begins at a wall time; ValueError when it is within one."""
    if wall.time() != time.min:
        raise ValueError(f"{wall} has a time of day")
    return wall.date()


def _local_day(wall: datetime, zone: str) -> date:
    """Return the local day that begins at a UTC wall time; ValueError when none does."""
    instant = wall.replace(tzinfo=UTC)
    day = instant.astimezone(ZoneInfo(zone)).date()
    if instant not in day_starts(day, zone):
        raise ValueError(f"{wall} UTC is not the first moment of a day in {zone}")
    return day


def day_starts(day: date, zone: str) -> tuple[datetime, ...]:
    """Return the instants that count as the start of a local day: its midnight, once or twice.

    A skipped midnight is read with the offset before the change, which gives the instant of the change.
    """
    midnight = datetime.combine(day, time.min)
    return occurrences(midnight, zone) or (midnight.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC),)
