"""How a live writer takes turns with publishes on DuckDB: a transaction whose first statement updates the fence row.

DuckDB sees update/update conflicts only, and the fence is the row that both update. A writer that holds it makes a
publish wait; one that meets a publish waits itself, in new transactions, so that its snapshot is never older than the
commit it waited for. What is written under the lock is committed whole or not at all, and that it was is looked up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import duckdb

from reslice import ledger
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import lines_of
from reslice.engines.duckdb.publish import TURN_SECONDS
from reslice.engines.duckdb.records import LEDGER_LOCK
from reslice.engines.duckdb.session import columns_in, ledgers
from reslice.engines.duckdb.target import resolve
from reslice.engines.failures import misused
from reslice.engines.refusals import other_ledgers
from reslice.engines.sql import Dialect
from reslice.errors import Failure, Misused, OutcomeUnknown, Refused, Retryable


class WriterConnection:
    """The connection of a live writer, as it is: nothing of its settings is changed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.dialect: Dialect = DuckDBDialect()
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        return self._connection.execute(statement, dict(parameters) if parameters else None).fetchall()

    def roll_back(self) -> None:
        """Roll back whatever is open; nothing to roll back is fine."""
        with suppress(duckdb.Error):
            self._connection.execute("ROLLBACK")

    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables of a schema: table, column, type, in order."""
        return columns_in(self, catalog, schema)

    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger."""
        return ledgers(self)

    def transaction_number(self) -> int:
        """Return the number of the transaction; a statement without one has a number of its own."""
        return int(self.execute("SELECT txid_current()")[0][0])

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, also one that an error has ended."""
        try:
            return self.transaction_number() == self.transaction_number()
        except duckdb.TransactionException:
            return True


@dataclass(frozen=True, slots=True)
class _Fence:
    """The row that publishes of a table update first: `where` is its ledger, `table` the full name it stands under."""

    where: str
    table: str
    named: str
    """The table as the writer named it."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn that was taken: the generation of the fence, and the transaction that holds it."""

    fence: _Fence
    generation: int
    transaction: int


@contextmanager
def hold(connection: Any, table: str, *, schema: str, wait: timedelta) -> Iterator[None]:
    """Open a transaction that holds the turn of `table`; commit it at the end, or roll it back when the block raises.

    Raises Misused, Refused or Retryable with nothing written; whatever the block raises passes as it is.
    """
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        found = f"{type(connection).__name__} is not an open DuckDB connection"
        raise misused(table, Failure("connection", "an open connection", (found,), "pass duckdb.connect(…)"))
    writer = WriterConnection(connection)
    with _told(writer, table):
        if writer.is_in_transaction():
            raise _already_open(table)
        turn = _wait_for_turn(writer, _fence(writer, table, schema), wait)
    try:
        yield
    except BaseException:
        writer.roll_back()
        raise
    _commit(writer, turn)


def _fence(writer: WriterConnection, name: str, schema: str) -> _Fence:
    """Return the fence of a table, which is made, with its ledger, where it is not there yet."""
    found = resolve(writer, name)
    asked = f"writer_lock(connection, {name!r})"
    if found is None or found[3] != "table":
        kind, words = (
            ("target_missing", "the database has no table") if found is None else ("target_not_table", "a view is")
        )
        failure = Failure(kind, asked, (f"{words} {name}",), "name the table that the contract names")
        raise Refused(name, [failure], unchanged="nothing was written")
    catalog, table_schema, table, _ = found
    fence = _Fence(ledger.place(catalog, schema), f"{catalog}.{table_schema}.{table}", name)
    if not _is_there(writer, fence, catalog, schema):
        _make(writer, fence, catalog, schema)
    return fence


def _is_there(writer: WriterConnection, fence: _Fence, catalog: str, schema: str) -> bool:
    if ("fences", "generation") not in _ledger_columns(writer, catalog, schema):
        return False
    return bool(writer.execute(f"SELECT 1 FROM {fence.where}.fences WHERE table_name = $name", {"name": fence.table}))


def _ledger_columns(writer: WriterConnection, catalog: str, schema: str) -> set[tuple[str, str]]:
    return {(table, column) for table, column, _ in writer.columns_in(catalog, schema)}


def _make(writer: WriterConnection, fence: _Fence, catalog: str, schema: str) -> None:
    """Commit the fence of a table, in a ledger that is made when absent, as the first run of the table does."""
    with LEDGER_LOCK:
        present = _ledger_columns(writer, catalog, schema)
        foreign = ledger.foreign_tables(present)
        others = other_ledgers(writer, catalog, schema, fence.table)
        if foreign or others:
            raise _not_the_ledger(fence, schema, foreign, others)
        writer.execute("BEGIN TRANSACTION")
        for statement in ledger.create_statements(fence.where, present):
            writer.execute(statement)
        ledger.add_fence(writer, fence.where, fence.table)
        writer.execute("COMMIT")


