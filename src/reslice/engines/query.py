"""A SQL file of the contract as a database runs it: one SELECT, its placeholders bound as typed parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reslice import parameters
from reslice.contract import Contract, SqlFile
from reslice.engines import sql
from reslice.engines.dialect import Dialect
from reslice.moments import first_of_two
from reslice.ranges import Range
from reslice.tables import Target


def over_range(
    dialect: Dialect, contract: Contract, target: Target, hull: Range, query: SqlFile
) -> tuple[str, dict[str, str]]:
    """Return the SELECT of a file over a range, and the values of the parameters it uses."""
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
    replacements = {name: dialect.parameter(name, column) for name in ("start", "end")}
    if bounds.local:  # a day's last hour may be shown twice; the instant before the next day is surely the last
        replacements["start"] = _instant("start", values, hull)
        replacements["end"] = f"({_instant('end_wall', values, hull)} - INTERVAL '1 microsecond')"
    for name in ("start_instant", "end_instant"):
        replacements[name] = _instant(name, values, hull)
    return _bound(query, replacements, values)


def _instant(name: str, values: dict[str, str], hull: Range) -> str:
    """Return a bound instant; a local time that is shown twice becomes the first of the two."""
    if hull.bounds_are_instants:
        return f"CAST(${name} AS TIMESTAMPTZ)"
    first = first_of_two(values[name], hull.zone)
    if first is None:
        return f"timezone($zone, CAST(${name} AS TIMESTAMP))"
    values[name] = f"{first}+00"
    return f"CAST(${name} AS TIMESTAMPTZ)"


def since(query: SqlFile, instant: str) -> tuple[str, dict[str, str]]:
    """Return the SELECT of an affected file for corrections since an instant, UTC, and its parameters."""
    return _bound(query, {"since": "CAST($since AS TIMESTAMPTZ)"}, {"since": f"{instant}+00"})


class Bound(str):
    """The text of a value whose type the statement names: an engine may read it as that type from the beginning."""


def _bound(query: SqlFile, replacements: Mapping[str, str], values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    used = " ".join(replacements[name] for name in parameters.names(query.text) if name in replacements)
    marks = set(re.findall(r"\$(\w+)", used))
    body = parameters.bind(parameters.strip(query.text), replacements)
    return body, {name: Bound(value) for name, value in values.items() if name in marks}


def create(table: str, select: str) -> str:
    """Return the statement that makes a temporary table of a SELECT."""
    return f"CREATE TEMPORARY TABLE {table} AS {select}"


def subquery(body: str) -> str:
    """Return the SELECT of a file's statement as a query of its own, whatever stands in it."""
    return f"SELECT * FROM (\n{body}\n) AS query"
