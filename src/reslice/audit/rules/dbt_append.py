"""RS501: An incremental model adds its rows again.

Without a `unique_key`, and without a strategy that replaces, an incremental run of dbt only inserts. The first run
builds the table and is right. Every run after it adds what the query returns beside the rows that are there: the run
that a scheduler retries, or that somebody starts for last quarter, doubles them, and dbt says OK.

A model of single events that keeps to rows newer than its newest one adds none twice and is not meant here.

Bad (dbt.postgres):

    {{ config(materialized='incremental') }}
    select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
    from {{ ref('orders') }}
    {% if is_incremental() %} where order_date >= '{{ var("start") }}' {% endif %}
    group by order_date, channel

Good (dbt.duckdb):

    {{ config(materialized='table') }}
    select order_date, channel, count(*) as order_count, sum(amount_cents) as amount_cents
    from {{ ref('orders') }}
    group by order_date, channel
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.dbt_model import Model
from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.write import Way, Write
from reslice.reading.bounds import Bounding, boundings

HELP = "replace the range that is computed: incremental_strategy microbatch or insert_overwrite, or a table built whole"


def model(model: Model) -> Iterator[Found]:
    """Yield a model whose incremental run adds rows that are there already, or of which that is not known."""
    if model.why_unknown:
        yield Found(model.spot("incremental_strategy", "materialized"), model.why_unknown, Sort.UNKNOWN)
    write = model.write
    if write is None or write.way is not Way.APPEND:
        return
    why = _why(model)
    spot = model.spot("incremental_strategy", "materialized")
    if write.is_aggregate:
        if not _is_past(write):
            yield Found(spot, f"{why}: each run adds its groups to {model.declared.name} again, and removes none")
    elif not model.is_filtered and not _is_limited(write):
        yield Found(spot, f"{why}, and reads everything each time: all rows are added to {model.declared.name} again")


def _why(model: Model) -> str:
    if model.strategy == "append":
        return "it appends" if model.get("incremental_strategy") == "append" else "without unique_key it appends"
    return f"{model.strategy} without unique_key appends"


def _is_past(write: Write) -> bool:
    """Whether the query keeps to groups newer than the newest one that is there: then none is added twice."""
    return any(_is_newer(each) for each in _bounds(write))


def _is_newer(bound: Bounding) -> bool:
    if bound.kind != "watermark":
        return False
    condition = bound.node.unnest()
    return isinstance(condition, exp.GT | exp.LT)


def _is_limited(write: Write) -> bool:
    return bool(_bounds(write))


def _bounds(write: Write) -> list[Bounding]:
    return boundings(write.query, write.table) if write.query is not None else []
