"""Every kind of run that a ledger holds has its page, its series, and a place beside the run before it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conformance.databases import Database
from tests.conformance.orders import D1, D2, Orders
from tests.studio.pages_of import page, pages_of, words
from tests.studio.served import served
from tests.studio.shop import Shop


def test_runs_of_a_ledger_that_holds_one_of_everything(engine: Database) -> None:
    shop = Shop(engine)
    shop.live()
    runs = [run.id for run in shop.target().project.history(limit=100)]
    states = {(run.kind, run.state) for run in shop.target().project.history(limit=100)}
    assert {("run", "published"), ("verify", "unchanged"), ("restore", "restored"), ("run", "stopped")} < states
    assert ("run", "refused") in states
    if engine.name == "duckdb":
        engine.close()

    with served(shop.contract) as studio:
        for run_id, other in zip(runs, runs[1:] + runs[:1], strict=True):
            found = page(studio, f"run/{run_id}")
            assert run_id in words(found)
            assert "slice" in words(page(studio, f"run/{run_id}/series"))
            if "Each measure" in found.text:  # a run that was refused has no totals, and leads to none
                series = page(studio, f"run/{run_id}/series?measure=amount_cents")
                assert "The sums are not known" not in series.text and "not known" not in series.text
            assert f"{run_id} beside {other}" in words(page(studio, f"compare?a={run_id}&b={other}"))


@pytest.mark.parametrize("method", ["append_version"])
def test_a_run_that_pruned_old_versions(orders: Orders) -> None:
    orders.run(D2)
    orders.correct(4, 1300)
    first = orders.run(D2)
    orders.correct(4, 1400)
    orders.run(f"{D1}..{D2}")
    pruned = orders.handle.prune_versions(older_than=timedelta(0))
    assert pruned.run is not None and pruned.rows > 0

    with pages_of(orders) as studio:
        found = page(studio, f"run/{pruned.run}")
        series = page(studio, f"run/{pruned.run}/series")
        gone = page(studio, f"run/{first.id}/series?measure=amount_cents")

    assert "prune" in words(found)
    assert "The ledger lists no slice of this run." in words(series)
    # What the first run wrote is deleted; by how much its groups moved, the ledger still has.
    assert gone.rows("1 slice") == [[D2, "1,950", "2,050", "+100", "2", "2"]]
