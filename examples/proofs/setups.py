"""The tools, each in its ordinary set-ups, and the one command with which each runs a day again.

A command is typed at the top of the repository. It finds the database in RESLICE_PATH, or in RESLICE_URL and the
variables of libpq, which `reslice prove` sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.proofs.cases import Case

ROOT = Path(__file__).parents[2]
PROOFS = "examples/proofs"
ENGINES = {"duckdb": "DuckDB", "postgresql": "PostgreSQL"}

UNIQUE = "CREATE UNIQUE INDEX daily_orders_key ON daily_orders (order_date, channel)"

SCRATCH = "{scratch}"
"""Stands in a command for the folder that is thrown away."""

Words = tuple[str, ...]


@dataclass(frozen=True)
class Setup:
    """One way of one tool to fill the target.

    `environment` is the one it runs in, .venv-NAME; empty for this project's own. `fill` is the command by which it
    fills the target itself, where it has to; else the target is filled before. `before` is said to the database first.
    """

    tool: str
    way: str
    engine: str
    again: Callable[[Case], Words]
    environment: str = ""
    fill: Words = ()
    before: str = ""

    @property
    def name(self) -> str:
        """What it is called in the results."""
        return f"{self.tool} {self.way} {self.engine}"

    @property
    def ready(self) -> Path | None:
        """The file that is there when its environment is; None where it needs none."""
        return ROOT / f".venv-{self.environment}" / ".ready" if self.environment else None


def setups() -> Iterator[Setup]:
    """Yield every set-up, in the order of the page."""
    for engine in ENGINES:
        for way in ("append", "delete_insert", "upsert", "accumulating_upsert", "insert_missing"):
            before = UNIQUE if "upsert" in way else ""
            yield Setup("SQL", way, engine, _script(way), before=before)
        for way in ("append", "delete_insert"):
            yield Setup("Python", way, engine, _job(way))
    for engine in ENGINES:
        for way in ("append", "merge", "delete_insert_by_key", "delete_insert_by_date", "microbatch"):
            yield Setup(f"dbt-{engine.removesuffix('ql')}", way, engine, _dbt(way, engine), "dbt")
    for way in ("by_time_range", "by_unique_key"):
        yield Setup("SQLMesh", way, "duckdb", _sqlmesh(way), "sqlmesh", fill=_sqlmesh_plan(way))
    for way in ("by_key", "by_merge_key", "by_scope"):
        fill = _dlt(way, "2026-01-01", "2026-01-03")
        yield Setup("dlt", way, "duckdb", _dlt_again(way), "dlt", fill=fill)
    for engine in ENGINES:
        yield Setup("reslice", "replace_slice", engine, _reslice)


def _script(way: str) -> Callable[[Case], Words]:
    def again(case: Case) -> Words:
        return ("--sql", f"{PROOFS}/sql/{way}.sql", "--param", f"start={case.day}", "--param", f"end={case.day}")

    return again


def _job(way: str) -> Callable[[Case], Words]:
    return lambda case: (sys.executable, f"{PROOFS}/python/job.py", way, case.day, case.day)


def _dbt(way: str, engine: str) -> Callable[[Case], Words]:
    def again(case: Case) -> Words:
        project = ("--project-dir", f"{PROOFS}/dbt", "--profiles-dir", f"{PROOFS}/dbt", "--target", engine)
        words = (".venv-dbt/bin/dbt", "run", *project, "--select", "daily_orders")
        if way == "microbatch":  # the end is excluded
            span = ("--event-time-start", case.day, "--event-time-end", case.next_day)
            return (*words, "--vars", f"{{strategy: {way}}}", *span)
        return (*words, "--vars", f"{{strategy: {way}, start: {case.day}, end: {case.day}}}")

    return again


def _sqlmesh_plan(way: str) -> Words:
    sqlmesh = (".venv-sqlmesh/bin/sqlmesh", "--log-file-dir", f"{SCRATCH}/logs", "--paths", f"{PROOFS}/sqlmesh/{way}")
    return (*sqlmesh, "plan", "--auto-apply", "--no-prompts")


def _sqlmesh(way: str) -> Callable[[Case], Words]:
    def again(case: Case) -> Words:
        span = ("--start", case.day, "--end", case.day)
        return (*_sqlmesh_plan(way), "--restate-model", "main.daily_orders", *span)

    return again


def _dlt(way: str, start: str, end: str) -> Words:
    return (".venv-dlt/bin/python", f"{PROOFS}/dlt/daily_orders.py", way, start, end)


def _dlt_again(way: str) -> Callable[[Case], Words]:
    return lambda case: _dlt(way, case.day, case.day)


def _reslice(case: Case) -> Words:
    reslice = (str(Path(sys.executable).with_name("reslice")), "--config", f"{PROOFS}/project/reslice.yml")
    return (*reslice, "run", "daily_orders", case.day, "--rewrite")
