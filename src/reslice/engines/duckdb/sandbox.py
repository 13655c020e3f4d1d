"""A DuckDB file in which somebody's command may run: a copy of the file and its log, in a folder that is removed.

The original is opened read-only while it is copied, so that no process can write to it meanwhile. No handle is kept on
the copy while the command runs: DuckDB lets one process own a file. The evidence is a file of its own beside it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote as percent

import duckdb

from reslice.contract import Connection
from reslice.engines.duckdb import connect
from reslice.engines.duckdb.engine import DuckDB
from reslice.engines.duckdb.errors import hide, lines_of
from reslice.engines.failures import interrupted
from reslice.engines.sandbox import Look, Way, Wish
from reslice.engines.sql import dotted, quote, text_literal
from reslice.errors import SAME_AGAIN, Failure, Refused, Retryable

PREFIX = "reslice-prove-"
OWNER = "owner.json"
EVIDENCE = "reslice_evidence"
KEPT = "reslice_kept_"
"""How the file begins that holds the rows from before a proof in place; DuckDB calls it by what precedes the dot."""
WAIT = timedelta(seconds=5)
STEP_SECONDS = 0.005
_LOCKED = "Could not set lock on file"
"""What DuckDB says, also in other languages' drivers, to a process that opens a file which another one has."""

_COPY = "import shutil, sys\nfor one, other in zip(sys.argv[1::2], sys.argv[2::2]): shutil.copyfile(one, other)"


def make(connection: Connection, wish: Wish) -> DuckDBPlace:
    """Return a place for a command; what an earlier proof left that was killed is removed and named.

    Raises Misused[connection], Retryable[database_busy] while another process writes, Refused[sandbox] without room.
    """
    found = connect(connection, read_only=True, wait=WAIT, on_wait=lambda text: wish.on_step(f"waiting: {text}"))
    assert connection.path is not None, "a file that was opened has a path"
    path = connection.path.resolve()
    try:
        if wish.in_place:
            return InPlace(path, connection.shown, kept_copies(path))
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(6)}"
        notes = sweep()
        _refuse_without_room(connection.shown, path, 2 if wish.more else 1)
        folder.mkdir(mode=0o700)
        owner = {"pid": os.getpid(), "started": _started(os.getpid()), "host": socket.gethostname()}
        (folder / OWNER).write_text(json.dumps(owner), encoding="utf-8")
        try:
            first = folder / "1"
            copy(path, first, wish.is_stopped)
            if wish.more:
                copy(path, folder / "origin", wish.is_stopped)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Sandbox(folder, first / path.name, path, connection.shown, notes)
    finally:
        found.close()


class DuckDBPlace:
    """What a copy and the file itself have in common."""

    def __init__(self, file: Path, evidence: Path, shown: str, notes: tuple[str, ...]) -> None:
        self.file = file
        self.evidence = evidence
        self.shown = shown
        self.kept = ""
        self.notes = notes
        self._first_mark = mark_of(file)

    def way(self) -> Way:
        """Return how a command finds the file."""
        path, url = str(self.file), f"duckdb:///{percent(str(self.file))}"
        return Way(url, path, {"RESLICE_URL": url, "RESLICE_PATH": path})

    @contextmanager
    def look(self, *, writes: bool = False) -> Iterator[Look]:
        """Open the evidence, and the file attached to it, by the name that it has when it is opened alone."""
        with _looking(self.file, self.evidence, self.shown, writes=writes) as look:
            yield look

    def mark(self, table: str) -> str:
        """Return size and time of the file and its log."""
        return mark_of(self.file)

    def is_in_use(self) -> bool:
        """Whether the file was written to, or has a log, since it was copied."""
        return mark_of(self.file) != self._first_mark

    def is_locked_out(self, output: str) -> bool:
        """Whether DuckDB said that another process has the file: one process at a time may write."""
        return _LOCKED in output

    def settle(self) -> None:
        """Return at once: what a process of DuckDB did ends with it."""

    def put_back_by_hand(self, table: str) -> str:
        """Return the statements by which a person puts the rows from before back."""
        kept = f"ATTACH {text_literal(str(self.evidence))} AS kept (READ_ONLY)"
        return f"{kept}; BEGIN; DELETE FROM {table}; INSERT INTO {table} BY NAME SELECT * FROM kept.kept; COMMIT;"


class Sandbox(DuckDBPlace):
    """A copy of the file in a folder of its own."""

    def __init__(self, folder: Path, file: Path, real: Path, shown: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(file, folder / f"{EVIDENCE}.duckdb", str(file), notes)
        self._folder = folder
        self._real = real
        self._real_shown = shown
        self._real_mark = mark_of(real)
        self._count = 1

    def look_at_real(self) -> AbstractContextManager[Look] | None:
        """Open the file that this is a copy of, read-only; None where its size and time are as they were."""
        if mark_of(self._real) == self._real_mark:
            return None
        return _looking(self._real, self.evidence, self._real_shown, writes=False)

    def another(self) -> Sandbox:
        """Return a fresh copy of the file as it was copied first."""
        self._count += 1
        place = self._folder / str(self._count)
        copy(self._folder / "origin" / self.file.name, place)
        return Sandbox(place, place / self.file.name, self._real, self._real_shown)

    def keep(self) -> str:
        """Let the folder stay, and return the file."""
        owner = self._folder / OWNER
        told = json.loads(owner.read_text(encoding="utf-8"))
        owner.write_text(json.dumps(told | {"kept": True}), encoding="utf-8")
        return str(self.file)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self._folder, ignore_errors=True)


