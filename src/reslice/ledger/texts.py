"""How values stand in the ledger: JSON without a float, instants in UTC, and bounds that sort as the ranges do."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from reslice.ranges import Range


def id_of(number: int) -> str:
    """Return what the run of a number is called."""
    return f"r-{number:04d}"


def span(hull: Range) -> tuple[str, str]:
    """Return the first and last value of a range as texts that sort as the values do."""
    bounds = hull.column_values("timestamptz")
    return bounds.start, bounds.end


def utc(expression: str) -> str:
    """Return the SQL of an instant as text, in UTC."""
    return f"CAST(timezone('UTC', {expression}) AS VARCHAR)"


def instant(text: str | None) -> datetime | None:
    """Read an instant back that `utc` gave."""
    return None if text is None else datetime.fromisoformat(text + "+00:00")


def dump(value: Any) -> str:
    """Return a value as JSON text."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Decimals become text, so that no reader turns money into a float."""
    if isinstance(value, Decimal):
        return format(value, "f")
    raise AssertionError(f"{type(value).__name__} has no place in the ledger")


def load(text: str | None) -> Any:
    """Read JSON text back; NULL is None."""
    return None if text is None else json.loads(text)
