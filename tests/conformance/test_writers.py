"""Other writers: two runs of one slice, a live writer in the slice or beside it, a held file, names that clash."""

from __future__ import annotations

import itertools
import secrets
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from reslice.errors import Refused, ResliceError, Retryable
from reslice.values import Outcome
from tests.conformance.databases import Database, DuckDBDatabase, file_of, only
from tests.conformance.orders import (
    D1,
    D2,
    D3,
    EVERY_METHOD,
    IN_PLACE,
    INSERT,
    SOURCE,
    T0,
    Orders,
    changed,
    found,
    kinds,
    ordered,
)

METHODS = EVERY_METHOD


def both(orders: Orders, *ranges: str) -> list[Any]:
    """Run ranges at the same moment, each in a thread with a project of its own; return a Run or an error for each."""
    answers: list[Any] = [None] * len(ranges)
    start = threading.Barrier(len(ranges))

    def one(place: int, range: str) -> None:
        handle = orders.handle
        start.wait()
        try:
            answers[place] = handle.run(range)
        except ResliceError as error:
            answers[place] = error

    threads = [threading.Thread(target=one, args=(place, range)) for place, range in enumerate(ranges)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("filled", [False, True])
def test_t11_1_of_two_runs_of_one_slice_one_publishes_and_the_other_says_so(orders: Orders, filled: bool) -> None:
    if not filled:
        orders.database.execute("DELETE FROM daily_orders")
    else:
        orders.database.execute("UPDATE daily_orders SET amount_cents = 1")

    answers = both(orders, D2, D2)

    published = [each for each in answers if not isinstance(each, ResliceError) and each.outcome is Outcome.PUBLISHED]
    assert len(published) == 1
    (other,) = (each for each in answers if each is not published[0])
    if isinstance(other, ResliceError):
        assert kinds(other)[0] in ("base_moved", "later_run")
        assert other.run is not None and orders.ledger(other.run.id)["state"] == "refused"
    else:
        assert other.outcome is Outcome.UNCHANGED
    assert [row for row in orders.rows() if row[0] == D2] == [(D2, "store", 2, 750), (D2, "web", 1, 1200)]
    orders.unchanged(D2)


def test_t11_3_a_slice_that_changed_after_it_was_compared_is_not_overwritten(orders: Orders) -> None:
    orders.correct(4, 1300)
    insert = orders.elsewhere(f"{INSERT} ('{D2}', 'phone', 1, 60)")

    error: Refused = orders.fails("run", Refused, D2, on_step=orders.at_step("publishing", insert))

    assert kinds(error) == ["base_moved"] and "held 2 rows when it was compared and now 3" in found(error)
    assert orders.ledger(error.run.id if error.run else None)["state"] == "refused"
    assert orders.rows() == changed((D2, "phone", 1, 60))
    assert orders.database.rows(
        f"SELECT count(*), sum(amount_cents) FROM {orders.current} WHERE order_date = '{D2}'"
    ) == [(3, 2010)]
    plan = orders.plan(D2)
    assert plan.diff is not None
    assert [(each.change.value, each.key["channel"]) for each in plan.diff.groups] == [
        ("removed", "phone"),
        ("changed", "web"),
    ]
    orders.publish(D2, changed=1, removed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE daily_orders SET amount_cents = 5 WHERE order_date = '{D2}' AND channel = 'web'",
        f"DELETE FROM daily_orders WHERE order_date = '{D2}' AND channel = 'web'",
        f"UPDATE daily_orders SET channel = 'shop' WHERE order_date = '{D2}' AND channel = 'web'",
        f"UPDATE daily_orders SET order_date = '{D2}' WHERE order_date = '{D3}' AND channel = 'web'",
        f"{INSERT} ('{D2}', 'web', 1, 1200)",
        f"UPDATE daily_orders SET amount_cents = 1950 - amount_cents WHERE order_date = '{D2}'",
        f"UPDATE daily_orders SET order_count = 3 - order_count, amount_cents = 1950 - amount_cents"
        f" WHERE order_date = '{D2}'",
    ],
    ids=["update", "delete", "new key", "moved in", "doubled", "swapped", "swapped whole"],
)
def test_any_change_of_the_slice_after_it_was_compared_is_kept(orders: Orders, change: str) -> None:
    orders.correct(4, 1300)
    seen: list[Any] = []

    def act() -> None:
        orders.elsewhere(change)()
        seen.extend(orders.rows())

    error = orders.fails("run", Refused, D2, on_step=orders.at_step("publishing", act))

    assert kinds(error) == ["base_moved"]
    assert orders.rows() == seen
    orders.run(D2)
    assert [row for row in orders.rows() if row[0] == D2] == [(D2, "store", 2, 750), (D2, "web", 1, 1300)]


