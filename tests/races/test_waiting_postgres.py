"""A command that waits for another process on PostgreSQL says so once on stderr, and for whom; real processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from typing import Any

import psycopg
import pytest

import reslice
from reslice.engines.postgres import locks
from reslice.errors import Retryable
from reslice.values import Outcome
from tests import postgres
from tests.model import Call, Model
from tests.races.histories import D1, D2, D3
from tests.races.shop_postgres import Shop
from tests.races.test_publish_postgres import Beside, prepared, values

COMMAND = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main())"]
PATIENCE_SECONDS = 30
_STARTED: list[subprocess.Popen[str]] = []
SINCE = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    """Let no process outlive a test that failed."""
    yield
    while _STARTED:
        with _STARTED.pop() as process:
            process.kill()


def start(shop: Shop, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    _STARTED.append(subprocess.Popen([*COMMAND, *words], cwd=shop.folder, stdout=pipe, stderr=pipe, text=True))
    return _STARTED[-1]


def run(shop: Shop, *words: str) -> subprocess.Popen[str]:
    return start(shop, "run", "daily_orders", *words)


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line of what a process says beside its answer, as soon as it is there."""
    assert process.stderr is not None
    return process.stderr.readline().rstrip("\n")


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return the exit code, the answer, and the rest of what was said beside it."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def until(condition: str, shop: Shop) -> Any:
    """Return what a query finds, once it finds anything."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := shop.rows(condition)):
        assert time.monotonic() < end, condition
        time.sleep(0.02)
    return found[0][0]


@contextmanager
def publishing(shop: Shop, *words: str) -> Iterator[int]:
    """Give the server's process of a run that has its turn until the block ends: it waits for the table meanwhile."""
    with closing(shop.connect(autocommit=False)) as other:
        other.execute("LOCK TABLE daily_orders IN ROW EXCLUSIVE MODE")
        process = run(shop, *words)
        yield until("SELECT pid FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND NOT granted", shop)
    assert ended(process)[0] == 0


def published(shop: Shop, day: date) -> None:
    assert reslice.open(shop.contract).target("daily_orders").run(day).outcome is Outcome.PUBLISHED


def new(model: Model) -> list[tuple[Any, ...]]:
    model.run(Call("daily_orders", D1, D3))
    return values(model.rows)


# --- a run ----------------------------------------------------------------------------------------------------------


def test_a_run_says_once_for_which_run_it_waits(shop: Shop) -> None:
    model = prepared(shop, lock="60s")
    with publishing(shop, f"{D1}") as pid:
        second = run(shop, f"{D1}..{D3}", "--json")
        line = first_line(second)
        assert line == f"waiting: run r-0001 of daily_orders has the turn of public.daily_orders; process {pid}," + (
            f" role {postgres.ROLE}, reslice"
        )
        time.sleep(1.5)
    code, out, err = ended(second)
    assert (code, err) == (3, "") and "waiting" not in out
    answer = json.loads(out)
    assert (answer["error"]["kind"], answer["run"]) == ("base_moved", "r-0002")
    assert reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}").outcome is Outcome.PUBLISHED
    assert values(shop.table()) == new(model)


@pytest.mark.parametrize("what", ["restore", "prune", "unchanged"])
def test_whatever_takes_the_turn_says_that_it_waits(shop: Shop, what: str) -> None:
    prepared(shop, lock="60s", method="append_version" if what == "prune" else "replace_slice")
    published(shop, D1)
    if what == "prune":
        shop.connection.execute("UPDATE orders SET price = price + 1")
        published(shop, D1)
    words = {
        "restore": ("restore", "r-0001", "--yes"),
        "prune": ("versions", "daily_orders", f"{D1}", "--prune", "--older-than", "0", "--yes"),
        "unchanged": ("run", "daily_orders", f"{D1}"),
    }[what]
    with publishing(shop, f"{D3}") as pid:
        second = start(shop, *words)
        line = first_line(second)
        assert f" of daily_orders has the turn of public.daily_orders; process {pid}, " in line
        assert line.startswith("waiting: run r-0003" if what == "prune" else "waiting: run r-0002"), line
    code, out, err = ended(second)
    assert (code, err) == (0, ""), out


