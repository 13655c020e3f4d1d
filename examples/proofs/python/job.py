"""A job as it is often written: `job.py append|delete_insert START END`.

It computes the days START..END of daily_orders and writes them to the database that RESLICE_URL names.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

APPEND = """
INSERT INTO daily_orders (order_date, channel, order_count, amount_cents)
SELECT order_date, channel, count(*), CAST(sum(amount_cents) AS BIGINT)
FROM orders_fact WHERE order_date BETWEEN '{start}' AND '{end}' GROUP BY order_date, channel
"""
DELETE = "DELETE FROM daily_orders WHERE order_date BETWEEN '{start}' AND '{end}'"


class Connection(Protocol):
    """What duckdb and psycopg both have."""

    def execute(self, sql: str, /) -> Any:
        """Run one statement."""

    def close(self) -> None:
        """Let the database go."""


def connect(url: str) -> Connection:
    """Connect so that every statement is committed by itself, until BEGIN is said."""
    if url.startswith("duckdb:///"):
        import duckdb

        return duckdb.connect(url.removeprefix("duckdb:///"))
    import psycopg

    return psycopg.connect(url, autocommit=True)


def main(way: str, start: str, end: str) -> None:
    connection = connect(os.environ["RESLICE_URL"])
    if way == "append":
        connection.execute(APPEND.format(start=start, end=end))
    elif way == "delete_insert":
        connection.execute("BEGIN")
        connection.execute(DELETE.format(start=start, end=end))
        connection.execute(APPEND.format(start=start, end=end))
        connection.execute("COMMIT")
    else:
        sys.exit(f"no such way: {way}")
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
