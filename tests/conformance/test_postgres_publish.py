"""What a publish on PostgreSQL is measured by, retries, and does not need: lock time, conflicts, room, rows, a pool."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import reslice
from reslice import cli
from reslice.engines.postgres.session import PostgresSession
from reslice.errors import Refused, Retryable
from reslice.values import Outcome
from tests import postgres
from tests.conformance.databases import PostgresDatabase, only
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, T0, Orders, changed, kinds
from tests.unit.postgres_servers import Server, pgbouncer, pgbouncer_program

METHODS = EVERY_METHOD
WHOLE = f"{D1}..{D3}"
pytestmark = only("postgresql", "how a publish holds a table of PostgreSQL")


def said(capsys: pytest.CaptureFixture[str], orders: Orders, *words: str, code: int = 0) -> Any:
    """Return what a command prints as JSON."""
    capsys.readouterr()
    assert cli.main(["--config", str(orders.file), *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


# --- how long the table is held ---------------------------------------------------------------------------------------

HELD, WAITED = 0.15, 0.3


class Clock:
    """Notes when the lock is asked for, when it is held, and when the commit is sent; in between it takes its time."""

    def __init__(self) -> None:
        self.asked = self.locked = self.sent = 0.0

    def follow(self, statement: str) -> None:
        if self.asked and not self.locked:
            self.locked = time.monotonic()
            time.sleep(HELD)
        if statement.startswith("LOCK TABLE"):
            self.asked = time.monotonic()
        if self.locked and not self.sent and statement == "COMMIT":
            self.sent = time.monotonic()


@pytest.mark.parametrize("is_waited_for", [False, True], ids=["at once", "waited for"])
def test_the_time_that_the_table_was_held_is_told_without_the_wait_for_it(
    orders: Orders, is_waited_for: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders.run(D1)
    orders.correct(4, 1300)
    clock = Clock()
    orders.database.follow_statements(monkeypatch, clock.follow)
    with orders.database.session() as other:
        if is_waited_for:
            other.execute("BEGIN")
            other.execute("LOCK TABLE daily_orders IN ROW EXCLUSIVE MODE")

        def let_go() -> None:
            while not clock.asked:
                time.sleep(0.002)
            time.sleep(WAITED)
            other.execute("COMMIT")

        beside = threading.Thread(target=let_go if is_waited_for else list)
        beside.start()
        run = orders.run(D2)
        beside.join()
    assert run.outcome is Outcome.PUBLISHED
    assert clock.locked - clock.asked >= (WAITED if is_waited_for else 0)

    held = orders.database.rows("SELECT lock_milliseconds FROM reslice.runs WHERE id = ?", [run.id])[0][0]

    assert HELD * 1000 <= held <= (clock.sent - clock.locked) * 1000 + 1
    assert said(capsys, orders, "show", "last")["run"]["lock_milliseconds"] == held
    assert cli.main(["--config", str(orders.file), "show", "last"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if "locked" in line] == [
        ["locked", str(held), "ms"]
    ]


# --- serialization failures -------------------------------------------------------------------------------------------

WORDS = "could not serialize access, says a trigger"
CONFLICT = """
CREATE SEQUENCE tries;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('tries') <= {times} THEN RAISE EXCEPTION '{words}' USING ERRCODE = '40001'; END IF;
    RETURN NULL;
