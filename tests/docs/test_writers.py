"""The stories of the page on live writers happen as they are told there."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from docs import build, console
from tests import postgres
from tests.conformance.databases import PostgresDatabase, opened

PAGE = (build.ROOT / "docs" / "writers.md").read_text(encoding="utf-8")
STORY = re.compile(r"<!-- story: ([a-z ]+) -->\n```python\n(.*?)```\n(?:[^`]*?```text\n(.*?)```)?", re.DOTALL)
GUARD = re.search(r"^```yaml\n(.*?)```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The retail example with its follow-up arrived, and the guard of the page."""
    folder = tmp_path / "shop"
    console.STATES["stale"](folder)
    assert GUARD is not None
    contract = folder / "reslice.yml"
    contract.write_text(f"{contract.read_text(encoding='utf-8')}    {GUARD[1]}", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def told(name: str) -> Iterator[tuple[str, str]]:
    """Yield each block of a story, with the output that the page shows below it."""
    for story, code, output in STORY.findall(PAGE):
        if story == name:
            yield code, output


def happens(name: str) -> None:
    """Run the blocks of a story in one program, and hold each to what the page shows."""
    names: dict[str, Any] = {"__name__": name}
    blocks = list(told(name))
    assert len(blocks) == 2
    for code, output in blocks:
        assert output, "every block says what comes out"
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile(code, "writers.md", "exec"), names)
        assert said.getvalue() == output
    names["connection"].close()


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "retail.duckdb"), read_only=True) as connection:
        return connection.execute(
            "SELECT CAST(order_date AS VARCHAR), channel, order_count, amount_cents FROM daily_orders"
            " WHERE order_date < '2026-02-01' ORDER BY ALL"
        ).fetchall()


def test_today_is_counted_while_the_past_is_rewritten(shop: Path) -> None:
    happens("event loop")
    assert rows(shop) == [
        ("2026-01-01", "store", 1, 4500),
        ("2026-01-02", "store", 1, 5600),
        ("2026-01-02", "web", 2, 19000),
        ("2026-01-03", "app", 1, 3100),
    ]


def test_a_row_of_a_closed_day_is_put_right_by_hand(shop: Path) -> None:
    happens("support")
    assert rows(shop) == [
        ("2026-01-01", "store", 1, 4500),
        ("2026-01-02", "store", 1, 6000),
        ("2026-01-02", "web", 2, 19000),
        ("2026-01-03", "app", 1, 3100),
    ]


LOCK = PAGE.partition("## With the lock\n")[2].partition("\n## ")[0]
ON_DUCKDB, ON_POSTGRES = re.findall(r"^```python\n(.*?)```$", LOCK, re.DOTALL | re.MULTILINE)


def test_the_lock_by_itself_is_used_as_the_page_shows(shop: Path) -> None:
    before = rows(shop)
    names: dict[str, Any] = {}
    exec(compile(ON_DUCKDB, "writers.md", "exec"), names)
    names["connection"].close()
    assert rows(shop) == before
    with duckdb.connect(str(shop / "retail.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT generation FROM reslice.fences").fetchall() == [(2,)]


# --- on PostgreSQL --------------------------------------------------------------------------------------------------

CONTRACT = """\
version: 1
connection: postgresql://
targets:
  daily_orders:
    table: daily_orders
    source: daily_orders.sql
    grain: [order_date, channel]
    slice: {column: order_date, unit: day}
    measures: {order_count: {min: 1}, amount_cents: {min: 0}}
    guards: {total_change: allow}
"""
SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""
TABLES = (
    "CREATE TABLE orders_fact (order_date date, channel text, amount_cents bigint)",
    "CREATE TABLE daily_orders (order_date date, channel text, order_count bigint, amount_cents bigint)",
    "INSERT INTO orders_fact VALUES"
    " ('2026-01-01', 'web', 4500), ('2026-01-02', 'web', 1200), ('2026-01-02', 'web', 700)",
    "INSERT INTO daily_orders VALUES"
    " ('2026-01-01', 'fax', 1, 100), ('2026-01-02', 'web', 1, 1200), ('2026-01-05', 'web', 0, 0)",
)
"""On the first day the fax goes and the web comes, on the second an order has come late; the fifth is today."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresDatabase]:
    """A database that PGHOST, PGDATABASE and PGUSER name, and a contract in the folder that is the current one."""
    try:
        made = opened("postgresql18", tmp_path)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")
    assert isinstance(made, PostgresDatabase)
    for statement in TABLES:
        made.execute(statement)
    (tmp_path / "reslice.yml").write_text(CONTRACT, encoding="utf-8")
    (tmp_path / "daily_orders.sql").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in (("HOST", str(made.server.folder)), ("DATABASE", made.catalog), ("USER", postgres.ROLE)):
        monkeypatch.setenv(f"PG{name}", value)
    yield made
    made.close()


def test_the_lock_is_used_on_postgresql_as_the_page_shows(server: PostgresDatabase) -> None:
    names: dict[str, Any] = {}
    exec(compile(ON_POSTGRES, "writers.md", "exec"), names)
    assert isinstance(names["connection"], psycopg.Connection)
    names["connection"].close()
    assert server.rows("SELECT generation FROM reslice.fences") == [(1,)]


def test_a_counter_in_another_program_and_a_tool_under_the_lock(server: PostgresDatabase) -> None:
    happens("counter")
    assert server.rows("SELECT * FROM daily_orders ORDER BY 1, 2") == [
        ("2026-01-01", "web", 1, 4500),
        ("2026-01-02", "web", 2, 1400),
        ("2026-01-05", "web", 50, 0),
    ]
