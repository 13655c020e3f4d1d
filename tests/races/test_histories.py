"""Runs, live writers and a reader in processes of their own on one PostgreSQL table; the model says whether it held.

`history(seed)` is who does what; a history that fails is had again by its seed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import reslice
from tests import orders_project as project
from tests.model import Call, Model
from tests.model_rows import Order, Row
from tests.races.crew import HEAD_START_SECONDS, Crew, Job, Ran
from tests.races.histories import (
    D1,
    D3,
    DAYS,
    METHODS,
    OUTSIDE,
    Backfill,
    History,
    broken,
    facts,
    history,
    old_rows,
    outside_rows,
)
from tests.races.replay import faults
from tests.races.shop_postgres import Shop

ACTORS = 4
ALL = Call(project.FREE, D1, D3)


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    made = Crew(ACTORS)
    yield made
    made.close()


def prepared(shop: Shop, asked: History) -> Model:
    """Let the shop be as a history begins, and return the model of it."""
    model = Model(method=asked.method)
    shop.reset(key=project.PRIMARY_KEY if asked.key else "")
    shop.declare(method=asked.method, lock=asked.lock)
    model.rows = old_rows() if asked.is_filled else outside_rows()
    shop.fill(model.rows)
    model.orders = facts()
    shop.load(model.orders)
    if asked.has_ledger:
        model.run(ALL)
        assert reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}").outcome.value == "published"
        corrected = {number: Order(order.day, order.channel, order.price) for number, order in model.orders.items()}
        for place, day in enumerate(DAYS):
            corrected[100 + place] = Order(day, "web", facts()[0].price)
        model.orders = corrected
        shop.load(corrected)
    assert Counter(shop.table()) == Counter(model.rows)
    return model


def played(shop: Shop, crew: Crew, asked: History) -> tuple[list[str], list[Any], Model]:
    """Play a history; return what went wrong with it, how everybody ended, and the model after it."""
    model = prepared(shop, asked)
    first = len(model.runs)
    begins = time.time() + HEAD_START_SECONDS
    is_versioned = asked.method == "append_version"
    jobs = [Job(str(shop.contract), each, begins, asked.broken) for each in asked.backfills]
    jobs += [Job(shop.url, each, begins, "", is_versioned and asked.has_ledger) for each in asked.writers]
    relation = "daily_orders_current" if is_versioned else "daily_orders"
    ended, looks, seen = crew.play(jobs, (shop.url, relation))
    wrong = faults(shop, asked, model, first, ended, seen)
    if not looks:
        wrong.append("the reader never looked")
    return wrong, ended, model


def heals(shop: Shop, asked: History, model: Model) -> None:
    """Run once more, alone: every day is as the orders say, and what lies outside is as it was left."""
    run = reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}")
    assert run.outcome.value in ("published", "unchanged")
    relation = "daily_orders_current" if asked.method == "append_version" else "daily_orders"
    rows = [Row(*row) for row in shop.rows(f"SELECT {project.ROW_COLUMNS} FROM {relation}")]
    expected = Counter(row.values for day in DAYS for row in model.recompute(day))
    assert Counter(row.values for row in rows if row.order_date in DAYS) == expected
    assert Counter(row for row in rows if row.order_date == OUTSIDE) == Counter(model.of_day(OUTSIDE))


def held(shop: Shop, crew: Crew, seeds: range) -> Counter[str]:
    """Play the histories of these seeds, and return how often what happened."""
    told: Counter[str] = Counter()
    for seed in seeds:
        asked = history(seed)
        wrong, ended, model = played(shop, crew, asked)
        assert not wrong, "\n".join([str(asked), *wrong, *map(str, ended), repr(asked)])
        if seed % 5 == 0:
            heals(shop, asked, model)
        for each in ended:
            told.update([each.outcome] if isinstance(each, Ran) else [wrote.error or "wrote" for wrote in each])
    return told


CHUNK = 20
SEEDS = [
    pytest.param(18, range(8), id="18-some"),
    pytest.param(16, range(2), id="16-some"),
    *(
        pytest.param(version, range(first, first + CHUNK), id=f"{version}-{first}", marks=pytest.mark.slow)
        for version, count in ((18, 2000), (16, 260))
        for first in range(0, count, CHUNK)
    ),
]
"""The seeds of the histories: a sample of each server, and with the slow ones 2,000 of the newer one."""


@pytest.mark.parametrize(("shop", "seeds"), SEEDS, indirect=["shop"])
def test_a_sample_of_histories(shop: Shop, crew: Crew, seeds: range) -> None:
    told = held(shop, crew, seeds)
    assert told["published"] and told["wrote"]


@pytest.mark.parametrize("ranges", ["equal", "disjoint"])
@pytest.mark.parametrize("method", METHODS)
def test_runs_that_find_no_ledger_all_finish(shop: Shop, crew: Crew, ranges: str, method: str) -> None:
    """They make it at the same moment. Of equal ranges one is published, of disjoint ones all are."""
    days = DAYS if ranges == "disjoint" else (D1, D1, D1)
    backfills = tuple(Backfill(day, day, 0.0, seed) for seed, day in enumerate(days))
    wrong, ended, _ = played(shop, crew, History(0, method, ranges, False, False, False, "5s", backfills, ()))
    assert wrong == []
    outcomes = Counter(each.outcome for each in ended)
    assert outcomes["published"] == (3 if ranges == "disjoint" else 1), outcomes
    assert set(shop.runs()) == {"r-0001", "r-0002", "r-0003"}


# --- whether anything would be noticed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", ["no base check", *(pytest.param(each, marks=pytest.mark.slow) for each in ("no table lock", "no turn"))]
)
def test_a_publish_that_leaves_something_out_is_noticed(shop: Shop, crew: Crew, what: str) -> None:
    """What is replaced is then not what was compared, and the very same history is right when nothing is left out."""
    for seed in range(10):
        asked = broken(seed, what)
        wrong, ended, _ = played(shop, crew, asked)
        assert not any(isinstance(each, Ran) and each.outcome == "crashed" for each in ended), ended
        if any("as if it held" in words for words in wrong):
            break
    else:
        pytest.fail(f"nobody noticed {what}")
    wrong, ended, _ = played(shop, crew, replace(asked, broken=""))
    assert wrong == [], ended
