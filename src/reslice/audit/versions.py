"""Where a query chooses one version of each key, and what limits the rows that it chooses from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.predicates import leaf_of, subject_of
from reslice.audit.reached import reached
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import flat

_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_DEPTH_LIMIT = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """A SELECT that keeps the newest row of each key. `keys` and `order` are columns of tables, in small letters."""

    select: exp.Select
    keys: frozenset[str]
    order: frozenset[str]
    table: str


def choices(query: JobQuery) -> Iterator[Choice]:
    """Yield each place where a query chooses the newest version of each key.

    By a rank that has to be 1, by DISTINCT ON, by the value at the maximum of a column, or by a join with that maximum.
    """
    selects = reached(query)
    ranks = _ranks_kept(query, selects)
    for select in selects:
        for window in _ranked(select, ranks):
            yield from _choice(query, select, window.args.get("partition_by") or [], window.args.get("order"))
        distinct = select.args.get("distinct")
        on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        if on is not None:
            keys = list(on.expressions) or [on]
            yield from _choice(query, select, keys, select.args.get("order"), skipped=len(keys))
        yield from _at_maximum(query, select)


def _ranks_kept(query: JobQuery, selects: list[exp.Select]) -> set[str]:
    """Return the names of columns of which a query keeps the value 1."""
    found = set()
    for select in selects:
        holders = [select.args[key].this for key in ("where", "qualify") if select.args.get(key) is not None]
        holders += [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
        for holder in holders:
            for each in flat(holder):
                if _is_first(each.unnest()) and isinstance(each.unnest().this, exp.Column):
                    found.add(each.unnest().this.name.lower())
    return found


def _is_first(condition: exp.Expr) -> bool:
    """Whether a condition holds for the first of a rank alone: = 1, <= 1, < 2."""
    number = condition.args.get("expression")
    if not isinstance(number, exp.Literal):
        return False
    is_one = isinstance(condition, exp.EQ | exp.LTE) and number.name == "1"
    return is_one or (isinstance(condition, exp.LT) and number.name == "2")


def _ranked(select: exp.Select, kept: set[str]) -> Iterator[exp.Window]:
    """Yield the ranks of a SELECT of which only the first is kept."""
    for projection in select.expressions:
        value = projection.unalias()
        is_rank = isinstance(value, exp.Window) and isinstance(value.this, _RANKS)
        if is_rank and projection.alias_or_name.lower() in kept:
            yield value
    qualify = select.args.get("qualify")
    for each in flat(qualify.this) if qualify is not None else []:
        window = each.unnest().args.get("this")
        if isinstance(window, exp.Window) and isinstance(window.this, _RANKS) and _is_first(each.unnest()):
            yield window


def _choice(
    query: JobQuery, select: exp.Select, keys: list[exp.Expr], order: exp.Expr | None, skipped: int = 0
) -> Iterator[Choice]:
    parts = list(order.expressions)[skipped:] if order is not None else []
    if not keys or not parts or not parts[0].args.get("desc"):
        return
    names, tables = _leaves(query, select, keys)
    ordered, _ = _leaves(query, select, [each.this for each in parts])
    yield Choice(select, names, ordered, next(iter(tables), ""))


def _leaves(query: JobQuery, select: exp.Select, parts: list[exp.Expr]) -> tuple[frozenset[str], list[str]]:
    """Return the columns of tables that parts of a SELECT are made of, and those tables."""
    names, tables = set(), []
    for part in parts:
        for column in part.find_all(exp.Column):
            subject = subject_of(column)
            if subject is not None:
                leaf = leaf_of(query, subject, select)
                names |= {leaf.name, column.name.lower()}
                tables += [leaf.table] if leaf.table else []
    return frozenset(names), tables


def _at_maximum(query: JobQuery, select: exp.Select) -> Iterator[Choice]:
    group = select.args.get("group")
    keys = list(group.expressions) if group is not None else []
    columns = [each for each in keys if isinstance(each, exp.Column)]
    if not columns or len(columns) != len(keys):
        return
    for projection in select.expressions:
        value = projection.unalias()
        is_at = isinstance(value, exp.ArgMax) and isinstance(value.expression, exp.Column)
        is_joined = isinstance(value, exp.Max) and _is_joined_back(query, select, projection.alias_or_name)
        if is_at or is_joined:
            names, tables = _leaves(query, select, keys)
            ordered, _ = _leaves(query, select, [value.expression if is_at else value.this])
            yield Choice(select, names, ordered, next(iter(tables), ""))
            return


def _is_joined_back(query: JobQuery, select: exp.Select, name: str) -> bool:
    """Whether another SELECT joins a SELECT of maxima, so as to keep the rows at the maximum."""
    for outer in reached(query):
        for alias, inner in query.relations(outer).items():
            if inner is not select:
                continue
            for join in outer.args.get("joins") or []:
                for each in flat(join.args.get("on")):
                    sides = [each.args.get("this"), each.args.get("expression")]
                    if isinstance(each, exp.EQ) and any(_is_column(side, alias, name) for side in sides):
                        return True
    return False


def _is_column(side: exp.Expr | None, alias: str, name: str) -> bool:
    return isinstance(side, exp.Column) and side.table.lower() == alias and side.name.lower() == name.lower()


def before(query: JobQuery, choice: Choice) -> Iterator[tuple[exp.Expr, exp.Select]]:
    """Yield the conditions that limit the rows which a choice is made from, each with the SELECT it stands in."""
    pending, depth = [choice.select], 0
    while pending and depth < _DEPTH_LIMIT:
        depth += 1
        select = pending.pop(0)
        where = select.args.get("where")
        for condition in flat(where.this if where is not None else None):
            yield condition, select
        start = select.args.get("from_")
        alias = start.this.alias_or_name.lower() if start is not None else ""
        inner = query.relations(select).get(alias)
        if isinstance(inner, exp.Select) and inner.args.get("group") is None:
            pending.append(inner)
