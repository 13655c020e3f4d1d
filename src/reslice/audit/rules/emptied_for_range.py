"""RS203: The whole table is removed, and only a range is written again.

TRUNCATE, a DELETE without WHERE and an INSERT OVERWRITE without a partition remove every row of the table. The query
brings back the rows of its range, and of nothing else: the history is gone, without an error. A job like this was right
as long as its query computed everything.

Bad (postgres):

    begin;
    delete from daily_orders;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit

Bad (snowflake):

    insert overwrite into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel

Good (snowflake):

    insert overwrite into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders group by order_date, channel
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.rule import Found
from reslice.audit.scope import asked, holds_range, is_stage_name, reads_itself, setting, shown_range
from reslice.audit.script import Script
from reslice.audit.write import Way, Write

HELP = "delete the rows of the range that is computed, and no others"
WHOLE_OVERWRITE = frozenset({"snowflake", "doris", "starrocks"})
"""Dialects in which INSERT OVERWRITE without a partition always replaces the whole table."""
SPARK = frozenset({"spark", "spark2", "databricks"})
_OVERWRITE = re.compile(r"(?i)\binsert\s+overwrite\s+(into\b)?")
MODE = "spark.sql.sources.partitionOverwriteMode"
"""The setting by which Spark replaces all partitions, or only those that come back."""


def write(write: Write) -> Iterator[Found]:
    """Yield a write that removes all rows and brings back those of a range."""
    if not is_emptied_for_range(write):
        return
    found = asked(write)
    shown = shown_range(write, found)
    if write.way is Way.EMPTIED and write.delete is not None:
        how = "TRUNCATE" if isinstance(write.delete.node, exp.TruncateTable) else "a DELETE without a condition"
        span = write.script.span(exp.Placeholder(), write.delete)
        yield Found(span, f"{how} removes all rows of {write.table}, and only those where {shown} come back")
    else:
        text = f"INSERT OVERWRITE replaces all of {write.table}, and only rows where {shown} come back"
        yield Found(write.span, text)


def is_emptied_for_range(write: Write) -> bool:
    """Whether all rows of the table go, and only those of a range that is asked for come back."""
    is_whole = write.way is Way.EMPTIED or overwrites_all(write)
    if not is_whole or is_stage_name(write.table) or reads_itself(write):
        return False
    found = asked(write)
    return bool(found) and holds_range(write, found)


def overwrites_all(write: Write) -> bool:
    """Whether an INSERT OVERWRITE replaces the whole table, whatever comes back."""
    node = write.node
    if write.way is not Way.OVERWRITE or not isinstance(node, exp.Insert) or not node.args.get("overwrite"):
        return False
    if not isinstance(node.this, exp.Table) or partition_of(node):
        return False
    dialect = overwriting_dialect(write)
    if dialect in SPARK:
        return setting(write.script, MODE) == "static" or is_unpartitioned(write.script, write.table)
    return dialect in WHOLE_OVERWRITE or (dialect == "hive" and is_unpartitioned(write.script, write.table))


def overwriting_dialect(write: Write) -> str:
    """Return the dialect that an INSERT OVERWRITE is in; where nobody named one, by the words it is written in."""
    if not write.script.is_guessed or write.dialect in SPARK | WHOLE_OVERWRITE | {"hive"}:
        return write.dialect
    found = _OVERWRITE.search(write.script.marked.text, write.statement.base)
    return "snowflake" if found is not None and found[1] else "spark"


def partition_of(node: exp.Insert) -> list[exp.Expr]:
    """Return what stands in the PARTITION of an INSERT."""
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = target.args.get("partition") if isinstance(target, exp.Table) else None
    return list(partition.expressions) if isinstance(partition, exp.Partition) else []


def is_unpartitioned(script: Script, table: str) -> bool:
    """Whether a CREATE TABLE of the same file declares the table without partitions."""
    for each in script.statements:
        node = each.node
        if isinstance(node, exp.Create) and node.kind == "TABLE" and isinstance(node.this, exp.Schema):
            named = node.this.this
            if isinstance(named, exp.Table) and named.name.lower() == table:
                return node.find(exp.PartitionedByProperty) is None and node.find(exp.Cluster) is None
    return False
