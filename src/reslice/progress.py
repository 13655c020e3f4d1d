"""Work in a second thread, while this one listens for signals and tells a terminal how far the work is.

Ctrl-C, SIGTERM and SIGHUP ask the work to stop, once; it rolls back and ends by itself, and is always waited for. A
second Ctrl-C changes nothing. Without a terminal nothing is told but that it waits, and for whom. With a log every step
is a line of it, and a terminal shows nothing else.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from reslice.layout import escaped
from reslice.stopping import heard

if TYPE_CHECKING:
    from rich.live import Live

    from reslice.cli_log import Log

Value = TypeVar("Value")

_STOPPING = "stopping, rolling back"
_TICK_SECONDS = 0.1
_QUIET_SECONDS = 0.5
"""What is done sooner than this needs no progress line."""


class Interruptible(Protocol):
    """What can be asked to stop and how far it is; both from another thread."""

    def interrupt(self) -> None:
        """Ask the work to stop and roll back."""

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now, None when that is not known."""


@dataclass
class Worker:
    """Runs one call at a time. `signal_number` is the signal that asked it to stop, 0 for none."""

    project: Interruptible
    stream: TextIO | None
    log: Log | None = None
    signal_number: int = 0
    step: str = ""
    _told: set[str] = field(default_factory=set)
    _started: float = field(default_factory=time.monotonic)

    def on_step(self, step: str) -> None:
        """Remember what the work does now. Without a terminal only whom it waits for is told, each once."""
        is_waiting = step.startswith("waiting")
        is_news = is_waiting and not self.step.startswith("waiting")
        if self.log is not None:
            if step != self.step:
                self.log.write("waiting" if is_waiting else "step", step)
        elif is_news and step not in self._told and self.stream is not None and not self.stream.isatty():
            self._told.add(step)
            with suppress(OSError):  # nobody is there any more to be told
                self.stream.write(f"{escaped(step)}\n")
                self.stream.flush()
        self.step = step

    def call(self, work: Callable[[], Value]) -> Value:
        """Return what `work` returns, or raise what it raises; it runs in another thread until its end."""
        with self._listening(), ThreadPoolExecutor(1, "reslice") as pool:
            future = pool.submit(work)
            self._watch(future)
            return future.result()

    def _watch(self, future: Future[Value]) -> None:
        """Wait for the end; pass a signal on once, and keep the progress line up to date."""
        is_asked = False
        with line_on(None if self.log is not None else self.stream) as line:
            while not wait([future], timeout=_TICK_SECONDS).done:
                if self.signal_number and not is_asked:
                    is_asked = True
                    self.project.interrupt()
                    if self.log is not None:
                        self.log.write("step", _STOPPING, level="warning")
                if time.monotonic() - self._started > _QUIET_SECONDS:
                    line.show(self._text(is_asked=is_asked))

    def _text(self, *, is_asked: bool) -> str:
        """Return the step, its percentage when known, and the time since the start."""
        percent = None if is_asked else self.project.progress()
        step = _STOPPING if is_asked else escaped(self.step)
        share = "" if percent is None or percent < 0 else f"  {percent:.0f}%"
        return f"{step}{share}  {_clock(time.monotonic() - self._started)}"

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Note the signals that ask to stop instead of being ended by them; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            self.signal_number = self.signal_number or number

        before = {number: signal.signal(number, note) for number in heard()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Line:
    """One line at the bottom of a terminal that goes away at the end."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._live: Live | None = None
        self._is_terminal = stream is not None and stream.isatty()

    def show(self, text: str) -> None:
        """Replace the line. Rich is loaded only here, because most runs end before it is needed."""
        if not self._is_terminal:
            return
        from rich.text import Text

        try:
            if self._live is None:
                self._live = self._open()
            if self._live is not None:
                self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        except OSError:  # the terminal has gone
            self._is_terminal = False

    def _open(self) -> Live | None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        if console.is_dumb_terminal:
            self._is_terminal = False
            return None
        live: Live = Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False)
        live.start()
        return live

    def close(self) -> None:
        """Take the line away."""
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()


@contextmanager
def line_on(stream: TextIO | None) -> Iterator[Line]:
    """Give a line of a stream that says how far the work is; it is there on terminals alone, and gone at the end."""
    line = Line(stream)
    try:
        yield line
    finally:
        line.close()
