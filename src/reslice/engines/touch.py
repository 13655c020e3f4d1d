"""The touch: rows that a publish takes away get other values first, so that DuckDB sees who else changes them.

Two transactions that each update a row are a conflict; one that deletes what another updates is none.
"""

from __future__ import annotations

from enum import StrEnum

from reslice.contract import Contract
from reslice.engines.dialect import Dialect
from reslice.engines.sql import quote, target_name
from reslice.tables import Fill, Target


class Touch(StrEnum):
    """What a touch puts into the columns of the rows that a publish is about to delete.

    The first that the constraints of the target let through is taken: a CHECK is never broken by NULL.
    """

    OTHER = "another value everywhere"
    NULL = "NULL where there may be one, another value elsewhere"
    NULL_ONLY = "NULL where there may be one, nothing elsewhere"
    NOTHING = "nothing"


def touch_statement(
    dialect: Dialect, contract: Contract, target: Target, condition: str, touch: Touch, *, stays: bool
) -> str:
    """Return the UPDATE after which a concurrent UPDATE of the slices' rows is a conflict; empty when there is none.

    Conflicts are seen column by column, and only where the value is another one. Left out are the slice column, by
    which the rows are then deleted, columns of keys (an update of those is a delete, and two deletes do conflict), and
    where rows stay, those that nothing puts right again.
    """
    touched = touched_values(dialect, contract, target, touch, stays=stays)
    values = ", ".join(f"{quote(name)} = {value}" for name, value in touched.items())
    return f"UPDATE {target_name(target)} SET {values} WHERE {condition}" if values else ""


def touched_values(
    dialect: Dialect, contract: Contract, target: Target, touch: Touch, *, stays: bool
) -> dict[str, str]:
    """Return what a touch puts into each column that it touches."""
    values: dict[str, str] = {}
    for column in target.columns if touch is not Touch.NOTHING else ():
        if column.fill is Fill.GENERATED or column.name == contract.slice.column or column.name in target.keyed:
            continue
        if stays and column.fill is Fill.IDENTITY:
            continue
        name, is_required = quote(column.name), column.name in target.not_null
        other = dialect.different(name, column)
        if touch is Touch.OTHER or (touch is Touch.NULL and is_required):
            values[column.name] = other
        elif not is_required:
            values[column.name] = f"CASE WHEN {name} IS NULL THEN {other} END"
    return values
