"""Names of tables as a contract writes them, and the name that was meant where there is none of that one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

NAME_PART = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')


def name_parts(name: str) -> list[str]:
    """Split a table name at the dots outside double quotes; a quoted part loses its quotes."""
    parts = [quoted.replace('""', '"') if quoted or not plain else plain for quoted, plain in NAME_PART.findall(name)]
    return parts or [name]


def near_table(table: str, names: Sequence[str]) -> str | None:
    """Return the table that was meant: of that name in another schema, or of a name that is alike."""
    own = name_parts(table)[-1]
    by_own_name = {name.rpartition(".")[2]: name for name in reversed(names)}
    if own in by_own_name:
        return by_own_name[own]
    whole = difflib.get_close_matches(table, names, n=1)
    near = [by_own_name[name] for name in difflib.get_close_matches(own, by_own_name, n=1)]
    return next(iter((*whole, *near)), None)