def test_a_log_has_it_as_a_line_and_says_when_it_goes_on(shop: Shop) -> None:
    prepared(shop, lock="60s")
    with publishing(shop, f"{D3}"):
        second = start(shop, "--log-format", "json", "run", "daily_orders", f"{D1}")
        lines = [json.loads(first_line(second)) for _ in range(5)]
        time.sleep(1.2)
    _, out, err = ended(second)
    lines += [json.loads(line) for line in err.splitlines()]
    told = [(line["event"], line["message"]) for line in lines]
    waiting = told.index(next(each for each in told if each[0] == "waiting"))
    assert told[waiting][1].startswith("waiting: run r-0001 of daily_orders has the turn of public.daily_orders; ")
    assert told[waiting - 1] == ("step", "publishing")
    assert told[waiting + 1 : waiting + 3] == [("step", "going on"), ("step", "reading back")]
    assert [event for event, _ in told].count("waiting") == 1
    assert lines[waiting]["run"] == "r-0002" and lines[waiting]["level"] == "info"
    assert out.startswith("published r-0002")


def test_nothing_is_said_where_nothing_is_waited_for(shop: Shop) -> None:
    """Nor of a wait that is over within a moment."""
    model = prepared(shop)
    code, _, err = ended(run(shop, f"{D1}"))
    assert (code, err) == (0, "")
    with closing(shop.connect()) as writer:
        with reslice.writer_lock(writer, "daily_orders"):
            second = run(shop, f"{D1}..{D3}")
            until("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", shop)
            time.sleep(0.3)
        code, _, err = ended(second)
    assert (code, err) == (0, "")
    assert values(shop.table()) == new(model)


@pytest.mark.parametrize("wait", ["1800ms", "200ms"])
def test_when_the_time_is_up_the_run_is_named(shop: Shop, wait: str) -> None:
    prepared(shop, lock="60s")
    with publishing(shop, f"{D1}") as pid:
        code, out, err = ended(run(shop, f"{D1}..{D3}", "--wait", wait))
        who = f"run r-0001 of daily_orders has the turn of public.daily_orders; process {pid}, role tester, reslice"
        said, _, error = err.partition("failed[database_busy]: ")
        assert (code, out, said) == (4, "", f"waiting: {who}\n" if wait == "1800ms" else "")
        assert error.startswith(f"daily_orders for {D1}..{D3}\n") and f"\n  found:      {who}\n" in error
        assert "\n  next:       reslice run daily_orders" in error
    assert shop.runs()["r-0002"] == ("failed", "database_busy")


def test_it_can_be_stopped_while_it_waits(shop: Shop) -> None:
    prepared(shop, lock="60s")
    with publishing(shop, f"{D1}"):
        second = run(shop, f"{D1}..{D3}")
        assert first_line(second).startswith("waiting: run r-0001")
        second.send_signal(signal.SIGINT)
        code, _, err = ended(second)
        assert code == 130 and err.startswith("interrupted[interrupted]: ")


# --- others ---------------------------------------------------------------------------------------------------------


def test_a_live_writer_is_told_by_its_process(shop: Shop) -> None:
    prepared(shop)
    with psycopg.connect(shop.url, application_name="nightly import") as writer:
        with reslice.writer_lock(writer, "daily_orders"):
            writer.execute("SELECT 1")
            second = run(shop, f"{D1}..{D3}")
            line = first_line(second)
        assert re.fullmatch(
            "waiting: another publish, or a writer that holds its writer_lock, has the turn of public.daily_orders;"
            f" process {writer.info.backend_pid}, role tester, nightly import, idle in transaction, {SINCE}",
            line,
        ), line
    code, _, err = ended(second)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("is_let_go", [True, False])
