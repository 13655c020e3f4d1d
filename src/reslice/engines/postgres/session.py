"""One PostgreSQL connection: statements, transactions, what there is in the database, and being stopped.

Statements go through the extended protocol: one at a time, with parameters bound by the server, whatever their text is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

import psycopg
from psycopg import errors as driver
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.types.string import StrDumper, StrDumperUnknown

from reslice.contract import Contract, SqlFile
from reslice.engines.dialect import Dialect
from reslice.engines.failures import misused
from reslice.engines.postgres.catalog import columns_in, columns_of, comment_on, ledgers
from reslice.engines.postgres.dialect import PostgresDialect
from reslice.engines.postgres.errors import (
    NEW_CONNECTION,
    NOT_UNDERSTOOD,
    failed,
    is_not_understood,
    lines_of,
    query_failed,
)
from reslice.engines.postgres.marks import numbered, own_number
from reslice.engines.postgres.waiting import Lock
from reslice.engines.postgres.watch import WHO, Watch
from reslice.engines.query import Bound
from reslice.engines.session import SqlSession
from reslice.engines.sql import column_list, quote
from reslice.errors import Failure, ResliceError
from reslice.parameters import READING_VERBS, main_verb
from reslice.tables import Column, Target

SETTINGS = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "row_security": "off",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "timezone_abbreviations": "Default",
    "xmlbinary": "base64",
    "lc_numeric": "C",
    "lc_monetary": "C",
    "array_nulls": "on",
    "lock_timeout": "10s",
}
"""What the text of values, and the meaning of SQL, depends on. Rows that a policy would hide are an error, not less."""


CLIENT_CHECK = "10s"
"""How often the server looks, during a statement, whether this client is still there."""
KEEPALIVES = {"tcp_keepalives_idle": "60", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "6"}
"""By which the server notices in two minutes, and not in two hours, that the host of an idle client is gone."""
IDLE = "30s"
"""How long the server waits in a transaction for a client that says nothing, until a contract says how long."""


DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
"""What is said to be published outlives the server's end; more than that, as for standbys, stays as it was set."""

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""Begins a transaction in which every statement sees what was committed before it, whatever the default is."""


class _ExactNumber(Loader):
    """A number of any size: an int where it has no fraction written, as PostgreSQL adds integers up to one."""

    def load(self, data: Any) -> int | Decimal:
        text = bytes(data).decode()
        return int(text) if text.removeprefix("-").isdecimal() else Decimal(text)


class PostgresSession(SqlSession):
    """A connection that runs one statement at a time. `interrupt` may be called from any thread."""

    driver_error: ClassVar[type[Exception]] = psycopg.Error
    not_understood: ClassVar[tuple[type[Exception], ...]] = NOT_UNDERSTOOD

    def __init__(
        self, connection: psycopg.Connection[Any], shown: str, reopen: Callable[[], psycopg.Connection[Any]]
    ) -> None:
        super().__init__(shown)
        self.was_reopened = False
        """Whether the connection was lost and made again, which temporary tables do not outlive."""
        self._reopen = reopen
        self._watch: Watch | None = None
        self._awaited: Lock | None = None
        self._use(connection)

    def _use(self, connection: psycopg.Connection[Any]) -> None:
        """Take a connection, and pin what the meaning and the text of values may depend on."""
        connection.adapters.register_loader("numeric", _ExactNumber)
        connection.adapters.register_dumper(Bound, StrDumperUnknown)
        connection.adapters.register_dumper(str, StrDumper)  # text is text: its type is not guessed from the statement
        self._end_watch()
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)
        is_utf8 = connection.info.parameter_status("server_encoding") in ("UTF8", "SQL_ASCII")
        self.dialect: Dialect = PostgresDialect(is_utf8=is_utf8)
        try:
            with self.translated(None, NEW_CONNECTION):
                self._pin_all()
                self._watch = Watch(connection, self.execute(WHO)[0], self._reopen, self._tell)
        except BaseException:
            connection.close()
            raise

    def _pin_all(self) -> None:
        """Pin what does not depend on a contract, for as long as the connection is."""
        settings = {**SETTINGS, **KEEPALIVES, "idle_in_transaction_session_timeout": IDLE}
        # Functions by their full name: until the path is pinned, one of another schema may bear the short one.
        pinned = ", ".join(f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in settings.items())
        schemas, self.role = self.execute("SELECT pg_catalog.current_schemas(false), current_user")[0]
        path = column_list(name for name in schemas if name not in ("pg_catalog", "pg_temp"))
        self.execute(f"SELECT {pinned}, pg_catalog.set_config('search_path', $path, false)", {"path": path})
        self.execute(DURABLE)
        with suppress(driver.InvalidParameterValue):  # the server's platform cannot: idle clients are all it notices
            self.execute(f"SELECT set_config('client_connection_check_interval', '{CLIENT_CHECK}', false)")

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; of one that writes, and returns no rows, how many it wrote.

        Interrupted when `interrupt` was called.
        """
        self.stop_if_asked()
        text, values = numbered(statement, parameters or {})
        try:
            with self._watched():
                self._cursor.execute(text, values)
        except psycopg.OperationalError as error:
            self._raise_when_stopped(error)
            raise
        if self._cursor.description is None:
            return [(self._cursor.rowcount,)] if self._cursor.rowcount >= 0 else []
        return self._cursor.fetchall()

    def _watched(self) -> AbstractContextManager[None]:
        """Return a context in which the wait for an answer is not for ever."""
        if self._watch is None:
            return nullcontext()
        return self._watch.asking(is_ending=self._is_ending, lock=self._awaited)

    def _tell(self, found: str) -> None:
        self.on_wait(found)

    @contextmanager
    def waiting_for(self, lock: Lock) -> Iterator[None]:
        """Have it told who holds a lock, when the statement inside does not get it within a moment."""
        self._awaited = lock
        try:
            yield
        finally:
            self._awaited = None

    def _raise_when_stopped(self, error: psycopg.OperationalError) -> None:
        """Raise Interrupted for what ended because it was asked to, and what the watch said where it cut the wait."""
        cut = self._watch.cut if self._watch is not None and self.is_lost else None
        is_stopped = self._interrupted.is_set() and not self._is_ending
        if is_stopped and (cut is not None or isinstance(error, driver.QueryCanceled)):
            raise self.stopped() from error
        if cut is not None:
            raise psycopg.OperationalError(cut) from error

    def run(self, statement: str) -> str:
        """Run one statement and return what the server says it has done: COMMIT of what was aborted is a ROLLBACK."""
        self.execute(statement)
        return self._cursor.statusmessage or ""

    def parsed(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[str, int, int]]:
        """Return name, type and modifier of each column that a statement would return; it is not executed."""
        self.stop_if_asked()
        text, values = numbered(statement, parameters)
        types = [0 if isinstance(value, Bound) else self._connection.adapters.types["text"].oid for value in values]
        server = self._connection.pgconn
        for result in (server.prepare(b"", text.encode(), types), server.describe_prepared(b"")):
            if result.status != ExecStatus.COMMAND_OK:
                raise driver.error_from_result(result, "utf-8")
        places = range(result.nfields)
        return [((result.fname(place) or b"").decode(), result.ftype(place), result.fmod(place)) for place in places]

    def another(self) -> psycopg.Connection[Any]:
        """Return another connection, which is opened as this one was, and is the caller's to close."""
        return self._reopen()

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone: the server, or what lies between, has ended it."""
        return self._connection.closed

    @property
    def is_ending(self) -> bool:
        """Whether what runs ends a run."""
        return self._is_ending

    def reopen(self) -> None:
        """Connect again after the connection was lost; temporary tables and session locks of the old one are gone."""
        self._end_watch()
        with suppress(psycopg.Error):
            self._connection.close()
        self._use(self._reopen())
        self.was_reopened = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or roll all of it back."""
        try:
            self.execute(BEGIN)
            yield
            self.commit()
        except BaseException:
            self.roll_back()
            raise

    def commit(self) -> None:
        """Commit; DatabaseError when the server has rolled back instead, which it does in silence."""
        if self.run("COMMIT") != "COMMIT":
            raise psycopg.DatabaseError("the transaction had failed, and COMMIT rolled it back")

    def roll_back(self) -> None:
        """Roll back whatever is open; nothing to roll back is fine."""
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status is not TransactionStatus.IDLE:
                self._cursor.execute("ROLLBACK")

    @contextmanager
    def translated(self, contract: Contract | None, doing: str) -> Iterator[None]:
        """Roll back whatever is open when an error passes, and tell one of the driver as one of ours."""
        try:
            yield
        except psycopg.Error as error:
            self.roll_back()
            about, place = (contract.name, contract.table) if contract else (self.shown, "every table")
            unchanged = f"{place} is as it was; nothing was written"
            raise failed(about, error, doing, unchanged=unchanged, role=self.role) from error
        except BaseException:
            self.roll_back()
            raise

    def pin(self, contract: Contract) -> None:
        """Pin the zone of the contract, how long locks are waited for, and how long a transaction's client is."""
        self.execute(
            "SELECT set_config('TimeZone', $zone, false),"
            " set_config('idle_in_transaction_session_timeout', $idle, false),"
            " set_config('lock_timeout', $lock, false)",
            {
                "zone": contract.slice.timezone,
                "idle": milliseconds(contract.timeouts.idle),
                "lock": milliseconds(contract.timeouts.lock),
            },
        )

    def check_select(self, query: SqlFile, body: str) -> None:
        """Refuse what is no SELECT; Misused[source_invalid]. That it is one statement is the protocol's own rule."""
        if main_verb(body) not in READING_VERBS - {"FROM"}:
            found = f"{query.name} is no SELECT"
            failure = Failure("source_invalid", "one SELECT per file", (found,), f"correct {query.name}")
            raise misused(query.name, failure)
        if mark := own_number(query.text):
            found = f"{query.name} has {mark}, and parameters of a source have names"
            asked = "parameters are written :start and :end"
            failure = Failure("source_invalid", asked, (found,), f"correct {query.name}")
            raise misused(query.name, failure)

    def query_failed(self, contract: Contract, query: SqlFile, error: Exception) -> ResliceError:
        """Return the error for a SQL file that could not be understood (2), or could not be evaluated (4)."""
        assert isinstance(error, psycopg.Error), "a query fails with an error of the driver"
        return query_failed(contract, query, error, is_understood=not is_not_understood(error))

    def columns_of(self, table: str, wanted: Iterable[str]) -> tuple[Column, ...]:
        """Return the columns of a temporary table, in its order."""
        return columns_of(self, table)

    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables of a schema that this user may read: table, column, type, in order."""
        return columns_in(self, schema)

    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger that this user may read."""
        return ledgers(self)

    def comment_on(self, catalog: str, schema: str, name: str) -> str | None:
        """Return the comment of the view of a name: `none` where it has none, empty for a table, None for nothing."""
        return comment_on(self, schema, name)

    def way_on_without_view(self, error: Exception, view: str, target: Target) -> tuple[str, str]:
        """Return what helps where a view that is there has columns of other names, which it keeps for ever."""
        if not isinstance(error, driver.InvalidTableDefinition):
            return "method_unsupported", "use  method: replace_slice"
        name = view.removeprefix(f"{quote(target.catalog)}.")
        return "view_columns", f"drop the view, which the next run makes again, without its grants:  DROP VIEW {name}"

    def words_of(self, error: Exception) -> str:
        """Return the first line of what the server says."""
        assert isinstance(error, psycopg.Error), "words of the driver are its own errors"
        return lines_of(error)[0]

    def progress(self) -> float | None:
        """Return None: PostgreSQL does not tell how far a SELECT got."""
        return None

    def _cancel(self) -> None:
        if self._connection.closed:
            return
        if self._watch is not None:
            self._watch.stop()
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=5)

    def close(self) -> None:
        """Let go of the connection; its temporary tables and locks are gone."""
        self.ask_no_more()
        self._end_watch()
        with suppress(psycopg.Error):
            self._connection.close()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def milliseconds(limit: timedelta) -> str:
    """Return a limit as PostgreSQL takes it; none is zero, which would be no limit."""
    return f"{max(round(limit.total_seconds() * 1000), 1)}ms"
