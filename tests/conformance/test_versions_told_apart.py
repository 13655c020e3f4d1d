"""append_version: what a row of the table belongs to, whatever stands in its stamp and whatever the table is called."""

from __future__ import annotations

import pytest

from reslice.errors import Refused
from tests.conformance.databases import Row
from tests.conformance.orders import D1, D2, D3, T0, VERSION, Orders, changed, found, kinds, ordered

METHODS = ("append_version",)
WHOLE = f"{D1}..{D3}"


def test_a_run_hides_no_row_of_another_day_that_bears_its_id(orders: Orders) -> None:
    """Ids repeat: somebody copies rows in, or the ledger was dropped and its numbers begin anew."""
    orders.database.execute(f"UPDATE daily_orders SET {VERSION} = 'r-0001' WHERE order_date <> '{D2}'")
    orders.correct(4, 1300)
    orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))


def test_ids_of_a_ledger_that_was_dropped_mean_nothing_to_the_next_one(empty_orders: Orders) -> None:
    orders = empty_orders
    for day in (D3, D1, D2):
        orders.run(day)
    orders.database.execute("DROP SCHEMA reslice CASCADE")
    orders.correct(4, 1300)
    orders.run(D3)
    expected = changed((D2, "web", 1, 1300))
    assert orders.run(D2).id == "r-0002"  # the rows of D1 bear this id from before
    assert orders.rows() == expected
    assert [(each.slice, each.run) for each in orders.handle.versions(D1)] == [(D1, "")]
    orders.restore("r-0002")
    assert orders.rows() == list(T0)


SPELLINGS = ('"a"."b.c"', '"a.b"."c"')


@pytest.mark.parametrize("written", SPELLINGS)
def test_two_tables_whose_names_read_alike_have_versions_of_their_own(orders: Orders, written: str) -> None:
    orders.database.execute('CREATE SCHEMA "a"; CREATE SCHEMA "a.b"')
    for name in SPELLINGS:
        orders.database.execute(f"CREATE TABLE {name} AS SELECT * FROM daily_orders")
    (other,) = (name for name in SPELLINGS if name != written)
    orders.declare(table=other)
    orders.run(D1)  # makes its view
    orders.declare(table=written)
    orders.correct(4, 1300)
    orders.run(WHOLE)

    def read(table: str) -> list[Row]:
        view = f'{table[:-1]}_current"'
        return ordered(orders.database.rows(f"SELECT {orders.database.every_column(view, but=VERSION)} FROM {view}"))

    assert read(written) == changed((D2, "web", 1, 1300))
    assert read(other) == list(T0)


def two_versions(orders: Orders) -> list[Row]:
    """Publish two versions of a day; return what readers must read."""
    for cents in (1300, 1400):
        orders.correct(4, cents)
        orders.run(WHOLE)
    return changed((D2, "web", 1, 1400))


LOST = {
    "the table was renamed": "ALTER TABLE daily_orders RENAME TO other_orders",
    "the table was copied": "CREATE TABLE other_orders AS SELECT * FROM daily_orders",
    "the ledger was dropped": "ALTER TABLE daily_orders RENAME TO other_orders; DROP SCHEMA reslice CASCADE",
}


@pytest.mark.parametrize("what", LOST)
def test_versions_that_the_ledger_does_not_know_are_never_read_all_at_once(orders: Orders, what: str) -> None:
    expected = two_versions(orders)
    orders.database.execute(LOST[what])
    orders.declare(table="other_orders")
    orders.table = "other_orders"
    before = orders.versions()
    for command in ("plan", "status", "run"):
        error = orders.fails(command, Refused, D1)
        assert kinds(error) == ["versions_unknown"] and error.exit_code == 3
        place = orders.database.full_name("other_orders")
        assert f"({D2}, store) has rows of no run, r-0001, r-0002 in {place}" in found(error)
    assert not orders.database.has_view("other_orders_current") and orders.versions() == before

    orders.declare(method="replace_slice")
    assert orders.run(WHOLE).slices_done == (D2,)
    orders.declare(method="append_version")
    orders.unchanged(WHOLE)
    assert orders.rows() == expected


def test_rows_that_bear_ids_once_each_are_where_versions_begin(orders: Orders) -> None:
    orders.database.execute(f"UPDATE daily_orders SET {VERSION} = 'r-00' || right(CAST(order_date AS VARCHAR), 2)")
    orders.correct(4, 1300)
    orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))
