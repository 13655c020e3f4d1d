"""The project of a contract file, opened anew for every request, and stopped when the studio is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from reslice import contract_file
from reslice.contract import ProjectFile
from reslice.project import Project

BUSY_WAIT = timedelta(seconds=1)
"""How long a page waits for a process that has the file open, before it says so and is loaded again."""


class StudioProject(Project):
    """A project that is only looked at: it opens the database to read, and does not wait long for it."""

    @contextmanager
    def engine(self, *, read_only: bool = True, wait: timedelta = BUSY_WAIT, **options: Any) -> Iterator[Any]:
        """Open the database to read it, whatever was asked for, and let go of it."""
        assert read_only, "the studio writes nothing"
        with super().engine(read_only=True, wait=min(wait, BUSY_WAIT), **options) as engine:
            yield engine


def beside(project: Project) -> StudioProject:
    """Return another project of the same contract, for work that outlives a request."""
    return StudioProject(project._file, project._connection)


class Looking:
    """What requests work with: a project each, of the contract file as it is now."""

    def __init__(self, path: Path, connection: Any = None) -> None:
        self._path = path
        self._connection = connection
        self._file: ProjectFile | None = None
        self._seen: tuple[tuple[int, int], ...] = ()
        self._at_work: set[Project] = set()
        self._is_over = False
        self._lock = threading.Lock()

    @contextmanager
    def project(self) -> Iterator[StudioProject]:
        """Give a project for one request; a mistake in the contract is Misused, as everywhere."""
        project = StudioProject(self._read(), self._connection)
        with self._lock:
            self._at_work.add(project)
            if self._is_over:
                project.interrupt()
        try:
            yield project
        finally:
            with self._lock:
                self._at_work.discard(project)

    def stop(self) -> None:
        """Make every request that is at work end, and every later one."""
        with self._lock:
            self._is_over = True
            at_work = list(self._at_work)
        for project in at_work:
            project.interrupt()

    def _read(self) -> ProjectFile:
        """Return the contract; it is read again when it, or a SQL file that it names, is another one."""
        with self._lock:
            if self._file is None or self._seen != _marks(self._file):
                self._file = contract_file.load(self._path)
                self._seen = _marks(self._file)
            return self._file


def _marks(file: ProjectFile) -> tuple[tuple[int, int], ...]:
    """Return what tells whether the files of a contract have changed since."""
    queries = (
        query
        for contract in file.targets.values()
        for query in (
            contract.source,
            contract.affected,
            *(each.query for each in (contract.controls, *contract.downstream) if each is not None),
        )
        if query is not None
    )
    return tuple(_mark(path) for path in (file.path, *(query.path for query in queries)))


def _mark(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
