"""Whether a query aggregates, and what it has one row of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.reading.outputs import JobQuery, grain

_QUERIES_MAX = 200
"""How many of the queries within one are looked at."""
_SPINE = re.compile(
    r"(?:.*_)?(?:calendar|spine|dates?|days|months|weeks|hours|periods|date_dim|dim_dates?|dim_day)(?:_.*)?"
)
"""The name of a table that only holds the days to report on."""
_PICKS = (
    exp.AnyValue,
    exp.ArgMax,
    exp.ArgMin,
    exp.First,
    exp.FirstValue,
    exp.Last,
    exp.LastValue,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.Max,
    exp.Min,
)
"""Aggregate functions that choose one of several values, and add nothing up."""


def is_aggregate(query: JobQuery) -> bool:
    """Whether a query's rows are aggregated, by itself or in what it selects from first; a join to one is none."""
    return _is_aggregate(query, query.tree, set())


def _is_aggregate(query: JobQuery, tree: exp.Expr, seen: set[int]) -> bool:
    """Tell it of one of the queries within; one that was looked at already adds nothing."""
    if len(seen) > _QUERIES_MAX or id(tree) in seen:
        return False
    seen.add(id(tree))
    if isinstance(tree, exp.SetOperation):
        return any(_is_aggregate(query, each, seen) for each in (tree.expression, tree.this))
    if isinstance(tree, exp.Subquery):
        return _is_aggregate(query, tree.this, seen)
    if not isinstance(tree, exp.Select):
        return False
    if tree.args.get("group") is not None or any(map(_aggregates, tree.expressions)):
        return True
    start = tree.args.get("from_")
    if start is None or _takes_apart(tree):
        return False
    relations = query.relations(tree)
    alias = start.this.alias_or_name.lower()
    inner = relations.get(alias)
    if (inner is not None and _is_aggregate(query, inner, seen)) or _is_pivoted(start.this):
        return True
    if not _is_spine(start.this, inner):
        return False
    return any(each is not None and _is_aggregate(query, each, seen) for each in relations.values())


def _takes_apart(select: exp.Select) -> bool:
    """Whether a SELECT makes several rows of each that it reads: of a list, one for each of its values."""
    joined = [join.this for join in select.args.get("joins") or []]
    parts = (*joined, *(select.args.get("laterals") or []), *(each.unalias() for each in select.expressions))
    return any(isinstance(each, exp.Lateral | exp.Unnest | exp.UDTF | exp.Explode | exp.Posexplode) for each in parts)


def _is_pivoted(source: exp.Expr) -> bool:
    return any(not each.args.get("unpivot") for each in source.args.get("pivots") or [])


def _is_spine(source: exp.Expr, inner: exp.Query | None) -> bool:
    """Whether a query begins with the days to report on, to which figures are joined."""
    if isinstance(source, exp.Table) and _SPINE.fullmatch(source.name.lower()):
        return True
    series = (exp.GenerateSeries, exp.GenerateDateArray, exp.GenerateTimestampArray, exp.ExplodingGenerateSeries)
    reads = (source, *([inner] if inner is not None else []))
    return any(each.find(*series) is not None for each in reads)


def only_picks(query: JobQuery) -> bool:
    """Whether a query that aggregates adds nothing up: it keeps one row of each group, or one of its values."""
    return all(isinstance(each, _PICKS) for each in _functions(query))


def _functions(query: JobQuery) -> Iterator[exp.Expr]:
    """Yield the aggregate functions of a query that are not over a window."""
    found = (each for tree in (query.tree, *query.named.values()) for each in query.parts(tree, exp.AggFunc))
    for each in found:
        if not isinstance(each.parent, exp.Window) and not isinstance(each.parent, exp.IgnoreNulls | exp.RespectNulls):
            yield each


def _aggregates(value: exp.Expr) -> bool:
    """Whether a value is made of many rows: by an aggregate function that is not over a window, nor in a subquery."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.AggFunc):
            return True
        if isinstance(each, exp.Window | exp.Query | exp.Subquery):
            continue
        pending += each.iter_expressions()
    return False


def grain_of(query: JobQuery) -> tuple[str, ...] | None:
    """Return the columns, in small letters, that a query has one row for each combination of; None: it does not say."""
    names = grain(query, query.outputs()).names
    return None if names is None else tuple(name.lower() for name in names)
