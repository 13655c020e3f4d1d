"""A real PostgreSQL whose rules of access a test may write, and a real pgbouncer in front of it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from tests.postgres import NotRunnable, disposable


@dataclass(frozen=True)
class Server:
    """A server on a Unix socket in its own folder, and on a TCP port; `postgres` is let in without a password."""

    folder: Path
    port: int

    def url(self, user: str = "postgres", database: str = "postgres", more: str = "") -> str:
        return f"postgresql://{user}@/{database}?{self.at}{more}"

    @property
    def at(self) -> str:
        """Where the server is, as options of a URL."""
        return f"host={self.second}"

    @property
    def second(self) -> str:
        """Where the server is, after the comma of another host."""
        return f"{self.folder}&port={self.port}"

    @property
    def socket(self) -> str:
        """How libpq calls the server."""
        return f'server on socket "{self.folder}/.s.PGSQL.{self.port}"'

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def ask_for_passwords(self, *roles: str) -> None:
        """Let roles in with a password only."""
        rules = self.folder / "pg_hba.conf"
        rules.write_text("".join(f"{way} scram-sha-256\n" for role in roles for way in _ways(role)) + rules.read_text())
        self.run("SELECT pg_reload_conf()")


def _ways(role: str) -> tuple[str, str]:
    return f"local all {role}", f"host all {role} 127.0.0.1/32"


@contextmanager
def server(version: int = 18) -> Iterator[Server]:
    """Yield a server of one's own; where there can be none skip, or fail where CI wants every test."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(disposable(version))
        except NotRunnable as error:
            _missing(str(error))
        yield Server(running.folder, running.port)


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(what)
    pytest.skip(what)


def pgbouncer_program() -> str:
    """Return where pgbouncer is; without it skip, or fail where CI wants every test."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if found is None:
        _missing("there is no pgbouncer; as root, `make pgbouncer` installs it")
    return found


@contextmanager
def pgbouncer(program: str, server: Server, folder: Path, mode: str, size: int, more: str = "") -> Iterator[str]:
    """Yield the URL of a pgbouncer that has `size` connections to a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / "pgbouncer.ini"
    settings.write_text(f"""\
[databases]
shop = host={server.folder} port={server.port} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
{more}
""")
    # pgbouncer does not run as root.
    owner = server.folder.stat()
    identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with settings.open() as file, (folder / "pgbouncer.log").open("w") as log:
        command = [program, f"/dev/fd/{file.fileno()}"]
        process = subprocess.Popen(command, pass_fds=[file.fileno()], stdout=log, stderr=log, **identity)  # type: ignore[call-overload]
        try:
            _wait_for(port, process, folder / "pgbouncer.log")
            yield f"postgresql://anyone@127.0.0.1:{port}/shop"
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(log.read_text())
