"""The methods: which statements put the staged rows in the place of a slice, in order.

All of them are executed in the one transaction of a publish, between the comparison of the base and the reading back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reslice.contract import Method
from reslice.engines import sql, versions
from reslice.engines.dialect import Dialect
from reslice.engines.sql import quote
from reslice.engines.touch import Touch, touch_statement, touched_values
from reslice.tables import Fill
from reslice.values import Change

if TYPE_CHECKING:
    from reslice.engines.publication import Publication


class Step(StrEnum):
    """What a statement of a publish is for."""

    KEEP = "keep what is replaced"
    PICK = "pick the rows that are written to"
    TOUCH = "so that a concurrent UPDATE is a conflict and not lost"
    PUT_BACK = "put back what was touched"
    REMOVE = "remove"
    CHANGE = "change"
    INSERT = "insert"
    POINT = "point at the new version"


@dataclass(frozen=True, slots=True)
class Write:
    """One statement of a publish; `takes` are the parameters it binds."""

    step: Step
    statement: str
    takes: frozenset[str] = frozenset()


RUN_ID = frozenset({"run_id"})
ROW = '"reslice:row"'
"""Where a row of the target stands, in the rows that were picked: a name that no column of a user has."""


def writes(publication: Publication, dialect: Dialect, touch: Touch) -> tuple[Write, ...]:
    """Return the statements that replace the slices by the contract's method."""
    method = METHODS[publication.staged.contract.method]
    if method is merge and (publication.staged.repeated or publication.points):
        method = replace_slice  # rows of one key cannot be matched one by one, nor may a row stay one of a version
    statements = method(publication, dialect, touch)
    return tuple(each for each in statements if each.statement)


def replace_slice(publication: Publication, dialect: Dialect, touch: Touch) -> list[Write]:
    """Delete the slices by range, and insert the staged rows."""
    contract, target = publication.staged.contract, publication.staged.target
    inside = publication.within(dialect, publication.written)
    return [
        _keep(publication, dialect, inside),
        Write(Step.TOUCH, touch_statement(dialect, contract, target, inside, touch, stays=False)),
        Write(Step.REMOVE, f"DELETE FROM {sql.target_name(target)} WHERE {inside}"),
        _insert(publication, dialect, inside),
        *(_point(publication, dialect) if publication.points else ()),
    ]


def merge(publication: Publication, dialect: Dialect, touch: Touch) -> list[Write]:
    """Update the groups that differ, insert those that are new, delete those that are gone; touch no other row.

    Groups that are repeated in the base are deleted and inserted. What is removed lies in the slices.
    """
    contract, target = publication.staged.contract, publication.staged.target
    inside = publication.within(dialect, publication.written)
    rows, row = publication.names.rows, dialect.row_id
    there = f"{row} IN (SELECT {ROW} FROM {rows})"
    gone = f"{row} IN (SELECT {ROW} FROM {rows} WHERE {GONE})"
    same = _same_key(publication, dialect, "s", "d")
    new = f"{inside} AND EXISTS (SELECT 1 FROM ({_moved(publication)}) AS d WHERE {NEW} AND {same})"
    return [
        _keep(publication, dialect, inside),
        _pick(publication, dialect),
        Write(Step.TOUCH, touch_statement(dialect, contract, target, there, touch, stays=True)),
        Write(Step.REMOVE, f"DELETE FROM {sql.target_name(target)} WHERE {gone}"),
        _update(publication, dialect),
        _insert(publication, dialect, new),
        *(_point(publication, dialect) if publication.points else ()),
    ]


GONE = f"(change = '{Change.REMOVED}' OR base_rows > 1)"
NEW = f"(d.change = '{Change.ADDED}' OR d.base_rows > 1)"


def append_version(publication: Publication, dialect: Dialect, touch: Touch) -> list[Write]:
    """Insert the staged rows beside the versions that are there, and point at them; a restore only points.

    Nothing is kept, since nothing is removed; the statement that would keep rows still sees that the columns are as
    they were. The rows that were current are touched and put back: they are as before, and whoever is about to change
    one of them meets a conflict, and does not change what is not current any more.
    """
    inside = publication.within(dialect, publication.written)
    return [
        _keep(publication, dialect, "false"),
        *_touch_version(publication, dialect, touch),
        *([] if publication.staged.restores else [_insert(publication, dialect, inside)]),
        *_point(publication, dialect),
    ]


