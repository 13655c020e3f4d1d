"""RS303: The rows that are merged are not unique by the key.

Several rows of the source meet one row of the table. PostgreSQL, SQL Server, Oracle, Snowflake, BigQuery and Databricks
refuse such a MERGE; DuckDB and MySQL keep one of the rows without a word and lose the others, and which one may differ
from run to run.

Bad (snowflake):

    merge into daily_orders as target
    using (
      select order_date, channel, count(*) as order_count from orders
      where order_date between :start and :end group by order_date, channel
    ) as source
    on target.order_date = source.order_date
    when matched then update set order_count = source.order_count
    when not matched then insert (order_date, channel, order_count)
      values (source.order_date, source.channel, source.order_count)

Good (bigquery):

    merge daily_orders as target
    using (
      select order_date, channel, count(*) as order_count from orders
      where order_date between @start and @end group by order_date, channel
    ) as source
    on target.order_date = source.order_date and target.channel = source.channel
    when matched then update set order_count = source.order_count
    when not matched then insert (order_date, channel, order_count)
      values (source.order_date, source.channel, source.order_count)
    when not matched by source and target.order_date between @start and @end then delete
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.uniqueness import declared_finer, finer_columns
from reslice.audit.write import Way, Write, listed

HELP = "match by every column that the source is grouped by, or group it by the key alone"
_SILENT = frozenset({"duckdb", "mysql", "sqlite", "clickhouse", "doris", "starrocks", "singlestore"})
"""Dialects of databases that take one of several rows and say nothing (DuckDB 2.0.1 and 1.5 were seen to)."""


def write(write: Write) -> Iterator[Found]:
    """Yield a merge whose source is grouped by more than the key."""
    more = repeated(write)
    if more is None:
        yield from _by_declaration(write)
        return
    keys = listed(write.keys)
    text = f"the source has a row for each {listed(more)} too, and rows are matched by {keys} alone"
    happens = (
        "one of its rows is kept and the others are lost, without a word" if is_silent(write) else "the statement fails"
    )
    place = write.spot(write.node.args.get("on")) if isinstance(write.node, exp.Merge) else write.span
    sort = Sort.UNKNOWN if _is_distinct(write) else Sort.FINDING
    yield Found(place, f"{text}: where several rows share one {keys}, {happens}", sort)


def _by_declaration(write: Write) -> Iterator[Found]:
    """Yield a merge of a table's rows as they are, by columns of which its own key is no part."""
    if write.way not in (Way.UPSERT, Way.SYNC) or not write.keys:
        return
    finer = declared_finer(write)
    if finer is None:
        return
    table, key = finer
    keys = listed(write.keys)
    text = f"{table} is declared to have a row for each {listed(key)}, and rows are matched by {keys}"
    place = write.spot(write.node.args.get("on")) if isinstance(write.node, exp.Merge) else write.span
    yield Found(place, f"{text}: whether several share one {keys} is not said", Sort.UNKNOWN)


def _is_distinct(write: Write) -> bool:
    """Whether the rows are only known to differ in all their columns, of which some may follow from the key."""
    tree = write.query.tree if write.query is not None else None
    return isinstance(tree, exp.Select) and tree.args.get("distinct") is not None and tree.args.get("group") is None


def repeated(write: Write) -> tuple[str, ...] | None:
    """Return the columns by which the source of a merge has more than one row for a key; None where it has not."""
    if write.way not in (Way.UPSERT, Way.SYNC, Way.UPDATE) or not write.keys:
        return None
    if write.way is Way.UPDATE and not write.is_aggregate:
        return None
    if isinstance(write.node, exp.Merge) and not _changes_matched(write.node):
        return None  # all rows of a key that is not there are added
    return finer_columns(write) or None


def _changes_matched(merge: exp.Merge) -> bool:
    """Whether a MERGE does something with a row of the table that is found."""
    whens = merge.args["whens"].expressions if merge.args.get("whens") else []
    return any(when.args.get("matched") for when in whens)


def is_silent(write: Write) -> bool:
    """Whether the database takes one of several rows without an error."""
    return write.dialect in _SILENT or isinstance(write.node, exp.Update)
