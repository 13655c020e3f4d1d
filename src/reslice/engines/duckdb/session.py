"""One DuckDB connection: statements, transactions, progress, and being stopped from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import duckdb

from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import interrupted
from reslice.engines.sql import Dialect


class DuckDBSession:
    """A connection that runs one statement at a time. `interrupt` and `progress` may be called from any thread."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._words = DuckDBDialect()
        self.dialect: Dialect = self._words
        self._connection = connection
        self._interrupted = threading.Event()
        self._timeout: timedelta | None = None
        self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; Interrupted when `interrupt` was called."""
        if self._interrupted.is_set():
            raise interrupted()
        timer = None
        if self._timeout is not None:
            timer = threading.Timer(self._timeout.total_seconds(), self._connection.interrupt)
            timer.start()
        try:
            return self._connection.execute(statement, dict(parameters) if parameters else None).fetchall()
        except duckdb.InterruptException as error:
            if self._interrupted.is_set() or timer is None:
                raise interrupted() from error
            raise duckdb.OperationalError(f"no answer within timeouts.statement, {self._timeout}") from error
        except RuntimeError as error:  # how the driver reports a signal that arrived during a statement
            if "interrupted" not in str(error).lower():
                raise
            raise interrupted() from error
        finally:
            if timer is not None:
                timer.cancel()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or roll all of it back: any error ends a DuckDB transaction."""
        self.execute("BEGIN TRANSACTION")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """Roll back whatever is open; nothing to roll back is fine."""
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error:
            return

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now."""
        percent = self._connection.query_progress()
        return percent if percent >= 0 else None

    def interrupt(self) -> None:
        """Stop the running statement and refuse every later one."""
        self._interrupted.set()
        self._connection.interrupt()

    def resume(self) -> None:
        """Let the statements run that end an interrupted run: what it left has to be read and recorded."""
        self._interrupted.clear()

    def close(self) -> None:
        """Let go of the connection; its temporary tables are gone."""
        self._connection.close()
