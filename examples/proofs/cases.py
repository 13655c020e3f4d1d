"""The orders that every proof starts from, and what happens to them before the slice is run again.

They are those of the ten cases on docs/comparison.md. The target is filled from them: 8 rows, 10 orders, 56500 cents.
"""

from __future__ import annotations

from dataclasses import dataclass

FACTS = [
    ("o100", "2026-01-01", "web", 5000),
    ("o101", "2026-01-01", "web", 3000),
    ("o102", "2026-01-01", "store", 7000),
    ("o200", "2026-01-02", "web", 12000),
    ("o201", "2026-01-02", "web", 7000),
    ("o202", "2026-01-02", "store", 4500),
    ("o203", "2026-01-02", "app", 2500),
    ("o300", "2026-01-03", "web", 6000),
    ("o301", "2026-01-03", "store", 8000),
    ("o302", "2026-01-03", "app", 1500),
]

FACTS_TABLE = """
CREATE TABLE orders_fact (
    order_id VARCHAR(10), order_date DATE, channel VARCHAR(10), amount_cents BIGINT, order_ts TIMESTAMP
)
"""

TARGET_TABLE = (
    "CREATE TABLE daily_orders (order_date DATE, channel VARCHAR(10), order_count BIGINT, amount_cents BIGINT)"
)

FILL = """
INSERT INTO daily_orders
SELECT order_date, channel, count(*), CAST(sum(amount_cents) AS BIGINT) FROM orders_fact GROUP BY order_date, channel
"""

FILLED = (8, 10, 56500)

RANGE = "2026-01-01..2026-01-03"
"""What is compared with the source: the whole of the target, of which each case runs one day."""


@dataclass(frozen=True)
class Case:
    """One way in which the source may be when a day is run again; `right` is the whole target when all is well."""

    name: str
    title: str
    change: str
    day: str
    next_day: str
    right: tuple[int, int, int]


CASES = (
    Case(
        "C1",
        "Nothing has changed. 2026-01-02 is run twice",
        "",
        "2026-01-02",
        "2026-01-03",
        FILLED,
    ),
    Case(
        "C2",
        "o300, the only web order of 2026-01-03, was cancelled. That day is run twice",
        "DELETE FROM orders_fact WHERE order_id = 'o300'",
        "2026-01-03",
        "2026-01-04",
        (7, 9, 50500),
    ),
    Case(
        "C3",
        "o100 was moved from 2026-01-01 to 2026-01-02. 2026-01-02 is run twice",
        "UPDATE orders_fact SET order_date = '2026-01-02' WHERE order_id = 'o100'",
        "2026-01-02",
        "2026-01-03",
        FILLED,
    ),
    Case(
        "C8",
        "Every order of 2026-01-02 was cancelled. That day is run twice",
        "DELETE FROM orders_fact WHERE order_date = '2026-01-02'",
        "2026-01-02",
        "2026-01-03",
        (5, 6, 30500),
    ),
    Case(
        "C9",
        "An order of 3000 cents without a channel came in on 2026-01-02. That day is run twice",
        "INSERT INTO orders_fact VALUES ('o204', '2026-01-02', NULL, 3000, '2026-01-02 12:00:00')",
        "2026-01-02",
        "2026-01-03",
        (9, 11, 59500),
    ),
)


def facts_insert() -> str:
    """Return the statement that puts the orders into their table, each ordered at noon."""
    rows = (f"('{order}', '{day}', '{channel}', {cents}, '{day} 12:00:00')" for order, day, channel, cents in FACTS)
    return f"INSERT INTO orders_fact VALUES {', '.join(rows)}"
