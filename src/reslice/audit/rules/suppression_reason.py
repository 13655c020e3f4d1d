"""RS901: A suppression gives no reason.

Whoever reads the comment later has to know why the write is right all the same, and whether that still holds. Without
a reason nobody dares to remove it, and it hides the next fault of the same kind as well. What it names is suppressed
nevertheless.

Bad (postgres):

    -- reslice: ignore RS101
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel

Good (postgres):

    -- reslice: ignore RS101 the loader empties the range in a statement of its own, see load.sh
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reslice.audit.rule import Found

if TYPE_CHECKING:
    from reslice.audit.suppress import Suppression

HELP = "say behind the code why the write can be run again"


def suppression(suppression: Suppression) -> Iterator[Found]:
    """Yield a suppression that has an effect and no reason."""
    effective = [code for code in suppression.codes if code not in (*suppression.unknown, *suppression.unused)]
    if effective and not suppression.reason:
        yield Found(suppression.span, f"why {' and '.join(effective)} does not apply here is not said")
