"""Small words of answers: articles, one row and two, what a run that never ended left, and what a ledger is made of."""

from __future__ import annotations

import json

import pytest

from reslice.cli import main
from reslice.errors import Refused
from tests.conformance.orders import D1, D2, SOURCE, Orders, found, kinds


def said(orders: Orders, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command says, with the database in its own hands."""
    orders.database.let_go()
    main(["-C", str(orders.folder), "--config", orders.file.name, *words])
    told = capsys.readouterr()
    return told.out + told.err


def test_a_column_has_the_article_of_its_first_letter(orders: Orders) -> None:
    orders.source(
        f"SELECT CAST(NULL AS date) AS order_date, 'web' AS channel, 1 AS order_count, 5 AS amount_cents"
        f" UNION ALL SELECT * FROM ({SOURCE}) AS rest"
    )
    error = orders.fails("plan", Refused, D1)
    assert kinds(error) == ["slice_null"] and error.failures[0].asked == "every row has an order_date"
    assert found(error).startswith("1 row has none and belongs to no slice; e.g. ")


def test_one_row_is_a_row(orders: Orders) -> None:
    """What was compared and what is there now: one of each is told as one."""
    orders.database.execute("DELETE FROM daily_orders WHERE channel = 'store'")
    orders.database.execute("DELETE FROM orders_fact WHERE channel = 'store'")
    orders.correct(4, 1300)
    plan = orders.handle.plan_file(orders.plan(D2))
    orders.database.execute(f"UPDATE daily_orders SET amount_cents = 1 WHERE order_date = '{D2}'")
    with pytest.raises(Refused) as caught:
        orders.handle.run(approve=plan)
    assert caught.value.kind == "approval_stale" and "the target now holds 1 row (" in found(caught.value)


def test_a_run_that_never_ended_says_what_it_was_asked_and_what_it_left(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    orders.run(D1)
    orders.database.execute("UPDATE reslice.runs SET state = 'requested', process = '1-gone', finished_at = NULL")
    orders.run(D2)
    text = said(orders, capsys, "show", "r-0001")
    assert f"  asked:      run daily_orders over {D1}, to its end\n" in text
    assert "  found:      its process is gone; nothing of it was published\n" in text
    assert "  unchanged:  daily_orders is as it was; nothing was written\n" in text


def test_a_ledger_is_counted_alike_when_it_is_made_and_when_it_is_there(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = json.loads(orders.file.read_text())
    contract["targets"]["again"] = contract["targets"]["daily_orders"] | {"table": "orders_fact"}
    orders.file.write_text(json.dumps(contract))
    tables = 7 + 2 * (orders.database.name == "postgresql")
    made = said(orders, capsys, "init", "--ledger")
    assert f"made {tables} tables in schema reslice: runs, " in made
    there = said(orders, capsys, "init", "--ledger")
    assert f"schema reslice has {tables} tables already: runs, " in there
    place = f"-C {orders.folder} --config {orders.file.name}"
    assert made.endswith(f"next: reslice {place} doctor\n") and there.endswith(f"next: reslice {place} doctor\n")
