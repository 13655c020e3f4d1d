"""Slices as a calendar: which of them are shown together, and where each stands.

Days stand by week and weekday, three months to a block; hours by day; weeks, months and quarters by year.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, takewhile
from zoneinfo import ZoneInfo

from reslice.contract import SliceColumn, Unit
from reslice.errors import ResliceError
from reslice.ranges import Moment, Range, parse
from reslice.studio.standing import EXCEPTIONS, Stand, Standing

WIDTH, HEIGHT, STEP_X, STEP_Y, LEFT, TOP = 24, 17, 28, 21, 40, 20
"""Of a cell, and from one to the next; what stands left of and above the first."""

_STEP_HOURS = 16

_PERIOD_LETTERS = {Unit.HOUR: 7, Unit.DAY: 4, Unit.WEEK: 4}
"""Slices of these units are shown together whose labels begin alike by so many letters."""
STEPS = {Unit.HOUR: (1, 24), Unit.DAY: (7, 1), Unit.WEEK: (1, 13), Unit.MONTH: (1, 12), Unit.QUARTER: (1, 4)}
"""By how many slices a neighbour to the right, and one below, is later."""
_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2})?|[0-9]{3}0s")
_YEARS_PER_BLOCK = 10
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")
_MONTHS = calendar.month_abbr


@dataclass(frozen=True, slots=True)
class Cell:
    """One slice in the picture: its column and row, and how it stands."""

    label: str
    stand: Stand
    column: int
    row: int
    step: int = STEP_X

    @property
    def width(self) -> int:
        """How wide it is."""
        return self.step + WIDTH - STEP_X

    @property
    def x(self) -> int:
        """Its left edge."""
        return LEFT + self.column * self.step

    @property
    def y(self) -> int:
        """Its upper edge."""
        return TOP + self.row * STEP_Y


@dataclass(frozen=True, slots=True)
class Block:
    """Cells that stand together, and what is written above the columns and left of the rows."""

    name: str
    cells: tuple[Cell, ...]
    above: tuple[tuple[int, str], ...]
    beside: tuple[tuple[int, str], ...]
    columns: int
    rows: int
    step: int = STEP_X

    @property
    def width(self) -> int:
        """How wide the picture is."""
        return LEFT + self.columns * self.step

    @property
    def height(self) -> int:
        """How high the picture is."""
        return TOP + self.rows * STEP_Y

    def x(self, column: int) -> int:
        """Return the left edge of a column."""
        return LEFT + column * self.step

    def y(self, row: int) -> int:
        """Return where the words beside a row stand."""
        return TOP + row * STEP_Y + HEIGHT - 4


def period_of(label: str, unit: Unit) -> str:
    """Return the period that a slice is shown in: a month of hours, a year of days or weeks, a decade of others."""
    letters = _PERIOD_LETTERS.get(unit)
    return f"{label[:3]}0s" if letters is None else label[:letters]


def periods(found: Mapping[str, Stand], unit: Unit) -> list[tuple[str, int, int]]:
    """Return each period, newest first, with how many slices it has and how many of them are exceptions."""
    counted: dict[str, list[int]] = {}
    for label, stand in found.items():
        numbers = counted.setdefault(period_of(label, unit), [0, 0])
        numbers[0] += 1
        numbers[1] += stand.state in EXCEPTIONS
    named = (name for name in sorted(counted, reverse=True) if _PERIOD.fullmatch(name))
    return [(name, counted[name][0], counted[name][1]) for name in named]


def span(found: Iterable[str], period: str, cut: SliceColumn, through: Moment) -> Range | None:
    """Return the slices of a period from the first that is known to the last that is known, or may be expected."""
    known = sorted(label for label in found if period_of(label, cut.unit) == period)
    first = next((moment for label in known if (moment := _read(label, cut)) is not None), None)
    last = next((moment for label in reversed(known) if (moment := _read(label, cut)) is not None), None)
    if first is None or last is None:
        return None
    later = Range(cut.unit, cut.timezone, last, max(last, through))
    due = takewhile(lambda moment: period_of(later.label(moment), cut.unit) == period, later.slices())
    last = max(due, default=last)
    return Range(cut.unit, cut.timezone, min(first, last), last)


def stands_of(shown: Range, found: Mapping[str, Stand]) -> dict[str, tuple[Moment, Stand]]:
    """Return every slice of a range by its label; one of which nothing is known as well."""
    unknown = Stand(Standing.UNKNOWN)
    return {label: (moment, found.get(label, unknown)) for moment in shown.slices() for label in (shown.label(moment),)}


def blocks(slices: Mapping[str, tuple[Moment, Stand]], cut: SliceColumn) -> list[Block]:
    """Return the slices as they are drawn, in blocks."""
    rows = list(slices.items())
    match cut.unit:
        case Unit.DAY:
            return [
                _days(list(group))
                for _, group in groupby(rows, key=lambda row: (row[1][0].year, (row[1][0].month - 1) // 3))
            ]
        case Unit.HOUR:
            return list(_hours(rows, cut.timezone))
        case Unit.WEEK:
            return [_weeks(list(group)) for _, group in groupby(rows, key=lambda row: row[0][:4])]
    per_year = 12 if cut.unit is Unit.MONTH else 4
    return [
        _years(list(group), per_year) for _, group in groupby(rows, key=lambda row: row[1][0].year // _YEARS_PER_BLOCK)
    ]


_Row = tuple[str, tuple[Moment, Stand]]


def _days(rows: list[_Row]) -> Block:
    """Return the days of three months: a column for each week, a row for each weekday."""
    first = _day(rows[0]).replace(month=(_day(rows[0]).month - 1) // 3 * 3 + 1, day=1)
    monday = first - timedelta(days=first.weekday())
    cells = tuple(
        Cell(label, stand, (_day((label, (moment, stand))) - monday).days // 7, moment.weekday())
        for label, (moment, stand) in rows
    )
    firsts = (first.replace(month=first.month + place) for place in range(3))
    named = (
        ((each - monday).days // 7 + (each.weekday() > 0 and each != first), _MONTHS[each.month]) for each in firsts
    )
    above = tuple((column, word) for column, word in named if any(cell.column >= column for cell in cells))
    beside = tuple((row, word) for row, word in enumerate(_WEEKDAYS) if word)
    name = f"{_MONTHS[first.month]} to {_MONTHS[first.month + 2]} {first.year}"
    return Block(name, cells, above, beside, 14, 7)


def _hours(rows: list[_Row], zone: str) -> Iterator[Block]:
    """Yield the hours of a month in two blocks: a row for each local day, a column for each of its hours, in order."""
    by_day = [(day, list(group)) for day, group in groupby(rows, key=lambda row: _local(row[1][0], zone))]
    for _, days in groupby(by_day, key=lambda each: each[0].day > 16):
        listed = list(days)
        cells = tuple(
            Cell(label, stand, _place(moment, day, zone), row, _STEP_HOURS)
            for row, (day, hours) in enumerate(listed)
            for label, (moment, stand) in hours
        )
        above = tuple((hour, f"{hour:02d}") for hour in range(0, 24, 4))
        beside = tuple((row, str(day.day)) for row, (day, _) in enumerate(listed))
        first, last = listed[0][0], listed[-1][0]
        yield Block(f"{first} to {last}", cells, above, beside, 25, len(listed), _STEP_HOURS)


def _weeks(rows: list[_Row]) -> Block:
    """Return the weeks of a year: thirteen to a row, the last of a long year beside the others."""
    cells = []
    for label, (_, stand) in rows:
        week = int(label[6:8]) - 1
        row = min(week // 13, 3)
        cells.append(Cell(label, stand, week - row * 13, row))
    beside = tuple((row, f"W{row * 13 + 1:02d}") for row in range(4))
    return Block(f"Weeks of {rows[0][0][:4]}", tuple(cells), (), beside, 14, 4)


def _years(rows: list[_Row], per_year: int) -> Block:
    """Return months or quarters: a row for each year."""
    first, last = rows[0][1][0].year, rows[-1][1][0].year
    months = 12 // per_year
    cells = tuple(
        Cell(label, stand, (moment.month - 1) // months, moment.year - first) for label, (moment, stand) in rows
    )
    words = _MONTHS[1:] if per_year == 12 else [f"Q{quarter}" for quarter in range(1, 5)]
    beside = tuple((year - first, str(year)) for year in range(first, last + 1))
    return Block(f"{first} to {last}", cells, tuple(enumerate(words)), beside, max(per_year, 12), last - first + 1)


def _day(row: _Row) -> date:
    moment = row[1][0]
    return moment.date() if isinstance(moment, datetime) else moment


def _local(moment: Moment, zone: str) -> date:
    assert isinstance(moment, datetime), "hours are instants"
    return moment.astimezone(ZoneInfo(zone)).date()


def _place(moment: Moment, day: date, zone: str) -> int:
    """Return which hour of its local day it is, counted as they pass: an hour that is shown twice is two."""
    assert isinstance(moment, datetime), "hours are instants"
    midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))
    return int((moment - midnight) // timedelta(hours=1))


def _label(moment: Moment, cut: SliceColumn) -> str:
    return Range(cut.unit, cut.timezone, moment, moment).text


def _read(label: str, cut: SliceColumn) -> Moment | None:
    """Return the slice of a label; None where it is none of this contract, whose zone was another one then."""
    try:
        found = parse(label, cut)
    except ResliceError:
        return None
    return found.start if found.start == found.end else None
