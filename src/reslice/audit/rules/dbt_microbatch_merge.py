"""RS504: A batch is merged, so that groups that no longer exist stay.

On most databases dbt's microbatch replaces the batch: its rows are deleted by their time and inserted anew. On
PostgreSQL it merges by `unique_key` instead. A group whose last row was cancelled or moved to another day is not
computed any more, nothing finds its old row, and it stays in every total, however often the batch is run again.

Bad (dbt.postgres):

    {{ config(materialized='incremental', incremental_strategy='microbatch', unique_key=['order_date', 'channel'],
              event_time='order_date', batch_size='day', begin='2026-01-01') }}
    select order_date, channel, count(*) as order_count
    from {{ ref('orders') }}
    where order_date >= '{{ model.batch.event_time_start }}' and order_date < '{{ model.batch.event_time_end }}'
    group by order_date, channel

Good (dbt.postgres):

    {{ config(materialized='table') }}
    select order_date, channel, count(*) as order_count
    from {{ ref('orders') }}
    group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.dbt_adapter import MICROBATCH
from reslice.audit.dbt_model import Model
from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.write import Way

HELP = "replace the range that is computed by a delete and an insert in one transaction"
_KEY_HELP = "give it the unique_key that dbt asks for on this database"


def model(model: Model) -> Iterator[Found]:
    """Yield a microbatch model of groups on a database where dbt merges, and one without the key that it needs."""
    if model.strategy != "microbatch" or MICROBATCH.get(model.adapter or "") is not Way.UPSERT:
        return
    spot = model.spot("incremental_strategy")
    if not model.keys:
        text = f"dbt merges a batch on {model.adapter} and asks for a unique_key: without one every run fails"
        yield Found(spot, text, Sort.NOTE, _KEY_HELP)
    elif model.write is not None and model.write.is_aggregate:
        name = model.declared.name
        yield Found(spot, f"dbt merges a batch on {model.adapter}: a group of {name} that no longer exists stays")
