"""The machine of orders on PostgreSQL: the same rules, the same model, and a server that others write to as well."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

from reslice.engines.postgres.session import PostgresSession
from tests import orders_project as project
from tests import postgres
from tests.conformance.databases import PostgresDatabase
from tests.crash.postgres_scenario import Reader
from tests.crash.statements import Killed
from tests.stateful.test_model_machine import MergedOrders, Orders, VersionedOrders, explore

PATIENCE_SECONDS = 20


class Connection(Reader):
    """The connection of the test, which takes what is written for DuckDB."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s")
        super().__init__(self.connection)

    def close(self) -> None:
        self.connection.close()


class PostgresOrders(Orders):
    """Orders in a database of a server of one version. Each run has a connection of its own, as a command has."""

    version: ClassVar[int] = 18
    looks_again = True
    database: PostgresDatabase

    def created(self) -> Path:
        self.database = PostgresDatabase(self.folder, self.version)
        self.database.execute(project.ORDERS_TABLE)
        self.database.execute(project.TARGET_TABLE.format(key=""))
        self.database.let_go()
        contract = self.folder / "reslice.yml"
        text = project.CONTRACT.replace("METHOD", self.method).replace("WAIT", "10s").replace("LOCK", "500ms")
        contract.write_text(text.replace("duckdb:///orders.duckdb", f'"{self.database.url}"'))
        (self.folder / "sql").mkdir()
        (self.folder / "sql" / "daily_orders.sql").write_text(project.SOURCE)
        return contract

    def connected(self) -> Any:
        return Connection(self.database.url)

    @property
    def shared(self) -> None:
        return None

    def kill_at(self, patch: pytest.MonkeyPatch, statement: int) -> None:
        """Let the process die before its n-th statement: its connection is closed, and nothing is said any more."""
        execute, seen = PostgresSession.execute, [0]

        def executed(session: PostgresSession, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
            seen[0] += 1
            if seen[0] >= statement:
                raise Killed
            return execute(session, text, parameters)

        patch.setattr(PostgresSession, "execute", executed)
        patch.setattr(PostgresSession, "roll_back", lambda _session: None)

    def settle(self) -> None:
        """Wait until the server has noticed that clients are gone: their temporary tables and locks go then."""
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        until = time.monotonic() + PATIENCE_SECONDS
        while self.connection.execute(others).fetchall() != [(0,)]:
            assert time.monotonic() < until, "a client does not end"
            time.sleep(0.002)

    def reconnect(self) -> None:
        super().reconnect()
        self.settle()

    def teardown(self) -> None:
        super().teardown()
        self.database.close()


class PostgresMergedOrders(PostgresOrders, MergedOrders):
    """By merge."""


class PostgresVersionedOrders(PostgresOrders, VersionedOrders):
    """By versions."""


MACHINES = {machine.method: machine for machine in (PostgresOrders, PostgresMergedOrders, PostgresVersionedOrders)}
SOME = [
    pytest.param("replace_slice"),
    *(pytest.param(method, marks=pytest.mark.slow) for method in ("merge", "append_version")),
]


def machine_of(method: str, version: int) -> type[Orders]:
    """Return the machine of a method on a version; skip where that version cannot run."""
    try:
        postgres.shared(version)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL {version} here: {reason}")
    machine = MACHINES[method]
    return type(f"{machine.__name__}{version}", (machine,), {"version": version})


@pytest.mark.parametrize("method", SOME)
def test_sample(method: str) -> None:
    explore(machine_of(method, 18), examples=5, steps=12, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("version", [18, 16])
@pytest.mark.parametrize("method", project.METHODS)
def test_many(method: str, version: int) -> None:
    explore(machine_of(method, version), examples=100, steps=20, derandomize=False)
