"""One DuckDB connection: statements, transactions, progress, and being stopped from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ClassVar

import duckdb

from reslice.contract import Contract, SqlFile
from reslice.engines.dialect import Dialect
from reslice.engines.duckdb.dialect import DuckDBDialect, family_of
from reslice.engines.duckdb.errors import failed, is_signalled, lines_of, query_failed
from reslice.engines.failures import misused
from reslice.engines.session import Session, SqlSession
from reslice.engines.sql import text_literal
from reslice.errors import Failure, ResliceError
from reslice.tables import Column, Target

SETTINGS = ("enable_progress_bar = true", "enable_progress_bar_print = false", "python_enable_replacements = false")
"""Progress is asked for, not printed; a table that is not there is not looked for among Python's variables."""


class DuckDBSession(SqlSession):
    """A connection that runs one statement at a time. `interrupt` and `progress` may be called from any thread."""

    driver_error: ClassVar[type[Exception]] = duckdb.Error
    not_understood: ClassVar[tuple[type[Exception], ...]] = (duckdb.BinderException, duckdb.CatalogException)

    def __init__(self, connection: duckdb.DuckDBPyConnection, shown: str) -> None:
        super().__init__(shown)
        self.dialect: Dialect = DuckDBDialect()
        self._connection = connection
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
                raise self.stopped() from error
            raise duckdb.OperationalError(f"no answer within timeouts.statement, {self._timeout}") from error
        except RuntimeError as error:
            if not is_signalled(error):
                raise
            raise self.stopped() from error
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

    def pin(self, contract: Contract) -> None:
        """Pin what the meaning of a source may depend on."""
        self.execute(f"SET TimeZone = {text_literal(contract.slice.timezone)}")

    def check_select(self, query: SqlFile, body: str) -> None:
        """Let DuckDB's own parser say that a file is one SELECT; Misused[source_invalid] when it is not."""
        found = duckdb.extract_statements(body)
        if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
            words = f"{query.name} holds {len(found)} statements" if len(found) != 1 else f"{query.name} is no SELECT"
            failure = Failure("source_invalid", "one SELECT per file", (words,), f"correct {query.name}")
            raise misused(query.name, failure)

    def query_failed(self, contract: Contract, query: SqlFile, error: Exception) -> ResliceError:
        """Return the error for a SQL file that DuckDB could not understand (2), or could not evaluate (4)."""
        assert isinstance(error, duckdb.Error), "a query fails with an error of the driver"
        return query_failed(contract, query, error)

    def columns_of(self, table: str, wanted: Iterable[str]) -> tuple[Column, ...]:
        """Return the columns of a temporary table, in its order, in the spelling of `wanted`."""
        spellings = tuple(wanted)
        rows = self.execute(f"DESCRIBE {table}")
        return tuple(Column(spelled(row[0], spellings), row[1], family_of(row[1])) for row in rows)

    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables and views of a schema: table, column, type, in order."""
        return columns_in(self, catalog, schema)

    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger, those of the current database first."""
        return ledgers(self)

    def comment_on(self, catalog: str, schema: str, name: str) -> str | None:
        """Return the comment of the view of a name: `none` where it has none, empty for a table, None for nothing."""
        rows = self.execute(
            "SELECT comment FROM (SELECT database_name, schema_name, table_name AS name, '' AS comment"
            " FROM duckdb_tables() UNION ALL SELECT database_name, schema_name, view_name, coalesce(comment, 'none')"
            " FROM duckdb_views()) AS things"
            " WHERE database_name = $catalog AND schema_name = $schema AND lower(name) = lower($name)",
            {"catalog": catalog, "schema": schema, "name": name},
        )
        return rows[0][0] if rows else None

    def way_on_without_view(self, error: Exception, view: str, target: Target) -> tuple[str, str]:
        """Return what helps where a view cannot name its tables: it takes the file's name for that of a schema."""
        after = f"give the file another name than {target.catalog}, or choose another  ledger: {{schema: …}}"
        return "method_unsupported", after

    def words_of(self, error: Exception) -> str:
        """Return the first line of what the driver says."""
        assert isinstance(error, duckdb.Error), "words of the driver are its own errors"
        return lines_of(error)[0]

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now."""
        percent = self._connection.query_progress()
        return percent if percent >= 0 else None

    def _cancel(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of the connection; its temporary tables are gone."""
        self.ask_no_more()
        self._connection.close()


def columns_in(session: Session, catalog: str, schema: str) -> list[tuple[str, str, str]]:
    """Return the columns of the tables and views of a schema: table, column, type, in order."""
    rows = session.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE database_name = $catalog"
        " AND schema_name = $schema ORDER BY table_name, column_index",
        {"catalog": catalog, "schema": schema},
    )
    return [(table, column, type_text) for table, column, type_text in rows]


def ledgers(session: Session) -> list[tuple[str, str]]:
    """Return catalog and schema of every ledger, those of the current database first."""
    rows = session.execute(
        "SELECT database_name, schema_name FROM duckdb_columns() WHERE table_name = 'runs'"
        " AND column_name = 'contract_digest' ORDER BY database_name <> current_database(), database_name, schema_name"
    )
    return [(catalog, schema) for catalog, schema in rows]


def spelled(name: str, wanted: Iterable[str]) -> str:
    """Return the contract's spelling of a column; DuckDB tells names apart without regard to case."""
    return next((each for each in wanted if each.lower() == name.lower()), name)
