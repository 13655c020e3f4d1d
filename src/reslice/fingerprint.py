"""The fingerprint of rows at their grain: the same number for the same rows, on every engine and in any order.

Per row each grain column and measure, in name order, becomes text: NULL is `N`, anything else `V` and the value with
`\\` written `\\\\` and `|` written `\\p`; the texts are joined by `|`. The row's hash is the first 60 bits of the md5 of that
text, and a slice is its row count and the *sum* of the hashes. A sum, because xor would cancel a row that stands twice.

This module says it in Python, for values as text; the engines say it in SQL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from reslice.contract import Contract
from reslice.values import Fingerprint


def columns_of(contract: Contract) -> tuple[str, ...]:
    """Return the columns a fingerprint of `contract` covers, in its order. Stamps are not among them."""
    return tuple(sorted(contract.columns))


def row_text(values: Sequence[str | None]) -> str:
    """Return the text of one row from the texts of its values, given in the fingerprint's column order."""
    return "|".join("N" if value is None else "V" + _escaped(value) for value in values)


def row_hash(values: Sequence[str | None]) -> int:
    """Return the 60-bit hash of one row."""
    digest = hashlib.md5(row_text(values).encode(), usedforsecurity=False).hexdigest()
    return int(digest[:15], 16)


def fingerprint(rows: Iterable[Sequence[str | None]]) -> Fingerprint:
    """Return the fingerprint of `rows`, each given as texts in the fingerprint's column order."""
    hashes = [row_hash(row) for row in rows]
    return Fingerprint(len(hashes), sum(hashes))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\p")
