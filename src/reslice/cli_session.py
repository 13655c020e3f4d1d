"""What one command of the command line knows while it works: where the project is, how to answer, how it ended."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reslice.errors import SAME_AGAIN, Interrupted, ResliceError, Stopped
from reslice.layout import escaped, fitted, placed

if TYPE_CHECKING:
    from reslice.project import Project
    from reslice.values import Run


@dataclass
class Session:
    """One command; `typed` is how it was given.

    `place` leads to the project in commands we print, and `code` is set as soon as the outcome is known. `is_over` is
    true from the moment the work has ended: a signal cannot undo it any more.
    """

    is_json: bool = False
    command: str = "error"
    place: str = ""
    config: str = "reslice.yml"
    code: int | None = None
    typed: str = "reslice"
    signal_number: int = 0
    is_over: bool = False

    def take_place(self, directory: str | None, config: str | None) -> None:
        """Go to the directory, remember the contract file, and how to say both again."""
        self.place = " ".join(
            [
                *(["-C", shlex.quote(directory)] if directory is not None else []),
                *(["--config", shlex.quote(config)] if config is not None else []),
            ]
        )
        if directory is not None:
            os.chdir(directory)
        self.config = config if config is not None else self.config

    def open(self) -> Project:
        """Return the project of the contract file."""
        import reslice

        return reslice.open(Path(self.config))

    def work(self, project: Project, call: Callable[[Callable[[str], None]], Run]) -> Run:
        """Return what the call returns; meanwhile signals stop it, and a terminal shows how far it is."""
        from reslice.progress import Worker

        worker = Worker(project, sys.stderr)

        def work_to_the_end() -> Run:
            try:
                return call(worker.on_step)
            finally:
                self.is_over = True

        try:
            return worker.call(work_to_the_end)
        finally:
            self.signal_number = worker.signal_number

    def say(self, text: str) -> None:
        """Print a result to stdout."""
        emit(text, sys.stdout)

    def say_json(self, value: dict[str, Any]) -> None:
        """Print a JSON value to stdout."""
        from reslice.report_json import dumped

        emit(dumped(value, getattr(sys.stdout, "encoding", None)), sys.stdout)

    def fail(self, error: ResliceError, *, command: str) -> int:
        """Say what is wrong, in the form that was asked for, and return the exit code."""
        self.code = self._exit_code(error)
        if self.is_json:
            from reslice.report_json import error_json

            self.say_json(error_json(command, error, way_on=self._way_on(error), place=self.place, code=self.code))
            return self.code
        from reslice.report_error import error_text

        if error.run is not None:
            for text in error.run.warnings:
                emit(f"warning: {escaped(text)}", sys.stderr)
            for text in error.run.notes:
                emit(f"note: {escaped(text)}", sys.stderr)
        consent = placed(error.consent, self.place) if isinstance(error, Stopped) else ""
        emit(error_text(error, next=self._way_on(error), consent=consent), sys.stderr)
        return self.code

    def _way_on(self, error: ResliceError) -> str:
        """Return a command that works when pasted: the error's own, or what was typed, after what has to be done."""
        if error.next.startswith("reslice "):
            return placed(error.next, self.place)
        if error.next in ("", SAME_AGAIN):
            return self.typed
        advice = error.next.partition(", then  reslice ")[0]  # what was typed is the better command
        return f"{advice}, then  {self.typed}"

    def _exit_code(self, error: ResliceError) -> int:
        """Return the error's exit code; a command that SIGTERM ended says so."""
        if isinstance(error, Interrupted) and self.signal_number == signal.SIGTERM:
            return 128 + signal.SIGTERM
        return error.exit_code


def emit(text: str, stream: TextIO | None) -> None:
    """Write a line. A reader that went away, or a full disk behind it, does not change how the command ends."""
    if stream is None:
        return
    try:
        stream.write(fitted(text, stream.encoding) + "\n")
        stream.flush()
    except OSError as error:
        _silence(stream)
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            emit(f"warning: the answer could not be written: {error.strerror or error}", sys.stderr)


def _silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail over it at its end."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