def test_a_change_that_is_undone_before_the_publish_is_no_change(orders: Orders) -> None:
    orders.correct(4, 1300)

    def act() -> None:
        orders.elsewhere("UPDATE daily_orders SET amount_cents = amount_cents + 1")()
        orders.elsewhere("UPDATE daily_orders SET amount_cents = amount_cents - 1")()

    run = orders.run(D2, on_step=orders.at_step("publishing", act))

    assert run.outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300))


def test_a_run_does_not_overwrite_what_a_run_that_staged_later_has_published(orders: Orders) -> None:
    orders.correct(4, 1300)

    def later() -> None:
        orders.correct(4, 1400)
        assert orders.run(f"{D1}..{D3}").outcome is Outcome.PUBLISHED

    error = orders.fails("run", Refused, D2, on_step=orders.at_step("publishing", later))

    assert kinds(error) == ["later_run"] and "r-0002" in found(error)
    assert orders.rows() == changed((D2, "web", 1, 1400))
    orders.unchanged(D2)


def test_a_later_run_that_found_nothing_to_change_is_a_later_run_too(orders: Orders) -> None:
    orders.correct(4, 1300)

    def later() -> None:
        orders.correct(4, 1200)
        assert orders.run(D2).outcome is Outcome.UNCHANGED

    error = orders.fails("run", Refused, D2, on_step=orders.at_step("publishing", later))

    assert kinds(error) == ["later_run"]
    assert orders.rows() == list(T0)


def test_a_later_run_of_other_slices_is_in_nobodys_way(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.correct(8, 1000)

    def later() -> None:
        assert orders.run(D3).outcome is Outcome.PUBLISHED

    run = orders.run(D2, on_step=orders.at_step("publishing", later))

    assert run.outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300), (D3, "phone", 1, 1000))


@pytest.mark.parametrize("method", IN_PLACE)
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (order_date, channel)"])
@pytest.mark.parametrize(
    "is_committed", [True, pytest.param(False, marks=only("duckdb", "a writer keeps no publish of other rows waiting"))]
)
def test_t11_6_a_live_update_of_another_slice_is_kept(orders: Orders, key: str, is_committed: bool) -> None:
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint{key}")
    orders.fill()
    orders.correct(4, 1300)
    update = f"UPDATE daily_orders SET amount_cents = 3501 WHERE order_date = '{D1}' AND channel = 'web'"
    with orders.database.session() as writer:
        writer.execute("BEGIN")

        def act() -> None:
            writer.execute(update)
            if is_committed:
                writer.execute("COMMIT")

        run = orders.run(D2, on_step=orders.at_step("publishing", act))
        if not is_committed:
            writer.execute("COMMIT")

    assert run.outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300), (D1, "web", 2, 3501))
    orders.unchanged(D2)


@only("postgresql", "a publish waits for every writer of the table")
@pytest.mark.parametrize("day", [D1, D2])
def test_a_writer_that_does_not_end_is_waited_for_and_nothing_of_it_is_lost(orders: Orders, day: str) -> None:
    orders.correct(4, 1300)
    orders.declare(timeouts={"lock": "50ms"})
    before = orders.versions()
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute(f"UPDATE daily_orders SET amount_cents = 7 WHERE order_date = '{day}' AND channel = 'store'")
        error = orders.fails("run", Retryable, D2)
        assert kinds(error) == ["conflict"] and error.exit_code == 4
        assert "another transaction holds a lock on public.daily_orders" in found(error)
        assert orders.ledger(error.run.id)["state"] == "failed" and orders.versions() == before
        writer.execute("COMMIT")

    assert orders.run(D2).outcome is Outcome.PUBLISHED
    kept = [(D1, "store", 1, 7)] if day == D1 else []
    assert orders.rows() == changed((D2, "web", 1, 1300), *kept)


@only("postgresql", "a writer may come after the commit of a publish, and meets its rows")
def test_a_live_update_after_the_publish_meets_the_new_rows(orders: Orders) -> None:
    orders.correct(4, 1300)
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute("SELECT count(*) FROM daily_orders")
        assert orders.run(D2).outcome is Outcome.PUBLISHED
        writer.execute(f"UPDATE daily_orders SET amount_cents = 7 WHERE order_date = '{D2}' AND channel = 'web'")
        writer.execute("COMMIT")
    assert orders.rows() == changed((D2, "web", 1, 7))
    orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))


