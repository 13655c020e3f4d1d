"""A small project whose targets stand in every way that a page can show, on any engine."""

from __future__ import annotations

import json
from typing import Any

import reslice
from reslice.errors import Refused, Stopped
from tests.conformance.databases import Database

SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
"""
CONTROL = """\
SELECT order_date, count(*) AS orders
FROM receipts
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date
"""
DAILY: dict[str, Any] = {
    "table": "daily_orders",
    "source": "daily_orders.sql",
    "grain": ["order_date", "channel"],
    "slice": {"column": "order_date", "unit": "day"},
    "measures": {"order_count": {"min": 1}, "amount_cents": {"min": 0}},
    "controls": {"source": "control.sql", "match": {"orders": "sum(order_count)"}},
    "guards": {"closed_through": "2026-03-31", "empty_slice": "allow", "total_change": "80%"},
}
UNCONTROLLED = {key: value for key, value in DAILY.items() if key != "controls"}
MONTHS = ("2025-11", "2025-12", "2026-01", "2026-02", "2026-03")
CHANNELS = ("web", "store", "phone")


class Shop:
    """Orders of some months, and a target of their days."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.folder = database.folder
        database.execute(
            "CREATE TABLE orders (order_id INTEGER, order_date DATE, channel VARCHAR(2000), amount_cents BIGINT)"
        )
        database.execute("CREATE TABLE receipts (order_id INTEGER, order_date DATE)")
        columns = "order_date DATE, channel VARCHAR(2000), order_count BIGINT, amount_cents BIGINT"
        database.execute(f"CREATE TABLE daily_orders ({columns})")
        (self.folder / "daily_orders.sql").write_text(SOURCE, encoding="utf-8")
        (self.folder / "control.sql").write_text(CONTROL, encoding="utf-8")
        self.contract = self.folder / "reslice.yml"
        self.declare({"daily_orders": DAILY})

    def declare(self, targets: dict[str, Any]) -> None:
        """Write the contract file."""
        declared = {"version": 1, "connection": self.database.url, "targets": targets}
        self.contract.write_text(json.dumps(declared, ensure_ascii=False), encoding="utf-8")

    def target(self, name: str = "daily_orders") -> reslice.TargetHandle:
        """Return a target, from the contract as it is now."""
        return self.database.project(self.contract).target(name)

    def order(self, order_id: int, day: str, channel: str, amount_cents: int, *, is_receipted: bool = True) -> None:
        """Take an order, with its receipt."""
        self.database.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", [order_id, day, channel, amount_cents])
        if is_receipted:
            self.database.execute("INSERT INTO receipts VALUES (?, ?)", [order_id, day])

    def fill(self, first: str = "2025-11-01", days: int = 150) -> None:
        """Take two orders in each channel on each of so many days: 6 a day, of 1000 to 3300 cents."""
        rows = (
            "SELECT CAST(day * 6 + place AS INTEGER) AS order_id,"
            " CAST(CAST(? AS DATE) + CAST(day AS INTEGER) AS DATE) AS d,"
            " CASE place % 3 WHEN 0 THEN 'web' WHEN 1 THEN 'store' ELSE 'phone' END AS channel,"
            " 1000 + day % 10 * 100 + place * 100 AS cents"
            " FROM generate_series(0, ?) AS days(day), generate_series(0, 5) AS places(place)"
        )
        self.database.execute(
            f"INSERT INTO orders SELECT order_id, d, channel, cents FROM ({rows}) AS made", [first, days - 1]
        )
        self.database.execute(f"INSERT INTO receipts SELECT order_id, d FROM ({rows}) AS made", [first, days - 1])

    def live(self) -> None:
        """Let the ledger hold one of everything: published, verified, restored, differing, missing, not reconciled.

        November to March are published. November and December are verified. 2026-02-10 is corrected, published, and put
        back. 2026-03-03 has a late order that a run was stopped over, 2026-03-20 one without a receipt.
        """
        self.fill()
        target = self.target()
        for month in MONTHS:
            target.run(month if month != "2026-03" else "2026-03-01..2026-03-29")
        for month in MONTHS[:2]:
            target.verify(month, record=True)
        self.order(9001, "2026-02-10", "web", 4000)
        corrected = target.run("2026-02-10")
        assert corrected.id is not None
        target.restore(corrected.id, reason="the correction was wrong")
        self.order(9002, "2026-03-03", "web", 900_000)
        self.order(9003, "2026-03-20", "store", 700, is_receipted=False)
        ends: tuple[tuple[str, type[Exception]], ...] = (("2026-03-03", Stopped), ("2026-03-20", Refused))
        for day, error in ends:
            try:
                target.run(day)
            except error:
                continue
            raise AssertionError(f"the run of {day} went through")
