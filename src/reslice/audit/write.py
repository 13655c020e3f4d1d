"""A write: how one statement, model or call changes a table, whoever wrote it in whatever language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlglot import exp

from reslice.audit.known import Table
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


@dataclass(slots=True, eq=False)
class Write:
    """One write of one table.

    `table` is the last part of its name in small letters. `query` computes the rows; None where it cannot be read.
    `is_aggregate` says whether the rows are aggregated, None when that is not known. `grain` are the columns, in small
    letters, that the query has one row for each combination of; None when it does not say. `keys` are the columns that
    rows are told apart by. `delete` is what removes rows before they are added (RANGED, KEYED, EMPTIED).
    `is_atomic` says whether the removing and the adding commit together; None when that is not known.
    `span` is where the write stands in the file.
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

    def spot(self, node: exp.Expr | None) -> tuple[int, int]:
        """Return where a part of the write stands in the file; the whole write where the part has no place."""
        if node is None or not any("start" in each.meta for each in node.walk()):
            return self.span
        return self.script.span(node, self.statement)

    def shown(self, node: exp.Expr) -> str:
        """Return a part of the write in one line, as it was written."""
        return self.script.shown(node)
