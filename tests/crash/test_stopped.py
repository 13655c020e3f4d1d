"""Stop at the n-th statement, n = 1, 2, … until the run is through before it: by a crash, an error, a Ctrl-C.

Whatever stops it, the table is as before or wholly replaced, the ledger says which, and what is raised says it too.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from reslice.engines.duckdb import DuckDB
from reslice.errors import Interrupted, OutcomeUnknown, PartlyPublished, ResliceError, Retryable
from reslice.values import Run, State
from tests import orders_project as project
from tests.agreement import differences
from tests.crash.scenario import CALLS, Scenario, Shelf, copies, make, run, sane_after
from tests.crash.statements import Act, Killed, Rows, at, kill_at
from tests.model import Call

SAMPLED = [
    ("replace_slice", "per slice", 90),
    ("merge", "whole", 90),
    ("append_version", "restore", 120),
]
FULL = [pytest.param(method, name, 1, marks=pytest.mark.slow) for method in project.METHODS for name in CALLS]
EVERY = pytest.mark.parametrize(("method", "name", "every"), [*SAMPLED, *FULL])
"""A run, and which of its statements it is stopped at: each commit, what follows the last, every n-th; or every one."""

Scenarios = Callable[[str, str], Scenario]


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Shelf(tmp_path_factory.mktemp("scenarios")).scenario


@pytest.fixture(scope="module")
def first_ever(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return make(tmp_path_factory.mktemp("first") / "project", is_first=True)


@EVERY
def test_killed_at_every_statement(scenarios: Scenarios, tmp_path: Path, method: str, name: str, every: int) -> None:
    states = killed_at_every_statement(scenarios(method, name), CALLS[name], tmp_path, every)
    # The commit that records that nothing changed is the last statement of such a run.
    end = {"unchanged": set(), "restore": {State.RESTORED}}.get(name, {State.PUBLISHED})
    assert states == {None, State.REQUESTED, *end}


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_every_statement_of_the_first_run_ever(first_ever: Scenario, tmp_path: Path, every: int) -> None:
    states = killed_at_every_statement(first_ever, CALLS["whole"], tmp_path, every)
    assert states == {None, State.REQUESTED, State.PUBLISHED}


def killed_at_every_statement(start: Scenario, call: Call, folder: Path, every: int) -> set[State | None]:
    """Kill a run at each statement; return what the ledger said of these runs, None where it did not know them."""
    states = set()
    for number, text, scenario in copies(start, call, folder, every):
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            kill_at(patch, number)
            run(scenario, call)
            raise AssertionError(f"statement {number} was not reached: {text}")
        states.add(sane_after(scenario, call))
    return states


def fails(engine: DuckDB, _execute: Callable[[], Rows]) -> Rows:
    """The database fails, and the transaction with it."""
    return engine._connection.execute("SELECT error('simulated: the disk is full')").fetchall()


def fails_after(engine: DuckDB, execute: Callable[[], Rows]) -> Rows:
    """The statement is done, and its answer is lost."""
    execute()
    raise duckdb.IOException("simulated: the answer was lost")


def interrupts(engine: DuckDB, execute: Callable[[], Rows]) -> Rows:
    """Somebody presses Ctrl-C just before the statement."""
    engine.interrupt()
    return execute()


def interrupts_after(engine: DuckDB, execute: Callable[[], Rows]) -> Rows:
    """Somebody presses Ctrl-C when the statement is done, and before anything is made of it."""
    found = execute()
    engine.interrupt()
    return found


ACTS: list[Act] = [fails, fails_after, interrupts, interrupts_after]
STOPPED = [
    *(("replace_slice", "whole", 90, act) for act in ACTS),
    ("replace_slice", "restore", 120, fails_after),
    ("append_version", "whole", 90, interrupts),
    *(
        pytest.param(method, name, 1, act, marks=pytest.mark.slow)
        for method in project.METHODS
        for name in CALLS
        for act in ACTS
    ),
]


@pytest.mark.parametrize(("method", "name", "every", "act"), STOPPED)
def test_stopped_at_every_statement(
    scenarios: Scenarios, tmp_path: Path, method: str, name: str, act: Act, every: int
) -> None:
    call = CALLS[name]
    for number, text, scenario in copies(scenarios(method, name), call, tmp_path, every):
        with pytest.MonkeyPatch.context() as patch:
            ended = stopped(patch, scenario, call, number, act)
        honest_after(scenario, call, ended, text, act)


@pytest.mark.parametrize(
    ("method", "name", "every"),
    [("replace_slice", "whole", 40), ("merge", "per slice", 90), *FULL],
)
def test_the_database_is_gone_from_every_statement_on(
    scenarios: Scenarios, tmp_path: Path, method: str, name: str, every: int
) -> None:
    """No statement is answered any more, not even a roll-back; the next run finds out what became of this one."""

    def gone(_engine: DuckDB, _execute: Callable[[], Rows]) -> Rows:
        raise duckdb.FatalException("simulated: the database has been invalidated")

    call = CALLS[name]
    for number, text, scenario in copies(scenarios(method, name), call, tmp_path, every):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DuckDB, "roll_back", lambda _engine: None)
            ended = stopped(patch, scenario, call, number, gone, ever_after=True)
        assert isinstance(ended, ResliceError)
        told(ended, sane_after(scenario, call), text)


def stopped(
    patch: pytest.MonkeyPatch, scenario: Scenario, call: Call, number: int, act: Act, *, ever_after: bool = False
) -> Run | ResliceError:
    """Run with something in the way of the n-th statement; return how it ended."""
    at(patch, number, act, ever_after=ever_after)
    try:
        return run(scenario, call)
    except ResliceError as error:
        return error


def told(ended: ResliceError, state: State | None, statement: str) -> None:
    """Hold what was raised to what the ledger says."""
    if state in (State.PUBLISHED, State.RESTORED):
        assert isinstance(ended, OutcomeUnknown), statement
    elif isinstance(ended, OutcomeUnknown):
        assert state is State.REQUESTED, statement


def honest_after(scenario: Scenario, call: Call, ended: Run | ResliceError, statement: str, act: Act) -> None:
    """Hold the file to what was returned or raised: who is told that nothing changed finds nothing changed."""
    new = copy.deepcopy(scenario.model)
    answer = new.run(call)
    with project.connect(scenario.folder) as connection:
        rows = project.rows_of(connection)
        mine = next((run for run in project.runs_of(connection) if run.id == answer.run_id), None)
        written = {str(row.order_date) for row in rows if row.batch_id == answer.run_id}
        slices = project.slices_of(connection).items()
        published = {day for (run_id, day), (state, *_) in slices if (run_id, state) == (answer.run_id, "published")}
        if call.restores is not None:
            assert not written, "a restore puts the old stamps back"
        elif scenario.model.method == "merge":
            assert written <= published
        else:
            assert written == published
        if not isinstance(ended, ResliceError):
            assert ended.outcome.value == answer.outcome, statement
            assert differences(new, connection) == [], statement
        pointers, _ = project.versions_of(connection)
    is_old = (Counter(rows), pointers) == (Counter(scenario.model.rows), scenario.model.pointers)
    if isinstance(ended, PartlyPublished):
        assert mine is not None
        assert (mine.state, mine.error_kind, is_old) == ("failed", "partly_published", False), statement
    elif isinstance(ended, Retryable | Interrupted):
        assert is_old, f"{ended} after {statement}"
        assert mine is None or mine.state in ("failed", "unchanged") or is_lost_request(mine, act), statement
    elif isinstance(ended, ResliceError):
        assert isinstance(ended, OutcomeUnknown), f"{ended!r} at {statement}"
        assert not is_old, f"{ended} after {statement}"
    finishes(scenario, call)


def is_lost_request(run: project.LedgerRow, act: Act) -> bool:
    """Whether the answer to the request itself was lost: nobody knows the run's name, and the next run closes it."""
    return act is fails_after and run.state == "requested" and run.staged_order is None


def finishes(scenario: Scenario, call: Call) -> None:
    """Run the same command again, undisturbed: it ends at the new rows, and once more changes nothing."""
    run(scenario, call)
    again = Call(call.target, call.first, call.last, restores=call.restores)
    assert run(scenario, again).outcome.value == "unchanged"
    with project.connect(scenario.folder) as connection:
        new = copy.deepcopy(scenario.model)
        new.run(call)
        found = project.current_of(connection) or project.rows_of(connection)
        assert Counter(row.values for row in found) == Counter(row.values for row in new.current)
        assert project.tables_of(connection) == {"orders", "daily_orders"}
