"""How a live writer takes turns with publishes on PostgreSQL: a transaction that holds the turn from its beginning.

The turn is the advisory lock that a publish takes first; it ends with the transaction, so no proxy or crash leaves it
behind. A snapshot that is fixed before the turn came, as REPEATABLE READ does, may be older than the commit that was
waited for: the fence, which is updated next, then refuses the transaction, and it is begun again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import errors as driver
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.string import StrDumper

from reslice import ledger
from reslice.engines.dialect import Dialect
from reslice.engines.failures import misused
from reslice.engines.postgres import locks
from reslice.engines.postgres.catalog import columns_in, ledgers
from reslice.engines.postgres.connection import reconnected
from reslice.engines.postgres.dialect import PostgresDialect
from reslice.engines.postgres.errors import lines_of
from reslice.engines.postgres.marks import numbered
from reslice.engines.postgres.publish import RECONNECT_SECONDS
from reslice.engines.postgres.target import KINDS, resolve
from reslice.engines.postgres.waiting import still_held, turn
from reslice.engines.sql import text_literal
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
from reslice.errors import Failure, Misused, ResliceError

ANOTHER = "commit or roll back first, or pass another connection"
"""What to do about a transaction that is open."""
OURS = ("lock_timeout", "statement_timeout", "enable_seqscan")
"""The settings that are ours while the turn is waited for, and then the writer's again.

