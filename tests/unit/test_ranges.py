"""Ranges: counted against a walk of the calendar, read back from their text, refused with a way on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reslice import ranges
from reslice.contract import SliceColumn, Unit
from reslice.errors import Misused, Refused, ResliceError
from reslice.ranges import Range, Scope

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "Australia/Lord_Howe")
DAY_UNITS = (Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.QUARTER)
MINUTE = timedelta(minutes=1)


def column(unit: Unit = Unit.DAY, zone: str = "UTC") -> SliceColumn:
    return SliceColumn("at", unit, zone)


def read(text: str, unit: Unit = Unit.DAY, zone: str = "UTC") -> Range:
    return ranges.parse(text, column(unit, zone))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# An independent calendar: days and minutes, one by one.


def key_of(day: date, unit: Unit) -> object:
    """Say which unit a day is in, by the fields of the date alone."""
    match unit:
        case Unit.WEEK:
            return day.isocalendar()[:2]
        case Unit.MONTH:
            return day.year, day.month
        case Unit.QUARTER:
            return day.year, (1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4)[day.month - 1]
    return day


def unit_starts(first: date, last: date, unit: Unit) -> list[date]:
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    before = first - timedelta(days=1)
    return [day for previous, day in pairwise([before, *days]) if key_of(previous, unit) != key_of(day, unit)]


def hour_starts(first: datetime, last: datetime, zone: str) -> list[datetime]:
    minutes = range((last - first) // MINUTE + 1)
    instants = (first + n * MINUTE for n in minutes)
    return [each for each in instants if each.astimezone(ZoneInfo(zone)).minute == 0]


@st.composite
def day_ranges(draw: st.DrawFn) -> Range:
    unit = draw(st.sampled_from(DAY_UNITS))
    zone = draw(st.sampled_from(ZONES))
    start = draw(st.dates(date(1, 2, 1), date(9998, 1, 1)))
    starts = unit_starts(start, start + timedelta(days=draw(st.integers(95, 400))), unit)
    return Range(unit, zone, starts[0], draw(st.sampled_from(starts)))


@st.composite
def hour_ranges(draw: st.DrawFn) -> Range:
    zone = draw(st.sampled_from(ZONES))
    # Both sides of the clock changes, which are rare in a calendar and everything here.
    changes = ("2026-03-08 07:00", "2026-11-01 06:00", "2018-02-18 02:00", "2018-11-04 03:00", "2026-04-04 15:00")
    near = st.sampled_from((*changes, "2026-10-03 15:30")).map(utc)
    start = draw(near) + draw(st.integers(-60 * 40, 60 * 40)) * MINUTE
    starts = hour_starts(start, start + draw(st.integers(120, 60 * 60)) * MINUTE, zone)
    return Range(Unit.HOUR, zone, starts[0], draw(st.sampled_from(starts)))


@given(st.one_of(day_ranges(), hour_ranges()))
def test_text_reads_back(each: Range) -> None:
    slice = column(each.unit, each.zone)
    assert ranges.parse(each.text, slice) == each
    assert ranges.parse(each.label(each.end), slice) == Range(each.unit, each.zone, each.end, each.end)


@given(day_ranges())
def test_days_and_longer_are_counted_as_the_calendar_shows_them(each: Range) -> None:
    expected = unit_starts(each.start, each.end, each.unit)
    assert list(each.slices()) == expected
    assert each.count == len(expected)


@given(hour_ranges())
def test_hours_are_counted_as_the_clock_shows_them(each: Range) -> None:
    assert isinstance(each.start, datetime)
    assert isinstance(each.end, datetime)
    expected = hour_starts(each.start, each.end, each.zone)
    assert list(each.slices()) == expected
    assert each.count == len(expected)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2024-02-28..2024-03-01", 3),
        ("2023-02-28..2023-03-01", 2),
        ("0001-01-01..9999-12-31", 3652059),
        ("0001..9999", 3652059),
        ("2026", 365),
        ("2024", 366),
        ("2026-Q1", 90),
        ("2026-02", 28),
        ("2026-W02", 7),
        ("2026-01-02", 1),
        ("2026-01..2026-02-03", 34),
        (" 2026-01-01 .. 2026-01-02 ", 2),
    ],
)
def test_day_counts(text: str, count: int) -> None:
    assert read(text).count == count


@pytest.mark.parametrize(
    ("text", "zone", "count"),
    [
        ("2026-03-08", "America/New_York", 23),
        ("2026-11-01", "America/New_York", 25),
        ("2026-11-01", "UTC", 24),
        ("2026-11-01", "Asia/Kolkata", 24),
        ("2018-11-04", "America/Sao_Paulo", 23),  # midnight is skipped
        ("2018-02-17", "America/Sao_Paulo", 25),  # 23:00 is shown twice
        ("2026-10-04", "Australia/Lord_Howe", 23),  # 02:00 becomes 02:30: no hour begins at 02:00
        ("2026-04-05", "Australia/Lord_Howe", 24),  # 02:00 becomes 01:30: the hour of 01:00 is longer
        ("2026", "America/New_York", 8760),
        ("2026-11-01T01:00", "America/New_York", 2),
        ("2026-11-01T01:00-04:00", "America/New_York", 1),
        ("2026-11-01T01:00-04:00..2026-11-01T06:00Z", "America/New_York", 2),
        ("2026-11-01T00..2026-11-01T02", "America/New_York", 4),
        ("2011-12", "Pacific/Apia", 720),  # the 30th was skipped
        ("2026-01-02T05..2026-01-03", "Asia/Kolkata", 43),
    ],
)
def test_hour_counts(text: str, zone: str, count: int) -> None:
    assert read(text, Unit.HOUR, zone).count == count


def test_hours_are_counted_across_changes_by_half_an_hour() -> None:
    # Lord Howe Island went from +10 to +10:30 on 1981-03-01, and set its clocks forward from there in October.
    each = read("1981-02..1981-11", Unit.HOUR, "Australia/Lord_Howe")
    assert isinstance(each.start, datetime)
    assert isinstance(each.end, datetime)
    assert each.count == len(hour_starts(each.start, each.end, each.zone))


@pytest.mark.parametrize(
    ("text", "unit", "zone", "expected"),
    [
        ("2026-01-05..2026-01-18", Unit.WEEK, "UTC", "2026-W02..2026-W03"),
        ("9999-W52", Unit.WEEK, "UTC", "9999-W52"),
        ("2026-01..2026-03", Unit.QUARTER, "UTC", "2026-Q1"),
        ("2026", Unit.QUARTER, "UTC", "2026-Q1..2026-Q4"),
        ("2026-01-01..2026-06-30", Unit.MONTH, "UTC", "2026-01..2026-06"),
        ("0001", Unit.MONTH, "UTC", "0001-01..0001-12"),
        ("2026-01-01 05:00", Unit.HOUR, "UTC", "2026-01-01T05:00"),
        ("2026-01-01T05:00:00.000Z", Unit.HOUR, "UTC", "2026-01-01T05:00"),
        ("2026-01-01T05:30Z", Unit.HOUR, "Asia/Kolkata", "2026-01-01T11:00+05:30"),
        ("2026-07-01T05", Unit.HOUR, "America/New_York", "2026-07-01T05:00-04:00"),
    ],
)
def test_text_is_canonical(text: str, unit: Unit, zone: str, expected: str) -> None:
    assert read(text, unit, zone).text == expected


def test_words_say_that_both_ends_count() -> None:
    assert read("2026-01-01..2026-01-02").words == "both days included, 2 slices"
    assert read("2026-01-01").words == "1 slice"
    assert read("2026-Q1..2026-Q2", Unit.QUARTER).words == "both quarters included, 2 slices"


# What is refused, and the way on.


@pytest.mark.parametrize(
    ("text", "unit", "zone", "kind", "instead"),
    [
        ("2026-01-02..2026-01-01", Unit.DAY, "UTC", "range_reversed", "2026-01-01..2026-01-02"),
        ("2026-02..2026-01", Unit.MONTH, "UTC", "range_reversed", "2026-01..2026-02"),
        ("2026-01-01..", Unit.DAY, "UTC", "range_open", "2026-01-01"),
        ("..2026-W02", Unit.WEEK, "UTC", "range_open", "2026-W02"),
        ("2026-01-01..infinity", Unit.DAY, "UTC", "range_open", "2026-01-01"),
        ("-infinity..2026-01-01", Unit.DAY, "UTC", "range_open", "2026-01-01"),
        ("..", Unit.DAY, "UTC", "range_open", ""),
        ("infinity", Unit.DAY, "UTC", "range_open", ""),
        ("2024-03-02 12:00", Unit.DAY, "UTC", "range_off_unit", "2024-03-02"),
        ("2026-03-02 00:00", Unit.DAY, "UTC", "range_off_unit", "2026-03-02"),
        ("2026-03-02T03:00Z", Unit.DAY, "America/New_York", "range_off_unit", "2026-03-01"),
        ("2026-01-06..2026-01-11", Unit.WEEK, "UTC", "range_off_unit", "2026-W02"),
        ("2026-01-05..2026-01-10", Unit.WEEK, "UTC", "range_off_unit", "2026-W02"),
        ("2026", Unit.WEEK, "UTC", "range_off_unit", "2026-W01..2026-W53"),
        ("9999-12-27..9999-12-31", Unit.WEEK, "UTC", "range_off_unit", "9999-W52"),
        ("2026-01-01", Unit.MONTH, "UTC", "range_off_unit", "2026-01"),
        ("2026-02", Unit.QUARTER, "UTC", "range_off_unit", "2026-Q1"),
        ("2026-01-01T05:30", Unit.HOUR, "UTC", "range_off_unit", "2026-01-01T05:00"),
        ("2026-01-01T05:00:00.5", Unit.HOUR, "UTC", "range_off_unit", "2026-01-01T05:00"),
        ("0001-01-01T00:30", Unit.HOUR, "UTC", "range_off_unit", "0001-01-01T00:00"),
        ("2026-01-01T05:00Z", Unit.HOUR, "Asia/Kolkata", "range_off_unit", "2026-01-01T10:00+05:30"),
        ("2026-03-08T02:00..2026-03-09", Unit.HOUR, "America/New_York", "range_off_unit", None),
        ("2011-12-30", Unit.HOUR, "Pacific/Apia", "range_off_unit", None),
    ],
)
def test_refused_with_a_range_that_works(text: str, unit: Unit, zone: str, kind: str, instead: str | None) -> None:
    with pytest.raises(Refused) as caught:
        read(text, unit, zone)
    assert caught.value.kind == kind
    assert caught.value.exit_code == 3
    if instead is None:
        read(caught.value.next, unit, zone)
    else:
        assert caught.value.next == instead
        assert not instead or read(instead, unit, zone).text == instead


def test_midnight_is_refused_with_the_reason() -> None:
    with pytest.raises(Refused) as caught:
        read("2026-03-02 00:00")
    (failure,) = caught.value.failures
    assert len(failure.found) == 1
    assert "would lose the rows" in failure.found[0]
    assert caught.value.unchanged == "nothing was read or written"


def test_the_found_unit_is_named() -> None:
    with pytest.raises(Refused) as caught:
        read("2026-01-06..2026-01-10", Unit.WEEK)
    assert caught.value.failures[0].found == (
        "2026-01-06 is not the first day of a week: 2026-W02 begins on 2026-01-05",
        "2026-01-10 is not the last day of a week: 2026-W02 ends on 2026-01-11",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30",
        "2026-13",
        "2026-00",
        "2026-Q5",
        "2026-W54",
        "2025-W53",
        "0000",
        "0000-01-01",
        "0000-W01",
        "10000-01-01",
        "9999-W52",
        "2026-1-2",
        "20260102",
        "2026-01-01...2026-01-02",
        "2026-01-01..2026-01-02..2026-01-03",
        "2026-01-01T24:00",
        "2026-01-01T05:00+25:00",
        "\u0662\u0660\u0662\u0666-01-01",
        "2026-01-01; drop table daily_orders",
        "\x1b[31m2026",
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(Misused) as caught:
        read(text)
    assert caught.value.kind == "range_unreadable"
    assert "2026-01-01..2026-01-31" in caught.value.failures[0].asked
    assert str(caught.value).isprintable()


def test_both_unreadable_bounds_are_named() -> None:
    with pytest.raises(Misused) as caught:
        read("2026-02-30..soon")
    assert [found.partition(":")[0] for found in caught.value.failures[0].found] == ["2026-02-30", "soon"]


@pytest.mark.parametrize("text", ["9999", "0001-01-01", "0001-01-01T00:00+05:00", "0001..9999", "9999-12-31T23-05:00"])
def test_hours_outside_the_calendar_are_unreadable(text: str) -> None:
    with pytest.raises(Misused):
        read(text, Unit.HOUR, "America/New_York")


DAYS = ("2026-03-08", "0001-01-01", "0001-01-02", "9999-12-30", "9999-12-31")
BOUNDS = ("0001", "2026", "9999", "0000", "2026-03-08T02:00", "infinity", *DAYS)
PARTS = (
    "-",
    "-01",
    "-12",
    "-31",
    "-Q1",
    "-W52",
    "-W53",
    "..",
    "T",
    " ",
    "00:00",
    "23:59",
    "Z",
    "+05:30",
    "-23:59",
    ".5",
)
PIECES = st.sampled_from((*BOUNDS, *PARTS))
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=8).map("".join))


@given(TEXTS, st.sampled_from(Unit), st.sampled_from((*ZONES, "Pacific/Apia")))
@example("9999-12-31T23:00", Unit.HOUR, "UTC")
@example("9999-12-30", Unit.HOUR, "America/New_York")
@example("0001-01-02", Unit.HOUR, "Asia/Kolkata")
def test_any_text_is_a_range_or_an_error_with_a_range_that_works(text: str, unit: Unit, zone: str) -> None:
    try:
        found = read(text, unit, zone)
    except ResliceError as error:
        assert error.kind in ("range_unreadable", "range_open", "range_off_unit", "range_reversed")
        if error.next:
            read(error.next, unit, zone)
    else:
        assert read(found.text, unit, zone) == found
        assert found.count > 0
        assert Scope.of(found).plus([found.end]).ranges == (found,)
        assert len(found.wall_bounds()) == 2


@given(TEXTS, TEXTS, st.sampled_from(Unit), st.sampled_from((*ZONES, "Pacific/Apia")))
def test_any_interval_is_a_range_or_an_error(start: str, end: str, unit: Unit, zone: str) -> None:
    try:
        found = ranges.parse_interval(start, end, column(unit, zone))
    except ResliceError as error:
        assert error.kind in ("range_unreadable", "range_open", "range_off_unit", "range_reversed")
        if error.next:
            read(error.next, unit, zone)
    else:
        assert read(found.text, unit, zone) == found


# Scopes.


def test_scope_merges_what_touches_and_reads_back() -> None:
    scope = Scope.of(read("2026-01-01..2026-01-02")).plus([date(2026, 1, 5), date(2026, 1, 3), date(2026, 1, 5)])
    assert scope.text == "2026-01-01..2026-01-03,2026-01-05"
    assert scope.words == "both ends included, 4 slices"
    assert scope.count == 4
    assert scope.hull.text == "2026-01-01..2026-01-05"
    assert list(scope.slices()) == [date(2026, 1, day) for day in (1, 2, 3, 5)]
    assert Scope.parse(scope.text, column()) == scope
    assert scope.plus([date(2026, 1, 4)]).text == "2026-01-01..2026-01-05"
    assert not scope.contains(date(2026, 1, 4))


@given(st.sampled_from(DAY_UNITS), st.sets(st.integers(0, 30), min_size=1))
def test_scope_holds_exactly_its_slices(unit: Unit, chosen: set[int]) -> None:
    units = unit_starts(date(2025, 12, 29) if unit is Unit.WEEK else date(2026, 1, 1), date(2034, 1, 1), unit)[:31]
    added = [units[place] for place in sorted(chosen)]
    scope = Scope.of(Range(unit, "UTC", added[0], added[0])).plus(reversed(added))
    assert list(scope.slices()) == added
    assert scope.count == len(added)
    assert [each for each in units if scope.contains(each)] == added
    assert Scope.parse(scope.text, column(unit)) == scope
    assert all(right.start > left.end for left, right in pairwise(scope.ranges))
