"""The page on schedulers shows what the tested files hold, and the intervals that a real Airflow gave."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest

from tests.schedulers import shops
from tests.schedulers.test_airflow import answers as answers
from tests.schedulers.test_airflow import work as work

PAGE = (shops.ROOT / "docs" / "schedulers.md").read_text(encoding="utf-8")
FILES = {
    path: path.read_text(encoding="utf-8") for path in shops.EXAMPLES.rglob("*.*") if path.suffix in (".py", ".yml")
}
FILES |= {path: path.read_text(encoding="utf-8") for path in (shops.EXAMPLES / "cron").iterdir()}
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| .* \| (\S+ \S+) to (\S+ \S+) \| (.+) \|$", re.MULTILINE)


def test_every_block_of_the_page_stands_in_a_tested_file() -> None:
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 10
    for block in blocks:
        assert any(block in text for text in FILES.values()), textwrap.shorten(block, 300)


def test_every_file_of_the_examples_that_is_read_is_on_the_page() -> None:
    linked = {(shops.ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)\)", PAGE)}
    assert {path for path in FILES if path.parent.name != "shop"} <= linked


def test_every_row_of_the_table_is_what_airflow_and_reslice_made_of_it(work: Any, answers: dict[str, Any]) -> None:
    cases = {"daily_orders": "bash", "weekly_orders": "weekly", "monthly_orders": "monthly"}
    cases |= {"new_york_orders": "spring", "orders_at_six": "at_six"}
    rows = ROW.findall(PAGE)
    assert len(rows) == 8
    for dag, start, end, slices in rows:
        case = cases.get(dag, dag)
        run = answers["runs"][case][0]
        assert run["interval"] == [f"{start}:00+00:00", f"{end}:00+00:00"], dag
        if slices.startswith("refused: "):
            assert run["state"] == "failed"
        else:
            assert [f"`{range}`" for range, _ in shops.states(work / case)][:1] == [slices]


@pytest.mark.parametrize("name", ["airflow", "dagster"])
def test_the_page_names_the_versions_that_are_tested(name: str) -> None:
    pins = (shops.EXAMPLES / name / "constraints.txt").read_text()
    found = re.search(rf"^(?:apache-)?{name}==(\d+\.\d+)\.", pins, re.MULTILINE)
    assert found is not None and re.search(rf"real {name} {re.escape(found[1])}\b", PAGE, re.IGNORECASE)
    assert "http:" not in pins and "https:" not in pins and " @ " not in pins
