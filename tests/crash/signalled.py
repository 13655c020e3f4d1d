"""The command line, in a process that sends itself a signal at one of its statements.

The first argument is JSON: `signal` by name, `number` of the statement from 1, `after` (the statement is done) and
`during` (so many seconds after it was sent). The rest are the words of the command.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from reslice import cli
from reslice.engines.postgres.session import PostgresSession

HEARD_SECONDS = 0.4
"""How long the main thread has to hear of a signal before the statement goes on."""


def main() -> int:
    asked = json.loads(sys.argv.pop(1))
    number, execute, seen = signal.Signals[asked["signal"]], PostgresSession.execute, 0

    def send() -> None:
        os.kill(os.getpid(), number)

    def counted(session: PostgresSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        nonlocal seen
        seen += 1
        if seen != asked["number"]:
            return execute(session, statement, parameters)
        if asked.get("during"):
            threading.Timer(asked["during"], send).start()
            return execute(session, statement, parameters)
        if asked.get("after"):
            found = execute(session, statement, parameters)
            send()
            time.sleep(HEARD_SECONDS)
            return found
        send()
        time.sleep(HEARD_SECONDS)
        return execute(session, statement, parameters)

    setattr(PostgresSession, "execute", counted)  # noqa: B010 - what is patched is inherited
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
