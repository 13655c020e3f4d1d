"""A user's columns may be called what reslice, or the database, calls things of its own."""

from __future__ import annotations

from typing import Any

import pytest

from reslice.errors import Refused
from tests.conformance.databases import Database, Row, only
from tests.conformance.orders import ALLOWED, EVERY_METHOD, Target, found, kinds, ordered

METHODS = EVERY_METHOD
NAMES = ("row_id", "slice", "version", "change", "base_rows", "key_0", "id", "t", "s", "run_id", "main", "table_name")
RANGE = "2024-03-01..2024-03-03"


def target_with(engine: Database, method: str, name: str, role: str) -> Target:
    """Return a target whose column of this name is a measure, or of the grain; thirty facts of three days."""
    engine.execute(f'CREATE TABLE facts (day date, n bigint, "{name}" bigint)')
    engine.execute(
        "INSERT INTO facts SELECT DATE '2024-03-01' + CAST(i % 3 AS integer), i, i % 2"
        " FROM generate_series(0, 29) AS r (i)"
    )
    engine.execute(f'CREATE TABLE totals (day date, n bigint, "{name}" bigint)')
    key, measure = ("n", name) if role == "measure" else (name, "n")
    declaration: dict[str, Any] = {
        "table": "totals",
        "source": "source.sql",
        "grain": ["day", key],
        "slice": {"column": "day", "unit": "day"},
        "measures": {measure: {}},
        "guards": ALLOWED,
    }
    return Target(engine, "totals", declaration, source_of(name, role), method=method)


def source_of(name: str, role: str) -> str:
    select = f'day, n, "{name}"' if role == "measure" else f'day, CAST(sum(n) AS bigint) AS n, "{name}"'
    grouped = "" if role == "measure" else f' GROUP BY day, "{name}"'
    return f"SELECT {select} FROM facts WHERE day BETWEEN :start AND :end{grouped}"


def expected(target: Target, name: str, role: str) -> list[Row]:
    text = source_of(name, role).replace(":start", "'2024-03-01'").replace(":end", "'2024-03-03'")
    return ordered(target.database.rows(text))


@pytest.mark.parametrize("role", ["measure", "grain"])
@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_bear_any_name_of_ours(engine: Database, method: str, name: str, role: str) -> None:
    target = target_with(engine, method, name, role)
    target.run(RANGE)
    before = expected(target, name, role)
    assert target.rows() == before
    engine.execute("UPDATE facts SET n = n + 100 WHERE n % 5 = 0")
    engine.execute("DELETE FROM facts WHERE n % 7 = 0")
    run = target.run(RANGE)
    assert target.rows() == expected(target, name, role) != before
    target.restore(run.id)
    assert target.rows() == before


@only("duckdb", "a column may hide where rows stand; PostgreSQL allows none that is called ctid")
@pytest.mark.parametrize("name", ["rowid", "RowID"])
@pytest.mark.parametrize("role", ["measure", "grain"])
def test_a_column_that_hides_where_rows_stand(engine: Database, method: str, name: str, role: str) -> None:
    """By such a name the wrong rows would be written: those of versions before, or of other groups."""
    target = target_with(engine, method, name, role)
    if method == "replace_slice":
        target.run(RANGE)
        assert target.rows() == expected(target, name, role)
        return
    for command in ("plan", "status", "run"):
        error = target.fails(command, Refused, RANGE)
        assert kinds(error) == ["method_unsupported"] and f"has a column {name}, which hides" in found(error)
        assert error.next == "rename the column, or use  method: replace_slice"
    assert target.rows() == []
