"""Servers that are killed in mid-publish: one process of them, all of them, and a shutdown in haste.

What they come back with is old or new. A client that was there says which, or that it does not know.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from reslice.engines.postgres import publish
from reslice.engines.postgres.session import PostgresSession
from reslice.errors import OutcomeUnknown, ResliceError, Retryable
from reslice.values import Outcome, Run
from tests import orders_project as project
from tests import postgres
from tests.crash.conftest import VERSIONS
from tests.crash.postgres_honest import ends, finishes, honest, last_run, new_rows, rows_in, slow_commits
from tests.crash.postgres_scenario import PostgresScenario, Shelf, sampled, sane_after, statements_of
from tests.crash.scenario import CALLS
from tests.crash.test_postgres_answers import at_commit
from tests.postgres import ROLE, Server
from tests.proxy import Fault, Proxy

SEED = 20240305
WHOLE = CALLS["whole"]


@pytest.fixture(scope="module", params=VERSIONS)
def durable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Scenarios on a server of one's own, which may be killed."""
    try:
        with postgres.disposable(request.param) as server:
            shelf = Shelf(server, tmp_path_factory.mktemp("durable"))
            yield shelf
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")


def power_fails(server: Server) -> None:
    server.kill9()
    server.start()


def shut_down_in_haste(server: Server) -> None:
    server.stop_immediate()
    server.start()


def one_process_dies(server: Server) -> None:
    """Kill the server process of the run: the server ends all others, and recovers."""
    with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'reslice' AND backend_type = 'client backend'"
        ).fetchall()
    assert rows
    os.kill(rows[0][0], signal.SIGKILL)
    wait_until_up(server)


def wait_until_up(server: Server) -> None:
    until = time.monotonic() + 60
    while True:
        time.sleep(0.1)
        try:
            psycopg.connect(server.url(user=postgres.ADMIN)).close()
        except psycopg.OperationalError:
            assert time.monotonic() < until, "the server does not come back"
        else:
            return


CRASHES: list[Callable[[Server], None]] = [power_fails, shut_down_in_haste, one_process_dies]


