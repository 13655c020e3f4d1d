"""Which statements commit together, by what each database does with BEGIN, COMMIT and what commits by itself."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

ONE_STATEMENT = frozenset(
    {"spark", "spark2", "databricks", "hive", "trino", "presto", "athena", "clickhouse", "drill", "doris", "starrocks"}
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
_BEGIN_COMMITS = frozenset({"mysql", "singlestore"})
"""Dialects in which a second BEGIN commits what is open; elsewhere it changes nothing."""
_NESTED = frozenset({"tsql", "fabric"})
"""Dialects in which as many COMMITs are needed as there were BEGINs."""
_ON = frozenset({"1", "ON", "TRUE"})


@dataclass(slots=True)
class Transactions:
    """Where in a sequence of statements transactions begin and end; `number` is that of the one that is open."""

    dialect: str
    in_transaction: bool = False
    number: int = 0
    depth: int = 0
    is_open: bool = False
    is_always_open: bool = False

    def __post_init__(self) -> None:
        """Take in what is open before the first statement."""
        self.is_always_open = self.is_open = self.in_transaction or self.dialect in OPEN

    def take(self, node: exp.Expr) -> bool:
        """Take in a statement; return whether it is one that only begins or ends transactions."""
        if is_begin(node):
            self._begin()
        elif isinstance(node, exp.Commit):
            self._commit(has_next=bool(node.args.get("chain")))
        elif is_rollback(node):
            self._end()
        elif autocommit(node) is not None:
            self._set_autocommit(is_on=bool(autocommit(node)))
        else:
            return False
        return True

    def of(self, node: exp.Expr) -> int | None:
        """Return the transaction that a statement is part of; None when it commits by itself."""
        if commits(node, self.dialect):
            self._end()
            return None
        return self.number if self.is_open else None

    def _begin(self) -> None:
        if self.dialect in ONE_STATEMENT:
            return
        if self.is_open and not (self.dialect in _BEGIN_COMMITS or self.is_always_open):
            self.depth += 1
            return
        if not (self.is_open and self.in_transaction):
            self.number += 1
        self.is_open, self.depth = True, 1

    def _commit(self, *, has_next: bool) -> None:
        if self.dialect in _NESTED and self.depth > 1:
            self.depth -= 1
            return
        self._end()
        self.is_open = self.is_open or has_next

    def _end(self) -> None:
        self.is_open, self.depth, self.number = self.is_always_open, 0, self.number + 1

    def _set_autocommit(self, *, is_on: bool) -> None:
        if is_on and self.is_open:
            self.number += 1
        self.is_always_open = self.is_open = not is_on


def is_begin(node: exp.Expr) -> bool:
    """Whether a statement begins a transaction."""
    if isinstance(node, exp.Transaction):
        return True
    # START TRANSACTION is read as a column with an alias where the dialect does not know it
    return isinstance(node, exp.Alias) and node.sql().upper() == "START AS TRANSACTION"


def is_rollback(node: exp.Expr) -> bool:
    """Whether a statement takes back the whole transaction, and not only what came after a savepoint."""
    if isinstance(node, exp.Column):
        return node.sql().upper() == "ABORT"
    return isinstance(node, exp.Rollback) and node.args.get("savepoint") is None


def autocommit(node: exp.Expr) -> bool | None:
    """Return what SET says of committing after each statement; None where it says nothing of it."""
    if not isinstance(node, exp.Set | exp.Command | exp.Alter):
        return None
    text = node.sql().upper().replace("=", " ").replace("@@", " ").replace(".", " ")
    words = [word for word in text.split() if word not in ("SESSION", "LOCAL", "GLOBAL", "ALTER")]
    if words[:2] == ["SET", "IMPLICIT_TRANSACTIONS"]:
        return words[2:3] == ["OFF"]
    if words[:2] == ["SET", "AUTOCOMMIT"]:
        return words[-1] in _ON
    return None


def commits(node: exp.Expr, dialect: str) -> bool:
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
