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
from reslice.audit.predicates import query_conditions
from reslice.audit.rule import Found
from reslice.audit.rules.own_maximum import is_after_maximum, is_own_maximum
from reslice.audit.scope import own_names, reads_itself
from reslice.audit.unstable import Use, unstable
from reslice.audit.values import CLOCK
from reslice.audit.write import Way, Write

HELP = "replace the range that is computed: incremental_strategy microbatch or insert_overwrite, or a table built whole"


def model(model: Model) -> Iterator[Found]:
    """Yield a model whose incremental run adds rows that are there already, or of which that is not known."""
    spot = model.spot("incremental_strategy", "materialized")
    if model.why_unknown:
        yield Found(spot, model.why_unknown, Sort.UNKNOWN)
    write = model.write
    if write is None or write.query is None or write.way is not Way.APPEND:
        return
    name = model.declared.name
    if is_after_maximum(write) or _looks_up_what_is_there(write):
        return
    if write.is_aggregate:
        yield Found(spot, f"{_why(model)}: each run adds its groups to {name} again, and removes none")
    elif reads_itself(write):
        yield Found(spot, f"{_why(model)}, and the newest rows of {name} are computed again: each run adds them again")
    else:
        yield from _rows(model, write, spot)


def _rows(model: Model, write: Write, spot: tuple[int, int]) -> Iterator[Found]:
    """Yield an append of single rows that nothing keeps from being added again."""
    assert write.query is not None, "only models with a query are judged"
    name = model.declared.name
    low = [each for each in query_conditions(write.query, write.script.outside) if each.kind != "high"]
    has_stamp = any(each.use is Use.STAMP for each in unstable(write.query))
    if any(value.base == CLOCK for each in low for value in each.values) and not has_stamp:
        yield Found(
            spot, f"{_why(model)}, and the last days are computed each time: {name} holds their rows repeatedly"
        )
    elif not model.is_filtered and not low and not has_stamp:
        yield Found(spot, f"{_why(model)}, and reads everything each time: all rows are added to {name} again")


def _why(model: Model) -> str:
    if model.strategy == "append":
        return "it appends" if model.get("incremental_strategy") == "append" else "without unique_key it appends"
    return f"{model.strategy} without unique_key appends"


def _looks_up_what_is_there(write: Write) -> bool:
    """Whether the query reads its own table for more than its newest time: to leave out what is there already."""
    assert write.query is not None, "only models with a query are judged"
    own = [each for each in write.query.parts(write.query.tree, exp.Table) if each.name.lower() in own_names(write)]
    selects = [each.find_ancestor(exp.Select) for each in own]
    return any(each is not None and not is_own_maximum(write, each) for each in selects)
