"""What a proof is about, made of what a caller or a command line gives: a target of a contract, or words alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from reslice import contract_connection, given
from reslice.contract import Connection, Contract, SliceColumn, Unit
from reslice.errors import Failure, Misused
from reslice.prove.shape import misused
from reslice.prove.values import Script, Subject, Task
from reslice.ranges import Scope

_NAME = "RESLICE_CONNECTION"


def connection_of(text: str) -> Connection:
    """Return the database of a URL; it may hold a password, which is shown nowhere, or name its secrets by place.

    Raises Misused[connection] when it is no URL of a database that reslice knows.
    """
    try:
        if contract_connection.has_secret(text):
            return contract_connection.read(text, Path(), os.environ)
        found = contract_connection.read(f"${{env:{_NAME}}}", Path(), {_NAME: text})
    except contract_connection.Mistaken as error:
        failure = Failure("connection", "--connection URL", error.mistakes, "correct the URL")
        raise Misused("--connection", [failure], unchanged="nothing was read or written") from error
    return replace(found, shown=contract_connection.masked(text))


def target_subject(contract: Contract, range: str | None, ignore: Sequence[str]) -> Subject:
    """Return a table as its contract has it."""
    grain = tuple(column.name for column in contract.grain)
    scope = None if range is None else Scope.parse(range, contract.slice)
    return Subject(contract.name, contract.table, grain, contract, contract.slice, scope, tuple(ignore))


def table_subject(
    table: str, grain: Sequence[str], slice_column: str | None, range: str | None, ignore: Sequence[str]
) -> Subject:
    """Return a table as words have it; without a contract a slice is a day, in UTC."""
    if not grain:
        raise misused(table, "a grain: the columns of which there is one row per combination", "none is named", "")
    if (slice_column is None) != (range is None):
        raise misused(table, "a range and its slice column", "one of them is given without the other", "")
    if slice_column is None or range is None:
        return Subject(table, table, tuple(grain), ignored=tuple(ignore))
    slice_of = SliceColumn(slice_column, Unit.DAY)
    return Subject(table, table, tuple(grain), None, slice_of, Scope.parse(range, slice_of), tuple(ignore))


def task_of(
    command: Sequence[str] = (),
    *,
    sql: str | Path | None = None,
    parameters: Mapping[str, str] | None = None,
    timeout: timedelta | str | None = None,
    **options: Any,
) -> Task:
    """Return what is to be run: the words of a command, or a SQL file with its parameters; options as in `Task`.

    Raises Misused[usage] when it is neither, or both, or when parameters are for no SQL file.
    """
    if bool(command) == (sql is not None) or isinstance(command, str):
        raise misused("prove", "the words of a command, as a list, or a SQL file", f"{command!r} and sql={sql!r}", "")
    if parameters and sql is None:
        raise misused("prove", "a SQL file whose names the parameters are", f"no sql=, and {', '.join(parameters)}", "")
    script = None if sql is None else Script(Path(sql), dict(parameters or {}))
    return Task(tuple(command), script, timeout=given.wait(timeout), **options)
