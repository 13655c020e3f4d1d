"""Answers of PostgreSQL that do not arrive: what is told is true, and what is not known is looked up, or said so.

A proxy stands between. It lets a connection drop before a statement, after it, and while it is under way, says nothing
any more, and lets nobody in.
"""

from __future__ import annotations

import copy
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reslice import cli
from reslice.engines.postgres import publish, watch
from reslice.errors import ResliceError, Retryable
from reslice.values import Outcome, Run
from tests import orders_project as project
from tests.crash.postgres_honest import ends, finishes, honest, last_run, new_rows, rows_in, shape, slow_commits
from tests.crash.postgres_scenario import PostgresScenario, Shelf, again, sampled, wait_until_alone
from tests.crash.scenario import CALLS, D1, D2, D3
from tests.model import Call
from tests.model_rows import Row
from tests.postgres import ROLE
from tests.proxy import Decide, Fault, Proxy, Statement

WHOLE = CALLS["whole"]
LOST = "the answer to the commit was lost; the ledger says that it is published"
Through = Callable[..., tuple[PostgresScenario, Proxy]]


@pytest.fixture
def through(shelf: Shelf, tmp_path: Path) -> Iterator[Through]:
    """Make a copy of a project that is reached through a proxy with a fault."""
    proxies: list[Proxy] = []

    def make(
        fault: Decide, *, method: str = "replace_slice", name: str = "whole", refuse: float | None = 0.0, **how: Any
    ) -> tuple[PostgresScenario, Proxy]:
        scenario = shelf.scenario(method, name, **how)
        proxy = Proxy((scenario.server.folder, scenario.server.port), fault, refuse)
        proxies.append(proxy)
        folder = tmp_path / f"{len(proxies)}"
        return scenario.copied(folder, url=proxy.url(scenario.database, ROLE)), proxy

    yield make
    for each in proxies:
        each.close()


def at_commit(fault: Fault, place: int = 1) -> Decide:
    """Let the n-th commit that publishes meet a fault."""
    holding: list[int] = []
    commits = [0]

    def decide(statement: Statement) -> Fault:
        if statement.text.startswith("LOCK TABLE"):
            holding.append(statement.connection)
        elif statement.text == "COMMIT" and statement.connection in holding:
            holding.clear()
            commits[0] += 1
            return fault if commits[0] == place else Fault.NONE
        return Fault.NONE

    return decide


def straight(scenario: PostgresScenario, proxy: Proxy) -> None:
    """Take the proxy away, and wait until the server has noticed that everybody is gone."""
    proxy.close()
    scenario.lead_to(scenario.url)
    wait_until_alone(scenario)


# --- each statement -----------------------------------------------------------------------------------------------

SAMPLED = [
    ("replace_slice", "whole", 40, Fault.DROP_BEFORE),
    ("merge", "per slice", 80, Fault.DROP_AFTER),
    ("append_version", "restore", 70, Fault.DROP_AFTER),
    *(
        pytest.param(method, name, 1, fault, marks=pytest.mark.slow)
        for method in project.METHODS
        for name in CALLS
        for fault in (Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.CUT_BOTH)
    ),
]


@pytest.mark.parametrize(("method", "name", "every", "fault"), SAMPLED)
def test_the_connection_drops_at_a_statement(
    through: Through, method: str, name: str, every: int, fault: Fault
) -> None:
    call = CALLS[name]
    scenario, proxy = through(lambda _: Fault.NONE, method=method, name=name)
    scenario.run(call)
    texts = [each.text for each in proxy.seen]
    for number in sampled(texts, every, len(method) + len(name)):
        left = [number]

        def at(_statement: Statement, left: list[int] = left) -> Fault:
            left[0] -= 1
            return Fault.NONE if left[0] else fault

        scenario, proxy = through(at, method=method, name=name)
        ended = ends(scenario, call)
        assert [shape(each.text) for each in proxy.faults] == [shape(texts[number - 1])]
        straight(scenario, proxy)
        honest(scenario, call, ended, texts[number - 1])
        finishes(scenario, call)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_connection_drops_as_soon_as_it_is_made(through: Through, number: int) -> None:
    scenario, proxy = through(lambda each: Fault.DROP_AFTER if each.number == number else Fault.NONE)
    ended = ends(scenario, WHOLE)
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"
    assert "was read or written" in ended.unchanged or "nothing was written" in ended.unchanged
    straight(scenario, proxy)
    assert rows_in(scenario) == Counter(scenario.model.rows)


