"""Clients of PostgreSQL that are asked to stop, and clients that say nothing any more while they hold the table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import reslice
from reslice.engines.postgres import publish, watch
from reslice.errors import Interrupted, ResliceError, Retryable
from reslice.values import Run
from tests import orders_project as project
from tests.crash.postgres_honest import ends, finishes, last_run, new_rows, rows_in, slow_commits
from tests.crash.postgres_scenario import PostgresScenario, Shelf, statements_of, wait_until_alone
from tests.crash.scenario import CALLS, D1, D3, D4
from tests.postgres import ROLE
from tests.proxy import Fault, Proxy, Statement

ROOT = Path(__file__).parents[2]
SEED = 20240304
EXITS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
WHOLE = CALLS["whole"]
RUN = ("run", project.FREE, f"{D1}..{D3}")
IDLE_SECONDS = 2
SLACK_SECONDS = 4
"""What a machine with other work may add."""
IDLE = "{wait: 20s, lock: 2s, idle: 2s}"


def start(scenario: PostgresScenario, words: tuple[str, ...], **asked: Any) -> subprocess.Popen[str]:
    """Start the command that sends itself a signal."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.signalled", json.dumps(asked), "-C", str(scenario.folder), *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def publishing(statements: list[str]) -> int:
    """Return the number of the commit that publishes."""
    locked = next(place for place, text in enumerate(statements) if text.startswith("LOCK TABLE"))
    return statements.index("COMMIT", locked) + 1


# --- asked to stop --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_asked_to_stop_at_a_statement(shelf: Shelf, tmp_path: Path, count: int | None) -> None:
    """Before the commit it is rolled back; from the commit on it is published, and the exit code says so."""
    start_from = shelf.scenario("replace_slice", "whole")
    statements = statements_of(start_from, WHOLE, tmp_path)
    commit = publishing(statements)
    numbers = [*range(1, len(statements) + 1)]
    chance = random.Random(f"{SEED} {count}")
    chosen = numbers if count is None else [*chance.sample(numbers[: commit - 1], count - 2), commit - 1, commit]
    for number in chosen:
        kind = chance.choice([*EXITS])
        scenario = start_from.copied(tmp_path / f"{number}")
        process = start(scenario, RUN, signal=kind.name, number=number)
        _, said = process.communicate(timeout=60)
        wait_until_alone(scenario)
        code = 0 if number >= commit else EXITS[kind]
        assert process.returncode == code, f"{statements[number - 1]}: {said}"
        assert rows_in(scenario) == (new_rows(scenario, WHOLE) if code == 0 else Counter(scenario.model.rows))
        run = last_run(scenario)
        if code == 0:
            assert run.state == "published"
        else:
            assert said.startswith("interrupted[interrupted]: ")
            assert run.id == "r-0001" or (run.state, run.error_kind) == ("failed", "interrupted")
        finishes(scenario, WHOLE)


