"""Pruning that is cut short by SIGKILL, at every statement of it: all of it is there afterwards, or nothing is gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import reslice
from reslice.values import Outcome, Run
from tests import orders_project as project
from tests.crash.scenario import D1, D4, make
from tests.crash.statements import watched

ROOT = Path(__file__).parents[2]
RANGE = f"{D1}..{D4}"
HELD = {
    "kept": 'SELECT DISTINCT "reslice:run" FROM {kept} ORDER BY 1',
    "groups": "SELECT DISTINCT run_id FROM reslice.run_groups ORDER BY 1",
    "marked": "SELECT id FROM reslice.runs WHERE pruned_at IS NOT NULL ORDER BY number",
    "looked": "SELECT 'a look' FROM reslice.prunings",
}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which r-0001 may go: r-0002 and r-0003 have published its slices again, all a hundred days ago."""
    folder = tmp_path_factory.mktemp("old") / "project"
    make(folder)
    run(folder)
    run(folder, rewrite=True)
    with project.connect(folder) as connection:
        for column in ("requested_at", "finished_at"):
            connection.execute(f"UPDATE reslice.runs SET {column} = {column} - INTERVAL 100 DAY")
    assert held(folder) == {"kept": ["r-0002", "r-0003"], "groups": ["r-0001", "r-0002"], "marked": [], "looked": []}
    return folder


def run(folder: Path, **options: Any) -> Run:
    return reslice.open(folder / "reslice.yml").target(project.FREE).run(RANGE, **options)


def held(folder: Path) -> dict[str, list[str]]:
    """Return of which runs the ledger holds kept rows and groups, and what it says of pruning."""
    with project.connect(folder, read_only=True) as connection:
        names = connection.execute("SELECT kept_table FROM reslice.runs WHERE kept_table IS NOT NULL").fetchone()
        assert names is not None
        return {
            what: [row[0] for row in connection.execute(query.format(kept=names[0])).fetchall()]
            for what, query in HELD.items()
        }


def table(folder: Path) -> list[Any]:
    with project.connect(folder, read_only=True) as connection:
        return connection.execute(f"SELECT * FROM {project.FREE} ORDER BY ALL").fetchall()


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., int]]:
    """Run in a child that is killed at a statement, or so many seconds after it began; return its exit status."""
    killer = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.killer"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert killer.stdin is not None and killer.stdout is not None
    asked, answers = killer.stdin, killer.stdout

    def run_and_kill(folder: Path, statement: int, delay: float | None = None) -> int:
        what = {"contract": str(folder / "reslice.yml"), "target": project.FREE, "options": {"range": RANGE}}
        asked.write(json.dumps({**what, "statement": statement, "delay": delay}) + "\n")
        asked.flush()
        status: int = json.loads(answers.readline())["status"]
        return status

    yield run_and_kill
    killer.communicate(timeout=30)


def test_killed_at_every_statement_of_pruning(old: Path, tmp_path: Path, killed: Callable[..., int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        statements = watched(patch)
        shutil.copytree(old, tmp_path / "undisturbed")
        assert "kept rows and groups of 2 runs" in run(tmp_path / "undisturbed").notes[-1]
    before, after = held(old), held(tmp_path / "undisturbed")
    assert after == {"kept": ["r-0003"], "groups": [], "marked": ["r-0001", "r-0002"], "looked": ["a look"]}
    first = next(
        place for place, text in enumerate(statements.seen, start=1) if "prunings" in text and "EXISTS" in text
    )
    for statement in range(first, len(statements.seen) + 1):
        folder = tmp_path / str(statement)
        shutil.copytree(old, folder)
        assert killed(folder, statement) == -9
        assert held(folder) == before, statements.seen[statement - 1]
        assert table(folder) == table(old)
        again = run(folder)
        assert (again.outcome, "abandoned" in str(again.notes)) == (Outcome.UNCHANGED, False), "the run had ended"
        assert (held(folder), table(folder)) == (after, table(old))
    assert len(statements.seen) - first > 6


def test_killed_within_the_commit_of_pruning(old: Path, tmp_path: Path, killed: Callable[..., int]) -> None:
    """The commit itself: whichever way it fell, it fell whole."""
    with pytest.MonkeyPatch.context() as patch:
        statements = watched(patch)
        shutil.copytree(old, tmp_path / "undisturbed")
        run(tmp_path / "undisturbed")
    wanted = (held(old), held(tmp_path / "undisturbed"))
    assert statements.seen[-1] == "COMMIT"
    for place in range(6):
        folder = tmp_path / str(place)
        shutil.copytree(old, folder)
        assert killed(folder, len(statements.seen), place * 0.001) in (-9, 0)
        assert held(folder) in wanted
        with duckdb.connect(str(folder / "orders.duckdb")) as connection:
            assert connection.execute("SELECT count(*) FROM reslice.runs WHERE state = 'requested'").fetchone() == (0,)
