"""How a connection to PostgreSQL is opened: from the contract, or beside an open connection of the caller.

What the user gave, in the URL, the environment or a service file, stays; what was not given gets a value under which a
dead server or network is noticed within two minutes. No password is in a message, a name or a title.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from selectors import EVENT_READ, DefaultSelector
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from reslice.contract import Connection
from reslice.engines.postgres.connection_errors import Hidden, hidden, is_temporary, misused, not_opened, said

OLDEST = 160000
"""The oldest server_version_num there is support for."""

WAIT_STEP_SECONDS = 0.2
POOLER_SECONDS = 2.0
POOLER_ROUNDS = 20

DEFAULTS: Mapping[str, str] = {
    "fallback_application_name": "reslice",
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
    return reconnected(connection, shown)


def reconnected(connection: psycopg.Connection[Any], shown: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Return another connection like one that is open, or that was lost; raises as `open_connection`."""
    opened, error = _tried(opened_by(connection))
    if opened is None:
        assert error is not None
        password = connection.info.password
        raise not_opened(shown, error, Hidden((password,) if password else ()))
    return _new_enough(shown, opened)


def opened_by(connection: psycopg.Connection[Any]) -> str:
    """Return what another connection like one is opened by; its password is in it."""
    info, pgconn = connection.info, connection.pgconn
    parameters = {option.keyword.decode(): option.val.decode() for option in pgconn.info if option.val}
    for key in ("service", "hostaddr", "password"):
        parameters.pop(key, None)
    # Of several hosts the caller is connected to one.
    parameters |= {"host": info.host, "port": str(info.port)}
    parameters |= {key: value for key, value in (("hostaddr", info.hostaddr), ("password", info.password)) if value}
    return make_conninfo("", **parameters)


def address_of(host: str, port: int) -> str:
    """Return host and port of a server, as libpq settled on them, for those who know it by its address.

    A socket in a folder, or an abstract one, is of this machine and is no host: it is localhost then, as libpq itself
    looks for it in a password file. An IPv6 address stands in brackets, as in any URL.
    https://www.postgresql.org/docs/current/libpq-pgpass.html
    """
    if not host or host.startswith(("/", "@")):
        host = "localhost"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def behind_transaction_pooler(connection: psycopg.Connection[Any], dsn: str) -> str | None:
    """Return how a proxy was seen to give single transactions, not sessions, of a server process; None when it is not.

    `connection` is idle and in autocommit mode, and `dsn` is what it was opened by. A proxy tells the client another
    process than the server has. Such a one is asked further: while a second client is inside a transaction, the first
    has the server process to itself, or there is no session. A proxy that gives out processes in turn may let it seem
    so once, and not in every round. Where the answer is not None, `connection` may be closed.
    """
    hide = hidden(dsn, "")
    try:
        first = _asked(connection.pgconn)
        if first == connection.info.backend_pid:
            return None
        if first is None:
            return "a proxy gave no server process within two seconds"
        second, error = _tried(dsn)
        if second is not None:
            with closing(second):
                return next(filter(None, _rounds(connection.pgconn, second.pgconn, first)), None)
    except psycopg.Error as failed:
        error = failed
    assert error is not None
    if "statement pooling" in str(error):
        return "a proxy gives a server process for one statement, and allows no transactions"
    raise not_opened("a second connection", error, hide)


def _rounds(one: PGconn, other: PGconn, first: int) -> Iterator[str | None]:
    """Yield what each round shows; None when it shows nothing."""
    for _ in range(POOLER_ROUNDS):
        second = _asked(other, b"BEGIN; " + _OWN_PROCESS)
        again = _asked(one)
        if again is None:
            other.finish()
            if _answer(one) is None:
                one.finish()
            yield "a proxy gave the server process of one connection to another, and the first waits for it"
            return
        if second is None:
            # Every process is taken by a session, and the first connection still has its own.
            yield None if again == first else _moved(first, again)
            return
        if again != first:
            yield _moved(first, again)
        yield f"a proxy gave the server process {first} to two connections" if second == first else None
        _asked(other, b"ROLLBACK")


def _moved(first: int, again: int) -> str:
    return f"a proxy ran two statements of one connection in the server processes {first} and {again}"


def _asked(pgconn: PGconn, statement: bytes = _OWN_PROCESS) -> int | None:
    """Return the number a statement ends with; None when none came within two seconds."""
    pgconn.send_query(statement)
    pgconn.flush()
    return _answer(pgconn)


def _answer(pgconn: PGconn) -> int | None:
    deadline, number, failed = time.monotonic() + POOLER_SECONDS, None, b""
    with DefaultSelector() as selector:
        selector.register(pgconn.socket, EVENT_READ)
        while True:
            while pgconn.is_busy():
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    return None
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            failed = failed or (result.error_message if result.status == ExecStatus.FATAL_ERROR else b"")
            if result.ntuples:
                number = int(result.get_value(0, 0) or b"0")
    if failed:
        raise psycopg.OperationalError(failed.decode(errors="replace"))
    return number


def _tried(dsn: str) -> tuple[psycopg.Connection[tuple[Any, ...]] | None, psycopg.Error | None]:
    """Return a connection, or why there is none."""
    try:
        given = _given(dsn)
        more: dict[str, Any] = {key: value for key, value in DEFAULTS.items() if key not in given}
        opened = psycopg.connect(dsn, autocommit=True, prepare_threshold=None, client_encoding="UTF8", **more)
        return opened, None
    except psycopg.Error as error:
        return None, error
    except UnicodeError:
        return None, psycopg.ProgrammingError("the host is none that a host can be called")


def _given(dsn: str) -> set[str]:
    """Return the options that the URL, the environment or a service file give a value.

    libpq knows where to look. It is started with hosts and ports that do not match, which it refuses before it reads a
    password or opens a socket, and tells what it has gathered until then.
    """
    probe = {**conninfo_to_dict(dsn), "host": "a,b", "hostaddr": "", "port": "1,2,3"}
    pgconn = pq.PGconn.connect_start(make_conninfo("", **probe).encode())
    try:
        return {option.keyword.decode() for option in pgconn.info if option.val}
    finally:
        pgconn.finish()


def _new_enough(shown: str, opened: psycopg.Connection[tuple[Any, ...]]) -> psycopg.Connection[tuple[Any, ...]]:
    if opened.info.server_version >= OLDEST:
        return opened
    version = (opened.info.parameter_status("server_version") or "of an unknown version").split(" ")[0]
    opened.close()
    raise misused(shown, (f"PostgreSQL {version}; reslice needs 16 or newer",), "use a newer server")
