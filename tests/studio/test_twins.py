"""The `.json` twin of every page has the fields that docs/studio.md names, and plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.databases import opened
from tests.studio.served import Served, served
from tests.studio.shop import Shop

PAGE = Path(__file__).parents[2] / "docs" / "studio.md"
ROW = re.compile(r"\| `reslice/studio_(\w+)/1` \| [^|]+ \| (.+) \|")
TWINS = {
    "first": "index.json",
    "target": "target/daily_orders.json?from=2026-03-02",
    "run": "run/r-0008.json",
    "compare": "compare.json?a=r-0005&b=r-0008",
    "series": "run/r-0008/series.json?measure=amount_cents",
    "error": "target/none.json",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shop = Shop(opened("duckdb", tmp_path_factory.mktemp("twins")))
    shop.live()
    shop.database.let_go()
    with served(shop.contract) as site:
        yield site


def documented() -> dict[str, list[str]]:
    """Return the fields of each schema as the page names them; the command that a row compares itself with is none."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {name: [each for each in re.findall(r"`([^`]+)`", text) if " " not in each] for name, text in rows}


@pytest.mark.parametrize("name", TWINS)
def test_the_fields_are_those_of_the_page(site: Served, name: str) -> None:
    twin: dict[str, Any] = site.get(TWINS[name]).json
    assert twin.pop("schema") == f"reslice/studio_{name}/1"
    fields = documented()[name]
    assert set(twin) == set(fields) - ({"newest"} if name == "first" else set())


def test_the_twin_of_a_comparison_has_them_too(site: Served) -> None:
    site.get("target/daily_orders/status?range=2026-03-02")
    (job,) = site.studio.jobs._jobs
    twin = site.get(f"target/daily_orders/status/{job}.json").json
    assert set(twin) == {"schema", *documented()["status"]}


@pytest.mark.parametrize("name", TWINS)
def test_numbers_are_plain(site: Served, name: str) -> None:
    def walk(value: Any) -> None:
        assert not isinstance(value, float) or round(value, 3) == value  # a time in seconds: no figure is a float
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(each)

    twin = site.get(TWINS[name])
    walk(twin.json)
    assert twin.headers["content-type"].startswith("application/json")
    assert not re.search(r'"[-+]?\d{1,3}(,\d{3})+"', twin.text)
