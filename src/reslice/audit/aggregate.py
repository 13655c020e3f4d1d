"""Whether a query aggregates, and what it has one row of."""

from __future__ import annotations

from sqlglot import exp

from reslice.reading.outputs import JobQuery, grain

_DEPTH_LIMIT = 30


def is_aggregate(query: JobQuery, tree: exp.Expr | None = None, depth: int = 0) -> bool:
    """Whether a query's rows are aggregated, by itself or in what it selects from first; a join to one is none."""
    tree = query.tree if tree is None else tree
    if depth > _DEPTH_LIMIT:
        return False
    if isinstance(tree, exp.SetOperation):
        return any(is_aggregate(query, each, depth + 1) for each in (tree.this, tree.expression))
    if isinstance(tree, exp.Subquery):
        return is_aggregate(query, tree.this, depth + 1)
    if not isinstance(tree, exp.Select):
        return False
    if tree.args.get("group") is not None or any(map(_aggregates, tree.expressions)):
        return True
    start = tree.args.get("from_")
    alias = start.this.alias_or_name.lower() if start is not None else ""
    inner = query.relations(tree).get(alias)
    return inner is not None and is_aggregate(query, inner, depth + 1)


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
