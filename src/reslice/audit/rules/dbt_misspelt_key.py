"""RS502: A key of a model's config is misspelt.

dbt takes any key in a config and says nothing of one that nobody reads. A `unique_keys` is no `unique_key`: the model
appends, and every run doubles what is there. A `partitioned_by` on BigQuery leaves the table without partitions.

Bad (dbt.postgres):

    {{ config(materialized='incremental', unique_keys=['order_id']) }}
    select order_id, order_date, amount_cents from {{ ref('orders') }}
    {% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}

Good (dbt.postgres):

    {{ config(materialized='incremental', unique_key=['order_id']) }}
    select order_id, order_date, amount_cents from {{ ref('orders') }}
    {% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.dbt_keys import meant
from reslice.audit.dbt_model import Model
from reslice.audit.rule import Found

HELP = "write the key as dbt knows it"


def model(model: Model) -> Iterator[Found]:
    """Yield each key that is nearly one that decides how rows are written, where that one is not given too."""
    for key in model.config:
        intended = meant(key, model.adapter)
        if not intended or key in model.own_keys or intended in model.config:
            continue
        if intended == "materialized" or model.is_incremental:
            yield Found(model.spot(key), f"{key} is read by nobody: {intended} was meant")
