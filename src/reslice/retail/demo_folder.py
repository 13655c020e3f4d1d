"""The directory that the demo leaves behind: made once, made anew on request, and never anybody else's.

The demo writes a fixed list of files. A note beside them keeps a digest of each text, so that a file that was edited
since is told from one that can be replaced. Nothing that is not on the list is ever removed or overwritten.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from datetime import timedelta
from pathlib import Path

from reslice.contract import Connection
from reslice.engines import duckdb as engine
from reslice.errors import Failure, Misused, Retryable
from reslice.retail import load

DATABASE = "retail.duckdb"
CONTRACT = "reslice.yml"
NOTE = ".reslice-demo.json"
DATABASE_FILES = (DATABASE, f"{DATABASE}.wal")
NOTE_TEXT = "Files that `reslice demo` made: it makes them anew when it is run here again, unless they were edited."


def make(folder: Path) -> bool:
    """Make the project with an empty database in `folder`; return whether an earlier demo there was replaced.

    Raises Misused[usage] when the directory holds anything but an earlier demo, or when a file of that was edited, and
    Retryable[database_busy] when another process works on its database; nothing is touched then.
    """
    is_again = _is_earlier_demo(folder)
    try:
        _write(folder)
    except OSError as problem:
        raise _unwritable(folder, problem) from problem
    engine.create(folder / DATABASE)
    return is_again


def copy(folder: Path, into: Path) -> None:
    """Copy the project with its database; the database must not be open for writing."""
    for name in (*_texts(), DATABASE):
        (into / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(folder / name, into / name)


def _is_earlier_demo(folder: Path) -> bool:
    """Return whether there is an earlier demo that may be replaced, False when nothing is there at all."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise _misused(folder, "a directory, or the name of a new one", f"{folder} is a file")
    if not any(folder.iterdir()):
        return False
    digests = _noted_digests(folder)
    if digests is None:
        asked = "an empty directory, a new one, or one that an earlier demo made"
        raise _misused(folder, asked, f"{folder} holds other files")
    edited = [name for name in (*_texts(), *DATABASE_FILES) if not _is_as_made(folder, name, digests)]
    if edited:
        asked = "the files of an earlier demo as it made them"
        raise _misused(folder, asked, f"edited since, and yours now: {', '.join(edited)}")
    _check_free(folder)
    return True


def _noted_digests(folder: Path) -> dict[str, str] | None:
    """Return the digest of each text an earlier demo wrote here, None when there was none."""
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    digests = note.get("files") if isinstance(note, dict) else None
    return digests if isinstance(digests, dict) else None


def _is_as_made(folder: Path, name: str, digests: dict[str, str]) -> bool:
    """Return whether a file is gone, or is the demo's own. A link could lead to a file of somebody else."""
    path = folder / name
    if not path.exists() and not path.is_symlink():
        return True
    if path.resolve() != folder.resolve() / name or not path.is_file():
        return False
    return name in DATABASE_FILES or _digest(path.read_bytes()) == digests.get(name)


def _check_free(folder: Path) -> None:
    """Refuse to replace a database in which another process works. One that cannot be opened at all is in no use."""
    path = folder / DATABASE
    if not path.is_file():
        return
    connection = Connection("duckdb", "", str(path), path)
    try:
        engine.connect(connection, read_only=False, wait=timedelta(0), on_wait=lambda found: None).close()
    except Retryable as error:
        if error.kind != "database_busy":
            return
        after = f"close it, then  reslice demo --into {shlex.quote(str(folder))}"
        failure = Failure(error.kind, f"{path} to itself", error.failures[0].found, after)
        raise Retryable(f"demo --into {folder}", [failure], unchanged=f"nothing in {folder} was touched") from error


def _write(folder: Path) -> None:
    """Write the project's texts, the note first: a demo that is cut short can then be run again."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = _texts()
    files = {name: _digest(text) for name, text in texts.items()}
    note = json.dumps({"note": NOTE_TEXT, "files": files}, indent=2) + "\n"
    (folder / NOTE).write_text(note, encoding="utf-8")
    for name in DATABASE_FILES:
        (folder / name).unlink(missing_ok=True)
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text)


def _texts() -> dict[str, bytes]:
    """Return the texts of the example project by their path in it, the contract first."""
    paths = (load.PROJECT / CONTRACT, *sorted(load.PROJECT.glob("sql/*.sql")))
    return {path.relative_to(load.PROJECT).as_posix(): path.read_bytes() for path in paths}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _misused(folder: Path, asked: str, found: str) -> Misused:
    after = f"reslice demo --into {shlex.quote(str(_free_beside(folder)))}"
    failure = Failure("usage", asked, (found,), after)
    return Misused(f"demo --into {folder}", [failure], unchanged=f"nothing in {folder} was touched")


def _unwritable(folder: Path, problem: OSError) -> Misused:
    found = f"{problem.strerror}: {problem.filename}"
    failure = Failure("usage", "a directory that can be written", (found,), 'reslice demo --into "$(mktemp -d)"')
    unchanged = f"no file but the demo's own was touched in {folder}"
    return Misused(f"demo --into {folder}", [failure], unchanged=unchanged)


def _free_beside(folder: Path) -> Path:
    """Return a path beside `folder` at which nothing is yet."""
    number = 2
    stem = folder if folder.name else folder / "reslice-demo"
    while stem.with_name(f"{stem.name}-{number}").exists():
        number += 1
    return stem.with_name(f"{stem.name}-{number}")
