"""A real Dagster materialises the assets of the example; what it leaves in the shop was added up by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.schedulers import shops

HERE = Path(__file__).parent
CASES = ["day", "backfill", "zone", "stopped", "busy", "held"]
MONDAY = [("2026-01-05", "store", 1, 500), ("2026-01-05", "web", 2, 2700)]
OUTSIDE = ("2026-01-04", "web", 9, 9999)
"""A row of the day before, wrong on purpose: no run of Monday may touch it."""
VANISHED = ("2026-01-07", "web", 3, 4000)
"""A row whose orders are gone: its day would become empty, and a guard stops that."""


def drive(folder: Path) -> None:
    programs = shops.environment_of("dagster")
    for case in CASES:
        shop = shops.make_shop(folder / case)
        seed = [OUTSIDE, VANISHED] if case == "stopped" else [OUTSIDE]
        shops.execute(shop, f"INSERT INTO daily_orders VALUES {', '.join(map(str, seed))}")
        shops.without_waiting(shop)
    command: list[str | Path] = [programs / "python", HERE / "dagster_driver.py", shops.EXAMPLES / "dagster", folder]
    shops.drive(command, shops.variables(folder, DAGSTER_DISABLE_TELEMETRY="yes"), folder / "driver.log")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shops.environment_of("dagster")
    return shops.once(tmp_path_factory, "dagster", drive)


@pytest.fixture(scope="module")
def answers(work: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((work / "answers.json").read_text())
    return read


def test_a_partition_is_recomputed_and_once_more_changes_nothing(work: Path, answers: dict[str, Any]) -> None:
    assert shops.rows(work / "day", "daily_orders") == [OUTSIDE, *MONDAY]
    assert shops.states(work / "day") == [("2026-01-05", "published"), ("2026-01-05", "unchanged")]
    assert [(run["success"], run["partitions"]) for run in answers["day"]] == [(True, ["2026-01-05"])] * 2


def test_the_materialisation_says_what_the_run_did(answers: dict[str, Any]) -> None:
    (first,), (second,) = (run["metadata"] for run in answers["day"])
    assert first.pop("fingerprint") == second.pop("fingerprint")
    nothing = {"rows": 2, "changed": 0, "removed": 0, "range": "2026-01-05"}
    assert first == {**nothing, "run": "r-0001", "outcome": "published", "added": 2}
    assert second == {**nothing, "run": "r-0002", "outcome": "unchanged", "added": 0}


def test_a_backfill_is_one_closed_range_in_one_commit(work: Path, answers: dict[str, Any]) -> None:
    (run,) = answers["backfill"]
    assert run["success"]
    assert {each["range"] for each in run["metadata"]} == {"2026-01-05..2026-01-12"}
    assert run["partitions"] == [f"2026-01-{day:02}" for day in range(5, 13)]
    assert shops.states(work / "backfill") == [("2026-01-05..2026-01-12", "published")]
    rest = [("2026-01-06", "web", 1, 300), ("2026-01-11", "store", 1, 400), ("2026-01-12", "web", 1, 900)]
    assert shops.rows(work / "backfill", "daily_orders") == [OUTSIDE, *MONDAY, *rest]


def test_a_day_of_23_hours_and_one_of_25(work: Path, answers: dict[str, Any]) -> None:
    assert [run["success"] for run in answers["zone"]] == [True, True]
    expected = [("2026-03-08", "web", 2, 250), ("2026-11-01", "store", 2, 330)]
    assert shops.rows(work / "zone", "new_york_orders") == expected


def test_a_stop_is_not_tried_again(work: Path, answers: dict[str, Any]) -> None:
    (run,) = answers["stopped"]
    assert (run["success"], run["retries"], run["metadata"]) == (False, 0, [])
    (failure,) = run["failures"]
    assert (failure["error"], failure["unchanged"]) == (
        "empty_slice",
        "daily_orders is as it was; nothing was written",
    )
    assert failure["next"].startswith("reslice show r-0001")
    assert shops.rows(work / "stopped", "daily_orders") == [OUTSIDE, VANISHED]


def test_a_busy_database_is_tried_again_and_the_second_try_publishes(work: Path, answers: dict[str, Any]) -> None:
    (run,) = answers["busy"]
    assert (run["success"], run["retries"]) == (True, 1)
    assert shops.rows(work / "busy", "daily_orders") == [OUTSIDE, *MONDAY]


def test_a_database_that_stays_busy_fails_after_three_more_tries(work: Path, answers: dict[str, Any]) -> None:
    (run,) = answers["held"]
    assert (run["success"], run["retries"]) == (False, 3)
    assert shops.rows(work / "held", "daily_orders") == [OUTSIDE]


def test_at_three_the_partition_is_the_day_before(answers: dict[str, Any]) -> None:
    assert answers["nightly"] == "2026-01-05"
