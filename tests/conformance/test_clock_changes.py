"""Clock changes: every unit, in zones whose clocks move, by every method: what is published, told and put back.

Where a slice begins and ends is found by looking at a clock on the wall every quarter of an hour, with nothing of the
code under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reslice.values import Outcome, Run
from tests.conformance.databases import Database, Row
from tests.conformance.orders import ALLOWED, EVERY_METHOD, Target, ordered
from tests.conformance.test_slices import first_of

STEP = timedelta(minutes=15)
MICROSECOND = timedelta(microseconds=1)

CHANGES = {
    "New York, spring": ("America/New_York", date(2024, 3, 10)),
    "New York, autumn": ("America/New_York", date(2024, 11, 3)),
    "no midnight": ("America/Sao_Paulo", date(2018, 11, 4)),
    "two midnights": ("America/Havana", date(2024, 11, 3)),
    "a day that ends twice": ("America/Sao_Paulo", date(2018, 2, 17)),
    "half an hour, spring": ("Australia/Lord_Howe", date(2024, 10, 6)),
    "half an hour, autumn": ("Australia/Lord_Howe", date(2024, 4, 7)),
    "quarters of an hour": ("Asia/Kathmandu", date(2024, 3, 10)),
    "a day that never was": ("Pacific/Apia", date(2011, 12, 30)),
}


@dataclass(frozen=True)
class Piece:
    """One slice: the instants it owns, from the first to before the last, the day it begins on, and its value."""

    first: datetime
    after: datetime
    day: date
    value: datetime
    """What a column of instants holds for it: its first moment, or of a midnight shown twice the later one."""


def pieces(zone: str, unit: str, first: date, last: date) -> list[Piece]:
    """Return the slices from the one that holds `first` to the one that holds `last`, as the wall clock shows them."""
    begun: list[datetime] = []
    days: list[date] = []
    midnights: dict[date, datetime] = {}
    start = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(days=100)
    end = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=100)
    for at in (start + step * STEP for step in range((end - start) // STEP)):
        wall = at.astimezone(ZoneInfo(zone))
        day = wall.date() if unit == "hour" else first_of(unit, wall.date())
        if wall.minute == 0 if unit == "hour" else [day] != days[-1:]:
            begun.append(at)
            days.append(day)
        if wall.time() == time.min:
            midnights[wall.date()] = at
    values = begun if unit == "hour" else [midnights.get(day, at) for day, at in zip(days, begun, strict=True)]
    found = map(Piece, begun, begun[1:], days, values)
    lowest, highest = (first, last) if unit == "hour" else (first_of(unit, first), first_of(unit, last))
    return [piece for piece in found if lowest <= piece.day <= highest]


class Moved(Target):
    """One row per slice, 1 for its first microsecond and 2 for its last, so that a wrong bound shows as a number."""

    def __init__(self, engine: Database, unit: str, zone: str, type_text: str, method: str) -> None:
        self.type_text = type_text
        engine.set_session_zone("Asia/Tokyo")
        engine.execute(f"CREATE TABLE facts (moment timestamptz, piece {type_text}, cents bigint)")
        engine.execute(f"CREATE TABLE totals (piece {type_text}, cents bigint)")
        declaration: dict[str, Any] = {
            "table": "totals",
            "source": "source.sql",
            "grain": ["piece"],
            "slice": {"column": "piece", "unit": unit, "timezone": zone},
            "measures": {"cents": {}},
            "guards": ALLOWED,
        }
        source = (
            "SELECT piece, sum(cents) AS cents FROM facts"
            " WHERE moment >= :start_instant AND moment < :end_instant GROUP BY piece"
        )
        super().__init__(engine, "totals", declaration, source, method=method)

    def value(self, piece: Piece) -> str:
        """Return what the slice column holds for a slice."""
        return str(piece.day) if self.type_text == "date" else piece.value.isoformat()

    def facts(self, found: list[Piece]) -> None:
        self.database.insert(
            "facts",
            [
                row
                for piece in found
                for row in (
                    (piece.first.isoformat(), self.value(piece), 1),
                    ((piece.after - MICROSECOND).isoformat(), self.value(piece), 2),
                )
            ],
        )

    def row(self, piece: Piece, cents: int) -> Row:
        """Return a slice's row as `rows` gives it."""
        text = str(piece.day) if self.type_text == "date" else f"{piece.value:%Y-%m-%d %H:%M:%S}"
        return (text, cents)

    @property
    def _piece(self) -> str:
        plain = "piece" if self.type_text == "date" else "timezone('UTC', piece)"
        return f"CAST({plain} AS varchar)"

    def rows(self) -> list[Row]:
        return ordered(self.database.rows(f"SELECT {self._piece}, cents FROM {self.current}"))

    def versions(self) -> list[Row]:
        return self.database.rows(f"SELECT {self.database.place}, {self._piece}, cents FROM totals ORDER BY 1")


def cases() -> list[Any]:
    """Return every case; those that the others are nearly sure to tell of as well are left to the slow tests."""
    return [
        pytest.param(
            method,
            zone,
            day,
            unit,
            type_text,
            id=f"{name}, {unit}, {type_text}, {method}",
            marks=() if _is_telling(method, name, unit, type_text) else pytest.mark.slow,
        )
        for method in EVERY_METHOD
        for name, (zone, day) in CHANGES.items()
        for unit in ("hour", "day", "week", "month", "quarter")
        for type_text in (("timestamptz",) if unit == "hour" else ("timestamptz", "date"))
        if (unit, zone) != ("hour", "Pacific/Apia")
    ]


