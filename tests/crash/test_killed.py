"""Processes that are killed with SIGKILL, at a statement, in the middle of a commit, and at any time.

What they leave is a file with its log beside it, as the kernel had it. It is old or new, and says which.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from reslice.values import State
from tests import orders_project as project
from tests.crash.scenario import CALLS, Scenario, Shelf, copies, make, sane_after
from tests.model import Call

ROOT = Path(__file__).parents[2]
SEED = 20240301
COMMAND = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main(sys.argv[1:]))"]


class Runnable(Protocol):
    """A project of a folder, and how a call of it is spelled."""

    @property
    def folder(self) -> Path: ...

    def options(self, call: Call) -> dict[str, Any]: ...


class Killer:
    """The program of `killer`, which kills one run at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.killer"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scenario: Runnable, call: Call, *, statement: int | None = None, delay: float | None = None) -> Any:
        """Run and be killed; return the exit status and the seconds it took."""
        asked = {
            "contract": str(scenario.folder / "reslice.yml"),
            "target": call.target,
            "command": "run" if call.restores is None else "restore",
            "options": scenario.options(call),
            "statement": statement,
            "delay": delay,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    started = Killer()
    yield started
    started.close()


Scenarios = Callable[[str, str], Scenario]


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    return Shelf(tmp_path_factory.mktemp("scenarios")).scenario


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A project whose commits take long enough to be met in the middle."""
    return make(tmp_path_factory.mktemp("wide") / "project", groups=80)


@pytest.mark.parametrize(
    ("method", "name", "every"),
    [
        ("replace_slice", "whole", 90),
        ("append_version", "restore", 120),
        *(pytest.param(method, name, 1, marks=pytest.mark.slow) for method in project.METHODS for name in CALLS),
    ],
)
def test_killed_before_a_statement(
    scenarios: Scenarios, tmp_path: Path, killer: Killer, method: str, name: str, every: int
) -> None:
    states = set()
    for number, text, scenario in copies(scenarios(method, name), CALLS[name], tmp_path, every):
        assert killer.run(scenario, CALLS[name], statement=number)["status"] == -9, text
        states.add(sane_after(scenario, CALLS[name]))
    assert State.REQUESTED in states
    assert states & {State.PUBLISHED, State.RESTORED} or name == "unchanged"


@pytest.mark.parametrize("name", ["whole", "per slice"])
@pytest.mark.parametrize("count", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_killed_within_a_commit(wide: Scenario, tmp_path: Path, killer: Killer, name: str, count: int) -> None:
    chance = random.Random(f"{SEED} commit {name} {count}")
    call = CALLS[name]
    commits = [number for number, text, _ in copies(wide, call, tmp_path, 10_000) if text == "COMMIT"]
    for place in range(count):
        scenario = wide.copied(tmp_path / f"commit {place}")
        answer = killer.run(scenario, call, statement=chance.choice(commits[2:]), delay=chance.uniform(0, 0.006))
        assert answer["status"] in (-9, 0)
        sane_after(scenario, call)


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_killed_at_any_time(wide: Scenario, tmp_path: Path, killer: Killer, count: int) -> None:
    """Every fifth is the command line itself, started and killed as a whole."""
    chance = random.Random(f"{SEED} time {count}")
    names = ["whole", "per slice", "rewrite"]
    seconds = {name: killer.run(wide.copied(tmp_path / name), CALLS[name])["seconds"] for name in names}
    states: Counter[State | None] = Counter()
    for place in range(count):
        name = chance.choice(names)
        scenario = wide.copied(tmp_path / f"{place}")
        if place % 5:
            killer.run(scenario, CALLS[name], delay=chance.uniform(0, 1.1 * seconds[name]))
        else:
            killed_command(scenario, CALLS[name], chance.uniform(0.3, 0.6 + seconds[name]))
        states[sane_after(scenario, CALLS[name])] += 1
    assert sum(states.values()) == count
    assert len(states) > 1, "every kill was too early, or too late, to meet a run"


def killed_command(scenario: Scenario, call: Call, delay: float) -> None:
    """Start the command, and kill it after `delay` seconds."""
    words = ["run", call.target, f"{call.first}..{call.last}"]
    words += [option for option, is_on in (("--per-slice", call.per_slice), ("--rewrite", call.rewrite)) if is_on]
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=scenario.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(delay)
    process.kill()
    process.wait()
