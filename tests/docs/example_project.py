"""What the tests of the examples share: the real command line, the DuckDB file, and which slices a run touched."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

RESLICE = Path(sys.executable).with_name("reslice")


def reslice(project: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Run one command that must end with this exit code, and return its JSON."""
    ended = subprocess.run(
        [RESLICE, "-C", project, *words, "--json"], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return what a query finds, with instants as those of UTC."""
    with duckdb.connect(str(database), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(sql).fetchall()


def places(database: Path, table: str, column: str) -> dict[Any, set[int]]:
    """Return for each slice where DuckDB keeps its rows. A row that is deleted and inserted again is in a new place."""
    found: dict[Any, set[int]] = {}
    for value, row in query(database, f"SELECT {column}, rowid FROM {table}"):
        found.setdefault(value, set()).add(row)
    return found


def moved(before: dict[Any, set[int]], after: dict[Any, set[int]]) -> set[Any]:
    """Return the slices whose rows are not where they were."""
    return {value for value in before.keys() | after.keys() if before.get(value) != after.get(value)}


def not_equal(project: Path, *words: str) -> set[str]:
    """Return the slices that status finds to be other than the source; there have to be some."""
    found = reslice(project, "status", *words, code=1)
    return {each["slice"] for each in found["slices"] if each["state"] != "equal"}


def as_text(file: Path) -> list[tuple[str, ...]]:
    """Return the rows of a CSV below its header."""
    with file.open(encoding="utf-8", newline="") as text:
        return [tuple(row) for row in csv.reader(text)][1:]


def absent(reason: str) -> None:
    """Skip a test whose environment cannot be made on this machine; in continuous integration that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
