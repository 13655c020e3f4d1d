"""What is asked of the ledger, and what comes back, does not grow with the number of runs that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reslice
from bench import facts, ledger_size
from reslice.engines.duckdb.session import DuckDBSession

FEW, MANY = 400, 8000
DAY, RANGE = "2026-07-01", "2026-07-05..2026-07-13"

JOBS: Mapping[str, Callable[[Path], object]] = {
    "run": lambda folder: handle(folder).run(DAY, rewrite=True),
    "run, unchanged": lambda folder: handle(folder).run(DAY),
    "plan": lambda folder: handle(folder).plan(DAY),
    "history": lambda folder: reslice.open(folder / "reslice.yml").history(),
    "history of a target": lambda folder: reslice.open(folder / "reslice.yml").history(facts.TARGET),
    "show the last": lambda folder: reslice.open(folder / "reslice.yml").show("last"),
    "show one": lambda folder: reslice.open(folder / "reslice.yml").show("r-0001"),
}


def handle(folder: Path, config: str = "reslice.yml") -> reslice.TargetHandle:
    return reslice.open(folder / config).target(facts.TARGET)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two projects with ledgers of a few runs and of many."""
    few, many = (tmp_path_factory.mktemp("ledger") / f"{runs}" for runs in (FEW, MANY))
    ledger_size.make(few, runs=FEW)
    ledger_size.make(many, runs=MANY)
    return few, many


def rows_fetched(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[int]:
    """Return how many rows each statement of the work brought to Python."""
    execute = DuckDBSession.execute
    counts: list[int] = []

    def counted(session: DuckDBSession, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        rows = execute(session, statement, parameters)
        counts.append(len(rows))
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(DuckDBSession, "execute", counted)
        work()
    return counts


@pytest.mark.parametrize("name", JOBS)
def test_as_many_statements_and_rows_whatever_the_ledger_holds(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    few, many = (rows_fetched(monkeypatch, partial(JOBS[name], folder)) for folder in folders)
    assert few == many


@pytest.mark.parametrize("place", [0, 1], ids=[f"{FEW} runs", f"{MANY} runs"])
def test_corrections_are_held_against_each_range_once_whatever_the_ledger_holds(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """What may come back is a row for each range that was ever run, and a question for each correction."""
    corrections, ranges = 100, 362 * 4 + 1
    counts = rows_fetched(monkeypatch, partial(handle(folders[place], "affected.yml").plan, RANGE))
    assert max(counts) <= ranges < MANY * 9 // 10
    assert len(counts) <= 40 + 2 * corrections
    assert sum(counts) <= ranges + corrections * corrections


def test_what_history_shows_of_a_run_is_without_its_statements(folders: tuple[Path, Path]) -> None:
    """They are most of a ledger, and `show` has them."""
    project = reslice.open(folders[0] / "reslice.yml")
    assert {run.sql for run in project.history(limit=FEW + 10)} == {()}
    assert project.show("r-0001").sql != ()