The first two say how long a statement may wait. The fence is found by its key: a SERIALIZABLE transaction that looks
through all of them would conflict with the writers of other tables.
"""


class WriterConnection:
    """The connection of a live writer, as it is: its settings, and what it makes of values, stay as they are."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        self._cursor.adapters.register_dumper(str, StrDumper)
        is_utf8 = connection.info.parameter_status("server_encoding") in ("UTF8", "SQL_ASCII")
        self.dialect: Dialect = PostgresDialect(is_utf8=is_utf8)

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        text, values = numbered(statement, parameters or {})
        self._cursor.execute(text, values, prepare=False)
        return self._cursor.fetchall() if self._cursor.description else []

    def begin(self) -> None:
        """Begin a transaction as this connection begins them."""
        connection = self._connection
        if not connection.autocommit:
            return  # the driver begins it, before the first statement
        level, read_only, deferrable = connection.isolation_level, connection.read_only, connection.deferrable
        words = [
            "BEGIN",
            "" if level is None else f"ISOLATION LEVEL {psycopg.IsolationLevel(level).name.replace('_', ' ')}",
            "" if read_only is None else "READ ONLY" if read_only else "READ WRITE",
            "" if deferrable is None else "DEFERRABLE" if deferrable else "NOT DEFERRABLE",
        ]
        self.execute(" ".join(word for word in words if word))

    @contextmanager
    def own_transaction(self) -> Iterator[None]:
        """Commit what is done inside, in which every statement sees what was committed before it."""
        level = "ISOLATION LEVEL READ COMMITTED"
        self.execute(f"BEGIN {level}" if self._connection.autocommit else f"SET TRANSACTION {level}")
        yield
        self.execute("COMMIT")

    def commit(self) -> str:
        """Commit, and return what the server says it has done: what was aborted it rolls back."""
        self._cursor.execute("COMMIT", prepare=False)
        return self._cursor.statusmessage or ""

    def roll_back(self) -> None:
        """Roll back whatever is open; nothing to roll back is fine."""
        with suppress(psycopg.Error):
            if self.status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                self._cursor.execute("ROLLBACK", prepare=False)

    @property
    def status(self) -> TransactionStatus:
        """Whether a transaction is open, or an error has ended it; UNKNOWN when the connection is gone."""
        return self._connection.info.transaction_status

    def transaction_number(self) -> str | None:
        """Return the number of the transaction; None of one that has written nothing."""
        number: str | None = self.execute("SELECT CAST(pg_current_xact_id_if_assigned() AS text)")[0][0]
        return number

    def reopened(self) -> psycopg.Connection[Any]:
        """Return another connection to the same server, after this one was lost."""
        return reconnected(self._connection, "the connection of the writer")

    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables of a schema that this role may read: table, column, type, in order."""
        return columns_in(self, schema)

    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger that this role may read."""
        return ledgers(self)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn that was taken: the generation of the fence, and the transaction that holds it."""

    fence: Fence
    generation: int
    transaction: str | None


@contextmanager
def hold(connection: Any, table: str, *, schema: str, wait: timedelta) -> Iterator[None]:
    """Open a transaction that holds the turn of `table`; commit it at the end, or roll it back when the block raises.

    Raises Misused, Refused or Retryable with nothing written; whatever the block raises passes as it is.
    """
    _refuse_unusable(connection, table)
    writer = WriterConnection(connection)
    with _told(writer, table, wait):
        deadline = time.monotonic() + wait.total_seconds()
        turn = _wait_for_turn(writer, _fence(writer, table, schema, wait), wait, deadline)
    try:
        yield
    except BaseException:
        writer.roll_back()
        raise
    try:
        _commit(writer, turn)
    finally:
        writer.roll_back()


def _refuse_unusable(connection: Any, table: str) -> None:
    if not isinstance(connection, psycopg.Connection) or connection.closed:
        found = f"{type(connection).__name__} is not an open connection of psycopg 3"
        raise misused(table, Failure("connection", "an open connection", (found,), "pass psycopg.connect(…)"))
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise already_open(table, ANOTHER)
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        found, after = "the connection is in pipeline mode", "take the lock outside of connection.pipeline()"
        raise misused(table, Failure("usage", "writer_lock waits for each answer", (found,), after))


def _fence(writer: WriterConnection, name: str, schema: str, wait: timedelta) -> Fence:
    """Return the fence of a table, which is made, with its ledger, where it is not there yet."""
    with writer.own_transaction():
        found = resolve(writer, name)
        fence = fence_of(name, schema, found and (*found[1:4], KINDS.get(found[4], "thing")))
        if not is_there(writer, fence):
            _set(writer, _waiting(wait.total_seconds()))
            for what, of in ((locks.LEDGER, schema), (locks.GUARD, fence.table)):  # in this order, as a run does
                writer.execute(f"SELECT pg_advisory_xact_lock({locks.key(what, text_literal(of))})")
            make(writer, fence)
    return fence


def _wait_for_turn(writer: WriterConnection, fence: Fence, wait: timedelta, deadline: float) -> _Turn:
    """Begin a transaction that holds the turn; begin again while its snapshot is older than the turn."""
    while True:
        try:
            return _take(writer, fence, deadline - time.monotonic())
        except driver.LockNotAvailable as error:
            raise not_our_turn(fence.table, wait, _in_front(writer, fence)) from error
        except driver.SerializationFailure as error:
            writer.roll_back()
            if time.monotonic() >= deadline:
                raise not_our_turn(fence.table, wait, _in_front(writer, fence)) from error


def _in_front(writer: WriterConnection, fence: Fence) -> str:
    """Say who has the turn, as far as this writer may know; no transaction is left open."""
    writer.roll_back()
    try:
        return still_held(writer.execute, turn(fence.table, fence.named, fence.schema))
    finally:
        writer.roll_back()


def _take(writer: WriterConnection, fence: Fence, seconds: float) -> _Turn:
    """Begin, wait for the turn, and update the fence: who holds the turn meets nobody there, if the snapshot is new."""
    named = {"table_name": fence.table}
    writer.begin()
    before = writer.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in OURS))[0]
    _set(writer, _waiting(seconds))
    writer.execute(f"SELECT pg_advisory_xact_lock({locks.key(locks.TABLE, '$table_name')})", named)
    generations = writer.execute(ledger.fence_statement(fence.where), named)
    if len(generations) != 1:
        raise no_fence(fence)
    _set(writer, dict(zip(OURS, before, strict=True)))
    return _Turn(fence, int(generations[0][0]), writer.transaction_number())


def _waiting(seconds: float) -> dict[str, str]:
    return dict(zip(OURS, (f"{max(round(seconds * 1000), 1)}ms", "0", "off"), strict=True))


def _set(writer: WriterConnection, settings: Mapping[str, str]) -> None:
    """Set settings of the session, until the transaction ends."""
    values = ", ".join(f"set_config('{name}', ${name}, true)" for name in settings)
    writer.execute(f"SELECT {values}", settings)


def _commit(writer: WriterConnection, turn: _Turn) -> None:
    """Commit, and make sure of it: COMMIT of a transaction that an error has ended rolls back, and raises nothing."""
    fence = turn.fence
    try:
        _refuse_ended(writer, turn)
    except psycopg.Error as error:
        raise not_committed(fence, lines_of(error)[0]) from error
    try:
        said = writer.commit()
    except psycopg.Error as error:
        text = lines_of(error)[0]
        found = _found_out(writer, turn) if writer.status is TransactionStatus.UNKNOWN else "aborted"
        if found == "committed":
            return
        raise (not_committed(fence, text) if found == "aborted" else unknown(fence, text)) from error
    if said != "COMMIT":
        raise not_committed(fence, "the database dropped the transaction in silence")


def _refuse_ended(writer: WriterConnection, turn: _Turn) -> None:
    """Refuse when the transaction that holds the turn is no longer there to be committed."""
    status = writer.status
    if status is TransactionStatus.UNKNOWN:
        raise not_committed(turn.fence, "the connection was gone before the commit")
    if status is TransactionStatus.INERROR:
        writer.roll_back()  # a transaction that is in error does not tell its number
        if _became(writer, turn) == "committed":
            raise ended_within(turn.fence)
        raise not_committed(turn.fence, "a statement of the block failed, which ends the transaction")
    if status is TransactionStatus.IDLE or writer.transaction_number() != turn.transaction:
        raise ended_within(turn.fence)


def _found_out(writer: WriterConnection, turn: _Turn) -> str | None:
    """Return what became of a commit whose answer was lost with the connection; None when nobody says."""
    deadline = time.monotonic() + RECONNECT_SECONDS
    while time.monotonic() < deadline:
        with suppress(psycopg.Error, ResliceError), closing(writer.reopened()) as connection:
            became = _became(WriterConnection(connection), turn)
            if became != "in progress":
                return became
        time.sleep(0.2)
    return None


def _became(writer: WriterConnection, turn: _Turn) -> str | None:
    """Return what the server knows of the transaction of a turn: committed, aborted, in progress, or None."""
    generation = f"SELECT generation FROM {turn.fence.where}.fences WHERE table_name = $table_name"
    try:
        status, now = writer.execute(
            f"SELECT pg_xact_status(CAST($number AS xid8)), ({generation})",
            {"number": turn.transaction, "table_name": turn.fence.table},
        )[0]
    except driver.InvalidParameterValue:  # the server came back without it, as it may after a crash or on a standby
        return "aborted"
    finally:
        writer.roll_back()
    if status == "committed" and now < turn.generation:  # the number was given to another transaction since
        return "aborted"
    became: str | None = status
    return became


@contextmanager
def _told(writer: WriterConnection, table: str, wait: timedelta) -> Iterator[None]:
    """Roll back what we began when an error passes, and tell one of the driver as one of ours."""
    try:
        yield
    except Misused:
        raise
    except psycopg.Error as error:
        writer.roll_back()
        raise _told_as(error, table, wait) from error
    except BaseException:
        writer.roll_back()
        raise


def _told_as(error: psycopg.Error, table: str, wait: timedelta) -> ResliceError:
    text = lines_of(error)[0]
    if isinstance(error, driver.LockNotAvailable | driver.DeadlockDetected):
        return not_our_turn(table, wait)
    if isinstance(error, driver.ReadOnlySqlTransaction):
        return no_rights(table, text, "open the connection for writing, to the server that takes writes")
    if isinstance(error, driver.InsufficientPrivilege):
        return no_rights(table, text, "have the owner of the ledger grant SELECT and UPDATE on its table fences")
    return not_available(table, text)
