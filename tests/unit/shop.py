"""A project with one small table, for tests of the command line; its numbers are those of the retail example."""

from __future__ import annotations

import importlib
import subprocess
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

psutil: Any = importlib.import_module("psutil")  # it has no types
PATIENCE_SECONDS = 30

RUN = "import sys; from reslice.cli import main; sys.exit(main(sys.argv[1:]))"
"""A program that is the command line; its exit code is that of `main`."""

CONTRACT = """\
version: 1
connection: duckdb:///shop.duckdb
targets:
  daily_orders:
    table: daily_orders
    source: daily.sql
    grain: [order_date, channel]
    slice: {column: order_date, unit: day}
    measures:
      order_count:  {min: 1}
      amount_cents: {min: 0}
"""
SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""
BEFORE = [
    ("2026-01-01", "store", 1, 4500),
    ("2026-01-01", "web", 1, 12000),
    ("2026-01-02", "store", 1, 5200),
    ("2026-01-02", "web", 1, 7000),
    ("2026-01-03", "app", 1, 3100),
]
AFTER = [
    ("2026-01-01", "store", 1, 4500),
    ("2026-01-02", "store", 1, 5600),
    ("2026-01-02", "web", 2, 19000),
    ("2026-01-03", "app", 1, 3100),
]
DAYS = "2026-01-01..2026-01-02"


def make_shop(folder: Path) -> Path:
    """Make the project of the retail example, small: a late correction moved an order to another day."""
    folder.mkdir(exist_ok=True)
    (folder / "reslice.yml").write_text(CONTRACT)
    (folder / "daily.sql").write_text(SOURCE)
    (folder / "shop.duckdb").write_bytes(_database())
    return folder


@cache
def _database() -> bytes:
    """Return the file of the database, which is made once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "shop.duckdb"
        _fill(path)
        return path.read_bytes()


def _fill(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT * FROM (VALUES (100, DATE '2026-01-02', 'web', 12000::BIGINT),"
            " (101, DATE '2026-01-01', 'store', 4500), (102, DATE '2026-01-02', 'web', 7000),"
            " (103, DATE '2026-01-02', 'store', 5600)) AS rows (order_id, order_date, channel, amount_cents)"
        )
        connection.execute(
            "CREATE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)"
        )
        connection.executemany("INSERT INTO daily_orders VALUES (?, ?, ?, ?)", BEFORE)


def rows(shop: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as connection:
        return connection.execute(
            "SELECT order_date::VARCHAR, * EXCLUDE (order_date) FROM daily_orders ORDER BY ALL"
        ).fetchall()


def until_it_works(process: subprocess.Popen[Any]) -> None:
    """Wait until a command has its database file open, and a moment more, in which its statement begins."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not any(Path(each.path).suffix == ".duckdb" for each in psutil.Process(process.pid).open_files()):
        assert process.poll() is None and time.monotonic() < end, "it opened no file"
        time.sleep(0.05)
    time.sleep(0.5)
