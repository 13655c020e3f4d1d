"""Load one range of daily orders with dlt: `daily_orders.py by_key|by_merge_key|by_scope START END`.

The rows come from orders_fact of the DuckDB file that RESLICE_PATH names, and go to daily_orders of the same file. dlt
keeps its packages beside that file, in the folder dlt.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt
import duckdb

GRAIN = ["order_date", "channel"]
SOURCE = """
SELECT order_date, channel, count(*) AS order_count, CAST(sum(amount_cents) AS BIGINT) AS amount_cents
FROM orders_fact WHERE order_date BETWEEN ? AND ? GROUP BY order_date, channel
"""


def hints(way: str, start: str, end: str) -> dict[str, Any]:
    """Return what tells dlt which rows of the target a load replaces."""
    merge: dict[str, Any] = {"disposition": "merge", "strategy": "delete-insert"}
    match way:
        case "by_key":  # the rows whose keys are among the new ones
            return {"write_disposition": merge, "primary_key": GRAIN}
        case "by_merge_key":  # the rows of the days that are among the new ones
            return {"write_disposition": merge, "merge_key": "order_date"}
        case "by_scope":  # the rows of the range that was asked
            scope = f"order_date BETWEEN '{start}' AND '{end}'"
            return {"write_disposition": {**merge, "destination_scope": scope}}
    sys.exit(f"no such way: {way}")


def rows(database: Path, start: str, end: str) -> Iterator[dict[str, Any]]:
    """Yield the recomputed rows of the range."""
    with duckdb.connect(str(database)) as connection:
        found = connection.execute(SOURCE, [start, end]).fetchall()
    names = (*GRAIN, "order_count", "amount_cents")
    yield from (dict(zip(names, row, strict=True)) for row in found)


def main(way: str, start: str, end: str) -> None:
    database = Path(os.environ["RESLICE_PATH"])
    pipeline = dlt.pipeline(
        "daily_orders",
        destination=dlt.destinations.duckdb(str(database)),
        dataset_name="main",
        pipelines_dir=str(database.parent / "dlt"),
    )
    orders = dlt.resource(rows(database, start, end), name="daily_orders", **hints(way, start, end))
    print(pipeline.run(orders))


if __name__ == "__main__":
    main(*sys.argv[1:])
