"""The story with two terminals on the page about PostgreSQL happens as it is told there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from docs import build
from tests import postgres
from tests.conformance.databases import PostgresDatabase, opened

PAGE = (build.ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")
STORY = PAGE.partition("<!-- story -->")[2].partition("\n## ")[0]
BLOCK = re.compile(r"Terminal ([12]):\n\n```text\n(.*?)```", re.DOTALL)

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
    timeouts: {{lock: 5s}}
"""
SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""
TABLES = (
    "CREATE TABLE orders_fact (order_date date, channel text, amount_cents bigint)",
    "CREATE TABLE daily_orders (order_date date, channel text, order_count bigint, amount_cents bigint)",
    "INSERT INTO orders_fact VALUES ('2024-03-02', 'web', 1200), ('2024-03-02', 'store', 750)",
)
CORRECTED = "UPDATE orders_fact SET amount_cents = 1300 WHERE channel = 'web'"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[PostgresDatabase]:
    try:
        made = opened("postgresql18", tmp_path)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")
    assert isinstance(made, PostgresDatabase)
    yield made
    made.close()


def ran(folder: Path, command: str) -> str:
    """Return what a command line of reslice says, on both streams."""
    words = command.split()
    assert words[0] == "reslice"
    done = subprocess.run(
        [str(Path(sys.executable).with_name("reslice")), *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def settled(text: str) -> str:
    """Return text without what is another every time: process, role, name and time of the one who holds the table."""
    since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    return re.sub(rf"process \d+, role \w+, psql, (.+?), {since}", r"process N, of ROLE, psql, \1, since T", text)


def test_two_terminals(database: PostgresDatabase, tmp_path: Path) -> None:
    (tmp_path / "reslice.yml").write_text(CONTRACT.format(url=database.url), encoding="utf-8")
    (tmp_path / "daily_orders.sql").write_text(SOURCE, encoding="utf-8")
    for statement in TABLES:
        database.execute(statement)
    ran(tmp_path, "reslice run daily_orders 2024-03-02")
    database.execute(CORRECTED)
    blocks = BLOCK.findall(STORY)
    assert [who for who, _ in blocks] == ["1", "2", "1", "2"]
    with psycopg.connect(database.url, autocommit=True, application_name="psql") as first:
        for who, text in blocks:
            if who == "1":
                for statement in filter(None, (each.strip() for each in text.split(";"))):
                    first.execute(statement.encode())
                continue
            command, told = text.removeprefix("$ ").split("\n", 1)
            said = settled(ran(tmp_path, command))
            wanted = settled(told)
            if wanted.endswith("...\n"):
                wanted = wanted.removesuffix("...\n")
                said = said[: len(wanted)]
            assert said == wanted
    after = database.rows("SELECT channel, amount_cents FROM daily_orders ORDER BY channel")
    assert after == [("store", 750), ("web", 1300)]
    ran(tmp_path, "reslice restore r-0003 --yes")
    assert database.rows("SELECT amount_cents FROM daily_orders WHERE channel = 'web'") == [(1250,)]