END $$;
"""
WHEN = {
    "at a statement": "CREATE TRIGGER conflict AFTER INSERT OR UPDATE OR DELETE ON daily_orders"
    " FOR EACH STATEMENT EXECUTE FUNCTION conflict()",
    "at the commit": "CREATE CONSTRAINT TRIGGER conflict AFTER INSERT OR UPDATE OR DELETE ON daily_orders"
    " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION conflict()",
}


def conflicting(orders: Orders, when: str, times: int) -> None:
    """Have the first transactions that write to the target fail as one does that another was in the way of."""
    orders.database.execute(CONFLICT.format(times=times, words=WORDS))
    orders.database.execute(WHEN[when])


@pytest.mark.parametrize("when", WHEN)
def test_a_serialization_failure_is_tried_again_and_told(orders: Orders, when: str) -> None:
    orders.run(D1)
    orders.correct(4, 1300)
    conflicting(orders, when, 2)

    run = orders.run(D2)

    assert run.outcome is Outcome.PUBLISHED and orders.rows() == changed((D2, "web", 1, 1300))
    told = [f"attempt {attempt} was rolled back by another transaction: {WORDS}" for attempt in (1, 2)]
    assert [each for each in run.warnings if each.startswith("attempt")] == told
    ((kept,),) = orders.database.rows("SELECT warnings FROM reslice.runs WHERE id = ?", [run.id])
    assert [each for each in json.loads(kept) if each.startswith("attempt")] == told
    assert orders.slices(run.id) == [(D2, "published")]
    orders.unchanged(D2)


@pytest.mark.parametrize("when", WHEN)
def test_a_publish_that_cannot_be_serialized_five_times_writes_nothing(orders: Orders, when: str) -> None:
    orders.run(D1)
    orders.correct(4, 1300)
    conflicting(orders, when, 5)
    versions = orders.versions()

    error = orders.fails("run", Retryable, D2)

    assert (kinds(error), error.exit_code, error.retry) == (["conflict"], 4, True)
    assert error.failures[0].found == (f"{WORDS}; tried 5 times",)
    assert error.unchanged == "daily_orders is as it was; everything was rolled back"
    assert orders.versions() == versions and orders.rows() == list(T0)
    row = orders.ledger(error.run.id)
    assert row["state"] == "failed" and json.loads(row["error"])["kind"] == "conflict"
    assert not any(state == "published" for _, state in orders.slices(error.run.id))
    assert orders.run(D2).outcome is Outcome.PUBLISHED and orders.rows() == changed((D2, "web", 1, 1300))


# --- what leaves the server -------------------------------------------------------------------------------------------


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the rows that come back from the server."""
    execute, counts = PostgresSession.execute, list[int]()

    def executed(self: PostgresSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        rows = execute(self, statement, parameters)
        counts.append(len(rows))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSession, "execute", executed)
        yield counts


def test_what_leaves_the_server_does_not_grow_with_the_facts(orders: Orders) -> None:
    """The ten facts and the ten thousand make the same four groups."""
    returned: dict[int, dict[str, tuple[int, int]]] = {}
    for facts in (10, 10_000):
        orders.database.execute("TRUNCATE orders_fact")
        orders.database.execute("TRUNCATE daily_orders")
        orders.database.execute("DROP SCHEMA IF EXISTS reslice CASCADE")
        orders.database.execute("DROP VIEW IF EXISTS daily_orders_current")
        orders.fill(T0[:2])
        orders.database.execute(
            f"INSERT INTO orders_fact SELECT n, CASE WHEN n % 2 = 0 THEN DATE '{D1}' ELSE DATE '{D2}' END,"
            f" CASE WHEN n % 5 < 2 THEN 'web' ELSE 'store' END, 100 FROM generate_series(1, {facts}) AS n"
        )
        returned[facts] = {}
        for command in ("plan", "status", "run", "verify"):
            with counted() as counts:
                getattr(orders, command)(WHOLE)
            returned[facts][command] = (len(counts), sum(counts))
        assert sum(row[2] for row in orders.rows()) == facts
    assert returned[10] == returned[10_000]
    assert all(rows > 0 for _, rows in returned[10].values())


# --- no room ----------------------------------------------------------------------------------------------------------


