"""One run of somebody's command: a process group of its own that can be timed, killed whole, and heard afterwards.

Standard input is closed, both outputs go to one file, and nothing that the command started outlives it, or us: a small
process beside it ends the group when we are gone, however we went.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from reslice.engines.failures import interrupted
from reslice.engines.sandbox import Way
from reslice.errors import Failure, Misused

STEP_SECONDS = 0.01
GRACE_SECONDS = 3.0
"""How long a command that is asked to end has to do so, before it is killed."""
OUTPUT_BYTES = 1 << 20
MASK = "***"
_ENDS_WITH_US = f'read -r _; kill -s TERM -- "-$0"; sleep {GRACE_SECONDS:g}; kill -s KILL -- "-$0"'
"""Waits for the end of its input, which is when nobody holds the other end; then it ends a group of processes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit code as a shell has it, after how long, and what it said, without our secrets.

    `is_late` says that it was ended because it took too long, `was_killed` that it was killed before its end.
    """

    code: int
    seconds: float
    output: str
    is_late: bool = False
    was_killed: bool = False


def check_found(words: Sequence[str], about: str) -> None:
    """Raise Misused[usage] when there is no program of the command's name."""
    if shutil.which(words[0]) is not None:
        return
    hint = "; for a line of the shell write  sh -c '…'" if any(each in words[0] for each in " ;&|") else ""
    found = f"there is no program {words[0]}{hint}"
    if "/" in words[0] and os.path.isfile(words[0]):
        found = f"{words[0]} may not be executed; for a script write its program before it, such as python {words[0]}"
    failure = Failure("usage", "a command that can be run", (found,), "")
    raise Misused(about, [failure], unchanged="nothing was run, and nothing was copied")


def filled(words: Sequence[str], way: Way) -> list[str]:
    """Return the words with what stands for the sandbox put in."""
    return [word.replace("{url}", way.url).replace("{path}", way.path) for word in words]


def environment(way: Way, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the command: ours, and how it finds the sandbox."""
    return {name: value for name, value in environ.items() if name not in way.taken} | dict(way.environment)


class Running:
    """A command that runs."""

    def __init__(self, words: Sequence[str], way: Way, about: str) -> None:
        self._way = way
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the command has ended
        self._began = time.monotonic()
        self.seconds_idle: float | None = None
        """After how long it was seen to be at work; None where it was not."""
        try:
            self._process = subprocess.Popen(
                filled(words, way),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env=environment(way, os.environ),
                start_new_session=True,
            )
        except OSError as error:
            self._output.close()
            found = f"{words[0]} cannot be run: {error.strerror or error}"
            failure = Failure("usage", "a command that can be run", (found,), "")
            raise Misused(about, [failure], unchanged="the command was not run") from error
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _ENDS_WITH_US, str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._began

    @property
    def is_over(self) -> bool:
        """Whether the command itself has ended."""
        return self._process.poll() is not None

    def wait(self, timeout: timedelta | None, stop: threading.Event, watch: Callable[[], bool] | None = None) -> Ended:
        """Return how it ended; it is ended when it takes too long. Raises Interrupted when `stop` is set meanwhile.

        `watch` is asked until it says that the command is at work: after how long is in `seconds_idle`.
        """
        limit = None if timeout is None else timeout.total_seconds()
        while not self.is_over:
            self._stop_if_asked(stop)
            if watch is not None and watch():
                self.seconds_idle, watch = self.seconds, None
            if limit is not None and self.seconds > limit:
                self.end()
                return self._ended(is_late=True)
            time.sleep(STEP_SECONDS)
        return self._ended()

    def kill(self, moment: float, stop: threading.Event, watch: Callable[[], bool] | None = None) -> Ended:
        """Kill it, with all that it started, so many seconds after its start, and return how it ended.

        With `watch` they are counted from when that says that the command is at work.
        """
        from_when = 0.0 if watch is None else None
        while not self.is_over and (from_when is None or self.seconds < from_when + moment):
            self._stop_if_asked(stop)
            if from_when is None and watch is not None and watch():
                from_when = self.seconds
            rest = STEP_SECONDS if from_when is None else from_when + moment - self.seconds
            time.sleep(min(STEP_SECONDS, max(rest, 0)))
        was_killed = not self.is_over
        self._signal(signal.SIGKILL)
        self._process.wait()
        return self._ended(was_killed=was_killed)

    def _stop_if_asked(self, stop: threading.Event) -> None:
        if stop.is_set():
            self.discard()
            raise interrupted("the command")

    def discard(self) -> None:
        """End it, whatever it has said."""
        self.end()
        self._output.close()
        self._dismiss_guard()

    def end(self) -> None:
        """Ask the whole group to end, and kill what does not."""
        self._signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and (not self.is_over or self._is_anybody_left()):
            time.sleep(STEP_SECONDS)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _ended(self, *, is_late: bool = False, was_killed: bool = False) -> Ended:
        seconds = self.seconds
        if self._is_anybody_left():
            self.end()
        self._dismiss_guard()
        code = self._process.returncode
        with self._output as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - OUTPUT_BYTES, 0))
            text = masked(file.read().decode(errors="replace"), self._way.secrets)
        return Ended(128 - code if code < 0 else code, seconds, text, is_late, was_killed)

    def _dismiss_guard(self) -> None:
        """End the process beside it first, so that it does not see its input end."""
        assert self._guard.stdin is not None, "it was asked for as a pipe"
        self._guard.kill()
        self._guard.wait()
        self._guard.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _is_anybody_left(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def masked(text: str, secrets: Sequence[str]) -> str:
    """Return what a command said without our secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def tail(text: str, lines: int) -> tuple[str, ...]:
    """Return the last lines that say anything."""
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-lines:]
