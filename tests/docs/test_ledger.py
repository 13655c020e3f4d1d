"""What the page of the ledger says in SQL is true on every engine: its questions, and how rows come back by hand."""

from __future__ import annotations

import re

import pytest

import reslice
from docs import build
from reslice.target_handle import TargetHandle
from tests.conformance.databases import Database

PAGE = (build.ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
BY_HAND = re.search(r"^    BEGIN;\n(?:    .*\n)+", PAGE, re.MULTILINE)
LOCK = re.search(r"`(LOCK TABLE [^;]*);`", PAGE)

CONTRACT = """\
version: 1
connection: {url}
targets:
  daily_orders:
    table: daily_orders
    source: daily_orders.sql
    grain: [order_date, channel]
    slice: {{column: order_date, unit: day}}
    measures: {{order_count: {{min: 1}}, amount_cents: {{min: 0}}}}
"""
SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""
FACTS = [
    ("2026-01-01", "web", 12000),
    ("2026-01-01", "store", 4500),
    ("2026-01-02", "web", 7000),
    ("2026-01-02", "store", 5200),
    ("2026-01-03", "app", 3100),
]
BEFORE = [(day, channel, 1, cents) for day, channel, cents in FACTS]
TABLE = "SELECT order_date, channel, order_count, amount_cents FROM daily_orders"


@pytest.fixture
def target(engine: Database) -> TargetHandle:
    """Five groups that r-0001 published; then an order moves from the 1st to the 2nd, and another is put right."""
    engine.execute("CREATE TABLE orders_fact (order_date date, channel varchar, amount_cents bigint)")
    engine.execute(
        "CREATE TABLE daily_orders (order_date date, channel varchar, order_count bigint, amount_cents bigint)"
    )
    engine.insert("orders_fact", FACTS)
    (engine.folder / "reslice.yml").write_text(CONTRACT.format(url=engine.url), encoding="utf-8")
    (engine.folder / "daily_orders.sql").write_text(SOURCE, encoding="utf-8")
    found = engine.project(engine.folder / "reslice.yml").target("daily_orders")
    assert found.run("2026-01-01..2026-01-03").id == "r-0001"
    engine.execute("UPDATE orders_fact SET order_date = '2026-01-02' WHERE amount_cents = 12000")
    engine.execute("UPDATE orders_fact SET amount_cents = 5600 WHERE amount_cents = 5200")
    assert found.run("2026-01-01..2026-01-02").id == "r-0002"
    return found


def test_the_questions_have_answers(engine: Database, target: TargetHandle) -> None:
    engine.execute("INSERT INTO orders_fact VALUES ('2026-01-03', 'web', 2500)")
    with pytest.raises(reslice.Stopped):
        target.run("2026-01-03")
    target.run("2026-01-03", allow=["total_change"], reason="one more order than yesterday")
    assert len(QUESTIONS) == 5
    failed, published, consents, moved, kept = (engine.rows(question) for question in QUESTIONS)
    assert [row[:5] for row in failed] == [("r-0003", "daily_orders", "2026-01-03", "stopped", "total_change")]
    assert [(row[0], row[2]) for row in published] == [
        ("2026-01-01", "r-0002"),
        ("2026-01-02", "r-0002"),
        ("2026-01-03", "r-0004"),
    ]
    assert all(row[1] is not None for row in published)
    assert [(row[0], row[4]) for row in consents] == [("r-0004", "one more order than yesterday")]
    assert [row[1:3] for row in moved] == [("r-0001", "added"), ("r-0002", "changed")]
    assert [row[0] for row in kept] == ["r-0002"] and kept[0][1]


def test_kept_rows_come_back_by_the_statements_of_the_page(engine: Database, target: TargetHandle) -> None:
    assert BY_HAND is not None and LOCK is not None
    ((kept,),) = engine.rows("SELECT kept_table FROM reslice.runs WHERE id = 'r-0002'")
    begin, *statements = BY_HAND[0].replace("reslice.kept_…", kept).split(";")[:-1]
    if engine.name == "postgresql":
        statements.insert(0, LOCK[1])
    with engine.session() as session:
        for statement in (begin, *statements):
            session.execute(statement)
    assert statements[-1].strip() == "COMMIT"
    assert sorted(engine.rows(TABLE)) == sorted(BEFORE)
