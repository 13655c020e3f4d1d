"""A process that runs a target and kills itself with SIGKILL before the n-th statement that begins with given words."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import reslice
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.postgres.session import PostgresSession


def main(contract: str, target: str, range: str, words: str) -> None:
    """Run; before the first statement that begins with `words` the process is gone."""
    for session in (DuckDBSession, PostgresSession):
        die_before(session, words)
    reslice.open(contract).target(target).run(range)


def die_before(session: Any, words: str) -> None:
    """Let the process be gone before a session executes a statement that begins with `words`."""
    execute = session.execute

    def until(self: Any, statement: str, parameters: Any = None) -> Any:
        if statement.removeprefix("WITH gone AS (").startswith(words):
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, statement, parameters)

    session.execute = until


if __name__ == "__main__":
    main(*sys.argv[1:])
