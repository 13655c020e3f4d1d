r"""The fingerprint of rows at their grain: the same number for the same rows, on every engine and in any order.

Per row each grain column and measure, in name order, becomes text: NULL is `N`, anything else `V` and the value, with
`\` written `\\` and `|` written `\p`; the texts are joined by `|`. The row's hash is the first 60 bits of the md5 of
that text, and a slice is its row count and the *sum* of the hashes: xor would cancel a row that stands twice. Engines
compute it in SQL (`engines.sql.hash_of`), each with its own words for the text of a value.
"""

from __future__ import annotations

from reslice.contract import Contract


def columns_of(contract: Contract) -> tuple[str, ...]:
    """Return the columns a fingerprint of `contract` covers, in its order. Stamps are not among them."""
    return tuple(sorted(contract.columns))
