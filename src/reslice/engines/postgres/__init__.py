"""PostgreSQL: how a server is connected to, or a connection beside that of the caller is opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from reslice.contract import Connection
from reslice.engines.failures import misused
from reslice.engines.postgres.connection import behind_transaction_pooler, open_connection, same_parameters
from reslice.engines.postgres.engine import Postgres
from reslice.errors import Failure, Refused

__all__ = ["KEY_VIOLATION", "Postgres", "adopt", "connect"]

KEY_VIOLATION = psycopg.errors.IntegrityError
"""What a statement ends with that breaks a key, or another constraint, which the database enforces."""


def connect(connection: Connection, *, read_only: bool, wait: timedelta, on_wait: Callable[[str], None]) -> Postgres:
    """Connect to the server of a contract.

    Raises Misused[connection] when it cannot be used as it is written, Retryable[database_unavailable] when it is not
    there, Refused[pooler] when it is to be written through a proxy that shares connections between transactions.
    """

    def opened() -> psycopg.Connection[Any]:
        return open_connection(connection, wait, on_wait)

    first = opened()
    found = None if read_only else behind_transaction_pooler(first, connection.url)
    if found is not None:
        first.close()
        asked = f"connection: {connection.shown}; a run keeps locks and temporary tables between its transactions"
        after = "name the server itself, or a pool in session mode"
        failure = Failure("pooler", asked, (found,), after)
        raise Refused(connection.shown, [failure], unchanged="nothing was read or written")
    engine = Postgres(first, shown=connection.shown, reopen=opened)
    engine.health.find_pooler = partial(_pooler, opened, connection.url)
    return engine


def _pooler(opened: Callable[[], psycopg.Connection[Any]], url: str) -> str | None:
    """Return how a proxy was seen to share connections between transactions; None where there is none."""
    with closing(opened()) as connection:
        return behind_transaction_pooler(connection, url)


def adopt(connection: Any, shown: str) -> Postgres:
    """Connect as an open connection of the caller is connected, whose transaction is not touched."""
    if not isinstance(connection, psycopg.Connection):
        found = f"{type(connection).__name__} is not an open psycopg connection"
        after = "reslice.open(path, connection=psycopg.connect(…)), or leave connection= out"
        raise misused(shown, Failure("connection", "connection=", (found,), after))

    def opened() -> psycopg.Connection[Any]:
        return same_parameters(connection)

    return Postgres(opened(), shown=shown, reopen=opened)
