"""Ranges in a slice column: the bounds a database compares with, the values read back, and which slices are closed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reslice import ranges
from reslice.contract import ClosedThrough, SliceColumn, Unit
from reslice.ranges import ColumnBounds, Moment, OpenSlices, Range, Scope

NEW_YORK = "America/New_York"
YESTERDAY = ClosedThrough(days_ago=1)


def column(unit: Unit = Unit.DAY, zone: str = "UTC") -> SliceColumn:
    return SliceColumn("at", unit, zone)


def read(text: str, unit: Unit = Unit.DAY, zone: str = "UTC") -> Range:
    return ranges.parse(text, column(unit, zone))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "unit", "family", "expected"),
    [
        ("2026-01-01..2026-01-02", Unit.DAY, "date", ("2026-01-01", "2026-01-02", "2026-01-03")),
        ("2026-W02", Unit.WEEK, "date", ("2026-01-05", "2026-01-11", "2026-01-12")),
        ("2026-01..2026-02", Unit.MONTH, "text", ("2026-01-01", "2026-02-28", "2026-03-01")),
        ("2026-Q1", Unit.QUARTER, "integer", ("20260101", "20260331", "20260401")),
        ("0001..9999", Unit.DAY, "date", ("0001-01-01", "9999-12-31", "10000-01-01")),
        ("0001..9999", Unit.DAY, "integer", ("10101", "99991231", "100000101")),
        ("0001..9999", Unit.DAY, "text", ("0001-01-01", "9999-12-31", ":")),
        ("9999-W52", Unit.WEEK, "date", ("9999-12-27", "10000-01-02", "10000-01-03")),
        ("9999-W52", Unit.WEEK, "text", ("9999-12-27", "9999-12-31", ":")),
        (
            "2026-01-01..2026-01-02",
            Unit.DAY,
            "timestamp",
            ("2026-01-01 00:00:00", "2026-01-02 23:59:59.999999", "2026-01-03 00:00:00"),
        ),
        (
            "9999-Q4",
            Unit.QUARTER,
            "timestamp",
            ("9999-10-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00"),
        ),
        (
            "2026-01-01T05",
            Unit.HOUR,
            "timestamp",
            ("2026-01-01 05:00:00", "2026-01-01 05:59:59.999999", "2026-01-01 06:00:00"),
        ),
        (
            "9999-12-31T23",
            Unit.HOUR,
            "timestamptz",
            ("9999-12-31 23:00:00+00", "9999-12-31 23:59:59.999999+00", "10000-01-01 00:00:00+00"),
        ),
    ],
)
def test_column_values(text: str, unit: Unit, family: str, expected: tuple[str, str, str]) -> None:
    assert read(text, unit).column_values(family) == ColumnBounds(*expected)


def test_longer_units_on_instants_are_wall_times_of_the_zone() -> None:
    each = read("2026-03-08", zone=NEW_YORK)
    assert each.column_values("timestamptz").local
    assert each.wall_bounds() == ("2026-03-08 00:00:00", "2026-03-09 00:00:00")
    assert not each.bounds_are_instants
    assert read("9999").wall_bounds() == ("9999-01-01 00:00:00", "10000-01-01 00:00:00")


def test_hours_are_instants() -> None:
    each = read("2026-11-01T01:00", Unit.HOUR, NEW_YORK)
    assert each.bounds_are_instants
    assert each.wall_bounds() == ("2026-11-01 05:00:00+00", "2026-11-01 07:00:00+00")
    bounds = each.column_values("timestamptz")
    assert bounds == ColumnBounds("2026-11-01 05:00:00+00", "2026-11-01 06:59:59.999999+00", "2026-11-01 07:00:00+00")


@pytest.mark.parametrize(
    ("family", "type", "unit", "text"),
    [
        ("date", "DATE", Unit.WEEK, "9999-W52"),
        ("date", "DATE", Unit.DAY, "0001..9999"),
        ("timestamp", "TIMESTAMP", Unit.MONTH, "0001..9999"),
        ("integer", "INTEGER", Unit.DAY, "0001..9999"),
        ("text", "VARCHAR", Unit.DAY, "0001..9999"),
        ("text", "VARCHAR", Unit.WEEK, "9999-W52"),
    ],
)
def test_a_database_finds_the_first_and_the_last_value_within_the_bounds(
    family: str, type: str, unit: Unit, text: str
) -> None:
    each = read(text, unit)
    bounds = each.column_values(family)
    values = [each.label(each.start) if unit is Unit.DAY else str(each.start), str(each.end)]
    if family == "integer":
        values = [value.replace("-", "") for value in values]
    with duckdb.connect() as connection:
        for value in values:
            query = "SELECT v >= $1::T AND v < $3::T, v BETWEEN $1::T AND $2::T FROM (SELECT $4::T AS v)".replace(
                "::T", f"::{type}"
            )
            found = connection.execute(query, [bounds.start, bounds.end, bounds.next, value]).fetchone()
            assert found == (True, True)


@pytest.mark.parametrize(
    ("text", "family", "unit", "zone", "expected"),
    [
        ("2026-01-02", "date", Unit.DAY, "UTC", date(2026, 1, 2)),
        ("2026-01-05", "text", Unit.WEEK, "UTC", date(2026, 1, 5)),
        ("20260401", "integer", Unit.QUARTER, "UTC", date(2026, 4, 1)),
        ("10101", "integer", Unit.DAY, "UTC", date(1, 1, 1)),
        ("2026-01-02 00:00:00", "timestamp", Unit.DAY, NEW_YORK, date(2026, 1, 2)),
        ("2026-01-02 00:00:00.000", "timestamp", Unit.DAY, "UTC", date(2026, 1, 2)),
        ("2026-01-02 05:00:00", "timestamptz", Unit.DAY, NEW_YORK, date(2026, 1, 2)),
        ("2018-11-04 03:00:00", "timestamptz", Unit.DAY, "America/Sao_Paulo", date(2018, 11, 4)),  # midnight skipped
        ("2026-11-01 04:00:00", "timestamptz", Unit.DAY, "America/Havana", date(2026, 11, 1)),  # midnight twice
        ("2026-11-01 05:00:00", "timestamptz", Unit.DAY, "America/Havana", date(2026, 11, 1)),
        ("2026-01-01 05:00:00", "timestamp", Unit.HOUR, "UTC", utc("2026-01-01 05:00")),
        ("2026-01-01 05:30:00", "timestamptz", Unit.HOUR, "Asia/Kolkata", utc("2026-01-01 05:30")),
    ],
)
def test_moment_from_column(text: str, family: str, unit: Unit, zone: str, expected: Moment) -> None:
    assert ranges.moment_from_column(text, family, unit, zone) == expected


@pytest.mark.parametrize(
    ("text", "family", "unit", "zone"),
    [
        ("2026-01-06", "date", Unit.WEEK, "UTC"),
        ("2026-02-01", "date", Unit.QUARTER, "UTC"),
        ("2026-01-02", "date", Unit.HOUR, "UTC"),
        ("infinity", "date", Unit.DAY, "UTC"),
        ("0044-03-15 (BC)", "date", Unit.DAY, "UTC"),
        ("10000-01-01", "date", Unit.DAY, "UTC"),
        ("2026-W02", "text", Unit.WEEK, "UTC"),
        (" 2026-01-02", "text", Unit.DAY, "UTC"),
        ("2026-01-02\n", "text", Unit.DAY, "UTC"),
        ("", "text", Unit.DAY, "UTC"),
        ("20260230", "integer", Unit.DAY, "UTC"),
        ("-20260102", "integer", Unit.DAY, "UTC"),
        ("2026-01-02 12:00:00", "timestamp", Unit.DAY, "UTC"),
        ("2026-01-02 00:00:00.000001", "timestamp", Unit.DAY, "UTC"),
        ("2026-01-02 00:00:00", "timestamptz", Unit.DAY, NEW_YORK),
        ("0001-01-01 00:00:00", "timestamptz", Unit.DAY, NEW_YORK),
        ("2026-01-01 05:00:00", "timestamptz", Unit.HOUR, "Asia/Kolkata"),
        ("0001-01-01 00:00:00", "timestamptz", Unit.HOUR, NEW_YORK),
        ("9999-12-31 23:00:00", "timestamptz", Unit.HOUR, "Asia/Kolkata"),
        ("1.5", "decimal", Unit.DAY, "UTC"),
    ],
)
def test_no_slice_value(text: str, family: str, unit: Unit, zone: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        ranges.moment_from_column(text, family, unit, zone)


# Which slices are closed.


@pytest.mark.parametrize(
    ("moment", "unit", "zone", "closed", "now", "expected"),
    [
        (date(2026, 1, 1), Unit.DAY, "UTC", YESTERDAY, "2026-01-02 00:00:00", True),
        (date(2026, 1, 1), Unit.DAY, "UTC", YESTERDAY, "2026-01-01 23:59:59", False),
        (date(2026, 1, 1), Unit.DAY, NEW_YORK, YESTERDAY, "2026-01-02 04:59:59", False),
        (date(2026, 1, 1), Unit.DAY, NEW_YORK, YESTERDAY, "2026-01-02 05:00:00", True),
        (date(2026, 1, 1), Unit.DAY, "UTC", ClosedThrough(days_ago=2), "2026-01-02 12:00:00", False),
        (date(2026, 1, 1), Unit.DAY, "UTC", ClosedThrough(days_ago=2), "2026-01-03 00:00:00", True),
        (date(2026, 1, 1), Unit.DAY, "UTC", ClosedThrough(on=date(2026, 1, 1)), "2026-06-01 00:00:00", True),
        (date(2026, 1, 2), Unit.DAY, "UTC", ClosedThrough(on=date(2026, 1, 1)), "2026-06-01 00:00:00", False),
        (date(2026, 1, 2), Unit.DAY, "UTC", ClosedThrough(on=date(2027, 1, 1)), "2026-01-02 12:00:00", False),
        (date(2026, 1, 5), Unit.WEEK, "UTC", YESTERDAY, "2026-01-11 12:00:00", False),
        (date(2026, 1, 5), Unit.WEEK, "UTC", YESTERDAY, "2026-01-12 00:00:00", True),
        (date(2026, 1, 1), Unit.MONTH, "UTC", ClosedThrough(on=date(2026, 1, 30)), "2026-06-01 00:00:00", False),
        (date(9999, 12, 31), Unit.DAY, NEW_YORK, YESTERDAY, "2026-01-01 00:00:00", False),
        (date(9999, 12, 27), Unit.WEEK, "UTC", YESTERDAY, "2026-01-01 00:00:00", False),
        # The clock goes back from 00:01 to 23:01: the day goes on after the next day's first minute.
        (date(2000, 10, 28), Unit.DAY, "America/St_Johns", YESTERDAY, "2000-10-29 02:30:30", False),
        (date(2000, 10, 28), Unit.DAY, "America/St_Johns", YESTERDAY, "2000-10-29 03:30:00", True),
        # Midnight is shown twice, and the day before ended with the first.
        (date(2026, 10, 31), Unit.DAY, "America/Havana", YESTERDAY, "2026-11-01 04:00:00", True),
        (utc("2026-01-01 05:00"), Unit.HOUR, "UTC", ClosedThrough(days_ago=0), "2026-01-01 05:59:59", False),
        (utc("2026-01-01 05:00"), Unit.HOUR, "UTC", ClosedThrough(days_ago=0), "2026-01-01 06:00:00", True),
        (utc("2026-01-01 05:00"), Unit.HOUR, "UTC", YESTERDAY, "2026-01-01 23:00:00", False),
        (utc("2026-01-01 05:00"), Unit.HOUR, "UTC", YESTERDAY, "2026-01-02 00:00:00", True),
        (utc("9999-12-31 23:00"), Unit.HOUR, "UTC", YESTERDAY, "2026-01-02 00:00:00", False),
    ],
)
def test_is_closed(moment: Moment, unit: Unit, zone: str, closed: ClosedThrough, now: str, expected: bool) -> None:
    assert ranges.is_closed(moment, closed, utc(now), column(unit, zone)) is expected


def test_open_slices_are_counted_and_the_first_named() -> None:
    scope = Scope.of(read("2025-12-01..2026-01-03")).plus([date(2026, 2, 1)])
    found = ranges.open_slices(scope, YESTERDAY, utc("2026-01-02 12:00"), column())
    assert found == OpenSlices(3, (date(2026, 1, 2), date(2026, 1, 3), date(2026, 2, 1)))
    assert ranges.open_slices(scope, YESTERDAY, utc("2026-03-01 00:00"), column()) == OpenSlices(0, ())


def test_open_slices_of_the_whole_calendar_are_found_without_walking_it() -> None:
    found = ranges.open_slices(Scope.of(read("0001..9999")), YESTERDAY, utc("2026-01-02 12:00"), column())
    assert found.count == 3652059 - date(2026, 1, 1).toordinal()
    assert found.first[0] == date(2026, 1, 2)
    assert len(found.first) == 5


@given(
    st.integers(0, 60 * 24 * 4), st.sampled_from([Unit.HOUR, Unit.DAY, Unit.WEEK]), st.sampled_from([NEW_YORK, "UTC"])
)
def test_open_slices_are_those_that_are_not_closed(minutes: int, unit: Unit, zone: str) -> None:
    slice = column(unit, zone)
    scope = Scope.of(read("2026-10-26..2026-11-08", unit, zone))
    now = utc("2026-10-30 00:00") + timedelta(minutes=minutes)
    expected = [each for each in scope.slices() if not ranges.is_closed(each, YESTERDAY, now, slice)]
    found = ranges.open_slices(scope, YESTERDAY, now, slice)
    assert found == OpenSlices(len(expected), tuple(expected[:5]))
