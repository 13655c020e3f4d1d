"""The grocery example, with the real command line, against its independent computation in plain Python.

By hour, by day and by month; in a sample of two months with the days around both clock changes and, marked slow, in the
whole year: the targets after the first run and after the corrections, and that the second run wrote exactly the slices
in which a figure differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from examples.grocery import correct, independent, load
from examples.grocery.__main__ import HOUR_EMPTIED
from examples.grocery.independent import Key, Sales

from tests.docs.example_project import not_equal, query, reslice

HOURLY, DAILY, MONTHLY = "hourly_store_sales", "daily_store_sales", "monthly_store_sales"


def hour(month: int, day: int, of_day: int) -> datetime:
    return datetime(2017, month, day, of_day, tzinfo=UTC)


# Read off corrections.json by hand, with the instants of the published data: the hour (in UTC), the New York day and
# the New York month each basket left, and those it went to.
DIFFERING: dict[str, set[Any]] = {
    HOURLY: {
        hour(3, 1, 5), hour(3, 1, 4),    # across midnight and the end of the month
        hour(3, 30, 4), hour(3, 30, 3),
        hour(3, 13, 3), hour(3, 13, 4),  # across the end of the day of 23 hours
        hour(11, 6, 4), hour(11, 6, 5),  # across the end of the day of 25 hours
        hour(3, 1, 16), hour(3, 8, 16),
        hour(7, 4, 16), hour(7, 3, 16),
        hour(3, 20, 16),                 # both amounts
        hour(3, 12, 7), hour(3, 12, 6),  # across the hour that is skipped
        hour(11, 5, 5), hour(11, 5, 6),  # from the first 01:00 to the second
    },
    DAILY: {
        date(2017, 2, 28), date(2017, 3, 1), date(2017, 3, 8), date(2017, 3, 12), date(2017, 3, 13),
        date(2017, 3, 20), date(2017, 3, 29), date(2017, 3, 30), date(2017, 7, 3), date(2017, 7, 4),
        date(2017, 11, 5), date(2017, 11, 6),
    },
    MONTHLY: {date(2017, 2, 1), date(2017, 3, 1)},
}  # fmt: skip
DAY_CORRECTED_WITHOUT_EFFECT = date(2017, 1, 1)
EMPTIED = ("--allow", f"empty_slice={HOUR_EMPTIED}", "--reason", "its only basket was sold an hour later")


def days(first: date, last: date) -> set[date]:
    return {first + timedelta(days) for days in range((last - first).days + 1)}


SAMPLE = frozenset(days(date(2017, 2, 1), date(2017, 3, 31)) | days(date(2017, 11, 4), date(2017, 11, 6)))
RANGES = {
    HOURLY: "2017-02..2017-03,2017-11-04..2017-11-06",
    DAILY: "2017-02..2017-03,2017-11-04..2017-11-06",
    MONTHLY: "2017-02..2017-03",
}


def range_of(target: str, whole_year: bool) -> str:
    return "2017" if whole_year else RANGES[target]


def named(target: str, moment: date) -> str:
    """Return how a slice is named: a month by its number, an hour on New York's clock with its offset."""
    if isinstance(moment, datetime):
        return moment.astimezone(independent.STORES_ZONE).isoformat(timespec="minutes")
    return f"{moment:%Y-%m}" if target == MONTHLY else moment.isoformat()


def sales_of(project: Path, target: str) -> dict[Key, Sales]:
    """Return the target's rows, as the independent computation has them."""
    slice_column = independent.HEADERS[target][0]
    households = "households" if target == MONTHLY else "0"
    rows = query(
        project / load.DATABASE,
        f"SELECT {slice_column}, store_id, {households}, baskets, lines, sales_cents FROM {target}",
    )
    sales = {(moment, store): Sales(*measures) for moment, store, *measures in rows}
    assert len(sales) == len(rows), "a slice and store stands twice in the target"
    return sales