def at(patch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Do `act` before the n-th statement."""
    execute, seen = PostgresSession.execute, [0]

    def counted(session: PostgresSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        seen[0] += 1
        if seen[0] == number:
            act()
        return execute(session, statement, parameters)

    patch.setattr(PostgresSession, "execute", counted)


@pytest.mark.parametrize(
    ("method", "name", "every", "crash"),
    [
        ("replace_slice", "whole", 10_000, power_fails),
        *(
            pytest.param(method, name, 1, crash, marks=pytest.mark.slow)
            for method in project.METHODS
            for name in ("whole", "per slice", "restore")
            for crash in CRASHES
        ),
    ],
)
def test_the_server_dies_before_a_statement(
    durable: Shelf, tmp_path: Path, method: str, name: str, every: int, crash: Callable[[Server], None]
) -> None:
    start, call = durable.scenario(method, name), CALLS[name]
    statements = statements_of(start, call, tmp_path)
    numbers = [*sampled(statements, every, 1)]
    for number in numbers if every == 1 else numbers[-2:-1]:
        scenario = start.copied(tmp_path / f"{number}")
        with pytest.MonkeyPatch.context() as patch:
            at(patch, number, lambda: crash(durable.server))
            ended = ends(scenario, call)
        honest(scenario, call, ended, statements[number - 1])
        finishes(scenario, call, is_crashed=True)


@pytest.mark.parametrize(
    "crash", [*(pytest.param(each, marks=pytest.mark.slow) for each in CRASHES[:2]), one_process_dies]
)
def test_the_server_dies_during_a_slow_commit(durable: Shelf, tmp_path: Path, crash: Callable[[Server], None]) -> None:
    """It had not committed: that is found out when the server is back."""
    scenario = durable.scenario("replace_slice", "whole").copied(tmp_path / "project")
    slow_commits(scenario, 20)
    answers: list[Run | ResliceError] = []
    worker = threading.Thread(target=lambda: answers.append(ends(scenario, WHOLE)))
    worker.start()
    wait_until_committing(scenario)
    crash(durable.server)
    worker.join(60)
    (ended,) = answers
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"
    assert rows_in(scenario) == Counter(scenario.model.rows)
    run = last_run(scenario)
    assert (run.state, run.error_kind) == ("failed", "database_unavailable")


def wait_until_committing(scenario: PostgresScenario) -> None:
    until = time.monotonic() + 30
    while True:
        with scenario.reader() as reader:
            found = reader.execute(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'"
                " AND state = 'active' AND clock_timestamp() - query_start > INTERVAL '1 second'"
            ).fetchall()
        if found:
            return
        assert time.monotonic() < until, "it did not come to its commit"
        time.sleep(0.02)


@pytest.mark.parametrize("crash", [shut_down_in_haste, pytest.param(power_fails, marks=pytest.mark.slow)])
def test_the_server_dies_when_it_has_committed(
    durable: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: Callable[[Server], None]
) -> None:
    """The answer is lost, and then the server: what it had committed it brings back, and that is found out."""
    start = durable.scenario("replace_slice", "whole")
    proxy = Proxy((start.server.folder, start.server.port), at_commit(Fault.DROP_AFTER))
    scenario = start.copied(tmp_path / "project", url=proxy.url(start.database, ROLE))
    reopen, crashed = PostgresSession.reopen, list[bool]()

    def after_the_crash(session: PostgresSession) -> None:
        if not crashed:
            crashed.append(True)
            crash(durable.server)
        reopen(session)

    monkeypatch.setattr(PostgresSession, "reopen", after_the_crash)
    run = scenario.run(WHOLE)
    proxy.close()
    scenario.lead_to(scenario.url)
    assert crashed and run.outcome is Outcome.PUBLISHED
    assert "the answer to the commit was lost; the ledger says that it is published" in run.warnings
    assert rows_in(scenario) == new_rows(scenario, WHOLE)
    finishes(scenario, WHOLE, is_crashed=True)


@pytest.mark.parametrize("place", ["COMMIT", pytest.param("LOCK TABLE", marks=pytest.mark.slow)])
def test_the_server_dies_and_stays_away(
    durable: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Before the commit it is known that nothing came of it; after that nobody knows until the server is back."""
    monkeypatch.setattr(publish, "RECONNECT_SECONDS", 1.0)
    start = durable.scenario("replace_slice", "whole")
    scenario = start.copied(tmp_path / "project")
    statements = statements_of(start, WHOLE, tmp_path)
    number = next(n for n, text in enumerate(statements, start=1) if text.startswith("LOCK TABLE"))
    if place == "COMMIT":
        number = statements.index("COMMIT", number) + 1
    scenario = start.copied(tmp_path / "again")
    with pytest.MonkeyPatch.context() as patch:
        at(patch, number, durable.server.stop_immediate)
        ended = ends(scenario, WHOLE)
    durable.server.start()
    assert isinstance(ended, OutcomeUnknown if place == "COMMIT" else Retryable)
    sane_after(scenario, WHOLE, is_crashed=True)


@pytest.mark.parametrize("count", [pytest.param(60, marks=pytest.mark.slow)])
def test_the_server_dies_at_any_time(durable: Shelf, tmp_path: Path, count: int) -> None:
    chance = random.Random(f"{SEED} {count}")
    start = durable.scenario("replace_slice", "whole", groups=80)
    began = time.monotonic()
    start.copied(tmp_path / "undisturbed").run(WHOLE)
    seconds = time.monotonic() - began
    for place in range(count):
        name = chance.choice(["whole", "per slice"])
        scenario = start.copied(tmp_path / f"{place}")
        answers: list[Run | ResliceError] = []

        def work(scenario: PostgresScenario = scenario, name: str = name, answers: Any = answers) -> None:
            answers.append(ends(scenario, CALLS[name]))

        worker = threading.Thread(target=work)
        worker.start()
        time.sleep(chance.uniform(0.3, 1.0) * seconds)
        chance.choice([power_fails, shut_down_in_haste])(durable.server)
        worker.join(60)
        honest(scenario, CALLS[name], answers[0], f"crash {place} of {name}")
        finishes(scenario, CALLS[name], is_crashed=True)
