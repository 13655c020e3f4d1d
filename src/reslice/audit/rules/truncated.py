"""RS204: Readers can find the table empty, since TRUNCATE takes effect before the new rows are there.

On most databases TRUNCATE commits by itself, or is committed by itself where no transaction is open: until the INSERT
ends, and for ever when it fails, the table is empty. On PostgreSQL it can be part of a transaction, yet it is not like
other changes there: whoever reads waits until the commit, and a transaction that began to read before it then finds no
rows at all, neither the old ones nor the new ones. A DELETE in one transaction with the INSERT has none of this.

Bad (postgres):

    begin;
    truncate daily_orders;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders group by order_date, channel;
    commit

Good (postgres):

    begin;
    delete from daily_orders;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders group by order_date, channel;
    commit

Bad (mysql):

    start transaction;
    truncate table daily_orders;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders group by order_date, channel;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.rules.emptied_for_range import is_emptied_for_range
from reslice.audit.scope import is_stage_name
from reslice.audit.transactions import ONE_STATEMENT, TRUNCATE_COMMITS
from reslice.audit.write import Way, Write

HELP = "use DELETE in one transaction with the INSERT, or fill a table aside and swap it in"
_ONE_STEP = "replace the table in one statement: INSERT OVERWRITE, CREATE OR REPLACE TABLE, or a swap"
_NAME_IT = "name the database with --dialect; DELETE in one transaction with the INSERT is right on all of them"
_SEES_NOTHING = frozenset({"postgres", "materialize", "risingwave"})
"""Dialects of databases in which a reader with an older snapshot finds a truncated table empty."""


def write(write: Write) -> Iterator[Found]:
    """Yield a TRUNCATE before an INSERT where readers can see what is between them."""
    if write.way is not Way.EMPTIED or write.delete is None or not isinstance(write.delete.node, exp.TruncateTable):
        return
    if is_emptied_for_range(write):
        return
    detail, table = "", write.table
    if write.dialect in ONE_STATEMENT:
        detail = f"{table} is empty from TRUNCATE until the insert ends; {write.dialect} has no transaction over both"
    elif write.dialect in TRUNCATE_COMMITS:
        detail = f"TRUNCATE commits by itself: {table} is empty until the insert is committed, or for good if it fails"
    elif write.is_atomic is False:
        detail = f"no transaction holds TRUNCATE and the insert together: {table} stays empty if the insert fails"
    elif write.dialect in _SEES_NOTHING:
        detail = f"readers of {table} wait until the commit, and those with an older snapshot then see it empty"
    elif write.script.is_guessed:
        text = f"whether readers find {table} empty, and what is left if the insert fails, depends on the database"
        yield Found(write.script.span(exp.Placeholder(), write.delete), text, Sort.UNKNOWN, _NAME_IT)
    if detail:
        is_written_here = isinstance(write.node.args.get("expression"), exp.Values)
        sort = Sort.NOTE if is_stage_name(table) or is_written_here else Sort.FINDING
        help_ = _ONE_STEP if write.dialect in ONE_STATEMENT else ""
        yield Found(write.script.span(exp.Placeholder(), write.delete), detail, sort, help_)
