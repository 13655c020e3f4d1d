"""What a test asks of a database, and how a test of one engine is marked.

SQL in tests is what every engine reads alike; where they spell a thing differently, the database has a word for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest

import reslice

Row = tuple[Any, ...]

ENGINES = ("duckdb", "postgresql18", "postgresql16")
"""What the suite runs on; a test's name ends with one of them."""


def only(engine: str, reason: str) -> pytest.MarkDecorator:
    """Mark a test of one engine, `duckdb` or `postgresql`: the reason is what the others do not have."""
    assert reason, "a test that leaves out an engine says why"
    return pytest.mark.only(engine, reason)


class Session(Protocol):
    """A connection of its own, as another user of the database has."""

    def execute(self, sql: str, /, parameters: Sequence[Any] = ...) -> Any:
        """Run one statement."""


class Database(Protocol):
    """What a test asks of a database."""

    name: ClassVar[str]
    """The name of the engine, as reslice says it."""
    schema: ClassVar[str]
    """The schema of a table that is named without one."""
    place: ClassVar[str]
    """SQL that says where a row is; of a row that is written again, it says something else."""
    untyped_null: ClassVar[tuple[str, str]]
    """What a NULL without a type is taken for, and a type of column that it fits; empty where it stays without one."""
    updates_in_place: ClassVar[bool]
    """Whether an updated row stays where it is, by `place`."""
    longest_name: ClassVar[int]
    """How many letters of a name a test may take that is about long ones."""
    snapshot: ClassVar[str]
    """The statement that begins a transaction which sees the database as it is when it first looks."""
    folder: Path
    url: str

    @property
    def catalog(self) -> str:
        """The name of the database, as it stands before the schema of a table."""

    @property
    def connection(self) -> Any:
        """The suite's own connection, opened when it is not open."""

    def full_name(self, table: str) -> str:
        """Return the name of a table as a ledger has it: database, schema and table."""

    def quoted(self, table: str) -> str:
        """Return the full name of a table as the statements of reslice write it."""

    def type_name(self, type_text: str) -> str:
        """Return what a message calls a type."""

    def generated(self, expression: str) -> str:
        """Return how a column is declared that the database fills and stores, as far as it can."""

    def before_christ(self, day: str) -> str:
        """Return how a day before the year 1 is written."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement and commit it."""

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows in one statement."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query; dates and times as ISO text."""

    def versions(self, table: str) -> list[Row]:
        """Return every row of a table after its physical place, which a rewritten row does not keep."""

    def table_names(self, schema: str = "") -> list[str]:
        """Return the names of the tables of a schema, in order; of the usual one, when none is named."""

    def has_view(self, name: str) -> bool:
        """Whether there is a view of a name, in whatever schema."""

    def every_column(self, table: str, *, but: str) -> str:
        """Return what selects every column of a table but one."""

    def session(self) -> AbstractContextManager[Session]:
        """Give another session; what it has not committed at the end is rolled back."""

    def set_session_zone(self, zone: str) -> None:
        """Let every session that begins from now on have this time zone."""

    def project(self, contract: Path) -> reslice.Project:
        """Return the project of a contract file."""

    def follow_statements(self, monkeypatch: pytest.MonkeyPatch, follow: Callable[[str], str | None]) -> None:
        """Show `follow` each statement before reslice executes it; what it returns is executed instead."""

    def let_go(self) -> None:
        """Close the suite's connection; it is opened again when it is needed."""

    def close(self) -> None:
        """Let go of the database for good."""
