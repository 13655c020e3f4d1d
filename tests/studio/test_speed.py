"""Pages of a ledger of 100,000 runs over 3,650 slices."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.conformance.databases import Database, opened
from tests.studio.large import FIRST_DAY, fill
from tests.studio.served import Served, served
from tests.studio.shop import UNCONTROLLED, Shop

RUNS, DAYS = 100_000, 3_650
MANY_RUNS, FEW_RUNS = 8_000, 500
LIMIT_SECONDS = 0.3
PAGES = ("", "target/daily_orders", "target/daily_orders?period=2019", "target/daily_orders?state=refused")


def large(database: Database, runs: int) -> Shop:
    """Return a shop whose ledger holds so many runs."""
    shop = Shop(database)
    shop.declare({"daily_orders": UNCONTROLLED})
    shop.fill(FIRST_DAY, days=3)
    shop.target().run(FIRST_DAY)
    fill(database, runs=runs, days=DAYS)
    database.execute("ANALYZE")
    database.let_go()
    return shop


def seconds(site: Served, path: str, times: int = 3) -> float:
    """Return the median of several answers; the first hears what every later one remembers."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        assert site.get(path).status == 200
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def quickest(site: Served, path: str) -> float:
    """Return the quickest of up to ten answers: on a machine that does much else, the first are not."""
    took: list[float] = []
    while len(took) < 10 and min(took, default=LIMIT_SECONDS) >= LIMIT_SECONDS:
        took.append(seconds(site, path, times=1))
    return min(took)


def test_every_slice_is_told_and_a_page_holds_a_year(engine: Database) -> None:
    shop = large(engine, FEW_RUNS)
    with served(shop.contract) as site:
        twin = site.get("target/daily_orders.json").json
    assert len(twin["slices"]) <= 366 and len(twin["runs"]) == 50
    covered = engine.rows("SELECT count(DISTINCT slice) FROM reslice.run_slices")[0][0]
    assert sum(each["slices"] for each in twin["periods"]) == covered
    assert [each["period"] for each in twin["periods"]] == [str(year) for year in range(2025, 2015, -1)]


def test_pages_are_not_made_slower_by_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compared side by side, so that a busy machine is as slow for the one as for the other."""
    few, many = (opened("duckdb", tmp_path_factory.mktemp(name)) for name in ("few", "many"))
    shops = large(few, FEW_RUNS), large(many, MANY_RUNS)
    with served(shops[0].contract) as small, served(shops[1].contract) as big:
        for site in (small, big):
            site.get()
        for path in PAGES:
            assert seconds(big, path) < max(LIMIT_SECONDS, 6 * seconds(small, path)), path


@pytest.mark.slow
def test_pages_open_in_time_with_100000_runs(engine: Database) -> None:
    shop = large(engine, RUNS)
    with served(shop.contract) as site:
        site.studio.listen_ahead()
        took = {path: quickest(site, path) for path in PAGES}
    assert all(each < LIMIT_SECONDS for each in took.values()), took
