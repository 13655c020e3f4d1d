"""The words in which one database differs from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from reslice.contract import SliceColumn
from reslice.tables import Column, Target


class Dialect(Protocol):
    """The words in which one database differs from another."""

    def literal(self, text: str, column: Column, zone: str, *, local: bool) -> str:
        """Return a slice value as a literal of the column's type; `local` is wall time of `zone`."""

    def bound(self, text: str, column: Column, zone: str, *, local: bool) -> str:
        """Return where a range begins or ends, as a literal: of a wall time shown twice, the first of the two."""

    def parameter(self, name: str, column: Column) -> str:
        """Return a bound slice value in the column's type."""

    def canonical(self, expression: str, column: Column, scale: int | None) -> str:
        """Return the text of a value that is not NULL, as the fingerprint wants it."""

    def joined(self, texts: Sequence[str]) -> str:
        """Return texts, of which none is NULL, joined by `|`."""

    def row_hash(self, text: str) -> str:
        """Return the first 60 bits of the md5 of `text`, as an integer that can be summed without overflow."""

    def own_hash(self, expressions: Sequence[str]) -> str:
        """Return the database's own hash of a row, cheap, and comparable within one session only."""

    def slice_start(self, expression: str, column: Column, slice_column: SliceColumn) -> str:
        """Return the first moment of the unit a value lies in, in the column's own type."""

    def slice_text(self, expression: str, column: Column) -> str:
        """Return a slice value as the text `ranges.moment_from_column` reads."""

    def slice_key(self, expression: str, column: Column) -> str:
        """Return the first moment of a slice as `slice_text` has it, in any session: it stands in a view."""

    def off_unit(self, expression: str, column: Column, slice_column: SliceColumn) -> str:
        """Return a condition that is true when a value is not the first moment of a unit."""

    def in_calendar(self, expression: str, column: Column) -> str:
        """Return a condition that is true when a value lies on a day of the years 1 to 9999."""

    def plain(self, expression: str, column: Column) -> str:
        """Return the value free of any collation, so that equal means the same bytes."""

    def try_cast(self, expression: str, column: Column, source: Column | None = None) -> str:
        """Return the value in the column's type, or NULL when it cannot be; `source` says what type it has."""

    def lossy(self, expression: str, source: Column, target: Column, scale: int | None) -> str | None:
        """Return a condition that is true when the cast changes the value; None when it never does."""

    def not_finite(self, expression: str) -> str:
        """Return a condition that is true when a float is NaN or infinite."""

    def shown(self, expression: str, column: Column, scale: int | None) -> str:
        """Return a value as it is fetched to be shown: numbers exact, everything else text."""

    def json_object(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return an expression for a JSON object, as text, of key and SQL expression pairs."""

    def near_key(self, expression: str) -> str:
        """Return text folded for case, outer spaces and Unicode form."""

    def different(self, expression: str, column: Column) -> str:
        """Return a value of the column's type that is not the value it has."""

    def equal(self, left: str, right: str, column: Column, *, nulls: bool = True) -> str:
        """Return the NULL-safe condition that two values of a column are the same; a FULL JOIN can be made on it.

        Without `nulls` one of the two is never NULL.
        """

    def matches(self, expression: str, pattern: str) -> str:
        """Return the condition that a whole text is of a pattern."""

    def picked(self, table: str, select: str) -> str:
        """Return the statement that puts rows into a temporary table for one transaction, also when it is there."""

    def every_column(self, target: Target) -> str:
        """Return the select list of every column that is kept, in the table's order."""

    def overriding(self, target: Target, columns: Iterable[str]) -> str:
        """Return what an INSERT says between columns and rows to give these columns their values; mostly nothing."""

    @property
    def row_id(self) -> str:
        """Return the column that tells rows of one table apart, within one transaction."""

    def new_schema(self, catalog: str, schema: str) -> str:
        """Return the name of a schema in the statement that makes it."""

    @property
    def reads_back_by_own_hash(self) -> bool:
        """Whether rows that were just written are compared with the staged ones by `own_hash`."""

    @property
    def clock(self) -> str:
        """Return the expression of the time at which something is written."""

    @property
    def magnitude(self) -> str:
        """Return the type in which numbers of several columns are added up, only to be sorted by."""
