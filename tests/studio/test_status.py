"""A comparison with the source on request: its answer, its end before the answer, and what it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from reslice.studio.jobs import Jobs
from tests.conformance.databases import Database
from tests.studio.served import Served, served
from tests.studio.shop import DAILY, Shop

LONG = "SELECT count(*) FROM generate_series(1, 40000000) AS a(n) WHERE CAST(n AS VARCHAR) LIKE '%no such number%'"


@pytest.fixture
def shop(engine: Database) -> Shop:
    return Shop(engine)


def until(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until something holds, and return it."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def compared(site: Served, query: str = "") -> Any:
    """Ask for a comparison, wait for its answer, and return the target's page as JSON."""
    assert site.get(f"target/daily_orders/status{query}").status == 200

    def answered() -> Any:
        twin = site.get("target/daily_orders.json").json
        return twin if twin["status"] is not None else None

    return until(answered)


def test_slices_stand_as_status_says(shop: Shop) -> None:
    shop.fill(days=5)
    shop.target().run("2025-11-01..2025-11-03")
    shop.order(91, "2025-11-02", "web", 5)
    shop.database.execute("DELETE FROM orders WHERE order_date = '2025-11-03'")
    shop.database.execute("DELETE FROM receipts WHERE order_date = '2025-11-03'")
    shop.database.let_go()
    with served(shop.contract) as site:
        before = site.get("target/daily_orders.json").json
        twin = compared(site, "?range=2025-11-01..2025-11-05")
        page = site.get("target/daily_orders").text
    assert before["status"] is None
    assert "not compared" not in page and "<dt>source differs</dt>" in page
    found = {each["slice"]: each["state"] for each in twin["slices"]}
    # the first is as it was published, which the ledger knew; two have no run, and the source has rows of them
    first_days = {f"2025-11-{day:02d}": found[f"2025-11-{day:02d}"] for day in range(1, 6)}
    assert list(first_days.values()) == ["published", "differs", "extra", "missing", "missing"]
    assert twin["status"]["states"] == {"equal": 1, "differs": 1, "missing": 2, "extra": 1, "not_reconciled": 0}
    assert (twin["status"]["range"], twin["status"]["slices"]) == ("2025-11-01..2025-11-05", 5)
    assert twin["status"]["equals_source"] is False
    assert "Compared with the source at" in page and "1 equal, 1 differs, 2 missing, 1 extra" in " ".join(page.split())
    assert 'class="cell missing"' in page and 'class="cell extra"' in page


def test_a_run_since_has_the_last_word(shop: Shop) -> None:
    shop.fill(days=5)
    shop.target().run("2025-11-01..2025-11-03")
    shop.order(91, "2025-11-02", "web", 5)
    shop.database.let_go()
    with served(shop.contract) as site:
        assert compared(site)["figures"]["differs"] == 1
        shop.target().run("2025-11-02")
        shop.database.let_go()
        assert site.get("target/daily_orders.json").json["figures"]["differs"] == 0


def test_an_answer_is_one_on_the_contract_that_was_asked(shop: Shop) -> None:
    shop.fill(days=5)
    shop.target().run("2025-11-01..2025-11-03")
    shop.order(91, "2025-11-02", "web", 5)
    shop.database.let_go()
    with served(shop.contract) as site:
        assert compared(site)["figures"]["differs"] == 1
        shop.declare({"daily_orders": DAILY | {"slice": {"column": "order_date", "unit": "month"}}})
        by_month = site.get("target/daily_orders.json").json
        assert by_month["status"] is None and by_month["figures"]["slices"] == 0
        shop.declare({"daily_orders": DAILY})
        assert site.get("target/daily_orders.json").json["figures"]["differs"] == 1


def test_rows_that_do_not_add_up_are_an_answer(shop: Shop) -> None:
    shop.fill(days=5)
    shop.target().run("2025-11-01..2025-11-05")
    shop.order(91, "2025-11-02", "web", 5, is_receipted=False)
    shop.database.let_go()
    with served(shop.contract) as site:
        twin = compared(site, "?range=2025-11-01..2025-11-05")
    assert {each["slice"] for each in twin["slices"] if each["state"] == "not reconciled"} == {"2025-11-02"}
    assert twin["status"]["states"]["not_reconciled"] == 1


