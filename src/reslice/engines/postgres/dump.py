"""Copying a database of which somebody else makes use: by PostgreSQL's own pg_dump and pg_restore, where they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_KEYS = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "hostaddr": "PGHOSTADDR",
         "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
         "options": "PGOPTIONS", "dbname": "PGDATABASE"}  # fmt: skip
STEP_SECONDS = 0.02
_DEBIAN = Path("/usr/lib/postgresql")


def copied(source: dict[str, str], copy: dict[str, str], is_stopped: Callable[[], bool]) -> tuple[str, ...]:
    """Fill an empty database with what another one holds; return why that was not possible, or nothing.

    A program that runs while it is asked to stop is ended, and has not succeeded.
    """
    said: list[str] = []
    for dump, restore in _programs():
        with tempfile.TemporaryDirectory(prefix="reslice-dump-") as folder:
            file = str(Path(folder) / "dump")
            options = ("--format=custom", "--compress=0", "--no-owner", "--no-privileges", "--no-comments")
            trouble = _run([dump, *options, f"--file={file}"], source, is_stopped)
            if trouble:
                said.append(trouble)
                continue
            restored = ("--no-owner", "--no-privileges", "--exit-on-error", f"--dbname={copy['dbname']}")
            trouble = _run([restore, *restored, file], copy, is_stopped)
            return (trouble,) if trouble else ()
    return tuple(dict.fromkeys(said)) or ("there is no pg_dump here",)


def _programs() -> list[tuple[str, str]]:
    """Return pairs of pg_dump and pg_restore: of the PATH, then those that Debian keeps elsewhere, the newest first."""
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    numbered = [each for each in _DEBIAN.glob("*/bin") if re.fullmatch(r"\d+", each.parent.name)]
    folders += sorted(numbered, key=lambda each: -int(each.parent.name))
    found = []
    for folder in folders:
        dump, restore = (shutil.which(name, path=str(folder)) for name in ("pg_dump", "pg_restore"))
        if dump and restore:
            found.append((dump, restore))
    return found


def _run(words: list[str], parameters: dict[str, str], is_stopped: Callable[[], bool]) -> str:
    """Run one of them on a database; return what it said when it failed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment |= {name: parameters[key] for key, name in _KEYS.items() if key in parameters}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        running = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        while running.poll() is None:
            if is_stopped():
                running.kill()
            time.sleep(STEP_SECONDS)
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.strip()]
    if not running.returncode:
        return ""
    return lines[0] if lines else f"{Path(words[0]).name} ended with {running.returncode}"
