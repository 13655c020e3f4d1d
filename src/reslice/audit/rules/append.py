"""RS101: An aggregate is appended.

Each run adds the rows of its range beside those that are there already. The first run is right. The second doubles
every sum, and nothing says so: the statement succeeds.

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

from collections.abc import Iterator

from reslice.audit.rule import Found
from reslice.audit.write import Way, Write

HELP = "remove the range that is computed in the same transaction, before the insert"


def write(write: Write) -> Iterator[Found]:
    """Yield an append of rows that are aggregated."""
    if write.way is Way.APPEND and write.is_aggregate:
        yield Found(write.span, f"each run adds its rows to {write.table} again, and removes none")
