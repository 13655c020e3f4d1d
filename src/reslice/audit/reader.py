"""What reads one kind of file: its name, what it answers, and the limits within which it has to.

A reader is a module with a function `answer(source, dialect, known)`. `dialect` is the one that was named, or None;
`known` are the tables that all audited files declare. Whatever a file holds, a reader answers: what it cannot read or
judge is unparsed, with the reason.
"""

from __future__ import annotations

import importlib
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from sqlglot.errors import SqlglotError

from reslice.audit.files import Kind, Source
from reslice.audit.finding import Finding, Unparsed
from reslice.audit.known import Known
from reslice.audit.text import Text
from reslice.reading.parse import quiet

SECONDS_MAX = 20.0
"""The longest time of a processor that one file may take, where the system can interrupt it."""

DEPTH_MAX = 400
"""The deepest nesting of brackets that is read."""

READERS = {Kind.SQL: "reslice.audit.sql", Kind.DBT: "reslice.audit.dbt", Kind.PYTHON: "reslice.audit.python"}
"""Of each kind of file, the module that reads it."""

_BRACKET = re.compile(r"[()]")
_MISTAKES = (SqlglotError, ValueError, TypeError, AttributeError, LookupError, AssertionError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source says. `texts` are the files that were read, also in part; `guessed` the dialect nobody named.

    `was_read` says that there is something in it that was read and judged, or nothing to read.
    """

    texts: tuple[Text, ...] = ()
    findings: tuple[Finding, ...] = ()
    unparsed: tuple[Unparsed, ...] = ()
    guessed: str = ""
    was_read: bool = True


Reader = Callable[[Source, str | None, Known], Answer]


def reader_of(kind: Kind) -> Reader:
    """Return the function that reads a kind of file."""
    found: Reader = importlib.import_module(READERS[kind]).answer
    return found


def within_limits(text: Text, work: Callable[[], Answer]) -> Answer:
    """Return what reading one file answers; where that takes too long, nests too deep or fails, it is unparsed."""
    try:
        if deepest(text.text) > DEPTH_MAX:
            return _given_up(text, f"its brackets are nested more than {DEPTH_MAX} deep")
        with _at_most(SECONDS_MAX), quiet():
            return work()
    except TooLong:
        return _given_up(text, f"it took longer than {SECONDS_MAX:g} s, the most that one file may take")
    except RecursionError:
        return _given_up(text, "it is nested too deep")
    except MemoryError:
        return _given_up(text, "there is not enough memory for it")
    except _MISTAKES as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"
        return _given_up(text, f"a bug in reslice: {where}; the file is not judged")


def _given_up(text: Text, why: str) -> Answer:
    return Answer((text,), (), (Unparsed(text.path, 1, 1, why),), was_read=False)


def deepest(text: str) -> int:
    """Return how deep brackets are nested, wherever they stand."""
    depth = most = 0
    for each in _BRACKET.findall(text):
        if each == "(":
            depth += 1
            most = max(most, depth)
        else:
            depth = max(0, depth - 1)
    return most


class TooLong(Exception):
    """A file took longer than it may."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TooLong when the time is over; only the main thread can be interrupted, and not on every system."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
