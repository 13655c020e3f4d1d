"""Adding up and comparing totals exactly, also where a table holds NaN or infinity, of which there is no difference."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from functools import reduce

from reslice.values import Number

EXACT = Context(prec=400, traps=[])
"""Arithmetic in which no digit is lost, since no database has as many; infinity less infinity is NaN, and no error."""


def added_up(values: Iterable[Number]) -> Number:
    """Return the sum; of whole numbers a whole number."""
    numbers = list(values)
    if all(isinstance(value, int) for value in numbers):
        return sum(numbers)
    return reduce(EXACT.add, map(Decimal, numbers), Decimal())


def is_finite(*values: Number | None) -> bool:
    """Whether all of these are numbers that can be compared: neither NaN nor infinite."""
    return all(Decimal(value or 0).is_finite() for value in values)
