"""RS505: An overwrite replaces more, or less, than its query computes.

What `insert_overwrite` replaces is decided by the database and by the config. Without `partition_by` it is the whole
table on Spark and Databricks, and on Snowflake it always is: an incremental run leaves the last days alone, and the
history is gone. With `partitions` on BigQuery it is the partitions that are listed, whatever the query returns: rows of
other days are added beside those that are there.

Bad (dbt.spark):

    {{ config(materialized='incremental', incremental_strategy='insert_overwrite') }}
    select order_date, channel, count(*) as order_count
    from {{ ref('orders') }}
    {% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
    group by order_date, channel

Good (dbt.spark):

    {{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['order_date']) }}
    select order_date, channel, count(*) as order_count
    from {{ ref('orders') }}
    {% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
    group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from reslice.audit.dbt_model import Model
from reslice.audit.finding import Sort
from reslice.audit.predicates import query_conditions
from reslice.audit.rule import Found
from reslice.audit.write import Way
from reslice.reading.jinja import UNKNOWN

HELP = "let the partitions that are replaced be those that the query computes: partition_by, and no partitions list"
_WHOLE = frozenset({"snowflake"})
_BY_PARTITION = frozenset({"spark", "databricks", "hive", "bigquery"})


def model(model: Model) -> Iterator[Found]:
    """Yield an overwrite whose scope is not what its query computes."""
    write = model.write
    if write is None or write.way is not Way.OVERWRITE or model.strategy != "insert_overwrite":
        return
    spot = model.spot("incremental_strategy", "materialized")
    name = model.declared.name
    partition = model.get("partition_by")
    if model.adapter in _WHOLE and _is_limited(model):
        yield Found(spot, f"insert_overwrite on Snowflake replaces all of {name} by the rows of the run")
    elif model.adapter in _BY_PARTITION and not partition:
        if model.adapter == "bigquery":
            text = "insert_overwrite on BigQuery asks for a partition_by: without one every run fails"
            yield Found(spot, text, Sort.NOTE)
        elif _is_limited(model):
            yield Found(spot, f"without partition_by, insert_overwrite replaces all of {name} by the rows of the run")
    elif model.adapter == "bigquery" and _is_listed(model) and not _is_limited(model):
        text = f"only the listed partitions of {name} are replaced, and the query is not limited to them"
        yield Found(model.spot("partitions"), f"{text}: rows of others are added again")


def _is_listed(model: Model) -> bool:
    partitions = model.get("partitions")
    return partitions is not UNKNOWN and bool(partitions)


def _is_limited(model: Model) -> bool:
    """Whether an incremental run computes a part only."""
    assert model.write is not None and model.write.query is not None, "only models with a query are judged"
    marks = model.write.script.outside
    return model.is_filtered or any(
        each.kind != "high" and each.values for each in query_conditions(model.write.query, marks)
    )
