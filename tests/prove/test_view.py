"""A table whose rows reslice could not replace is proved all the same: a view, and a table with columns of its own.

The jobs leave what the source gives for 2026-01-01 and 2026-01-02: store 1/4500; store 1/5600, web 2/19000.
"""

from __future__ import annotations

import pytest

from reslice.prove.values import Verdict
from tests.prove.shops import APPEND, REPLACE, Shop, execute, kinds

BEHIND_A_VIEW = (
    "ALTER TABLE daily_orders RENAME TO daily_orders_rows",
    "CREATE VIEW daily_orders AS SELECT * FROM daily_orders_rows",
)


def written_behind(job: str) -> str:
    return job.replace("INTO daily_orders", "INTO daily_orders_rows").replace(
        "FROM daily_orders WHERE", "FROM daily_orders_rows WHERE"
    )


@pytest.mark.parametrize(
    ("job", "verdict", "is_equal"),
    [(REPLACE, Verdict.PROVEN, True), (APPEND, Verdict.NOT_REPEATABLE, False)],
    ids=["replace", "append"],
)
def test_a_view_is_compared_with_its_source(shop: Shop, job: str, verdict: Verdict, is_equal: bool) -> None:
    execute(shop, *BEHIND_A_VIEW)
    proof = shop.prove_sql(written_behind(job))
    assert (proof.verdict, proof.equals_source) == (verdict, is_equal)


def test_a_view_on_postgresql(server18: Shop) -> None:
    execute(server18, *BEHIND_A_VIEW)
    proof = server18.prove_sql(written_behind(REPLACE))
    assert (proof.verdict, proof.equals_source) == (Verdict.PROVEN, True)


def test_a_column_that_nobody_declares_is_no_hindrance(shop: Shop) -> None:
    execute(shop, "ALTER TABLE daily_orders ADD COLUMN load_id VARCHAR")
    job = REPLACE.replace("INTO daily_orders SELECT", "INTO daily_orders BY NAME SELECT")
    proof = shop.prove_sql(job)
    assert (proof.verdict, proof.equals_source) == (Verdict.PROVEN, True)
    appended = shop.prove_sql(job.replace("DELETE", "SELECT * "))
    assert (appended.verdict, kinds(appended.between_runs)) == (Verdict.NOT_REPEATABLE, {"doubled": 3})
