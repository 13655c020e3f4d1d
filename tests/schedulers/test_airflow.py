"""A real Airflow runs the DAG files of the examples; what it leaves in the shop was added up by hand.

One driver in Airflow's own environment runs every case, each in a shop of its own (`airflow_driver.py`); the tests read
what became of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

import reslice
from tests.schedulers import shops

HERE = Path(__file__).parent
BUSY = ["bash_busy", "python_busy"]
CASES = [
    "bash", "python", "weekly", "monthly", "spring", "autumn", "at_six", "six_in_new_york",
    "bash_stopped", "python_stopped", "only_triggers", "weeks_from_sunday", "days_from_six",
    "no_such_target", "ds_to_next_ds", "by_hand", *BUSY,
]  # fmt: skip
"""The cases of the driver, each with a shop of its name."""
MONDAY = [("2026-01-05", "store", 1, 500), ("2026-01-05", "web", 2, 2700)]
OUTSIDE = ("2026-01-04", "web", 9, 9999)
"""A row of the day before, wrong on purpose: no run of Monday may touch it."""
VANISHED = ("2026-01-07", "web", 3, 4000)
"""A row whose orders are gone: its day would become empty, and a guard stops that."""


def put(row: tuple[str, str, int, int]) -> str:
    return f"INSERT INTO daily_orders VALUES {row}"


def drive(folder: Path) -> None:
    programs = shops.environment_of("airflow")
    for case in CASES:
        shop = shops.make_shop(folder / case)
        shops.execute(shop, f"{put(OUTSIDE)}; {put(VANISHED)}")
        shops.without_waiting(shop)
    dags = folder / "dags"
    dags.mkdir()
    for path in [*(shops.EXAMPLES / "airflow").glob("*.py"), HERE / "airflow_traps.py"]:
        copy(path, dags)
    environment = shops.variables(
        folder,
        PATH=f"{programs}:/usr/bin:/bin",
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
    )
    shops.drive([programs / "airflow", "db", "migrate"], environment, folder / "migrate.log")
    driver: list[str | Path] = [programs / "python", HERE / "airflow_driver.py", dags, folder]
    shops.drive(driver, environment, folder / "driver.log")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shops.environment_of("airflow")
    return shops.once(tmp_path_factory, "airflow", drive)


@pytest.fixture(scope="module")
def answers(work: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((work / "answers.json").read_text())
    return read


def ends(answers: dict[str, Any], case: str) -> list[tuple[str, int]]:
    """Return the state and the number of tries of each run of a case."""
    return [(run["state"], run["tries"]) for run in answers["runs"][case]]


@pytest.mark.parametrize("case", ["bash", "python"])
def test_a_day_is_recomputed_and_the_same_date_again_changes_nothing(
    case: str, work: Path, answers: dict[str, Any]
) -> None:
    assert ends(answers, case) == [("success", 1), ("success", 1)]
    assert shops.rows(work / case, "daily_orders") == [OUTSIDE, *MONDAY, VANISHED]
    assert shops.states(work / case) == [("2026-01-05", "published"), ("2026-01-05", "unchanged")]


@pytest.mark.parametrize(
    ("case", "table", "range", "expected"),
    [
        ("weekly", "weekly_orders", "2026-W02", [("2026-01-05", "store", 2, 900), ("2026-01-05", "web", 3, 3000)]),
        ("monthly", "monthly_orders", "2026-01", [("2026-01-01", "store", 2, 900), ("2026-01-01", "web", 5, 4900)]),
        ("spring", "new_york_orders", "2026-03-08", [("2026-03-08", "web", 2, 250)]),
        ("autumn", "new_york_orders", "2026-11-01", [("2026-11-01", "store", 2, 330)]),
        ("six_in_new_york", "new_york_orders", "2026-03-08", [("2026-03-08", "web", 2, 250)]),
        ("at_six", "daily_orders", "2026-01-05", [OUTSIDE, *MONDAY, VANISHED]),
    ],
)
def test_a_timetable_recomputes_exactly_its_slices(
    case: str, table: str, range: str, expected: list[Any], work: Path, answers: dict[str, Any]
) -> None:
    assert ends(answers, case) == [("success", 1)]
    assert shops.states(work / case) == [(range, "published")]
    assert shops.rows(work / case, table) == expected


@pytest.mark.parametrize(
    ("case", "interval"),
    [
        ("spring", ["2026-03-08 05:00:00+00:00", "2026-03-09 04:00:00+00:00"]),  # 23 hours
        ("autumn", ["2026-11-01 04:00:00+00:00", "2026-11-02 05:00:00+00:00"]),  # 25 hours
        ("at_six", ["2026-01-05 06:00:00+00:00", "2026-01-06 06:00:00+00:00"]),
        ("only_triggers", ["2026-01-06 00:00:00+00:00", "2026-01-06 00:00:00+00:00"]),
        ("weeks_from_sunday", ["2026-01-04 00:00:00+00:00", "2026-01-11 00:00:00+00:00"]),
    ],
)
def test_the_data_interval_is_the_one_the_page_speaks_of(
    case: str, interval: list[str], answers: dict[str, Any]
) -> None:
    assert [run["interval"] for run in answers["runs"][case]] == [interval]


@pytest.mark.parametrize(
    ("case", "target", "ranges"),
    [
        ("daily_orders", "daily_orders", ["2026-01-01", "2026-01-02", "2026-01-03"]),
        ("weekly_orders", "weekly_orders", ["2026-W02", "2026-W03", "2026-W04"]),
        ("monthly_orders", "monthly_orders", ["2026-01", "2026-02"]),
        ("spring", "new_york_orders", ["2026-03-07", "2026-03-08", "2026-03-09"]),
    ],
)
def test_the_runs_that_airflow_schedules_cover_slice_after_slice(
    case: str, target: str, ranges: list[str], answers: dict[str, Any], shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_DATABASE", f"duckdb:///{shop / 'shop.duckdb'}")
    handle = reslice.open(shop / "reslice.yml").target(target)
    intervals = answers["scheduled"][case][: len(ranges)]
    assert [handle.plan(interval=(start, end)).scope.text for start, end in intervals] == ranges


def test_times_are_rendered_in_utc_whatever_the_zone_of_the_timetable(work: Path, answers: dict[str, Any]) -> None:
    rendered = 'reslice run new_york_orders --interval "2026-03-08 05:00:00+00:00" "2026-03-09 04:00:00+00:00"'
    assert rendered in (work / "driver.log").read_text()


def test_a_cron_string_schedules_intervals_that_are_empty(answers: dict[str, Any]) -> None:
    intervals = answers["scheduled"]["only_triggers"]
    assert intervals and all(start == end for start, end in intervals)


@pytest.mark.parametrize("case", ["bash_stopped", "python_stopped"])
def test_a_stop_is_not_tried_again(case: str, work: Path, answers: dict[str, Any]) -> None:
    assert ends(answers, case) == [("failed", 1)]
    assert shops.states(work / case) == [("2026-01-07", "stopped")]
    assert shops.rows(work / case, "daily_orders") == [OUTSIDE, VANISHED]
    said = (work / "driver.log").read_text()
    assert "stopped[empty_slice, total_change]: daily_orders for 2026-01-07, 1 slice" in said
    assert "AirflowFailException: stopped[empty_slice]" in said


@pytest.mark.parametrize("case", ["only_triggers", "weeks_from_sunday", "days_from_six", "no_such_target"])
def test_what_is_misused_or_refused_is_not_tried_again(case: str, work: Path, answers: dict[str, Any]) -> None:
    assert ends(answers, case) == [("failed", 1)]
    assert shops.rows(work / case, "daily_orders") == [OUTSIDE, VANISHED]
    assert shops.rows(work / case, "weekly_orders") == []


@pytest.mark.parametrize("case", ["ds_to_next_ds", "by_hand"])
def test_a_date_that_airflow_does_not_have_fails_the_task_before_reslice_is_started(
    case: str, work: Path, answers: dict[str, Any]
) -> None:
    assert [run["state"] for run in answers["runs"][case]] == ["failed"]
    assert shops.rows(work / case, "daily_orders") == [OUTSIDE, VANISHED]
    missing = {"ds_to_next_ds": "next_ds", "by_hand": "data_interval_start"}[case]
    assert f"'{missing}' is undefined" in (work / "driver.log").read_text()


def test_a_range_from_ds_to_next_ds_would_be_two_days(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE", f"duckdb:///{shop / 'shop.duckdb'}")
    orders = reslice.open(shop / "reslice.yml").target("daily_orders")
    assert orders.plan("2026-01-05..2026-01-06").scope.count == 2
    assert orders.plan(interval=("2026-01-05", "2026-01-06")).scope.count == 1


def test_the_log_says_what_is_wrong_with_an_interval(work: Path) -> None:
    said = (work / "driver.log").read_text()
    assert "the interval is empty: its end is not included; a scheduler needs a timetable that has data" in said
    assert "2026-01-04 is not the first day of a week: 2026-W01 begins on 2025-12-29" in said
    assert "2026-01-05 06:00:00+00:00 is within 2026-01-05, in UTC" in said
    assert "reslice.yml has no target nightly_orders" in said


@pytest.mark.parametrize("case", BUSY)
def test_a_busy_database_is_tried_again_and_the_second_try_publishes(
    case: str, work: Path, answers: dict[str, Any]
) -> None:
    assert ends(answers, case) == [("success", 2)]
    assert shops.rows(work / case, "daily_orders") == [OUTSIDE, *MONDAY, VANISHED]
    assert shops.states(work / case) == [("2026-01-05", "published")]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6, 130, 143])
def test_only_4_and_6_are_tried_again(code: int, answers: dict[str, Any]) -> None:
    expected = {0: ("success", 1), 4: ("failed", 4), 6: ("failed", 4)}  # a first try and three more
    assert ends(answers, f"exit_{code}") == [expected.get(code, ("failed", 1))]
