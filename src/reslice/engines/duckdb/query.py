"""A SQL file of the contract as DuckDB runs it: one SELECT, its placeholders bound as typed parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

from reslice import parameters
from reslice.contract import Contract, SqlFile
from reslice.engines import sql
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import misused
from reslice.errors import Failure
from reslice.ranges import Range
from reslice.values import Target


def over_range(contract: Contract, target: Target, hull: Range, query: SqlFile) -> tuple[str, dict[str, str]]:
    """Return the SELECT of a file over a range, and the values of the parameters it uses."""
    words = DuckDBDialect()
    column = sql.slice_column(contract, target)
    bounds = hull.column_values(column.family.value)
    start_instant, end_instant = hull.wall_bounds()
    values = {
        "start": bounds.start,
        "end": bounds.end,
        "start_instant": start_instant,
        "end_instant": end_instant,
        "end_wall": bounds.next,
        "zone": hull.zone,
    }
    instant = "CAST({} AS TIMESTAMPTZ)" if hull.bounds_are_instants else "timezone($zone, CAST({} AS TIMESTAMP))"
    end = words.parameter("end", column, local=bounds.local)
    if bounds.local:  # a day's last hour may be shown twice; the instant before the next day is surely the last
        end = "(timezone($zone, CAST($end_wall AS TIMESTAMP)) - INTERVAL 1 MICROSECOND)"
    replacements = {
        "start": words.parameter("start", column, local=bounds.local),
        "end": end,
        "start_instant": instant.format("$start_instant"),
        "end_instant": instant.format("$end_instant"),
    }
    return _bound(query, replacements, values)


def since(query: SqlFile, instant: str) -> tuple[str, dict[str, str]]:
    """Return the SELECT of an affected file for corrections since an instant, UTC, and its parameters."""
    return _bound(query, {"since": "CAST($since AS TIMESTAMPTZ)"}, {"since": f"{instant}+00"})


def _bound(query: SqlFile, replacements: Mapping[str, str], values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    used = " ".join(replacements[name] for name in parameters.names(query.text) if name in replacements)
    marks = set(re.findall(r"\$(\w+)", used))
    body = parameters.bind(parameters.strip(query.text), replacements)
    return body, {name: value for name, value in values.items() if name in marks}


def check_select(query: SqlFile, body: str) -> None:
    """Let DuckDB's own parser say that a file is one SELECT; Misused[source_invalid] when it is not."""
    found = duckdb.extract_statements(body)
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        words = f"{query.name} holds {len(found)} statements" if len(found) != 1 else f"{query.name} is no SELECT"
        raise misused(query.name, Failure("source_invalid", "one SELECT per file", (words,), f"correct {query.name}"))


def create(table: str, select: str) -> str:
    """Return the statement that makes a temporary table of a SELECT."""
    return f"CREATE TEMPORARY TABLE {table} AS {select}"


def subquery(body: str) -> str:
    """Return the SELECT of a file's statement as a query of its own, whatever stands in it."""
    return f"SELECT * FROM (\n{body}\n) AS query"
