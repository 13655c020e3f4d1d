"""A scheduler's half-open interval becomes the closed range it means, or is refused."""

from __future__ import annotations

import pytest

from reslice import ranges
from reslice.contract import SliceColumn, Unit
from reslice.errors import ResliceError


def column(unit: Unit = Unit.DAY, zone: str = "UTC") -> SliceColumn:
    return SliceColumn("at", unit, zone)


@pytest.mark.parametrize(
    ("start", "end", "unit", "zone", "expected"),
    [
        ("2026-01-01", "2026-01-03", Unit.DAY, "UTC", "2026-01-01..2026-01-02"),
        ("2026-03-02 00:00", "2026-03-03T00:00:00", Unit.DAY, "UTC", "2026-03-02"),
        ("2026-03-08T05:00:00+00:00", "2026-03-09T04:00:00Z", Unit.DAY, "America/New_York", "2026-03-08"),
        ("2026-01-01T00:00:00.000000-0500", "2026-01-02", Unit.DAY, "America/New_York", "2026-01-01"),
        ("2018-11-04T03:00Z", "2018-11-05T02:00Z", Unit.DAY, "America/Sao_Paulo", "2018-11-04"),
        ("2026-01-05", "2026-01-12", Unit.WEEK, "UTC", "2026-W02"),
        ("2026-01-01", "2026-04-01", Unit.QUARTER, "UTC", "2026-Q1"),
        ("2026-01-01T05:00", "2026-01-01T06:00", Unit.HOUR, "UTC", "2026-01-01T05:00"),
        ("2026-01-01", "2026-01-02", Unit.HOUR, "UTC", "2026-01-01T00:00..2026-01-01T23:00"),
        ("2026-11-01T00:00", "2026-11-01T01:00", Unit.HOUR, "America/New_York", "2026-11-01T00:00-04:00"),
        ("2026-11-01T05:00Z", "2026-11-01T06:00Z", Unit.HOUR, "America/New_York", "2026-11-01T01:00-04:00"),
    ],
)
def test_interval(start: str, end: str, unit: Unit, zone: str, expected: str) -> None:
    assert ranges.parse_interval(start, end, column(unit, zone)).text == expected


@pytest.mark.parametrize(
    ("start", "end", "unit", "kind", "instead"),
    [
        ("2026-01-01", "2026-01-01", Unit.DAY, "range_reversed", "2026-01-01"),
        ("2026-01-03", "2026-01-01", Unit.DAY, "range_reversed", "2026-01-01..2026-01-02"),
        ("2026-01-01", "2026-01-02 12:00", Unit.DAY, "range_off_unit", "2026-01-01..2026-01-02"),
        ("2026-01-01T00:00:00.1", "2026-01-02", Unit.DAY, "range_off_unit", "2026-01-01"),
        ("2026-01-01", "2026-01-31", Unit.MONTH, "range_off_unit", "2026-01"),
        ("2026-01-01", "", Unit.DAY, "range_open", "2026-01-01"),
        ("2026-01", "2026-02", Unit.DAY, "range_unreadable", ""),
    ],
)
def test_interval_refused(start: str, end: str, unit: Unit, kind: str, instead: str) -> None:
    with pytest.raises(ResliceError) as caught:
        ranges.parse_interval(start, end, column(unit))
    assert (caught.value.kind, caught.value.next) == (kind, instead)
