"""A statement whose answer does not come: no wait for it is for ever.

A statement may rightly take hours, so no clock can tell. Whoever waits long has the server asked, on a connection of
its own, whether it is still at work on the statement. Where it is not, its answer is lost, and the connection is cut:
the driver then ends the wait with an error, and what became of a commit is looked up. A commit that nobody can ask
about is cut as well, and a statement that was asked to stop and did not.

A statement that takes a lock is asked about sooner: who holds it is told, once, as long as it is waited for.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from reslice.engines.postgres.connection import reconnected
from reslice.engines.postgres.connection_errors import TEMPORARY
from reslice.engines.postgres.waiting import Lock, look, words
from reslice.errors import Misused, ResliceError

TICK_SECONDS = 0.5
TOLD_SECONDS = 1.0
"""After how long it is told whom a statement waits for."""
FIRST_LOOK_SECONDS = 20.0
"""After how long the server is asked for the first time; later looks are further apart."""
LOOKS_APART_SECONDS = 60.0
SECOND_LOOK_SECONDS = 3.0
"""The server has to say twice that it is not at work, so far apart: its answer may just be on the way."""
UNREACHABLE_SECONDS = 60.0
"""How long a commit is waited for when the server cannot be reached."""
UNASKED_SECONDS = 1800.0
"""How long, when the server is there and lets nobody in who could ask."""
STOP_SECONDS = 15.0
"""How long a statement has to end after it was asked to stop."""

WHO = (
    "SELECT pg_backend_pid(), (SELECT CAST(backend_start AS text) FROM pg_stat_activity WHERE pid = pg_backend_pid()),"
    " coalesce(CAST(inet_server_addr() AS text), ''), coalesce(inet_server_port(), 0)"
)
"""Which server process a connection has, behind whatever proxy, and where."""
_AT_WORK = (
    "SELECT coalesce(CAST(inet_server_addr() AS text), ''), coalesce(inet_server_port(), 0), coalesce((SELECT"
    " state IS NULL OR state IN ('active', 'fastpath function call', 'disabled') FROM pg_stat_activity"
    " WHERE pid = %s AND CAST(backend_start AS text) = %s), false)"
)


@dataclass
class _Question:
    """A statement that was sent, and what is known of its answer."""

    is_ending: bool
    asked: float = field(default_factory=time.monotonic)
    next_look: float = 0.0
    pause: float = 0.0
    idle_since: float | None = None
    lock: Lock | None = None
    """The lock that it takes, until it is told who holds it."""
    next_word: float = 0.0
    is_told: bool = False
    raised: BaseException | None = None
    """What the listener raised that was told, on this thread and not on that of the statement."""


class Watch:
    """Looks after one connection. `who` is what WHO says of it, `look` makes another connection to the same server.

    `tell` hears whom a statement waits for, on the thread of the watch, and nothing when it goes on.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        who: tuple[Any, ...],
        look: Callable[[], psycopg.Connection[Any]],
        tell: Callable[[str], None],
    ) -> None:
        self.cut: str | None = None
        """Why the connection was cut; None while it was not."""
        self._connection = connection
        self._who = who
        self._look = look
        self._tell = tell
        self._question: _Question | None = None
        self._is_there = False
        self._stop_by: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        threading.Thread(target=self._run, name="reslice watch", daemon=True).start()

    @contextmanager
    def asking(self, *, is_ending: bool, lock: Lock | None = None) -> Iterator[None]:
        """Watch a statement for as long as it takes; `is_ending` says that its end must be known, whatever it is.

        Where it takes a `lock` it is told who holds it. What the listener raises is raised when the statement is over.
        """
        question = _Question(is_ending, pause=FIRST_LOOK_SECONDS, lock=lock)
        question.next_look, question.next_word = question.asked + FIRST_LOOK_SECONDS, question.asked + TOLD_SECONDS
        self._question = question
        try:
            yield
        finally:
            with self._lock:
                self._question = None
        if question.raised is not None:
            raise question.raised
        if question.is_told:
            self._tell("")

    def stop(self) -> None:
        """Take note that what runs now was asked to stop; asked again, it has no longer."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_SECONDS

    def close(self) -> None:
        """Let the connection go unwatched."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            question, now = self._question, time.monotonic()
            if question is None:
                continue
            if self._stop_by is not None and now >= self._stop_by and not question.is_ending:
                self._cut(question, "it was asked to stop and did not; the connection was cut")
            elif now >= question.next_look:
                self._ask(question)
            elif question.lock is not None and now >= question.next_word:
                self._tell_of(question, question.lock)

    def _tell_of(self, question: _Question, lock: Lock) -> None:
        """Tell who holds the lock, unless the statement has it meanwhile; what is not seen yet is looked for again."""
        found = self._found(lock)
        with self._lock:
            if self._question is not question:
                return
            if not found:
                question.next_word = time.monotonic() + TOLD_SECONDS
                return
            question.lock, question.is_told = None, True
            try:
                self._tell(found)
            except BaseException as error:
                question.raised = error

    def _found(self, lock: Lock) -> str:
        """Return who holds the lock; without a name where nobody lets us in to look, nothing when nobody does."""
        try:
            with closing(reconnected(self._connection, "the server")) as connection:
                connection.execute("SET search_path = pg_catalog")
                connection.execute("SET standard_conforming_strings = on")
                seen = look(lambda statement: connection.execute(statement.encode()).fetchall(), lock, self._who[0])
        except (psycopg.Error, ResliceError):
            return words(lock, ())
        return words(lock, seen.holders) if seen.is_waiting and seen.holders else ""

    def _ask(self, question: _Question) -> None:
        """Ask the server whether it is at work on the statement, and cut the connection when it is not."""
        is_at_work = self._is_at_work()
        now = time.monotonic()
        question.pause = min(question.pause * 2, LOOKS_APART_SECONDS)
        question.next_look = now + question.pause
        if is_at_work is None:
            question.idle_since = None
            question.next_look = now + SECOND_LOOK_SECONDS
            limit = UNASKED_SECONDS if self._is_there else UNREACHABLE_SECONDS
            if question.is_ending and now - question.asked >= limit:
                self._cut(question, f"no answer in {now - question.asked:.0f} seconds, and the server cannot be asked")
        elif is_at_work:
            question.idle_since = None
        elif question.idle_since is None:
            question.idle_since, question.next_look = now, now + SECOND_LOOK_SECONDS
        else:
            self._cut(question, f"no answer in {now - question.asked:.0f} seconds, and the server is not at work on it")

    def _is_at_work(self) -> bool | None:
        """Whether the server process is busy; None where that cannot be said."""
        try:
            connection = self._look()
        except (psycopg.Error, ResliceError) as error:
            found = error.failures[0].found if isinstance(error, ResliceError) else (str(error),)
            self._is_there = isinstance(error, Misused) or any(word in line for line in found for word in TEMPORARY)
            return None
        try:
            pid, started, *place = self._who
            connection.execute("SET search_path = pg_catalog")
            row = connection.execute(_AT_WORK, (pid, started)).fetchone()
            return None if row is None or list(row[:2]) != place else bool(row[2])
        except psycopg.Error:
            return None
        finally:
            with suppress(psycopg.Error):
                connection.close()

    def _cut(self, question: _Question, why: str) -> None:
        """End the connection under the driver, which then ends its wait; unless the answer has come meanwhile."""
        with self._lock:
            if self._question is not question:
                return
            self.cut = why
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._connection.fileno())) as ours:
                ours.shutdown(socket.SHUT_RDWR)
