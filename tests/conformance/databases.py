"""The databases the suite runs on: what a test asks of one, and DuckDB.

A test creates tables, changes rows, acts as another session and reads the target only through this class, so that the
next engine needs no change in a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pytest

import reslice
from reslice.engines.duckdb.session import DuckDBSession

Row = tuple[Any, ...]


class Session(Protocol):
    """A connection of its own, as another user of the database has."""

    def execute(self, sql: str, /, parameters: Sequence[Any] = ...) -> Any:
        """Run one statement."""


class DuckDBDatabase:
    """One DuckDB file. The suite holds it open and passes the connection on, until `let_go`."""

    name = "duckdb"
    has_untyped_null = not duckdb.__version__.startswith("1.")
    """Whether a NULL without a type stays so in a temporary table; DuckDB 1.5 makes an INTEGER of it."""

    def __init__(self, folder: Path, file: str = "warehouse.duckdb") -> None:
        self.folder = folder
        self.path = folder / file
        self.url = f"duckdb:///{file}"
        self._connection: duckdb.DuckDBPyConnection | None = duckdb.connect(str(self.path))
        self.execute("SET GLOBAL threads = 1")  # few rows and many tests at once

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The suite's own connection, opened when it is not open."""
        if self._connection is None:
            self._connection = duckdb.connect(str(self.path))
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement and commit it."""
        self.connection.execute(sql, list(parameters) or None)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows in one statement."""
        values = list(rows)
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in values)
        self.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in values for value in row])

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query; dates and times as ISO text."""
        return [
            tuple(_plain(value) for value in row)
            for row in self.connection.execute(sql, list(parameters) or None).fetchall()
        ]

    def versions(self, table: str) -> list[Row]:
        """Return every row of a table with its physical place, which a rewritten row does not keep."""
        return self.rows(f"SELECT rowid, * FROM {table} ORDER BY rowid")

    def table_names(self, schema: str = "main") -> list[str]:
        """Return the names of the tables of a schema."""
        return [
            row[0]
            for row in self.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = ? ORDER BY 1", [schema])
        ]

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Give another session; what it has not committed at the end is rolled back."""
        cursor = self.connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def set_session_zone(self, zone: str) -> None:
        """Let every session that begins from now on have this time zone."""
        self.execute(f"SET GLOBAL TimeZone = '{zone}'")

    def project(self, contract: Path) -> reslice.Project:
        """Return the project of a contract file; while the suite holds the database, it shares its connection."""
        return reslice.open(contract, connection=self._connection)

    def follow_statements(self, monkeypatch: pytest.MonkeyPatch, follow: Callable[[str], str | None]) -> None:
        """Show `follow` each statement before reslice executes it; what it returns is executed instead."""
        execute = DuckDBSession.execute

        def followed(self: DuckDBSession, statement: str, parameters: Any = None) -> list[Row]:
            return execute(self, follow(statement) or statement, parameters)

        monkeypatch.setattr(DuckDBSession, "execute", followed)

    def let_go(self) -> None:
        """Close the suite's connection, so that the project, or another process, opens the file itself."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    close = let_go


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else value


Database = DuckDBDatabase
"""The type a test names; a union when there is a second engine."""
