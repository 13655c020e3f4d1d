"""The ten cases in which other tools were compared: what is done before the rerun, and the right answer."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reslice.errors import Refused, Retryable, Stopped
from reslice.values import Outcome
from tests.conformance.databases import Database, Row
from tests.conformance.orders import EVERY_METHOD, Target, found, kinds

METHODS = EVERY_METHOD

JAN1, JAN2, JAN3 = "2026-01-01", "2026-01-02", "2026-01-03"

FACTS = [
    ("o100", JAN1, "web", 5000),
    ("o101", JAN1, "web", 3000),
    ("o102", JAN1, "store", 7000),
    ("o200", JAN2, "web", 12000),
    ("o201", JAN2, "web", 7000),
    ("o202", JAN2, "store", 4500),
    ("o203", JAN2, "app", 2500),
    ("o300", JAN3, "web", 6000),
    ("o301", JAN3, "store", 8000),
    ("o302", JAN3, "app", 1500),
]

SOURCE = """
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""


class Shop(Target):
    """Ten orders over three days and the filled daily aggregate of them: 8 rows, 10 orders, 56500 cents."""

    def __init__(self, engine: Database, method: str = "replace_slice", check: str = "") -> None:
        engine.execute(
            "CREATE TABLE orders_fact (order_id varchar, order_date date, channel varchar, amount_cents bigint,"
            " order_ts timestamp)"
        )
        engine.insert("orders_fact", [(*row, f"{row[1]} 12:00:00") for row in FACTS])
        engine.execute(
            "CREATE TABLE daily_orders"
            f" (order_date date, channel varchar, order_count bigint, amount_cents bigint{check})"
        )
        declaration: dict[str, Any] = {
            "table": "daily_orders",
            "source": "source.sql",
            "grain": ["order_date", "channel"],
            "slice": {"column": "order_date", "unit": "day"},
            "measures": {"order_count": {"min": 1}, "amount_cents": {"min": 0}},
        }
        super().__init__(engine, "daily_orders", declaration, SOURCE, method=method)
        assert self.run(f"{JAN1}..{JAN3}").outcome is Outcome.PUBLISHED
        assert self.sums() == (8, 10, 56500)

    def sums(self) -> Row:
        """Return rows, orders and cents of the whole target."""
        return self.database.rows(f"SELECT count(*), sum(order_count), sum(amount_cents) FROM {self.current}")[0]


@pytest.fixture
def shop(engine: Database, method: str) -> Shop:
    return Shop(engine, method)


def test_c1_the_same_slices_twice(shop: Shop) -> None:
    for _ in range(2):
        shop.unchanged(f"{JAN2}..{JAN3}")
        assert shop.sums() == (8, 10, 56500)
    shop.run(f"{JAN2}..{JAN3}", rewrite=True)
    assert shop.sums() == (8, 10, 56500)


def test_c2_a_group_that_vanished_is_shown_before_and_removed(shop: Shop) -> None:
    shop.database.execute("DELETE FROM orders_fact WHERE order_id = 'o300'")

    plan = shop.plan(JAN3)
    assert plan.diff is not None
    assert [(each.change.value, each.key["channel"]) for each in plan.diff.groups] == [("removed", "web")]
    for outcome in (Outcome.PUBLISHED, Outcome.UNCHANGED):
        assert shop.run(JAN3).outcome is outcome
        assert shop.sums() == (7, 9, 50500)


def test_c3_an_order_that_moved_a_day(shop: Shop) -> None:
    shop.database.execute("CREATE TABLE changes (order_date date, loaded_at timestamptz)")
    shop.source("SELECT order_date FROM changes WHERE loaded_at > :since", "affected")
    shop.declare(affected="affected.sql")
    shop.database.execute(f"UPDATE orders_fact SET order_date = '{JAN2}' WHERE order_id = 'o100'")
    shop.database.execute(f"INSERT INTO changes VALUES ('{JAN1}', now()), ('{JAN2}', now())")

    run = shop.run(JAN2)
    assert shop.sums() == (8, 11, 61500)
    assert any(f"also touch {JAN1}, outside this range" in warning for warning in run.warnings)

    run = shop.run(JAN2, with_affected=True)
    assert run.slices_done == (JAN1,) and shop.sums() == (8, 10, 56500)
    shop.unchanged(f"{JAN1}..{JAN3}")


def test_c4_two_rows_of_one_key_are_refused_before_anything_is_published(shop: Shop) -> None:
    shop.source(SOURCE.replace("GROUP BY order_date, channel", "GROUP BY order_date, channel, order_id = 'o200'"))
    error = shop.refuses(f"{JAN2}..{JAN3}", "key_repeated")
    assert f"1 key is repeated; 2 rows share them; e.g. ({JAN2}, web)" in found(error)
    assert shop.sums() == (8, 10, 56500)


