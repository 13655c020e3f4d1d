"""A write: how one statement, model or call changes a table, whoever wrote it in whatever language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlglot import exp

from reslice.audit.known import Table, name_of
from reslice.audit.matching import Match
from reslice.reading.outputs import JobQuery

if TYPE_CHECKING:
    from reslice.audit.script import Script, Statement


class Way(StrEnum):
    """What becomes of the rows that are there, and of those that are computed."""

    APPEND = "append"  # rows are added, and none is removed
    FILL = "fill"  # rows whose key is not there are added; the others are left out
    UPSERT = "upsert"  # rows whose key is there are updated, the others added
    KEYED = "keyed"  # rows are deleted by the keys that came back, then all are added
    RANGED = "ranged"  # rows are deleted by a condition on the table itself, then rows are added
    EMPTIED = "emptied"  # all rows are removed (DELETE without WHERE, TRUNCATE), then rows are added
    REPLACE = "replace"  # the table is made anew from the query
    OVERWRITE = "overwrite"  # INSERT OVERWRITE, replace_where, partitions: the statement says what it replaces
    SYNC = "sync"  # a MERGE that also deletes rows that the source does not have
    UPDATE = "update"  # rows that are there are changed, and none is added


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)


@dataclass(slots=True, eq=False)
class Write:
    """One write of one table.

    `table` is the last part of its name in small letters. `query` computes the rows; None where it cannot be read.
    `is_aggregate` says whether the rows are aggregated, None when that is not known. `grain` are the columns of the
    table, in small letters, that the query has one row for each combination of; None when it does not say. `keys` are
    the columns of the table that rows are told apart by; `matches` say what each is compared with, where that is said.
    `delete` is what removes rows before they are added (RANGED, KEYED, EMPTIED), or those that the source does not have
    (SYNC): a DELETE, or another statement that removes rows, or the MERGE itself.
    `is_atomic` says whether the removing and the adding commit together; None when that is not known.
    `run_column` is the column that holds the run's own id, so that the rows of each run are a version of their own.
    `span` is where the write stands in the file. `position` is the place among the script's statements of the one that
    it is, or is a part of.
    """

    script: Script
    statement: Statement
    table: str
    way: Way
    query: JobQuery | None
    is_aggregate: bool | None
    span: tuple[int, int]
    grain: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    delete: Statement | None = None
    is_atomic: bool | None = True
    matches: tuple[Match, ...] = ()
    run_column: str = ""
    is_watermark: bool = False
    """Whether rows are left out by the highest value that the table holds, and by no key."""
    update: exp.Expr | None = None
    """The UPDATE before it that changes the rows which are there, where an INSERT adds the others."""
    log: str = ""
    """The other table that tells whether the rows were added already."""
    resets: frozenset[str] = frozenset()
    """The columns that the statements before it set to a fixed value."""
    position: int = 0
    config: Mapping[str, object] = field(default_factory=dict)
    """What a tool is told about the write, such as dbt's config; empty for plain SQL."""

    @property
    def dialect(self) -> str:
        """The dialect of the database."""
        return self.script.dialect

    @property
    def node(self) -> exp.Expr:
        """The statement."""
        return self.statement.node

    @property
    def declared(self) -> Table:
        """What is declared of the table; nothing where it is declared nowhere."""
        return self.script.table(self.table)

    @property
    def called(self) -> str:
        """The table's name as it was written, without what stands before its last dot."""
        into = self.node.args.get("into")
        target = into.this if isinstance(into, exp.Into) else self.node.args.get("this")
        target = target.this if isinstance(target, exp.Schema) else target
        written = target.name if isinstance(target, exp.Table) and name_of(target) == self.table else self.table
        return self.script.marked.shown(written)

    @property
    def is_version(self) -> bool:
        """Whether the rows of each run are told apart from those of the others by the run's own id."""
        return bool(self.run_column)

    @property
    def refused_by(self) -> tuple[str, ...] | None:
        """The key that the database enforces and that lets no group stand twice; None where there is none."""
        keys = (key for key in self.declared.unique if self.grain is not None and set(key) <= set(self.grain))
        return next(keys, None)

    def spot(self, node: exp.Expr | None) -> tuple[int, int]:
        """Return where a part of the write stands in the file; the whole write where the part has no place."""
        if not isinstance(node, exp.Expr) or not any("start" in each.meta for each in node.walk()):
            return self.span
        return self.script.span(node, self.statement)

    def shown(self, node: exp.Expr) -> str:
        """Return a part of the write in one line, as it was written."""
        return self.script.shown(node)
