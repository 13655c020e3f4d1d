"""The text of a file, and where in it things stand."""

from __future__ import annotations

from bisect import bisect_right

from reslice.audit.finding import Place


class Text:
    """The characters of one file. Offsets count characters from 0; the end of a span is not included."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._starts = [0, *(at + 1 for at, each in enumerate(text) if each == "\n")]

    def line_of(self, offset: int) -> int:
        """Return the number of the line, from 1, in which a character stands."""
        return bisect_right(self._starts, offset)

    def place(self, start: int, end: int) -> Place:
        """Return where a span stands; an empty one is the character at its start."""
        last = max(start, end - 1)
        first_line, last_line = self.line_of(start), self.line_of(last)
        return Place(
            self.path,
            first_line,
            start - self._starts[first_line - 1] + 1,
            last_line,
            last - self._starts[last_line - 1] + 1,
        )

    def lines(self, first: int, last: int) -> tuple[str, ...]:
        """Return lines by number, both ends included, without their line ends."""
        ends = [*self._starts[1:], len(self.text) + 1]
        return tuple(self.text[self._starts[n - 1] : ends[n - 1] - 1].rstrip("\r") for n in range(first, last + 1))