@only("postgresql", "a writer may look at one snapshot for as long as it works")
@pytest.mark.parametrize("method", IN_PLACE)
def test_a_live_update_of_an_older_snapshot_is_a_conflict_of_the_writer(orders: Orders) -> None:
    orders.correct(4, 1300)
    with orders.database.session() as writer:
        writer.execute(orders.database.snapshot)
        writer.execute("SELECT count(*) FROM daily_orders")
        assert orders.run(D2).outcome is Outcome.PUBLISHED
        with pytest.raises(psycopg.errors.SerializationFailure):
            writer.execute(f"UPDATE daily_orders SET amount_cents = 7 WHERE order_date = '{D2}' AND channel = 'web'")
    assert orders.rows() == changed((D2, "web", 1, 1300))


@pytest.mark.parametrize(
    "order",
    ["update first", pytest.param("publish first", marks=only("duckdb", "a writer that comes later is in conflict"))],
)
def test_a_live_update_of_the_slice_is_never_lost_in_silence(orders: Orders, order: str) -> None:
    orders.correct(4, 1300)
    orders.declare(timeouts={"lock": "50ms"})
    update = f"UPDATE daily_orders SET amount_cents = 7 WHERE order_date = '{D2}' AND channel = 'web'"
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute("SELECT count(*) FROM daily_orders")
        if order == "update first":
            writer.execute(update)
            error = orders.fails("run", Retryable, D2)
            assert kinds(error) == ["conflict"] and error.exit_code == 4
            assert orders.ledger(error.run.id)["state"] == "failed"
            writer.execute("COMMIT")
            assert orders.rows() == changed((D2, "web", 1, 7))
        else:
            assert orders.run(D2).outcome is Outcome.PUBLISHED
            with pytest.raises(Exception, match=r"(?i)conflict"):
                writer.execute(update)

    if order == "update first":
        orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))
    assert orders.rows() == changed((D2, "web", 1, 1300))


@only("duckdb", "a publish waits for no writer of other rows")
def test_a_live_update_of_a_row_that_merge_leaves_alone_is_kept_beside_it(engine: Database) -> None:
    orders = Orders(engine, method="merge")
    orders.correct(4, 1300)
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute(f"UPDATE daily_orders SET amount_cents = 7 WHERE order_date = '{D2}' AND channel = 'store'")
        assert orders.run(D2).outcome is Outcome.PUBLISHED
        writer.execute("COMMIT")
    assert orders.rows() == changed((D2, "web", 1, 1300), (D2, "store", 2, 7))
    orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))


@pytest.mark.parametrize("method", IN_PLACE)
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "key", [", PRIMARY KEY (order_date, channel)", ", UNIQUE (channel, order_date)"], ids=["primary", "unique"]
)
def test_t12_2_a_keyed_target_is_replaced_while_an_older_reader_is_open(orders: Orders, key: str, times: int) -> None:
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint{key}")
    orders.fill()
    with orders.database.session() as reader:
        reader.execute(orders.database.snapshot)
        old = reader.execute(f"SELECT sum(amount_cents) FROM daily_orders WHERE order_date = '{D2}'").fetchall()
        for turn in range(times):
            orders.correct(4, 1300 + turn)
            orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300 + turn)))
        again = reader.execute(f"SELECT sum(amount_cents) FROM daily_orders WHERE order_date = '{D2}'").fetchall()

    assert old == again == [(1950,)]


def test_a_target_with_a_secondary_index_is_replaced_and_the_index_finds_the_new_rows(orders: Orders) -> None:
    orders.database.execute("CREATE INDEX by_channel ON daily_orders (channel)")
    orders.database.execute("CREATE INDEX by_cents ON daily_orders (amount_cents)")
    for cents in (1300, 1400):
        orders.correct(4, cents)
        orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, cents)))
        current = orders.current
        assert orders.database.rows(f"SELECT order_date FROM {current} WHERE amount_cents = ?", [cents]) == [(D2,)]
    assert orders.database.rows(f"SELECT count(*) FROM {current} WHERE amount_cents = 1300") == [(0,)]


HOLDER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


@only("duckdb", "a database is a file that one process holds")
@pytest.mark.parametrize("method", ["replace_slice"])
def test_t12_5_a_file_that_another_process_holds_is_named_and_unharmed(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.database.let_go()
    command = [sys.executable, "-c", HOLDER, str(file_of(orders.database))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "open\n"

        error = orders.fails("run", Retryable, D2, wait=timedelta(0))

        assert kinds(error) == ["database_busy"] and error.exit_code == 4 and error.retry
        assert str(holder.pid) in found(error)
        waited: list[str] = []

        def let_it_go(step: str) -> None:
            waited.append(step)
            if step.startswith("waiting: process") and len(waited) == 1:
                holder.stdin.write("\n")  # type: ignore[union-attr]
                holder.stdin.flush()  # type: ignore[union-attr]

        run = orders.run(D2, on_step=let_it_go)
        assert f"process {holder.pid} " in waited[0] and run.outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300))


