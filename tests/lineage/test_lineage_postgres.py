"""Runs on PostgreSQL are told under the names that OpenLineage has for it: no two servers share one, and no secret."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import reslice
from reslice.engines.postgres.connection import address_of
from reslice.lineage_events import run_uuid
from tests import postgres
from tests.lineage.server import Server
from tests.unit.shop import AFTER, BEFORE, CONTRACT, DAYS, SOURCE

SECRET = "fox-and-hound"
LOCAL = {"PGHOST": "{folder}", "PGPORT": "{port}", "PGUSER": "tester"}


@pytest.fixture(scope="module")
def database() -> Iterator[postgres.Server]:
    """A server that listens on a socket and on TCP, and lets everybody in, whatever the password."""
    try:
        with postgres.disposable(18) as running:
            with psycopg.connect(running.url(user=postgres.ADMIN), autocommit=True) as admin:
                admin.execute(f"CREATE DATABASE shop OWNER {postgres.ROLE}".encode())
            yield running
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")


def shop_of(folder: Path, database: postgres.Server, connection: str) -> reslice.Project:
    """Return the project of the shop in a database whose tables are new."""
    with psycopg.connect(database.url("shop"), autocommit=True) as owner:
        owner.execute("DROP SCHEMA IF EXISTS reslice CASCADE")
        owner.execute("DROP TABLE IF EXISTS orders, daily_orders")
        owner.execute(
            "CREATE TABLE orders AS SELECT * FROM (VALUES (100, DATE '2026-01-02', 'web', CAST(12000 AS bigint)),"
            " (101, DATE '2026-01-01', 'store', 4500), (102, DATE '2026-01-02', 'web', 7000),"
            " (103, DATE '2026-01-02', 'store', 5600)) AS rows (order_id, order_date, channel, amount_cents)"
        )
        owner.execute(
            "CREATE TABLE daily_orders (order_date date, channel text, order_count bigint, amount_cents bigint)"
        )
        owner.cursor().executemany("INSERT INTO daily_orders VALUES (%s, %s, %s, %s)", BEFORE)
    (folder / "reslice.yml").write_text(CONTRACT.replace("duckdb:///shop.duckdb", f'"{connection}"'))
    (folder / "daily.sql").write_text(SOURCE)
    return reslice.open(folder / "reslice.yml")


@pytest.mark.parametrize(
    ("connection", "environment", "host"),
    [
        ("postgresql://tester:${env:SHOP_PASSWORD}@127.0.0.1:{port}/shop", {}, "127.0.0.1"),
        ("postgresql://tester:${env:SHOP_PASSWORD}@/shop?host={folder}&port={port}", {}, "localhost"),
        ("postgresql:///shop", LOCAL, "localhost"),
        ("${env:SHOP_URL}", {"SHOP_URL": f"postgresql://tester:{SECRET}@localhost:{{port}}/shop"}, "localhost"),
    ],
)
def test_a_run_is_told_under_the_server_and_the_database(
    tmp_path: Path,
    database: postgres.Server,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    connection: str,
    environment: dict[str, str],
    host: str,
) -> None:
    place = {"{port}": str(database.port), "{folder}": str(database.folder)}
    for mark, value in place.items():
        connection = connection.replace(mark, value)
        environment = {name: text.replace(mark, value) for name, text in environment.items()}
    for name, text in ({"SHOP_PASSWORD": SECRET} | environment).items():
        monkeypatch.setenv(name, text)
    project = shop_of(tmp_path, database, connection)
    found = project.target("daily_orders").run(DAYS)
    assert (found.outcome, found.warnings) == ("published", ())
    with psycopg.connect(database.url("shop")) as reader:
        columns = "CAST(order_date AS text), channel, order_count, amount_cents"
        assert reader.execute(f"SELECT {columns} FROM daily_orders ORDER BY 1, 2".encode()).fetchall() == AFTER
    assert server.types == ["START", "COMPLETE"]
    namespace = f"postgres://{host}:{database.port}"
    for event in server.events:
        assert [(each["namespace"], each["name"]) for each in event["outputs"]] == [
            (namespace, "shop.public.daily_orders")
        ]
        assert event["job"]["name"] == "reslice.shop.public.daily_orders"
        assert event["run"]["runId"] == str(UUID(run_uuid(project.show("r-0001"), namespace)))
    told = json.dumps(server.events)
    assert SECRET not in told and "tester" not in told and str(database.folder) not in told


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("db.test", 5432, "db.test:5432"),
        ("10.0.0.7", 6432, "10.0.0.7:6432"),
        ("::1", 5432, "[::1]:5432"),
        ("/var/run/postgresql", 5433, "localhost:5433"),
        ("@reslice", 5432, "localhost:5432"),
        ("", 5432, "localhost:5432"),
    ],
)
def test_a_server_is_called_by_host_and_port_and_a_socket_is_of_this_machine(
    host: str, port: int, address: str
) -> None:
    assert address_of(host, port) == address


def test_the_same_run_of_two_servers_is_two_runs(tmp_path: Path, database: postgres.Server, server: Server) -> None:
    project = shop_of(tmp_path, database, database.tcp_url("shop"))
    project.target("daily_orders").run(DAYS)
    recorded = project.show("r-0001")
    first, second = (run_uuid(recorded, f"postgres://{host}:5432") for host in ("one.test", "two.test"))
    assert first != second
