"""Plain text that is safe and straight: characters that cannot be seen are escaped, columns line up.

Nothing here knows what a run is. Every value that comes from a database or a user is `shown` before it is printed, so
that no key can move the cursor, hide a character or begin a line of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

_PLAIN = {"→": "->", "…": "...", "\N{MULTIPLICATION SIGN}": "x"}
"""What stands in for our own signs where the terminal's encoding lacks them."""


_COMMAND = re.compile(
    r"\breslice (?=(?:plan|run|verify|status|history|show|restore|versions|init|doctor|prove|studio)\b)"
)


def placed(text: str, place: str) -> str:
    """Return the text with `place`, the options that lead to the project (`-C shop`), in each command it holds."""
    return _COMMAND.sub(lambda found: f"{found[0]}{place} ", text) if place else text


def escaped(text: str) -> str:
    """Return the text with every character that is not printable written as an escape, also a line break."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def shown(value: object) -> str:
    """Return a value of a row as text on one line; NULL is a word, and text that would mislead stands in quotes."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    text = escaped(str(value))
    if isinstance(value, str) and (value != value.strip() or value in ("", "NULL")):
        return f"'{text}'"
    return text


def width(text: str) -> int:
    """Return how many terminal columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_width(each) for each in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, columns: int) -> str:
    """Return the text filled with spaces to this many columns."""
    return text + " " * (columns - width(text))


def table(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> list[str]:
    """Return the rows as lines with their cells below each other; a column that is empty everywhere is left out."""
    columns = [cells for cells in zip(*rows, strict=True) if any(cells)]
    widths = [max(width(cell) for cell in cells) for cells in columns]
    return [
        gap.join(padded(cell, columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()
        for cells in zip(*columns, strict=True)
    ]


def fitted(text: str, encoding: str | None) -> str:
    """Return the text as the encoding of a stream can carry it: our signs in ASCII, anything else escaped."""
    name = encoding or "utf-8"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        for sign, plain in _PLAIN.items():
            text = text.replace(sign, plain)
        return text.encode(name, "backslashreplace").decode(name)
    return text


def counted(number: int, word: str) -> str:
    """Return a number with its noun: `1 slice`, `2 slices`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
