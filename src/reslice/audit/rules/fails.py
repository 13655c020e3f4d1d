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

from reslice.audit.rule import Found
from reslice.audit.write import Way, Write

HELP = "remove the range that is computed in the same transaction, before the insert"


def write(write: Write) -> Iterator[Found]:
    """Yield an append of groups that a key of the table does not let in twice."""
    if write.way is not Way.APPEND or not write.is_aggregate or write.refused_by is None:
        return
    columns = " and ".join(write.refused_by)
    detail = f"{write.called} takes one row for each {columns}: a second run adds the same ones, and ends with an error"
    yield Found(write.span, detail)
