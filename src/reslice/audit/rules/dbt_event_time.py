"""RS503: A batch reads the whole of an upstream.

dbt limits what a microbatch model reads to the batch by the `event_time` of each model and source it reads. One that
has none is read whole, each time. Every batch then computes all days there are: the rows of other days are written
again beside those that are there, or each batch holds figures of all.

Bad (dbt.duckdb):

    {{ config(materialized='incremental', incremental_strategy='microbatch',
              event_time='order_date', batch_size='day', begin='2026-01-01') }}
    select order_date, channel, count(*) as order_count
    from {{ source('shop', 'orders') }}
    group by order_date, channel

Good (dbt.duckdb):

    {{ config(materialized='table') }}
    select order_date, channel, count(*) as order_count
    from {{ source('shop', 'orders') }}
    group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.dbt_model import Model
from reslice.audit.rule import Found

HELP = "give the model or source that is read an event_time, or say .render() where it is meant to be read whole"
_OWN_LIMITS = ("batch.event_time_start", "__dbt_internal_microbatch_event_time_start")
"""How a query says the begin of its batch where it limits itself."""


def model(model: Model) -> Iterator[Found]:
    """Yield a microbatch model none of whose models and sources has an event_time."""
    if model.strategy != "microbatch" or any(each in model.text.text for each in _OWN_LIMITS):
        return
    read = [each for each in model.upstream if not each.is_whole]
    if not read or any(each.event_time is None or each.event_time for each in read):
        return
    names = ", ".join(each.name for each in read)
    verb = "has" if len(read) == 1 else "have"
    yield Found(read[0].span, f"{names} {verb} no event_time, so that each batch of {model.name} reads it whole")
