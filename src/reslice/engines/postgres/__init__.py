"""PostgreSQL: how a server is connected to, or a connection beside that of the caller is opened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg

from reslice.contract import Connection
from reslice.engines.failures import misused
from reslice.engines.postgres.connection import (
    behind_transaction_pooler,
    open_connection,
    opened_by,
    same_parameters,
)
from reslice.engines.postgres.connection_errors import pooled
from reslice.engines.postgres.engine import Postgres
from reslice.errors import Failure

__all__ = ["KEY_VIOLATION", "Postgres", "adopt", "connect"]

KEY_VIOLATION = psycopg.errors.IntegrityError
"""What a statement ends with that breaks a key, or another constraint, which the database enforces."""


def connect(connection: Connection, *, read_only: bool, wait: timedelta, on_wait: Callable[[str], None]) -> Postgres:
    """Connect to the server of a contract.

    Raises Misused[connection] when it cannot be used as it is written, Retryable[database_unavailable] when it is not
    there, Refused[pooler] when it is to be written through a proxy that shares connections between transactions; where
    it is only to be read, staging raises that.
    """

    def opened() -> psycopg.Connection[Any]:
        return open_connection(connection, wait, on_wait)

    first = opened()
    pooler = behind_transaction_pooler(first, connection.url)
    if pooler is not None:
        first.close()
        if not read_only:
            raise pooled(connection.shown, pooler, unchanged="nothing was read or written")
        first = opened()
    engine = Postgres(first, shown=connection.shown, reopen=opened)
    engine.health.pooler = pooler
    return engine


def adopt(connection: Any, shown: str) -> Postgres:
    """Connect as an open connection of the caller is connected, whose transaction is not touched."""
    if not isinstance(connection, psycopg.Connection):
        found = f"{type(connection).__name__} is not an open psycopg connection"
        after = "reslice.open(path, connection=psycopg.connect(…)), or leave connection= out"
        raise misused(shown, Failure("connection", "connection=", (found,), after))

    def opened() -> psycopg.Connection[Any]:
        return same_parameters(connection)

    first = opened()
    pooler = behind_transaction_pooler(first, opened_by(connection))
    if pooler is not None:
        first.close()
        first = opened()
    engine = Postgres(first, shown=shown, reopen=opened)
    engine.health.pooler = pooler
    return engine
