"""A program that runs reslice in child processes and kills them with SIGKILL, at a statement or after a time.

It reads one JSON object a line: `contract`, `target`, `command` (run unless said) and its `options`, and `statement`
(kill before the n-th), with `delay` (so many seconds after that statement began), or `delay` alone (so many seconds
after the run began). It answers each with `status`, the child's exit status (-9 when it was killed), and `seconds`. It
never opens a database itself, so that each child is a process of its own with threads of its own, and costs no start of
Python.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import reslice
import reslice.project
import reslice.restore
import reslice.run
import reslice.verify
from reslice.engines.duckdb import DuckDB
from reslice.engines.postgres.session import PostgresSession


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.monotonic()
        status = killed(asked)
        print(json.dumps({"status": status, "seconds": time.monotonic() - began}), flush=True)


def killed(asked: Mapping[str, Any]) -> int:
    """Run in a child; return its exit status once it is gone."""
    child = os.fork()
    if not child:
        run(asked)
    if asked.get("statement") is None and asked.get("delay") is not None:
        time.sleep(asked["delay"])
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(asked: Mapping[str, Any]) -> None:
    """Run to the end or to the kill; the child never returns."""
    try:
        if asked.get("statement") is not None:
            kill_at(asked["statement"], asked.get("delay"))
        target = reslice.open(Path(asked["contract"])).target(asked["target"])
        getattr(target, asked.get("command", "run"))(**asked["options"])
        os._exit(0)
    finally:
        os._exit(1)


def kill_at(statement: int, delay: float | None) -> None:
    """Kill this process before its n-th statement, or `delay` seconds after that one began."""
    seen = 0

    def count_in(session: Any) -> None:
        execute: Callable[..., list[tuple[Any, ...]]] = session.execute

        def counted(engine: Any, text: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
            nonlocal seen
            seen += 1
            if seen == statement and delay is None:
                die()
            if seen == statement:
                threading.Timer(delay or 0, die).start()
            return execute(engine, text, parameters)

        session.execute = counted

    for session in (DuckDB, PostgresSession):  # what is patched is inherited
        count_in(session)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
