"""Every type of slice column with every unit: the range alone is replaced, whole, and running it again does nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from reslice.errors import Refused
from reslice.values import Outcome
from tests.conformance.databases import Database, Row, only
from tests.conformance.orders import ALLOWED, EVERY_METHOD, IN_PLACE, Target, found, kinds

METHODS = ("replace_slice", "append_version")  # merge finds a slice as replace_slice does

NEW_YORK = "America/New_York"


class SliceType:
    """A type of slice column: how a day is written in SQL, and how a stored value is read back as a day."""

    def __init__(self, type_text: str, of_day: str, to_day: str, zone: str = "UTC") -> None:
        self.type_text, self.of_day, self.to_day, self.zone = type_text, of_day, to_day, zone


FROM_DIGITS = r"CAST(regexp_replace(lpad(CAST({0} AS VARCHAR), 8, '0'), '(....)(..)(..)', '\1-\2-\3') AS DATE)"

TYPES = {
    "date": SliceType("DATE", "{0}", "{0}"),
    "timestamp": SliceType("TIMESTAMP", "CAST({0} AS TIMESTAMP)", "CAST({0} AS DATE)"),
    "timestamp_s": SliceType("TIMESTAMP_S", "CAST({0} AS TIMESTAMP_S)", "CAST({0} AS DATE)"),
    "timestamptz": SliceType(
        "TIMESTAMP WITH TIME ZONE",
        "timezone('UTC', CAST({0} AS TIMESTAMP))",
        "CAST(timezone('UTC', {0}) AS DATE)",
    ),
    "new_york": SliceType(
        "TIMESTAMP WITH TIME ZONE",
        f"timezone('{NEW_YORK}', CAST({{0}} AS TIMESTAMP))",
        f"CAST(timezone('{NEW_YORK}', {{0}}) AS DATE)",
        NEW_YORK,
    ),
    "text": SliceType("VARCHAR", "CAST({0} AS VARCHAR)", "CAST({0} AS DATE)"),
    "integer": SliceType(
        "INTEGER",
        "CAST(replace(CAST({0} AS VARCHAR), '-', '') AS INTEGER)",
        FROM_DIGITS,
    ),
    "bigint": SliceType(
        "BIGINT",
        "CAST(replace(CAST({0} AS VARCHAR), '-', '') AS BIGINT)",
        FROM_DIGITS,
    ),
}

KINDS = [pytest.param(kind, marks=only("duckdb", "its own type")) if kind == "timestamp_s" else kind for kind in TYPES]


class Periods(Target):
    """One row per period and channel, from a table of days with a number each."""

    def __init__(self, engine: Database, kind: SliceType, unit: str, method: str) -> None:
        self.kind, self.unit = kind, unit
        engine.execute("CREATE TABLE days (day date, channel varchar, cents bigint)")
        engine.execute(f"CREATE TABLE periods (period {kind.type_text}, channel varchar, cents bigint)")
        period = self.period("day")
        # The source keeps to the range by the column's own values, and cuts days to periods itself.
        source = (
            f"SELECT {period} AS period, channel, sum(cents) AS cents FROM days"
            f" WHERE {period} BETWEEN :start AND :end GROUP BY 1, 2"
        )
        declaration: dict[str, Any] = {
            "table": "periods",
            "source": "source.sql",
            "grain": ["period", "channel"],
            "slice": {"column": "period", "unit": unit, "timezone": kind.zone},
            "measures": {"cents": {}},
            "guards": ALLOWED | {"max_slices": 4_000_000},
        }
        super().__init__(engine, "periods", declaration, source, method=method)

    def period(self, day: str) -> str:
        return self.kind.of_day.format(f"CAST(date_trunc('{self.unit}', {day}) AS DATE)")

    def put(self, first: date, channel: str, cents: int) -> None:
        """Put a row straight into the target."""
        value = self.kind.of_day.format(f"DATE '{first}' ")
        self.database.execute(f"INSERT INTO periods (period, channel, cents) SELECT {value}, '{channel}', {cents}")

    def as_days(self) -> list[Row]:
        """Return the target with its periods as the days on which they begin."""
        return self.database.rows(
            f"SELECT {self.kind.to_day.format('period')}, channel, cents FROM {self.current} ORDER BY 1, 2, 3"
        )

    def versions(self) -> list[Row]:
        return self.database.rows(
            f"SELECT {self.database.place}, {self.kind.to_day.format('period')}, channel, cents FROM periods ORDER BY 1"
        )

    def rows(self) -> list[Row]:
        return self.as_days()


def first_of(unit: str, day: date) -> date:
    """Return the first day of a day's unit, in plain Python."""
    first: dict[str, Callable[[], date]] = {
        "day": lambda: day,
        "week": lambda: day - timedelta(days=day.weekday()),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    }
    return first[unit]()


