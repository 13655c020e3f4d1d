"""Named parameters of our statements, `$name`: as the numbers PostgreSQL has for them, from `$1`, or written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from reslice.engines.sql import text_literal
from reslice.parameters import tokens

_NAME = re.compile(r"\$([^\W\d]\w*)")


def own_number(statement: str) -> str | None:
    """Return the first `$1`, of whatever number, that stands in a text of a user: ours have such numbers too."""
    before = ""
    for token in tokens(statement):
        if token.kind == "number" and before == "$":
            return f"${token.text}"
        before = token.text
    return None


def numbered(statement: str, parameters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the statement with its names as numbers, and the values in that order; quoted text stays as it is."""
    if not parameters:
        return statement, []
    text, names = _numbered(statement, tuple(parameters))
    return text, [parameters[name] for name in names]


def written_out(statement: str, values: Mapping[str, str]) -> str:
    """Return the statement with its values in it as text literals, for what takes no parameters: a view."""

    def literal(found: re.Match[str]) -> str:
        return text_literal(values[found[1]]) if found[1] in values else found[0]

    return _replaced(statement, literal)


@lru_cache(maxsize=256)
def _numbered(statement: str, given: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in given:
            return found[0]
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    text = _replaced(statement, number)
    return text, tuple(names)


def _replaced(statement: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Return the statement with each name outside of texts, quoted names and comments replaced."""
    pieces: list[str] = []
    loud: list[str] = []
    for token in tokens(statement):
        if token.kind in ("string", "quoted", "comment"):
            pieces += [_NAME.sub(replacement, "".join(loud)), token.text]
            loud = []
        else:
            loud.append(token.text)
    return "".join([*pieces, _NAME.sub(replacement, "".join(loud))])
