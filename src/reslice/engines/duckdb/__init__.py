"""DuckDB, embedded: how a database file is opened, or an open connection of the caller is used."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb

from reslice.contract import Connection
from reslice.engines.duckdb.engine import DuckDB
from reslice.engines.duckdb.errors import KEY_VIOLATION, hide, lines_of
from reslice.engines.duckdb.target import rights_missing
from reslice.engines.failures import misused
from reslice.errors import SAME_AGAIN, Failure, Refused, ResliceError, Retryable

__all__ = ["KEY_VIOLATION", "DuckDB", "adopt", "connect", "create"]

WAIT_STEP_SECONDS = 0.05
OWN_WAIT_SECONDS = 5.0
"""How long a connection of this very process is waited for: that of another thread may go, that of the caller not."""


def create(path: Path) -> None:
    """Make a new database file at `path`; one that is there already is left as it is."""
    duckdb.connect(str(path)).close()


def connect(connection: Connection, *, read_only: bool, wait: timedelta, on_wait: Callable[[str], None]) -> DuckDB:
    """Open the database file; wait for another process to let go of it.

    Raises Misused[connection] when there is no such file (none is ever made), Retryable[database_busy] when it is still
    held after `wait`, Refused[target_rights] when it is to be written and this user may not.
    """
    path = connection.path
    if path is None:
        found, after = "a database in memory exists only in its own process", "reslice.open(path, connection=…)"
        raise misused(connection.shown, Failure("connection", _asked(connection), (found,), after))
    if not path.is_file():
        found, after = "there is no such database file, and none is made", "correct the connection, or make the file"
        raise misused(connection.shown, Failure("connection", _asked(connection), (found,), after))
    missing = () if read_only else rights_missing(path)
    if missing:
        failure = Failure("target_rights", _asked(connection), missing, "run as a user who may write")
        raise Refused(connection.shown, [failure], unchanged="nothing was read or written")
    hide(path, connection.shown)
    began, longest = time.monotonic(), wait.total_seconds()
    while True:
        try:
            return DuckDB(duckdb.connect(str(path), read_only=read_only), shown=connection.shown, path=path)
        except duckdb.Error as error:
            most = min(longest, OWN_WAIT_SECONDS) if _is_held_here(error) else longest
            if not _is_held(error) or time.monotonic() - began >= most:
                raise _not_opened(connection, error) from error
            on_wait(_held_words(error))
        time.sleep(WAIT_STEP_SECONDS)


def _asked(connection: Connection) -> str:
    return f"connection: {connection.shown}"


def _is_held(error: duckdb.Error) -> bool:
    return "lock on file" in str(error) or _is_held_here(error)


def _is_held_here(error: duckdb.Error) -> bool:
    """Whether this process has the file open, to write where it is to be read or the other way round."""
    return "different configuration" in str(error)


def _held_words(error: duckdb.Error) -> str:
    """Say who has the file open."""
    if _is_held_here(error):
        return "this process has the file open itself, in another mode"
    holder = re.search(r"held in (.+?) \(PID (\d+)\)", str(error))
    return f"process {holder[2]} ({holder[1]}) has the file open" if holder else "another process has the file open"


def _not_opened(connection: Connection, error: duckdb.Error) -> ResliceError:
    text = lines_of(error)[0]
    if "not a valid DuckDB database" in text or "serialized by" in text or "version number" in text:
        found = f"DuckDB {duckdb.__version__} cannot read it: it is no DuckDB database, or one of a newer version"
        after = "correct the connection, or install a newer duckdb"
        return misused(connection.shown, Failure("connection", _asked(connection), (found,), after))
    found = _held_words(error) if _is_held(error) else text
    kind = "database_busy" if _is_held(error) else "database_unavailable"
    asked = f"{_asked(connection)}; DuckDB lets one process write, or several read"
    after = "pass that connection: reslice.open(path, connection=…)" if _is_held_here(error) else SAME_AGAIN
    failure = Failure(kind, asked, (found,), after)
    return Retryable(connection.shown, [failure], unchanged="nothing was read or written")


def adopt(connection: Any, shown: str) -> DuckDB:
    """Use an open connection of the caller, through a cursor of its own: the caller's transaction is not touched."""
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        found = f"{type(connection).__name__} is not an open DuckDB connection"
        after = "reslice.open(path, connection=duckdb.connect(…))"
        raise misused(shown, Failure("connection", "connection=", (found,), after))
    try:
        return DuckDB(connection.cursor(), shown=shown, path=None)
    except duckdb.Error as error:
        found, after = lines_of(error)[0], "pass an open connection"
        raise misused(shown, Failure("connection", "connection=", (found,), after)) from error
