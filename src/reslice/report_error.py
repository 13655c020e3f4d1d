"""What reslice says when it says no: asked, found, unchanged, next, in this order, aligned, and nothing else.

    refused[key_repeated]: daily_orders for 2026-01-01..2026-01-02, both days included, 2 slices
      asked:      one staged row per order_date, channel
      found:      1 key is repeated, in 2 rows
                  (2026-01-02, store) 2 times
      unchanged:  daily_orders is as run r-0041 left it; nothing was written
      next:       reslice plan daily_orders 2026-01-02

Several failures each have their own asked and found; there is one unchanged and one next. Under a stop
stands one line more: the command that consents, for a person who has looked.
"""

from __future__ import annotations

from collections.abc import Iterable

from reslice.errors import Failure, ResliceError, Stopped
from reslice.layout import escaped

_LABEL_WIDTH = 12


def error_text(error: ResliceError, *, next: str | None = None, consent: str = "") -> str:
    """Return the four parts of an error. `next` replaces the error's own way on, which is otherwise used."""
    way_on = error.next if next is None else next
    lines = [f"{error.word}[{_kinds(error.failures)}]: {escaped(error.about)}"]
    for failure in error.failures:
        lines += part("asked", [failure.asked]) + part("found", failure.found)
    lines += part("unchanged", [error.unchanged]) + part("next", way_on.split("\n"))
    if isinstance(error, Stopped):
        lines += part("if right", [consent or error.consent])
    return "\n".join(lines)


def part(label: str, texts: Iterable[str]) -> list[str]:
    """Return the lines of one part: the label before the first text, the others below it; none for no text."""
    found = [escaped(text) for text in texts if text]
    labels = [f"{label}:", *[""] * len(found)]
    return [f"  {name:<{_LABEL_WIDTH}}{text}" for name, text in zip(labels, found, strict=False)]


def _kinds(failures: Iterable[Failure]) -> str:
    """Return every kind once, in order of appearance."""
    return ", ".join(dict.fromkeys(failure.kind for failure in failures))