def test_a_lock_of_the_table_is_told_as_well(shop: Shop, is_let_go: bool) -> None:
    prepared(shop, lock="20s" if is_let_go else "2500ms")
    with psycopg.connect(shop.url, application_name="psql") as other:
        other.execute(f"UPDATE daily_orders SET order_count = order_count WHERE order_date = '{D2}'")
        second = run(shop, f"{D1}")
        line = first_line(second)
        who = "another transaction holds a lock on public.daily_orders and has not ended;" + (
            f" process {other.info.backend_pid}, role tester, psql, idle in transaction, {SINCE}"
        )
        assert re.fullmatch(f"waiting: {who}", line), line
        if is_let_go:
            other.rollback()
        code, _, err = ended(second)
        other.rollback()
    if is_let_go:
        assert (code, err) == (0, "")
    else:
        assert code == 4 and err.startswith("failed[conflict]: ") and re.search(f"\n  found:      {who}\n", err)


def test_who_writes_to_a_partition_alone_is_told_as_well(shop: Shop) -> None:
    prepared(shop, lock="500ms")
    shop.connection.execute("ALTER TABLE daily_orders RENAME TO first_days")
    shop.connection.execute("CREATE TABLE daily_orders (LIKE first_days) PARTITION BY RANGE (order_date)")
    bounds = "FROM (MINVALUE) TO (MAXVALUE)"
    shop.connection.execute(f"ALTER TABLE daily_orders ATTACH PARTITION first_days FOR VALUES {bounds}")
    with closing(shop.connect(autocommit=False)) as other:
        other.execute("LOCK TABLE first_days IN ROW EXCLUSIVE MODE")
        with pytest.raises(Retryable) as caught:
            reslice.open(shop.contract).target("daily_orders").run(D1)
        found = caught.value.failures[0].found[0]
        assert caught.value.kind == "conflict" and f"; process {other.info.backend_pid}, role tester, " in found


def test_who_is_next_in_line_for_the_table_is_told(shop: Shop) -> None:
    """An ALTER TABLE that waits for a reader keeps everybody else waiting behind it."""
    prepared(shop, lock="20s")
    heard = list[str]()
    with closing(shop.connect(autocommit=False)) as reader, closing(shop.connect()) as changer:
        alters = Beside(lambda: changer.execute("ALTER TABLE daily_orders ALTER COLUMN channel SET STORAGE EXTENDED"))

        def hear(step: str) -> None:
            if step == "publishing":
                reader.execute("SELECT * FROM daily_orders")
                alters.go(until=lambda: bool(shop.rows(waits)))
            elif step.startswith("waiting: "):
                heard.append(step)
                reader.rollback()

        waits = "SELECT pid FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"
        done = reslice.open(shop.contract).target("daily_orders").run(f"{D1}", on_step=hear)
        alters.end()
        pid = changer.info.backend_pid
    assert done.outcome is Outcome.PUBLISHED
    begins = "waiting: another transaction holds a lock on public.daily_orders and has not ended"
    assert len(heard) == 1 and heard[0].startswith(f"{begins}; process {pid}, role tester, ")


def test_the_ledger_is_waited_for_by_init(shop: Shop) -> None:
    prepared(shop)
    published(shop, D1)
    with psycopg.connect(shop.url, application_name="another") as other:
        other.execute(f"SELECT pg_advisory_xact_lock({locks.key(locks.LEDGER, repr('reslice'))})")
        second = start(shop, "init", "--ledger")
        line = first_line(second)
        pid = other.info.backend_pid
        other.rollback()
    begins = "waiting: another transaction holds the ledger in schema reslice, and has not ended; process "
    assert line.startswith(f"{begins}{pid}, role tester, another, ")
    code, _, err = ended(second)
    assert (code, err) == (0, "")


def test_where_nobody_can_be_asked_it_is_told_without_a_name(shop: Shop) -> None:
    """The role has no connection left to look with."""
    prepared(shop)
    published(shop, D3)
    with closing(shop.connect(user=postgres.ADMIN)) as admin:
        until(f"SELECT 1 FROM pg_stat_activity WHERE usename = '{postgres.ROLE}' HAVING count(*) = 1", shop)
        admin.execute(f"ALTER ROLE {postgres.ROLE} CONNECTION LIMIT 2")
        try:
            with closing(shop.connect(user=postgres.ADMIN)) as writer:
                with reslice.writer_lock(writer, "daily_orders"):
                    second = run(shop, f"{D1}")
                    line = first_line(second)
                code, _, err = ended(second)
        finally:
            admin.execute(f"ALTER ROLE {postgres.ROLE} CONNECTION LIMIT -1")
    assert (
        line == "waiting: another publish, or a writer that holds its writer_lock, has the turn of public.daily_orders"
    )
    assert (code, err) == (0, "")


