"""The figures of the lab: made again by the real DuckDB, and computed again by the oracle, which knows no SQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reslice.lab import PAGE, measure, sketches, states
from reslice.lab.choices import Pattern, every_choice
from reslice.lab.page import page_html
from reslice.retail import oracle
from tests.lab.expected import DEFAULT, SOURCE, STATES, Expected, groups

FOUND: dict[str, Any] = json.loads(states.FILE.read_text(encoding="utf-8"))
BY_ADDRESS: dict[str, dict[str, Any]] = {each["address"]: each for each in FOUND["states"]}


@pytest.fixture(scope="module")
def made_again() -> states.Results:
    return measure.results()


def test_the_committed_figures_are_what_duckdb_answers_byte_for_byte(made_again: states.Results) -> None:
    assert states.FILE.read_bytes() == states.to_text(made_again).encode()


def test_the_committed_page_is_what_those_figures_make_byte_for_byte(made_again: states.Results) -> None:
    assert PAGE.read_bytes() == page_html(made_again).encode()


def test_the_figures_are_read_as_they_were_written() -> None:
    text = states.FILE.read_text(encoding="utf-8")
    assert states.to_text(states.from_text(text)) == text


def test_every_choice_is_there_once_on_a_line_of_its_own() -> None:
    lines = [line for line in states.FILE.read_text(encoding="utf-8").splitlines() if '"address"' in line]
    assert len(lines) == len(FOUND["states"]) == len(STATES) == 48
    assert list(BY_ADDRESS) == [choice.address for choice in every_choice()]
    assert BY_ADDRESS.keys() == STATES.keys()


def as_totals(table: oracle.Table) -> dict[str, int]:
    return oracle.totals(table)._asdict()


def assert_stage(found: dict[str, Any], table: oracle.Table, expected: Expected) -> None:
    assert found["table"] == as_totals(table)
    assert found["range"] == as_totals(oracle.within(table, expected.days))
    assert found["rows"] == [[str(row.order_date), *row[1:]] for row in table]
    assert found["groups"] == [
        {"order_date": day, "channel": channel, **totals._asdict()} for (day, channel), totals in groups(table).items()
    ]


@pytest.mark.parametrize("expected", STATES.values(), ids=STATES)
def test_a_state_is_the_oracles(expected: Expected) -> None:
    found = BY_ADDRESS[expected.address]
    assert [stage["name"] for stage in found["stages"]] == ["before", "after run 1", "after run 2"][: expected.runs + 1]
    for stage, table in zip(found["stages"], expected.tables, strict=True):
        assert_stage(stage, table, expected)
    assert_stage(found["orders"], SOURCE, expected)
    assert found["repeats"] is expected.repeats
    assert found["equal_in_range"] is expected.is_equal_in_range
    assert found["equal_everywhere"] is (expected.tables[-1] == SOURCE)


# Figures that were settled by hand.


@pytest.mark.parametrize(("moment", "rows", "orders", "cents"), [(0, 1, 2, 19000), (1, 2, 4, 38000), (2, 3, 6, 57000)])
def test_the_accident(moment: int, rows: int, orders: int, cents: int) -> None:
    stage = BY_ADDRESS[DEFAULT]["stages"][moment]
    group = {"order_date": "2026-01-02", "channel": "web", "rows": rows, "orders": orders, "cents": cents}
    assert group in stage["groups"]
    assert (
        stage["table"]
        == [
            {"rows": 5, "orders": 6, "cents": 34700},
            {"rows": 8, "orders": 10, "cents": 63800},
            {"rows": 11, "orders": 14, "cents": 92900},
        ][moment]
    )


BEFORE, NOW = "before_follow_up", "current"
FIRST, SECOND = "2026-01-01..2026-01-02", "2026-01-02..2026-01-03"


@pytest.mark.parametrize(
    ("pattern", "days", "start", "cents", "repeats", "is_equal"),
    [
        ("append", FIRST, NOW, 87300, False, False),  # 3 x 29100
        ("append", SECOND, NOW, 90600, False, False),  # 3 x 30200
        ("append", FIRST, BEFORE, 86900, False, False),  # 28700 + 2 x 29100
        ("replace_slice", FIRST, BEFORE, 29100, True, True),
        ("upsert", FIRST, BEFORE, 41100, True, False),  # 29100 + 12000 of the group that is gone
        ("upsert", SECOND, BEFORE, 30200, True, True),  # no group has gone from these days
        ("insert_missing", FIRST, BEFORE, 28700, True, False),  # as before: every key was there
        ("insert_missing", SECOND, BEFORE, 17800, True, False),  # 5200 + 7000 + 3100, and the new 2500
        ("bounds_disagree", FIRST, NOW, 78300, False, False),  # 4500 + 3 x 24600
        ("bounds_disagree", SECOND, NOW, 41400, False, False),  # 24600 + 3 x 5600
        ("bounds_disagree", FIRST, BEFORE, 65900, False, False),  # 4500 + 12200 + 2 x 24600
        ("merge_scoped_delete", FIRST, BEFORE, 29100, True, True),
    ],
)
def test_what_two_runs_of_each_pattern_leave_in_the_range(
    pattern: str, days: str, start: str, cents: int, repeats: bool, is_equal: bool
) -> None:
    found = BY_ADDRESS[f"{pattern}/{days}/twice/{start}"]
    assert found["stages"][-1]["range"]["cents"] == cents
    assert (found["repeats"], found["equal_in_range"]) == (repeats, is_equal)


def test_an_enforced_key_refuses_the_append_and_keeps_the_table() -> None:
    refused = FOUND["enforced_key"]
    assert refused["message"].startswith("Constraint Error: Duplicate key")
    assert refused["before"] == refused["after"] == {"rows": 5, "orders": 6, "cents": 34700}


# The sketches.


@pytest.mark.parametrize("pattern", Pattern)
def test_a_sketch_says_what_it_is_and_has_both_bounds(pattern: Pattern) -> None:
    assert sketches.comment(pattern).startswith("A teaching sketch for throw-away copies: ")
    assert {":start", ":end"} <= set(sketches.statement(pattern).replace(";", " ").split())
    assert "--" not in sketches.statement(pattern)


def test_there_is_no_sketch_that_the_page_does_not_show() -> None:
    assert {path.stem for path in sketches.FOLDER.iterdir()} == {pattern.value for pattern in Pattern}
