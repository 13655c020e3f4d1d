"""Where slices stand in the calendar, by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from reslice.contract import SliceColumn, Unit
from reslice.ranges import parse
from reslice.studio import calendar
from reslice.studio.standing import Stand, Standing

PUBLISHED = Stand(Standing.PUBLISHED, "r-0001", datetime(2026, 4, 1, tzinfo=UTC))
DIFFERS = Stand(Standing.DIFFERS, "r-0002", datetime(2026, 4, 2, tzinfo=UTC))


def cut(unit: Unit, zone: str = "UTC") -> SliceColumn:
    return SliceColumn("at", unit, zone)


def drawn(range_text: str, slice: SliceColumn) -> list[calendar.Block]:
    return calendar.blocks(calendar.stands_of(parse(range_text, slice), {}), slice)


def places(blocks: list[calendar.Block]) -> dict[str, tuple[int, int, int]]:
    """Return block, column and row of every slice."""
    return {cell.label: (number, cell.column, cell.row) for number, block in enumerate(blocks) for cell in block.cells}


def test_days_stand_by_week_and_weekday_three_months_to_a_block() -> None:
    blocks = drawn("2026-01-01..2026-06-30", cut(Unit.DAY))
    found = places(blocks)
    assert [block.name for block in blocks] == ["Jan to Mar 2026", "Apr to Jun 2026"]
    assert found["2026-01-01"] == (0, 0, 3)  # a Thursday
    assert found["2026-01-04"] == (0, 0, 6)
    assert found["2026-01-05"] == (0, 1, 0)  # the Monday after
    assert found["2026-03-31"] == (0, 13, 1)
    assert found["2026-04-01"] == (1, 0, 2)
    assert blocks[0].above == ((0, "Jan"), (5, "Feb"), (9, "Mar"))


def test_a_month_without_slices_has_no_name() -> None:
    assert [word for _, word in drawn("2026-01-01..2026-01-20", cut(Unit.DAY))[0].above] == ["Jan"]


def test_no_two_slices_stand_in_one_place_and_none_beyond_the_picture() -> None:
    for range_text, slice in (
        ("2024-01-01..2026-12-31", cut(Unit.DAY)),
        ("2020-W01..2026-W53", cut(Unit.WEEK)),
        ("1999-01..2026-12", cut(Unit.MONTH)),
        ("1990-Q1..2026-Q4", cut(Unit.QUARTER)),
        ("2026-03-01T00:00..2026-03-31T23:00", cut(Unit.HOUR)),
    ):
        blocks = drawn(range_text, slice)
        found = places(blocks)
        assert len(found) == parse(range_text, slice).count == len(set(found.values())), range_text
        for block in blocks:
            assert all(0 <= cell.column < block.columns and 0 <= cell.row < block.rows for cell in block.cells)


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_hours_of_a_day_stand_beside_each_other_however_many_there_are(day: str, hours: int) -> None:
    (block,) = drawn(day, cut(Unit.HOUR, "Europe/Berlin"))
    assert [cell.column for cell in block.cells] == list(range(hours))
    assert {cell.row for cell in block.cells} == {0}


def test_weeks_months_and_quarters_stand_by_year() -> None:
    weeks = places(drawn("2026-W01..2026-W53", cut(Unit.WEEK)))
    assert (weeks["2026-W01"], weeks["2026-W14"], weeks["2026-W53"]) == ((0, 0, 0), (0, 0, 1), (0, 13, 3))
    months = places(drawn("2025-12..2026-02", cut(Unit.MONTH)))
    assert months == {"2025-12": (0, 11, 0), "2026-01": (0, 0, 1), "2026-02": (0, 1, 1)}
    assert places(drawn("2026-Q1..2026-Q3", cut(Unit.QUARTER)))["2026-Q3"] == (0, 2, 0)


def test_periods_are_told_newest_first_with_what_asks_for_a_look() -> None:
    found = {"2025-12-31": PUBLISHED, "2026-01-01": DIFFERS, "2026-01-02": PUBLISHED, "../x": DIFFERS}
    assert calendar.periods(found, Unit.DAY) == [("2026", 2, 1), ("2025", 1, 0)]
    months = {"2026-03": PUBLISHED, "2019-12": DIFFERS, "9999-12": PUBLISHED, "x": DIFFERS}
    assert calendar.periods(months, Unit.MONTH) == [("9990s", 1, 0), ("2020s", 1, 0), ("2010s", 1, 1)]


def test_a_period_reaches_from_its_first_known_slice_to_the_last_that_is_over() -> None:
    found = {"2025-12-31": PUBLISHED, "2026-01-05": PUBLISHED, "2026-01-07": DIFFERS, "2026-nonsense": PUBLISHED}
    slice = cut(Unit.DAY)
    shown = calendar.span(found, "2026", slice, date(2026, 1, 9))
    assert shown is not None and shown.text == "2026-01-05..2026-01-09"
    earlier = calendar.span(found, "2026", slice, date(2026, 1, 6))
    assert earlier is not None and earlier.text == "2026-01-05..2026-01-07"
    assert calendar.span(found, "2024", slice, date(2026, 1, 9)) is None
    months = calendar.span({"2026-03": PUBLISHED, "9999-12": PUBLISHED}, "9990s", cut(Unit.MONTH), date(2026, 3, 1))
    assert months is not None and months.count == 1  # one slice that lies far off does not draw all between
    over = calendar.span({"2025-12-28": PUBLISHED}, "2025", slice, date(2026, 1, 9))
    assert over is not None and over.text == "2025-12-28..2025-12-31"  # a gap at the end of a year stays one
    stands = calendar.stands_of(shown, found)
    assert [stand.state.value for _, stand in stands.values()] == ["published", "no run", "differs", "no run", "no run"]