def test_t13_1_two_runs_at_once_stage_apart(orders: Orders) -> None:
    orders.database.execute("UPDATE daily_orders SET amount_cents = 1")

    answers = both(orders, D1, D3)

    assert [each.outcome for each in answers] == [Outcome.PUBLISHED, Outcome.PUBLISHED]
    sums = f"SELECT order_date, sum(amount_cents) FROM {orders.current} GROUP BY 1 ORDER BY 1"
    assert orders.database.rows(sums) == [
        (D1, 4200),
        (D2, 2),
        (D3, 5999),
    ]


@pytest.mark.parametrize("method", ["replace_slice"])
def test_two_targets_of_long_names_that_differ_in_the_last_letter_are_not_crossed(orders: Orders) -> None:
    names = [f"{'d' * (orders.database.longest_name - 1)}{letter}" for letter in "ab"]
    for name, factor in zip(names, (1, 2), strict=True):
        orders.make_target(table=name)
        orders.source(
            "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) * "
            f"{factor} AS amount_cents"
            " FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
        )
        orders.declare(table=name)
        orders.run(f"{D1}..{D3}")
    sums = [orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM {name}") for name in names]
    assert sums == [[(6, 12149)], [(6, 24298)]]
    kept = [name for name in orders.database.table_names("reslice") if name.startswith("kept_")]
    assert len(kept) == 2


@pytest.mark.parametrize("method", ["replace_slice"])
def test_t13_4_tables_of_a_user_that_are_named_like_ours_are_not_touched(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = itertools.count(1)
    monkeypatch.setattr(secrets, "token_hex", lambda _size=None: f"c0ffee{next(tokens)}")
    words = ("source", "staged", "base", "control", "slices", "diff")
    names = [f"reslice_{word}_c0ffee{number}" for word in words for number in (1, 2, 3)]
    orders.database.execute("CREATE SCHEMA reslice")
    own = [*names, "runs", "fences", "reslice.kept_mine", "reslice.mine"]
    for name in own:
        orders.database.execute(f"CREATE TABLE {name} AS SELECT 42 AS mine")
    shared = names if isinstance(orders.database, DuckDBDatabase) else []  # the connection is, with its own tables
    for name in shared:
        orders.database.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT 43 AS mine")
    orders.source(SOURCE.replace("FROM orders_fact", "FROM orders_fact, (SELECT mine FROM reslice_staged_c0ffee1)"))
    orders.correct(4, 1300)

    orders.verify(D2)
    run = orders.run(D2)

    assert run.outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300))
    for name in own:
        place = name if "." in name else orders.database.full_name(name)
        assert orders.database.rows(f"SELECT * FROM {place}") == [(42,)]
    for name in shared:
        assert orders.database.rows(f"SELECT * FROM temp.main.{name}") == [(43,)]
    assert next(tokens) > 3, "the names met the user's own"


@only("duckdb", "a connection has several databases")
@pytest.mark.parametrize("method", IN_PLACE)
def test_a_target_of_another_attached_database_keeps_its_ledger_beside_its_rows(orders: Orders) -> None:
    orders.database.execute(f"ATTACH '{orders.folder / 'other.duckdb'}' AS other")
    orders.make_target(table="other.main.daily_orders")
    orders.declare(table="other.main.daily_orders")

    run = orders.run(f"{D1}..{D3}")

    assert orders.database.rows("SELECT count(*), sum(amount_cents) FROM other.main.daily_orders") == [(6, 12149)]
    assert orders.rows() == list(T0), "the table of the same name in the first database is another one"
    assert orders.database.rows("SELECT id, state FROM other.reslice.runs") == [(run.id, "published")]
    ledgers = "SELECT DISTINCT database_name FROM duckdb_tables() WHERE schema_name = 'reslice'"
    assert orders.database.rows(ledgers) == [("other",)]


@pytest.mark.parametrize("method", ["replace_slice"])
def test_an_open_transaction_of_the_caller_is_neither_committed_nor_seen(orders: Orders) -> None:
    connection = orders.database.connection
    connection.execute("BEGIN")
    connection.execute("UPDATE orders_fact SET amount_cents = 0")

    run = orders.run(f"{D1}..{D3}")

    assert run.outcome is Outcome.UNCHANGED
    connection.execute("ROLLBACK")
    assert orders.rows() == list(T0) == ordered(T0)
