"""SQL as a sequence of statements: where each stands, and which of them commit together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from reslice.audit.known import Known, Table
from reslice.audit.text import Text
from reslice.audit.transactions import Transactions
from reslice.audit.values import Names
from reslice.audit.variables import Variables, variables_of
from reslice.reading.marks import Marked
from reslice.reading.parse import Script as Read

_SILENT = re.compile(r"\s+|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""What stands before a statement and is no part of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One statement. `base` is where its nodes count their places from, in the marked text.

    `transaction` is the number of the transaction that it is part of; None when it commits by itself.
    """

    node: exp.Expr
    base: int
    transaction: int | None


@dataclass(slots=True, eq=False)
class Script:
    """Statements that are run in order, as part of one file.

    `start` is where the text that was marked begins in the file. `known` are the tables that the audited files declare.
    `is_guessed` says that nobody named the dialect: it is the first that reads the text.
    """

    text: Text
    dialect: str
    marked: Marked
    statements: tuple[Statement, ...]
    known: Known = field(default_factory=dict)
    start: int = 0
    is_guessed: bool = False
    pieces: tuple[tuple[int, int], ...] = ()
    """Where runs of characters begin in the text that was marked, and in the file, in order; empty where it is one."""
    parts: tuple[tuple[int, int, frozenset[str]], ...] = ()
    """Where functions begin and end in the file, of a program that holds the statements, and who calls each."""
    _variables: Variables | None = field(default=None, init=False, repr=False)

    @property
    def variables(self) -> Variables:
        """The variables of the script, and what its names stand for that come from outside its queries."""
        if self._variables is None:
            self._variables = variables_of([each.node for each in self.statements], self.marked.marks)
        return self._variables

    @property
    def outside(self) -> Names:
        """What the names stand for that come from outside its queries: placeholders, and variables of the script."""
        return self.variables.names

    @property
    def path(self) -> str:
        """The file, as it was named."""
        return self.text.path

    def span(self, node: exp.Expr, statement: Statement) -> tuple[int, int]:
        """Return where a part of a statement stands in the file; where that is not known, the statement's begin."""
        places = [each.meta for each in node.walk() if "start" in each.meta]
        if not places:
            return self.begin(statement)
        first = min(place["start"] for place in places) + statement.base
        last = max(place["end"] for place in places) + statement.base
        return self.origin(first), self.origin(last) + 1

    def begin(self, statement: Statement) -> tuple[int, int]:
        """Return the span of a statement's first word."""
        text = self.marked.text
        start = statement.base
        while (silent := _SILENT.match(text, start)) is not None:
            start = silent.end()
        if start == len(text):
            return self.origin(statement.base), self.origin(statement.base) + 1
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        return self.origin(start), self.origin(end - 1) + 1 if end > start else self.origin(start) + 1

    def origin(self, offset: int) -> int:
        """Return where in the file a place of the marked text stands."""
        origin = self.marked.origin(offset)
        if not self.pieces:
            return self.start + origin
        place = max(0, bisect_right(self.pieces, origin, key=lambda piece: piece[0]) - 1)
        here, there = self.pieces[place]
        return there + origin - here

    def is_apart(self, one: int, other: int) -> bool:
        """Whether two places of the file stand in different functions that no function of the file calls both."""
        holders = [
            min(
                (part for part in self.parts if part[0] <= at < part[1]),
                key=lambda part: part[1] - part[0],
                default=None,
            )
            for at in (one, other)
        ]
        first, second = holders
        return first is not None and second is not None and first != second and not first[2] & second[2]

    def shown(self, node: exp.Expr) -> str:
        """Return a part of a statement in one line, with the placeholders as they were written."""
        return self.marked.shown(" ".join(node.sql(dialect=self.dialect).split()))

    def table(self, name: str) -> Table:
        """Return what is declared of a table; one that is declared nowhere has no column and no key."""
        return self.known.get(name.lower()) or Table(name.lower())


def script_of(
    read: Read, text: Text, *, known: Mapping[str, Table], start: int = 0, in_transaction: bool = False
) -> Script:
    """Return what was read as a script.

    `in_transaction` says that whoever runs it opens one transaction around it, and commits after it.
    """
    statements = tuple(_statements(read, in_transaction))
    return Script(text, read.dialect, read.marked, statements, known, start)


def _statements(read: Read, in_transaction: bool) -> Iterator[Statement]:
    transactions = Transactions(read.dialect, in_transaction)
    for node, base in zip(read.statements, read.offsets, strict=True):
        if not transactions.take(node):
            yield Statement(node, base, transactions.of(node))
