"""The databases that proofs start from: a DuckDB file or a PostgreSQL database with the orders and a filled target.

DuckDB files are written in a storage version that an older DuckDB reads as well: a tool brings the one it likes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.proofs import cases
from examples.proofs.cases import Case
from examples.proofs.setups import ROOT, SCRATCH, Setup

STORAGE = "v1.5.0"
FILE = "shop.duckdb"
SUMS = "SELECT count(*), CAST(sum(order_count) AS BIGINT), CAST(sum(amount_cents) AS BIGINT) FROM daily_orders"


@dataclass(frozen=True)
class Database:
    """A database of one proof: how it is found, and how it is spoken to."""

    url: str
    environment: Mapping[str, str]
    execute: Callable[[str], list[Any]]

    def sums(self) -> tuple[int, int, int]:
        """Return rows, orders and cents of the target."""
        rows, orders, cents = self.execute(SUMS)[0]
        return rows, orders, cents


def begin(database: Database, setup: Setup) -> None:
    """Put the orders in, and fill the target unless the tool does it itself."""
    for sql in (cases.FACTS_TABLE, cases.facts_insert()):
        database.execute(sql)
    if not setup.fill:
        for sql in (cases.TARGET_TABLE, cases.FILL):
            database.execute(sql)
    if setup.before:
        database.execute(setup.before)


def fill(database: Database, setup: Setup, folder: Path) -> None:
    """Let a tool fill the target that makes it itself; it ends the proofs when the target is not filled then."""
    if setup.fill:
        words = [word.replace(SCRATCH, str(folder)) for word in setup.fill]
        environment = {**quiet(folder), **database.environment}
        ended = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if ended.returncode:
            raise NotFilled(f"{setup.name}: the target could not be filled\n{ended.stdout}\n{ended.stderr}")
    if database.sums() != cases.FILLED:
        raise NotFilled(f"{setup.name}: the filled target holds {database.sums()}")


class NotFilled(Exception):
    """Why a proof cannot begin."""


def change(database: Database, case: Case) -> None:
    """Let the source become what it is in a case."""
    if case.change:
        database.execute(case.change)


@contextmanager
def duckdb_file(folder: Path) -> Iterator[Database]:
    """Give a DuckDB file in a folder. No connection stays open: whoever comes next owns the file."""
    import duckdb

    path = folder / FILE
    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{path}' (STORAGE_VERSION '{STORAGE}')")

    def execute(sql: str) -> list[Any]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(sql).fetchall()

    url = f"duckdb:///{path}"
    yield Database(url, {"RESLICE_URL": url, "RESLICE_PATH": str(path)}, execute)


@contextmanager
def postgres_database(server: str, name: str, template: str = "template0") -> Iterator[Database]:
    """Give a database of a PostgreSQL server, whose URL has {} for the database; it is gone afterwards."""
    import psycopg

    def execute(sql: str, of: str = name) -> list[Any]:
        with closing(psycopg.connect(server.format(of), autocommit=True)) as connection:
            found = connection.execute(sql.encode())
            return found.fetchall() if found.description else []

    execute(f"CREATE DATABASE {name} TEMPLATE {template}", of="postgres")
    try:
        url = server.format(name)
        yield Database(url, {"RESLICE_URL": url}, execute)
    finally:
        execute(f"DROP DATABASE {name} WITH (FORCE)", of="postgres")


def quiet(folder: Path) -> dict[str, str]:
    """Return the environment in which no tool talks to anybody or leaves a file outside of the folder."""
    return {
        **os.environ,
        "DO_NOT_TRACK": "1",
        "HOME": str(folder / "home"),
        "NO_COLOR": "1",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DBT_VERSION_CHECK": "false",
        "DBT_TARGET_PATH": str(folder / "dbt" / "target"),
        "DBT_LOG_PATH": str(folder / "dbt" / "logs"),
        "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
        "SQLMESH_CACHE": str(folder / "sqlmesh"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
    }
