"""A restore, and the way back to it, hold for good: also where the file has another name, or the clock another time."""

from __future__ import annotations

import pytest

import reslice
from reslice.errors import Refused, Stopped
from reslice.target_handle import TargetHandle
from tests.conformance.databases import DuckDBDatabase, only
from tests.conformance.orders import D2, EVERY_METHOD, T0, Orders, changed, kinds

METHODS = EVERY_METHOD
AFTER = changed((D2, "web", 1, 1300))


def renamed(orders: Orders) -> TargetHandle:
    """Rename the database file, and have the contract name it so."""
    database = orders.database
    assert isinstance(database, DuckDBDatabase)
    database.let_go()
    database.path = database.path.rename(orders.folder / "production.duckdb")
    orders.file.write_text(orders.file.read_text().replace("warehouse.duckdb", "production.duckdb"))
    return reslice.open(orders.file).target("daily_orders")


@only("duckdb", "a database is a file that can be renamed")
def test_a_restore_is_not_undone_in_silence_after_the_file_was_renamed(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = orders.run(D2).id or ""
    second = orders.restore(first).id or ""
    handle = renamed(orders)
    assert [guard.name for guard in handle.plan(D2).guards if guard.stops] == ["restored"]
    with pytest.raises(Stopped) as caught:
        handle.run(D2)
    assert kinds(caught.value) == ["restored"]
    handle.restore(second)  # and the way back is there
    assert orders.rows() == AFTER


@only("duckdb", "a database is a file that can be renamed")
def test_what_a_run_replaced_before_the_file_was_renamed_comes_back(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = orders.run(D2).id or ""
    handle = renamed(orders)
    assert handle.plan_restore(first).diff is not None
    second = handle.restore(first)
    orders.database.let_go()
    assert orders.rows() == list(T0) and second.slices_done == (D2,)
    orders.database.let_go()
    handle.restore(second.id or "")
    assert orders.rows() == AFTER


@only("duckdb", "a database is a file that can be renamed")
def test_a_later_run_under_another_name_of_the_file_is_not_undone(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = orders.run(D2).id or ""
    orders.correct(4, 1400)
    handle = renamed(orders)
    later = handle.run(D2).id
    with pytest.raises(Refused) as caught:
        handle.restore(first)
    assert kinds(caught.value) == ["later_run"] and f"{later} wrote {D2}" in str(caught.value)


@pytest.mark.parametrize("hours", [1, 1000])
def test_a_restore_is_not_undone_in_silence_after_the_clock_was_set_back(orders: Orders, hours: int) -> None:
    orders.correct(4, 1300)
    first = orders.run(D2).id or ""
    ahead = f"+ INTERVAL '{hours} hours'"
    orders.database.execute(f"UPDATE reslice.run_slices SET published_at = published_at {ahead}")
    orders.database.execute(f"UPDATE reslice.runs SET requested_at = requested_at {ahead}")
    orders.restore(first)
    orders.stops(D2, "restored")
    orders.run(D2, allow=["restored"], reason="it was right")
    assert orders.rows() == AFTER
