"""The grocery example, with the real command line, against its independent computation in plain Python.

In the sample of two months and, marked slow, in the whole year: the target after the first run and after the
corrections, and that the second run wrote exactly the days on which a figure differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from examples.grocery import correct, independent, load
from examples.grocery.independent import Key, Sales

RESLICE = Path(sys.executable).with_name("reslice")
TARGET = "daily_store_sales"

# Read off corrections.json by hand: the New York day each basket left, and the one it went to.
DAYS_THAT_DIFFER = {
    date(2017, 2, 28), date(2017, 3, 1), date(2017, 3, 8), date(2017, 3, 12), date(2017, 3, 13), date(2017, 3, 20),
    date(2017, 3, 29), date(2017, 3, 30), date(2017, 7, 3), date(2017, 7, 4), date(2017, 11, 5), date(2017, 11, 6),
}  # fmt: skip
DAY_CORRECTED_WITHOUT_EFFECT = date(2017, 1, 1)

SAMPLE = (date(2017, 2, 1), date(2017, 3, 31))
YEAR = (date(2017, 1, 1), date(2017, 12, 31))
PERIODS = [pytest.param(SAMPLE, id="two-months"), pytest.param(YEAR, id="year", marks=pytest.mark.slow)]


def reslice(project: Path, *words: str) -> dict[str, Any]:
    """Run one command that must end well, and return its JSON."""
    ended = subprocess.run(
        [RESLICE, "-C", project, *words, "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def query(project: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(project / load.DATABASE), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def target_sales(project: Path) -> dict[Key, Sales]:
    rows = query(project, f"SELECT sale_date, store_id, baskets, lines, sales_cents FROM {TARGET}")
    sales = {(day, store): Sales(*measures) for day, store, *measures in rows}
    assert len(sales) == len(rows), "a day and store stands twice in the target"
    return sales


def days_written_by(project: Path, run: str) -> set[date]:
    return {day for (day,) in query(project, f"SELECT DISTINCT sale_date FROM {TARGET} WHERE written_by = '{run}'")}


def cents_of(sales: dict[Key, Sales]) -> int:
    return sum(row.cents for row in sales.values())


@pytest.mark.parametrize("period", PERIODS)
def test_the_target_follows_the_corrections_and_only_differing_days_are_written(
    tmp_path: Path, period: tuple[date, date]
) -> None:
    first, last = period
    days = f"{first}..{last}"
    before = independent.daily_store_sales(corrected=False, first=first, last=last)
    after = independent.daily_store_sales(corrected=True, first=first, last=last)
    differing = {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert differing == {day for day in DAYS_THAT_DIFFER if first <= day <= last}
    load.load(tmp_path)

    loaded = reslice(tmp_path, "run", TARGET, days)
    assert (loaded["outcome"], loaded["diff"]["added"]) == ("published", len(before))
    assert target_sales(tmp_path) == before

    assert len(correct.correct(tmp_path)) == 9
    plan = reslice(tmp_path, "plan", TARGET, days)
    assert plan["outcome"] == "planned"
    assert plan["diff"] == {
        "added": len(after.keys() - before.keys()),
        "changed": sum(1 for key in after.keys() & before.keys() if after[key] != before[key]),
        "removed": len(before.keys() - after.keys()),
        "unchanged": sum(1 for key in after.keys() & before.keys() if after[key] == before[key]),
    }
    assert plan["totals"]["sales_cents"] == {"before": cents_of(before), "after": cents_of(after)}
    assert target_sales(tmp_path) == before

    healed = reslice(tmp_path, "run", TARGET, days)
    assert healed["outcome"] == "published"
    assert target_sales(tmp_path) == after
    assert days_written_by(tmp_path, healed["run"]) == differing
    assert days_written_by(tmp_path, loaded["run"]) == {day for day, _ in after} - differing

    again = reslice(tmp_path, "run", TARGET, days)
    assert (again["outcome"], again["target_changed"]) == ("unchanged", False)
    verified = reslice(tmp_path, "verify", TARGET, days)
    assert (verified["repeatable"], verified["equals_source"]) == (True, True)


def test_one_day_with_the_days_its_corrections_touch_heals_the_year(tmp_path: Path) -> None:
    load.load(tmp_path)
    reslice(tmp_path, "run", TARGET, "2017")
    correct.correct(tmp_path)
    healed = reslice(tmp_path, "run", TARGET, "2017-03-08", "--with-affected")
    assert healed["slice"]["count"] == len(DAYS_THAT_DIFFER | {DAY_CORRECTED_WITHOUT_EFFECT})
    assert days_written_by(tmp_path, healed["run"]) == DAYS_THAT_DIFFER
    assert reslice(tmp_path, "run", TARGET, "2017")["outcome"] == "unchanged"


def test_the_loaded_facts_are_the_published_data(tmp_path: Path) -> None:
    assert load.load(tmp_path) == (1_469_307, 155_848, 457)
    assert target_sales(tmp_path) == {}


def test_a_correction_is_recorded_once(tmp_path: Path) -> None:
    load.load(tmp_path)
    correct.correct(tmp_path)
    assert correct.correct(tmp_path) == []
    assert query(tmp_path, "SELECT count(*), count(DISTINCT basket_id) FROM basket_corrections") == [(9, 9)]
