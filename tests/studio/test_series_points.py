"""What a measure added up to in each slice before and after a run, wherever its rows are by now; sums by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from reslice.errors import Refused, Stopped
from reslice.recorded import LedgerRun
from reslice.series import Amount, Point, points, row_points
from tests.conformance.databases import Database
from tests.conformance.orders import D1, D2, D3, D4, EVERY_METHOD, SOURCE, Orders, Target

METHODS = EVERY_METHOD

# T0 holds, of amount_cents by day: 4,200 in 2 rows, 1,950 in 2 rows, 5,999 in 2 rows.
UNKNOWN = Amount(2, None, is_known=False)


def series(target: Target, run: str | None, measure: str = "amount_cents") -> tuple[Point, ...]:
    recorded = shown(target, run)
    with target.handle.project.engine(read_only=True) as engine:
        return points(engine, target.handle.contract, recorded, measure)


def shown(target: Target, run: str | None) -> LedgerRun:
    assert run is not None
    return target.handle.project.show(run)


def same(label: str, rows: int, total: int) -> Point:
    return Point(label, Amount(rows, total), Amount(rows, total), moved=False)


def test_the_slices_of_a_run_before_and_after_it(orders: Orders) -> None:
    orders.correct(4, 1300)  # of the second day: 1,950 becomes 2,050
    orders.cancel("order_id = 8")  # of the third: 5,999 in 2 rows becomes 5,000 in 1
    run = orders.run(f"{D1}..{D4}")

    assert series(orders, run.id) == (
        same(D1, 2, 4200),
        Point(D2, Amount(2, 1950), Amount(2, 2050), moved=True),
        Point(D3, Amount(2, 5999), Amount(1, 5000), moved=True),
        Point(D4, Amount(0), Amount(0), moved=False),
    )
    assert series(orders, run.id, "order_count")[2] == Point(D3, Amount(2, 2), Amount(1, 1), moved=True)


def test_a_first_load_comes_from_nothing(empty_orders: Orders) -> None:
    run = empty_orders.run(f"{D1}..{D2}")

    assert series(empty_orders, run.id) == (
        Point(D1, Amount(0), Amount(2, 4200), moved=True),
        Point(D2, Amount(0), Amount(2, 1950), moved=True),
    )


def test_what_a_later_run_replaced_is_read_where_that_run_keeps_it(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = orders.run(f"{D1}..{D2}")
    orders.correct(1, 1100)  # of the first day: 4,200 becomes 4,300
    orders.correct(4, 1400)
    second = orders.run(f"{D1}..{D2}")

    assert series(orders, first.id) == (
        same(D1, 2, 4200),
        Point(D2, Amount(2, 1950), Amount(2, 2050), moved=True),
    )
    assert series(orders, second.id) == (
        Point(D1, Amount(2, 4200), Amount(2, 4300), moved=True),
        Point(D2, Amount(2, 2050), Amount(2, 2150), moved=True),
    )


def test_a_restore_and_what_it_put_back(orders: Orders) -> None:
    orders.correct(4, 1300)
    run = orders.run(D2)
    undo = orders.restore(run.id)

    assert series(orders, undo.id) == (Point(D2, Amount(2, 2050), Amount(2, 1950), moved=True),)
    assert series(orders, run.id) == (Point(D2, Amount(2, 1950), Amount(2, 2050), moved=True),)


@pytest.mark.parametrize("method", ["replace_slice"])
def test_rows_that_somebody_changed_since_are_not_taken_for_those_of_the_run(orders: Orders) -> None:
    orders.correct(4, 1300)
    run = orders.run(f"{D1}..{D2}")
    orders.database.execute("UPDATE daily_orders SET amount_cents = amount_cents + 7 WHERE channel = 'store'")

    # Of the day that moved the ledger holds every group that moved; of the other one it holds none.
    assert series(orders, run.id) == (
        Point(D1, UNKNOWN, UNKNOWN, moved=False),
        Point(D2, Amount(2, 1950), Amount(2, 2050), moved=True),
    )


@pytest.mark.parametrize("method", ["replace_slice"])
def test_what_was_pruned_is_not_known_any_more(orders: Orders) -> None:
    orders.correct(4, 1300)
    run = orders.run(D2)
    kept = orders.database.rows("SELECT DISTINCT kept_table FROM reslice.runs WHERE kept_table IS NOT NULL")
    orders.database.execute(f"DELETE FROM {kept[0][0]}")
    orders.database.execute("DELETE FROM reslice.run_groups")
    orders.database.execute("UPDATE reslice.runs SET pruned_at = now()")

    assert series(orders, run.id) == (Point(D2, UNKNOWN, Amount(2, 2050), moved=True),)
    assert row_points(shown(orders, run.id)) == (Point(D2, Amount(2, 2), Amount(2, 2), moved=True),)


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_run_that_was_stopped_shows_what_it_would_have_written(orders: Orders) -> None:
    orders.declare(guards={"empty_slice": "stop", "total_change": "allow"})
    orders.correct(4, 1300)
    orders.cancel("order_id IN (7, 8)")
    error = orders.fails("run", Stopped, f"{D1}..{D3}")

    assert series(orders, error.run.id) == (
        same(D1, 2, 4200),
        Point(D2, Amount(2, 1950), Amount(2, 2050), moved=True),
        Point(D3, Amount(2, 5999), Amount(0), moved=True),
    )


def test_money_is_exact(engine: Database) -> None:
    engine.execute("CREATE TABLE facts (day date, amount decimal(18, 2))")
    engine.execute("CREATE TABLE daily (day date, amount decimal(18, 2))")
    engine.insert("facts", [(D1, Decimal("0.10")), (D2, Decimal("9007199254740993.01"))])
    declaration = {"table": "daily", "source": "source.sql", "grain": ["day"], "measures": {"amount": {}}}
    declaration |= {"slice": {"column": "day", "unit": "day"}}
    source = "SELECT day, sum(amount) AS amount FROM facts WHERE day BETWEEN :start AND :end GROUP BY day"
    daily = Target(engine, "daily", declaration, source)
    run = daily.run(f"{D1}..{D2}")

    assert series(daily, run.id, "amount") == (
        Point(D1, Amount(0), Amount(1, Decimal("0.10")), moved=True),
        Point(D2, Amount(0), Amount(1, Decimal("9007199254740993.01")), moved=True),
    )


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_contract_with_other_columns_or_slices_says_so(orders: Orders) -> None:
    run = orders.run(f"{D1}..{D2}")
    orders.declare(measures={"amount_cents": {}})
    orders.source(SOURCE.replace("count(*) AS order_count, ", ""))
    with pytest.raises(Refused) as columns:
        series(orders, run.id)
    assert columns.value.kind == "contract_changed" and "order_count" in columns.value.failures[0].found[0]

    orders.declare(
        measures={"order_count": {"min": 1}, "amount_cents": {}}, slice={"column": "order_date", "unit": "month"}
    )
    with pytest.raises(Refused) as slices:
        series(orders, run.id)
    assert slices.value.failures[0].found[0].startswith(f"{run.id} names {D1}, which is no month")


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_table_without_the_column_says_so(orders: Orders) -> None:
    run = orders.run(D1)
    orders.database.execute("ALTER TABLE daily_orders DROP COLUMN amount_cents")
    with pytest.raises(Refused) as gone:
        series(orders, run.id)
    assert gone.value.failures[0].found[0].endswith("daily_orders has no column amount_cents")
