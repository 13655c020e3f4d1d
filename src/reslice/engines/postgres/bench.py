"""Where probes of a PostgreSQL server are tried: two connections, and a schema that is gone afterwards.

The schema is named `reslice_probe_…`, has a comment of ours, and is dropped however the probe ends. Where the process
is killed it stays, with two small tables; nobody then holds its lock, by which the next probe knows it and drops it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from reslice.contract import Contract
from reslice.engines import probing
from reslice.engines.dialect import Dialect
from reslice.engines.postgres import locks
from reslice.engines.postgres.types import PRECISION
from reslice.engines.sql import quote, text_literal
from reslice.tables import Column, Family

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

PREFIX = "reslice_probe_"
OURS = "reslice: doctor --probe tries here what the server does, and drops it"
PROBE = "probe"
"""What the lock of a probe's schema stands for."""
PATIENCE_SECONDS = 10.0
"""How long anything that is tried may take."""
SETTINGS = f"SET statement_timeout = '{PATIENCE_SECONDS:g}s'; SET lock_timeout = '{PATIENCE_SECONDS:g}s'"

_LEFT = f"""
SELECT n.nspname FROM pg_catalog.pg_namespace AS n
WHERE starts_with(n.nspname, '{PREFIX}') AND obj_description(n.oid, 'pg_namespace') = {text_literal(OURS)}
    AND pg_has_role(n.nspowner, 'USAGE')
ORDER BY 1
"""


