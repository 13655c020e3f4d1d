"""RS104: An aggregate is filled in only where a row is missing.

Groups that are there are left as they are. The first run is right; when the source is corrected and the range is run
again, the statement succeeds, and every old figure stays.

For rows that never change once they are written, such as events told apart by their id, this is the right way, and is
not meant.

Bad (postgres):

    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel
    on conflict (order_date, channel) do nothing

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

from sqlglot import exp

from reslice.audit.aggregate import only_picks
from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.write import Way, Write, listed

HELP = "remove the range that is computed in the same transaction, then insert it whole"


def write(write: Write) -> Iterator[Found]:
    """Yield a write of aggregated rows that leaves out those whose key is there."""
    if write.way is not Way.FILL or not write.is_aggregate or write.is_watermark or write.is_version:
        return
    if isinstance(write.node, exp.Create):
        return  # CREATE TABLE IF NOT EXISTS … AS is how a table begins
    if write.log:
        detail = f"nothing is added to {write.called} where {write.log} tells that it was done"
        yield Found(write.span, f"{detail}: a correction of the source never arrives")
        return
    row = f"a row of {write.called}" + (f" whose {listed(write.keys)} is there" if write.keys else " that is there")
    is_choice = write.query is not None and only_picks(write.query)
    sort = Sort.NOTE if is_choice else Sort.FINDING
    yield Found(write.span, f"{row} keeps its old figures: a correction of the source never arrives", sort)
