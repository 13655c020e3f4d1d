"""RS404: A time is compared with days, and the last day is lost.

`order_ts between '2026-01-01' and '2026-01-31'` ends at midnight, when the 31st begins: of the last day only rows of
its first instant are computed. Its rows are missing from the total, or are removed from it at the next run. A half-open
range has no such day: `order_ts >= :start and order_ts < :end + interval '1 day'`. A column that holds dates, without a
time, can be compared with BETWEEN.

Bad (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_ts::date as order_date, channel, count(*), sum(amount_cents) from orders
    where order_ts between :start and :end group by 1, 2;
    commit

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_ts::date as order_date, channel, count(*), sum(amount_cents) from orders
    where order_ts >= :start and order_ts < :end::date + interval '1 day' group by 1, 2;
    commit
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reslice.audit.comparison import Effect
from reslice.audit.finding import Sort
from reslice.audit.predicates import Condition, is_time, leaf_of, query_conditions, subject_of
from reslice.audit.replacement import compared
from reslice.audit.rule import Found
from reslice.audit.scope import place_of
from reslice.audit.values import CLOCK, Value
from reslice.audit.write import Way, Write

HELP = "use a half-open range: >= the first day, and < the day after the last one"
_TIME_WORD = re.compile(
    r"(?:^|[_.'])(?:ts|time|timestamp|datetime|at|instant|moment|utc|watermark)(?:$|[_.'])|interval_(?:start|end)"
    r"|execution_date|logical_date|(?:start|end|from|to)_?(?:ts|time|at)$"
)
_DAY_WORD = re.compile(r"(?:^|[_.'])(?:ds|dt|date|day|days|month|week)(?:$|[_.'])|(?:date|day)$|^date")


def write(write: Write) -> Iterator[Found]:
    """Yield a condition that ends at the midnight with which its last day begins."""
    if write.query is None or write.way is Way.UPDATE:
        return
    seen: set[tuple[int, int]] = set()
    for each in query_conditions(write.query, write.script.outside):
        if each.subject.part or each.kind == "low" or (each.kind == "high" and each.is_open):
            continue
        leaf = leaf_of(write.query, each.subject, each.select)
        if leaf.unit is not None or not _is_time(write, leaf.name, leaf.table):
            continue
        if each.kind != "high" and not _is_cut(write, leaf.name):
            continue  # a snapshot is known by its moment
        found = _judged(write, each, leaf.name)
        if found is not None and found.span not in seen and not _is_range_told(write):
            seen.add(found.span)
            yield found


def _is_range_told(write: Write) -> bool:
    """Whether the same end is not that of what the write removes, which is a finding of its own."""
    ends = [difference for each in compared(write) for difference in each.differences]
    return any(each.effect is not Effect.UNSURE and each.end == "high" for each in ends)


def _is_time(write: Write, name: str, table: str) -> bool:
    """Whether a column holds a time of day: it is declared or called so, or the query makes days of it."""
    known = is_time(name, table, write.script.known)
    return _is_cut(write, name) if known is None else known


def _is_cut(write: Write, name: str) -> bool:
    """Whether the query makes days, hours or another unit of a column."""
    assert write.query is not None, "only writes with a query are judged"
    for output in write.query.outputs():
        subject = subject_of(output.origin) if output.origin is not None else None
        leaf = leaf_of(write.query, subject, output.select) if subject is not None else None
        if leaf is not None and leaf.unit is not None and leaf.name == name:
            return True
    return False


def _judged(write: Write, each: Condition, column: str) -> Found | None:
    node = each.node
    span = place_of(write, node)
    shown, name = write.shown(node), each.subject.column.name
    value = each.values[-1]
    if value.is_last_second and value.kind == "time":
        return Found(span, f"{shown}: rows in the last second of the day, after its beginning, are left out", Sort.NOTE)
    if _is_next_midnight(value, shown):
        return Found(span, f"{shown}: rows of the first instant of the next day are taken as well", Sort.NOTE)
    if not _is_day(value):
        return None
    is_called_day = value.is_written or bool(value.kind) or _DAY_WORD.search(value.base) is not None
    if each.kind == "high" and not is_called_day and not _is_cut(write, column):
        text = f"{shown}: {name} is a time; where the last bound is a day, only its first instant is taken"
        return Found(span, text, Sort.UNKNOWN)
    if each.kind == "high":
        return Found(span, f"{shown}: {name} is a time, and of the last day only its first instant is taken")
    return Found(span, f"{shown}: {name} is a time, and of each day only its first instant is taken")


def _is_next_midnight(value: Value, shown: str) -> bool:
    """Whether a value is the midnight at which the next day begins, as far as it says."""
    is_moved = value.base not in ("", CLOCK) and (value.seconds > 0 or value.months > 0) and value.is_midnight
    is_written_so = value.is_written and value.kind == "time" and value.is_midnight and "00:00" in shown
    return is_moved or is_written_so or value.base == "data_interval_end"


def _is_day(value: Value) -> bool:
    """Whether a value is taken for a day: a written date, or a placeholder that is not called as times are."""
    if value.is_nameless or not value.is_midnight:
        return False
    if value.is_written:
        return True
    if value.base == CLOCK:
        return value.kind == "day" and value.seconds < 0
    if value.kind == "time":
        return value.base in (
            "ds",
            "end_date",
            "last_day",
            "day",
            "end_day",
            "date_to",
            "to_date",
            "date_end",
            "enddate",
        )
    return _TIME_WORD.search(value.base) is None
