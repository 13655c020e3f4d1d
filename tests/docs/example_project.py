"""What the tests of the examples share: the real command line, the DuckDB file, and which slices a run touched."""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import pytest

from reslice import cli


def reslice(project: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Run one command that must end with this exit code, and return its JSON."""
    ended, out, err = called(project, *words, "--json")
    assert ended == code, out + err
    answer: dict[str, Any] = json.loads(out)
    return answer


def called(project: Path, *words: str) -> tuple[int, str, str]:
    """Run one command in this process; return the exit code and what it says on each stream."""
    said = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in said)
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["-C", str(project), *words])
    return code, said[0].getvalue().decode(), said[1].getvalue().decode()


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
