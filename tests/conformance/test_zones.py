"""Which instant belongs to which day: one rule, of the contract's zone, whatever the zone of the session."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from reslice.values import Outcome
from tests.conformance.databases import Database, Row, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, Orders, Target, found, ordered

NEW_YORK = "America/New_York"

Z: tuple[Row, ...] = (
    ("2024-03-02 03:30:00+00", 1000),
    ("2024-03-02 12:00:00+00", 2000),
    ("2024-03-03 04:59:59+00", 400),
    ("2024-03-03 05:00:00+00", 80),
)
IN_NEW_YORK = [(D1, "web", 1, 1000), (D2, "web", 2, 2400), (D3, "web", 1, 80)]
IN_UTC = [(D2, "web", 2, 3000), (D3, "web", 2, 480)]

BY_SESSION_DAY = """
SELECT CAST(order_ts AS DATE) AS order_date, 'web' AS channel, count(*) AS order_count, sum(cents) AS amount_cents
FROM instants WHERE order_ts >= :start_instant AND order_ts < :end_instant GROUP BY 1, 2
"""


def zoned(orders: Orders, zone: str, rows: Iterable[Row] = Z, source: str = BY_SESSION_DAY) -> Orders:
    """Let the source be instants, and days be days of a zone."""
    orders.database.execute("CREATE TABLE instants (order_ts TIMESTAMP WITH TIME ZONE, cents bigint)")
    orders.database.insert("instants", rows)
    orders.source(source)
    orders.declare(slice={"column": "order_date", "unit": "day", "timezone": zone})
    return orders


@pytest.mark.parametrize("session_zone", ["UTC", "Asia/Kolkata", NEW_YORK])
@pytest.mark.parametrize(("zone", "days"), [(NEW_YORK, IN_NEW_YORK), ("UTC", IN_UTC)], ids=["New York", "UTC"])
def test_t15_1_days_are_days_of_the_contracts_zone_in_every_session(
    empty_orders: Orders, zone: str, days: list[Row], session_zone: str
) -> None:
    empty_orders.database.set_session_zone(session_zone)
    orders = zoned(empty_orders, zone)

    orders.publish(f"{D1}..{D3}", added=len(days), after=days)

    answer = orders.verify(f"{D1}..{D3}")
    assert answer.repeatable and answer.equals_source
    for day in (D1, D2, D3):
        orders.unchanged(day)


def test_the_zone_of_the_callers_session_is_as_it_was(empty_orders: Orders) -> None:
    connection = empty_orders.database.connection
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    zoned(empty_orders, NEW_YORK).run(f"{D1}..{D3}")
    assert empty_orders.database.rows("SELECT current_setting('TimeZone')") == [("Asia/Kolkata",)]


def test_t16_5_rows_of_another_day_rule_are_refused_and_of_one_rule_are_there_once(empty_orders: Orders) -> None:
    by_utc = BY_SESSION_DAY.replace("CAST(order_ts AS DATE)", "CAST(timezone('UTC', order_ts) AS DATE)")
    orders = zoned(empty_orders, NEW_YORK, source=by_utc)

    error = orders.refuses(D2, "outside_range")
    assert D3 in found(error) and "amount_cents 400" in found(error)

    orders.source(BY_SESSION_DAY)
    for day in (D1, D2, D3):
        orders.run(day)
    orders.unchanged(f"{D1}..{D3}")
    assert orders.database.rows("SELECT sum(amount_cents) FROM daily_orders") == [(3480,)]


def test_t15_5_a_day_without_a_midnight_begins_when_its_clock_does(empty_orders: Orders) -> None:
    rows = [("2018-11-04 02:59:59+00", 5), ("2018-11-04 03:00:00+00", 6)]
    orders = zoned(empty_orders, "America/Sao_Paulo", rows)

    after = [("2018-11-03", "web", 1, 5), ("2018-11-04", "web", 1, 6)]
    orders.publish("2018-11-03..2018-11-04", added=2, after=after)
    orders.unchanged("2018-11-04")


@pytest.mark.parametrize(
    ("zone", "day", "before", "early", "late"),
    [
        ("America/Havana", "2024-11-03", "2024-11-03 03:59:59", "2024-11-03 04:30:00", "2024-11-03 05:30:00"),
        ("Atlantic/Azores", "2024-10-27", "2024-10-26 23:59:59", "2024-10-27 00:30:00", "2024-10-27 01:30:00"),
    ],
)
@pytest.mark.parametrize("bounds", [":start_instant AND order_ts < :end_instant", ":start AND order_ts <= :end"])
def test_a_day_whose_midnight_is_shown_twice_begins_at_the_first(
    empty_orders: Orders, zone: str, day: str, before: str, early: str, late: str, bounds: str
) -> None:
    """The clock goes back at 01:00 to 00:00: 00:30 is shown twice, and both are of the new day."""
    orders = zoned(empty_orders, zone, [(f"{before}+00", 4), (f"{early}+00", 5), (f"{late}+00", 6)])
    if ":end_instant" not in bounds:
        orders.make_target("order_date timestamptz, channel varchar, order_count bigint, amount_cents bigint")
    value = "CAST(order_ts AS DATE)" if ":end_instant" in bounds else "date_trunc('day', order_ts)"
    source = BY_SESSION_DAY.replace(":start_instant AND order_ts < :end_instant", bounds)
    orders.source(source.replace("CAST(order_ts AS DATE)", value))
    yesterday = f"{date.fromisoformat(day) - timedelta(days=1)}"

    for each, orders_of, cents in ((day, 2, 11), (yesterday, 1, 4)):
        run = orders.run(each)
        assert run.diff is not None and run.diff.totals["amount_cents"].after == cents
        assert run.diff.totals["order_count"].after == orders_of

    assert orders.run(f"{yesterday}..{day}").outcome is Outcome.UNCHANGED
    assert orders.database.rows("SELECT sum(amount_cents) FROM daily_orders") == [(15,)]


@only("duckdb", "it reads files")
@pytest.mark.parametrize("kind", ["instants", "local"])
def test_t15_6_instants_and_declared_local_times_of_a_file_give_the_same_days(
    empty_orders: Orders, tmp_path: Path, kind: str
) -> None:
    orders = zoned(empty_orders, NEW_YORK)
    path = str(tmp_path / f"{kind}.parquet")
    column = "order_ts" if kind == "instants" else f"timezone('{NEW_YORK}', order_ts) AS order_ts"
    orders.database.execute(f"COPY (SELECT {column}, cents FROM instants) TO '{path}' (FORMAT parquet)")
    instant = "order_ts" if kind == "instants" else f"timezone('{NEW_YORK}', order_ts)"
    orders.source(
        f"SELECT CAST({instant} AS DATE) AS order_date, 'web' AS channel, count(*) AS order_count,"
        f" sum(cents) AS amount_cents FROM read_parquet('{path}')"
        f" WHERE {instant} >= :start_instant AND {instant} < :end_instant GROUP BY ALL"
    )

    orders.publish(f"{D1}..{D3}", added=3, after=IN_NEW_YORK)


def test_t15_6_an_instant_is_not_taken_for_a_local_time_that_nobody_declared(empty_orders: Orders) -> None:
    orders = zoned(empty_orders, NEW_YORK)
    orders.make_target("order_date timestamp, channel varchar, order_count bigint, amount_cents bigint")
    orders.source(BY_SESSION_DAY.replace("CAST(order_ts AS DATE)", "date_trunc('day', order_ts)"))

    error = orders.refuses(f"{D1}..{D3}", "source_type")
    source, target = (orders.database.type_name(each) for each in ("timestamptz", "timestamp"))
    assert f"{source} in the source and {target} in" in found(error)

    declared = f"date_trunc('day', timezone('{NEW_YORK}', order_ts))"
    orders.source(BY_SESSION_DAY.replace("CAST(order_ts AS DATE)", declared))
    after = [(f"{day} 00:00:00", *rest) for day, *rest in IN_NEW_YORK]
    orders.publish(f"{D1}..{D3}", added=3, after=[tuple(row) for row in after])


HOURLY = """
SELECT date_trunc('hour', order_ts) AS order_hour, sum(cents) AS amount_cents
FROM instants WHERE order_ts >= :start_instant AND order_ts < :end_instant GROUP BY 1
"""
BY_OFFSET = HOURLY.replace(
    "date_trunc('hour', order_ts)", "to_timestamp(floor(extract(epoch FROM order_ts + {0}) / 3600) * 3600) - {0}"
)


def hourly(engine: Database, zone: str, source: str, column: str = "TIMESTAMP WITH TIME ZONE") -> Target:
    engine.execute("CREATE TABLE instants (order_ts TIMESTAMP WITH TIME ZONE, cents bigint)")
    engine.execute(f"CREATE TABLE hourly (order_hour {column}, amount_cents bigint)")
    declaration = {
        "table": "hourly",
        "source": "source.sql",
        "grain": ["order_hour"],
        "slice": {"column": "order_hour", "unit": "hour", "timezone": zone},
        "measures": ["amount_cents"],
        "guards": ALLOWED,
    }
    return Target(engine, "hourly", declaration, source)


@pytest.mark.parametrize(
    ("zone", "day", "first", "hours"),
    [
        (NEW_YORK, "2024-03-10", "2024-03-10 05:00:00", 23),
        (NEW_YORK, "2024-11-03", "2024-11-03 04:00:00", 25),
        (NEW_YORK, "2024-07-01", "2024-07-01 04:00:00", 24),
        ("Asia/Kolkata", "2024-03-10", "2024-03-09 18:30:00", 24),
        ("Europe/Amsterdam", "2024-10-27", "2024-10-26 22:00:00", 25),
        ("UTC", "2024-03-10", "2024-03-10 00:00:00", 24),
    ],
)
def test_a_day_has_as_many_hours_as_its_clock_shows(
    engine: Database, zone: str, day: str, first: str, hours: int
) -> None:
    shift = "INTERVAL '30 minutes'" if zone == "Asia/Kolkata" else "INTERVAL '0 minutes'"
    target = hourly(engine, zone, BY_OFFSET.format(shift))
    engine.execute(
        "CREATE VIEW utc_hours AS SELECT timezone('UTC', order_hour) AS order_hour, amount_cents FROM hourly"
    )
    # One cent at the first and one at the last microsecond of every hour, and of the hour before and after the day.
    engine.execute(
        f"INSERT INTO instants SELECT timezone('UTC', TIMESTAMP '{first}') + h * INTERVAL '1 hour' + m, 1"
        f" FROM generate_series(-1, {hours}) AS hours (h),"
        " (VALUES (INTERVAL '0 seconds'), (INTERVAL '3599.999999 seconds')) AS edges (m)"
    )
    engine.execute(
        f"INSERT INTO hourly SELECT timezone('UTC', TIMESTAMP '{first}') + h * INTERVAL '1 hour', 77"
        f" FROM (VALUES (-1), ({hours})) AS neighbours (h)"
    )

    run = target.run(day)

    assert run.scope.count == hours and run.diff is not None and run.diff.counts.added == hours
    target.unchanged(day)
    expected = engine.rows(
        f"SELECT TIMESTAMP '{first}' + h * INTERVAL '1 hour', CASE WHEN h IN (-1, {hours}) THEN 77 ELSE 2 END"
        f" FROM generate_series(-1, {hours}) AS hours (h) ORDER BY 1"
    )
    assert engine.rows("SELECT * FROM utc_hours ORDER BY 1") == expected


@pytest.mark.parametrize(
    ("source", "is_warned"),
    [
        pytest.param(HOURLY, True, marks=only("duckdb", "its date_trunc makes one hour of the two")),
        pytest.param(HOURLY, False, marks=only("postgresql", "its date_trunc tells the two hours apart")),
        (BY_OFFSET.format("INTERVAL '0 minutes'"), False),
    ],
)
def test_an_hour_shown_twice_that_is_counted_once_is_told(engine: Database, source: str, is_warned: bool) -> None:
    """2024-11-03 01:30 is shown twice in New York; where both are counted as the later hour, no row is missing."""
    target = hourly(engine, NEW_YORK, source)
    engine.insert("instants", [("2024-11-03 05:30:00+00", 3), ("2024-11-03 06:30:00+00", 4)])
    run = target.run("2024-11-03")
    told = [text for text in run.warnings if "date_trunc('hour'" in text]
    assert [text.partition(" has no rows")[0] for text in told] == (["2024-11-03T01:00-04:00"] if is_warned else [])


def test_hours_need_instants_or_utc(engine: Database) -> None:
    target = hourly(engine, NEW_YORK, HOURLY, column="TIMESTAMP")
    error = target.refuses("2024-03-10", "target_type")
    assert "an hour can occur twice" in found(error)


def test_hours_of_a_column_declared_utc(engine: Database) -> None:
    target = hourly(
        engine,
        "UTC",
        HOURLY.replace("date_trunc('hour', order_ts)", "date_trunc('hour', timezone('UTC', order_ts))"),
        column="TIMESTAMP",
    )
    engine.insert("instants", [("2024-03-10 02:59:59.999999+00", 3), ("2024-03-10 03:00:00+00", 4)])
    target.publish("2024-03-10T02:00", added=1, after=[("2024-03-10 02:00:00", 3)])
    target.publish(
        "2024-03-10T02:00..2024-03-10T03:00",
        added=1,
        unchanged=1,
        after=[("2024-03-10 02:00:00", 3), ("2024-03-10 03:00:00", 4)],
    )


@pytest.mark.parametrize(
    ("day", "begins", "ends"),
    [
        ("2024-03-10", "2024-03-10 05:00:00", "2024-03-11 04:00:00"),
        ("2024-11-03", "2024-11-03 04:00:00", "2024-11-04 05:00:00"),
    ],
    ids=["23 hours", "25 hours"],
)
def test_a_day_of_23_or_25_hours_owns_exactly_its_instants(engine: Database, day: str, begins: str, ends: str) -> None:
    """The slice column itself holds instants: local midnights, which are 23 or 25 hours apart."""
    engine.execute("CREATE TABLE instants (order_ts TIMESTAMP WITH TIME ZONE, cents bigint)")
    engine.execute("CREATE TABLE daily (order_day TIMESTAMP WITH TIME ZONE, amount_cents bigint)")
    source = (
        "SELECT date_trunc('day', order_ts) AS order_day, sum(cents) AS amount_cents FROM instants"
        " WHERE order_ts BETWEEN :start AND :end GROUP BY 1"
    )
    declaration: dict[str, Any] = {
        "table": "daily",
        "source": "source.sql",
        "grain": ["order_day"],
        "slice": {"column": "order_day", "unit": "day", "timezone": NEW_YORK},
        "measures": ["amount_cents"],
        "guards": ALLOWED,
    }
    target = Target(engine, "daily", declaration, source)
    for moment, cents in ((begins, 1), (ends, 1000)):
        engine.execute(
            f"INSERT INTO instants SELECT timezone('UTC', TIMESTAMP '{moment}') + m * INTERVAL '1 microsecond',"
            f" c * {cents}"
            " FROM (VALUES (-1, 10), (0, 1)) AS edges (m, c)"
        )
    engine.execute(
        f"INSERT INTO daily SELECT timezone('UTC', TIMESTAMP '{ends}'), 77"
        f" UNION ALL SELECT timezone('UTC', TIMESTAMP '{begins}') - INTERVAL '24 hours', 78"
    )
    days = "SELECT timezone('UTC', order_day) AS utc, amount_cents FROM daily ORDER BY utc"
    neighbours = engine.rows(days)

    run = target.run(day)

    # Its first microsecond (1 cent) and the last before the next midnight (10 times 1000).
    assert engine.rows(days) == ordered([*neighbours, (begins, 10001)])
    assert run.diff is not None and run.diff.counts.added == 1
    target.versions = lambda: engine.rows(f"SELECT {engine.place}, amount_cents FROM daily ORDER BY 1")  # type: ignore[method-assign]
    target.unchanged(day)


def test_the_last_hour_that_is_shown_twice_belongs_to_its_day(engine: Database) -> None:
    """In Havana clocks go back at 01:00, so the first hour of 2024-11-03 is shown twice."""
    target = hourly(engine, "America/Havana", BY_OFFSET.format("INTERVAL '0 minutes'"))
    engine.execute(
        "CREATE VIEW utc_hours AS SELECT timezone('UTC', order_hour) AS order_hour, amount_cents FROM hourly"
    )
    engine.insert(
        "instants", [("2024-11-03 04:30:00+00", 1), ("2024-11-03 05:30:00+00", 2), ("2024-11-04 04:59:59+00", 4)]
    )

    run = target.run("2024-11-03")

    assert run.scope.count == 25
    assert engine.rows("SELECT * FROM utc_hours ORDER BY 1") == [
        ("2024-11-03 04:00:00", 1),
        ("2024-11-03 05:00:00", 2),
        ("2024-11-04 04:00:00", 4),
    ]
    labels = [label for label, state in target.slices(run.id) if state == "published"]
    assert len(set(labels)) == 3
    for label in labels:
        assert target.run(label).scope.count == 1


def test_duckdb_itself_reads_session_days_by_session_zone() -> None:
    """Why the zone is pinned: without it the same SELECT gives other days in another session."""
    days = set()
    for zone in ("UTC", NEW_YORK):
        with duckdb.connect() as connection:
            connection.execute(f"SET TimeZone = '{zone}'")
            days.add(str(connection.execute("SELECT CAST(TIMESTAMPTZ '2024-03-02 03:30:00+00' AS DATE)").fetchone()))
    assert len(days) == 2


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", NEW_YORK])
def test_an_example_of_a_refusal_tells_instants_as_a_diff_does(engine: Database, zone: str) -> None:
    """In UTC, whatever the contract's zone is: 01:00 UTC is 02:00 or 03:00 in Amsterdam, and 21:00 in New York."""
    engine.execute("CREATE TABLE readings (read_at TIMESTAMP WITH TIME ZONE, meter varchar, n bigint)")
    declaration = {
        "table": "readings",
        "source": "source.sql",
        "grain": ["read_at", "meter"],
        "slice": {"column": "read_at", "unit": "hour", "timezone": zone},
        "measures": {"n": {"min": 0}},
    }
    source = (
        "SELECT TIMESTAMPTZ '2025-10-26 01:00:00+00' AS read_at, 'm0' AS meter, {} AS n"
        " WHERE :start_instant < :end_instant AND :start <= :end"
    )
    range = "2025-10-26T01:00Z"
    target = Target(engine, "readings", declaration, source.format(4))
    diff = target.plan(range).diff
    assert diff is not None
    assert [group.key["read_at"] for group in diff.groups] == ["2025-10-26 01:00:00+00"]
    target.source(source.format(-1))
    assert "(2025-10-26 01:00:00+00, m0) n -1" in found(target.refuses(range, "measure_minimum"))
    target.source(f"{source.format(1)} UNION ALL {source.format(1)}")
    assert "(2025-10-26 01:00:00+00, m0) has 2 rows" in found(target.refuses(range, "key_repeated"))