def _is_telling(method: str, name: str, unit: str, type_text: str) -> bool:
    if name.startswith("New York") and method != "replace_slice":
        return unit == "hour" or (unit == "day" and type_text == "timestamptz")
    if name == "two midnights":
        return (unit, type_text) in (("hour", "timestamptz"), ("day", "timestamptz"))
    if name == "New York, autumn":
        return type_text == "timestamptz"
    return method == "replace_slice" and (unit, type_text) in (("hour", "timestamptz"), ("day", "date"))


def range_of(unit: str, first: date, last: date) -> str:
    """Return the range as it is written: days where slices are hours, and the unit's own words else."""
    return f"{_label(unit, first)}..{_label(unit, last)}"


def _label(unit: str, day: date) -> str:
    if unit == "week":
        return f"{day.isocalendar().year}-W{day.isocalendar().week:02d}"
    return {"month": f"{day:%Y-%m}", "quarter": f"{day.year}-Q{(day.month + 2) // 3}"}.get(unit, str(day))


def states(run: Run) -> list[str]:
    assert run.diff is not None
    return [str(each.state) for each in run.diff.slices]


def at_the_change(zone: str, unit: str, day: date, inside: list[Piece]) -> list[int]:
    """Return the places of the slices next to the change: where the clock's offset moves, and the ones around."""
    if unit != "hour":
        return [place for place, piece in enumerate(inside) if piece.day in (first_of(unit, day), inside[0].day)]
    offsets = [piece.first.astimezone(ZoneInfo(zone)).utcoffset() for piece in inside]
    moved = [place for place in range(1, len(offsets)) if offsets[place] != offsets[place - 1]]
    return sorted({0, len(inside) - 1, *(place - step for place in moved for step in (0, 1))})


@pytest.mark.parametrize(("method", "zone", "day", "unit", "type_text"), cases())
def test_a_clock_change_is_published_told_and_put_back(
    engine: Database, method: str, zone: str, day: date, unit: str, type_text: str
) -> None:
    target = Moved(engine, unit, zone, type_text, method)
    reach = timedelta(days={"hour": 0, "week": 7, "month": 31, "quarter": 92}.get(unit, 1))
    first, last = day - reach, day + reach
    wider = max(reach, timedelta(days=1))
    inside = pieces(zone, unit, first, last)
    around = pieces(zone, unit, first - wider, last + wider)
    outside = [piece for piece in around if piece not in inside]
    target.facts(around)
    target.database.insert("totals (piece, cents)", [(target.value(piece), 77) for piece in outside])
    neighbours = [target.row(piece, 77) for piece in outside]
    range = range_of(unit, first, last)
    whole = ordered([*neighbours, *(target.row(piece, 3) for piece in inside)])

    target.publish(range, added=len(inside), after=whole)

    answer = target.verify(range)
    assert answer.repeatable and answer.equals_source
    for place in at_the_change(zone, unit, day, inside):
        _corrected_and_put_back(target, range, inside, place, neighbours)
    assert target.rows() == whole


def _corrected_and_put_back(target: Moved, range: str, inside: list[Piece], place: int, neighbours: list[Row]) -> None:
    """Correct one slice by its last microsecond: it alone differs, is replaced by its label alone, and comes back."""
    last = (inside[place].after - MICROSECOND).isoformat()
    target.database.execute("UPDATE facts SET cents = 12 WHERE moment = ?", [last])
    told = target.status(range)
    assert states(told) == ["differs" if at == place else "equal" for at, _ in enumerate(inside)]
    assert told.diff is not None
    label = told.diff.slices[place].label

    run = target.run(label, allow=["restored"], reason="it is what is tested")

    assert run.scope.count == 1 and run.slices_done == (label,)
    rows = [target.row(each, 13 if at == place else 3) for at, each in enumerate(inside)]
    assert target.rows() == ordered([*neighbours, *rows])
    put_back = target.restore(run.id, label)
    assert put_back.outcome is Outcome.RESTORED and put_back.slices_done == (label,)
    assert target.rows() == ordered([*neighbours, *(target.row(each, 3) for each in inside)])
    assert [guard.name for guard in target.plan(label).guards if guard.stops] == ["restored"]
    target.database.execute("UPDATE facts SET cents = 2 WHERE moment = ?", [last])


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_a_day_that_never_was_is_empty_and_no_alarm(engine: Database, method: str) -> None:
    """Samoa went from 2011-12-29 to 2011-12-31; the day between has no hour, and a range over it says so."""
    target = Moved(engine, "day", "Pacific/Apia", "date", method)
    target.declare(guards={})
    target.facts(pieces("Pacific/Apia", "day", date(2011, 12, 29), date(2011, 12, 31)))
    run = target.run("2011-12-29..2011-12-31")
    assert run.scope.count == 3 and target.rows() == [("2011-12-29", 3), ("2011-12-31", 3)]
    alone = target.unchanged("2011-12-30")
    assert alone.diff is not None and alone.diff.staged.rows == 0