def test_a_server_that_takes_connections_and_says_nothing(shelf: Shelf, tmp_path: Path) -> None:
    scenario = shelf.scenario("replace_slice", "whole").copied(tmp_path / "project")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        scenario.lead_to(f"postgresql://{ROLE}@127.0.0.1:{port}/{scenario.database}?connect_timeout=2")
        began = time.monotonic()
        ended = ends(scenario, WHOLE)
        assert time.monotonic() - began < 8
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"


# --- the commit -----------------------------------------------------------------------------------------------------


def test_before_the_commit_reaches_the_server(through: Through) -> None:
    scenario, proxy = through(at_commit(Fault.DROP_BEFORE))
    with pytest.raises(Retryable) as raised:
        scenario.run(WHOLE)
    assert (raised.value.kind, raised.value.exit_code, raised.value.retry) == ("database_unavailable", 4, True)
    assert raised.value.unchanged == "daily_orders is as it was; everything was rolled back"
    straight(scenario, proxy)
    assert rows_in(scenario) == Counter(scenario.model.rows)
    run = last_run(scenario)
    assert (run.state, run.error_kind, run.is_finished) == ("failed", "database_unavailable", True)
    finishes(scenario, WHOLE)


@pytest.mark.parametrize("name", ["whole", "restore"])
@pytest.mark.parametrize("method", ["replace_slice", pytest.param("merge", marks=pytest.mark.slow)])
def test_after_the_server_committed(through: Through, name: str, method: str) -> None:
    scenario, proxy = through(at_commit(Fault.DROP_AFTER), method=method, name=name)
    call = CALLS[name]
    run = scenario.run(call)
    assert run.outcome is (Outcome.RESTORED if name == "restore" else Outcome.PUBLISHED)
    assert LOST in run.warnings
    straight(scenario, proxy)
    assert rows_in(scenario) == new_rows(scenario, call)
    with scenario.reader() as reader:
        runs = project.runs_of(reader)
        assert len(runs) == len(scenario.model.runs) + 1, "it was published once"
        assert runs[-1].state == run.outcome.value
    assert scenario.run(Call(call.target, call.first, call.last, restores=call.restores)).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("fault", [Fault.CUT_CLIENT, pytest.param(Fault.CUT_BOTH, marks=pytest.mark.slow)])
