"""The shop's database on a PostgreSQL server that remembers when each transaction was committed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import psycopg

from tests import orders_project as project
from tests import postgres
from tests.model_rows import Order, Row

COLUMNS = project.ROW_COLUMNS
DATABASE = "races"
LETS_GO_SECONDS = 5.0
"""How long the process of a closed connection may take to be gone."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction that wrote slices of a run: when it was committed, and what the ledger says it replaced."""

    at: datetime
    run: str
    slices: dict[date, tuple[str, str]]
    """The fingerprints of base and staged rows, by day."""


@dataclass
class Shop:
    """The database of one module. `connection` is the test's own, in autocommit mode."""

    server: postgres.Server
    folder: Path
    connection: psycopg.Connection[tuple[Any, ...]]

    @property
    def url(self) -> str:
        return self.server.url(DATABASE)

    @property
    def contract(self) -> Path:
        return self.folder / "reslice.yml"

    def connect(self, *, user: str = postgres.ROLE, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.server.url(DATABASE, user), autocommit=autocommit)

    def declare(self, *, method: str = "replace_slice", wait: str = "30s", lock: str = "5s") -> None:
        """Write the contract."""
        text = project.CONTRACT.replace("METHOD", method).replace("WAIT", wait).replace("LOCK", lock)
        (self.folder / "sql").mkdir(exist_ok=True)
        (self.folder / "sql" / "daily_orders.sql").write_text(project.SOURCE)
        self.contract.write_text(text.replace("duckdb:///orders.duckdb", f'"{self.url}"'))

    def reset(self, *, key: str = "") -> None:
        """Let there be the two tables, empty, and no ledger."""
        self.connection.execute("SET client_min_messages = error")
        self.connection.execute("DROP SCHEMA IF EXISTS reslice CASCADE")
        self.connection.execute("DROP TABLE IF EXISTS orders, daily_orders CASCADE")
        self.connection.execute(project.ORDERS_TABLE)
        self.connection.execute(project.TARGET_TABLE.format(key=key))

    def fill(self, rows: Iterable[Row]) -> None:
        """Insert rows into the target by hand."""
        with self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO daily_orders ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)",
                [(row.order_date, row.channel, *row.measures, row.batch_id) for row in rows],
            )

    def load(self, orders: dict[int, Order]) -> None:
        """Let the orders be these."""
        self.connection.execute("TRUNCATE orders")
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO orders VALUES (%s, %s, %s, %s)",
                [(number, order.day, order.channel, order.price) for number, order in orders.items()],
            )

    # --- what is there ------------------------------------------------------------------------------------------------

    def rows(self, statement: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, list(parameters) or None).fetchall()

    def table(self) -> list[Row]:
        return [Row(*row) for row in self.rows(f"SELECT {COLUMNS} FROM daily_orders")]

    def kept(self) -> list[tuple[str, Row]]:
        """Return every kept row with the run that replaced it."""
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'reslice' AND tablename LIKE 'kept%'"
        found = self.rows(tables)
        assert len(found) <= 1, "one set of columns has one table of kept rows"
        return [
            (row[0], Row(*row[1:]))
            for (name,) in found
            for row in self.rows(f'SELECT "reslice:run", {COLUMNS} FROM reslice."{name}"')
        ]

    def has_ledger(self) -> bool:
        return self.rows("SELECT to_regclass('reslice.runs') IS NOT NULL") == [(True,)]

    def runs(self) -> dict[str, tuple[str, str | None]]:
        """Return the state of every run, and the kind of the error it ended with."""
        if not self.has_ledger():
            return {}
        rows = self.rows("SELECT id, state, CAST(error AS json) ->> 'kind' FROM reslice.runs ORDER BY number")
        return {run: (state, kind) for run, state, kind in rows}

    def published(self, after: int = 0) -> list[Committed]:
        """Return every transaction that published slices, of runs with a number above `after`."""
        if not self.has_ledger():
            return []
        rows = self.rows(
            "SELECT pg_xact_commit_timestamp(s.xmin), s.run_id, s.slice, s.fingerprint_base, s.fingerprint_staged"
            " FROM reslice.run_slices AS s JOIN reslice.runs AS r ON r.id = s.run_id"
            " WHERE s.state = 'published' AND r.number > %s ORDER BY 1",
            [after],
        )
        found: dict[tuple[datetime, str], Committed] = {}
        for at, run, day, base, staged in rows:
            one = found.setdefault((at, run), Committed(at, run, {}))
            one.slices[date.fromisoformat(day)] = (base, staged)
        return list(found.values())

    def committed_at(self, number: str) -> datetime | None:
        """Return when a transaction was committed; None of one that was not."""
        at = "CASE pg_xact_status(n) WHEN 'committed' THEN pg_xact_commit_timestamp(n::xid) END"
        found: datetime | None = self.rows(f"SELECT {at} FROM (SELECT CAST(%s AS xid8) AS n) AS given", [number])[0][0]
        return found

    def pointers(self) -> dict[date, str]:
        """Return the version that each day points at."""
        if not self.has_ledger():
            return {}
        return dict(self.rows("SELECT CAST(slice AS date), version FROM reslice.pointers"))

    def locks_left(self) -> list[tuple[Any, ...]]:
        """Return the locks on the table, and the turns, that are still held when whoever let go of them has gone."""
        held = (
            "SELECT locktype, mode, pid FROM pg_locks WHERE pid <> pg_backend_pid() AND granted"
            " AND (locktype = 'advisory' OR relation = to_regclass('daily_orders'))"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        until = time.monotonic() + LETS_GO_SECONDS
        while (left := self.rows(held)) and time.monotonic() < until:
            time.sleep(0.01)
        return left


@contextmanager
def opened(version: int, folder: Path) -> Iterator[Shop]:
    """Give the shop of one module, on a server of its own."""
    settings = {**postgres.THROWN_AWAY, "listen_addresses": "'127.0.0.1'", "track_commit_timestamp": "on"}
    with postgres.disposable(version, settings) as server:
        with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {DATABASE} OWNER {postgres.ROLE}")
        with psycopg.connect(server.url(DATABASE), autocommit=True) as connection:
            yield Shop(server, folder, connection)
