"""One DuckDB connection: statements, transactions, progress, and being stopped from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import duckdb

from reslice.contract import Contract
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import failed, interrupted, is_signalled
from reslice.engines.sql import Dialect

SETTINGS = ("enable_progress_bar = true", "enable_progress_bar_print = false", "python_enable_replacements = false")
"""Progress is asked for, not printed; a table that is not there is not looked for among Python's variables."""


class DuckDBSession:
    """A connection that runs one statement at a time. `interrupt` and `progress` may be called from any thread."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, shown: str) -> None:
        self.shown = shown
        self.dialect: Dialect = DuckDBDialect()
        self._connection = connection
        self._interrupted = threading.Event()
        self._is_ending = False
        self._interrupt_lock = threading.Lock()
        self._timeout: timedelta | None = None
        for setting in SETTINGS:
            with suppress(duckdb.InvalidInputException):  # where the caller has locked the configuration
                self._connection.execute(f"SET {setting}")

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; Interrupted when `interrupt` was called."""
        self.stop_if_asked()
        timer = None
        if self._timeout is not None:
            timer = threading.Timer(self._timeout.total_seconds(), self._connection.interrupt)
            timer.start()
        try:
            return self._connection.execute(statement, dict(parameters) if parameters else None).fetchall()
        except duckdb.InterruptException as error:
            if self._interrupted.is_set() or timer is None:
                raise interrupted(self.shown) from error
            raise duckdb.OperationalError(f"no answer within timeouts.statement, {self._timeout}") from error
        except RuntimeError as error:
            if not is_signalled(error):
                raise
            raise interrupted(self.shown) from error
        finally:
            if timer is not None:
                timer.cancel()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or roll all of it back: any error ends a DuckDB transaction."""
        try:
            self.execute("BEGIN TRANSACTION")
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

    @contextmanager
    def translated(self, contract: Contract | None, doing: str) -> Iterator[None]:
        """Roll back whatever is open when an error passes, and tell one of the driver as one of ours."""
        try:
            yield
        except duckdb.Error as error:
            self.roll_back()
            about, place = (contract.name, contract.table) if contract else (self.shown, "every table")
            raise failed(about, error, doing, unchanged=f"{place} is as it was; nothing was written") from error
        except BaseException:
            self.roll_back()
            raise

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now."""
        percent = self._connection.query_progress()
        return percent if percent >= 0 else None

    def interrupt(self) -> None:
        """Stop the running statement and refuse every later one, but for those that end a run."""
        with self._interrupt_lock:
            self._interrupted.set()
            if not self._is_ending:
                self._connection.interrupt()

    def stop_if_asked(self) -> None:
        """Raise Interrupted when `interrupt` was called."""
        if self._interrupted.is_set() and not self._is_ending:
            raise interrupted(self.shown)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let statements run that end a run, whoever asks to stop: a commit, its record, and what is read after it."""
        with self._interrupt_lock:
            before, self._is_ending = self._is_ending, True
        try:
            yield
        finally:
            self._is_ending = before

    def close(self) -> None:
        """Let go of the connection; its temporary tables are gone."""
        self._connection.close()
