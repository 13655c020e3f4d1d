"""The SQL of the retail example, run in a real DuckDB, against the oracle and against figures settled by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reslice.lab import sketches
from reslice.retail import load, oracle
from reslice.retail.oracle import Event, Method, Range, Start

DAY1, DAY2, DAY3 = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)
FIRST_LOAD = datetime(2026, 1, 4, tzinfo=UTC)
SECOND_LOAD = datetime(2026, 1, 5, tzinfo=UTC)
SQL = load.PROJECT / "sql"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty pipeline in memory, in a session zone in which a day mistaken for an instant would show."""
    with duckdb.connect(":memory:") as opened:
        opened.execute("SET TimeZone = 'Pacific/Auckland'")
        load.create_pipeline(opened)
        yield opened


@pytest.fixture
def before(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    load.load_events(connection, load.initial_events(), loaded_at=FIRST_LOAD)
    return connection


@pytest.fixture
def now(before: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    load.load_events(before, load.follow_up_events(), loaded_at=SECOND_LOAD)
    return before


def run_file(connection: duckdb.DuckDBPyConnection, path: Path, **values: Any) -> list[tuple[Any, ...]]:
    """Run the one statement of a file with its named values bound."""
    text = re.sub(r":(start|end|since)\b", r"$\1", path.read_text(encoding="utf-8"))
    return connection.execute(text, values).fetchall()


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def facts(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return rows(
        connection,
        "SELECT order_id, order_date, channel, amount_cents, source_version, event_id FROM orders_fact ORDER BY ALL",
    )


def expected_facts(winners: tuple[oracle.Fact, ...]) -> list[tuple[Any, ...]]:
    return [(*fact[:5], fact.event_id) for fact in winners]


def rejected(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return sorted(
        rows(connection, "SELECT event_id, payloads, reasons FROM rejected_events"),
        key=lambda row: (row[0] or "", row[2]),
    )


def expected_rejected(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(each.event_id, each.payloads, "; ".join(each.reasons)) for each in oracle.sort_out(events).rejected]


def affected(connection: duckdb.DuckDBPyConnection, since: datetime) -> set[date]:
    return {row[0] for row in run_file(connection, SQL / "affected.sql", since=since)}


def add(connection: duckdb.DuckDBPyConnection, *events: Event, loaded_at: datetime = FIRST_LOAD) -> None:
    load.load_events(connection, [event._asdict() for event in events], loaded_at=loaded_at)


def event(event_id: str | None, **fields: object) -> Event:
    """Return a valid event of order o1, with some fields made different."""
    usual = Event(event_id, "o1", "2026-01-01", "web", 100, 1, "2026-01-01T09:00:00Z")
    return usual._replace(**fields)  # type: ignore[arg-type]


def fill(connection: duckdb.DuckDBPyConnection, table: oracle.Table) -> None:
    connection.executemany("INSERT INTO daily_orders VALUES (?, ?, ?, ?)", [list(row) for row in table])


def target(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return rows(connection, "SELECT * FROM daily_orders ORDER BY ALL")


# --- both states of the example -------------------------------------------------------------------------------------


def test_the_facts_before_the_follow_up(before: duckdb.DuckDBPyConnection) -> None:
    assert facts(before) == expected_facts(oracle.facts_before())


def test_the_facts_after_the_follow_up(now: duckdb.DuckDBPyConnection) -> None:
    assert facts(now) == expected_facts(oracle.facts_now())
    assert [row[5] for row in facts(now)] == ["e8", "e2", "e3", "e11", "e5", "e10"]


@pytest.mark.parametrize(("state", "start"), [("before", Start.BEFORE_FOLLOW_UP), ("now", Start.CURRENT)])
def test_the_mart_holds_the_right_target(state: str, start: Start, request: pytest.FixtureRequest) -> None:
    connection = request.getfixturevalue(state)
    assert rows(connection, "SELECT * FROM daily_channel_mart ORDER BY ALL") == list(oracle.target_at(start))


def test_the_rejected_events_before_the_follow_up(before: duckdb.DuckDBPyConnection) -> None:
    assert rejected(before) == expected_rejected(oracle.initial_events())


def test_the_rejected_events_after_the_follow_up(now: duckdb.DuckDBPyConnection) -> None:
    assert rejected(now) == expected_rejected(oracle.all_events())
    assert rejected(now) == [
        ("e12", 1, "order_date is no calendar date: 2026-02-30"),
        ("e6", 1, "amount_cents is negative: -500"),
        ("e7", 1, "order_id is missing"),
    ]


def test_fifteen_events_are_twelve_payloads_nine_of_them_valid(now: duckdb.DuckDBPyConnection) -> None:
    assert rows(now, "SELECT count(*), sum(arrivals)::INT FROM event_payloads") == [(12, 15)]
    assert rows(now, "SELECT count(*) FROM valid_events") == [(9,)]


def test_loading_the_follow_up_again_changes_no_fact(now: duckdb.DuckDBPyConnection) -> None:
    before = facts(now)
    load.load_events(now, load.follow_up_events(), loaded_at=SECOND_LOAD + timedelta(days=1))
    assert facts(now) == before


# --- what the contract reads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [*oracle.RANGES, oracle.WHOLE, Range(DAY1, DAY1)], ids=str)
def test_the_source_recomputes_the_closed_range(now: duckdb.DuckDBPyConnection, days: Range) -> None:
    found = sorted(run_file(now, SQL / "daily_orders.sql", start=days.start, end=days.end))
    assert found == list(oracle.within(oracle.target_at(Start.CURRENT), days))


@pytest.mark.parametrize("days", [*oracle.RANGES, oracle.WHOLE], ids=str)
def test_the_control_adds_up_per_day(now: duckdb.DuckDBPyConnection, days: Range) -> None:
    found = {row[0]: row[1:] for row in run_file(now, SQL / "control.sql", start=days.start, end=days.end)}
    per_day = {DAY1: (1, 4500), DAY2: (3, 24600), DAY3: (2, 5600)}
    assert found == {day: figures for day, figures in per_day.items() if day in days}


def test_a_date_filter_before_the_winner_would_bring_the_moved_order_back(now: duckdb.DuckDBPyConnection) -> None:
    filter_first = """
        SELECT order_id, channel FROM valid_events WHERE order_day = DATE '2026-01-01'
        QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY source_version DESC) = 1 ORDER BY order_id
    """
    assert rows(now, filter_first) == [("o100", "web"), ("o101", "store")]
    assert run_file(now, SQL / "daily_orders.sql", start=DAY1, end=DAY1) == [(DAY1, "store", 1, 4500)]


def test_the_target_has_no_unique_key(connection: duckdb.DuckDBPyConnection) -> None:
    kinds = rows(
        connection, "SELECT DISTINCT constraint_type FROM duckdb_constraints() WHERE table_name = 'daily_orders'"
    )
    assert kinds == [("NOT NULL",)]


# --- events the example does not have -------------------------------------------------------------------------------


def test_one_id_with_two_payloads_is_a_conflict_in_one_row(connection: duckdb.DuckDBPyConnection) -> None:
    add(connection, event("a"), event("b", source_version=2), event("b", source_version=2, amount_cents=-7))
    assert rejected(connection) == [("b", 2, "amount_cents is negative: -7; event_id has different payloads: 2")]
    assert [row[5] for row in facts(connection)] == ["a"]


def test_a_conflict_is_found_across_orders(connection: duckdb.DuckDBPyConnection) -> None:
    add(connection, event("a"), event("a", order_id="o2"))
    assert rejected(connection) == [("a", 2, "event_id has different payloads: 2")]
    assert facts(connection) == []


def test_a_missing_version_never_wins_even_alone(connection: duckdb.DuckDBPyConnection) -> None:
    late = "2027-01-01T00:00:00Z"
    add(connection, event("z", source_version=None, updated_at=late), event("a"))
    add(connection, event("y", source_version=None, order_id="o2"), event("x", updated_at=None, order_id="o3"))
    assert [(row[0], row[5]) for row in facts(connection)] == [("o1", "a")]
    assert rejected(connection) == [
        ("x", 1, "updated_at is missing"),
        ("y", 1, "source_version is missing"),
        ("z", 1, "source_version is missing"),
    ]


def test_equal_versions_and_instants_are_decided_by_the_id_as_text(connection: duckdb.DuckDBPyConnection) -> None:
    add(connection, event("e9", channel="web"), event("e11", channel="store"))
    add(connection, event("e12", order_id="o2", channel="store"), event("e8", order_id="o2", channel="web"))
    assert [(row[0], row[5]) for row in facts(connection)] == [("o1", "e9"), ("o2", "e8")]
    assert affected(connection, FIRST_LOAD) == set()


def test_events_without_an_id_are_rejected_one_by_one(connection: duckdb.DuckDBPyConnection) -> None:
    add(connection, event(None), event(None, amount_cents=-7), event(""))
    assert rejected(connection) == [
        (None, 1, "amount_cents is negative: -7; event_id is missing"),
        (None, 1, "event_id is missing"),
    ]


def mostly(usual: list[Any], *rare: Any) -> st.SearchStrategy[Any]:
    """Draw a usual value nine times of ten, so that most events are valid and reach the winner rule."""
    return st.sampled_from(usual * 9 + list(rare) * max(1, len(usual) // max(1, len(rare))))


EVENTS = st.builds(
    Event,
    event_id=mostly([f"e{number}" for number in range(1, 25)], "", None),
    order_id=mostly(["o1", "o2"], "", None),
    order_date=mostly(["2026-01-01", "2026-01-02"], "2026-02-29", "2026-1-1", "infinity", "", None),
    channel=mostly(["web", "store"], "", None),
    amount_cents=mostly([0, 100, 200], -1, None),
    source_version=mostly([1, 2, 10], None),
    updated_at=mostly(
        ["2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"], "2026-01-01T09:00:00", "2026-13-01T09:00:00Z", "now", None
    ),
)


def as_read(events: list[Event]) -> list[Event]:
    """Return events as the oracle reads them from a file: an empty text is a missing one."""
    return [Event(*(None if value == "" else value for value in each)) for each in events]  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=st.lists(EVENTS, max_size=8), second=st.lists(EVENTS, max_size=6))
def test_pipeline_and_affected_days_agree_with_the_oracle_on_any_events(
    first: list[Event], second: list[Event]
) -> None:
    with duckdb.connect(":memory:") as connection:
        load.create_pipeline(connection)
        if first:
            add(connection, *first, loaded_at=FIRST_LOAD)
        if second:
            add(connection, *second, loaded_at=SECOND_LOAD)
        then, both = as_read(first), as_read(first + second)
        outcome = oracle.sort_out(both)
        assert facts(connection) == expected_facts(outcome.current)
        assert rejected(connection) == expected_rejected(both)
        assert affected(connection, FIRST_LOAD) == set(
            oracle.affected_days(oracle.sort_out(then).current, outcome.current)
        )


# --- affected days --------------------------------------------------------------------------------------------------


def test_the_follow_up_touches_all_three_days(now: duckdb.DuckDBPyConnection) -> None:
    assert affected(now, FIRST_LOAD) == {DAY1, DAY2, DAY3}


def test_nothing_is_affected_once_the_follow_up_is_known(now: duckdb.DuckDBPyConnection) -> None:
    assert affected(now, SECOND_LOAD) == set()


def test_everything_is_affected_since_before_the_first_load(now: duckdb.DuckDBPyConnection) -> None:
    assert affected(now, FIRST_LOAD - timedelta(days=1)) == {DAY1, DAY2, DAY3}


@pytest.mark.parametrize(
    ("event_ids", "days"),
    [
        ({"e8"}, {DAY1, DAY2}),
        ({"e11"}, {DAY2}),
        ({"e10"}, {DAY3}),
        ({"e3", "e12"}, set()),
    ],
    ids=["an order that moves", "an amount", "late, with an old updated_at", "a repeat and a mistake"],
)
def test_each_event_of_the_follow_up_touches_its_own_days(
    before: duckdb.DuckDBPyConnection, event_ids: set[str], days: set[date]
) -> None:
    chosen = [each for each in load.follow_up_events() if each["event_id"] in event_ids]
    load.load_events(before, chosen, loaded_at=SECOND_LOAD)
    assert affected(before, FIRST_LOAD) == days


def test_the_stale_event_touches_nothing_after_the_newer_version(now: duckdb.DuckDBPyConnection) -> None:
    stale = [each for each in load.follow_up_events() if each["event_id"] == "e9"]
    now.execute("DELETE FROM order_events WHERE event_id = 'e9'")
    load.load_events(now, stale, loaded_at=SECOND_LOAD + timedelta(hours=1))
    assert affected(now, SECOND_LOAD) == set()


def test_a_conflict_found_later_touches_the_day_its_order_leaves(before: duckdb.DuckDBPyConnection) -> None:
    add(before, event("e2", order_id="o900", order_date="2026-01-03"), loaded_at=SECOND_LOAD)
    assert affected(before, FIRST_LOAD) == {DAY1}


def test_a_conflict_known_before_touches_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    add(connection, event("a"), event("a", amount_cents=7))
    assert affected(connection, FIRST_LOAD) == set()


def test_an_order_that_only_changes_its_channel_touches_its_day(before: duckdb.DuckDBPyConnection) -> None:
    add(
        before, event("e20", order_id="o101", channel="web", amount_cents=4500, source_version=2), loaded_at=SECOND_LOAD
    )
    assert affected(before, FIRST_LOAD) == {DAY1}


# --- the append, for real -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", list(Start))
@pytest.mark.parametrize("days", oracle.RANGES, ids=str)
@pytest.mark.parametrize("runs", [1, 2])
def test_the_append_does_what_the_oracle_says(
    now: duckdb.DuckDBPyConnection, start: Start, days: Range, runs: int
) -> None:
    fill(now, oracle.target_at(start))
    for _ in range(runs):
        run_file(now, sketches.FOLDER / "append.sql", start=days.start, end=days.end)
    assert target(now) == list(oracle.simulate(start, Method.APPEND, days, runs=runs))


def test_an_enforced_key_makes_the_append_fail_and_keeps_the_table(now: duckdb.DuckDBPyConnection) -> None:
    current = oracle.target_at(Start.CURRENT)
    fill(now, current)
    now.execute("CREATE UNIQUE INDEX one_row_per_group ON daily_orders (order_date, channel)")
    with pytest.raises(duckdb.ConstraintException, match="2026-01-0"):
        run_file(now, sketches.FOLDER / "append.sql", start=DAY1, end=DAY2)
    assert target(now) == list(current)


# --- the loader -----------------------------------------------------------------------------------------------------


def test_the_loader_refuses_an_instant_without_an_offset(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ValueError, match="offset from UTC"):
        load.load_events(connection, load.initial_events(), loaded_at=datetime(2026, 1, 4))
    assert rows(connection, "SELECT count(*) FROM order_events") == [(0,)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"amount_cents": 12.5}, "event 2: amount_cents is 12.5, not a whole number"),
        ({"source_version": True}, "event 2: source_version is True, not a whole number"),
        ({"channel": 7}, "event 2: channel is 7, not text"),
        ({"chanel": "web"}, "event 2: fields are"),
    ],
)
def test_an_event_that_a_column_would_bend_is_not_read(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    good = event("a")._asdict()
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"events": [good, good | fields]}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load.read_events(path)
