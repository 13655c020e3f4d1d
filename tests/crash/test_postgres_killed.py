"""Clients of PostgreSQL that are killed with SIGKILL, before a statement, within a commit, and at any time."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from reslice.values import State
from tests import orders_project as project
from tests.crash.postgres_scenario import PostgresScenario, Shelf, sampled, sane_after, statements_of
from tests.crash.scenario import CALLS
from tests.crash.test_killed import Killer
from tests.model import Call

SEED = 20240303
COMMAND = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    started = Killer()
    yield started
    started.close()


@pytest.mark.parametrize(
    ("method", "name", "every"),
    [
        ("replace_slice", "whole", 40),
        ("merge", "per slice", 10_000),
        ("append_version", "restore", 80),
        *(pytest.param(method, name, 1, marks=pytest.mark.slow) for method in project.METHODS for name in CALLS),
    ],
)
def test_killed_before_a_statement(
    shelf: Shelf, tmp_path: Path, killer: Killer, method: str, name: str, every: int
) -> None:
    start, call = shelf.scenario(method, name), CALLS[name]
    statements = statements_of(start, call, tmp_path)
    states = set()
    for number in sampled(statements, every, sum(map(ord, method + name))):
        scenario = start.copied(tmp_path / f"{number}")
        assert killer.run(scenario, call, statement=number)["status"] == -9, statements[number - 1]
        states.add(sane_after(scenario, call))
    assert State.REQUESTED in states
    is_told_later = name == "unchanged" or (name == "per slice" and every > 1)
    assert states & {State.PUBLISHED, State.RESTORED} or is_told_later


@pytest.mark.parametrize("count", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_killed_within_a_commit(shelf: Shelf, tmp_path: Path, killer: Killer, count: int) -> None:
    chance = random.Random(f"{SEED} commit {count}")
    start = shelf.scenario("replace_slice", "whole", groups=80)
    commits = {
        name: [n for n, text in enumerate(statements_of(start, CALLS[name], tmp_path / name), 1) if text == "COMMIT"]
        for name in ("whole", "per slice")
    }
    for place in range(count):
        name = chance.choice([*commits])
        scenario = start.copied(tmp_path / f"commit {place}")
        number = chance.choice(commits[name][2:])
        answer = killer.run(scenario, CALLS[name], statement=number, delay=chance.uniform(0, 0.004))
        assert answer["status"] in (-9, 0)
        sane_after(scenario, CALLS[name])


@pytest.mark.parametrize("count", [3, pytest.param(300, marks=pytest.mark.slow)])
def test_killed_at_any_time(shelf: Shelf, tmp_path: Path, killer: Killer, count: int) -> None:
    """Every fifth is the command line itself, started and killed as a whole."""
    chance = random.Random(f"{SEED} time {count}")
    start = shelf.scenario("replace_slice", "whole", groups=80)
    names = ["whole", "per slice", "rewrite"]
    seconds = {name: killer.run(start.copied(tmp_path / name), CALLS[name])["seconds"] for name in names}
    states: Counter[State | None] = Counter()
    for place in range(count):
        name = chance.choice(names)
        scenario = start.copied(tmp_path / f"{place}")
        if place % 5:
            killer.run(scenario, CALLS[name], delay=chance.uniform(0.2, 1.05) * seconds[name])
        else:
            killed_command(scenario, CALLS[name], chance.uniform(0.5, 0.8 + seconds[name]))
        states[sane_after(scenario, CALLS[name])] += 1
    assert sum(states.values()) == count
    assert len(states) > 1 or count < 100, "every kill was too early, or too late, to meet a run"


def killed_command(scenario: PostgresScenario, call: Call, delay: float) -> None:
    """Start the command, and kill it after `delay` seconds."""
    words = ["run", call.target, f"{call.first}..{call.last}"]
    words += [option for option, is_on in (("--per-slice", call.per_slice), ("--rewrite", call.rewrite)) if is_on]
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=scenario.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(delay)
    process.kill()
    process.wait()
