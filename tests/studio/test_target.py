"""The first page and the page of a target: every figure by hand, on every engine."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from reslice.errors import Refused
from tests.conformance.databases import Database, only
from tests.studio.served import Served, served
from tests.studio.shop import DAILY, UNCONTROLLED, Shop


@pytest.fixture
def shop(engine: Database) -> Shop:
    return Shop(engine)


def states(twin: dict[str, Any]) -> dict[str, str]:
    return {each["slice"]: each["state"] for each in twin["slices"]}


def test_a_target_stands_as_its_runs_left_it(shop: Shop) -> None:
    shop.live()
    shop.database.let_go()
    with served(shop.contract) as site:
        first = site.get("index.json").json
        twin = site.get("target/daily_orders.json").json
        page = site.get("target/daily_orders")
        year_before = site.get("target/daily_orders.json?period=2025").json
    # 30 + 31 + 31 + 28 + 29 days are published, 61 of them verified since; one is put back, one has another source than
    # a run was to write, and one that does not add up
    figures = {"slices": 149, "verified": 61, "published": 85, "restored": 1, "differs": 1, "not_reconciled": 1}
    none = {"equal": 0, "empty": 0, "missing": 0, "extra": 0}
    assert twin["figures"] == {**none, **figures} == first["targets"][0]["figures"]
    assert (twin["period"], [each["period"] for each in twin["periods"]]) == ("2026", ["2026", "2025"])
    assert [(each["slices"], each["exceptions"]) for each in twin["periods"]] == [(88, 2), (61, 0)]
    found = states(twin)
    assert (next(iter(found)), [*found][-1]) == ("2026-01-01", "2026-03-31")  # the last day that is closed
    loud = {day: state for day, state in found.items() if state not in ("published", "no run")}
    assert loud == {"2026-02-10": "restored", "2026-03-03": "differs", "2026-03-20": "not reconciled"}
    assert [day for day, state in found.items() if state == "no run"] == ["2026-03-30", "2026-03-31"]
    assert Counter(states(year_before).values()) == {"verified": 61}
    assert page.status == 200
    assert page.text.count('class="cell published"') == 85 + 1  # 88 slices of 2026 less the 3 above, and the legend
    assert 'aria-label="2026-03-03: differs, r-0010' in page.text


def test_runs_are_listed_with_what_they_did(shop: Shop) -> None:
    shop.live()
    shop.database.let_go()
    with served(shop.contract) as site:
        runs = {row["run"]: row for row in site.get("target/daily_orders.json").json["runs"]}
        page = site.get("target/daily_orders").text
    assert list(runs) == [f"r-{number:04d}" for number in range(11, 0, -1)]
    corrected, restored, stopped, refused = (runs[f"r-{number:04d}"] for number in (8, 9, 10, 11))
    assert corrected["groups"] == {"added": 0, "changed": 1, "removed": 0}
    assert corrected["measures"] == {"order_count": 1, "amount_cents": 4000}
    assert corrected["controls"]["reconciled"] is True and corrected["state"] == "published"
    assert (restored["kind"], restored["state"], restored["restores"]) == ("restore", "restored", "r-0008")
    assert restored["measures"] == {"order_count": -1, "amount_cents": -4000}
    assert restored["controls"] == {"reconciled": None, "figures": []}
    assert (stopped["state"], stopped["measures"]["amount_cents"]) == ("stopped", 900_000)
    assert (refused["state"], refused["groups"]) == ("refused", None)
    assert refused["controls"] == {
        "reconciled": False,
        "figures": [{"figure": "orders", "control": 6, "target": 7, "ok": False}],
    }
    assert runs["r-0001"]["lock_milliseconds"] >= 0 and runs["r-0001"]["milliseconds"] > 0
    assert '<data value="900000">+900,000</data>' in page and '<data value="-4000">\N{MINUS SIGN}4,000</data>' in page
    assert "no, orders 7 for 6" in re.sub(r"\s+", " ", page)


def test_what_is_chosen_is_listed_with_its_commands(shop: Shop) -> None:
    shop.live()
    shop.database.let_go()
    with served(shop.contract, place="-C 'my shop'") as site:
        twin = site.get("target/daily_orders.json?from=2026-03-02&to=2026-03-04").json
        page = site.get("target/daily_orders?from=2026-03-02&to=2026-03-04").text
        year_before = site.get("target/daily_orders.json?from=2025-11-01&to=2025-11-03").json
    chosen = twin["chosen"]
    assert (chosen["range"], chosen["count"], chosen["error"]) == ("2026-03-02..2026-03-04", 3, None)
    assert [each["state"] for each in chosen["slices"]] == ["published", "differs", "published"]
    assert [each["command"] for each in chosen["commands"]] == [
        "reslice -C 'my shop' plan daily_orders 2026-03-02..2026-03-04",
        "reslice -C 'my shop' run daily_orders 2026-03-02..2026-03-04",
        "reslice -C 'my shop' verify daily_orders 2026-03-02..2026-03-04",
        "reslice -C 'my shop' restore r-0005 2026-03-02..2026-03-04",
    ]
    assert page.count(" marked") == 3
    assert year_before["period"] == "2025"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("from=2026-03-04&to=2026-03-02", "2026-03-04 is after 2026-03-02"),
        ("from=soon", "soon"),
        ("to=2026-13-01", "2026-13-01"),
        ("from=2026-03-04&to=infinity", "the range has no end"),
    ],
)
def test_what_is_no_range_is_said_beside_the_calendar(shop: Shop, query: str, found: str) -> None:
    shop.fill(days=3)
    shop.target().run("2025-11-01")
    shop.database.let_go()
    with served(shop.contract) as site:
        answer, twin = site.get(f"target/daily_orders?{query}"), site.get(f"target/daily_orders.json?{query}").json
    assert answer.status == 200 and 'role="alert"' in answer.text
    assert found in " ".join(twin["chosen"]["error"]["found"]) and twin["chosen"]["commands"] == []


def test_runs_are_filtered_and_turned_over_by_the_address(shop: Shop) -> None:
    shop.fill(days=60)
    target = shop.target()
    for day in range(1, 31):
        target.run(f"2025-11-{day:02d}")
        target.run(f"2025-11-{day:02d}")
    shop.database.let_go()
    with served(shop.contract) as site:
        newest = site.get("target/daily_orders.json").json
        older = site.get(f"target/daily_orders.json?before={newest['older']}").json
        unchanged = site.get("target/daily_orders.json?state=unchanged").json
        over = site.get("target/daily_orders.json?range=2025-11-03..2025-11-04").json
        none = site.get("target/daily_orders.json?kind=verify").json
        page = site.get("target/daily_orders?state=unchanged").text
        past = site.get(f"target/daily_orders?before={newest['older']}").text
        unread = site.get("target/daily_orders?range=zzz").text
    assert len(newest["runs"]) == 50 and newest["runs"][0]["run"] == "r-0060" and newest["older"] == 11
    assert [row["run"] for row in older["runs"]] == [f"r-{number:04d}" for number in range(10, 0, -1)]
    assert older["older"] is None
    assert len(unchanged["runs"]) == 30 and {row["state"] for row in unchanged["runs"]} == {"unchanged"}
    assert [row["run"] for row in over["runs"]] == ["r-0008", "r-0007", "r-0006", "r-0005"]
    assert none["runs"] == []
    assert "<option selected>unchanged</option>" in page
    assert "newest run" not in page + past and "newest run unchanged" in unread  # a part of the list does not tell
    assert "zzz is no range of this target, and leaves nothing out." in unread and "is no range" not in page


def test_without_a_run_or_a_table_pages_are_calm(shop: Shop) -> None:
    shop.declare({"daily_orders": DAILY, "elsewhere": UNCONTROLLED | {"table": "not_there"}})
    shop.database.let_go()
    with served(shop.contract) as site:
        first = site.get()
        pages = [site.get(f"target/{name}") for name in ("daily_orders", "elsewhere")]
        twin = site.get("target/elsewhere.json").json
    assert first.status == 200 and first.text.count("No run yet.") == 2
    assert all(page.status == 200 and "The ledger has no word on any slice yet." in page.text for page in pages)
    assert (
        twin["figures"]["slices"] == 0 and twin["runs"] == [] and twin["slices"] == [] and not twin["controls_declared"]
    )


def test_nothing_is_said_of_the_source_or_of_a_control_that_nobody_has_looked_at(shop: Shop) -> None:
    shop.declare({"daily_orders": DAILY, "free": UNCONTROLLED})
    shop.fill(days=3)
    shop.target().run("2025-11-01")
    shop.database.execute("INSERT INTO orders VALUES (9, '2025-11-03', NULL, 5)")
    with pytest.raises(Refused):  # it says nothing of a slice, and is the newest run all the same
        shop.target("free").run("2025-11-03")
    shop.database.let_go()
    with served(shop.contract) as site:
        controlled, free = (" ".join(site.get(f"target/{name}").text.split()) for name in ("daily_orders", "free"))
        first = site.get().text
    for page in (controlled, free):
        assert '<dt>with the source now</dt><dd class="quiet">not compared</dd>' in page
        assert "<dt>source differs</dt>" not in page and "<dt>missing</dt>" not in page
    assert "<dt>not reconciled</dt>" in controlled and "<dt>not reconciled</dt>" not in free
    assert "The ledger has no word on any slice yet." in free and "newest run refused" in free
    assert first.count("Nothing in the ledger asks for a look.") == 1 and "No run yet." not in first


def test_targets_that_ask_for_a_look_come_first(shop: Shop) -> None:
    shop.declare({"calm": UNCONTROLLED, "daily_orders": DAILY})
    shop.fill(days=20)
    shop.target("calm").run("2025-11-01")
    shop.order(9, "2025-11-05", "web", 1, is_receipted=False)
    with pytest.raises(Exception, match="control"):
        shop.target("daily_orders").run("2025-11-05")
    shop.database.let_go()
    with served(shop.contract) as site:
        twin = site.get("index.json").json
        page = site.get().text
    assert [each["target"] for each in twin["targets"]] == ["daily_orders", "calm"]
    assert re.search(r'<li class="not-reconciled"><data value="1">1</data> not reconciled</li>', page)


def test_what_happens_while_it_is_looked_at_is_seen(shop: Shop) -> None:
    """What was heard of the ledger is remembered, and what comes later is heard all the same."""
    shop.fill(days=40)
    shop.target().run("2025-11-01..2025-11-03")
    shop.database.let_go()
    with served(shop.contract) as site:
        before = site.get("target/daily_orders.json").json
        shop.target().run("2025-11-04")
        shop.target().verify("2025-11-01", record=True)
        shop.order(9, "2025-11-02", "web", 5)
        done = shop.target().run("2025-11-02")
        assert done.id is not None
        shop.database.let_go()
        between = site.get("target/daily_orders.json").json
        shop.target().restore(done.id)
        after = site.get("target/daily_orders.json").json
    assert before["figures"]["published"] == 3
    assert (between["figures"]["published"], between["figures"]["verified"]) == (3, 1)
    assert {state for day, state in states(after).items() if day == "2025-11-02"} == {"restored"}


def test_a_ledger_that_is_another_one_is_not_taken_for_the_same(shop: Shop) -> None:
    shop.fill(days=40)
    shop.target().run("2025-11-01..2025-11-03")
    shop.database.let_go()
    with served(shop.contract) as site:
        assert site.get("target/daily_orders.json").json["figures"]["slices"] == 3
        for table in ("runs", "run_slices", "run_groups"):
            shop.database.execute(f"DELETE FROM reslice.{table}")
        shop.target().run("2025-11-09")
        shop.database.let_go()
        assert site.get("target/daily_orders.json").json["figures"]["slices"] == 1


def test_an_address_without_a_target_is_said_in_four_parts(shop: Shop) -> None:
    shop.database.let_go()
    with served(shop.contract) as site:
        answer, twin = site.get("target/daily_ordres"), site.get("target/daily_ordres.json")
    assert answer.status == 404 == twin.status
    assert twin.json["kind"] == "usage" and "it has daily_orders" in twin.json["found"][0]
    assert all(part in answer.text for part in ("Asked:", "Found:", "Unchanged:", "Next:"))


def test_a_mistake_in_the_contract_is_said_and_gone_when_it_is_mended(shop: Shop) -> None:
    shop.database.let_go()
    good = shop.contract.read_text()
    with served(shop.contract) as site:
        assert site.get().status == 200
        shop.contract.write_text(good.replace('"order_date", "unit"', '"ordr_date", "unit"') + " ")
        broken = site.get()
        shop.contract.write_text(good)
        mended = site.get()
    assert broken.status == 500 and "contract" in broken.text and "Traceback" not in broken.text
    assert mended.status == 200


def test_hours_weeks_months_and_quarters_have_a_calendar_too(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE months (m DATE)")
    for month in ("2025-12-01", "2026-01-01", "2026-02-01"):
        shop.database.execute("INSERT INTO months VALUES (?)", [month])
    columns = "m AS order_date, 'web' AS channel, 1 AS order_count, 5 AS amount_cents"
    (shop.folder / "months.sql").write_text(f"SELECT {columns} FROM months WHERE m BETWEEN :start AND :end")
    monthly = UNCONTROLLED | {"source": "months.sql", "slice": {"column": "order_date", "unit": "month"}}
    shop.declare({"monthly": monthly})
    shop.target("monthly").run("2025-12..2026-02")
    shop.database.let_go()
    with served(shop.contract) as site:
        twin = site.get("target/monthly.json?from=2026-01&to=2026-02").json
        page = site.get("target/monthly").text
    assert list(states(twin))[:3] == ["2025-12", "2026-01", "2026-02"] and twin["period"] == "2020s"
    assert twin["chosen"]["commands"][0]["command"] == "reslice plan monthly 2026-01..2026-02"
    assert 'type="month"' in page and 'aria-label="2026-01: published, r-0001' in page


def test_a_slice_that_lies_far_off_is_not_what_a_page_begins_with(shop: Shop) -> None:
    shop.fill(days=3)
    shop.order(77, "9999-12-31", "web", 5)
    shop.target().run("2025-11-01..2025-11-03")
    shop.declare({"daily_orders": UNCONTROLLED | {"guards": {"empty_slice": "allow"}}})
    shop.target().run("9999-12-31")
    shop.database.let_go()
    with served(shop.contract) as site:
        twin = site.get("target/daily_orders.json").json
        far = site.get("target/daily_orders.json?period=9999").json
    assert [each["period"] for each in twin["periods"]] == ["9999", "2025"] and twin["period"] == "2025"
    assert states(far) == {"9999-12-31": "published"}


@pytest.mark.parametrize("limit", ["9999-12-31", "0001-01-01", "9999 days ago", "yesterday"])
def test_any_limit_of_what_is_closed_can_be_shown(shop: Shop, limit: str) -> None:
    shop.fill(days=3)
    shop.target().run("2025-11-01")
    shop.declare({"daily_orders": UNCONTROLLED | {"guards": {"closed_through": limit}}})
    shop.database.let_go()
    with served(shop.contract) as site:
        assert site.get().status == 200
        twin = site.get("target/daily_orders.json").json
    assert states(twin)["2025-11-01"] == "published"


@only("duckdb", "a server holds no file")
def test_a_file_that_somebody_holds_is_said_and_looked_at_again(shop: Shop, tmp_path: Path) -> None:
    import subprocess
    import sys

    shop.fill(days=3)
    shop.target().run("2025-11-01")
    shop.database.let_go()
    path = str(shop.folder / "warehouse.duckdb")
    hold = f"import duckdb, sys; c = duckdb.connect({path!r}); print('held', flush=True); sys.stdin.read()"
    with served(shop.contract) as site:
        holder = subprocess.Popen(
            [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        busy, twin = site.get("target/daily_orders"), site.get("index.json")
        holder.communicate("")
        free = site.get("target/daily_orders")
    assert busy.status == 503 == twin.status and busy.headers["retry-after"] == "2"
    assert '<meta http-equiv="refresh" content="2">' in busy.text and f"process {holder.pid}" in busy.text
    assert twin.json["kind"] == "database_busy" and twin.json["retry"] is True
    assert free.status == 200


@only("duckdb", "a server holds no file")
def test_between_requests_the_file_is_free(shop: Shop) -> None:
    shop.fill(days=3)
    shop.target().run("2025-11-01")
    shop.database.let_go()
    with served(shop.contract) as site:
        for path in ("", "target/daily_orders", "run/r-0001", "target/none"):
            site.get(path)
            duckdb.connect(str(shop.folder / "warehouse.duckdb")).close()


def test_nothing_is_written(shop: Shop) -> None:
    shop.live()
    before = {table: shop.database.versions(table) for table in ("daily_orders", "reslice.runs", "reslice.run_slices")}
    shop.database.let_go()
    with served(shop.contract) as site:
        look_at_everything(site)
    assert before == {table: shop.database.versions(table) for table in before}


def look_at_everything(site: Served) -> None:
    for path in ("", "target/daily_orders?from=2026-03-02&to=2026-03-04", "run/r-0008", "target/daily_orders/status"):
        assert site.get(path).status == 200
