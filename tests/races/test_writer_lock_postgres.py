"""`writer_lock` on PostgreSQL: what it is by itself, and that all who take it, and publishes, take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

import reslice
from reslice.engines.postgres import writers
from reslice.errors import Misused, OutcomeUnknown, Refused, Retryable
from reslice.values import Run
from tests import postgres
from tests.proxy import Fault, Proxy, Statement
from tests.races.histories import D1, OUTSIDE
from tests.races.shop_postgres import DATABASE, Shop
from tests.races.test_publish_postgres import Beside, before, before_commit_of_publish, prepared, run, waits
from tests.unit.postgres_servers import Server, pgbouncer, pgbouncer_program

LEVELS = [None, *psycopg.IsolationLevel]
INSERT = f"INSERT INTO daily_orders (order_date, channel, order_count) VALUES ('{OUTSIDE}', 'mine', 1)"
SNAPSHOTS = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]
Connection = psycopg.Connection[Any]


@pytest.fixture
def made(shop: Shop) -> Shop:
    """The shop, without a ledger."""
    prepared(shop)
    return shop


@pytest.fixture
def connection(made: Shop) -> Iterator[Connection]:
    with closing(made.connect()) as opened:
        yield opened


def is_there(shop: Shop) -> int:
    """Return how often the row is there that is written in these tests."""
    return int(shop.rows("SELECT count(*) FROM daily_orders WHERE channel = 'mine'")[0][0])


def generation(shop: Shop) -> int:
    if not shop.has_ledger():
        return 0
    return int(shop.rows("SELECT coalesce(sum(generation), 0) FROM reslice.fences")[0][0])


def is_idle(connection: Connection) -> bool:
    return connection.info.transaction_status is TransactionStatus.IDLE


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_block_commits_in_a_transaction_of_the_connections_own_kind(
    made: Shop, connection: Connection, autocommit: bool, level: psycopg.IsolationLevel | None
) -> None:
    connection.autocommit, connection.isolation_level = autocommit, level
    with reslice.writer_lock(connection, "daily_orders") as given:
        assert given is connection
        assert connection.info.transaction_status is TransactionStatus.INTRANS
        given.execute(INSERT)
        expected = "READ_COMMITTED" if level is None else level.name
        shown = given.execute("SHOW transaction_isolation").fetchall()[0][0]
        assert shown.replace(" ", "_").upper() == expected
        assert is_there(made) == 0, "nobody else sees it yet"
    assert is_idle(connection)
    assert (is_there(made), generation(made)) == (1, 1)
    assert (connection.autocommit, connection.isolation_level) == (autocommit, level)
    assert made.locks_left() == []


@pytest.mark.parametrize("autocommit", [True, False])
def test_the_settings_of_the_writer_hold_inside_and_are_as_they_were(made: Shop, autocommit: bool) -> None:
    asked = "SELECT name, setting, source FROM pg_settings WHERE name NOT LIKE 'transaction%' ORDER BY name"
    with closing(made.connect(autocommit=autocommit)) as connection:
        connection.execute("SET lock_timeout = '1234ms'")
        connection.execute("SET statement_timeout = '5s'")
        connection.execute("SET search_path = public")
        before_it = connection.execute(asked).fetchall()
        connection.commit()
        with reslice.writer_lock(connection, "daily_orders", wait="7s"):
            inside = {name: value for name, value, _ in connection.execute(asked).fetchall()}
        assert inside == {name: value for name, value, _ in before_it}
        assert connection.execute(asked).fetchall() == before_it


class MyOwnError(Exception):
    pass


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_block_that_raises_leaves_the_table_as_it_was(made: Shop, autocommit: bool) -> None:
    with closing(made.connect(autocommit=autocommit)) as connection:
        with pytest.raises(MyOwnError), reslice.writer_lock(connection, "daily_orders"):
            connection.execute(INSERT)
            raise MyOwnError
        assert is_idle(connection)
        with pytest.raises(psycopg.errors.DivisionByZero), reslice.writer_lock(connection, "daily_orders"):
            connection.execute(INSERT)
            connection.execute("SELECT 1 / 0")
        assert is_idle(connection)
    assert (is_there(made), generation(made), made.locks_left()) == (0, 0, [])


def test_an_error_that_the_block_swallows_is_told_at_its_end(made: Shop, connection: Connection) -> None:
    with pytest.raises(Retryable) as caught, reslice.writer_lock(connection, "daily_orders"):
        connection.execute(INSERT)
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
    assert (caught.value.kind, caught.value.retry) == ("write_aborted", True)
    assert caught.value.unchanged == "daily_orders is as it was; everything was rolled back"
    assert is_idle(connection) and is_there(made) == 0


def test_an_error_in_a_savepoint_is_the_blocks_own_business(made: Shop, connection: Connection) -> None:
    with reslice.writer_lock(connection, "daily_orders"):
        connection.execute(INSERT)
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.execute(INSERT)
            connection.execute("SELECT 1 / 0")
    assert is_there(made) == 1


def test_a_commit_that_fails_is_told(made: Shop, connection: Connection) -> None:
    """A constraint that is looked at when the transaction ends."""
    key = "ADD UNIQUE (order_date, channel) DEFERRABLE INITIALLY DEFERRED"
    made.connection.execute(f"ALTER TABLE daily_orders {key}")
    with pytest.raises(Retryable) as caught, reslice.writer_lock(connection, "daily_orders"):
        connection.execute(INSERT)
        connection.execute(INSERT)
    assert caught.value.kind == "write_aborted" and "unique constraint" in caught.value.failures[0].found[0]
    assert is_idle(connection) and is_there(made) == 0


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("after", ["", "SELECT 1", INSERT, "SELECT 1 / 0"], ids=["", "reads", "writes", "fails"])
def test_a_block_that_ends_the_transaction_itself_is_told_so(
    made: Shop, autocommit: bool, word: str, after: str
) -> None:
    with closing(made.connect(autocommit=autocommit)) as connection:
        with pytest.raises((Misused, Retryable)) as caught, reslice.writer_lock(connection, "daily_orders"):
            connection.execute(INSERT)
            connection.execute(word)
            if after and autocommit:
                connection.execute("BEGIN")
            if after == "SELECT 1 / 0":
                with pytest.raises(psycopg.errors.DivisionByZero):
                    connection.execute(after)
            elif after:
                connection.execute(after)
        if word == "ROLLBACK" and after == "SELECT 1 / 0":
            assert caught.value.kind == "write_aborted"  # nothing was written, whoever rolled it back
        else:
            assert caught.value.kind == "usage" and "ended the transaction itself" in str(caught.value)
        assert is_idle(connection)
    assert is_there(made) == (word == "COMMIT")


def opens(connection: Connection, how: str, stack: ExitStack) -> None:
    if how == "begun":
        connection.execute("BEGIN")
    elif how == "implicit":
        connection.autocommit = False
        connection.execute("SELECT 1")
    elif how == "in error":
        connection.execute("BEGIN")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
    elif how == "a block":
        stack.enter_context(connection.transaction())
    else:
        stack.enter_context(reslice.writer_lock(connection, "daily_orders"))


@pytest.mark.parametrize("how", ["begun", "implicit", "in error", "a block", "a lock"])
def test_an_open_transaction_is_refused_and_left_open(made: Shop, connection: Connection, how: str) -> None:
    with ExitStack() as stack:
        opens(connection, how, stack)
        status = connection.info.transaction_status
        with pytest.raises(Misused) as caught, reslice.writer_lock(connection, "daily_orders"):
            raise AssertionError("never inside")
        assert caught.value.kind == "usage" and "has a transaction open" in str(caught.value)
        assert connection.info.transaction_status is status
        if how in ("begun", "implicit", "in error"):
            connection.execute("ROLLBACK")


def test_what_cannot_be_used_is_refused(made: Shop, connection: Connection) -> None:
    with connection.pipeline(), pytest.raises(Misused) as caught, reslice.writer_lock(connection, "daily_orders"):
        raise AssertionError("never inside")
    assert (caught.value.kind, "pipeline" in str(caught.value)) == ("usage", True)
    cursor = connection.cursor()
    connection.close()
    for each in (connection, cursor, psycopg.AsyncConnection):
        with pytest.raises(Misused) as caught, reslice.writer_lock(each, "daily_orders"):
            raise AssertionError("never inside")
        assert caught.value.kind == "connection"


def test_what_cannot_be_locked_is_refused_by_name(made: Shop, connection: Connection) -> None:
    with reslice.writer_lock(connection, "daily_orders"):
        pass
    made.connection.execute("CREATE OR REPLACE VIEW shown AS SELECT * FROM daily_orders")
    made.connection.execute("CREATE SCHEMA IF NOT EXISTS foreign_one")
    made.connection.execute("CREATE TABLE IF NOT EXISTS foreign_one.fences (owner VARCHAR)")
    for name, schema, kind in (
        ("nowhere", "reslice", "target_missing"),
        ("shown", "reslice", "target_not_table"),
        ("daily_orders", "elsewhere", "ledger_foreign"),
        ("orders", "foreign_one", "ledger_foreign"),
    ):
        with pytest.raises(Refused) as caught, reslice.writer_lock(connection, name, schema=schema):
            raise AssertionError("never inside")
        assert caught.value.kind == kind
        assert is_idle(connection)
    assert made.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'elsewhere'") == [(0,)]


@pytest.mark.parametrize("how", ["the connection", "the session"])
def test_a_connection_for_reading_is_refused(made: Shop, connection: Connection, how: str) -> None:
    with reslice.writer_lock(connection, "daily_orders"):
        pass
    if how == "the connection":
        connection.read_only = True
    else:
        connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(Refused) as caught, reslice.writer_lock(connection, "daily_orders"):
        raise AssertionError("never inside")
    assert caught.value.kind == "target_rights" and is_idle(connection)


def test_the_least_rights_are_those_of_the_fence(made: Shop) -> None:
    """A writer needs SELECT and UPDATE on the fences, and what it writes; without them it is told so."""
    with closing(made.connect()) as owner, reslice.writer_lock(owner, "daily_orders"):
        pass
    with closing(made.connect(user=postgres.ADMIN)) as admin:
        admin.execute("DROP ROLE IF EXISTS shop_assistant")
        admin.execute("CREATE ROLE shop_assistant LOGIN")
        try:
            made.connection.execute("GRANT SELECT, INSERT ON daily_orders TO shop_assistant")
            made.connection.execute("GRANT USAGE ON SCHEMA reslice TO shop_assistant")
            made.connection.execute("GRANT SELECT ON reslice.fences TO shop_assistant")
            with closing(made.connect(user="shop_assistant")) as writer:
                with pytest.raises(Refused) as caught, reslice.writer_lock(writer, "daily_orders"):
                    raise AssertionError("never inside")
                assert caught.value.kind == "target_rights" and "UPDATE" in caught.value.failures[0].next
                made.connection.execute("GRANT UPDATE ON reslice.fences TO shop_assistant")
                with reslice.writer_lock(writer, "daily_orders"):
                    writer.execute(INSERT)
            assert (is_there(made), generation(made)) == (1, 2)
        finally:
            admin.execute("DROP OWNED BY shop_assistant")
            admin.execute("DROP ROLE shop_assistant")


# --- turns ----------------------------------------------------------------------------------------------------------


NAMES = ["daily_orders", "DAILY_ORDERS", "public.daily_orders", f'{DATABASE}."public"."daily_orders"']


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_table_is_the_same_turn(made: Shop, connection: Connection, name: str) -> None:
    with reslice.writer_lock(connection, name), closing(made.connect()) as other:
        began = time.monotonic()
        with (
            pytest.raises(Retryable) as caught,
            reslice.writer_lock(other, "daily_orders", wait=timedelta(milliseconds=200)),
        ):
            raise AssertionError("never inside")
        assert 0.2 <= time.monotonic() - began < 5
        assert (caught.value.kind, caught.value.exit_code) == ("database_busy", 4)
        assert is_idle(other)
        with reslice.writer_lock(other, "orders"):
            pass
    assert made.rows("SELECT table_name, generation FROM reslice.fences ORDER BY 1") == [
        (f"{DATABASE}.public.daily_orders", 1),
        (f"{DATABASE}.public.orders", 1),
    ]


def test_a_limit_of_the_writer_for_statements_does_not_end_its_wait(made: Shop, connection: Connection) -> None:
    with closing(made.connect()) as other, ExitStack() as stack, reslice.writer_lock(connection, "daily_orders"):
        other.execute("SET statement_timeout = '50ms'")
        other.execute("SET lock_timeout = '50ms'")
        second = Beside(lambda: taken(other))
        second.go(until=waits(made, other))
        time.sleep(0.2)
        connection.execute(INSERT)
        stack.push(lambda *_: second.end())  # once the first has committed, and before the other is closed
    assert second.errors == [] and second.result == 1


def taken(connection: Connection) -> int:
    """Take the lock, and return how many rows are there then."""
    with reslice.writer_lock(connection, "daily_orders"):
        rows = connection.execute("SELECT count(*) FROM daily_orders WHERE channel = 'mine'").fetchall()
    return int(rows[0][0])


@pytest.mark.parametrize("level", SNAPSHOTS, ids=str)
def test_a_writer_of_another_table_is_in_nobodys_way(
    made: Shop, connection: Connection, level: psycopg.IsolationLevel
) -> None:
    """Also when the planner knows that there are only two fences, and would look at both."""
    for name in ("orders", "daily_orders"):
        with reslice.writer_lock(connection, name):
            pass
    made.connection.execute("ANALYZE reslice.fences")
    with closing(made.connect()) as other:
        for each in (connection, other):
            each.isolation_level = level
        with reslice.writer_lock(connection, "daily_orders"):
            connection.execute(INSERT)
            with reslice.writer_lock(other, "orders"):
                other.execute("INSERT INTO orders VALUES (1)")
    assert is_there(made) == 1


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_writer_sees_what_it_waited_for(
    made: Shop, connection: Connection, level: psycopg.IsolationLevel | None, autocommit: bool
) -> None:
    """Also where its snapshot is fixed by the statement that waits, before the row is committed."""
    with closing(made.connect(autocommit=autocommit)) as other:
        other.isolation_level = level
        second = Beside(lambda: taken(other))
        with reslice.writer_lock(connection, "daily_orders"):
            connection.execute(INSERT)
            second.go(until=waits(made, other))
        second.end()
    assert second.errors == [] and second.result == 1
    assert generation(made) == 2


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_writer_waits_for_a_publish_and_writes_upon_its_rows(
    made: Shop, connection: Connection, level: psycopg.IsolationLevel | None
) -> None:
    connection.isolation_level = level
    update = f"UPDATE daily_orders SET revenue = 4242 WHERE order_date = '{D1}' AND channel = 'phone'"

    def write() -> int:
        with reslice.writer_lock(connection, "daily_orders"):
            return connection.execute(update).rowcount  # the row is one that the publish adds

    live = Beside(write)
    with before_commit_of_publish(lambda: live.go(until=waits(made, connection))):
        ended = run(made)
    live.end()
    assert live.errors == [] and live.result == 1
    assert isinstance(ended, Run), ended
    found = made.rows("SELECT revenue FROM daily_orders WHERE order_date = %s AND channel = 'phone'", [D1])
    assert found == [(4242,)]


def test_a_writer_that_comes_after_the_comparison_is_told_to_the_run(made: Shop, connection: Connection) -> None:
    def write() -> None:
        with reslice.writer_lock(connection, "daily_orders"):
            connection.execute(f"UPDATE daily_orders SET revenue = 4242 WHERE order_date = '{D1}'")

    with before("SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('reslice table", write):
        ended = run(made)
    assert isinstance(ended, Refused) and ended.kind == "base_moved"
    assert made.rows("SELECT DISTINCT revenue FROM daily_orders WHERE order_date = %s", [D1]) == [(4242,)]


def test_a_run_waits_for_a_writer_as_long_as_its_contract_says(made: Shop, connection: Connection) -> None:
    made.declare(wait="300ms")
    with reslice.writer_lock(connection, "daily_orders"):
        ended = run(made)
    assert isinstance(ended, Retryable) and (ended.kind, ended.exit_code) == ("database_busy", 4)
    assert "a writer that holds its writer_lock" in ended.failures[0].found[0]


def test_many_that_make_the_fence_at_once_all_get_it(made: Shop) -> None:
    connections = [made.connect() for _ in range(6)]
    others = [Beside(lambda each=each: taken(each)) for each in connections]  # type: ignore[misc]
    for other in others:
        other.go(until=lambda: True)
    for other in others:
        other.end()
    for each in connections:
        each.close()
    assert [other.errors for other in others] == [[]] * 6
    assert made.rows("SELECT generation FROM reslice.fences") == [(6,)]


@pytest.mark.parametrize("level", [None, *SNAPSHOTS], ids=str)
def test_no_addition_of_many_writers_beside_runs_is_lost(made: Shop, level: psycopg.IsolationLevel | None) -> None:
    """Each adds one to a count, as a read and a write of its own."""
    made.connection.execute(INSERT)
    made.connection.execute("UPDATE daily_orders SET order_count = 0 WHERE channel = 'mine'")

    def count_up(connection: Connection) -> None:
        for _ in range(8):
            with reslice.writer_lock(connection, "daily_orders"):
                ((now,),) = connection.execute("SELECT order_count FROM daily_orders WHERE channel = 'mine'").fetchall()
                connection.execute("UPDATE daily_orders SET order_count = %s WHERE channel = 'mine'", [now + 1])

    def publish() -> list[str]:
        target = reslice.open(made.contract).target("daily_orders")
        return [target.run(str(D1), rewrite=True).outcome.value for _ in range(3)]

    connections = [made.connect() for _ in range(4)]
    for each in connections:
        each.isolation_level = level
    everybody = [Beside(lambda each=each: count_up(each)) for each in connections]  # type: ignore[misc]
    everybody.append(Beside(publish))
    for one in everybody:
        one.go(until=lambda: True)
    for one in everybody:
        one.end()
    for each in connections:
        each.close()
    assert [one.errors for one in everybody] == [[]] * 5
    assert everybody[-1].result == ["published"] * 3
    assert made.rows("SELECT order_count FROM daily_orders WHERE channel = 'mine'") == [(4 * 8,)]
    assert generation(made) == 4 * 8 + 3


@pytest.mark.parametrize("size", [1, 3])
def test_writers_through_a_pool_of_transactions_take_turns_and_leave_nothing(
    made: Shop, tmp_path: Path, size: int
) -> None:
    """No statement of theirs is sure of the server process of the one before, but within a transaction."""
    made.connection.execute(INSERT)
    made.connection.execute("UPDATE daily_orders SET order_count = 0 WHERE channel = 'mine'")
    place = f"host={made.server.folder} port={made.server.port} dbname={DATABASE} user={postgres.ROLE}"
    server = Server(made.server.folder, made.server.port)
    more = f"[databases]\nmine = {place}"
    with pgbouncer(pgbouncer_program(), server, tmp_path, "transaction", size, more) as url:
        pooled = url.replace("/shop", "/mine")
        connections = [psycopg.connect(pooled, autocommit=True, prepare_threshold=None) for _ in range(3)]

        def count_up(connection: Connection) -> None:
            for _ in range(10):
                with reslice.writer_lock(connection, "daily_orders"):
                    connection.execute("UPDATE daily_orders SET order_count = order_count + 1 WHERE channel = 'mine'")

        everybody = [Beside(lambda each=each: count_up(each)) for each in connections]  # type: ignore[misc]
        for one in everybody:
            one.go(until=lambda: True)
        for one in everybody:
            one.end()
        for each in connections:
            each.close()
        assert [one.errors for one in everybody] == [[]] * 3
        assert isinstance(run(made), Run)
    assert made.locks_left() == []
    assert made.rows("SELECT order_count FROM daily_orders WHERE channel = 'mine'") == [(30,)]
    assert generation(made) == 31


# --- answers that are lost ------------------------------------------------------------------------------------------


@contextmanager
def through_proxy(
    shop: Shop, fault: Callable[[Statement], Fault], *, refuse_after: float | None = 0.0
) -> Iterator[Connection]:
    proxy = Proxy((shop.server.folder, shop.server.port), fault, refuse_after)
    try:
        with closing(psycopg.connect(proxy.url(DATABASE, postgres.ROLE), autocommit=True)) as opened:
            yield opened
    finally:
        proxy.close()


def last_commit(fault: Fault) -> Callable[[Statement], Fault]:
    """Return what fails at the commit after the row was written."""
    written = threading.Event()

    def decided(statement: Statement) -> Fault:
        if statement.text == INSERT:
            written.set()
        return fault if written.is_set() and statement.text == "COMMIT" else Fault.NONE

    return decided


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.CUT_CLIENT])
def test_a_commit_whose_answer_is_lost_is_found_out(made: Shop, fault: Fault) -> None:
    with through_proxy(made, last_commit(fault)) as connection, reslice.writer_lock(connection, "daily_orders"):
        connection.execute(INSERT)
    assert (is_there(made), generation(made)) == (1, 1)


def test_a_commit_that_never_arrived_is_found_out(made: Shop) -> None:
    with (
        through_proxy(made, last_commit(Fault.DROP_BEFORE)) as connection,
        pytest.raises(Retryable) as caught,
        reslice.writer_lock(connection, "daily_orders"),
    ):
        connection.execute(INSERT)
    assert caught.value.kind == "write_aborted"
    assert (is_there(made), generation(made)) == (0, 0)


def test_a_commit_of_which_nobody_can_tell_is_said_to_be_unknown(made: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "RECONNECT_SECONDS", 0.5)
    with (
        through_proxy(made, last_commit(Fault.DROP_AFTER), refuse_after=None) as connection,
        pytest.raises(OutcomeUnknown) as caught,
        reslice.writer_lock(connection, "daily_orders"),
    ):
        connection.execute(INSERT)
    assert (caught.value.kind, caught.value.exit_code) == ("outcome_unknown", 5)


def test_a_connection_that_is_ended_in_the_block_has_written_nothing(made: Shop) -> None:
    with (
        closing(made.connect()) as connection,
        pytest.raises(Retryable) as caught,
        reslice.writer_lock(connection, "daily_orders"),
    ):
        connection.execute(INSERT)
        made.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
    assert caught.value.kind == "write_aborted"
    assert (is_there(made), made.locks_left()) == (0, [])
