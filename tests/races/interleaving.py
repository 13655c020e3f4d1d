"""Something happens between two statements of a run: before its n-th, counted from 1, other threads not counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest

import reslice
from reslice.engines.duckdb import DuckDB
from reslice.errors import ResliceError
from reslice.values import Run
from tests.model import Call

Ended = Run | ResliceError
PATIENCE_SECONDS = 30
GOES_SECONDS = 0.5


@dataclass
class Seen:
    """The statements of this thread, and those of every other."""

    mine: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def others_wait(self) -> bool:
        """Whether another run has met the fence, and tries again."""
        return sum(is_fence(text) for text in self.others) > 1


def is_fence(text: str) -> bool:
    """Whether a statement is the first of a publish."""
    return text.startswith("UPDATE") and ".fences" in text


def before(patch: pytest.MonkeyPatch, acts: Mapping[int, Callable[[], None]]) -> Seen:
    """Do each act once, just before its statement of this thread's run; return the statements that are seen."""
    execute = DuckDB.execute
    me = threading.get_ident()
    seen = Seen()
    waiting = dict(acts)

    def counted(engine: DuckDB, text: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        if threading.get_ident() == me:
            seen.mine.append(text)
            waiting.pop(len(seen.mine), lambda: None)()
        else:
            seen.others.append(text)
        return execute(engine, text, parameters)

    patch.setattr(DuckDB, "execute", counted)
    return seen


def run(project: reslice.Project, call: Call) -> Ended:
    """Run, or restore, and return the run or the error it ended with."""
    target, span = project.target(call.target), f"{call.first}..{call.last}"
    try:
        if call.restores is not None:
            return target.restore(call.restores, span)
        return target.run(span, rewrite=call.rewrite, per_slice=call.per_slice)
    except ResliceError as error:
        return error


def outcome(ended: Ended) -> str:
    """Return how a run ended: its outcome, or the kind of its error."""
    return ended.kind if isinstance(ended, ResliceError) else ended.outcome.value


@dataclass
class Beside:
    """A run in a thread of its own, on the same database."""

    project: reslice.Project
    call: Call
    ended: list[Ended] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=lambda: self.ended.append(run(self.project, self.call)))

    def go(self, seen: Seen) -> None:
        """Start it, and wait until it ends, or cannot go on before the run that waits here does."""
        self._thread.start()
        deadline = time.monotonic() + GOES_SECONDS
        while self._thread.is_alive() and not seen.others_wait and time.monotonic() < deadline:
            self._thread.join(0.005)

    def finish(self) -> None:
        """Start it, and wait for its end, whatever stands in its way."""
        self._thread.start()
        self.end()

    def end(self) -> Ended:
        """Wait for its end, and return how it ended."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the other run hangs"
        return self.ended[0]


@dataclass
class Writer:
    """A connection of somebody else. Statements that fail are remembered, and roll back what was open."""

    connection: duckdb.DuckDBPyConnection
    errors: list[str] = field(default_factory=list)
    is_open: bool = False

    def write(self, statement: str) -> None:
        """Write and commit."""
        try:
            self.connection.execute(statement)
        except duckdb.Error as error:
            self.errors.append(str(error))

    def begin(self, statement: str) -> None:
        """Write, and leave the transaction open."""
        self.connection.execute("BEGIN TRANSACTION")
        self.is_open = True
        try:
            self.connection.execute(statement)
        except duckdb.Error as error:
            self.errors.append(str(error))
            self.end("ROLLBACK")

    def end(self, word: str) -> None:
        """Commit or roll back what is open."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            self.connection.execute(word)
        except duckdb.Error as error:
            self.errors.append(str(error))

    @property
    def has_written(self) -> bool:
        """Whether everything went through, as far as this writer was told."""
        return not self.errors
