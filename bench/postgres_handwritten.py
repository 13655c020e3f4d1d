"""The same work on PostgreSQL as SQL written by hand: one transaction, plain and with checks, as `handwritten` has it.

Each function tells how long it held locks on the target: from before its DELETE to after its COMMIT.
"""

from __future__ import annotations

import time

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]

STAGE = """
CREATE TEMPORARY TABLE handwritten_staged ON COMMIT DROP AS
SELECT
    order_date,
    channel,
    count(*) AS order_count,
    CAST(sum(amount_cents) + (SELECT cents FROM surcharge) AS bigint) AS amount_cents
FROM orders
WHERE order_date BETWEEN CAST(%(first)s AS date) AND CAST(%(last)s AS date)
GROUP BY order_date, channel
"""

DELETE = "DELETE FROM {table} WHERE order_date BETWEEN CAST(%(first)s AS date) AND CAST(%(last)s AS date)"
INSERT = "INSERT INTO {table} (order_date, channel, order_count, amount_cents) SELECT * FROM handwritten_staged"

REPEATED_KEYS = """
SELECT count(*) FROM (
    SELECT 1 FROM handwritten_staged GROUP BY order_date, channel HAVING count(*) > 1
) AS repeated
"""

BAD_ROWS = """
SELECT
    count(*) FILTER (
        WHERE order_date IS NULL OR channel IS NULL OR order_count IS NULL OR amount_cents IS NULL
    ),
    count(*) FILTER (WHERE order_count < 1 OR amount_cents < 0),
    count(*) FILTER (WHERE order_date NOT BETWEEN CAST(%(first)s AS date) AND CAST(%(last)s AS date))
FROM handwritten_staged
"""

DIFF = """
SELECT
    count(*) FILTER (WHERE base.order_date IS NULL) AS added,
    count(*) FILTER (WHERE staged.order_date IS NULL) AS removed,
    count(*) FILTER (
        WHERE base.order_count IS DISTINCT FROM staged.order_count
            OR base.amount_cents IS DISTINCT FROM staged.amount_cents
    ) AS differing
FROM (
    SELECT * FROM {table} WHERE order_date BETWEEN CAST(%(first)s AS date) AND CAST(%(last)s AS date)
) AS base
FULL JOIN handwritten_staged AS staged ON base.order_date = staged.order_date AND base.channel = staged.channel
"""

READ_BACK = """
WITH written AS (
    SELECT order_date, channel, order_count, amount_cents FROM {table}
    WHERE order_date BETWEEN CAST(%(first)s AS date) AND CAST(%(last)s AS date)
)
SELECT
    (SELECT count(*) FROM (SELECT * FROM written EXCEPT ALL SELECT * FROM handwritten_staged) AS lost),
    (SELECT count(*) FROM (SELECT * FROM handwritten_staged EXCEPT ALL SELECT * FROM written) AS foreign_rows)
"""


def stage(connection: Connection, first: str, last: str) -> None:
    """Recompute the range into a temporary table that ends with the transaction."""
    with connection.transaction():
        connection.execute(STAGE, {"first": first, "last": last})


def publish_plain(connection: Connection, table: str, first: str, last: str) -> float:
    """Replace the range in one transaction, unchecked; return the seconds for which it held locks on the table."""
    bounds = {"first": first, "last": last}
    with connection.transaction():
        connection.execute(STAGE, bounds)
        began = time.perf_counter()
        connection.execute(DELETE.format(table=table), bounds)
        connection.execute(INSERT.format(table=table))
    return time.perf_counter() - began


def publish_checked(connection: Connection, table: str, first: str, last: str) -> float:
    """Replace the range in one transaction with every check; return the seconds for which it held locks."""
    bounds = {"first": first, "last": last}
    with connection.transaction():
        connection.execute(STAGE, bounds)
        _expect_zeros(connection, REPEATED_KEYS, {})
        _expect_zeros(connection, BAD_ROWS, bounds)
        connection.execute(DIFF.format(table=table), bounds).fetchone()
        began = time.perf_counter()
        connection.execute(DELETE.format(table=table), bounds)
        connection.execute(INSERT.format(table=table))
        _expect_zeros(connection, READ_BACK.format(table=table), bounds)
    return time.perf_counter() - began


def _expect_zeros(connection: Connection, sql: str, values: dict[str, str]) -> None:
    found = connection.execute(sql, values or None).fetchone()
    if found is None or any(found):
        raise RuntimeError(f"a check found {found} where all should be 0: {sql}")