class Bench:
    """Two connections, `one` and `two`, and a place for tables that both see; `schema` is None where there is none."""

    def __init__(self, session: PostgresSession, contract: Contract, column: Column) -> None:
        self.contract = contract
        self.column = column
        self.dialect: Dialect = session.dialect
        self._session = session
        self.one: Connection = session.another()
        self.two: Connection = session.another()
        for connection in (self.one, self.two):
            connection.execute(SETTINGS)
        self.one.execute("SELECT set_config('TimeZone', %s, false)", (contract.slice.timezone,))
        self.schema: str | None = None

    @property
    def table(self) -> str:
        """The table of daily rows: in the schema, or where there is none, a temporary one."""
        return f"{quote(self.schema) if self.schema else 'pg_temp'}.daily"

    @property
    def ranged(self) -> str:
        """The table that values of ranges are put into."""
        return f"{quote(self.schema) if self.schema else 'pg_temp'}.ranged"

    def make_schema(self) -> str:
        """Make the schema and hold its lock; return why there can be none, or nothing."""
        role, database, may_make = self.one.execute(
            "SELECT current_user, current_database(), has_database_privilege(current_database(), 'CREATE')"
        ).fetchall()[0]
        if not may_make:
            return f"the role {role} may make no schema in the database {database}, which needs CREATE on it"
        self._drop_left()
        name = PREFIX + secrets.token_hex(6)
        self.one.execute(f"SELECT pg_advisory_lock({locks.key(PROBE, text_literal(name))})".encode())
        with self.one.transaction():
            self.one.execute(f"CREATE SCHEMA {quote(name)}".encode())
            self.schema = name
            self.one.execute(f"COMMENT ON SCHEMA {quote(name)} IS {text_literal(OURS)}".encode())
        return ""

    def _drop_left(self) -> None:
        """Drop the schemas of probes that were killed: those whose lock nobody holds."""
        for (name,) in self.one.execute(_LEFT.encode()).fetchall():
            key = locks.key(PROBE, text_literal(name))
            if self.one.execute(f"SELECT pg_try_advisory_lock({key})".encode()).fetchall()[0][0]:
                self.one.execute(f"DROP SCHEMA IF EXISTS {quote(name)} CASCADE".encode())
                self.one.execute(f"SELECT pg_advisory_unlock({key})".encode())

    def close(self) -> None:
        """Drop the schema and let go of the connections; one that was lost is opened again for it."""
        with suppress(psycopg.Error):
            self.two.close()
        try:
            if self.schema is not None:
                self._drop()
        finally:
            self.one.close()

    def _drop(self) -> None:
        statement = f"DROP SCHEMA IF EXISTS {quote(self.schema or '')} CASCADE".encode()
        try:
            self.calm(self.one)
            self.one.execute(statement)
        except psycopg.Error:
            self.one.close()
            self.one = self._session.another()
            self.one.execute(statement)

    # --- statements -------------------------------------------------------------------------------------------------

    def fresh(self) -> None:
        """Leave no table, no transaction and no lock of the probe before; Interrupted when somebody asked to stop."""
        self._session.stop_if_asked()
        if self.two.closed:
            self.two = self._session.another()
            self.two.execute(SETTINGS)
        for connection in (self.two, self.one):
            self.calm(connection)
        self.one.execute(f"DROP TABLE IF EXISTS {self.table}, {self.ranged}".encode())

    def calm(self, connection: Connection) -> None:
        """Roll back what is open."""
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.execute("ROLLBACK")

    def fill(self, *, key: bool = False) -> None:
        """Make the table of daily rows: two on the first day, one on the second."""
        unique = ", PRIMARY KEY (day, channel)" if key else ""
        self.ask(f"CREATE TABLE {self.table} (day date, channel text, n integer{unique})")
        rows = "('2024-03-01', 'web', 1), ('2024-03-01', 'store', 2), ('2024-03-02', 'web', 3)"
        self.ask(f"INSERT INTO {self.table} VALUES {rows}")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement on the first connection and return its rows, where it has any."""
        return asked(self.one, statement)

    def rows(self, where: str = "true") -> list[tuple[Any, ...]]:
        """Return the rows of the table."""
        return self.ask(f"SELECT CAST(day AS text), channel, n FROM {self.table} WHERE {where} ORDER BY 1, 2, 3")

    def fitted(self, text: str) -> str:
        """Return the text of a slice value; where the column is coarser, of the last value that it can hold."""
        found = PRECISION.search(self.column.type)
        is_time = self.column.family in (Family.TIMESTAMP, Family.TIMESTAMPTZ)
        return probing.cut_off(text, int(found[1]) if found and is_time else None)

    @contextmanager
    def waiting(self, connection: Connection, statement: str) -> Iterator[Waiting]:
        """Run a statement on one connection while the other goes on; it has ended afterwards."""
        other = self.two if connection is self.one else self.one
        waiting = Waiting(connection, other, statement)
        waiting.start()
        try:
            yield waiting
        finally:
            waiting.join()


class Waiting(threading.Thread):
    """A statement that runs on one connection while the other looks at it. `error` is what it ended with."""

    def __init__(self, connection: Connection, other: Connection, statement: str) -> None:
        super().__init__(daemon=True)
        self._asking, self._looking, self._statement = connection, other, statement
        self.error = ""

    def run(self) -> None:
        """Run the statement."""
        try:
            asked(self._asking, self._statement)
        except psycopg.Error as error:
            self.error = type(error).__name__

    def is_blocked(self) -> bool:
        """Whether it comes to wait for a lock that the other connection holds, rather than to end."""
        until = time.monotonic() + PATIENCE_SECONDS
        look = f"SELECT {self._looking.info.backend_pid} = ANY(pg_blocking_pids({self._asking.info.backend_pid}))"
        while self.is_alive() and time.monotonic() < until:
            if asked(self._looking, look)[0][0]:
                return True
            time.sleep(0.005)
        return False


def asked(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows, where it has any."""
    cursor = connection.execute(statement.encode())
    return cursor.fetchall() if cursor.description is not None else []


def failed(connection: Connection, statement: str) -> str:
    """Run one statement; return what the driver calls its error, empty when there is none."""
    try:
        asked(connection, statement)
    except psycopg.Error as error:
        return type(error).__name__
    return ""