# --- in a program ---------------------------------------------------------------------------------------------------


def test_a_program_hears_it_as_a_step(shop: Shop) -> None:
    model = prepared(shop)
    steps = list[str]()
    with ExitStack() as stack:
        writer = stack.enter_context(closing(shop.connect()))
        held = stack.enter_context(ExitStack())
        held.enter_context(reslice.writer_lock(writer, "daily_orders"))

        def hear(step: str) -> None:
            steps.append(step)
            if step.startswith("waiting: "):
                assert f"process {writer.info.backend_pid}, " in step
                held.close()

        done = reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}", on_step=hear)
    assert done.outcome is Outcome.PUBLISHED and values(shop.table()) == new(model)
    assert [step.partition(":")[0] for step in steps] == [
        "staging",
        "checking",
        "comparing",
        "publishing",
        "waiting",
        "going on",
        "reading back",
    ]


def test_what_a_listener_raises_ends_the_run_with_the_table_as_it_was(shop: Shop) -> None:
    prepared(shop)
    before = values(shop.table())
    with ExitStack() as stack:
        writer = stack.enter_context(closing(shop.connect()))
        held = stack.enter_context(ExitStack())
        held.enter_context(reslice.writer_lock(writer, "daily_orders"))

        def hear(step: str) -> None:
            if step.startswith("waiting: "):
                held.close()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}", on_step=hear)
    assert values(shop.table()) == before
    assert reslice.open(shop.contract).target("daily_orders").run(f"{D1}..{D3}").outcome is Outcome.PUBLISHED


def test_a_writer_whose_time_is_up_is_told_for_whom_it_waited(shop: Shop) -> None:
    prepared(shop, lock="60s")
    with publishing(shop, f"{D1}") as pid, closing(shop.connect()) as writer:
        with pytest.raises(Retryable) as caught, reslice.writer_lock(writer, "daily_orders", wait="200ms"):
            raise AssertionError("never inside")
        found = caught.value.failures[0].found[0]
        who = f"run r-0001 of daily_orders has the turn of daily_orders; process {pid}, role tester, reslice"
        assert (caught.value.kind, found) == ("database_busy", who)


# --- a client that died ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_client_that_died_is_waited_for_until_the_server_has_noticed(shop: Shop) -> None:
    """Until then its run is at work, and told; the first run that begins after that says that it was abandoned."""
    model = prepared(shop, lock="60s")
    opened = reslice.open(shop.contract)
    with closing(shop.connect(autocommit=False)) as other:
        other.execute("LOCK TABLE daily_orders IN ROW EXCLUSIVE MODE")
        first = run(shop, f"{D1}..{D3}")
        until("SELECT pid FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND NOT granted", shop)
        first.kill()
        first.communicate(timeout=PATIENCE_SECONDS)
        second = run(shop, f"{D1}..{D3}")
        assert first_line(second).startswith(
            "waiting: run r-0001 of daily_orders has the turn of public.daily_orders; "
        )
        assert (opened.show("r-0001").state, opened.show("r-0001").alive) == ("requested", True)
        end = time.monotonic() + PATIENCE_SECONDS
        while opened.show("r-0001").alive:
            assert time.monotonic() < end
            time.sleep(0.2)
        assert opened.show("r-0001").state == "requested"
    code, out, err = ended(second)
    assert code == 0 and "abandoned" not in out + err
    third = opened.target("daily_orders").run(f"{D1}..{D3}")
    assert third.outcome is Outcome.UNCHANGED
    assert len(third.notes) == 1 and "r-0001" in third.notes[0] and "was abandoned" in third.notes[0]
    assert shop.runs()["r-0001"] == ("failed", "abandoned")
    assert values(shop.table()) == new(model)
