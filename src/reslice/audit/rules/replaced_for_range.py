"""RS205: The whole table is made anew from a range.

CREATE OR REPLACE TABLE … AS, and DROP TABLE before CREATE TABLE … AS, leave only the rows of the query. A query that
keeps to a range leaves that range: the rest of the history is gone, and with it keys, grants and comments. To make the
whole table anew from all of its source is right, and so is to fill a table aside with everything and swap it in.

Bad (snowflake):

    create or replace table daily_orders as
    select order_date, channel, count(*) as order_count from orders
    where order_date between :start and :end group by order_date, channel

Good (snowflake):

    create or replace table daily_orders as
    select order_date, channel, count(*) as order_count from orders group by order_date, channel

Good (bigquery):

    create or replace table daily_orders as
    select order_date, channel, count(*) as order_count from orders
    where order_date between @start and @end group by order_date, channel
    union all
    select order_date, channel, order_count from daily_orders where order_date not between @start and @end
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.known import name_of
from reslice.audit.rule import Found
from reslice.audit.scope import (
    asked,
    has_marked_name,
    holds_range,
    is_by_placeholder,
    is_stage_name,
    reads_itself,
    shown_range,
)
from reslice.audit.write import Way, Write
from reslice.reading.nodes import every

HELP = "replace the rows of the range and keep the table: delete them and insert the new ones in one transaction"
_UNLOADS = re.compile(r"(?i)\s*(?:unload|export|copy|call|exec)\b")
_IN_TRANSACTION = frozenset({"postgres", "redshift", "duckdb", "tsql", "sqlite"})
"""Dialects in which DROP and CREATE can be part of one transaction."""


def write(write: Write) -> Iterator[Found]:
    """Yield a table that is made anew from a range."""
    if write.way is not Way.REPLACE or write.config or write.query is None:
        return
    drop = _dropped(write)
    swapped = _renamed_to(write)
    if drop is None and not write.node.args.get("replace") and not swapped:
        return
    if not swapped and (is_stage_name(write.table) or _is_for_this_script(write)):
        return
    found = asked(write)
    table = swapped or write.table
    if found and is_by_placeholder(found) and not reads_itself(write) and not has_marked_name(write):
        reads = {each.name.lower() for each in write.query.parts(write.query.tree, exp.Table)}
        if table not in reads and holds_range(write, found):
            yield Found(write.span, f"{table} holds only rows where {shown_range(write, found)} after each run")
    elif drop is not None and not found and not swapped and not _is_one_commit(write, drop):
        text = f"{table} is missing from the DROP until the CREATE ends, and for good if it fails"
        yield Found(write.span, text, Sort.NOTE, "make the table aside and swap it in, or use CREATE OR REPLACE TABLE")


def _dropped(write: Write) -> int | None:
    """Return the place of the DROP before the CREATE of the same table; None where nothing drops it."""
    for at, each in enumerate(write.script.statements[: write.position]):
        node = each.node
        if isinstance(node, exp.Drop) and node.kind == "TABLE":
            dropped = node.args.get("tables") or [node.args.get("this")]
            if write.table in map(name_of, dropped):
                return at
    return None


def _is_for_this_script(write: Write) -> bool:
    """Whether a later statement drops the table, or takes its rows elsewhere: it is there for this run alone."""
    for each in write.script.statements[write.position + 1 :]:
        node = each.node
        if isinstance(node, exp.Drop | exp.Copy) and write.table in map(name_of, every(node, exp.Table)):
            return True
        text = node.sql().lower() if isinstance(node, exp.Command | exp.Export) else ""
        if _UNLOADS.match(text) and write.table in re.findall(r"\w+", text):
            return True
    return False


def _is_one_commit(write: Write, drop: int) -> bool:
    number = write.script.statements[drop].transaction
    return write.dialect in _IN_TRANSACTION and number is not None and number == write.statement.transaction


def _renamed_to(write: Write) -> str:
    """Return the table whose place the new one takes by a rename or a swap later on; empty where it takes none."""
    for each in write.script.statements[write.position + 1 :]:
        name = _new_name(each.node, write.table)
        if name and name != write.table:
            return name
    return ""


def _new_name(node: exp.Expr, table: str) -> str:
    if isinstance(node, exp.Alter) and node.kind == "TABLE":
        for action in node.args.get("actions") or []:
            if isinstance(action, exp.AlterRename) and name_of(node.this) == table:
                return name_of(action.this)
            if isinstance(action, exp.SwapTable):
                pair = [name_of(node.this), name_of(action.this)]
                return pair[1 - pair.index(table)] if table in pair else ""
    if isinstance(node, exp.Command | exp.Execute):
        words = [word.strip("[](),;'\"`").split(".")[-1] for word in node.sql().lower().replace(",", " ").split()]
        if words[:2] == ["exchange", "tables"] and table in words[2:]:
            return next((word for word in words[2:] if word not in ("and", table)), "")
        if "sp_rename" in words and table in words:
            return words[-1]
        if words[:2] == ["rename", "table"]:
            pairs = list(zip(words, words[1:], words[2:], strict=False))
            return next((after for before, to, after in pairs if to == "to" and before == table), "")
    return ""
