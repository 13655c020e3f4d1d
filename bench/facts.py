"""Make the benchmark's project: a DuckDB file of order facts over 365 days and 50 channels, and empty targets.

The same number of rows gives the same file content everywhere: no random numbers, no hash of a library version. The
facts lie in date order, as a table that is appended to every day does.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

PROJECT = Path(__file__).parent / "project"
DATABASE = "bench.duckdb"
FIRST_DAY, LAST_DAY, YEAR = "2026-01-01", "2026-12-31", "2026"
DAYS, CHANNELS = 365, 50

TARGET = "daily_orders"
TARGET_PLAIN = "daily_orders_plain"
TARGET_CHECKED = "daily_orders_checked"

# A linear congruential step spreads channels and amounts over the rows of a day.
ORDERS = f"""
CREATE TABLE orders AS
SELECT
    i AS order_id,
    CAST(DATE '{FIRST_DAY}' + CAST(i * {DAYS} // $rows AS INTEGER) AS DATE) AS order_date,
    'channel_' || lpad(CAST((i * 1103515245 + 12345) // 65536 % {CHANNELS} AS VARCHAR), 2, '0') AS channel,
    100 + (i * 22695477 + 1) // 65536 % 20000 AS amount_cents
FROM range($rows) AS numbers(i)
"""

TARGET_COLUMNS = """(
    order_date DATE NOT NULL,
    channel VARCHAR NOT NULL,
    order_count BIGINT NOT NULL,
    amount_cents BIGINT NOT NULL
)"""


def make(directory: Path, *, rows: int, memory_limit: str) -> None:
    """Make the project in `directory`, in place of one that is there, with `rows` orders and three empty targets."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(PROJECT, directory)
    with duckdb.connect(str(directory / DATABASE), config={"memory_limit": memory_limit}) as connection:
        connection.execute(ORDERS, {"rows": rows})
        connection.execute("CREATE TABLE surcharge AS SELECT CAST(0 AS BIGINT) AS cents")
        for table in (TARGET, TARGET_PLAIN, TARGET_CHECKED):
            connection.execute(f"CREATE TABLE {table} {TARGET_COLUMNS}")
        connection.execute("CHECKPOINT")
