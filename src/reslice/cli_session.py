"""What one command of the command line knows while it works: where the project is, how to answer, how it ended."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from reslice.cli_log import Log
from reslice.errors import SAME_AGAIN, Interrupted, PartlyPublished, ResliceError, Retryable, Stopped
from reslice.layout import escaped, fitted, placed

if TYPE_CHECKING:
    from reslice.project import Project
    from reslice.values import Run


_LOOKS = frozenset({"plan", "verify", "status", "history", "show", "doctor", "audit", "rule"})
"""Commands that are there for their answer alone: the target is as it was, whatever becomes of them."""


@dataclass
class Session:
    """One command; `typed` is how it was given.

    `place` leads to the project in commands we print, and `code` is set as soon as the outcome is known. `is_over` is
    true from the moment the work has ended: a signal cannot undo it any more. With a `log`, talk goes there. `range` is
    as it was typed, and `heard` the last step that was told.
    """

    is_json: bool = False
    command: str = "error"
    place: str = ""
    config: str = "reslice.yml"
    code: int | None = None
    typed: str = "reslice"
    signal_number: int = 0
    is_over: bool = False
    log: Log | None = None
    found: Run | None = None
    is_undelivered: bool = False
    range: str | None = None
    heard: str = ""

    def begin(self, command: str, *, is_json: bool, target: str | None = None, range: str | None = None) -> None:
        """Take note of which command it is, how it answers, and what it was asked for."""
        self.command, self.is_json, self.range = command, is_json, range
        if self.log is not None:
            self.log.about(target=target, range=range)

    def log_as(self, log_format: str) -> None:
        """Begin a log, or none, as the option or the variable says."""
        self.log = (self.log or Log(sys.stderr)) if log_format == "json" else None

    def named_log(self) -> Log | None:
        """Return the log, whose next line has the command as it is known by now; None when there is none."""
        if self.log is not None and self.command != "error":
            self.log.command = self.command
        return self.log

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

        return reslice.open(self.config)

    def work(self, project: Project, call: Callable[[Callable[[str], None]], Run], *, is_last: bool = True) -> Run:
        """Return what the call returns; meanwhile signals stop it, and a terminal shows how far it is.

        After the call that `is_last` signals cannot undo anything any more.
        """
        from reslice.progress import Worker

        worker = Worker(project, sys.stderr, self.named_log())

        def work_to_the_end() -> Run:
            try:
                return call(worker.on_step)
            finally:
                self.is_over = is_last

        try:
            return worker.call(work_to_the_end)
        finally:
            self.signal_number = worker.signal_number

    def hear(self, step: str) -> None:
        """Say of the steps of a command without a progress line only whom it waits for, once."""
        is_news, self.heard = step != self.heard, step
        if not is_news or not step.startswith("waiting"):
            return
        log = self.named_log()
        if log is not None:
            log.write("waiting", step)
        else:
            emit(escaped(step), sys.stderr)

    def learn(self, run: Run) -> None:
        """Take note of what is known of a run, for the lines of the log that follow."""
        if self.log is not None:
            self.log.learn(run)

    def say(self, text: str) -> None:
        """Print a result to stdout. Where that is not possible, the command ends as it would have, and says so."""
        trouble = emit(text, sys.stdout)
        if trouble:
            self.is_undelivered = True
            self.warn(f"the answer could not be written: {trouble}")

    def say_json(self, value: dict[str, Any]) -> None:
        """Print a JSON value to stdout."""
        from reslice.report_json import dumped

        self.say(dumped(value, getattr(sys.stdout, "encoding", None)))

    def warn(self, text: str) -> None:
        """Say beside the result what to look at."""
        self._talk("warning", text, "warning")

    def note(self, text: str) -> None:
        """Say beside the result what needs no action."""
        self._talk("note", text, "info")

    def _talk(self, event: str, text: str, level: str) -> None:
        log = self.named_log()
        if log is not None:
            log.write(event, text, level=level)
        else:
            emit(f"{event}: {placed(escaped(text), self.place)}", sys.stderr)

    def tell(self, run: Run) -> None:
        """Say what a run warns of and notes, each as a line of its own."""
        self.learn(run)
        for text in run.warnings:
            self.warn(text)
        for text in run.notes:
            self.note(text)

    def answer(self, run: Run, code: int) -> None:
        """Take note of how a run ended; a log has its warnings, which text has in the answer."""
        self.code, self.found = code, run
        if self.log is not None:
            self.tell(run)

    def ended(self, code: int) -> int:
        """Return the exit code of a command that ended with `code`; one that only looks fails without its answer."""
        return Retryable.exit_code if self.is_undelivered and self.command in _LOOKS else code

    def finish(self, code: int) -> None:
        """Write the last line of the log of a command that ended without an error."""
        log = self.named_log()
        if log is None or log.command is None:
            return
        found = self.found
        more = {} if found is None else {"outcome": str(found.outcome), "target_changed": found.target_changed}
        ended = f"{log.command} ended" if found is None else f"{found.outcome}: {found.target} for {found.scope.text}"
        log.write("finished", ended, level="warning" if code else "info", exit_code=code, **more)

    def fail(self, error: ResliceError, *, command: str, known: Mapping[str, Any] | None = None) -> int:
        """Say what is wrong, in the form that was asked for, and return the exit code.

        `known` are fields of the JSON that have an answer all the same.
        """
        self.code = self._exit_code(error)
        self.command = command
        log = self.named_log()
        if log is not None:
            self._log_error(log, error, self.code)
        if self.is_json:
            from reslice.report_json import error_json

            answer = error_json(command, error, way_on=self._way_on(error), place=self.place, code=self.code)
            self.say_json(answer | dict(known or {}))
            return self.code
        if log is not None:
            return self.code
        from reslice.report_error import error_text

        if error.run is not None:
            self.tell(error.run)
        consent = placed(error.consent, self.place) if isinstance(error, Stopped) else ""
        emit(error_text(error, next=self._way_on(error), consent=consent), sys.stderr)
        return self.code

    def _log_error(self, log: Log, error: ResliceError, code: int) -> None:
        """Write what is wrong as one line, with its parts, after what the run warned of."""
        from reslice.report_json import error_value

        if error.run is not None:
            self.tell(error.run)
        parts = error_value(error, place=self.place) | {"next": self._way_on(error)}
        log.write("error", str(error), level="error", kind=error.kind, exit_code=code, error=parts)

    def _way_on(self, error: ResliceError) -> str:
        """Return a command that works when pasted: what was typed, put right, or behind what has to be done."""
        put_right = "" if error.meant is None else _with_word(self.typed, self.command, *error.meant)
        if put_right:
            return put_right
        if isinstance(error, PartlyPublished) and (the_rest := self._the_rest(error.rest)):
            return the_rest
        if error.next.startswith("reslice "):
            return placed(error.next, self.place)
        if error.next in ("", SAME_AGAIN):
            return self.typed
        advice = error.next.partition(", then  reslice ")[0]  # what was typed is the better command
        return f"{placed(advice, self.place)}, then  {self.typed}"

    def _the_rest(self, rest: str) -> str:
        """Return what was typed for the slices that are left; empty where an approval said which, which holds no more.

        Where the range is not typed itself, the same command does what is still open.
        """
        if self.range is not None and (put_right := _with_word(self.typed, self.command, self.range, rest)):
            return put_right
        words = shlex.split(self.typed)
        return self.typed if any(word.startswith(("--interval", "--again")) for word in words) else ""

    def _exit_code(self, error: ResliceError) -> int:
        """Return the error's exit code; a command that a signal ended says which."""
        if isinstance(error, Interrupted) and self.signal_number:
            return 128 + self.signal_number
        return error.exit_code


def _with_word(typed: str, command: str, given: str, meant: str) -> str:
    """Return a command with the first word that is `given`, also behind a `=`, replaced; empty when none is.

    Words before the command lead to the project: they are looked at last, and the folder of -C not at all.
    """
    words = shlex.split(typed)
    first = words.index(command) if command in words else 0
    for place in (*range(first, len(words)), *range(first)):
        word = words[place]
        if place and words[place - 1] == "-C":
            continue
        option, _, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if value == given:
            words[place] = f"{option}={meant}" if option else meant
            return shlex.join(words)
    return ""


def emit(text: str, stream: TextIO | None) -> str:
    """Write a line, and return why that was not possible; a reader that went away is no reason to say anything."""
    if stream is None:
        return ""
    try:
        stream.write(fitted(text, stream.encoding) + "\n")
        stream.flush()
    except OSError as error:
        _silence(stream)
        return "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
    return ""


def _silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail over it at its end."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
