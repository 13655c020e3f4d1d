"""A publish on PostgreSQL beside transactions of others, one race at a time: who waits, who is told, what is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import reslice
from reslice.engines.postgres.session import PostgresSession
from reslice.errors import Refused, ResliceError, Retryable
from reslice.values import Run
from tests import orders_project as project
from tests import postgres
from tests.model import Call, Model
from tests.model_rows import Row
from tests.races.histories import D1, D2, D3, DAYS, METHODS, OUTSIDE, facts, old_rows
from tests.races.shop_postgres import Shop

PATIENCE_SECONDS = 30
ALL = Call(project.FREE, D1, D3)
IN_PLACE = METHODS[:2]


def prepared(shop: Shop, *, method: str = "replace_slice", lock: str = "5s", wait: str = "30s", key: str = "") -> Model:
    """Let the shop have rows that are not as its orders say; return the model of it."""
    model = Model(method=method)
    shop.reset(key=key)
    shop.declare(method=method, lock=lock, wait=wait)
    model.rows, model.orders = old_rows(), facts()
    shop.fill(model.rows)
    shop.load(model.orders)
    return model


def run(shop: Shop) -> Run | ResliceError:
    try:
        return reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}")
    except ResliceError as error:
        return error


def values(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((row.values for row in rows), key=repr)


@dataclass
class Beside:
    """Somebody else, in a thread of its own, from one call to the next."""

    work: Callable[[], Any]
    result: Any = None
    errors: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._do, daemon=True)

    def _do(self) -> None:
        try:
            self.result = self.work()
        except (psycopg.Error, ResliceError) as error:
            self.errors.append(error)

    def go(self, *, until: Callable[[], bool] = lambda: False) -> None:
        """Start it, and wait until it is as far as is said, or has ended."""
        self._thread.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._thread.is_alive() and not until():
            assert time.monotonic() < deadline, "it does not get there"
            time.sleep(0.002)

    def end(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it hangs"


def waits(shop: Shop, connection: psycopg.Connection[Any]) -> Callable[[], bool]:
    """Return whether a connection waits for a lock."""
    pid = connection.info.backend_pid
    return lambda: shop.rows("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid]) == [(True,)]


@contextmanager
def before(words: str, act: Callable[[], None], *, times: int = 1) -> Iterator[list[str]]:
    """Do something before the first statements of a run that begin with some words."""
    execute = PostgresSession.execute
    seen: list[str] = []
    left = [times]
    thread = threading.current_thread()

    def executed(self: PostgresSession, statement: str, parameters: Any = None) -> Any:
        if threading.current_thread() is thread:
            seen.append(statement)
            if left[0] and statement.startswith(words):
                left[0] -= 1
                act()
        return execute(self, statement, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSession, "execute", executed)
        yield seen


@pytest.mark.parametrize("method", METHODS)
def test_a_transaction_that_holds_the_table_is_waited_for_as_long_as_the_contract_says(shop: Shop, method: str) -> None:
    model = prepared(shop, method=method, lock="300ms")
    with shop.connect(autocommit=False) as other:
        other.execute("UPDATE daily_orders SET order_count = 3 WHERE order_date = %s AND channel = 'web'", [OUTSIDE])
        began = time.monotonic()
        ended = run(shop)
        took = time.monotonic() - began
        assert isinstance(ended, Retryable)
        assert (ended.kind, ended.exit_code) == ("conflict", 4)
        assert "has not ended" in ended.failures[0].found[0] and "timeouts: {" in ended.failures[0].asked
        assert 0.3 <= took < 10
        other.rollback()
    assert values(shop.table()) == values(model.rows)
    assert shop.runs() == {"r-0001": ("failed", "conflict")}
    assert isinstance(run(shop), Run)


def test_a_reader_that_stays_open_is_in_nobodys_way(shop: Shop) -> None:
    model = prepared(shop, lock="300ms")
    with shop.connect(autocommit=False) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        sums = "SELECT count(*), sum(revenue) FROM daily_orders"
        old = reader.execute(sums).fetchall()
        assert isinstance(run(shop), Run)
        assert reader.execute(sums).fetchall() == old
        reader.rollback()
        model.run(ALL)
        revenue = sum((row.revenue for row in model.rows if row.revenue is not None), Decimal(0))
        assert reader.execute(sums).fetchall() == [(len(model.rows), revenue)]


@pytest.mark.parametrize("method", IN_PLACE)
@pytest.mark.parametrize("kind", ["update", "delete", "insert"])
def test_a_live_write_that_waits_for_a_publish_is_done_to_the_new_rows(shop: Shop, method: str, kind: str) -> None:
    """It begins before the commit, on rows that are then gone, and meets those that came in their place."""
    model = prepared(shop, method=method)
    model.run(ALL)
    statement = {
        "update": f"UPDATE daily_orders SET revenue = revenue + 4242 WHERE order_date = '{D1}' AND channel = 'store'",
        "delete": f"DELETE FROM daily_orders WHERE order_date = '{D1}' AND channel = 'store'",
        "insert": f"INSERT INTO daily_orders VALUES ('{D1}', 'live', 1, 4242, false)",
    }[kind]
    with shop.connect() as other:
        live = Beside(lambda: other.execute(statement).rowcount)
        with before("COMMIT", lambda: None), before_commit_of_publish(lambda: live.go(until=waits(shop, other))):
            ended = run(shop)
        live.end()
    assert live.errors == [] and live.result == 1
    rows = [row.values for row in model.rows]
    store = next(row for row in model.rows if (row.order_date, row.channel) == (D1, "store"))
    if kind == "insert":
        rows.append(("live", False, 1, D1, Decimal(4242)))
    else:
        rows.remove(store.values)
    if kind == "update":
        assert store.revenue is not None
        rows.append(("store", False, store.order_count, D1, store.revenue + 4242))
    assert values(shop.table()) == sorted(rows, key=repr)
    assert isinstance(ended, Run) or ended.kind == "slipped_in", ended


@contextmanager
def before_commit_of_publish(act: Callable[[], None]) -> Iterator[None]:
    """Do something before the commit of the publish, in which the table is locked."""
    commit = PostgresSession.commit
    done: list[str] = []

    def committed(self: PostgresSession) -> None:
        held = "SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareRowExclusiveLock' AND granted"
        if not done and self.execute(f"{held} AND relation = 'daily_orders'::regclass"):
            done.append("done")
            act()
        commit(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSession, "commit", committed)
        yield
    assert done, "the publish held the table before it committed"


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_live_update_of_an_older_snapshot_is_told(shop: Shop, level: str) -> None:
    model = prepared(shop)
    with shop.connect() as other:
        other.execute(f"BEGIN ISOLATION LEVEL {level}")
        other.execute("SELECT count(*) FROM daily_orders")
        assert isinstance(run(shop), Run)
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("UPDATE daily_orders SET revenue = 1 WHERE order_date = %s", [D1])
        other.execute("ROLLBACK")
    model.run(ALL)
    assert values(shop.table()) == values(model.rows)


@pytest.mark.parametrize("statement", ["INSERT", "UPDATE", "DELETE"])
def test_a_live_write_before_the_lock_is_compared(shop: Shop, statement: str) -> None:
    """It commits while the publish already holds its turn, and waits for the table."""
    prepared(shop)
    write = {
        "INSERT": f"INSERT INTO daily_orders VALUES ('{D2}', 'live', 1, 4242, false)",
        "UPDATE": f"UPDATE daily_orders SET revenue = 4242 WHERE order_date = '{D2}' AND channel = 'web'",
        "DELETE": f"DELETE FROM daily_orders WHERE order_date = '{D2}' AND channel = 'web'",
    }[statement]
    with shop.connect(autocommit=False) as other, shop.connect() as watcher:
        other.execute(write)
        after = [Row(*row) for row in other.execute(f"SELECT {project.ROW_COLUMNS} FROM daily_orders").fetchall()]
        pid = other.info.backend_pid
        blocked = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"

        def commits() -> None:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not watcher.execute(blocked, [pid]).fetchall():
                assert time.monotonic() < deadline, "the run never waits for it"
                time.sleep(0.002)
            other.commit()

        committing = Beside(commits)
        committing.go(until=lambda: True)
        ended = run(shop)
        committing.end()
    assert committing.errors == []
    assert isinstance(ended, Refused) and ended.kind == "base_moved"
    assert values(shop.table()) == values(after)


# --- deadlocks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def channels(shop: Shop) -> Iterator[Shop]:
    """A table of channels, at which every row of the target points."""
    shop.connection.execute("DROP TABLE IF EXISTS channels CASCADE")
    shop.connection.execute("CREATE TABLE channels (channel VARCHAR PRIMARY KEY, note VARCHAR)")
    shop.connection.execute("INSERT INTO channels VALUES ('web'), ('store'), ('phone'), ('fax')")
    yield shop
    shop.connection.execute("DROP TABLE channels CASCADE")


def deadlocked(shop: Shop, times: int) -> tuple[Run | ResliceError, list[Beside]]:
    """Run while somebody holds the channel, and then wants the table; the run is whom the server tells first.

    A publish that inserts a row of the channel waits for them, and they wait for the publish.
    """
    shop.connection.execute("ALTER TABLE daily_orders ADD FOREIGN KEY (channel) REFERENCES channels")
    others: list[Beside] = []
    connections: list[psycopg.Connection[Any]] = []

    def hold() -> None:
        other = shop.connect(user=postgres.ADMIN)
        connections.append(other)
        other.execute("SET deadlock_timeout = '1h'")  # never looks for one itself
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM channels WHERE channel = 'phone' FOR UPDATE")

    def want() -> None:
        """Want the table, which the publish holds now, and let go of everything once it is there."""
        other = connections[-1]

        def update() -> int:
            found = other.execute(f"UPDATE daily_orders SET order_count = 3 WHERE order_date = '{OUTSIDE}'").rowcount
            other.execute("COMMIT")
            return found

        others.append(Beside(update))
        others[-1].go(until=waits(shop, other))

    try:
        with before("LOCK TABLE", hold, times=times), after_lock(want, times=times):
            ended = run(shop)
        for other in others:
            other.end()
    finally:
        for connection in connections:
            connection.close()
    return ended, others


@contextmanager
def after_lock(act: Callable[[], None], *, times: int) -> Iterator[None]:
    """Do something after the first statements with which a publish locks the table."""
    execute = PostgresSession.execute
    left = [times]

    def executed(self: PostgresSession, statement: str, parameters: Any = None) -> Any:
        found = execute(self, statement, parameters)
        if left[0] and statement.startswith("LOCK TABLE"):
            left[0] -= 1
            act()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSession, "execute", executed)
        yield


@pytest.mark.parametrize("method", IN_PLACE)
def test_a_deadlock_is_tried_again_and_told(channels: Shop, method: str) -> None:
    shop = channels
    model = prepared(shop, method=method)
    ended, (other,) = deadlocked(shop, 1)
    assert isinstance(ended, Run) and ended.outcome.value == "published", ended
    assert (other.errors, other.result) == ([], 3)
    words = "attempt 1 was rolled back by another transaction: deadlock detected"
    assert words in ended.warnings
    ((said,),) = shop.rows("SELECT CAST(warnings AS json) FROM reslice.runs")
    assert words in said
    model.run(ALL)
    assert values(shop.table()) == values(model.rows)
    assert len(shop.kept()) == sum(row.order_date in DAYS for row in old_rows()) or method == "merge"


@pytest.mark.slow
def test_a_publish_that_is_in_a_deadlock_every_time_gives_up(channels: Shop) -> None:
    shop = channels
    model = prepared(shop)
    ended, others = deadlocked(shop, 99)
    assert isinstance(ended, Retryable) and (ended.kind, ended.exit_code) == ("conflict", 4), ended
    assert "deadlock detected; tried 5 times" in ended.failures[0].found[0]
    assert [other.result for other in others] == [3] * 5
    assert values(shop.table()) == values(model.rows)
    assert shop.runs() == {"r-0001": ("failed", "conflict")}


def test_a_live_writer_that_the_server_tells_of_the_deadlock_is_rolled_back_and_the_run_goes_on(channels: Shop) -> None:
    shop = channels
    model = prepared(shop)
    shop.connection.execute("ALTER TABLE daily_orders ADD FOREIGN KEY (channel) REFERENCES channels")
    with shop.connect(user=postgres.ADMIN) as other:
        other.execute("SET deadlock_timeout = '10ms'")

        def hold() -> None:
            other.execute("BEGIN")
            other.execute("SELECT 1 FROM channels WHERE channel = 'phone' FOR UPDATE")

        def update() -> None:
            time.sleep(0.3)  # until the publish waits as well
            other.execute("UPDATE daily_orders SET order_count = 9")

        live = Beside(update)
        with before("LOCK TABLE", hold), after_lock(lambda: live.go(until=lambda: True), times=1):
            ended = run(shop)
        live.end()
        assert isinstance(ended, Run) and ended.warnings == (), ended
        assert [type(error).__name__ for error in live.errors] == ["DeadlockDetected"]
        with suppress(psycopg.Error):
            other.execute("ROLLBACK")
    model.run(ALL)
    assert values(shop.table()) == values(model.rows)
