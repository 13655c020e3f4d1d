"""An audit's work grows with the files and with what is in them, and no faster. The page of speed has the figures.

Work is counted in calls of functions, not in seconds: the same number every time, whatever else the machine does.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from bench import audit_files
from reslice.audit import workers
from reslice.audit.runner import audit

APPEND = "insert into daily_orders_{n}\nselect order_date, count(*) from orders group by order_date;\n"


def calls(folder: Path) -> int:
    """Return how many functions an audit calls, those of libraries included."""
    seen: Counter[str] = Counter()

    def count(_frame: FrameType, event: str, _about: object) -> None:
        seen[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        audit([folder])
    finally:
        sys.setprofile(before)
    return seen["call"] + seen["c_call"]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the audit work in this process alone."""
    monkeypatch.setattr(workers, "SEVERAL", 1_000_000)


@pytest.mark.parametrize("make", [audit_files.make_sql, audit_files.make_dbt], ids=["sql", "dbt"])
def test_twice_the_files_take_twice_the_work(tmp_path: Path, alone: None, make: Callable[[Path, int], int]) -> None:
    make(tmp_path / "half", 12)
    make(tmp_path / "whole", 24)
    audit([tmp_path / "half"])  # what is loaded once
    assert calls(tmp_path / "whole") < 2.2 * calls(tmp_path / "half")


def test_twice_the_statements_take_twice_the_work(tmp_path: Path, alone: None) -> None:
    """One file of many statements: nothing looks at all others for each."""
    for name, count in (("half", 100), ("whole", 200)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.sql").write_text("".join(APPEND.format(n=n) for n in range(count)))
    audit([tmp_path / "half"])
    assert calls(tmp_path / "whole") < 2.2 * calls(tmp_path / "half")


def test_many_files_are_answered_like_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With workers and without, the answer is the same, in the same order."""
    audit_files.make_sql(tmp_path, 2 * workers.SEVERAL)
    together = audit([tmp_path])
    monkeypatch.setattr(workers, "SEVERAL", 1_000_000)
    assert audit([tmp_path]) == together and together.findings


def test_a_worker_that_dies_costs_the_file_it_died_over() -> None:
    """Each item is a signal that the worker sends to itself; 0 is none."""
    items = [signal.SIGKILL if number == 7 else 0 for number in range(workers.SEVERAL)]
    with workers.Workers(2) as several:
        found = list(several.map(signal.raise_signal, items))
    assert found == [workers.Died(-signal.SIGKILL) if item else None for item in items]


def test_a_large_project_is_answered_in_parts_like_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit_files.make_dbt(tmp_path, 2 * workers.SEVERAL)
    monkeypatch.setattr("reslice.audit.runner.processors", lambda: 3)
    in_parts = audit([tmp_path])
    monkeypatch.setattr("reslice.audit.runner.processors", lambda: 1)
    assert audit([tmp_path]) == in_parts and len(in_parts.findings) >= workers.SEVERAL
