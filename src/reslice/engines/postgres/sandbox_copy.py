"""Copying a PostgreSQL database: by the server while nobody is connected to it, else by pg_dump and pg_restore."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors as driver

from reslice.contract import Connection
from reslice.engines.failures import interrupted
from reslice.engines.postgres.dump import copied
from reslice.engines.postgres.errors import lines_of
from reslice.engines.sql import quote, text_literal
from reslice.errors import SAME_AGAIN, Failure, Refused, ResliceError, Retryable

PREFIX = "reslice_prove_"
"""How the names of sandboxes begin; twelve characters follow."""
LEFT = f"""
SELECT datname FROM pg_catalog.pg_database AS d JOIN pg_catalog.pg_roles AS r ON r.oid = d.datdba
WHERE r.rolname = current_user AND starts_with(CAST(datname AS text), '{PREFIX}') AND coalesce(
    (SELECT description FROM pg_catalog.pg_shdescription AS s WHERE s.objoid = d.oid
        AND s.classoid = 'pg_catalog.pg_database'::regclass), '') <> 'kept'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_stat_activity AS a
        WHERE a.application_name = substr(d.datname, 1, length('{PREFIX}') + 12))
ORDER BY datname
"""
"""The sandboxes of this role that no living proof bears the name of."""
STEP_SECONDS = 0.02
STOP_SECONDS = 0.1
NOT_RUN = "the command was not run"


def refuse_without_right(connection: Connection, keeper: psycopg.Connection[Any]) -> None:
    """Raise Refused[sandbox] when the role may make no database."""
    row = keeper.execute(
        "SELECT rolcreatedb OR rolsuper, quote_ident(rolname) FROM pg_catalog.pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is not None and not row[0]:
        found, after = f"the role {row[1]} may make no database", f"ALTER ROLE {row[1]} CREATEDB, or use --in-place"
        raise refused(connection, (found,), after)


def refused(connection: Connection, found: tuple[str, ...], after: str) -> Refused:
    """Return the refusal for a database of which no copy can be made."""
    failure = Failure("sandbox", "a copy of the database to run the command in", found, after)
    return Refused(connection.shown, [failure], unchanged=NOT_RUN)


def made(
    connection: Connection,
    keeper: psycopg.Connection[Any],
    name: str,
    parameters: dict[str, str],
    is_stopped: Callable[[], bool],
) -> tuple[str, ...]:
    """Copy the database; return what there is to say of how. Raises Interrupted when it is stopped meanwhile."""
    try:
        with _stoppable(keeper, is_stopped):
            create(keeper, name, parameters["dbname"])
        return copy_settings(keeper, parameters["dbname"], name)
    except (driver.ObjectInUse, driver.InsufficientPrivilege) as error:
        why = lines_of(error)[0]
    except psycopg.Error as error:
        raise not_made(connection, error) from error
    try:
        create(keeper, name, "template0", _locale(keeper, parameters["dbname"]))
    except psycopg.Error as error:
        raise not_made(connection, error) from error
    found = copied(parameters, {**parameters, "dbname": name}, is_stopped)
    if is_stopped():
        raise interrupted(connection.shown)
    if found:
        drop(keeper, name)
        others = "let the other sessions end" if "accessed" in why else "run as the database's owner"
        after = f"{others}, or put pg_dump and pg_restore of the server's version on the PATH, or use --in-place"
        raise refused(connection, (why, *found), after)
    told = f"the database was copied by pg_dump: {why}"
    return (told, *copy_settings(keeper, parameters["dbname"], name))


@contextmanager
def _stoppable(keeper: psycopg.Connection[Any], is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Cancel the statement that runs when it is asked to stop, and raise Interrupted."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(STOP_SECONDS):
            if is_stopped():
                with suppress(psycopg.Error):
                    keeper.cancel_safe(timeout=5)
                return

    watcher = threading.Thread(target=watch, name="reslice-copy", daemon=True)
    watcher.start()
    try:
        yield
    except driver.QueryCanceled as error:
        if is_stopped():
            raise interrupted("the copy of the database") from error
        raise
    finally:
        is_over.set()
        watcher.join()


def _locale(keeper: psycopg.Connection[Any], database: str) -> str:
    """Return how a database is made that holds and sorts text as another one does."""
    row = keeper.execute(
        "SELECT format('ENCODING %%L LC_COLLATE %%L LC_CTYPE %%L', pg_encoding_to_char(encoding), datcollate, datctype)"
        " || CASE datlocprovider WHEN 'i' THEN format(' LOCALE_PROVIDER icu ICU_LOCALE %%L', locale)"
        " WHEN 'b' THEN format(' LOCALE_PROVIDER builtin BUILTIN_LOCALE %%L', locale) ELSE '' END"
        " FROM (SELECT *, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') AS locale"
        " FROM pg_catalog.pg_database AS d WHERE datname = %s) AS found",
        [database],
    ).fetchone()
    return str(row[0]) if row is not None else ""


_LISTS = ("search_path", "temp_tablespaces")
"""Settings that are lists of names: quoted whole they would be one name."""


def copy_settings(keeper: psycopg.Connection[Any], database: str, copy: str) -> tuple[str, ...]:
    """Give a copy the settings of the database and of this role in it, which no copy has; say which it may not have."""
    rows = keeper.execute(
        "SELECT setrole <> 0, unnest(setconfig), quote_ident(current_user) FROM pg_catalog.pg_db_role_setting AS s"
        " JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase WHERE d.datname = %s AND setrole IN"
        " (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user))",
        [database],
    ).fetchall()
    denied = []
    for is_of_role, setting, role in rows:
        key, _, value = setting.partition("=")
        of = f"ROLE {role} IN DATABASE {quote(copy)}" if is_of_role else f"DATABASE {quote(copy)}"
        text = value if key in _LISTS else text_literal(value)
        try:
            keeper.execute(f"ALTER {of} SET {quote(key)} TO {text}".encode())
        except psycopg.Error:
            denied.append(key)
    return (f"settings of the database that its copy does not have: {', '.join(denied)}",) if denied else ()


def not_made(connection: Connection, error: psycopg.Error) -> ResliceError:
    """Return the error for a copy that the server failed to make."""
    failure = Failure("database_unavailable", "a copy of the database", lines_of(error, 3), SAME_AGAIN)
    return Retryable(connection.shown, [failure], unchanged=NOT_RUN)


def create(keeper: psycopg.Connection[Any], name: str, template: str, more: str = "") -> None:
    """Make a database of another one. The server counts sessions that end right now for some moments longer."""
    until = time.monotonic() + 1.0
    while True:
        try:
            keeper.execute(f"CREATE DATABASE {quote(name)} TEMPLATE {quote(template)} {more}".encode())
            return
        except driver.ObjectInUse:
            if time.monotonic() > until:
                raise
        time.sleep(STEP_SECONDS)


def drop(keeper: psycopg.Connection[Any], name: str) -> None:
    """Drop a database, whoever is connected to it; one that is gone, or cannot be dropped, is left."""
    with suppress(psycopg.Error):
        keeper.execute(f"DROP DATABASE IF EXISTS {quote(name)} WITH (FORCE)".encode())