def test_during_a_slow_commit(through: Through, fault: Fault) -> None:
    """The row is not there yet; a moment later it is. Who looks before the turn is held would say: not published."""
    scenario, proxy = through(at_commit(fault))
    slow_commits(scenario, 1.5)
    answers: list[Run | ResliceError] = []
    worker = threading.Thread(target=lambda: answers.append(ends(scenario, WHOLE)))
    worker.start()
    assert proxy.happened.wait(20)
    assert rows_in(scenario) == Counter(scenario.model.rows), "it is still committing"
    worker.join(20)
    (run,) = answers
    assert isinstance(run, Run) and run.outcome is Outcome.PUBLISHED and LOST in run.warnings
    assert rows_in(scenario) == new_rows(scenario, WHOLE)
    straight(scenario, proxy)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the server after a moment, not after many seconds."""
    monkeypatch.setattr(watch, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(watch, "FIRST_LOOK_SECONDS", 0.5)
    monkeypatch.setattr(watch, "SECOND_LOOK_SECONDS", 0.3)
    monkeypatch.setattr(watch, "UNREACHABLE_SECONDS", 2.0)
    monkeypatch.setattr(watch, "STOP_SECONDS", 1.0)
    monkeypatch.setattr(publish, "RECONNECT_SECONDS", 1.0)


IDLE = "{wait: 20s, lock: 2s, idle: 2s}"


@pytest.mark.usefixtures("impatient")
def test_a_commit_that_is_never_answered(through: Through) -> None:
    scenario, proxy = through(at_commit(Fault.MUTE))
    run = scenario.run(WHOLE)
    assert run.outcome is Outcome.PUBLISHED and LOST in run.warnings
    assert rows_in(scenario) == new_rows(scenario, WHOLE)
    straight(scenario, proxy)


@pytest.mark.usefixtures("impatient")
def test_a_commit_that_neither_arrives_nor_ends(through: Through) -> None:
    """The server waits for the client, and gives up after `timeouts.idle`: then the table is free."""
    scenario, proxy = through(at_commit(Fault.SWALLOW), timeouts=IDLE)
    began = time.monotonic()
    ended = ends(scenario, WHOLE)
    assert time.monotonic() - began < 10
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"
    assert "the server is not at work on it" in str(ended)
    straight(scenario, proxy)
    assert rows_in(scenario) == Counter(scenario.model.rows)
    finishes(scenario, WHOLE)


@pytest.mark.usefixtures("impatient")
@pytest.mark.slow
def test_a_slow_commit_is_waited_for(through: Through) -> None:
    """However often the server is asked: while it is at work nothing is cut."""
    scenario, proxy = through(lambda _: Fault.NONE)
    slow_commits(scenario, 4)
    run = scenario.run(WHOLE)
    assert run.outcome is Outcome.PUBLISHED and LOST not in run.warnings
    assert max(each.connection for each in proxy.seen) > 1, "the server was asked"
    straight(scenario, proxy)


@pytest.mark.usefixtures("impatient")
def test_a_slow_commit_is_waited_for_although_nobody_else_is_let_in(through: Through) -> None:
    """The server says that it is there, and full: that is no reason to break off what it works on."""
    scenario, proxy = through(lambda _: Fault.NONE, timeouts="{wait: 1s, lock: 1s}")
    slow_commits(scenario, 4)
    with scenario.reader() as reader:
        reader.execute(f"ALTER DATABASE {scenario.database} CONNECTION LIMIT 1")
    wait_until_alone(scenario)
    run = scenario.run(WHOLE)
    assert run.outcome is Outcome.PUBLISHED and LOST not in run.warnings
    straight(scenario, proxy)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [Fault.MUTE, Fault.SWALLOW])
def test_a_statement_that_is_never_answered(through: Through, fault: Fault) -> None:
    def decide(statement: Statement) -> Fault:
        return fault if statement.text.startswith("LOCK TABLE") else Fault.NONE

    scenario, proxy = through(decide, timeouts=IDLE)
    ended = ends(scenario, WHOLE)
    assert isinstance(ended, Retryable) and ended.kind == "database_unavailable"
    straight(scenario, proxy)
    assert rows_in(scenario) == Counter(scenario.model.rows)
    finishes(scenario, WHOLE)


# --- the server cannot be reached -----------------------------------------------------------------------------------


def in_json(capsys: pytest.CaptureFixture[str], scenario: PostgresScenario, *words: str) -> tuple[int, dict[str, Any]]:
    code = cli.main(["-C", str(scenario.folder), *words, "--json"])
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, value


def in_text(capsys: pytest.CaptureFixture[str], scenario: PostgresScenario, *words: str) -> tuple[int, str]:
    code = cli.main(["-C", str(scenario.folder), *words])
    said = capsys.readouterr()
    return code, said.out + said.err


RUN = ("run", project.FREE, f"{D1}..{D3}")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [pytest.param(Fault.DROP_BEFORE, marks=pytest.mark.slow), Fault.DROP_AFTER])
def test_nobody_is_let_in_after_the_drop(through: Through, capsys: pytest.CaptureFixture[str], fault: Fault) -> None:
    """Nobody knows: that is said, and how to look. The next run that reaches the server finds out."""
    scenario, proxy = through(at_commit(fault), refuse=None)
    with scenario.reader() as reader:
        kept = Counter(project.kept_of(reader))
    code, value = in_json(capsys, scenario, *RUN)
    assert (code, value["outcome"], value["error"]["kind"]) == (5, "unknown", "outcome_unknown")
    assert (value["retry"], value["error"]["next"]) == (False, f"reslice -C {scenario.folder} show r-0002")
    assert value["error"]["unchanged"] == "not known; the next run finds out from the ledger before it writes"
    code, value = in_json(capsys, scenario, "show", "r-0002")
    assert (code, value["error"]["kind"]) == (4, "database_unavailable")

    proxy.let_in()
    landed = fault is Fault.DROP_AFTER
    code, value = in_json(capsys, scenario, "show", "r-0002")
    assert (code, value["run"]["state"]) == (0, "published" if landed else "requested")
    with scenario.reader() as reader:
        assert not kept - Counter(project.kept_of(reader)), "kept rows are deleted by nobody"
    code, said = in_text(capsys, scenario, *RUN)
    assert code == 0
    if landed:
        assert "unchanged" in said
        assert "abandoned" not in said
    else:
        assert f"r-0002 over {D1}..{D3} was abandoned: its process is gone; nothing of it was published" in said
    straight(scenario, proxy)
    with scenario.reader() as reader:
        states = [(run.id, run.state, run.error_kind) for run in project.runs_of(reader)][1:]
    before = ("r-0002", "published", None) if landed else ("r-0002", "failed", "abandoned")
    assert states == [before, ("r-0003", "unchanged" if landed else "published", None)]
    call = Call(WHOLE.target, WHOLE.first, WHOLE.last)
    finishes(scenario, call)


def test_nobody_is_let_in_for_a_moment(through: Through) -> None:
    scenario, proxy = through(at_commit(Fault.DROP_AFTER), refuse=1.5)
    run = scenario.run(WHOLE)
    assert run.outcome is Outcome.PUBLISHED and LOST in run.warnings
    straight(scenario, proxy)
    assert rows_in(scenario) == new_rows(scenario, WHOLE)


@pytest.mark.usefixtures("impatient")
def test_the_server_is_gone_before_the_commit(through: Through, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was sent that could have been kept, so it is known, although nobody can be asked."""
    scenario, proxy = through(at_statement("LOCK TABLE"), refuse=None)
    code, value = in_json(capsys, scenario, *RUN)
    assert (code, value["error"]["kind"], value["retry"]) == (4, "database_unavailable", True)
    straight(scenario, proxy)
    assert last_run(scenario).state == "requested", "nobody could write how it ended"
    left = copy.deepcopy(scenario.model)
    left.run(Call(WHOLE.target, WHOLE.first, WHOLE.last, crash_after=0))
    again(scenario, left, WHOLE)


