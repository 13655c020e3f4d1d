"""Where a command runs: the module of each engine that makes a copy of a database, or lets it be used itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

from reslice.contract import Connection
from reslice.engines.sandbox import Place

SANDBOXES = {
    "duckdb": "reslice.engines.duckdb.sandbox",
    "postgresql": "reslice.engines.postgres.sandbox",
}


def module_of(connection: Connection) -> ModuleType:
    """Return the module that makes places on the engine of a connection."""
    return importlib.import_module(SANDBOXES[connection.engine])


def made(connection: Connection, *, in_place: bool, more: bool, on_step: Callable[[str], None]) -> Place:
    """Return a place for a command; `more` says that fresh copies of it will be asked for.

    Raises what a connection raises, and Refused[sandbox] where no copy can be made.
    """
    place: Place = module_of(connection).make(connection, in_place=in_place, more=more, on_step=on_step)
    return place
