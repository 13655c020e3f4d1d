"""RS301: A group that no longer exists stays.

Old rows are found by the keys that are computed now. A group whose last row was cancelled or moved away is not computed
any more, so nothing finds its old row: it stays, and every total that includes it is too high.

Where only a part of the key is looked up, such as the day, groups of a day that is computed come and go as they should,
and what stays are the days that have no rows any more. That is a note. So are a query that adds nothing up and only
keeps one row of each key, and a delete by key before rows of which it is not known what there is one of.

Bad (postgres):

    insert into daily_orders as target
    select order_date, channel, count(*) as order_count from orders
    where order_date between :start and :end group by order_date, channel
    on conflict (order_date, channel) do update set order_count = excluded.order_count

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

from reslice.audit.aggregate import only_picks
from reslice.audit.carried import carried
from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.rules.accumulates import accumulated, accumulates_before
from reslice.audit.rules.repeated import repeated
from reslice.audit.write import Way, Write, listed

HELP = "remove the rows of the range that the source does not have any more, in the same transaction"
_RANGE_HELP = "remove the rows of the range that is computed, not those of the days that came back"


def write(write: Write) -> Iterator[Found]:
    """Yield a write that finds old rows by new keys, of rows that are aggregated."""
    if write.way not in (Way.UPSERT, Way.KEYED) or not write.is_aggregate or _is_told_elsewhere(write):
        return
    keys = listed(write.keys) or "its key"
    if write.way is Way.KEYED and write.grain is not None and write.keys and set(write.keys) < set(write.grain):
        detail = f"rows of {write.called} are removed by each {keys} that is computed"
        yield Found(write.span, f"{detail}: the rows of one that has none any more stay", Sort.NOTE, _RANGE_HELP)
        return
    detail = f"rows of {write.called} are found by {keys} of the rows that are computed"
    is_choice = write.query is not None and only_picks(write.query)
    is_coarse = write.way is Way.KEYED and write.grain is None  # the key may be of several groups at once
    sort = Sort.NOTE if is_choice or is_coarse else Sort.FINDING
    yield Found(write.span, f"{detail}: one whose group no longer exists is never found, and stays", sort)


def _is_told_elsewhere(write: Write) -> bool:
    """Whether another rule says what is wrong, or rows that are gone are brought along and marked."""
    if write.is_version and write.run_column in write.keys:
        return True
    if accumulates_before(write):
        return True
    return bool(accumulated(write)) or carried(write) is not None or repeated(write) is not None or _is_marked(write)


def _is_marked(write: Write) -> bool:
    """Whether a MERGE deletes by a mark of its source, which may hold more than the groups that exist."""
    if not isinstance(write.node, exp.Merge) or write.query is None:
        return False
    whens = write.node.args["whens"].expressions
    deletes = any(
        when.args.get("matched")
        and isinstance(when.args.get("then"), exp.Var)
        and when.args["then"].name.lower() == "delete"
        for when in whens
    )
    trees = [write.query.tree, *write.query.named.values()]
    is_wider = any(
        isinstance(each, exp.SetOperation) or (isinstance(each, exp.Join) and each.side in ("LEFT", "RIGHT", "FULL"))
        for tree in trees
        for each in tree.walk()
    )
    return deletes and is_wider