def test_x05_no_room_while_staging_leaves_everything(orders: Orders, capsys: pytest.CaptureFixture[str]) -> None:
    database = orders.database
    assert isinstance(database, PostgresDatabase)
    orders.run(D1)
    orders.correct(4, 1300)
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM ("
        " SELECT *, row_number() OVER (ORDER BY md5(CAST(n AS text))) AS place"
        " FROM orders_fact CROSS JOIN generate_series(1, 20000) AS n) AS many"
        " WHERE order_date BETWEEN :start AND :end AND n = 1 AND place > 0 GROUP BY order_date, channel"
    )
    role = f"ALTER ROLE {postgres.ROLE} IN DATABASE {database.catalog} SET"
    for setting in ("temp_file_limit = '64kB'", "work_mem = '64kB'"):
        database.as_admin(f"{role} {setting}")
    versions = orders.versions()

    told = said(capsys, orders, "run", "daily_orders", D2, code=4)

    error = told["error"]
    assert error["kind"] == "source_failed" and told["retry"], told
    assert "temporary file size exceeds" in str(error["found"]) and "nothing was written" in error["unchanged"]
    assert orders.versions() == versions and orders.rows() == list(T0)
    row = orders.ledger("r-0002")
    assert row["state"] == "failed" and json.loads(row["error"])["kind"] == "source_failed"
    temporary = "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'"
    deadline = time.monotonic() + 10
    while database.rows(temporary) != [(0,)]:
        assert time.monotonic() < deadline, "staged rows are left"
        time.sleep(0.01)
    database.as_admin(f"{role} temp_file_limit = '-1'")
    assert orders.run(D2).outcome is Outcome.PUBLISHED and orders.rows() == changed((D2, "web", 1, 1300))


# --- a pool of transactions -------------------------------------------------------------------------------------------


@contextmanager
def pooled(orders: Orders, folder: Path, more: str = "") -> Iterator[None]:
    """Lead the contract through a pool that gives server processes for single transactions, in turn."""
    database = orders.database
    assert isinstance(database, PostgresDatabase)
    server = Server(database.server.folder, database.server.port)
    place = f"host={server.folder} port={server.port} dbname={database.catalog} user={postgres.ROLE}"
    settings = f"server_round_robin = 1\n[databases]\nmine = {place}"
    with pgbouncer(pgbouncer_program(), server, folder, "transaction", 2, settings) as url:
        straight, database.url = database.url, url.replace("/shop", "/mine")
        orders.declare()
        with psycopg.connect(database.url) as one, psycopg.connect(database.url) as other:  # both processes are there
            assert (
                one.execute("SELECT pg_backend_pid()").fetchone() != other.execute("SELECT pg_backend_pid()").fetchone()
            )
        try:
            yield
        finally:
            database.url = straight
            orders.declare()


LOOKS = (("plan", "daily_orders", D2), ("status", "daily_orders", D2), ("verify", "daily_orders", D2))
WRITES = (("run", "daily_orders", D2), ("restore", "last", "--yes"))


@pytest.mark.parametrize("method", ["replace_slice"])
def test_what_stages_rows_is_refused_behind_a_pool_of_transactions_and_writes_nothing(
    orders: Orders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is staged, and in which zone a day begins, is gone with the transaction; the ledger is still read."""
    run_id = orders.run(D1, rewrite=True).id
    orders.correct(4, 1300)
    versions = orders.versions()
    with pooled(orders, tmp_path):
        for words in (*WRITES, *LOOKS):
            told = said(capsys, orders, *words, code=3)
            assert told["error"]["kind"] == "pooler" and not told["retry"]
            assert "a proxy" in str(told["error"]["found"]) and "session mode" in told["error"]["next"]
            assert told["error"]["unchanged"].endswith("written")
        for command in ("run", "plan", "status", "verify"):
            error = orders.fails(command, Refused, D2)
            assert (kinds(error), error.exit_code) == (["pooler"], 3)
        assert [each["id"] for each in said(capsys, orders, "history")["runs"]] == [run_id]
    assert orders.versions() == versions
    assert orders.database.rows("SELECT id, state FROM reslice.runs") == [(run_id, "published")]
    assert orders.run(D2).outcome is Outcome.PUBLISHED


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_connection_of_the_callers_through_a_pool_of_transactions_is_no_way_round(
    orders: Orders, tmp_path: Path
) -> None:
    versions = orders.versions()
    with (
        pooled(orders, tmp_path),
        psycopg.connect(orders.database.url, autocommit=True) as mine,
    ):
        target = reslice.open(orders.file, connection=mine).target("daily_orders")
        for command in (target.run, target.plan, target.status, target.verify):
            with pytest.raises(Refused) as caught:
                command(D2)
            assert kinds(caught.value) == ["pooler"]
            assert caught.value.unchanged == "daily_orders is as it was; nothing was written"
        assert mine.execute("SELECT 1").fetchone() == (1,)
    assert orders.versions() == versions