def at_statement(words: str, fault: Fault = Fault.DROP_BEFORE) -> Decide:
    def decide(statement: Statement) -> Fault:
        return fault if statement.text.startswith(words) else Fault.NONE

    return decide


# --- one commit per slice -------------------------------------------------------------------------------------------

EACH = CALLS["per slice"]
PER_SLICE = (*RUN, "--per-slice")


def per_slice_rows(scenario: PostgresScenario, slices: int) -> Counter[Row]:
    imagined = copy.deepcopy(scenario.model)
    imagined.run(Call(EACH.target, EACH.first, EACH.last, per_slice=True, crash_after=slices))
    return Counter(imagined.rows)


def test_between_two_commits(through: Through, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer to the second commit is lost, and found out. The rows that were staged are gone all the same."""
    scenario, proxy = through(at_commit(Fault.DROP_AFTER, 2))
    code, value = in_json(capsys, scenario, *PER_SLICE)
    assert (code, value["error"]["kind"], value["retry"]) == (6, "partly_published", True)
    assert value["slices_published"] == [str(D1), str(D2)]
    assert value["error"]["found"][0] == f"2 slices are published, each whole: {D1}, {D2}"
    assert value["error"]["found"][1] == (
        f"{D3} was not published: the connection was lost on the way, and with it the rows that were staged"
    )
    straight(scenario, proxy)
    assert rows_in(scenario) == per_slice_rows(scenario, 2)
    run = last_run(scenario)
    assert (run.state, run.error_kind) == ("failed", "partly_published")
    finishes(scenario, EACH)


def test_before_the_second_commit(through: Through, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, proxy = through(at_commit(Fault.DROP_BEFORE, 2))
    code, value = in_json(capsys, scenario, *PER_SLICE)
    assert (code, value["error"]["kind"], value["slices_published"]) == (6, "partly_published", [str(D1)])
    straight(scenario, proxy)
    assert rows_in(scenario) == per_slice_rows(scenario, 1)
    finishes(scenario, EACH)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [Fault.DROP_BEFORE, Fault.DROP_AFTER])
def test_nobody_is_let_in_after_the_second_commit(
    through: Through, capsys: pytest.CaptureFixture[str], fault: Fault
) -> None:
    scenario, proxy = through(at_commit(fault, 2), refuse=None)
    code, value = in_json(capsys, scenario, *PER_SLICE)
    assert (code, value["outcome"], value["slices_published"]) == (5, "unknown", [str(D1)])
    straight(scenario, proxy)
    landed = 2 if fault is Fault.DROP_AFTER else 1
    assert rows_in(scenario) == per_slice_rows(scenario, landed)
    code, said = in_text(capsys, scenario, *PER_SLICE)
    assert code == 0
    words = "2 slices of it are published, each whole" if landed == 2 else "1 slice of it is published, whole"
    assert f"its process is gone; {words}" in said
    finishes(scenario, EACH)
