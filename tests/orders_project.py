"""A small project of orders and their daily sums in a real DuckDB file, and everything a run may have left in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from reslice.values import Counts
from tests.model import Model
from tests.model_rows import Order, Row

FREE = "daily_orders"
GUARDED = "guarded_orders"

CONTRACT = """\
version: 1
connection: duckdb:///orders.duckdb
targets:
  daily_orders:
    table: daily_orders
    source: sql/daily_orders.sql
    grain: [order_date, {column: channel, nulls: allow}]
    slice: {column: order_date, unit: day}
    measures: {order_count: {min: 1}, revenue: {nulls: allow}, has_gift: {}}
    stamps: {loaded_at: run_time, batch_id: run_id}
    method: METHOD
    guards: {empty_slice: allow, total_change: allow, restored: allow}
    timeouts: {wait: WAIT, lock: LOCK}
  guarded_orders:
    table: daily_orders
    source: sql/daily_orders.sql
    grain: [order_date, channel]
    slice: {column: order_date, unit: day}
    measures: {order_count: {min: 1}, revenue: {nulls: allow}, has_gift: {}}
    stamps: {loaded_at: run_time, batch_id: run_id}
    method: METHOD
"""

SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(price) AS revenue, bool_or(price IS NULL) AS has_gift
FROM orders
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
"""

ORDERS_TABLE = "CREATE TABLE orders (order_id INTEGER, order_date DATE, channel VARCHAR, price DECIMAL(12, 2))"
TARGET_TABLE = """CREATE TABLE daily_orders (
    order_date DATE, channel VARCHAR, order_count BIGINT, revenue DECIMAL(14, 2), has_gift BOOLEAN,
    loaded_at TIMESTAMPTZ, batch_id VARCHAR{key})"""
PRIMARY_KEY = ", PRIMARY KEY (order_date, channel)"


METHODS = ("replace_slice", "merge", "append_version")


def create(folder: Path, *, method: str = METHODS[0], key: str = "", wait: str = "10s", lock: str = "500ms") -> Path:
    """Make the project and its database in `folder`; return the path of the contract file."""
    (folder / "sql").mkdir(parents=True)
    (folder / "sql" / "daily_orders.sql").write_text(SOURCE)
    contract = folder / "reslice.yml"
    contract.write_text(CONTRACT.replace("METHOD", method).replace("WAIT", wait).replace("LOCK", lock))
    with connect(folder) as connection:
        connection.execute(ORDERS_TABLE)
        connection.execute(TARGET_TABLE.format(key=key))
    return contract


def connect(folder: Path, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(folder / "orders.duckdb"), read_only=read_only)


# --- facts and live writes ------------------------------------------------------------------------------------------


def put_order(connection: duckdb.DuckDBPyConnection, order_id: int, order: Order) -> None:
    """Insert an order, or correct the one of that number."""
    connection.execute("DELETE FROM orders WHERE order_id = $1", [order_id])
    connection.execute(
        "INSERT INTO orders VALUES ($1, CAST($2 AS DATE), $3, $4)",
        [order_id, str(order.day), order.channel, order.price],
    )


def cancel_order(connection: duckdb.DuckDBPyConnection, order_id: int) -> None:
    connection.execute("DELETE FROM orders WHERE order_id = $1", [order_id])


def insert_rows(connection: duckdb.DuckDBPyConnection, rows: Iterable[Row]) -> None:
    """Insert rows into the target by hand, as a writer who knows nothing of reslice."""
    for row in rows:
        day = None if row.order_date is None else str(row.order_date)
        connection.execute(
            "INSERT INTO daily_orders VALUES (CAST($1 AS DATE), $2, $3, $4, $5, NULL, $6)",
            [day, row.channel, row.order_count, row.revenue, row.has_gift, row.batch_id],
        )


def update_revenue(
    connection: duckdb.DuckDBPyConnection, day: date, channel: str | None, revenue: Decimal | None
) -> None:
    connection.execute(
        "UPDATE daily_orders SET revenue = $1 WHERE order_date = CAST($2 AS DATE) AND channel IS NOT DISTINCT FROM $3",
        [revenue, str(day), channel],
    )


def delete_group(connection: duckdb.DuckDBPyConnection, day: date, channel: str | None) -> None:
    connection.execute(
        "DELETE FROM daily_orders WHERE order_date = CAST($1 AS DATE) AND channel IS NOT DISTINCT FROM $2",
        [str(day), channel],
    )


# --- what is there ----------------------------------------------------------------------------------------------------

ROW_COLUMNS = "order_date, channel, order_count, revenue, has_gift, batch_id"