RANGES = {
    "day": ("2024-02-28..2024-03-02", date(2024, 2, 28), date(2024, 3, 2), 4),
    "week": ("2024-W09..2024-W11", date(2024, 2, 26), date(2024, 3, 17), 3),
    "month": ("2023-12..2024-02", date(2023, 12, 1), date(2024, 2, 29), 3),
    "quarter": ("2023-Q4..2024-Q1", date(2023, 10, 1), date(2024, 3, 31), 2),
}


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("unit", list(RANGES))
@pytest.mark.parametrize("kind", KINDS)
def test_a_range_of_every_type_and_unit_is_replaced_and_nothing_else(
    engine: Database, method: str, kind: str, unit: str
) -> None:
    periods = Periods(engine, TYPES[kind], unit, method)
    range, first, last, count = RANGES[unit]
    before, after = first_of(unit, first - timedelta(days=1)), first_of(unit, last + timedelta(days=1))
    # One cent on every day from the period before the range to the period after it.
    day, last_day = before, after + timedelta(days=1)
    engine.execute(
        "INSERT INTO days SELECT CAST(d AS DATE), 'web', 1"
        f" FROM generate_series(TIMESTAMP '{day}', TIMESTAMP '{last_day}', INTERVAL '1 day') AS t (d)"
    )
    expected: dict[date, int] = {}
    while first <= last:
        expected[first_of(unit, first)] = expected.get(first_of(unit, first), 0) + 1
        first += timedelta(days=1)
    periods.put(before, "web", 7)
    periods.put(after, "web", 8)
    periods.put(min(expected), "gone", 9)
    neighbours = [row for row in periods.versions() if row[1] in (str(before), str(after))]

    result = sorted(
        [(str(before), "web", 7), (str(after), "web", 8), *((str(d), "web", n) for d, n in expected.items())]
    )
    run = periods.publish(range, added=count, removed=1, after=result)

    assert run.scope.count == count and len(expected) == count
    assert [row for row in periods.versions() if row[1] in (str(before), str(after))] == neighbours
    engine.execute(f"UPDATE days SET cents = 2 WHERE day = DATE '{last}'")
    run = periods.run(range)
    assert run.diff is not None and run.slices_done == (run.scope.label(first_of(unit, last)),)
    (group,) = run.diff.groups
    assert group.after == {"cents": expected[first_of(unit, last)] + 1}
    answer = periods.verify(range)
    assert answer.repeatable and answer.equals_source


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_many_ranges_is_replaced_and_what_lies_between_is_not(
    engine: Database, method: str, kind: str
) -> None:
    periods = Periods(engine, TYPES[kind], "day", method)
    days = [date(2024, 1, 1) + timedelta(days=each) for each in range(90)]
    engine.execute(
        "INSERT INTO days SELECT DATE '2024-01-01' + n::integer, 'web', 1 FROM generate_series(0, 89) AS days (n)"
    )
    engine.execute(f"INSERT INTO periods (period, channel, cents) SELECT {periods.period('day')}, 'old', 2 FROM days")
    periods.declare(guards=ALLOWED)

    even = ",".join(str(day) for day in days[::2])
    result = [(str(day), "web", 1) if place % 2 == 0 else (str(day), "old", 2) for place, day in enumerate(days)]
    run = periods.publish(even, added=45, removed=45, after=result)

    assert run.scope.count == 45 and len(run.slices_done) == 45


