"""RS201: The range that is removed is not the range that is written.

The rows that a DELETE removes and those that the INSERT brings back have to be the same ones. Where the delete stops
earlier, each run adds the rows beyond it once more, and they double. Where it goes further, rows are removed that
nothing brings back. It is mostly one day: BETWEEN has its last day, `< :end` has not. Bounds are compared by what they
mean: casts, the day of a time, a month and `+ interval '1 day'` are taken into account, and equal names of placeholders
mean equal values.

Bad (postgres):

    begin;
    delete from daily_orders where order_date >= :start and order_date < :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_ts::date as order_date, channel, count(*), sum(amount_cents) from orders
    where order_ts >= :start and order_ts < :end::date + interval '1 day' group by 1, 2;
    commit

Bad (databricks):

    insert into daily_orders replace where order_date between :start and :end
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date >= :start and order_date < :end group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.comparison import Difference, Effect
from reslice.audit.finding import Sort
from reslice.audit.replacement import Compared, compared
from reslice.audit.rule import Found
from reslice.audit.write import Way, Write

HELP = "write the same bounds in both, or let reslice init write the contract, whose range owns the delete"
_SURE = (Effect.DOUBLES, Effect.LOSES)


def write(write: Write) -> Iterator[Found]:
    """Yield a replacement whose two ranges differ."""
    for each in compared(write):
        found = _said(write, each)
        if found is not None:
            yield found
            return


def _said(write: Write, each: Compared) -> Found | None:
    effects = {difference.effect for difference in each.differences}
    span = each.span or write.span
    removed, written = each.removed, each.written or "all rows of the source"
    both = f"it removes {removed} and writes {written}"
    if Effect.DOUBLES in effects and write.way is Way.OVERWRITE and each.is_checked:
        return Found(span, f"{both}: rows outside of what it replaces are refused", Sort.NOTE)
    if effects & set(_SURE):
        results = [_result(difference, each) for difference in each.differences if difference.effect in _SURE]
        return Found(span, f"{both}: {', and '.join(dict.fromkeys(results))}")
    if effects:
        return Found(span, f"{both}: {each.doubt or 'this is right only while both mean the same days'}", Sort.UNKNOWN)
    return None


def _result(difference: Difference, each: Compared) -> str:
    where = {"low": " at its beginning", "high": " at its end"}.get(difference.end, "")
    if difference.effect is Effect.DOUBLES:
        return f"each run adds the rows that were not removed{where} once more"
    return f"rows are lost that are removed{where} and not written again"
