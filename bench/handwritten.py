"""The same work as SQL written by hand: what a careful engineer would put into a script, plain and with checks.

Plain: one transaction that stages the range in a temporary table, deletes the range, inserts, commits. With checks: the
same, and before the delete the staged rows are tested (grain, nulls, minimums, range) and compared with the target by a
full join; after the insert the range is read back and must equal the staged rows. Days are bound as text with a cast:
binding a Python date makes the driver import pandas where that is installed.
"""

from __future__ import annotations

from datetime import date, timedelta

import duckdb

STAGE = """
CREATE OR REPLACE TEMP TABLE handwritten_staged AS
SELECT
    order_date,
    channel,
    count(*) AS order_count,
    CAST(sum(amount_cents) + (SELECT cents FROM surcharge) AS BIGINT) AS amount_cents
FROM orders
WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)
GROUP BY order_date, channel
"""

DELETE = "DELETE FROM {table} WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)"
INSERT = "INSERT INTO {table} BY NAME SELECT * FROM handwritten_staged"

REPEATED_KEYS = """
SELECT count(*) FROM (
    SELECT order_date, channel FROM handwritten_staged GROUP BY order_date, channel HAVING count(*) > 1
)
"""

BAD_ROWS = """
SELECT
    count(*) FILTER (order_date IS NULL OR channel IS NULL OR order_count IS NULL OR amount_cents IS NULL),
    count(*) FILTER (order_count < 1 OR amount_cents < 0),
    count(*) FILTER (order_date NOT BETWEEN CAST($first AS DATE) AND CAST($last AS DATE))
FROM handwritten_staged
"""

DIFF = """
SELECT
    count(*) FILTER (base.order_date IS NULL) AS added,
    count(*) FILTER (staged.order_date IS NULL) AS removed,
    count(*) FILTER (
        base.order_count IS DISTINCT FROM staged.order_count OR base.amount_cents IS DISTINCT FROM staged.amount_cents
    ) AS differing
FROM (SELECT * FROM {table} WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)) AS base
FULL JOIN handwritten_staged AS staged
    ON base.order_date = staged.order_date AND base.channel = staged.channel
"""

# Counted both ways, so that neither a lost, a foreign nor a doubled row goes unseen.
READ_BACK = """
WITH written AS (
    SELECT order_date, channel, order_count, amount_cents
    FROM {table}
    WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)
)
SELECT
    (SELECT count(*) FROM (FROM written EXCEPT ALL FROM handwritten_staged)),
    (SELECT count(*) FROM (FROM handwritten_staged EXCEPT ALL FROM written))
"""


def days(first: str, last: str) -> list[str]:
    """Return every day from `first` to `last`, both included, as ISO text."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [(start + timedelta(days=number)).isoformat() for number in range((end - start).days + 1)]


def stage(connection: duckdb.DuckDBPyConnection, first: str, last: str) -> None:
    """Recompute the range into the temporary table; the target is not touched."""
    connection.execute(STAGE, {"first": first, "last": last})


def publish_plain(connection: duckdb.DuckDBPyConnection, table: str, first: str, last: str) -> None:
    """Replace the range in one transaction, unchecked."""
    connection.begin()
    try:
        stage(connection, first, last)
        connection.execute(DELETE.format(table=table), {"first": first, "last": last})
        connection.execute(INSERT.format(table=table))
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def publish_checked(connection: duckdb.DuckDBPyConnection, table: str, first: str, last: str) -> tuple[int, int, int]:
    """Replace the range in one transaction with every check; return groups added, removed and changed."""
    bounds = {"first": first, "last": last}
    connection.begin()
    try:
        stage(connection, first, last)
        _expect_zeros(connection, REPEATED_KEYS, {})
        _expect_zeros(connection, BAD_ROWS, bounds)
        diff = connection.execute(DIFF.format(table=table), bounds).fetchone()
        connection.execute(DELETE.format(table=table), bounds)
        connection.execute(INSERT.format(table=table))
        _expect_zeros(connection, READ_BACK.format(table=table), bounds)
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    assert diff is not None
    added, removed, differing = diff
    return added, removed, differing - added - removed


def _expect_zeros(connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, str]) -> None:
    found = connection.execute(sql, values).fetchone()
    if found is None or any(found):
        raise RuntimeError(f"a check found {found} where all should be 0: {sql}")
