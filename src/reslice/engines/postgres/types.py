"""The types of PostgreSQL: which kind of value each holds, how many digits, and which hold every value of another."""

from __future__ import annotations

import re

from reslice.tables import Column, Family

INTEGER_BITS = {"smallint": 15, "integer": 31, "bigint": 63}
"""Bits of magnitude, so that 2**bits - 1 is the largest value of each integer type."""

FAMILIES = {
    **dict.fromkeys(INTEGER_BITS, Family.INTEGER),
    "numeric": Family.DECIMAL,
    "real": Family.FLOAT,
    "double precision": Family.FLOAT,
    "boolean": Family.BOOLEAN,
    "text": Family.TEXT,
    "character varying": Family.TEXT,
    "character": Family.TEXT,
    "bpchar": Family.TEXT,
    "date": Family.DATE,
    "time without time zone": Family.TIME,
    "timestamp without time zone": Family.TIMESTAMP,
    "timestamp with time zone": Family.TIMESTAMPTZ,
    "uuid": Family.UUID,
}

PRECISION = re.compile(r"\((-?\d+)(?:,(-?\d+))?\)")


def family_of(base_type: str, kind: str) -> Family:
    """Return what kind of value a type holds: `base_type` is a domain's own type, `kind` is `e` for an enum."""
    if kind == "e":
        return Family.ENUM
    return FAMILIES.get(PRECISION.sub("", base_type), Family.OTHER)


def precision(type_text: str) -> tuple[int, int] | None:
    """Return the digits and the scale of a numeric type; None where it is any number."""
    found = PRECISION.search(type_text)
    return (int(found[1]), int(found[2] or 0)) if found else None


def holds_every(source: Column, target: Column) -> bool:
    """Whether every value of one type is the same value in the other: text without a limit, a wider integer."""
    if source.family is Family.INTEGER and target.family is Family.INTEGER:
        return INTEGER_BITS.get(source.type, 64) <= INTEGER_BITS.get(target.type, 0)
    return source.type in UNLIMITED and target.type in UNLIMITED


UNLIMITED = frozenset({"text", "character varying"})
"""Types of text of any length, with every space that is in it."""
PADDED = ("character(", "bpchar")
"""How the types begin in which spaces at the end are padding, and no part of the value."""
