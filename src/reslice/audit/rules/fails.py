"""RS102: An append fails when it is run again.

The table's key lets no group stand twice, so the second run of an insert that removes nothing does not double the sums:
it ends with an error. The figures stay as they were, and a correction of the source can never be published this way.

Bad (postgres):

    create table daily_orders (
      order_date date, channel text, order_count bigint, primary key (order_date, channel)
    );
    insert into daily_orders
    select order_date, channel, count(*) from orders
    where order_date between :start and :end group by order_date, channel

Good (postgres):

    create table daily_orders (
      order_date date, channel text, order_count bigint, primary key (order_date, channel)
    );
    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*) from orders
    where order_date between :start and :end group by order_date, channel;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.rule import Found
from reslice.audit.write import Way, Write, listed
from reslice.reading.nodes import every

HELP = "remove the range that is computed in the same transaction, before the insert"
_WITH_HELP = "make the delete a statement of its own, before the insert and in the same transaction"


def write(write: Write) -> Iterator[Found]:
    """Yield an append of groups that a key of the table does not let in twice."""
    if write.way is Way.RANGED and write.refused_by is not None and _is_unseen(write):
        columns = listed(write.refused_by)
        detail = f"the INSERT does not wait for the DELETE beside it in WITH, and {write.called} takes one row for each"
        yield Found(write.span, f"{detail} {columns}: a second run ends with an error", help=_WITH_HELP)
    if write.way is not Way.APPEND or not write.is_aggregate or write.refused_by is None:
        return
    columns = listed(write.refused_by)
    detail = f"{write.called} takes one row for each {columns}: a second run adds the same ones, and ends with an error"
    yield Found(write.span, detail)


def _is_unseen(write: Write) -> bool:
    """Whether the rows are removed in the WITH of the INSERT itself, which does not read what was removed.

    PostgreSQL then runs the INSERT first, whose rows meet those that are still there.
    """
    start, expression = write.node.args.get("with_"), write.node.args.get("expression")
    if not isinstance(start, exp.With) or not isinstance(expression, exp.Expr) or write.delete is None:
        return False
    removes = {each.alias.lower() for each in start.expressions if each.this is write.delete.node}
    trees = [expression, *(each.this for each in start.expressions if not isinstance(each.this, exp.Delete))]
    reads = {table.name.lower() for tree in trees for table in every(tree, exp.Table)}
    return bool(removes) and not reads & removes
