"""A PostgreSQL database in which somebody's command may run: a copy made by the server, dropped afterwards.

`CREATE DATABASE … TEMPLATE` copies it file by file while nobody else is connected; otherwise pg_dump and pg_restore
copy what the role may read. A sandbox belongs to the connection that made it, which bears its name for as long as it
lives: one that a killed proof has left is known by that no connection does.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote as percent

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from reslice.contract import Connection
from reslice.engines.postgres import connect
from reslice.engines.postgres.connection import open_connection, opened_by
from reslice.engines.postgres.errors import failed
from reslice.engines.postgres.sandbox_copy import (
    LEFT,
    NOT_RUN,
    PREFIX,
    copy_settings,
    create,
    drop,
    made,
    refuse_without_right,
)
from reslice.engines.postgres.sandbox_way import TAKEN, VARIABLES, url_of
from reslice.engines.sandbox import Look, Way, Wish
from reslice.engines.sql import quote

WAIT = timedelta(seconds=5)
SETTLE_SECONDS = 30.0
STEP_SECONDS = 0.02
MAINTENANCE = ("postgres", "template1")
"""Databases from which another one can be made or dropped, in the order in which they are tried."""


def make(connection: Connection, wish: Wish) -> PostgresPlace:
    """Return a place for a command; what an earlier proof left that was killed is removed and named.

    Raises what a connection raises, and Refused[sandbox] where the role may make no database, or where the database is
    in use and there is no pg_dump.
    """
    parameters = _parameters(connection, wish.on_step)
    return InPlace(connection, parameters) if wish.in_place else Sandbox.of(connection, parameters, wish)


def _parameters(connection: Connection, on_step: Callable[[str], None]) -> dict[str, str]:
    """Return what the server was connected to by, as libpq settled on it; the connection is closed again."""
    opened = open_connection(connection, WAIT, lambda text: on_step(f"waiting: {text}"))
    try:
        settled = {key: str(value) for key, value in conninfo_to_dict(opened_by(opened)).items() if value is not None}
    finally:
        opened.close()
    given = {key for key, value in conninfo_to_dict(connection.url).items() if value}
    usual = {key for key in VARIABLES if key != "hostaddr" and (key, settled.get(key)) != ("sslmode", "prefer")}
    return {key: settled[key] for key in (*VARIABLES, *sorted(given)) if key in settled and key in usual | given}


class PostgresPlace:
    """What a copy and the database itself have in common."""

    def __init__(self, connection: Connection, parameters: dict[str, str], shown: str) -> None:
        self.connection = connection
        self.parameters = parameters
        self.shown = shown
        self.kept = ""
        self.notes: tuple[str, ...] = ()
        self.schema = f"{PREFIX}{secrets.token_hex(6)}"

    def way(self) -> Way:
        """Return how a command finds the database."""
        environment = {name: self.parameters[key] for key, name in VARIABLES.items() if key in self.parameters}
        url = url_of(self.parameters)
        password = self.parameters.get("password", "")
        hidden = tuple(dict.fromkeys(each for each in (password, percent(password, safe="")) if each))
        return Way(url, "", environment | {"RESLICE_URL": url}, TAKEN, hidden)

    @contextmanager
    def look(self, *, writes: bool = False) -> Iterator[Look]:
        """Connect to it; the schema of the evidence is made when it is not there."""
        with _looking(self._own(), writes=True) as engine:
            with engine.translated(None, "the schema of the evidence"):
                engine.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(self.schema)}")
            yield Look(engine, quote(self.schema))

    def _own(self) -> Connection:
        return replace(self.connection, url=url_of(self.parameters), shown=self.shown)

    def mark(self, table: str) -> str:
        """Return a digest of where the rows of a table are and who wrote them; empty where they have no place."""
        row = "hashtextextended(concat_ws(' ', tableoid, ctid, xmin), 0)"
        with suppress(psycopg.Error), closing(psycopg.connect(self._own().url, autocommit=True)) as opened:
            found = opened.execute(f"SELECT count(*), sum({row}) FROM {table}".encode()).fetchone()
            return str(found)
        return ""

    def is_in_use(self) -> bool:
        """Return False: in the database itself others are at work as well."""
        return False

    def is_locked_out(self, output: str) -> bool:
        """Return False: a server is open to many."""
        return False

    def settle(self) -> None:
        """Wait until no other session of the database is at work; one that goes on for too long is ended."""
        until = time.monotonic() + SETTLE_SECONDS
        with psycopg.connect(self._own().url, autocommit=True) as opened:
            while opened.execute(
                "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND usename = current_user"
            ).fetchone():
                if time.monotonic() > until:
                    opened.execute(
                        "SELECT pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity WHERE datname ="
                        " current_database() AND pid <> pg_backend_pid() AND usename = current_user"
                    )
                    return
                time.sleep(STEP_SECONDS)

    def put_back_by_hand(self, table: str) -> str:
        """Return the statements by which a person puts the rows from before back."""
        return f"BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {self.schema}.kept; COMMIT;"


class Sandbox(PostgresPlace):
    """A copy of the database; dropped when it is removed, whoever is connected to it."""

    def __init__(
        self, connection: Connection, parameters: dict[str, str], keeper: psycopg.Connection[Any], name: str
    ) -> None:
        super().__init__(connection, {**parameters, "dbname": name}, f"database {name}")
        self._real = parameters
        self._keeper = keeper
        self._name = name
        self._count = 1
        self._is_first = True
        self._has_origin = False

    @classmethod
    def of(cls, connection: Connection, parameters: dict[str, str], wish: Wish) -> Sandbox:
        """Make the first copy of a database, and one more that fresh copies are made of."""
        token = f"{PREFIX}{secrets.token_hex(6)}"
        keeper = _keeper(connection, parameters, token)
        sandbox = cls(connection, parameters, keeper, token)
        try:
            refuse_without_right(connection, keeper)
            sandbox.notes = _sweep(keeper)
            first = f"{token}_0" if wish.more else token
            copied_by = made(connection, keeper, first, parameters, wish.is_stopped)
            if wish.more:
                sandbox._has_origin = True
                create(keeper, token, first)
                copy_settings(keeper, first, token)
            sandbox.notes = (*sandbox.notes, *copied_by)
        except BaseException:
            sandbox.remove()
            raise
        return sandbox

    def is_in_use(self) -> bool:
        """Whether anybody is connected to it; asked from another database, so that it is not disturbed."""
        found = self._keeper.execute(
            "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE datname = %s AND backend_type = 'client backend' LIMIT 1",
            [self._name],
        )
        return found.fetchone() is not None

    def look_at_real(self) -> AbstractContextManager[Look]:
        """Connect to the database that this is a copy of, only to read."""
        return _looking_at_real(replace(self.connection, url=url_of(self._real)))

    def another(self) -> Sandbox:
        """Return a fresh copy of the database as it was copied first."""
        assert self._has_origin, "fresh copies are made of one that no command ran in"
        self._count += 1
        name = f"{self._name}_{self._count}"
        create(self._keeper, name, f"{self._name}_0")
        copy_settings(self._keeper, f"{self._name}_0", name)
        found = Sandbox(self.connection, self._real, self._keeper, name)
        found._is_first = False
        return found

    def keep(self) -> str:
        """Let the database stay, and return its URL without a password."""
        self._keeper.execute(f"COMMENT ON DATABASE {quote(self._name)} IS 'kept'")
        self._end(keep=self._name)
        return url_of({key: value for key, value in self.parameters.items() if key != "password"})

    def remove(self) -> None:
        """Drop the database, whoever is still connected to it."""
        if not self._is_first:
            drop(self._keeper, self._name)
            return
        self._end()

    def _end(self, keep: str = "") -> None:
        """Drop every copy but one, and let go of the server."""
        with suppress(psycopg.Error):
            rows = self._keeper.execute(
                "SELECT datname FROM pg_catalog.pg_database WHERE starts_with(datname, %s)", [self._name]
            ).fetchall()
            for (name,) in rows:
                if name != keep:
                    drop(self._keeper, name)
        self._keeper.close()


class InPlace(PostgresPlace):
    """The database itself; the evidence, and the rows from before, are in a schema of its own until it is removed."""

    def __init__(self, connection: Connection, parameters: dict[str, str]) -> None:
        super().__init__(connection, parameters, connection.shown)
        self.kept = f"schema {self.schema}"
        with psycopg.connect(self._own().url, autocommit=True) as opened:
            rows = opened.execute(
                "SELECT n.nspname FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_class AS c"
                " ON c.relnamespace = n.oid AND c.relname = 'kept'"
                " WHERE n.nspname LIKE 'reslice\\_prove\\_%' ORDER BY 1"
            ).fetchall()
        self.notes = tuple(
            f"schema {name} holds rows that a proof in place kept and did not put back, in its table kept"
            for (name,) in rows
        )

    def look_at_real(self) -> None:
        """Return None: there is no other database."""
        return

    def another(self) -> Sandbox:
        """Refuse: there is no copy, so there is no fresh one."""
        raise AssertionError("a proof in place has no copies")

    def keep(self) -> str:
        """Return the database: it is nobody's copy."""
        return self.shown

    def remove(self) -> None:
        """Drop the schema with what was kept; the database stays."""
        with psycopg.connect(self._own().url, autocommit=True) as opened:
            opened.execute(f"DROP SCHEMA IF EXISTS {quote(self.schema)} CASCADE".encode())


