"""Talk as a log: one JSON object per line on stderr, for a machine that collects what happened at night.

Every line has the same eight fields; `error` and `finished` have more. Nothing is in a line that would not be printed
as text. Each is written whole, also when two threads write, and in ASCII, so that every collector can read it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from reslice.values import Run

FORMATS = ("text", "json")
VARIABLE = "RESLICE_LOG_FORMAT"


def is_json_asked(given: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a log is wanted, before the command line is parsed: what is wrong with that is in the log as well."""
    for place, word in enumerate(given):
        if word.startswith("--log-format="):
            return word == "--log-format=json"
        if word == "--log-format":
            return [*given[place + 1 : place + 2]] == ["json"]
    return environment.get(VARIABLE) == "json"


@dataclass
class Log:
    """The log of one command: what is known of it stands in every line."""

    stream: TextIO | None
    command: str | None = None
    target: str | None = None
    range: str | None = None
    run: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def about(self, *, target: str | None = None, range: str | None = None) -> None:
        """Take note of what was asked for, as it was typed."""
        self.target, self.range = target or self.target, range or self.range

    def learn(self, run: Run) -> None:
        """Take note of what is known of a run."""
        self.target, self.range, self.run = run.target, run.scope.text, run.id or self.run

    def write(self, event: str, message: str, *, level: str = "info", **more: Any) -> None:
        """Write one line. A stream that went away does not change how the command ends."""
        text = self._line(event, message, level, more)
        if self.stream is None:
            return
        with self._lock:
            try:
                self.stream.write(text)
                self.stream.flush()
            except (OSError, ValueError):  # a pipe nobody reads any more, or a stream that is closed
                self.stream = None

    def write_last(self, message: str, code: int) -> None:
        """Write the line of a process that a signal is about to end, past every buffer and lock."""
        text = self._line("error", message, "error", {"kind": "interrupted", "exit_code": code})
        try:
            os.write(2, text.encode("ascii"))
        except OSError:
            return

    def _line(self, event: str, message: str, level: str, more: Mapping[str, Any]) -> str:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, Any] = {
            "time": moment,
            "level": level,
            "event": event,
            "message": message,
            "command": self.command,
            "target": self.target,
            "range": self.range,
            "run": self.run,
        }
        return json.dumps({**fields, **more}) + "\n"