def _touch_version(publication: Publication, dialect: Dialect, touch: Touch) -> list[Write]:
    """Touch the rows of the versions that are current, and put them back."""
    contract, target, rows = publication.staged.contract, publication.staged.target, publication.names.rows
    touched = touched_values(dialect, contract, target, touch, stays=True)
    if not touched:
        return []
    pointers = versions.current_pointers(publication.where, target)
    current = versions.rows_select(dialect, contract, target, publication.where, pointers, row_id=ROW)
    there = f"{dialect.row_id} IN (SELECT {ROW} FROM {rows})"
    back = ", ".join(f"{quote(name)} = r.{quote(name)}" for name in touched)
    pick = (
        f"SELECT {ROW}, {sql.column_list(touched)} FROM ({current}) AS version_before\n"
        f"WHERE {publication.within(dialect, publication.written)}"
    )
    return [
        Write(Step.PICK, dialect.picked(rows, pick)),
        Write(Step.TOUCH, touch_statement(dialect, contract, target, there, touch, stays=True)),
        Write(
            Step.PUT_BACK,
            f"UPDATE {sql.target_name(target)} AS t SET {back} FROM {rows} AS r WHERE t.{dialect.row_id} = r.{ROW}",
        ),
    ]


METHODS: dict[Method, Callable[[Publication, Dialect, Touch], list[Write]]] = {
    Method.REPLACE_SLICE: replace_slice,
    Method.MERGE: merge,
    Method.APPEND_VERSION: append_version,
}


def _keep(publication: Publication, dialect: Dialect, condition: str) -> Write:
    """Keep rows about to be replaced, with every column there is: one that was added since is an error."""
    target = publication.staged.target
    rows = f"SELECT $run_id, {dialect.every_column(target)} FROM {sql.target_name(target)} WHERE {condition}"
    return Write(Step.KEEP, f"INSERT INTO {publication.kept}\n{rows}", RUN_ID)


def _insert(publication: Publication, dialect: Dialect, condition: str) -> Write:
    statement = sql.insert_statement(dialect, publication.staged, publication.names, condition)
    return Write(Step.INSERT, statement, publication.stamps)


def _point(publication: Publication, dialect: Dialect) -> list[Write]:
    """Move the pointers of the slices: to rows of a version, or to none where the rows of a slice are its only ones."""
    staged, names = publication.staged, publication.names
    moves = versions.move_statements(dialect, staged, names, publication.where, publication.written)
    return [Write(Step.POINT, statement, RUN_ID) for statement in moves]


def _keys(publication: Publication) -> list[str]:
    return [column.name for column in publication.staged.contract.grain]


def _moved(publication: Publication) -> str:
    """Return the SELECT of the groups to write: their key, what becomes of them, and how many rows they have.

    A slice that is written although it does not differ has all its groups written.
    """
    names, keys = publication.names, _keys(publication)
    listed = ", ".join(f"{quote(key)} AS key_{place}" for place, key in enumerate(keys))
    moved = f"SELECT {listed}, {sql.CHANGE} AS change, {sql.ROWS} AS base_rows FROM {names.diff}"
    if all(each.differs for each in publication.slices):
        return moved
    equal = f"SELECT slice FROM {names.slices} WHERE NOT {sql.DIFFERS}"
    return (
        f"{moved} UNION ALL SELECT {listed}, '{Change.CHANGED}', 1 FROM {names.staged} WHERE {sql.SLICE} IN ({equal})"
    )


def _same_key(publication: Publication, dialect: Dialect, row: str, moved: str) -> str:
    """Return the NULL-safe condition that a row has the key of a moved group."""
    target = publication.staged.target
    return " AND ".join(
        dialect.equal(dialect.plain(f"{row}.{quote(key)}", column), f"{moved}.key_{place}", column)
        for place, key in enumerate(_keys(publication))
        for column in [target.column(key)]
    )


def _pick(publication: Publication, dialect: Dialect) -> Write:
    """Note which of the target's rows belong to the moved groups, before anything about them changes."""
    target = sql.target_name(publication.staged.target)
    inside = publication.within(dialect, publication.written, "t")
    same = _same_key(publication, dialect, "t", "d")
    rows = (
        f"SELECT t.{dialect.row_id} AS {ROW}, d.* FROM {target} AS t JOIN ({_moved(publication)}) AS d ON {same}\n"
        f"WHERE {inside}"
    )
    return Write(Step.PICK, dialect.picked(publication.names.rows, rows))


def _update(publication: Publication, dialect: Dialect) -> Write:
    """Give the groups that changed their staged values; also in columns of the grain, which the touch has altered.

    A column of a key stays where the touch has left it alone and its value is the same: writing it moves the row.
    """
    staged, names = publication.staged, publication.names
    same = {*_keys(publication), *(column.name for column in staged.target.columns if column.fill is Fill.IDENTITY)}
    left = {staged.contract.slice.column, *(staged.target.keyed & same), *staged.target.fixed}
    values = {name: value for name, value in sql.written_values(staged, "s").items() if name not in left}
    assignments = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())
    statement = (
        f"UPDATE {sql.target_name(staged.target)} AS t SET {assignments}\n"
        f"FROM {names.rows} AS d JOIN {names.staged} AS s ON {_same_key(publication, dialect, 's', 'd')}\n"
        f"WHERE t.{dialect.row_id} = d.{ROW} AND d.change = '{Change.CHANGED}' AND d.base_rows = 1"
    )
    return Write(Step.CHANGE, statement, publication.stamps)