@pytest.mark.parametrize("unit", ["day", "month", "quarter"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("edge", ["first", "last"])
def test_t22_4_the_edges_of_the_calendar_are_slices_like_others(
    engine: Database, method: str, kind: str, unit: str, edge: str
) -> None:
    day = date(1, 1, 1) if edge == "first" else date(9999, 12, 31)
    other = date(1, 4, 1) if edge == "first" else date(9999, 9, 30)
    range = {
        "day": str(day),
        "month": str(day)[:7],
        "quarter": f"{str(day)[:4]}-Q{(day.month + 2) // 3}",
    }[unit]
    periods = Periods(engine, TYPES[kind], unit, method)
    engine.execute(f"INSERT INTO days VALUES (DATE '{day}', 'web', 4)")
    periods.put(first_of(unit, other), "web", 1)

    first = str(first_of(unit, day))
    result = sorted([(first, "web", 4), (str(first_of(unit, other)), "web", 1)])
    periods.publish(range, added=1, after=result)

    engine.execute("UPDATE days SET cents = 5")
    result = sorted([(first, "web", 5), (str(first_of(unit, other)), "web", 1)])
    periods.publish(range, changed=1, after=result)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_week_of_the_calendar_ends_with_it(engine: Database, method: str, kind: str) -> None:
    periods = Periods(engine, TYPES[kind], "week", method)
    engine.execute("INSERT INTO days VALUES (DATE '9999-12-31', 'web', 4)")
    periods.publish("9999-W52", added=1, after=[("9999-12-27", "web", 4)])


@pytest.mark.parametrize("edge", ["0001-01-01T00:00", "9999-12-31T23:00"])
def test_the_first_and_the_last_hour_of_the_calendar(engine: Database, method: str, edge: str) -> None:
    engine.execute("CREATE TABLE hourly (hour TIMESTAMP WITH TIME ZONE, cents bigint)")
    source = (
        f"SELECT timezone('UTC', TIMESTAMP '{edge.replace('T', ' ')}:00') AS hour, 4 AS cents"
        " WHERE :start_instant < :end_instant AND :start < :end"
    )
    declaration = {
        "table": "hourly",
        "source": "source.sql",
        "grain": ["hour"],
        "slice": {"column": "hour", "unit": "hour"},
        "measures": {"cents": {}},
    }
    target = Target(engine, "hourly", declaration, source, method=method)
    assert target.run(edge).outcome is Outcome.PUBLISHED
    assert engine.rows(f"SELECT CAST(timezone('UTC', hour) AS VARCHAR), cents FROM {target.current}") == [
        (edge.replace("T", " ") + ":00", 4)
    ]
    assert target.run(edge).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("method", IN_PLACE)
def test_t22_1_the_days_around_the_epoch_are_two_days(engine: Database, method: str) -> None:
    for kind in ("date", "new_york"):
        engine.execute("DROP TABLE IF EXISTS days")
        engine.execute("DROP TABLE IF EXISTS periods")
        periods = Periods(engine, TYPES[kind], "day", method)
        engine.execute("INSERT INTO days VALUES (DATE '1969-12-31', 'web', 5), (DATE '1970-01-01', 'web', 7)")
        periods.publish("1969-12-31..1970-01-01", added=2, after=[("1969-12-31", "web", 5), ("1970-01-01", "web", 7)])

        engine.execute("UPDATE days SET cents = 6 WHERE cents = 5")

        periods.publish("1969-12-31", changed=1, after=[("1969-12-31", "web", 6), ("1970-01-01", "web", 7)])
        periods.unchanged("1970-01-01")


@pytest.mark.parametrize(
    ("kind", "unit", "value"),
    [
        ("date", "week", "DATE '2024-03-05'"),
        ("date", "month", "DATE '2024-03-02'"),
        ("timestamp", "day", "TIMESTAMP '2024-03-05 00:00:00.000001'"),
        ("timestamptz", "day", "TIMESTAMPTZ '2024-03-05 00:00:01+00'"),
        ("new_york", "day", "TIMESTAMPTZ '2024-03-05 00:00:00+00'"),
        ("text", "month", "'2024-03-05'"),
        ("text", "day", "'2024-03-05T00:00'"),
        ("text", "day", "'2024-3-5'"),
        ("integer", "month", "20240305"),
    ],
)
def test_a_staged_value_that_begins_no_slice_is_refused(
    engine: Database, method: str, kind: str, unit: str, value: str
) -> None:
    periods = Periods(engine, TYPES[kind], unit, method)
    periods.source(f"SELECT {value} AS period, 'web' AS channel, 1 AS cents WHERE :start <= :end")
    range = {"day": "2024-03-01..2024-03-09", "week": "2024-W10", "month": "2024-03"}[unit]

    error: Refused = periods.fails("run", Refused, range)

    assert kinds(error)[0] in ("slice_off_unit", "outside_range")
    assert periods.as_days() == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "'2024-03-05 noon'"),
        ("text", "'2024-03-05x'"),
        ("integer", "20240399"),
    ],
)
def test_a_value_in_the_target_that_belongs_to_no_slice_is_refused_and_not_removed(
    engine: Database, method: str, kind: str, value: str
) -> None:
    periods = Periods(engine, TYPES[kind], "day", method)
    engine.execute("INSERT INTO days VALUES (DATE '2024-03-05', 'web', 4)")
    engine.execute(f"INSERT INTO periods (period, channel, cents) VALUES ({value}, 'old', 9)")
    before = engine.rows(f"SELECT {engine.place}, channel, cents FROM periods")

    error: Refused = periods.fails("run", Refused, "2024-03-01..2024-03-31")

    assert kinds(error) == ["slice_off_unit"] and "periods" in found(error)
    assert engine.rows(f"SELECT {engine.place}, channel, cents FROM periods") == before


