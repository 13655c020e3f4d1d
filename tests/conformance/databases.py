"""The databases the suite runs on: DuckDB and PostgreSQL.

A test creates tables, changes rows, acts as another session and reads the target only through these classes, so that
the next engine needs no change in a test.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import psycopg
import pytest

import reslice
from reslice.engines.duckdb.session import DuckDBSession
from tests import postgres
from tests.conformance.database import ENGINES, Database, Row, Session, only

__all__ = [
    "ENGINES",
    "Database",
    "DuckDBDatabase",
    "PostgresDatabase",
    "Row",
    "Session",
    "file_of",
    "only",
    "opened",
]


class DuckDBDatabase:
    """One DuckDB file. The suite holds it open and passes the connection on, until `let_go`."""

    name: ClassVar[str] = "duckdb"
    schema: ClassVar[str] = "main"
    place: ClassVar[str] = "rowid"
    updates_in_place: ClassVar[bool] = True
    longest_name: ClassVar[int] = 200
    snapshot: ClassVar[str] = "BEGIN TRANSACTION"
    untyped_null: ClassVar[tuple[str, str]] = ("INTEGER", "bigint") if duckdb.__version__.startswith("1.") else ("", "")

    def __init__(self, folder: Path, file: str = "warehouse.duckdb") -> None:
        self.folder = folder
        self.path = folder / file
        self.url = f"duckdb:///{file}"
        self._connection: duckdb.DuckDBPyConnection | None = duckdb.connect(str(self.path))
        self.execute("SET GLOBAL threads = 1")  # few rows and many tests at once

    @property
    def catalog(self) -> str:
        return self.path.stem

    def full_name(self, table: str) -> str:
        return f"{self.catalog}.{self.schema}.{table}"

    def quoted(self, table: str) -> str:
        return f'"{self.catalog}"."{self.schema}"."{table}"'

    def type_name(self, type_text: str) -> str:
        return {"double precision": "DOUBLE", "timestamptz": "TIMESTAMP WITH TIME ZONE"}.get(
            type_text, type_text.upper()
        )

    def generated(self, expression: str) -> str:
        return f"GENERATED ALWAYS AS ({expression})"

    def before_christ(self, day: str) -> str:
        return f"{day} (BC)"

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The suite's own connection, opened when it is not open."""
        if self._connection is None:
            self._connection = duckdb.connect(str(self.path))
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self.connection.execute(sql, list(parameters) or None)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        self.execute(*_inserted(table, rows))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return _plain_rows(self.connection.execute(sql, list(parameters) or None).fetchall())

    def versions(self, table: str) -> list[Row]:
        return self.rows(f"SELECT {self.place}, * FROM {table} ORDER BY 1")

    def table_names(self, schema: str = "") -> list[str]:
        names = "SELECT table_name FROM duckdb_tables() WHERE schema_name = ? ORDER BY 1"
        return [row[0] for row in self.rows(names, [schema or self.schema])]

    def has_view(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM duckdb_views() WHERE view_name = ?", [name]))

    def every_column(self, table: str, *, but: str) -> str:
        return f"* EXCLUDE ({but})"

    @contextmanager
    def session(self) -> Iterator[Session]:
        cursor = self.connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def set_session_zone(self, zone: str) -> None:
        self.execute(f"SET GLOBAL TimeZone = '{zone}'")

    def project(self, contract: Path) -> reslice.Project:
        """Return the project of a contract file; while the suite holds the database, it shares its connection."""
        return reslice.open(contract, connection=self._connection)

    def follow_statements(self, monkeypatch: pytest.MonkeyPatch, follow: Callable[[str], str | None]) -> None:
        _follow(DuckDBSession, monkeypatch, follow)

    def let_go(self) -> None:
        """Close the suite's connection, so that the project, or another process, opens the file itself."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    close = let_go


class PostgresDatabase:
    """One database of a server that the whole run shares, owned by a role that is no superuser."""

    name: ClassVar[str] = "postgresql"
    schema: ClassVar[str] = "public"
    place: ClassVar[str] = "(tableoid, ctid, xmin)::text"
    untyped_null: ClassVar[tuple[str, str]] = ("text", "varchar")
    updates_in_place: ClassVar[bool] = False
    longest_name: ClassVar[int] = 63
    snapshot: ClassVar[str] = "BEGIN ISOLATION LEVEL REPEATABLE READ"

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)
    _closed: ClassVar[dict[int, list[str]]] = {}
    _admins: ClassVar[dict[int, psycopg.Connection[Row]]] = {}

    def __init__(self, folder: Path, version: int = 18) -> None:
        self.folder = folder
        self.server = postgres.shared(version)
        self.catalog = f"t_{os.getpid()}_{next(self._numbers)}"
        self.url = self.server.url(self.catalog)
        self._connection: psycopg.Connection[Row] | None = None
        self._drop_closed()
        self.as_admin(f"CREATE DATABASE {self.catalog} TEMPLATE template0 STRATEGY file_copy OWNER {postgres.ROLE}")

    def full_name(self, table: str) -> str:
        return f"{self.catalog}.{self.schema}.{table}"

    def quoted(self, table: str) -> str:
        return f'"{self.catalog}"."{self.schema}"."{table}"'

    def type_name(self, type_text: str) -> str:
        return _TYPE_NAMES.get(type_text, type_text.replace("decimal", "numeric"))

    def generated(self, expression: str) -> str:
        return f"GENERATED ALWAYS AS ({expression}) STORED"

    def before_christ(self, day: str) -> str:
        return f"{day} BC"

    def as_admin(self, sql: str) -> None:
        """Run one statement as a superuser, in another database of the server."""
        version = self.server.version
        if version not in self._admins:
            self._admins[version] = _connect(self.server.url(user=postgres.ADMIN))
        self._admins[version].execute(sql)

    def _drop_closed(self) -> None:
        """Drop the databases of tests that are over, but for the last: its server processes may still be ending."""
        closed = self._closed.setdefault(self.server.version, [])
        while len(closed) > 1:
            self.as_admin(f"DROP DATABASE {closed.pop(0)} WITH (FORCE)")

    @classmethod
    def let_servers_go(cls) -> None:
        """Close the connections to the servers themselves."""
        while cls._admins:
            cls._admins.popitem()[1].close()

    @property
    def connection(self) -> psycopg.Connection[Row]:
        """The suite's own connection, opened when it is not open."""
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self.url)
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        _execute(self.connection, sql, parameters)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        self.execute(*_inserted(table, rows))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return _plain_rows(_execute(self.connection, sql, parameters).fetchall())

    def versions(self, table: str) -> list[Row]:
        return self.rows(f"SELECT {self.place}, * FROM {table} ORDER BY tableoid, ctid")

    def table_names(self, schema: str = "") -> list[str]:
        names = "SELECT tablename FROM pg_tables WHERE schemaname = ? ORDER BY 1"
        return [row[0] for row in self.rows(names, [schema or self.schema])]

    def has_view(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM pg_views WHERE viewname = ?", [name]))

    def every_column(self, table: str, *, but: str) -> str:
        names = (
            "SELECT quote_ident(attname) FROM pg_attribute"
            " WHERE attrelid = ?::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ? ORDER BY attnum"
        )
        return ", ".join(row[0] for row in self.rows(names, [table, but]))

    @contextmanager
    def session(self) -> Iterator[Session]:
        connection = _connect(self.url)
        try:
            yield _PostgresSession(connection)
        finally:
            connection.close()

    def set_session_zone(self, zone: str) -> None:
        self.execute(f"ALTER DATABASE {self.catalog} SET timezone = '{zone}'")
        self.let_go()

    def project(self, contract: Path) -> reslice.Project:
        return reslice.open(contract)

    def follow_statements(self, monkeypatch: pytest.MonkeyPatch, follow: Callable[[str], str | None]) -> None:
        from reslice.engines.postgres.session import PostgresSession

        _follow(PostgresSession, monkeypatch, follow)

    def let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self.let_go()
        self._closed[self.server.version].append(self.catalog)


class _PostgresSession:
    """A connection that takes the question marks of the suite."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def execute(self, sql: str, /, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Row]:
        return _execute(self._connection, sql, parameters)


class _Integral(psycopg.adapt.Loader):
    """A number without a decimal point, such as the sum of integers, is an int."""

    def load(self, data: Any) -> int | Decimal:
        text = bytes(data).decode()
        return int(text) if text.removeprefix("-").isdecimal() else Decimal(text)


_TYPE_NAMES = {
    "varchar": "character varying",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
    "hugeint": "numeric",
}


def _connect(url: str) -> psycopg.Connection[Row]:
    """Connect; values stand in the statement, as when somebody types it, and each statement is committed.

    A test that waits for a lock waits for itself: it is told so after some seconds.
    """
    connection = psycopg.connect(
        url, autocommit=True, cursor_factory=psycopg.ClientCursor, options="-c lock_timeout=10s"
    )
    connection.adapters.register_loader("numeric", _Integral)
    return connection


def _execute(connection: psycopg.Connection[Row], sql: str, parameters: Sequence[Any]) -> psycopg.Cursor[Row]:
    if not parameters:
        return connection.execute(sql.encode())
    return connection.execute(_MARKS.sub(_marked, sql).encode(), parameters)


_MARKS = re.compile(r"'[^']*'|\"[^\"]*\"|\?|%")


def _marked(found: re.Match[str]) -> str:
    return "%s" if found[0] == "?" else found[0].replace("%", "%%")


def _inserted(table: str, rows: Iterable[Row]) -> tuple[str, list[Any]]:
    values = list(rows)
    marks = ", ".join(f"({', '.join('?' * len(row))})" for row in values)
    return f"INSERT INTO {table} VALUES {marks}", [value for row in values for value in row]


def _follow(session: Any, monkeypatch: pytest.MonkeyPatch, follow: Callable[[str], str | None]) -> None:
    execute = session.execute

    def followed(self: Any, statement: str, parameters: Any = None) -> Any:
        return execute(self, follow(statement) or statement, parameters)

    monkeypatch.setattr(session, "execute", followed)


def _plain_rows(rows: Iterable[Row]) -> list[Row]:
    return [tuple(_plain(value) for value in row) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else value


def opened(engine: str, folder: Path) -> DuckDBDatabase | PostgresDatabase:
    """Return a new, empty database of an engine; NotRunnable where there is none."""
    return DuckDBDatabase(folder) if engine == "duckdb" else PostgresDatabase(folder, int(engine[-2:]))


def file_of(database: Database) -> Path:
    """Return the file of a database in a test that is about DuckDB files."""
    assert isinstance(database, DuckDBDatabase), "only DuckDB has its tables in one file"
    return database.path
