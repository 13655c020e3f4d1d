"""A server that wants a password: it works, and the password is in nothing that is said, kept, sent or shown.

Every command is a process of its own, as a scheduler starts it; beside it stand the titles of its processes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests import postgres
from tests.conformance.orders import D1, D2, D3, FACTS, SOURCE, T0

PASSWORD = "qzjx@QZJX/zxqj:%zz?'\"$1"
"""Of letters that stand together in no word, and of signs that a URL, a shell and SQL read otherwise."""
BEGIN = "import sys; from reslice.start import main; sys.exit(main())"
MORE_WAYS = ("password", "file", "PGPASSWORD", "pgpass")
PARTS = ("qzjx", "QZJX", "zxqj")

CONTRACT = """\
version: 1
connection: {connection}
targets:
  daily_orders:
    table: daily_orders
    source: source.sql
    grain: [order_date, channel]
    slice: {{column: order_date, unit: day}}
    measures: {{order_count: {{min: 1}}, amount_cents: {{}}}}
    guards: {{empty_slice: allow, total_change: allow}}
"""


VERSIONS = [pytest.param(18, id="postgresql18"), pytest.param(16, id="postgresql16", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    """A server that lets its role in over TCP with a password only, and writes down every statement."""
    try:
        with postgres.disposable(request.param, {"log_statement": "all", "log_connections": "on"}) as running:
            rules = running.folder / "pg_hba.conf"
            rules.write_text("host all clerk 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
            with psycopg.connect(running.url(user=postgres.ADMIN), autocommit=True) as admin:
                verifier = admin.pgconn.encrypt_password(PASSWORD.encode(), b"clerk", b"scram-sha-256").decode()
                admin.execute(f"CREATE ROLE clerk LOGIN PASSWORD '{verifier}'".encode())
                admin.execute("CREATE DATABASE shop OWNER clerk")
                admin.execute("SELECT pg_reload_conf()")
            yield running
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")


class Shop:
    """A folder with a contract, and the ways of giving its password."""

    def __init__(self, folder: Path, server: postgres.Server, way: str) -> None:
        self.folder, self.server = folder, server
        plain = f"postgresql://clerk@127.0.0.1:{server.port}/shop"
        whole = plain.replace("clerk@", f"clerk:{quote(PASSWORD, safe='')}@")
        self.environment = {**os.environ, "PGPASSFILE": str(folder / "none")}
        connection = plain
        if way == "url":
            self.environment["SHOP_URL"], connection = whole, '"${env:SHOP_URL}"'
        elif way == "password":
            self.environment["SHOP_WORD"] = PASSWORD
            connection = '"' + plain.replace("clerk@", "clerk:${env:SHOP_WORD}@") + '"'
        elif way == "file":
            (folder / "word").write_text(whole + "\n")
            connection = '"${file:word}"'
        elif way == "PGPASSWORD":
            self.environment["PGPASSWORD"] = PASSWORD
        elif way == "pgpass":
            told = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
            (folder / "pass").write_text(f"127.0.0.1:{server.port}:shop:clerk:{told}\n")
            (folder / "pass").chmod(0o600)
            self.environment["PGPASSFILE"] = str(folder / "pass")
        (folder / "reslice.yml").write_text(CONTRACT.format(connection=connection))
        self.source(SOURCE)
        with self.connected() as connection_of_ours:
            for statement in (
                "GRANT CREATE ON SCHEMA public TO clerk",
                "DROP SCHEMA IF EXISTS reslice CASCADE",
                "DROP TABLE IF EXISTS orders_fact, daily_orders CASCADE",
                "SET ROLE clerk",
                "CREATE TABLE orders_fact (order_id bigint, order_date date, channel varchar, amount_cents bigint)",
                "CREATE TABLE daily_orders (order_date date, channel varchar, order_count bigint, amount_cents bigint)",
            ):
                connection_of_ours.execute(statement)
            connection_of_ours.cursor().executemany("INSERT INTO orders_fact VALUES (%s, %s, %s, %s)", FACTS)

    def connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.server.url("shop", user=postgres.ADMIN), autocommit=True)

    def source(self, text: str) -> None:
        (self.folder / "source.sql").write_text(text)

    def reslice(self, *words: str, code: int = 0) -> str:
        """Run a command, and return everything that it, its files, its processes and the server say."""
        command = [sys.executable, "-c", BEGIN, *words]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        titles: list[str] = []
        stop = threading.Event()
        looker = threading.Thread(target=self._look, args=(process.pid, titles, stop))
        looker.start()
        out, err = process.communicate(timeout=60)
        stop.set()
        looker.join()
        assert process.returncode == code, (words, out, err)
        assert titles, "its processes were looked at"
        return "\n".join([out, err, *titles])

    def _look(self, pid: int, titles: list[str], stop: threading.Event) -> None:
        with self.connected() as connection:
            while not stop.is_set():
                for process in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        title = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    except OSError:
                        continue
                    if process.parent.name == str(pid) or "postgres" in title:
                        titles.append(title)
                rows = connection.execute(
                    "SELECT application_name, query FROM pg_stat_activity WHERE usename = 'clerk'"
                )
                titles.extend(str(row) for row in rows)
                stop.wait(0.2)

    def kept(self) -> str:
        """Everything that the database and the folder hold, but the contract's own secrets."""
        said = []
        with self.connected() as connection:
            tables = connection.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'reslice'")
            for schema, table in tables.fetchall():
                rows = connection.execute(f'SELECT t::text FROM "{schema}"."{table}" AS t'.encode())
                said += [str(row[0]) for row in rows]
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in ("word", "pass"):
                said.append(path.read_text(errors="replace"))
        said.append((self.server.folder / "log").read_text(errors="replace"))
        return "\n".join(said)


