"""Folders of made-up SQL files and dbt models for an audit to read: of mixed sizes, about forty lines on average."""

from __future__ import annotations

import random
from pathlib import Path

_BASE = """\
    select
        o.order_id,
        o.order_date,
        coalesce(c.name, 'unknown') as channel,
        o.amount_cents,
        case when o.state = 'refunded' then o.amount_cents else 0 end as refund_cents
    from {source} as o
    left join channels as c on c.id = o.channel_id
    where o.order_date between :start and :end
"""
_MORE = """\
step_{step} as (
    select
        order_id, order_date, channel, amount_cents, refund_cents,
        sum(amount_cents) over (partition by channel, order_date order by order_id) as running_{step},
        lag(amount_cents, {step}) over (partition by channel order by order_date, order_id) as before_{step}
    from {before}
    where amount_cents > {step} and channel <> 'test'
)
"""
_GROUPED = """\
select
    order_date,
    channel,
    count(*) as order_count,
    sum(amount_cents) as amount_cents,
    sum(refund_cents) as refund_cents
from {last}
group by order_date, channel
"""
_DECLARED = """\
create table if not exists daily_orders_{number} (
    order_date date not null,
    channel text not null,
    order_count bigint not null,
    amount_cents bigint not null,
    refund_cents bigint not null
);

"""
_DELETE = "delete from daily_orders_{number} where order_date between :start and :end;\n\n"
_INSERT = "insert into daily_orders_{number} (order_date, channel, order_count, amount_cents, refund_cents)\n"
_STEPS = (0, 0, 0, 1, 1, 2, 2, 3, 5, 9)
"""How many steps a query has between its source and its sums: most have few."""


def make_sql(folder: Path, count: int) -> int:
    """Make jobs: some append, some remove their range first, in a transaction or not. Return how many lines they have.

    Every fourth declares its table.
    """
    chosen, lines = random.Random(17), 0
    for number in range(count):
        query = _query(f"orders_{number % 50}", chosen.choice(_STEPS))
        write = _INSERT.format(number=number) + query.rstrip("\n") + ";\n"
        if number % 2:
            write = _DELETE.format(number=number) + write
        if number % 3:
            write = f"begin;\n\n{write}\ncommit;\n"
        text = f"-- job {number}\n{_DECLARED.format(number=number) if number % 4 == 0 else ''}{write}"
        lines += text.count("\n")
        _write(folder / f"team_{number % 20}" / f"job_{number}.sql", text)
    return lines


def make_dbt(folder: Path, count: int) -> int:
    """Make a dbt project of incremental models, some with a key and some without. Return how many lines they have."""
    _write(folder / "dbt_project.yml", 'name: shop\nversion: "1.0"\nprofile: shop\n')
    _write(
        folder / "profiles.yml", "shop:\n  target: dev\n  outputs:\n    dev: {type: snowflake, account: a, user: u}\n"
    )
    chosen, lines = random.Random(18), 0
    for number in range(count):
        key = ", unique_key=['order_date', 'channel']" if number % 2 else ""
        query = _query("{{ source('shop', 'orders') }}", chosen.choice(_STEPS))
        query = query.replace(
            "    where o.order_date between :start and :end\n",
            "    {% if is_incremental() %}\n"
            "    where o.order_date >= (select max(order_date) from {{ this }})\n"
            "    {% endif %}\n",
        )
        text = f"{{{{ config(materialized='incremental'{key}) }}}}\n\n{query}"
        lines += text.count("\n")
        _write(folder / "models" / f"mart_{number % 20}" / f"daily_orders_{number}.sql", text)
    return lines


def _query(source: str, steps: int) -> str:
    parts, last = [f"base as (\n{_BASE.format(source=source)})\n"], "base"
    for step in range(1, steps + 1):
        parts.append(_MORE.format(step=step, before=last))
        last = f"step_{step}"
    return f"with {','.join(parts)}{_GROUPED.format(last=last)}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