@pytest.mark.parametrize(
    ("range_text", "found"), [("nonsense", "nonsense"), ("2025-11-05..2025-11-01", "is after 2025-11-01")]
)
def test_what_cannot_be_compared_is_said_in_four_parts(shop: Shop, range_text: str, found: str) -> None:
    shop.database.let_go()
    with served(shop.contract) as site:
        answer = site.get(f"target/daily_orders/status?range={range_text}")
        job = answer.text.split("data-follow=")[0]
        assert job
        pages = until(lambda: [page] if "It could not be compared" in (page := site.get(_job(site))).text else None)
    assert found in pages[0].text and "Unchanged:" in pages[0].text


def _job(site: Served) -> str:
    """Return the address of the newest comparison."""
    newest = list(site.studio.jobs._jobs)[-1]
    return f"target/daily_orders/status/{newest}"


def slow(shop: Shop) -> None:
    """Let the source take long."""
    text = (shop.folder / "daily_orders.sql").read_text()
    (shop.folder / "daily_orders.sql").write_text(text.replace("WHERE", f"WHERE ({LONG}) = 0 AND"))
    shop.database.let_go()


def test_one_that_is_at_work_is_followed_and_cancelled(shop: Shop) -> None:
    shop.fill(days=5)
    slow(shop)
    with served(shop.contract) as site:
        page = site.get("target/daily_orders/status?range=2025-11-01")
        again = site.get("target/daily_orders/status?range=2025-11-02")
        assert page.status == 200 and "At work" in page.text and '<noscript><meta http-equiv="refresh"' in page.text
        assert len(site.studio.jobs._jobs) == 1 and _job(site).rpartition("/")[2] in again.text
        until(lambda: site.get(f"{_job(site)}.json").json["step"] == "staging")
        twin = site.get(f"{_job(site)}.json").json
        assert (twin["progress"], twin["range"], twin["limit_seconds"]) == ("running", "2025-11-01", 60.0)
        assert site.get("target/daily_orders").status == 200  # meanwhile pages are looked at
        site.get(f"{_job(site)}/cancel")
        until(lambda: site.get(f"{_job(site)}.json").json["progress"] == "cancelled", 10)
        assert "Cancelled" in site.get(_job(site)).text
        assert site.get("target/daily_orders.json").json["status"] is None


def test_one_that_takes_too_long_is_ended_and_says_where_it_may_take_its_time(shop: Shop) -> None:
    shop.fill(days=5)
    slow(shop)
    with served(shop.contract, place="-C shop", jobs=Jobs(limit_seconds=0.5)) as site:
        site.get("target/daily_orders/status?range=2025-11-01")
        until(lambda: site.get(f"{_job(site)}.json").json["progress"] == "out of time", 20)
        page = site.get(_job(site)).text
    assert "reslice -C shop status daily_orders 2025-11-01" in page and "longest that a page may ask for" in page


def test_the_end_of_the_studio_ends_what_is_at_work(shop: Shop) -> None:
    shop.fill(days=5)
    slow(shop)
    with served(shop.contract) as site:
        site.get("target/daily_orders/status?range=2025-11-01")
        until(lambda: site.get(f"{_job(site)}.json").json["step"] == "staging")
        jobs = site.studio.jobs
    (job,) = jobs._jobs.values()
    until(lambda: not job.is_running, 10)
    assert job.progress.value == "cancelled"


def test_the_address_of_no_comparison_is_not_there(shop: Shop) -> None:
    shop.database.let_go()
    with served(shop.contract) as site:
        assert site.get("target/daily_orders/status/0123456789abcdef").status == 404
        assert site.get("target/daily_orders/status/0123456789abcdef/cancel").status == 404


def test_nothing_is_written(shop: Shop) -> None:
    shop.fill(days=5)
    shop.target().run("2025-11-01..2025-11-03")
    tables = ("daily_orders", "reslice.runs", "reslice.run_slices")
    before = {table: shop.database.versions(table) for table in tables}
    shop.database.let_go()
    with served(shop.contract) as site:
        compared(site)
    assert before == {table: shop.database.versions(table) for table in tables}