def rows_of(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return every row of the target."""
    return [Row(*row) for row in connection.execute(f"SELECT {ROW_COLUMNS} FROM daily_orders").fetchall()]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What the ledger says of one run, in the words of the database."""

    id: str
    number: int
    target: str
    kind: str
    state: str
    range_text: str
    slices: int
    approves: str
    restores: str
    staged_order: int | None
    publish_order: int | None
    rows: tuple[int | None, int | None, int | None]
    counts: Counts | None
    fingerprints: tuple[str | None, str | None, str | None]
    columns: list[str] | None
    totals: dict[str, dict[str, Any]] | None
    error_kind: str | None
    is_finished: bool


def runs_of(connection: duckdb.DuckDBPyConnection) -> list[LedgerRow]:
    """Return the runs of the ledger in order; none when there is no ledger."""
    if not has_ledger(connection):
        return []
    found = connection.execute("""
        SELECT id, number, target, kind, state, range_text, slices, approves, restores, staged_order, publish_order,
               rows_before, rows_staged, rows_after,
               groups_added, groups_changed, groups_removed, groups_unchanged,
               fingerprint_base, fingerprint_staged, fingerprint_after,
               fingerprint_columns, totals, error, finished_at IS NOT NULL
        FROM reslice.runs ORDER BY number""").fetchall()
    return [LedgerRow(*row[:11], *_ended(row)) for row in found]


def _ended(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the columns of a run that its end fills."""
    columns, totals, error = (None if text is None else json.loads(text) for text in row[21:24])
    counts = None if row[14] is None else Counts(*row[14:18])
    return row[11:14], counts, row[18:21], columns, totals, None if error is None else error["kind"], row[24]


def has_ledger(connection: duckdb.DuckDBPyConnection) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'reslice' AND table_name = 'runs'"
        ).fetchall()
    )


def slices_of(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return every slice of every run: state, fingerprints, counts, and whether it was published."""
    if not has_ledger(connection):
        return {}
    found = connection.execute("""
        SELECT run_id, slice, state, fingerprint_base, fingerprint_staged, fingerprint_after,
               groups_added, groups_changed, groups_removed, groups_unchanged, published_at IS NOT NULL
        FROM reslice.run_slices""").fetchall()
    return {(row[0], row[1]): (*row[2:6], Counts(*row[6:10]), row[10]) for row in found}


def groups_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Return every group of every run: run, change, slice, channel, before, after, rows before. Numbers are exact."""
    if not has_ledger(connection):
        return []
    found = connection.execute(
        "SELECT run_id, change, slice, key, before, after, rows_before FROM reslice.run_groups"
    ).fetchall()
    return [
        (run, change, day, _channel(day, key), _measures(before), _measures(after), rows_before)
        for run, change, day, key, before, after, rows_before in found
    ]


def _channel(day: str, text: str) -> str | None:
    key: dict[str, str | None] = json.loads(text)
    assert key.keys() == {"order_date", "channel"}
    assert key["order_date"] == day
    return key["channel"]


def _measures(text: str | None) -> tuple[Any, ...] | None:
    if text is None:
        return None
    values = json.loads(text)
    assert values.keys() == {"order_count", "revenue", "has_gift"}
    revenue = values["revenue"]
    assert not isinstance(revenue, float), "money is never a float"
    return values["order_count"], None if revenue is None else Decimal(revenue), values["has_gift"]


def kept_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, Row]]:
    """Return every kept row with the run that replaced it."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'reslice' AND starts_with(table_name, 'kept_')"
    ).fetchall()
    assert len(tables) <= 1, "one set of columns has one table of kept rows"
    if not tables:
        return []
    found = connection.execute(f'SELECT "reslice:run", {ROW_COLUMNS} FROM reslice."{tables[0][0]}"').fetchall()
    return [(row[0], Row(*row[1:])) for row in found]


def current_of(connection: duckdb.DuckDBPyConnection) -> list[Row] | None:
    """Return what the view of the current versions gives; None where there is no such view."""
    view = "SELECT 1 FROM duckdb_views() WHERE view_name = 'daily_orders_current'"
    if not connection.execute(view).fetchall():
        return None
    return [Row(*row) for row in connection.execute(f"SELECT {ROW_COLUMNS} FROM daily_orders_current").fetchall()]


def versions_of(connection: duckdb.DuckDBPyConnection) -> tuple[dict[date, str], list[tuple[str, date, str, str]]]:
    """Return the version that each day points at, and every move of a pointer: run, day, to, from."""
    if not has_ledger(connection):
        return {}, []
    pointers = connection.execute("SELECT CAST(slice AS DATE), version FROM reslice.pointers").fetchall()
    moves = connection.execute("SELECT run_id, CAST(slice AS DATE), version, version_before FROM reslice.versions")
    return dict(pointers), [(run, day, to, of) for run, day, to, of in moves.fetchall()]


def generation_of(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how often the table was published, as its fence counts."""
    if not has_ledger(connection):
        return 0
    found = connection.execute("SELECT generation FROM reslice.fences").fetchall()
    assert len(found) <= 1, "one table has one fence"
    return int(found[0][0]) if found else 0


def tables_of(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return every table there is, temporary ones of this connection included, without the ledger's."""
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name <> 'reslice'").fetchall()
    return {row[0] for row in found}


def load(connection: duckdb.DuckDBPyConnection, model: Model, orders: dict[int, Order]) -> None:
    """Put the orders into the database and the model alike."""
    for order_id, order in orders.items():
        put_order(connection, order_id, order)
        model.orders[order_id] = order


def load_many(connection: duckdb.DuckDBPyConnection, model: Model, orders: dict[int, Order]) -> None:
    """Put orders that are all new into the database, in one statement, and into the model."""
    columns = [
        list(orders),
        [str(order.day) for order in orders.values()],
        [order.channel for order in orders.values()],
        [None if order.price is None else str(order.price) for order in orders.values()],
    ]
    connection.execute(
        "INSERT INTO orders SELECT number, CAST(day AS DATE), channel, CAST(price AS DECIMAL(12, 2))"
        " FROM (SELECT unnest($1) AS number, unnest($2) AS day, unnest($3) AS channel, unnest($4) AS price) AS listed",
        columns,
    )
    model.orders.update(orders)