def expected(lines: Iterable[independent.Line], *, whole_year: bool) -> dict[str, dict[Key, Sales]]:
    """Return the rows of each target; a month that the sample has only in part is no slice of it."""
    rows = independent.store_sales(lines)
    for target in (HOURLY, DAILY):
        rows[target] = {key: row._replace(households=0) for key, row in rows[target].items()}
    if not whole_year:
        rows[MONTHLY] = {key: row for key, row in rows[MONTHLY].items() if key[0].month in (2, 3)}
    return rows


def slices_written_by(project: Path, target: str, run: str) -> set[Any]:
    slice_column = independent.HEADERS[target][0]
    sql = f"SELECT DISTINCT {slice_column} FROM {target} WHERE written_by = '{run}'"
    return {moment for (moment,) in query(project / load.DATABASE, sql)}


def counts(before: dict[Key, Sales], after: dict[Key, Sales]) -> dict[str, int]:
    both = before.keys() & after.keys()
    return {
        "added": len(after.keys() - before.keys()),
        "changed": sum(after[key] != before[key] for key in both),
        "removed": len(before.keys() - after.keys()),
        "unchanged": sum(after[key] == before[key] for key in both),
    }


def differing_between(before: dict[Key, Sales], after: dict[Key, Sales]) -> set[Any]:
    return {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def cents_of(sales: dict[Key, Sales]) -> int:
    return sum(row.cents for row in sales.values())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the published data and empty targets, to be copied."""
    project = tmp_path_factory.mktemp("grocery") / "loaded"
    load.load(project)
    return project


@pytest.fixture
def project(loaded: Path, tmp_path: Path) -> Path:
    """Return a project of one's own, with the published data and empty targets."""
    return copytree(loaded, tmp_path / "grocery")


@pytest.mark.parametrize(
    "whole_year", [pytest.param(False, id="sample"), pytest.param(True, id="year", marks=pytest.mark.slow)]
)
def test_the_targets_follow_the_corrections_and_only_differing_slices_are_written(
    project: Path, whole_year: bool
) -> None:
    day_of = cache(independent.local_day)
    lines = [line for line in independent.parquet_lines() if whole_year or day_of(line.sold_at) in SAMPLE]
    before = expected(lines, whole_year=whole_year)
    after = expected(independent.corrected_lines(lines), whole_year=whole_year)
    runs = {target: first_run(project, target, range_of(target, whole_year), before[target]) for target in RANGES}
    assert len(correct.correct(project)) == 11
    for target, run in runs.items():
        differing = {moment for moment in DIFFERING[target] if whole_year or moment.month != 7}
        assert differing_between(before[target], after[target]) == differing
        words = (target, range_of(target, whole_year))
        assert not_equal(project, *words) == {named(target, moment) for moment in differing}
        healed = second_run(project, *words, (before[target], after[target]))
        assert_written(project, target, run, differing, {moment for moment, _ in after[target]})
        reslice(project, "restore", healed, "--yes")
        assert sales_of(project, target) == before[target]


def first_run(project: Path, target: str, words: str, before: dict[Key, Sales]) -> str:
    """Backfill, and return the run."""
    loaded = reslice(project, "run", target, words)
    assert (loaded["outcome"], loaded["diff"]["added"]) == ("published", len(before))
    assert sales_of(project, target) == before
    run: str = loaded["run"]
    return run


def second_run(project: Path, target: str, words: str, sales: tuple[dict[Key, Sales], dict[Key, Sales]]) -> str:
    """Plan, backfill again, run once more, and verify; return the run that published."""
    before, after = sales
    plan = reslice(project, "plan", target, words)
    assert (plan["outcome"], plan["diff"]) == ("planned", counts(before, after))
    assert plan["totals"]["sales_cents"] == {"before": cents_of(before), "after": cents_of(after)}
    assert sales_of(project, target) == before
    healed = reslice(project, "run", target, words, *(EMPTIED if target == HOURLY else ()))
    assert (healed["outcome"], healed["diff"]) == ("published", counts(before, after))
    assert sales_of(project, target) == after
    again = reslice(project, "run", target, words)
    assert (again["outcome"], again["target_changed"]) == ("unchanged", False)
    verified = reslice(project, "verify", target, words)
    assert (verified["repeatable"], verified["equals_source"]) == (True, True)
    run: str = healed["run"]
    return run


def assert_written(project: Path, target: str, first_run: str, differing: set[Any], left: set[Any]) -> None:
    """Show by the stamps that the second run wrote what differs, and nothing else."""
    # A slice that became empty has no row that could say who emptied it.
    assert differing - left == ({hour(11, 5, 5)} if target == HOURLY else set())
    assert slices_written_by(project, target, first_run) == left - differing


@pytest.fixture(scope="module")
def november(loaded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose hours around the autumn's clock change have been run, before the corrections."""
    project = copytree(loaded, tmp_path_factory.mktemp("november") / "grocery")
    reslice(project, "run", HOURLY, "2017-11-04..2017-11-06")
    return project


def test_a_day_has_the_hours_that_its_clock_shows(november: Path) -> None:
    assert reslice(november, "plan", HOURLY, "2017-03-12")["slice"]["count"] == 23
    assert reslice(november, "plan", HOURLY, "2017-11-05")["slice"]["count"] == 25
    both = reslice(november, "plan", HOURLY, "2017-11-05T01:00")["slice"]
    assert both["count"] == 2, "an hour that the clock shows twice is two slices, and naming it names both"
    refused = reslice(november, "plan", HOURLY, "2017-03-12T02:00", code=3)
    assert refused["error"]["kind"] == "range_off_unit"


def test_an_hour_may_not_lose_its_only_sale_without_consent(november: Path) -> None:
    correct.correct(november)
    stopped = reslice(november, "run", HOURLY, "2017-11-05", code=3)
    assert stopped["error"]["kind"] == "empty_slice"
    assert HOUR_EMPTIED in str(stopped["error"]["found"])


def test_the_control_finds_that_date_trunc_takes_two_hours_for_one(project: Path) -> None:
    source = project / "sql" / "hourly_store_sales.sql"
    text = source.read_text(encoding="utf-8")
    wrong = text.replace("time_bucket(INTERVAL 1 HOUR, sold_at)", "date_trunc('hour', sold_at)")
    assert wrong != text
    source.write_text(wrong, encoding="utf-8")
    reslice(project, "run", HOURLY, "2017-11-04")
    refused = reslice(project, "run", HOURLY, "2017-11-05", code=3)
    assert refused["error"]["kind"] == "control_differs"
    assert HOUR_EMPTIED in str(refused["error"]["found"])


def test_one_day_with_the_days_its_corrections_touch_heals_the_year(project: Path) -> None:
    reslice(project, "run", DAILY, "2017")
    correct.correct(project)
    healed = reslice(project, "run", DAILY, "2017-03-08", "--with-affected")
    assert healed["slice"]["count"] == len(DIFFERING[DAILY] | {DAY_CORRECTED_WITHOUT_EFFECT})
    assert slices_written_by(project, DAILY, healed["run"]) == DIFFERING[DAILY]
    assert reslice(project, "run", DAILY, "2017")["outcome"] == "unchanged"


def test_the_loaded_facts_are_the_published_data(tmp_path: Path) -> None:
    assert load.load(tmp_path) == (1_469_307, 155_848, 457)
    assert [sales_of(tmp_path, target) for target in (HOURLY, DAILY, MONTHLY)] == [{}, {}, {}]


def test_a_correction_is_recorded_once(project: Path) -> None:
    correct.correct(project)
    assert correct.correct(project) == []
    found = query(project / load.DATABASE, "SELECT count(*), count(DISTINCT basket_id) FROM basket_corrections")
    assert found == [(11, 11)]
