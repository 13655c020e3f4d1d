"""Small shops whose table somebody's command fills, on DuckDB and on PostgreSQL, and how a proof of it is asked for.

The source gives `AFTER`; the table holds `BEFORE`, in which an order is still on the day that it was moved away from.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from reslice import contract_file
from reslice.contract import Connection, SliceColumn, Unit
from reslice.prove.asked import task_of
from reslice.prove.proving import Proving
from reslice.prove.script import named
from reslice.prove.values import Comparison, Proof, Subject
from reslice.ranges import Scope
from tests import postgres
from tests.unit.shop import AFTER, BEFORE, DAYS, make_shop

ROLE = "prover"
DAY = SliceColumn("order_date", Unit.DAY)
RANGE = Scope.parse(DAYS, DAY)
GRAIN = ("order_date", "channel")
BARE = Subject("daily_orders", "daily_orders", GRAIN)

SELECT = (
    "SELECT order_date, channel, count(*) AS order_count, CAST(sum(amount_cents) AS BIGINT) AS amount_cents FROM orders"
    " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
)
DELETE = "DELETE FROM daily_orders WHERE order_date BETWEEN :start AND :end"
APPEND = f"INSERT INTO daily_orders {SELECT};"
REPLACE = f"BEGIN; {DELETE}; INSERT INTO daily_orders {SELECT}; COMMIT;"
DATES = {"start": "2026-01-01", "end": "2026-01-02"}

TABLES = """
CREATE TABLE orders (order_id BIGINT, order_date DATE, channel VARCHAR(10), amount_cents BIGINT);
INSERT INTO orders VALUES (100, '2026-01-02', 'web', 12000), (101, '2026-01-01', 'store', 4500),
    (102, '2026-01-02', 'web', 7000), (103, '2026-01-02', 'store', 5600);
CREATE TABLE daily_orders (order_date DATE, channel VARCHAR(10), order_count BIGINT, amount_cents BIGINT);
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """A project of one table. `connection` is its database, `folder` where its files are."""

    folder: Path
    connection: Connection

    def subject(self, *, range: str | None = DAYS, ignored: tuple[str, ...] = ()) -> Subject:
        """Return the table as the contract has it."""
        contract = contract_file.load(self.folder / "reslice.yml").targets["daily_orders"]
        scope = None if range is None else Scope.parse(range, DAY)
        return Subject("daily_orders", "daily_orders", GRAIN, contract, contract.slice, scope, ignored)

    def bare(self, *, range: str | None = None, ignored: tuple[str, ...] = ()) -> Subject:
        """Return the table as somebody without a contract has it."""
        scope = None if range is None else Scope.parse(range, DAY)
        return replace(BARE, slice=None if range is None else DAY, scope=scope, ignored=ignored)

    def script(self, text: str, name: str = "job.sql") -> Path:
        """Write a SQL file."""
        path = self.folder / name
        path.write_text(text)
        return path

    def prove_sql(self, text: str, subject: Subject | None = None, **options: Any) -> Proof:
        """Prove a SQL script, by default as the contract has the table."""
        asked = {name: value for name, value in DATES.items() if name in named(text)}
        given = {"parameters": asked} | options
        task = task_of(sql=self.script(text), **given)
        return Proving(self.connection, self.subject() if subject is None else subject, task).prove()

    def prove(self, words: Sequence[str], subject: Subject | None = None, **options: Any) -> Proof:
        """Prove a command."""
        task = task_of(words, **options)
        return Proving(self.connection, self.subject() if subject is None else subject, task).prove()


def duckdb_shop(folder: Path) -> Shop:
    """Make a shop in a DuckDB file, filled as `BEFORE`."""
    make_shop(folder)
    path = folder / "shop.duckdb"
    return Shop(folder, Connection("duckdb", "duckdb:///shop.duckdb", "duckdb:///shop.duckdb", path))


def execute(shop: Shop, *statements: str) -> None:
    """Run statements in the shop's database itself."""
    if shop.connection.engine == "duckdb":
        with duckdb.connect(str(shop.connection.path)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(shop.connection.url, autocommit=True) as opened:
        for statement in statements:
            opened.execute(statement.encode())


def rows(shop: Shop, select: str = "SELECT * FROM daily_orders") -> list[tuple[Any, ...]]:
    """Return rows of the shop's database itself, in order, days as text."""
    if shop.connection.engine == "duckdb":
        with duckdb.connect(str(shop.connection.path), read_only=True) as connection:
            found = connection.execute(select).fetchall()
    else:
        with psycopg.connect(shop.connection.url, autocommit=True) as opened:
            found = opened.execute(select.encode()).fetchall()
    return sorted((tuple(_plain(value) for value in row) for row in found), key=repr)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | str) else str(value)


_numbers = itertools.count(1)


@contextmanager
def postgres_shop(folder: Path, version: int = 18, *, may_create: bool = True) -> Iterator[Shop]:
    """Make a shop in a database of its own, filled as `BEFORE`, whose role may make databases, or may not."""
    server = postgres.shared(version)
    role, name = (ROLE if may_create else f"{ROLE}_without"), f"p_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as admin:
        known = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
        if known is None:
            admin.execute(f"CREATE ROLE {role} LOGIN {'CREATEDB' if may_create else ''}".encode())
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy OWNER {role}".encode())
    url = server.url(name, user=role)
    folder.mkdir(exist_ok=True)
    make_contract(folder, url)
    shop = Shop(folder, Connection("postgresql", url, url))
    values = ", ".join(f"('{day}', '{channel}', {count}, {cents})" for day, channel, count, cents in BEFORE)
    execute(shop, *TABLES.split(";")[:-1], f"INSERT INTO daily_orders VALUES {values}")
    try:
        yield shop
    finally:
        with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def make_contract(folder: Path, url: str) -> None:
    """Write the contract and its source for a database."""
    from tests.unit.shop import CONTRACT, SOURCE

    (folder / "reslice.yml").write_text(CONTRACT.replace("duckdb:///shop.duckdb", url))
    (folder / "daily.sql").write_text(SOURCE)


def databases(version: int = 18) -> list[str]:
    """Return the sandboxes that are on a server."""
    with psycopg.connect(postgres.shared(version).url(user=postgres.ADMIN), autocommit=True) as admin:
        found = admin.execute("SELECT datname FROM pg_database WHERE datname LIKE 'reslice%' ORDER BY 1").fetchall()
    return [name for (name,) in found]


def kinds(comparison: Comparison) -> dict[str, int]:
    """Return how many groups there are of each kind, by word."""
    return {str(kind): number for kind, number in comparison.counts.items()}


__all__ = ["AFTER", "BEFORE", "DAYS"]