def _wait_for_turn(writer: WriterConnection, fence: _Fence, wait: timedelta) -> _Turn:
    """Begin a transaction whose first statement takes the turn; begin again while somebody else has it."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        _begin(writer, fence.table)
        try:
            generations = writer.execute(ledger.fence_statement(fence.where), {"table_name": fence.table})
            assert len(generations) == 1, f"the fence of {fence.table} is {len(generations)} rows, not one"
            return _Turn(fence, int(generations[0][0]), writer.transaction_number())
        except duckdb.TransactionException as error:
            writer.roll_back()
            if time.monotonic() >= deadline:
                raise _not_our_turn(fence, wait) from error
        time.sleep(TURN_SECONDS)


def _begin(writer: WriterConnection, table: str) -> None:
    try:
        writer.execute("BEGIN TRANSACTION")
    except duckdb.TransactionException as error:  # of another thread that uses the same connection
        raise _already_open(table) from error


def _commit(writer: WriterConnection, turn: _Turn) -> None:
    """Commit, and make sure of it: COMMIT of a transaction that an error has ended raises nothing and keeps nothing."""
    fence = turn.fence
    try:
        if writer.transaction_number() != turn.transaction:
            raise _ended_within(fence)
        writer.execute("COMMIT")
    except duckdb.FatalException as error:
        raise _unknown(fence, error) from error
    except duckdb.Error as error:
        raise _not_committed(fence, lines_of(error)[0]) from error
    finally:
        writer.roll_back()
    generation = f"SELECT generation FROM {fence.where}.fences WHERE table_name = $table_name"
    try:
        found = writer.execute(generation, {"table_name": fence.table})
    except duckdb.Error as error:
        raise _unknown(fence, error) from error
    if not found or found[0][0] < turn.generation:
        raise _not_committed(fence, "the database dropped the transaction in silence")


@contextmanager
def _told(writer: WriterConnection, table: str) -> Iterator[None]:
    """Roll back what we began when an error passes, and tell one of the driver as one of ours."""
    try:
        yield
    except Misused:
        raise  # the transaction that is open is the caller's
    except duckdb.Error as error:
        writer.roll_back()
        text = lines_of(error)[0]
        asked = f"the turn of {table}"
        if "read-only" in text.lower():
            failure = Failure("target_rights", asked, (text,), "open the database for writing")
            raise Refused(table, [failure], unchanged="nothing was written") from error
        failure = Failure("database_unavailable", asked, (text,), "try again")
        raise Retryable(table, [failure], unchanged="nothing was written") from error
    except BaseException:
        writer.roll_back()
        raise


def _already_open(table: str) -> Misused:
    asked = "writer_lock begins its transaction itself: its snapshot may not be older than its turn"
    found = "the connection has a transaction open"
    after = "commit or roll back first, or pass connection.cursor()"
    return Misused(table, [Failure("usage", asked, (found,), after)], unchanged="the open transaction is as it was")


def _ended_within(fence: _Fence) -> Misused:
    asked = "writer_lock commits at the end of its block, and rolls back when the block raises"
    found = "the block has ended the transaction itself, and the lock with it"
    failure = Failure("usage", asked, (found,), "take BEGIN, COMMIT and ROLLBACK out of the block; to undo, raise")
    return Misused(
        fence.table, [failure], unchanged="what the block committed itself is there; what it left open was rolled back"
    )


def _not_the_ledger(fence: _Fence, schema: str, foreign: tuple[str, ...], others: list[str]) -> Refused:
    asked = f"the ledger of {fence.table} is in the schema {schema}"
    if foreign:
        found = f"the schema {schema} holds {', '.join(foreign)}, which reslice did not make; left untouched"
        after = "pass schema=, as the contract's ledger: {schema: …} says"
    else:
        found = f"the ledger in schema {others[0]} already guards {fence.table}; a table has one ledger"
        after = f"writer_lock(connection, table, schema={others[0]!r})"
    return Refused(fence.table, [Failure("ledger_foreign", asked, (found,), after)], unchanged="nothing was written")


def _not_our_turn(fence: _Fence, wait: timedelta) -> Retryable:
    asked = f"the turn of {fence.table} within {wait.total_seconds():g}s"
    found = "a publish of this table, or another writer that holds its lock, is under way"
    failure = Failure("database_busy", asked, (found,), 'try again, or wait longer: wait="10m"')
    return Retryable(fence.table, [failure], unchanged="nothing was written")


def _not_committed(fence: _Fence, text: str) -> Retryable:
    asked = "what was written under the lock in one commit"
    failure = Failure("write_aborted", asked, (text,), "write again, under the lock")
    return Retryable(fence.table, [failure], unchanged=f"{fence.named} is as it was; everything was rolled back")


def _unknown(fence: _Fence, error: duckdb.Error) -> OutcomeUnknown:
    found = f"the commit was sent, and the database failed: {lines_of(error)[0]}"
    failure = Failure("outcome_unknown", "what was written is looked up after its commit", (found,), "look at the rows")
    return OutcomeUnknown(fence.table, [failure], unchanged="not known: all of it is there, or nothing")
