"""What shared steps need of a connection, and how they read slices and numbers out of rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

from reslice.engines import sql
from reslice.engines.sql import Dialect, quote
from reslice.ranges import Moment, Scope, moment_from_column
from reslice.values import Column, Number, Staged


class Session(Protocol):
    """A connection that runs one statement and gives its rows."""

    dialect: Dialect

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run `statement` and return its rows."""


def moment_of(scope: Scope, column: Column, text: str) -> Moment:
    """Return the slice that a fetched slice value names; ValueError when it is no slice."""
    return moment_from_column(text, column.family.value, scope.unit, scope.zone)


def label_of(scope: Scope, column: Column, text: str) -> str:
    """Return how a fetched slice value is written in a range."""
    return scope.label(moment_of(scope, column, text))


def exact_number(value: Any) -> Number | None:
    """Return an exact number: int where it is whole by type, Decimal otherwise."""
    if value is None or isinstance(value, int | Decimal):
        return value
    return Decimal(str(value))


def sum_of(dialect: Dialect, staged: Staged, measure: str | None) -> str:
    """Return the SQL sum of a measure, exact at its scale; the number of rows when it is None."""
    if measure is None:
        return "count(*)"
    column = staged.target.column(measure)
    return f"sum({dialect.shown(quote(measure), column, sql.scales(staged.contract)[measure])})"
