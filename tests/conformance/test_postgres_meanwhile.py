"""What others do to a table of PostgreSQL while a run is under way, and what the server may be set to."""

from __future__ import annotations

import time

import pytest

from reslice.errors import Refused, Retryable
from reslice.values import Outcome
from tests.conformance.database import only
from tests.conformance.orders import D2, T0, Orders, changed, found, kinds

pytestmark = only("postgresql", "what is done to a server of PostgreSQL")

REFERENCING = (
    "ALTER TABLE daily_orders ADD UNIQUE (order_date, channel)",
    "CREATE TABLE notes (order_date date, channel text, FOREIGN KEY (order_date, channel)"
    " REFERENCES daily_orders (order_date, channel) ON DELETE CASCADE)",
    f"INSERT INTO notes VALUES ('{D2}', 'web')",
)
HANGING = {
    "a foreign key that removes with it": REFERENCING,
    "a trigger": (
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER nothing BEFORE INSERT ON daily_orders FOR EACH ROW EXECUTE FUNCTION nothing()",
    ),
    "a table that inherits": ("CREATE TABLE more_orders () INHERITS (daily_orders)",),
    "a rule": ("CREATE RULE nothing AS ON INSERT TO daily_orders DO INSTEAD NOTHING",),
}


@pytest.mark.parametrize("name", HANGING)
def test_what_hangs_on_the_table_is_looked_at_again_under_the_lock(orders: Orders, name: str) -> None:
    orders.correct(4, 1300)

    def act() -> None:
        for statement in HANGING[name]:
            orders.elsewhere(statement)()

    error = orders.fails("run", Refused, D2, on_step=orders.at_step("publishing", act))
    assert kinds(error) == ["base_moved"] and "what hangs on" in found(error)
    assert orders.rows() == list(T0)
    if name.startswith("a foreign key"):
        assert len(orders.database.rows("SELECT 1 FROM notes")) == 1


@pytest.mark.parametrize("command", ["plan", "run", "verify", "status"])
def test_a_table_that_is_locked_against_readers_is_waited_for_and_no_longer(orders: Orders, command: str) -> None:
    orders.declare(timeouts={"lock": "300ms"})
    orders.run(D2)
    with orders.database.session() as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE daily_orders IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        error = orders.fails(command, Retryable, D2)
        assert 0.2 < time.monotonic() - began < 8
        other.execute("ROLLBACK")
    assert kinds(error) == ["database_busy"]
    assert orders.run(D2).outcome is Outcome.UNCHANGED


def test_what_is_published_is_durable_whatever_the_database_is_set_to(orders: Orders) -> None:
    name = orders.database.rows("SELECT current_database()")[0][0]
    orders.database.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    seen: list[tuple[str, ...]] = []
    orders.database.execute("CREATE TABLE seen (setting text)")
    orders.database.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END$$"
    )
    orders.database.execute(
        "CREATE TRIGGER note AFTER INSERT ON daily_orders FOR EACH STATEMENT EXECUTE FUNCTION note()"
    )
    orders.correct(4, 1300)
    assert orders.run(D2).outcome is Outcome.PUBLISHED
    seen = orders.database.rows("SELECT setting FROM seen")
    assert seen == [("on",)]
    assert orders.rows() == changed((D2, "web", 1, 1300))


def test_a_null_is_a_null_in_the_ledger_whatever_arrays_say_of_it(orders: Orders) -> None:
    name = orders.database.rows("SELECT current_database()")[0][0]
    orders.database.execute(f'ALTER DATABASE "{name}" SET array_nulls = off')
    orders.database.execute("DELETE FROM daily_orders")
    run = orders.run(D2)
    assert run.outcome is Outcome.PUBLISHED
    shown = orders.handle.project.show(run.id or "")
    assert [group.before for group in shown.groups] == [None, None]
