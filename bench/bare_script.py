"""The least a script can be: open the file, replace a range with SQL written by hand, exit. FILE FIRST LAST."""

from __future__ import annotations

import sys

import duckdb

STAGE = """
CREATE TEMP TABLE staged AS
SELECT
    order_date,
    channel,
    count(*) AS order_count,
    sum(amount_cents) + (SELECT cents FROM surcharge) AS amount_cents
FROM orders
WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)
GROUP BY order_date, channel
"""
DELETE = "DELETE FROM daily_orders_plain WHERE order_date BETWEEN CAST($first AS DATE) AND CAST($last AS DATE)"
INSERT = "INSERT INTO daily_orders_plain BY NAME SELECT * FROM staged"


def main() -> None:
    file, first, last = sys.argv[1:]
    bounds = {"first": first, "last": last}
    with duckdb.connect(file) as connection:
        connection.begin()
        connection.execute(STAGE, bounds)
        connection.execute(DELETE, bounds)
        connection.execute(INSERT)
        connection.commit()


if __name__ == "__main__":
    main()
