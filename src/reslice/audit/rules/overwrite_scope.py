"""RS206: The session decides how much INSERT OVERWRITE replaces.

Without a PARTITION that names its values, Spark replaces the whole table while
`spark.sql.sources.partitionOverwriteMode` is `static`, which it is unless somebody set it, and only the partitions that
come back while it is `dynamic`. The same file removes the history in one session and a day in another. Set the mode in
the file, or better name the partition: then a day that comes back empty is emptied too, which dynamic mode leaves as it
was.

Bad (spark):

    insert overwrite table daily_orders
    select channel, count(*), sum(amount_cents), order_date from orders
    where order_date = '${ds}' group by channel, order_date

Good (spark):

    insert overwrite table daily_orders partition (order_date = '${ds}')
    select channel, count(*), sum(amount_cents) from orders where order_date = '${ds}' group by channel

Good (databricks):

    insert into daily_orders replace where order_date between :start and :end
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.rules.emptied_for_range import (
    MODE,
    SPARK,
    is_emptied_for_range,
    is_unpartitioned,
    overwriting_dialect,
    partition_of,
)
from reslice.audit.scope import asked, is_stage_name, setting
from reslice.audit.write import Way, Write

HELP = "name the partition that is replaced: PARTITION (day = '…'), or INSERT INTO … REPLACE WHERE on Delta tables"
_PARTITION_DIALECTS = SPARK | {"hive"}


def write(write: Write) -> Iterator[Found]:
    """Yield an INSERT OVERWRITE of which only the session knows what it replaces."""
    node = write.node
    if write.way is not Way.OVERWRITE or not isinstance(node, exp.Insert) or not node.args.get("overwrite"):
        return
    dialect = overwriting_dialect(write)
    if dialect not in _PARTITION_DIALECTS or not isinstance(node.this, exp.Table | exp.Schema):
        return
    if is_emptied_for_range(write) or is_stage_name(write.table):
        return
    partition = partition_of(node)
    if partition and all(isinstance(each, exp.EQ) for each in partition):
        return
    mode = setting(write.script, MODE)
    named = ", ".join(write.shown(each) for each in partition if not isinstance(each, exp.EQ))
    if dialect == "hive" and not partition:
        if asked(write):
            text = (
                f"no partition is named: all of {write.table} is replaced, or what comes back where it has partitions"
            )
            yield Found(write.span, text, Sort.UNKNOWN)
    elif dialect == "hive" or mode == "dynamic":
        if named or asked(write):
            text = f"a partition of {write.table} for which no row comes back keeps its old rows"
            yield Found(write.span, text, Sort.NOTE)
    elif mode == "static":
        if named:
            yield Found(write.span, f"{MODE} is static: all partitions of {write.table} go, whatever {named} come back")
    elif not (is_unpartitioned(write.script, write.table) and not partition):
        what = f"partition ({named}) names no value" if named else "no partition is named"
        text = f"{what} and {MODE} is not set here: all of {write.table} is replaced, or only what comes back"
        is_meant = bool(named or asked(write) or write.is_aggregate)  # a lookup table is made anew as a whole
        is_certain = is_meant and not write.script.is_guessed  # Hive keeps the other partitions
        yield Found(write.span, text, Sort.FINDING if is_certain else Sort.UNKNOWN)
