"""Signals that ask the command line to stop, while the source runs and at any time: its exit code tells the truth."""

from __future__ import annotations

import copy
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from reslice.values import State
from tests import orders_project as project
from tests.agreement import differences
from tests.crash.scenario import CALLS, Scenario, again, make
from tests.model import Call

COMMAND = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main())"]
SEED = 20240302
SLOW = "\n  AND (SELECT sum(a.range * b.range) FROM range(3000000) AS a, range(3000000) AS b) IS NOT NULL"
EXITS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return make(tmp_path_factory.mktemp("corrected") / "project")


def start(scenario: Scenario, call: Call) -> subprocess.Popen[str]:
    words = ["run", call.target, f"{call.first}..{call.last}", *(["--per-slice"] if call.per_slice else [])]
    return subprocess.Popen(
        [*COMMAND, *words], cwd=scenario.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", EXITS)
def test_while_a_slow_source_runs(corrected: Scenario, tmp_path: Path, number: signal.Signals) -> None:
    scenario = corrected.copied(tmp_path / "project")
    source = scenario.folder / "sql" / "daily_orders.sql"
    quick = source.read_text()
    source.write_text(quick.replace("\nGROUP BY", f"{SLOW}\nGROUP BY"))
    process = start(scenario, CALLS["whole"])
    wait_for_the_request(scenario)
    time.sleep(0.3)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)

    assert (process.returncode, output) == (EXITS[number], "")
    whole = CALLS["whole"]
    about = f"{whole.target} for {whole.first}..{whole.last}, both days included, "
    assert errors.startswith(f"interrupted[interrupted]: {about}")
    assert "unchanged:  the transaction was rolled back" in errors
    with project.connect(scenario.folder, read_only=True) as connection:
        assert Counter(project.rows_of(connection)) == Counter(scenario.model.rows)
        *_, run = project.runs_of(connection)
        assert (run.state, run.error_kind, run.is_finished) == ("failed", "interrupted", True)
        assert project.kept_of(connection) == []
    source.write_text(quick)
    left = copy.deepcopy(scenario.model)
    left.run(Call(CALLS["whole"].target, CALLS["whole"].first, CALLS["whole"].last, crash_after=0))
    left.runs[-1].state, left.runs[-1].error = State.FAILED, "interrupted"
    again(scenario, left, CALLS["whole"])


def wait_for_the_request(scenario: Scenario) -> None:
    """Wait until the process has committed its request: the log beside the file appears."""
    deadline = time.monotonic() + 30
    while not (scenario.folder / "orders.duckdb.wal").exists():
        assert time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.02)


@pytest.mark.parametrize("count", [5, pytest.param(120, marks=pytest.mark.slow)])
def test_at_any_time(corrected: Scenario, tmp_path: Path, count: int) -> None:
    """Whatever it ends with, 0 is published, 129, 130 and 143 are untouched, and 6 is some slices, each whole."""
    chance = random.Random(f"{SEED} {count}")
    began = time.monotonic()
    start(corrected.copied(tmp_path / "undisturbed"), CALLS["per slice"]).communicate(timeout=30)
    seconds = time.monotonic() - began
    for place in range(count):
        scenario = corrected.copied(tmp_path / f"{place}")
        call = CALLS[chance.choice(["whole", "per slice"])]
        number = chance.choice([*EXITS])
        process = start(scenario, call)
        time.sleep(chance.uniform(0.5, 1.1) * seconds)
        process.send_signal(number)
        process.communicate(timeout=30)
        holds_to(scenario, call, process.returncode, number)


def holds_to(scenario: Scenario, call: Call, code: int, number: signal.Signals) -> None:
    """Hold what is in the file to the exit code of the command; a signal before its first line just ends Python."""
    new = copy.deepcopy(scenario.model)
    new.run(call)
    with project.connect(scenario.folder) as connection:
        rows = Counter(project.rows_of(connection))
        states = [run.state for run in project.runs_of(connection)][len(scenario.model.runs) :]
        if code == 0:
            assert differences(new, connection) == []
        elif code == 6:
            assert call.per_slice
            assert rows != Counter(scenario.model.rows)
            assert states == ["failed"]
        else:
            assert code in (EXITS[number], -number, 1)
            assert rows == Counter(scenario.model.rows)
            assert states in ([], ["failed"])
