"""Calls in a query whose value is another one at each run: the clock, and chance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from reslice.audit.reached import reached
from reslice.audit.values import CLOCK_NAMES, COLUMN_CLOCKS
from reslice.reading.marks import MARK
from reslice.reading.nodes import inside
from reslice.reading.outputs import JobQuery

_CLOCKS = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentTimestampLTZ,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Systimestamp,
    exp.UtcDate,
    exp.UtcTime,
    exp.UtcTimestamp,
)
_QUERIES = (exp.Query, exp.Subquery)
_CHANCES = (exp.Rand, exp.Randn, exp.Uuid)
_CHANCE_NAMES = frozenset(
    {"random", "rand", "rand32", "rand64", "randcanonical", "randn", "randstr", "uniform", "normal", "zipf"}
    | {
        "uuid",
        "newid",
        "newsequentialid",
        "gen_random_uuid",
        "uuid_generate_v1",
        "uuid_generate_v4",
        "uuidv4",
        "uuidv7",
    }
    | {"generateuuidv4", "generateuuidv7", "generate_uuid", "uuid_string", "sys_guid", "uuid_to_bin"}
    | {"monotonically_increasing_id", "dbms_random"}
)
_DAY_WORDS = frozenset({"now", "today", "yesterday", "tomorrow"})
"""Texts that become a time of the run when they are cast (PostgreSQL, DuckDB)."""
_STAMP = re.compile(
    r"(?:^|_)(?:load|loaded|update|updated|create|created|insert|inserted|refresh|refreshed|modify|modified|etl|elt|dw|dwh"
    r"|ingest|ingested|process|processed|compute|computed|calculated|generate|generated|publish|published|sync|synced"
    r"|run|batch|job|audit|record|recorded|write|written|extract|extracted|import|imported|insertion|creation|modification|edw|stamp|built|build|executed|dbt|_?ts)"
    r"(?:_|$)|(?:loaded|updated|created|inserted|refreshed|modified|processed|computed)(?:at|on|ts|dt|date|time)?$"
    r"|_at$|timestamp$",
    re.IGNORECASE,
)
_NEW_ID = re.compile(r"(?:^|_)(?:id|uuid|guid|key|sk|pk|uid)$", re.IGNORECASE)
_ID = re.compile(r"(?:^|_)(?:run|batch|job|load|invocation|execution|etl|process)_?(?:id|uuid|key|no)$", re.IGNORECASE)


class Sort(StrEnum):
    """What a value that is not stable is made from."""

    CLOCK = "clock"
    CHANCE = "chance"


class Use(StrEnum):
    """What a value that is not stable is for."""

    ROWS = "rows"  # it decides which rows are read
    VALUE = "value"  # it is part of a value that is written
    STAMP = "stamp"  # it only says when or by which run a row was written


@dataclass(frozen=True, slots=True)
class Unstable:
    """One call with what it is for. `holder` is the condition or the value that it is part of; `name` the column."""

    node: exp.Expr
    sort: Sort
    use: Use
    holder: exp.Expr
    select: exp.Select
    name: str = ""


def is_stamp_name(name: str) -> bool:
    """Whether a column is called as those that say when, or by which run, a row was written."""
    return _STAMP.search(name) is not None or _ID.search(name) is not None


def is_id_name(name: str) -> bool:
    """Whether a column is called as those that hold an id of the row."""
    return _NEW_ID.search(name) is not None


def is_new_id(each: Unstable) -> bool:
    """Whether a value is only an id that each row gets anew: no figure depends on it."""
    return each.use is Use.VALUE and each.holder is each.node and _NEW_ID.search(each.name) is not None


def sort_of(node: exp.Expr) -> Sort | None:
    """Return what a call is made from; None where it is stable."""
    if isinstance(node, _CLOCKS):
        return Sort.CLOCK
    if isinstance(node, _CHANCES):
        return Sort.CHANCE
    if isinstance(node, exp.Cast | exp.TryCast) and isinstance(node.this, exp.Literal):
        return Sort.CLOCK if node.this.name.lower() in _DAY_WORDS and _is_time(node.to) else None
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name == "unix_timestamp" and node.expressions:
            return None
        return Sort.CLOCK if name in CLOCK_NAMES else Sort.CHANCE if name in _CHANCE_NAMES else None
    if isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted"):
        return Sort.CLOCK if node.name.lower() in COLUMN_CLOCKS else None
    if isinstance(node, exp.Column) and node.table.lower() == "dbms_random":
        return Sort.CHANCE
    return None


def _is_time(to: exp.Expr) -> bool:
    return isinstance(to, exp.DataType) and to.this in exp.DataType.TEMPORAL_TYPES


def unstable(query: JobQuery) -> Iterator[Unstable]:
    """Yield each call of a query, and of the stages that it reads, whose value is another one at each run."""
    names = {id(each.origin): each.name for each in query.outputs() if each.origin is not None}
    for select in reached(query):
        for projection in select.expressions:
            value = projection.unalias()
            for node, sort in _calls(value):
                name = names.get(id(value), "")
                is_constant = _is_constant(value)
                use = (
                    Use.STAMP if is_constant and id(value) in names and (is_stamp_name(name) or not name) else Use.VALUE
                )
                yield Unstable(node, sort, use, value, select, name or projection.alias_or_name)
        for holder in _conditions(select):
            for node, sort in _calls(holder):
                yield Unstable(node, sort, Use.ROWS, holder, select)


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    for key in ("where", "having", "qualify"):
        holder = select.args.get(key)
        if holder is not None:
            condition = holder.this.unnest()
            yield from condition.flatten() if isinstance(condition, exp.And) else [condition]
    for join in select.args.get("joins") or []:
        condition = join.args.get("on")
        if condition is not None:
            condition = condition.unnest()
            yield from condition.flatten() if isinstance(condition, exp.And) else [condition]
    order = select.args.get("order")
    if order is not None and select.args.get("limit") is not None:
        yield order


def _calls(part: exp.Expr) -> Iterator[tuple[exp.Expr, Sort]]:
    """Yield the calls in a part of a SELECT that are not in a query within it."""
    pending = [part]
    for each in pending:  # goes on over what is added meanwhile
        sort = sort_of(each)
        if sort is not None:
            yield each, sort
        elif not isinstance(each, _QUERIES):
            pending += inside(each)


def _is_constant(value: exp.Expr) -> bool:
    """Whether a value does not depend on the rows that are read."""
    columns = [column for column in value.find_all(exp.Column) if not MARK.fullmatch(column.name)]
    is_of_rows = any(sort_of(column) is None for column in columns)
    return not is_of_rows and value.find(exp.AggFunc, exp.Query) is None
