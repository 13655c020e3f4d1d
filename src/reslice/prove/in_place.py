"""A proof in the database itself: the rows from before are kept, and put back when the command has run.

They are put back in one transaction and read again. What else the command wrote stays. Where it goes wrong, or reslice
is killed, the copy stays where it is, and it is said how a person puts it back.
"""

from __future__ import annotations

from reslice.engines import sql
from reslice.engines.sandbox import Place
from reslice.engines.sql import quote
from reslice.errors import Failure, OutcomeUnknown, Refused, ResliceError
from reslice.prove.table import Opened, opened
from reslice.prove.values import Subject
from reslice.tables import Column, Family, Target

KEPT = "kept"
_IN_SANDBOX = "prove it in a sandbox, without --in-place"


def keep(now: Opened) -> None:
    """Copy every column of every row into the evidence, so that the table can be put back as it was.

    Raises Refused where putting back would do more than that: for a view, or where foreign keys point at the table.
    """
    engine, target = now.look.engine, now.shape.target
    _refuse_more_than_rows(target)
    columns = sql.column_list(sql.kept_columns(target))
    statement = f"CREATE TABLE {now.look.schema}.{quote(KEPT)} AS SELECT {columns} FROM {sql.target_name(target)}"
    with engine.translated(None, f"a copy of {target.resolved}"):
        engine.execute(statement)


def _refuse_more_than_rows(target: Target) -> None:
    """Refuse a table whose rows cannot be put back alone: a deleted row may take rows of other tables with it."""
    failures = []
    if target.kind != "table":
        found = f"{target.resolved} is a {target.kind}"
        failures.append(Failure("target_not_table", "a table whose rows can be put back", (found,), _IN_SANDBOX))
    if target.referenced_by:
        found = f"foreign keys of {', '.join(target.referenced_by)} point at {target.resolved}"
        failures.append(Failure("target_referenced", "rows that can be put back alone", (found,), _IN_SANDBOX))
    if failures:
        raise Refused(target.table, failures, unchanged="the command was not run")


def put_back(place: Place, subject: Subject) -> None:
    """Give the table its rows from before; it holds them afterwards, or OutcomeUnknown says where they are."""
    try:
        with opened(place, subject, writes=True) as now, now.look.engine.ending():
            if _differing(now):
                _replace(now)
            differing = _differing(now)
    except ResliceError as error:
        raise _not_put_back(place, subject, "; ".join(error.failures[0].found)) from error
    if differing:
        raise _not_put_back(place, subject, f"read again, {differing} rows are not those from before")


def _replace(now: Opened) -> None:
    """Delete every row and insert those that were kept, in one transaction."""
    engine, target = now.look.engine, now.shape.target
    names = sql.kept_columns(target)
    table, columns = sql.target_name(target), sql.column_list(names)
    with engine.translated(None, f"the rows of {target.resolved}"), engine.transaction():
        engine.execute(f"DELETE FROM {table}")
        engine.execute(
            f"INSERT INTO {table} ({columns}){engine.dialect.overriding(target, names)}"
            f" SELECT {columns} FROM {now.look.schema}.{quote(KEPT)}"
        )


def _differing(now: Opened) -> int:
    """Return how many rows are not the same, counting each as often as it stands there."""
    engine, target = now.look.engine, now.shape.target
    columns = ", ".join(_comparable(target.column(name)) for name in sql.kept_columns(target))
    sides = sql.target_name(target), f"{now.look.schema}.{quote(KEPT)}"
    counted = 0
    with engine.translated(None, f"the rows of {target.resolved}"):
        for one, other in (sides, sides[::-1]):
            both = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
            counted += int(engine.execute(f"SELECT count(*) FROM ({both}) AS left_over")[0][0])
    return counted


def _comparable(column: Column) -> str:
    """Return a column so that its values can be compared, which not every type can."""
    name = quote(column.name)
    return f"CAST({name} AS text) AS {name}" if column.family is Family.OTHER else name


def _not_put_back(place: Place, subject: Subject, found: str) -> OutcomeUnknown:
    failure = Failure(
        "not_put_back",
        "the rows from before, put back after a proof in place",
        (found, f"{place.kept} holds them, in its table {KEPT}"),
        place.put_back_by_hand(subject.table),
    )
    return OutcomeUnknown(
        subject.name, [failure], unchanged="not known: the table is as the command, or nobody, left it"
    )
