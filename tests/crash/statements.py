"""Getting between the statements of a run: something happens at the n-th, counted from 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from reslice.engines.duckdb import DuckDB

Rows = list[tuple[Any, ...]]
Act = Callable[[DuckDB, Callable[[], Rows]], Rows]
"""What happens at the statement: it is given the engine, and a call that executes the statement."""


class Killed(BaseException):
    """Ends a run where it stands, as the end of its process would."""


@dataclass
class Statements:
    """The statements that were asked for while it was in place, in order."""

    seen: list[str] = field(default_factory=list)


def at(patch: pytest.MonkeyPatch, number: int, act: Act, *, ever_after: bool = False) -> Statements:
    """Do `act` in place of the n-th statement, and of every later one when it says so; return what is seen."""
    execute = DuckDB.execute
    statements = Statements()

    def counted(engine: DuckDB, text: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        statements.seen.append(text)
        count = len(statements.seen)
        if count == number or (ever_after and count > number):
            return act(engine, lambda: execute(engine, text, parameters))
        return execute(engine, text, parameters)

    patch.setattr(DuckDB, "execute", counted)
    return statements


def watched(patch: pytest.MonkeyPatch) -> Statements:
    """Return the statements that are seen, with nothing in their way."""
    return at(patch, 0, lambda _engine, execute: execute())


def kill_at(patch: pytest.MonkeyPatch, number: int) -> Statements:
    """Let the process die before its n-th statement: no roll-back, no other last word."""

    def die(_engine: DuckDB, _execute: Callable[[], Rows]) -> Rows:
        raise Killed

    patch.setattr(DuckDB, "roll_back", lambda _engine: None)
    return at(patch, number, die, ever_after=True)
