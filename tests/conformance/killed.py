"""A process that runs a target and kills itself with SIGKILL before the n-th statement that begins with given words."""

from __future__ import annotations

import os
import signal
import sys

import reslice
from reslice.engines.duckdb.session import DuckDBSession


def main(contract: str, target: str, range: str, words: str) -> None:
    """Run; before the first statement that begins with `words` the process is gone."""
    execute = DuckDBSession.execute

    def until(self: DuckDBSession, statement: str, parameters: object = None) -> object:
        if statement.startswith(words):
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, statement, parameters)  # type: ignore[arg-type]

    DuckDBSession.execute = until  # type: ignore[method-assign, assignment]
    reslice.open(contract).target(target).run(range)


if __name__ == "__main__":
    main(*sys.argv[1:])
