"""Named parameters of our statements, `$name`, become the numbers that PostgreSQL has for them, from `$1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from reslice.parameters import tokens

_NAME = re.compile(r"\$([^\W\d]\w*)")


def numbered(statement: str, parameters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the statement with its names as numbers, and the values in that order; quoted text stays as it is."""
    if not parameters:
        return statement, []
    text, names = _numbered(statement, tuple(parameters))
    return text, [parameters[name] for name in names]


@lru_cache(maxsize=256)
def _numbered(statement: str, given: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in given:
            return found[0]
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    pieces: list[str] = []
    loud: list[str] = []
    for token in tokens(statement):
        if token.kind in ("string", "quoted", "comment"):
            pieces += [_NAME.sub(number, "".join(loud)), token.text]
            loud = []
        else:
            loud.append(token.text)
    return "".join([*pieces, _NAME.sub(number, "".join(loud))]), tuple(names)
