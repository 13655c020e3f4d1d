"""Work on many sources at a time, in processes of their own, with answers in the order of the sources.

A worker is this Python, started so that it imports nothing from the folder that is audited. It ends by itself when
whoever started it has gone. One that dies over a source takes no other source with it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")

SEVERAL = 48
"""With fewer sources than this, starting workers costs more than it saves."""

_COUNT_MAX = 8
_CHUNK = 12
"""How many sources a worker is given at a time."""


@dataclass(frozen=True, slots=True)
class Died:
    """The answer to a source whose worker ended over it. `how` is its exit code, or the signal below zero."""

    how: int


class Workers:
    """Processes that are started when there is work for them, and that end with the block."""

    def __init__(self, count: int | None = None) -> None:
        self._count = min(_COUNT_MAX, processors()) if count is None else count
        self._idle: list[subprocess.Popen[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_over = False
        self._starting = threading.Lock()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._starting:
            self._is_over = True
        for process in self._started:
            process.kill()
        for process in self._started:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close(stream)

    def map(
        self, work: Callable[[Item], Value], items: Sequence[Item], *, are_large: bool = False
    ) -> Iterator[Value | Died]:
        """Yield what `work`, a function that can be pickled, makes of each item, in order.

        Where some `are_large`, each is a piece of work by itself, and few of them are enough for workers.
        """
        if self._count < 2 or (len(items) < SEVERAL and not are_large):
            yield from map(work, items)
            return
        size = 1 if are_large else _CHUNK
        chunks = [items[at : at + size] for at in range(0, len(items), size)]
        pending = iter(enumerate(chunks))
        taking = threading.Lock()
        ended: SimpleQueue[tuple[int, list[Value | Died]]] = SimpleQueue()

        def serve() -> None:
            while not self._is_over:
                with taking:
                    number, chunk = next(pending, (-1, ()))
                if number < 0:
                    return
                ended.put((number, self._answers(work, chunk)))

        for _ in range(self._count):
            threading.Thread(target=serve, daemon=True).start()
        ready: dict[int, list[Value | Died]] = {}
        for number in range(len(chunks)):
            while number not in ready:
                other, answers = ended.get()
                ready[other] = answers
            yield from ready.pop(number)

    def _answers(self, work: Callable[[Item], Value], chunk: Sequence[Item]) -> list[Value | Died]:
        """Return the answers to a chunk; when a worker dies over it, each source of it has a worker of its own."""
        answers = self._asked(work, chunk)
        if isinstance(answers, list):
            return answers
        found: list[Value | Died] = []
        for item in chunk:
            one = self._asked(work, [item])
            found += one if isinstance(one, list) else [one]
        return found

    def _asked(self, work: Callable[[Item], Value], chunk: Sequence[Item]) -> list[Value | Died] | Died:
        process = self._idle.pop() if self._idle else self._start()
        if process is None:
            return Died(0)
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        try:
            pickle.dump((work, list(chunk)), process.stdin)
            process.stdin.flush()
            answers: list[Value | Died] = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError, ValueError):
            return Died(process.wait())
        self._idle.append(process)
        return answers

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Return a new worker; None where the work is over."""
        # -P: the folder that is audited may hold a file with the name of a module of Python
        words = [sys.executable, "-P", "-m", "reslice.audit.worker"]
        with self._starting:
            if self._is_over:
                return None
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._started.append(process)
        return process


def _close(stream: Any) -> None:
    """Close one end of a pipe; what was still to be written to a worker that has gone is lost with it."""
    try:
        stream.close()
    except OSError:
        return


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
