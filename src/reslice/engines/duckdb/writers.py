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
from reslice.engines.dialect import Dialect
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import lines_of
from reslice.engines.duckdb.publish import TURN_SECONDS
from reslice.engines.duckdb.records import LEDGER_LOCK
from reslice.engines.duckdb.session import columns_in, ledgers
from reslice.engines.duckdb.target import resolve
from reslice.engines.failures import misused
from reslice.engines.writers import (
    Fence,
    already_open,
    ended_within,
    fence_of,
    is_there,
    make,
    no_fence,
    no_rights,
    not_available,
    not_committed,
    not_our_turn,
    unknown,
)
from reslice.errors import Failure, Misused

ANOTHER = "commit or roll back first, or pass connection.cursor()"
"""What to do about a transaction that is open: a cursor of DuckDB is a connection of its own."""


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
class _Turn:
    """A turn that was taken: the generation of the fence, and the transaction that holds it."""

    fence: Fence
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
            raise already_open(table, ANOTHER)
        turn = _wait_for_turn(writer, _fence(writer, table, schema), wait)
    try:
        yield
    except BaseException:
        writer.roll_back()
        raise
    _commit(writer, turn)


def _fence(writer: WriterConnection, name: str, schema: str) -> Fence:
    """Return the fence of a table, which is made, with its ledger, where it is not there yet."""
    fence = fence_of(name, schema, resolve(writer, name))
    if not is_there(writer, fence):
        with LEDGER_LOCK:
            writer.execute("BEGIN TRANSACTION")
            make(writer, fence)
            writer.execute("COMMIT")
    return fence


def _wait_for_turn(writer: WriterConnection, fence: Fence, wait: timedelta) -> _Turn:
    """Begin a transaction whose first statement takes the turn; begin again while somebody else has it."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        _begin(writer, fence.table)
        try:
            generations = writer.execute(ledger.fence_statement(fence.where), {"table_name": fence.table})
            if len(generations) != 1:
                raise no_fence(fence)
            return _Turn(fence, int(generations[0][0]), writer.transaction_number())
        except duckdb.TransactionException as error:
            writer.roll_back()
            if time.monotonic() >= deadline:
                raise not_our_turn(fence.table, wait) from error
        time.sleep(TURN_SECONDS)


def _begin(writer: WriterConnection, table: str) -> None:
    try:
        writer.execute("BEGIN TRANSACTION")
    except duckdb.TransactionException as error:  # of another thread that uses the same connection
        raise already_open(table, ANOTHER) from error


def _commit(writer: WriterConnection, turn: _Turn) -> None:
    """Commit, and make sure of it: COMMIT of a transaction that an error has ended raises nothing and keeps nothing."""
    fence = turn.fence
    try:
        if writer.transaction_number() != turn.transaction:
            raise ended_within(fence)
        writer.execute("COMMIT")
    except duckdb.FatalException as error:
        raise unknown(fence, lines_of(error)[0]) from error
    except duckdb.Error as error:
        raise not_committed(fence, lines_of(error)[0]) from error
    finally:
        writer.roll_back()
    generation = f"SELECT generation FROM {fence.where}.fences WHERE table_name = $table_name"
    try:
        found = writer.execute(generation, {"table_name": fence.table})
    except duckdb.Error as error:
        raise unknown(fence, lines_of(error)[0]) from error
    if not found or found[0][0] < turn.generation:
        raise not_committed(fence, "the database dropped the transaction in silence")


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
        if "read-only" in text.lower():
            raise no_rights(table, text, "open the database for writing") from error
        raise not_available(table, text) from error
    except BaseException:
        writer.roll_back()
        raise