@contextmanager
def _looking(connection: Connection, *, writes: bool) -> Iterator[Any]:
    engine = connect(connection, read_only=not writes, wait=WAIT, on_wait=lambda _: None)
    try:
        with engine.translated(None, "the zone of the session"):
            engine.execute("SET TimeZone = 'UTC'")
        yield engine
    finally:
        engine.close()


@contextmanager
def _looking_at_real(connection: Connection) -> Iterator[Look]:
    with _looking(connection, writes=False) as engine:
        yield Look(engine, "")


def _keeper(connection: Connection, parameters: dict[str, str], name: str) -> psycopg.Connection[Any]:
    """Return a connection beside the database that bears the sandbox's name for as long as it lives."""
    error: psycopg.Error | None = None
    for database in MAINTENANCE:
        try:
            opened = psycopg.connect(
                make_conninfo("", **{**parameters, "dbname": database, "application_name": name}),
                autocommit=True,
                prepare_threshold=None,
            )
            with suppress(psycopg.Error):
                opened.execute("SET idle_session_timeout = 0")
            return opened
        except psycopg.Error as tried:
            error = tried
    assert error is not None
    raise failed(connection.shown, error, "a connection to make a database by", unchanged=NOT_RUN) from None


# What an earlier proof left behind.


def _sweep(keeper: psycopg.Connection[Any]) -> tuple[str, ...]:
    """Drop the sandboxes of proofs that are gone, and say so."""
    names = [name for (name,) in keeper.execute(LEFT.encode()).fetchall()]
    for name in names:
        drop(keeper, name)
    return tuple(f"dropped the database {name}, which a proof that was killed had left" for name in names)
