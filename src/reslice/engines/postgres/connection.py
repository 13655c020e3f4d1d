"""How a connection to PostgreSQL is opened: from the contract, or beside an open connection of the caller.

What the user gave, in the URL, the environment or a service file, stays; what was not given gets a value under which a
dead server or network is noticed within two minutes. No password is in a message, a name or a title.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn

from reslice.contract import Connection
from reslice.engines.postgres.connection_errors import Hidden, hidden, is_temporary, misused, not_opened, said

OLDEST = 160000
"""The oldest server_version_num there is support for."""

WAIT_STEP_SECONDS = 0.2
POOLER_SECONDS = 2.0
POOLER_ROUNDS = 8

DEFAULTS: Mapping[str, str] = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_OWN_PROCESS = b"SELECT pg_catalog.pg_backend_pid()"


def open_connection(
    connection: Connection, wait: timedelta, on_wait: Callable[[str], None]
) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a new connection in autocommit mode; wait for a server that says it is about to take one.

    Raises Misused[connection] when something has to be corrected, Retryable[database_unavailable] when the server is
    not there, or still not ready after `wait`.
    """
    hide = hidden(connection.url, connection.shown)
    began = time.monotonic()
    while True:
        opened, error = _tried(connection.url)
        if opened is not None:
            return _new_enough(connection.shown, opened)
        assert error is not None
        if not is_temporary(error) or time.monotonic() - began >= wait.total_seconds():
            # Raised outside the handler: what the driver said whole is in no chain of causes.
            raise not_opened(connection.shown, error, hide)
        on_wait(said(error, hide)[0])
        time.sleep(WAIT_STEP_SECONDS)


def same_parameters(
    connection: psycopg.Connection[Any], shown: str = "connection="
) -> psycopg.Connection[tuple[Any, ...]]:
    """Return another connection to the server of the caller's, as the same role; the caller's is only looked at.

    What the caller set in its session is not taken along. Raises as `open_connection`, without waiting.
    """
    if not isinstance(connection, psycopg.Connection) or connection.closed:
        kind = "it is closed" if isinstance(connection, psycopg.Connection) else type(connection).__name__
        found = f"not an open connection of psycopg 3: {kind}"
        raise misused(shown, (found,), "reslice.open(path, connection=psycopg.connect(…))")
    info, pgconn = connection.info, connection.pgconn
    parameters = {option.keyword.decode(): option.val.decode() for option in pgconn.info if option.val}
    for key in ("service", "hostaddr", "password"):
        parameters.pop(key, None)
    # Of several hosts the caller is connected to one.
    parameters |= {"host": info.host, "port": str(info.port)}
    parameters |= {key: value for key, value in (("hostaddr", info.hostaddr), ("password", info.password)) if value}
    opened, error = _tried(make_conninfo("", **parameters))
    if opened is None:
        assert error is not None
        raise not_opened(shown, error, Hidden((info.password,) if info.password else ()))
    return _new_enough(shown, opened)


def behind_transaction_pooler(connection: psycopg.Connection[Any], dsn: str) -> str | None:
    """Return how a proxy was seen to give single transactions, not sessions, of a server process; None when it is not.

    `connection` is idle and in autocommit mode, and `dsn` is what it was opened by. A proxy tells the client another
    process than the server has. Such a one is asked further: while a second client is inside a transaction, the first
    is still on its own server process, or there is no session. A proxy that gives out processes in turn may let that
    seem so once; not in every one of several rounds.
    """
    first = _asked(connection.pgconn, POOLER_SECONDS)
    if first is None or first == connection.info.backend_pid:
        return None
    second, error = _tried(dsn)
    if second is None:
        assert error is not None
        raise not_opened("a second connection", error, hidden(dsn, ""))
    with second:
        for _ in range(POOLER_ROUNDS):
            if seen := _one_round(connection.pgconn, second, first):
                return seen
    return None


def _one_round(one: PGconn, second: psycopg.Connection[Any], first: int) -> str | None:
    """Return what shows that both connections share server processes; None when this round shows nothing."""
    try:
        other = _asked(second.pgconn, POOLER_SECONDS, b"BEGIN; " + _OWN_PROCESS)
    except psycopg.Error:
        return "a proxy allows no transactions"
    if other is None:
        # Every session has a process of its own and all are taken; or the first connection waits for one as well.
        other = -1
    again = _asked(one, POOLER_SECONDS)
    with suppress(psycopg.Error):
        second.pgconn.finish() if other == -1 else _asked(second.pgconn, POOLER_SECONDS, b"ROLLBACK")
    if again is None:
        _answer(one, time.monotonic() + POOLER_SECONDS)
        return "a proxy gave the server process of this connection to another client"
    if again != first:
        return f"two statements of one connection ran in the server processes {first} and {again}"
    return None if other != first else f"two connections shared the server process {first}"
