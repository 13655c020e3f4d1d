"""append_version: what a row of the table belongs to, whatever stands in its stamp and whatever the table is called."""

from __future__ import annotations

import pytest

from tests.conformance.databases import Row
from tests.conformance.orders import D1, D2, D3, T0, VERSION, Orders, changed

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
        orders.database.execute(f"CREATE TABLE {name} AS FROM daily_orders")
    (other,) = (name for name in SPELLINGS if name != written)
    orders.declare(table=other)
    orders.run(D1)  # makes its view
    orders.declare(table=written)
    orders.correct(4, 1300)
    orders.run(WHOLE)

    def read(table: str) -> list[Row]:
        view = f'{table[:-1]}_current"'
        return orders.database.rows(f"SELECT * EXCLUDE ({VERSION}) FROM {view} ORDER BY ALL")

    assert read(written) == changed((D2, "web", 1, 1300))
    assert read(other) == list(T0)
