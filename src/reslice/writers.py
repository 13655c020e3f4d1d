"""The lock for live writers: programs of others that write to a target while reslice may be publishing it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from reslice import given
from reslice.errors import Failure, Misused

WAIT = timedelta(seconds=30)
"""How long a writer waits for its turn. A publish holds it for the time of its one transaction."""

LOCKS = {"duckdb": "reslice.engines.duckdb.writers", "psycopg": "reslice.engines.postgres.writers"}
"""The module that knows how writers of an engine take turns, by the package of its driver."""

KNOWN = "pass duckdb.connect(…) or psycopg.connect(…)"


@contextmanager
def writer_lock(connection: Any, table: str, *, schema: str = "reslice", wait: timedelta | str = WAIT) -> Iterator[Any]:
    """Let a live writer and the publishes of `table` take turns: inside, a transaction is open beside no publish.

        with reslice.writer_lock(connection, "daily_orders"):
            connection.execute("UPDATE daily_orders SET amount_cents = 4500 WHERE …")

    The transaction is begun here, on the given connection, committed when the block ends, and rolled back when it
    raises; that it was committed is looked up. A run that compared the slice before refuses (`base_moved`) and leaves
    the rows as the writer has; a publish under way is waited for. So nothing is lost, doubled, or slips in.

    `schema` is the contract's `ledger: {schema: …}`; `wait` is a timedelta, or text such as `10m`. A fence, and a
    ledger, that are missing are made first, in a transaction of their own. One table per block; a thread needs a
    connection of its own: on DuckDB `connection.cursor()` is one, on PostgreSQL it takes another `psycopg.connect(…)`.

    Raises Misused[usage] when the connection has a transaction open already, or the block ended the one it was given;
    Refused[target_missing, target_not_table, target_rights, ledger_foreign]; Retryable[database_busy] when the turn did
    not come within `wait`, and Retryable[write_aborted] when the commit did not go through: nothing was written then.
    OutcomeUnknown when the database failed around the commit.
    """
    packages = [each.__module__.split(".")[0].lstrip("_") for each in type(connection).__mro__]
    package = next((each for each in packages if each in LOCKS), None)
    if package is None:
        found = f"{type(connection).__module__}.{type(connection).__name__} is no connection that reslice knows"
        failure = Failure("connection", "an open connection of DuckDB or psycopg 3", (found,), KNOWN)
        raise Misused(table, [failure], unchanged="nothing was read or written")
    longest = WAIT if wait is WAIT else given.wait(wait)
    with importlib.import_module(LOCKS[package]).hold(connection, table, schema=schema, wait=longest):
        yield connection