def test_c5_rows_outside_the_range_are_refused(shop: Shop) -> None:
    shop.source(
        f"{SOURCE} UNION ALL SELECT DATE '{JAN1}', 'web', 1, 999 UNION ALL SELECT DATE '2026-01-05', 'web', 1, 999"
    )
    error = shop.refuses(JAN2, "outside_range")
    assert "2 rows lie outside it" in found(error) and "1998" in found(error)
    assert shop.sums() == (8, 10, 56500)


def test_c6a_an_insert_that_fails_leaves_the_old_rows(engine: Database, method: str) -> None:
    shop = Shop(engine, method, ", CHECK (amount_cents < 20000)")
    shop.database.execute("UPDATE orders_fact SET amount_cents = 14000 WHERE order_id = 'o200'")
    before = shop.versions()
    for _ in range(2):
        error = shop.fails("run", Retryable, f"{JAN1}..{JAN3}")
        assert kinds(error) == ["publish_failed"] and error.exit_code == 4
        assert shop.versions() == before
    shop.database.execute("UPDATE orders_fact SET amount_cents = 12500 WHERE order_id = 'o200'")
    assert shop.run(f"{JAN1}..{JAN3}").outcome is Outcome.PUBLISHED and shop.sums() == (8, 10, 57000)


def test_c6b_a_source_that_fails_on_one_day_of_three_leaves_all_three(shop: Shop) -> None:
    shop.source(
        SOURCE.replace(
            "sum(amount_cents)",
            f"sum(CASE WHEN order_date = DATE '{JAN2}' THEN CAST('no answer' || channel AS bigint) ELSE 1 END)",
        )
    )
    before = shop.versions()
    error = shop.fails("run", Retryable, f"{JAN1}..{JAN3}")
    assert kinds(error) == ["source_failed"] and error.exit_code == 4
    assert shop.versions() == before and shop.sums() == (8, 10, 56500)


def test_c7_a_kill_between_delete_and_insert_leaves_the_old_rows_and_the_same_command_ends_right(shop: Shop) -> None:
    shop.database.execute("UPDATE orders_fact SET amount_cents = 12500 WHERE order_id = 'o200'")
    shop.database.let_go()
    words = f"INSERT INTO {shop.database.quoted('daily_orders')}"
    command = [sys.executable, "-m", "tests.conformance.killed", str(shop.file), shop.name, f"{JAN1}..{JAN3}", words]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert shop.sums() == (8, 10, 56500)

    run = shop.run(f"{JAN1}..{JAN3}")

    assert run.outcome is Outcome.PUBLISHED and shop.sums() == (8, 10, 57000)
    assert any("its process is gone; nothing of it was published" in note for note in run.notes)


def test_c8_an_empty_source_is_held_until_a_person_consents(shop: Shop) -> None:
    shop.database.execute(f"DELETE FROM orders_fact WHERE order_date = '{JAN2}'")
    error: Stopped = shop.stops(JAN2, "empty_slice", "total_change")
    assert shop.sums() == (8, 10, 56500)
    assert error.run is not None
    shop.run(approve=error.run.id)
    assert shop.sums() == (5, 6, 30500)


def test_c9_a_null_key_is_refused_by_default_and_stands_once_where_it_is_allowed(shop: Shop) -> None:
    shop.database.insert("orders_fact", [("o204", JAN2, None, 3000, f"{JAN2} 12:00:00")])
    shop.refuses(JAN2, "key_null")
    assert shop.sums() == (8, 10, 56500)
    shop.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    for outcome in (Outcome.PUBLISHED, Outcome.UNCHANGED):
        assert shop.run(JAN2).outcome is outcome
        assert shop.sums() == (9, 11, 59500)


def test_c10_the_last_half_second_of_the_last_day_is_counted(shop: Shop) -> None:
    shop.database.insert("orders_fact", [("o303", JAN3, "web", 900, f"{JAN3} 23:59:59.5")])
    shop.source(
        SOURCE.replace("order_date BETWEEN :start AND :end", "order_ts >= :start_instant AND order_ts < :end_instant")
    )
    for outcome in (Outcome.PUBLISHED, Outcome.UNCHANGED):
        assert shop.run(f"{JAN1}..{JAN3}").outcome is outcome
        assert shop.sums() == (8, 11, 57400)


def test_c10_a_source_that_ends_at_midnight_is_seen_as_rows_that_vanish(shop: Shop) -> None:
    """A closed range on a timestamp drops the last day, and the guard holds it."""
    shop.source(SOURCE.replace("order_date BETWEEN :start AND :end", "order_ts BETWEEN :start AND :end"))
    error: Refused | Stopped = shop.fails("run", Stopped, f"{JAN1}..{JAN3}")
    assert "empty_slice" in kinds(error) and JAN3 in found(error)
    assert shop.sums() == (8, 10, 56500)
