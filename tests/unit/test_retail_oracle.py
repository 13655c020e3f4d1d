"""The oracle of the retail example against every figure that was settled for it by hand."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from datetime import date
from itertools import permutations

import pytest

from reslice.retail import oracle
from reslice.retail.oracle import Event, Method, Range, Start

DAY1, DAY2, DAY3 = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)
FIRST, SECOND = Range(DAY1, DAY2), Range(DAY2, DAY3)

BEFORE = {
    (DAY1, "store"): (1, 1, 4500),
    (DAY1, "web"): (1, 1, 12000),
    (DAY2, "store"): (1, 1, 5200),
    (DAY2, "web"): (1, 1, 7000),
    (DAY3, "app"): (1, 1, 3100),
}
NOW = {
    (DAY1, "store"): (1, 1, 4500),
    (DAY2, "store"): (1, 1, 5600),
    (DAY2, "web"): (1, 2, 19000),
    (DAY3, "app"): (1, 1, 3100),
    (DAY3, "web"): (1, 1, 2500),
}


def event(event_id: str | None, **fields: object) -> Event:
    """Return a valid event of order o1, with some fields made different."""
    usual = Event(event_id, "o1", "2026-01-01", "web", 100, 1, "2026-01-01T09:00:00Z")
    return usual._replace(**fields)  # type: ignore[arg-type]


def winner_ids(*events: Event) -> list[str]:
    return [fact.event_id for fact in oracle.sort_out(events).current]


# --- the events -----------------------------------------------------------------------------------------------------


def test_the_fixture_events_are_those_that_were_settled() -> None:
    events = [each[:6] for each in oracle.all_events()]
    assert events == [
        ("e1", "o100", "2026-01-01", "web", 12000, 1),
        ("e2", "o101", "2026-01-01", "store", 4500, 1),
        ("e3", "o102", "2026-01-02", "web", 7000, 1),
        ("e4", "o103", "2026-01-02", "store", 5200, 1),
        ("e4", "o103", "2026-01-02", "store", 5200, 1),
        ("e5", "o104", "2026-01-03", "app", 3100, 1),
        ("e6", "o105", "2026-01-02", "web", -500, 1),
        ("e7", None, "2026-01-03", "store", 900, 1),
        ("e3", "o102", "2026-01-02", "web", 7000, 1),
        ("e8", "o100", "2026-01-02", "web", 12000, 2),
        ("e8", "o100", "2026-01-02", "web", 12000, 2),
        ("e11", "o103", "2026-01-02", "store", 5600, 2),
        ("e9", "o103", "2026-01-02", "store", 9900, 1),
        ("e10", "o106", "2026-01-03", "web", 2500, 1),
        ("e12", "o107", "2026-02-30", "web", 1000, 1),
    ]
    assert len(oracle.initial_events()) == 8


def test_the_stale_event_is_later_than_the_one_that_beats_it() -> None:
    instants = {each.event_id: each.updated_at or "" for each in oracle.all_events()}
    assert instants["e9"] > instants["e11"]


@pytest.mark.parametrize("name", ["initial_events.json", "follow_up_events.json"])
def test_the_fixture_files_say_that_the_data_are_synthetic(name: str) -> None:
    document = json.loads((oracle.FOLDER / name).read_text(encoding="utf-8"))
    assert "Synthetic" in document["note"]
    assert "not accounting revenue" in document["note"]


def test_what_becomes_of_the_fifteen_events() -> None:
    outcome = oracle.sort_out(oracle.all_events())
    assert outcome.arrivals == 15
    assert outcome.repeats == 3
    assert len(outcome.rejected) == 3
    assert len(outcome.accepted) == 9
    assert outcome.superseded == 3
    assert len(outcome.current) == 6
    assert {fact.event_id for fact in outcome.accepted} - {fact.event_id for fact in outcome.current} == {
        "e1",
        "e4",
        "e9",
    }


def test_the_rejected_events_and_why() -> None:
    rejected = {each.event_id: each.reasons for each in oracle.sort_out(oracle.all_events()).rejected}
    assert rejected == {
        "e6": ("amount_cents is negative: -500",),
        "e7": ("order_id is missing",),
        "e12": ("order_date is no calendar date: 2026-02-30",),
    }


def test_the_winner_of_every_order() -> None:
    winners = {fact.order_id: fact.event_id for fact in oracle.facts_now()}
    assert winners == {"o100": "e8", "o101": "e2", "o102": "e3", "o103": "e11", "o104": "e5", "o106": "e10"}


# --- the rules ------------------------------------------------------------------------------------------------------


def test_every_reason_of_an_event_is_given_at_once() -> None:
    bad = Event("e", None, "2026-1-1", "", -1, None, "yesterday")._replace(channel=None)
    assert oracle.sort_out([bad]).rejected == (
        (
            "e",
            1,
            (
                "amount_cents is negative: -1",
                "channel is missing",
                "order_date is no calendar date: 2026-1-1",
                "order_id is missing",
                "source_version is missing",
                "updated_at is no UTC instant: yesterday",
            ),
        ),
    )


def test_one_id_with_two_payloads_is_rejected_and_takes_no_part() -> None:
    outcome = oracle.sort_out([event("a"), event("b", source_version=2), event("b", source_version=2, amount_cents=7)])
    assert outcome.rejected == (("b", 2, ("event_id has different payloads: 2",)),)
    assert [fact.event_id for fact in outcome.current] == ["a"]


def test_events_without_an_id_are_rejected_one_by_one() -> None:
    outcome = oracle.sort_out([event(None), event(None, amount_cents=7)])
    assert outcome.rejected == ((None, 1, ("event_id is missing",)), (None, 1, ("event_id is missing",)))


def test_a_missing_version_never_wins_even_alone() -> None:
    assert winner_ids(event("z", source_version=None, updated_at="2027-01-01T00:00:00Z"), event("a")) == ["a"]
    assert winner_ids(event("z", source_version=None)) == []


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        (event("a", source_version=2), event("b", updated_at="2027-01-01T00:00:00Z")),
        (event("a", updated_at="2026-01-01T09:00:01Z"), event("b")),
        (event("e9"), event("e11")),
        (event("a", source_version=10), event("b", source_version=9)),
    ],
    ids=["version first", "then instant", "then id, as text", "versions are numbers"],
)
def test_the_order_of_the_winner_rule(winner: Event, loser: Event) -> None:
    for order in permutations([winner, loser]):
        assert winner_ids(*order) == [winner.event_id]


# --- the tables -----------------------------------------------------------------------------------------------------


def test_the_target_before_the_follow_up() -> None:
    table = oracle.target_at(Start.BEFORE_FOLLOW_UP)
    assert oracle.group(table) == BEFORE
    assert oracle.totals(table) == (5, 5, 31800)


def test_the_current_facts_after_the_follow_up() -> None:
    table = oracle.target_at(Start.CURRENT)
    assert oracle.group(table) == NOW
    assert oracle.totals(table) == (5, 6, 34700)


def test_all_three_days_differ_and_are_affected() -> None:
    before, now = oracle.target_at(Start.BEFORE_FOLLOW_UP), oracle.target_at(Start.CURRENT)
    assert oracle.differing_days(before, now) == (DAY1, DAY2, DAY3)
    assert oracle.affected_days(oracle.facts_before(), oracle.facts_now()) == (DAY1, DAY2, DAY3)


def test_the_first_run_after_the_follow_up() -> None:
    plan = oracle.plan_figures(Start.BEFORE_FOLLOW_UP, FIRST)
    assert (plan["changed"], plan["removed"], plan["unchanged"], plan["added"]) == (2, 1, 1, 0)
    assert (plan["range_before"]["rows"], plan["range_after"]["rows"]) == (4, 3)
    assert (plan["table_before"]["rows"], plan["table_after"]["rows"]) == (5, 4)
    assert plan["differing_days_left"] == ["2026-01-03"]


@pytest.mark.parametrize("days", [FIRST, SECOND])
def test_the_run_after_that_changes_nothing(days: Range) -> None:
    plan = oracle.plan_figures(Start.CURRENT, days)
    assert (plan["added"], plan["changed"], plan["removed"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("start", "method", "days", "once", "twice"),
    [
        (Start.CURRENT, Method.APPEND, FIRST, (8, 10, 63800), (11, 14, 92900)),
        (Start.CURRENT, Method.APPEND, SECOND, (9, 11, 64900), (13, 16, 95100)),
        (Start.CURRENT, Method.REPLACE, FIRST, (5, 6, 34700), (5, 6, 34700)),
        (Start.CURRENT, Method.REPLACE, SECOND, (5, 6, 34700), (5, 6, 34700)),
        (Start.BEFORE_FOLLOW_UP, Method.APPEND, FIRST, (8, 9, 60900), (11, 13, 90000)),
        (Start.BEFORE_FOLLOW_UP, Method.APPEND, SECOND, (9, 10, 62000), (13, 15, 92200)),
        (Start.BEFORE_FOLLOW_UP, Method.REPLACE, FIRST, (4, 5, 32200), (4, 5, 32200)),
        (Start.BEFORE_FOLLOW_UP, Method.REPLACE, SECOND, (6, 7, 46700), (6, 7, 46700)),
    ],
)
def test_the_totals_after_one_run_and_two(
    start: Start, method: Method, days: Range, once: tuple[int, int, int], twice: tuple[int, int, int]
) -> None:
    assert oracle.totals(oracle.simulate(start, method, days, runs=1)) == once
    assert oracle.totals(oracle.simulate(start, method, days, runs=2)) == twice


@pytest.mark.parametrize(("runs", "rows", "orders", "cents"), [(0, 1, 2, 19000), (1, 2, 4, 38000), (2, 3, 6, 57000)])
def test_the_accident_two_orders_become_four_then_six(runs: int, rows: int, orders: int, cents: int) -> None:
    table = oracle.simulate(Start.CURRENT, Method.APPEND, FIRST, runs=runs)
    assert oracle.group(table)[DAY2, "web"] == (rows, orders, cents)


def test_replacing_only_the_later_days_leaves_the_moved_order_on_both() -> None:
    table = oracle.simulate(Start.BEFORE_FOLLOW_UP, Method.REPLACE, SECOND, runs=1)
    assert oracle.group(table)[DAY1, "web"] == (1, 1, 12000)
    assert oracle.group(table)[DAY2, "web"] == (1, 2, 19000)


def test_every_simulation_is_printed_with_its_physical_rows() -> None:
    runs = oracle.figures()["runs"]
    assert len(runs) == len({(each["start"], each["method"], each["range"], each["runs"]) for each in runs}) == 48
    for each in runs:
        assert len(each["rows"]) == each["totals"]["rows"]
        assert sum(row["amount_cents"] for row in each["rows"]) == each["totals"]["cents"]


# --- the module -----------------------------------------------------------------------------------------------------


def test_the_module_prints_its_figures_as_json() -> None:
    command = [sys.executable, "-W", "error", "-m", "reslice.retail.oracle"]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert printed == json.loads(json.dumps(oracle.figures()))
    assert printed["current_facts"]["totals"] == {"rows": 5, "orders": 6, "cents": 34700}


def test_the_oracle_imports_only_the_standard_library() -> None:
    tree = ast.parse((oracle.FOLDER / "oracle.py").read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
