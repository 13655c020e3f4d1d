"""RS902: A suppression has no effect.

The statement it is about has no such finding, or no rule has the code. Left where it is, it will hide a fault that
somebody makes later, and a code with a typing error hides nothing while its author believes that it does.

Bad (postgres):

    -- reslice: ignore RS101 the range is removed first
    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit

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
from typing import TYPE_CHECKING

from reslice.audit.rule import Found

if TYPE_CHECKING:
    from reslice.audit.suppress import Suppression

HELP = "remove the comment, or correct the code it names"


def suppression(suppression: Suppression) -> Iterator[Found]:
    """Yield a suppression that names no code, one that no rule has, or one for which nothing was found."""
    said = []
    if not suppression.codes:
        said.append("it names no rule, such as RS101")
    if suppression.unknown:
        said.append(f"no rule is called {' or '.join(suppression.unknown)}")
    if suppression.unused:
        said.append(f"nothing of {' or '.join(suppression.unused)} was found in the statement it is about")
    if said:
        yield Found(suppression.span, "; ".join(said))
