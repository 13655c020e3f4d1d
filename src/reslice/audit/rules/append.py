"""RS101: An aggregate is appended.

Each run adds the rows of its range beside those that are there already. The first run is right. The second doubles
every sum, and nothing says so: the statement succeeds.

Rows that are not aggregated are another matter, and are not meant: a log of events is appended to, and rightly so. Nor
are rows that carry the run's own id, where the readers choose the run.

Bad (postgres):

    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.known import name_of
from reslice.audit.rule import Found
from reslice.audit.rules.own_maximum import is_after_maximum
from reslice.audit.write import Way, Write
from reslice.reading.bounds import boundings
from reslice.reading.marks import MARK
from reslice.reading.nodes import every

HELP = "remove the range that is computed in the same transaction, before the insert"
_STAGE = re.compile(r"(?:^|_)(?:stg|stage|staging|staged|tmp|temp)(?:_|$|\d)")
"""The name of a table that holds rows on their way to another: who empties it may stand in another file."""
_ANY_STORE = frozenset({"hive", "spark", "databricks"})
_STORE_HELP = "look at what the job is run with: if it is a table, overwrite the partitions of the range"
_VERSION_HELP = (
    "give every run an id of its own, also when it is tried again, and let readers choose one run for each slice"
)


def write(write: Write) -> Iterator[Found]:
    """Yield an append of rows that are aggregated."""
    if write.way is not Way.APPEND or not write.is_aggregate or write.refused_by is not None:
        return
    if is_after_maximum(write):
        return
    if write.is_version:
        detail = f"the rows of each run stand apart only by {write.run_column}"
        yield Found(write.span, f"{detail}: readers of {write.called} have to choose one", Sort.NOTE, _VERSION_HELP)
    elif _is_log(write):
        detail = f"{write.called} gets one row for each run, with the time of the run"
        yield Found(write.span, f"{detail}, and is taken for a log", Sort.NOTE)
    elif _STAGE.search(write.table):
        detail = f"nothing here empties {write.called} before"
        yield Found(write.span, f"{detail}: unless something else does, each run adds its rows again", Sort.UNKNOWN)
    elif _is_of_any_store(write):
        detail = f"each run adds its rows to {write.called} again, unless the store that is named there has a key"
        yield Found(write.span, f"{detail} and replaces the row of a key", Sort.UNKNOWN, _STORE_HELP)
    elif not _is_own_figure(write) and not _is_correction(write):
        what = "the newest rows" if _is_from_newest(write) else "its rows"
        yield Found(write.span, f"each run adds {what} to {write.called} again, and removes none")


def _is_of_any_store(write: Write) -> bool:
    """Whether whoever runs a job of Spark says what it writes to: a table, or a store such as Cassandra or HBase."""
    return write.dialect in _ANY_STORE and MARK.fullmatch(write.table) is not None


def _is_from_newest(write: Write) -> bool:
    """Whether the query begins with the newest value that the table holds, which is included."""
    found = boundings(write.query, write.table) if write.query is not None else []
    return any(each.kind == "watermark" for each in found)


def _is_log(write: Write) -> bool:
    """Whether one row is added that says when it was: totals of all rows, and a time of the clock."""
    query = write.query
    if query is None or not isinstance(query.tree, exp.Select) or query.tree.args.get("group") is not None:
        return False
    clocks = (exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentTimestampLTZ, exp.Systimestamp, exp.UtcTimestamp)
    names = {"now", "getdate", "getutcdate", "sysdate", "sysdatetime", "clock_timestamp", "systimestamp"}
    return any(
        isinstance(each.origin.unalias(), clocks)
        or (isinstance(each.origin, exp.Anonymous) and str(each.origin.this).lower() in names)
        or (isinstance(each.origin, exp.Column) and each.origin.name.lower() in names)
        for each in query.outputs()
        if each.origin is not None
    )


def _is_own_figure(write: Write) -> bool:
    """Whether the only aggregate is a figure of the table itself, such as the number that comes after the highest."""
    query = write.query
    if query is None or not isinstance(query.tree, exp.Select) or query.tree.args.get("group") is not None:
        return False
    return {name_of(each) for each in query.parts(query.tree, exp.Table)} == {write.table}


def _is_correction(write: Write) -> bool:
    """Whether what is added is the difference to what the table holds: the second run adds nothing."""
    query = write.query
    if query is None:
        return False
    for output in query.outputs():
        for each in every(output.origin, exp.Sub) if output.origin is not None and output.select is not None else ():
            for column in every(each.expression, exp.Column):
                if output.select is not None and _is_from_table(write, column, output.select):
                    return True
    return False


def _is_from_table(write: Write, column: exp.Column, select: exp.Select) -> bool:
    query = write.query
    assert query is not None, "a column stands in a query"
    if query.tables(select).get(column.table.lower()) == write.table:
        return True
    inner = query.relations(select).get(column.table.lower())
    return inner is not None and any(name_of(each) == write.table for each in every(inner, exp.Table))