class InPlace(DuckDBPlace):
    """The file itself; the evidence, and the rows from before, are in a file beside it until they are put back."""

    def __init__(self, path: Path, shown: str, notes: tuple[str, ...]) -> None:
        evidence = path.with_name(f"{KEPT}{secrets.token_hex(6)}.{path.name}")
        super().__init__(path, evidence, shown, notes)
        self.kept = str(evidence)

    def look_at_real(self) -> None:
        """Return None: there is no other database."""
        return

    def another(self) -> Sandbox:
        """Refuse: there is no copy, so there is no fresh one."""
        raise AssertionError("a proof in place has no copies")

    def keep(self) -> str:
        """Return the file: it is nobody's copy."""
        return str(self.file)

    def remove(self) -> None:
        """Remove the file with what was kept; the database stays."""
        for each in self.evidence.parent.glob(f"{self.evidence.name}*"):
            each.unlink(missing_ok=True)


@contextmanager
def _looking(file: Path, evidence: Path, shown: str, *, writes: bool) -> Iterator[Look]:
    hide(file, shown)
    try:
        connection = duckdb.connect(str(evidence))
    except duckdb.Error as error:
        raise _not_opened(shown, error) from error
    try:
        beside = connection.execute("SELECT current_database()").fetchall()[0][0]
        try:
            connection.execute(f"ATTACH {text_literal(str(file))}{'' if writes else ' (READ_ONLY)'}")
        except duckdb.Error as error:
            raise _not_opened(shown, error) from error
        rows = connection.execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> ?", [beside]
        ).fetchall()
        connection.execute(f"USE {quote(rows[0][0])}")
        engine = DuckDB(connection, shown=shown, path=None)
        try:
            engine.execute("SET TimeZone = 'UTC'")
            yield Look(engine, dotted(beside, "main"))
        finally:
            engine.close()
    finally:
        connection.close()


def _not_opened(shown: str, error: duckdb.Error) -> Retryable:
    failure = Failure("database_busy", "to look at the table after the command", lines_of(error), SAME_AGAIN)
    return Retryable(shown, [failure], unchanged="the database itself was not touched by reslice")


def mark_of(path: Path) -> str:
    """Return size and time of a file and its logs; they change with every write."""
    return " ".join(f"{each.name}:{each.stat().st_size}:{each.stat().st_mtime_ns}" for each in files_of(path))


def files_of(path: Path) -> list[Path]:
    """Return the files of a database: itself, and its write-ahead logs, by whatever name they have."""
    logs = [each for each in path.parent.glob(f"{_escaped(path.name)}.*") if "wal" in each.name[len(path.name) :]]
    return [each for each in (path, *sorted(logs)) if each.is_file()]


def _escaped(name: str) -> str:
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)


def copy(path: Path, folder: Path, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Copy a database with its logs into a new folder, byte by byte.

    Another process does it: where this one closed the file, the lock that it has on it would be gone. Raises
    Interrupted when it is stopped meanwhile.
    """
    folder.mkdir()
    pairs = [word for each in files_of(path) for word in (str(each), str(folder / each.name))]
    words = [sys.executable, "-I", "-S", "-c", _COPY, *pairs]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True) as copying:
        while copying.poll() is None:
            if is_stopped():
                copying.kill()
                raise interrupted(path.name)
            time.sleep(STEP_SECONDS)
    if copying.returncode:
        raise subprocess.CalledProcessError(copying.returncode, words)


def _refuse_without_room(shown: str, path: Path, copies: int) -> None:
    needed = sum(each.stat().st_size for each in files_of(path)) * copies
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free > needed:
        return
    found = f"{folder} has room for {free // 2**20} MB, and the copy takes {needed // 2**20} MB"
    after = "set TMPDIR to a folder with room, then  reslice prove …, or use --in-place"
    failure = Failure("sandbox", "a copy of the database to run the command in", (found,), after)
    raise Refused(shown, [failure], unchanged="the command was not run")


# What an earlier proof left behind.


def sweep() -> tuple[str, ...]:
    """Remove the sandboxes of proofs whose process is gone, and say so."""
    return tuple(f"removed {folder}, which a proof that was killed had left" for folder in _left() if _gone(folder))


def _left() -> Iterator[Path]:
    for owner in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{OWNER}")):
        try:
            told = json.loads(owner.read_text(encoding="utf-8"))
            pid, started, host = int(told["pid"]), told["started"], told["host"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not told.get("kept") and host == socket.gethostname() and _started(pid) != started:
            yield owner.parent


def _gone(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _started(pid: int) -> str:
    """Return when a process began, as its system counts; empty where there is none of that number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        pass
    ended = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return ended.stdout.strip()


def kept_copies(path: Path) -> tuple[str, ...]:
    """Name the rows that proofs in place have kept of a database and not put back, and how that is done by hand."""
    found = sorted(path.parent.glob(f"{KEPT}*.{_escaped(path.name)}"))
    return tuple(
        f"{each} holds rows that a proof in place kept and did not put back, in its table kept" for each in found
    )
