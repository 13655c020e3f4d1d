"""Where a command runs: the module of each engine that makes a copy of a database, or lets it be used itself."""

from __future__ import annotations

import importlib

from reslice.contract import Connection
from reslice.engines.sandbox import Place, Wish

SANDBOXES = {
    "duckdb": "reslice.engines.duckdb.sandbox",
    "postgresql": "reslice.engines.postgres.sandbox",
}


def made(connection: Connection, wish: Wish) -> Place:
    """Return a place for a command.

    Raises what a connection raises, Refused[sandbox] where no copy can be made, Interrupted when it is asked to stop.
    """
    place: Place = importlib.import_module(SANDBOXES[connection.engine]).make(connection, wish)
    return place