@pytest.mark.parametrize(
    "kind",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_asked_to_stop_during_the_commit(shelf: Shelf, tmp_path: Path, kind: signal.Signals) -> None:
    """What was sent cannot be taken back: it is waited for, and what became of it is told."""
    start_from = shelf.scenario("replace_slice", "whole")
    number = publishing(statements_of(start_from, WHOLE, tmp_path))
    scenario = start_from.copied(tmp_path / "project")
    slow_commits(scenario, 1.5)
    process = start(scenario, RUN, signal=kind.name, number=number, during=0.4)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert rows_in(scenario) == new_rows(scenario, WHOLE)
    assert last_run(scenario).state == "published"


def test_asked_to_stop_while_nobody_answers(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the statement nor the request to cancel it arrives anywhere: the connection is cut."""
    monkeypatch.setattr(watch, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(watch, "STOP_SECONDS", 1.0)
    start_from = shelf.scenario("replace_slice", "whole", timeouts=IDLE)
    proxy = through_black_hole(start_from, "LOCK TABLE", refuse=None)
    scenario = start_from.copied(tmp_path / "project", url=proxy.url(start_from.database, ROLE))
    opened = reslice.open(scenario.contract)
    answers: list[Run | ResliceError] = []

    def run() -> None:
        try:
            answers.append(opened.target(WHOLE.target).run(f"{D1}..{D3}"))
        except ResliceError as error:
            answers.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    assert proxy.happened.wait(30)
    began = time.monotonic()
    opened.interrupt()
    worker.join(30)
    assert time.monotonic() - began < 15
    (ended,) = answers
    assert isinstance(ended, Interrupted)
    proxy.close()
    scenario.lead_to(scenario.url)
    wait_until_alone(scenario)
    assert rows_in(scenario) == Counter(scenario.model.rows)
    finishes(scenario, WHOLE)


def through_black_hole(scenario: PostgresScenario, words: str, *, refuse: float | None = 0.0, after: int = 0) -> Proxy:
    """Return a proxy that swallows the n-th statement after one that begins with `words`, and all that follows."""
    seen = [False]
    left = [after]

    def decide(statement: Statement) -> Fault:
        seen[0] = seen[0] or statement.text.startswith(words)
        if seen[0] and not left[0]:
            left[0] = -1
            return Fault.SWALLOW
        left[0] -= seen[0]
        return Fault.NONE

    return Proxy((scenario.server.folder, scenario.server.port), decide, refuse)


# --- saying nothing any more ----------------------------------------------------------------------------------------


def wait_until_stopped(pid: int) -> None:
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < until, "it did not come to that statement"
        time.sleep(0.02)


def seconds_until_free(scenario: PostgresScenario, sql: str) -> float:
    """Return how long another session waits for its turn."""
    with psycopg.connect(scenario.url, autocommit=True, options="-c lock_timeout=30s") as connection:
        began = time.monotonic()
        connection.execute(sql.encode())
        return time.monotonic() - began


WRITE = f"UPDATE daily_orders SET revenue = 99 WHERE order_date = '{D4}' AND channel = 'channel 0'"
PLACES: dict[str, Callable[[list[str]], int]] = {
    "with the table locked": lambda texts: publishing(texts) - 2,
    "before the commit": publishing,
}
"""At which statement a client falls silent."""


@pytest.mark.parametrize("place", PLACES)
def test_a_client_that_is_stopped_holds_the_table_no_longer_than_it_may(
    shelf: Shelf, tmp_path: Path, place: str
) -> None:
    start_from = shelf.scenario("replace_slice", "whole", timeouts=IDLE)
    number = PLACES[place](statements_of(start_from, WHOLE, tmp_path))
    scenario = start_from.copied(tmp_path / "project")
    process = start(scenario, RUN, signal="SIGSTOP", number=number)
    try:
        wait_until_stopped(process.pid)
        assert rows_in(scenario) == Counter(scenario.model.rows), "readers are not in its way"
        assert seconds_until_free(scenario, WRITE) < IDLE_SECONDS + SLACK_SECONDS
        rows = rows_in(scenario)
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 4, said
    assert "terminating connection due to idle-in-transaction timeout" in said
    assert "unchanged:  daily_orders is as it was; everything was rolled back" in said
    assert rows_in(scenario) == rows
    assert last_run(scenario).state == "failed"
    assert scenario.run(WHOLE).outcome.value == "published"


def test_a_client_that_is_stopped_after_its_commit_has_published(shelf: Shelf, tmp_path: Path) -> None:
    start_from = shelf.scenario("replace_slice", "whole", timeouts=IDLE)
    number = publishing(statements_of(start_from, WHOLE, tmp_path))
    scenario = start_from.copied(tmp_path / "project")
    process = start(scenario, RUN, signal="SIGSTOP", number=number, after=True)
    wait_until_stopped(process.pid)
    assert seconds_until_free(scenario, "SELECT 1 FROM daily_orders FOR UPDATE") < IDLE_SECONDS
    time.sleep(IDLE_SECONDS + 0.5)
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert rows_in(scenario) == new_rows(scenario, WHOLE)
    finishes(scenario, WHOLE)


HELD_BY_US = {
    "the lock of the ledger": ("SELECT pg_advisory_xact_lock(", 1),
    "the lock of stagings": ("SELECT pg_advisory_lock(pg_catalog.hashtextextended('reslice staging", 1),
    "the turn of the table": ("SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('reslice table", 1),
}


@pytest.mark.parametrize("what", HELD_BY_US)
def test_a_client_that_is_stopped_lets_other_runs_go_on(shelf: Shelf, tmp_path: Path, what: str) -> None:
    """Whatever lock of ours it holds, another run gets it when the time of a silent client is over."""
    start_from = shelf.scenario("replace_slice", "whole", timeouts=IDLE)
    statements = statements_of(start_from, WHOLE, tmp_path)
    words, place = HELD_BY_US[what]
    number = next(n for n, text in enumerate(statements, start=1) if text.startswith(words)) + place
    scenario = start_from.copied(tmp_path / "project")
    process = start(scenario, RUN, signal="SIGSTOP", number=number)
    try:
        wait_until_stopped(process.pid)
        began = time.monotonic()
        run = scenario.run(WHOLE)
        assert run.outcome.value == "published"
        assert time.monotonic() - began < IDLE_SECONDS + SLACK_SECONDS + 2
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 4, said
    assert "everything was rolled back" in said or "nothing was written" in said
    finishes(scenario, WHOLE)


def test_a_client_whose_network_is_gone(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing arrives at either end, and neither sees an end: the table is free, and the client ends and says so."""
    monkeypatch.setattr(watch, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(watch, "FIRST_LOOK_SECONDS", 0.5)
    monkeypatch.setattr(watch, "SECOND_LOOK_SECONDS", 0.3)
    monkeypatch.setattr(publish, "RECONNECT_SECONDS", 1.0)
    start_from = shelf.scenario("replace_slice", "whole", timeouts=IDLE)
    proxy = through_black_hole(start_from, "LOCK TABLE", after=1)
    scenario = start_from.copied(tmp_path / "project", url=proxy.url(start_from.database, ROLE))
    answers: list[Run | ResliceError] = []
    worker = threading.Thread(target=lambda: answers.append(ends(scenario, WHOLE)))
    worker.start()
    assert proxy.happened.wait(30)
    assert seconds_until_free(scenario, WRITE) < IDLE_SECONDS + SLACK_SECONDS
    rows = rows_in(scenario)
    worker.join(30)
    (ended,) = answers
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"
    assert rows_in(scenario) == rows
    proxy.close()
    scenario.lead_to(scenario.url)
    wait_until_alone(scenario)
    assert scenario.run(WHOLE).outcome.value == "published"