@pytest.mark.parametrize(
    ("kind", "value"),
    [("timestamp", "TIMESTAMP '2024-03-05 12:00:00'"), ("timestamptz", "TIMESTAMPTZ '2024-03-05 12:00:00+00'")],
)
def test_an_instant_in_the_target_that_begins_no_slice_is_shown_and_replaced_with_its_slice(
    engine: Database, method: str, kind: str, value: str
) -> None:
    periods = Periods(engine, TYPES[kind], "day", method)
    engine.execute("INSERT INTO days VALUES (DATE '2024-03-05', 'web', 4)")
    engine.execute(f"INSERT INTO periods (period, channel, cents) VALUES ({value}, 'web', 9)")

    run = periods.publish("2024-03-05", added=1, removed=1, after=[("2024-03-05", "web", 4)])

    assert run.diff is not None and run.diff.counts.removed == 1
    removed = next(group for group in run.diff.groups if group.change == "removed")
    assert str(removed.key["period"]).startswith("2024-03-05 12:00:00") and removed.slice == "2024-03-05"


def test_infinite_dates_in_source_and_target_belong_to_no_range(engine: Database, method: str) -> None:
    periods = Periods(engine, TYPES["date"], "day", method)
    engine.execute(
        "INSERT INTO days VALUES ('infinity', 'web', 1), ('-infinity', 'web', 2), (DATE '2024-03-05', 'web', 4)"
    )
    engine.execute(
        "INSERT INTO periods (period, channel, cents) VALUES ('infinity', 'web', 8), ('-infinity', 'web', 9)"
    )

    run = periods.run("2024-03-01..2024-03-31")

    assert run.outcome is Outcome.PUBLISHED and run.slices_done == ("2024-03-05",)
    assert engine.rows(f"SELECT CAST(period AS VARCHAR), cents FROM {periods.current} ORDER BY cents") == [
        ("2024-03-05", 4),
        ("infinity", 8),
        ("-infinity", 9),
    ]
    engine.execute(f"UPDATE days SET day = '{engine.before_christ('4000-01-01')}' WHERE cents = 2")
    assert periods.run("0001-01-01..9999-12-31").outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("type_text", ["boolean", "double precision", "time", "uuid", "interval"])
def test_a_slice_column_of_another_type_is_refused(engine: Database, method: str, type_text: str) -> None:
    periods = Periods(engine, SliceType(type_text, "{0}", "{0}"), "day", method)
    error: Refused = periods.fails("run", Refused, "2024-03-01")
    assert "target_type" in kinds(error)