def shows_nothing(text: str) -> bool:
    found = [part for part in PARTS if part in text]
    assert not found, re.findall(f".*{found[0]}.*", text)[:3]
    return True


@pytest.mark.parametrize("way", ["url", *(pytest.param(way, marks=pytest.mark.slow) for way in MORE_WAYS)])
def test_a_password_is_used_and_never_shown(
    way: str, server: postgres.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, server, way)
    events = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    (tmp_path / "openlineage.yml").write_text(json.dumps({"transport": transport}))
    shop.environment["OPENLINEAGE_CONFIG"] = str(tmp_path / "openlineage.yml")

    said = [
        shop.reslice("plan", "daily_orders", f"{D1}..{D3}", "--out", "plan.json", "--sql"),
        shop.reslice("--log-format", "json", "run", "daily_orders", f"{D1}..{D3}"),
        shop.reslice("run", "daily_orders", D2, "--json"),
        shop.reslice("history", "--json"),
        shop.reslice("doctor", "--json"),
    ]
    with shop.connected() as connection:
        assert connection.execute("SELECT count(*), sum(amount_cents) FROM daily_orders").fetchone() == (6, 12149)
    assert len(T0) == 6
    shop.source("SELECT no_such_column FROM orders_fact WHERE order_date BETWEEN :start AND :end")
    said.append(shop.reslice("run", "daily_orders", D2, code=2))
    shop.source(SOURCE.replace("count(*)", "1 / 0"))
    said.append(shop.reslice("run", "daily_orders", D2, "--json", code=4))
    assert events.exists() and '"COMPLETE"' in events.read_text() and '"FAIL"' in events.read_text()
    assert shows_nothing("\n".join(said)) and shows_nothing(shop.kept())


@pytest.mark.parametrize("way", ["password", pytest.param("url", marks=pytest.mark.slow)])
def test_a_wrong_password_is_not_shown_either(way: str, server: postgres.Server, tmp_path: Path) -> None:
    shop = Shop(tmp_path, server, way)
    with shop.connected() as admin:
        admin.execute("ALTER ROLE clerk PASSWORD 'another'")
    try:
        said = [
            shop.reslice(command, "daily_orders", D2, *more, code=2)
            for command in ("plan", "run")
            for more in ((), ("--json",))
        ]
    finally:
        with shop.connected() as admin:
            verifier = admin.pgconn.encrypt_password(PASSWORD.encode(), b"clerk", b"scram-sha-256").decode()
            admin.execute(f"ALTER ROLE clerk PASSWORD '{verifier}'".encode())
    assert all("password authentication failed" in text for text in said)
    assert shows_nothing("\n".join(said)) and shows_nothing(shop.kept())
