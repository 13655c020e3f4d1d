"""SQL as a sequence of statements: where each stands, and which of them commit together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from reslice.audit.known import Known, Table
from reslice.audit.text import Text
from reslice.reading.marks import Marked
from reslice.reading.parse import Script as Read

ONE_STATEMENT = frozenset(
    {"spark", "spark2", "databricks", "hive", "trino", "presto", "athena", "clickhouse", "drill", "doris"}
)
"""Dialects of databases that know no transaction over several statements (their own manuals)."""
OPEN = frozenset({"oracle", "teradata"})
"""Dialects whose sessions are always in a transaction: what is written waits for a COMMIT."""
DDL_COMMITS = frozenset({"mysql", "singlestore", "doris", "oracle", "snowflake"})
"""Dialects in which a CREATE, ALTER or DROP ends the transaction that is open (their own manuals)."""
TRUNCATE_COMMITS = frozenset({"mysql", "singlestore", "doris", "oracle", "redshift"})
"""Dialects in which a TRUNCATE ends it; Snowflake counts it among the changes of rows."""
_TEMPORARY_STAYS_OPEN = frozenset({"mysql", "singlestore", "doris"})
"""Those of DDL_COMMITS in which a table of the session alone ends nothing."""


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
        while start < len(text) and (text[start].isspace() or text.startswith("--", start)):
            start = text.find("\n", start) if text.startswith("--", start) else start + 1
            if start < 0:
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
    number = 0
    is_always_open = read.dialect in OPEN or in_transaction
    is_open = is_always_open
    for node, base in zip(read.statements, read.offsets, strict=True):
        if _begins(node):
            is_open, number = read.dialect not in ONE_STATEMENT, number + 1
        elif isinstance(node, exp.Commit | exp.Rollback):
            is_open, number = is_always_open, number + 1
        elif _autocommit(node) is not None:
            is_always_open = is_open = not _autocommit(node)
        else:
            if _commits(node, read.dialect):
                is_open, number = is_always_open, number + 1
                yield Statement(node, base, None)
                continue
            yield Statement(node, base, number if is_open else None)


def _begins(node: exp.Expr) -> bool:
    if isinstance(node, exp.Transaction):
        return True
    # START TRANSACTION is read as a column with an alias where the dialect does not know it
    return isinstance(node, exp.Alias) and node.sql().upper() == "START AS TRANSACTION"


def _autocommit(node: exp.Expr) -> bool | None:
    """Return what SET says of committing after each statement; None where it says nothing of it."""
    if not isinstance(node, exp.Set | exp.Command):
        return None
    words = node.sql().upper().replace("=", " ").split()
    if words[:2] == ["SET", "IMPLICIT_TRANSACTIONS"]:
        return words[2:3] == ["OFF"]
    if words[:2] == ["SET", "AUTOCOMMIT"] or words[:3] == ["SET", "SESSION", "AUTOCOMMIT"]:
        return words[-1] in ("1", "ON", "TRUE")
    return None


def _commits(node: exp.Expr, dialect: str) -> bool:
    """Whether a statement ends the transaction that is open, and commits by itself."""
    if isinstance(node, exp.TruncateTable):
        return dialect in TRUNCATE_COMMITS
    if dialect not in DDL_COMMITS:
        return False
    if isinstance(node, exp.Create | exp.Drop):
        is_temporary = bool(node.args.get("temporary")) or _is_temporary(node)
        return not (is_temporary and dialect in _TEMPORARY_STAYS_OPEN)
    words = node.sql().upper().split(None, 2)[:2] if isinstance(node, exp.Command) else []
    return isinstance(node, exp.Alter) or words in (["RENAME", "TABLE"], ["LOCK", "TABLES"])


def _is_temporary(node: exp.Expr) -> bool:
    properties = node.args.get("properties")
    return properties is not None and properties.find(exp.TemporaryProperty) is not None
