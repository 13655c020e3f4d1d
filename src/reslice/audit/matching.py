"""Conditions that find rows of a table by rows of another: the columns that are compared, and what with."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.known import name_of
from reslice.reading.statements import flat


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A column of a table, in small letters, and what it has to equal for two rows to be the same.

    `other` is None where the table's key says what is equal. `is_null_safe` says that NULL equals NULL.
    """

    column: str
    other: exp.Expr | None = None
    is_null_safe: bool = False


def matched(condition: exp.Expr | None, names: Collection[str]) -> tuple[Match, ...]:
    """Return how a condition compares the columns of a table, which goes by `names`, with those of another."""
    found = [match for each in flat(condition) for match in _matched(each.unnest(), names)]
    return _once(found)


def matched_by_using(columns: Collection[exp.Expr]) -> tuple[Match, ...]:
    """Return the matches of a USING (column, …)."""
    return _once([Match(each.name.lower(), exp.column(each.name)) for each in columns])


def _once(found: Collection[Match]) -> tuple[Match, ...]:
    return tuple({match.column: match for match in reversed(list(found))}.values())[::-1]


def _matched(condition: exp.Expr, names: Collection[str]) -> Iterator[Match]:
    if isinstance(condition, exp.EQ | exp.NullSafeEQ):
        is_safe = isinstance(condition, exp.NullSafeEQ)
        for left, right in _pairs(condition.this, condition.expression):
            yield from _compared(left, right, names, is_safe)
    elif isinstance(condition, exp.Or):
        yield from _with_nulls(condition, names)
    elif isinstance(condition, exp.Exists) and isinstance(condition.this, exp.Intersect):
        sides = condition.this.this, condition.this.expression
        if all(isinstance(side, exp.Select) for side in sides):
            for left, right in zip(sides[0].expressions, sides[1].expressions, strict=False):
                yield from _compared(left.unalias(), right.unalias(), names, True)


def _pairs(left: exp.Expr, right: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the sides of a comparison, those of (a, b) = (c, d) one by one."""
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        yield from zip(left.expressions, right.expressions, strict=False)
    else:
        yield left, right


def _compared(left: exp.Expr, right: exp.Expr, names: Collection[str], is_safe: bool) -> Iterator[Match]:
    for own, other in ((left, right), (right, left)):
        columns, others = list(own.find_all(exp.Column)), list(other.find_all(exp.Column))
        is_own = bool(columns) and all(each.table.lower() in names for each in columns)
        is_bare = bool(columns) and all(not each.table for each in columns)
        are_others = all(each.table and each.table.lower() not in names for each in others)
        is_others = bool(others) and not any(each.table.lower() in names for each in others)
        if (is_own and is_others) or (is_bare and others and are_others):
            is_safe = is_safe or (_has_default(own) and _has_default(other))
            yield from (Match(each.name.lower(), other, is_safe) for each in columns)
            return


def _has_default(value: exp.Expr) -> bool:
    """Whether a value has another in place of NULL."""
    return isinstance(value.unnest(), exp.Coalesce) or (
        isinstance(value, exp.Func) and value.find(exp.Coalesce) is not None
    )


def _with_nulls(condition: exp.Or, names: Collection[str]) -> Iterator[Match]:
    """Yield the match of `a = b or (a is null and b is null)`."""
    parts = [each.unnest() for each in condition.flatten()]
    equal = [each for each in parts if isinstance(each, exp.EQ | exp.NullSafeEQ)]
    others = [each for each in parts if not isinstance(each, exp.EQ | exp.NullSafeEQ)]
    if len(equal) == 1 and all(isinstance(each, exp.And) and each.find(exp.Is) is not None for each in others):
        yield from _compared(equal[0].this, equal[0].expression, names, True)


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """How a condition finds rows of a table by those of another query: the columns, and what it reads."""

    matches: tuple[Match, ...]
    source: tuple[exp.Expr, ...]
    is_absent: bool = False
    """Whether it finds the rows that the other query does not have."""

    def reads(self) -> set[str]:
        """Return the tables that it reads, by the last part of their names in small letters."""
        return {name_of(each) for tree in self.source for each in tree.find_all(exp.Table)}


def others_in(
    condition: exp.Expr | None, names: Collection[str], joined: Collection[exp.Expr] = ()
) -> Iterator[Others]:
    """Yield each part of a WHERE that finds rows of a table, which goes by `names`, by those of another query.

    `joined` are what the statement reads beside the table: USING, or the joins of its FROM.
    """
    conditions = flat(condition)
    nulls = {each.this.table.lower() for each in conditions if _is_null(each)}
    for join in joined:
        if isinstance(join, exp.Join):
            is_absent = join.kind == "ANTI" or (join.side == "LEFT" and join.this.alias_or_name.lower() in nulls)
            on = matched_by_using(join.args.get("using") or []) or matched(join.args.get("on"), names)
            yield Others(on, (join.this,), is_absent)
    for each in conditions:
        inner = each.unnest()
        is_absent = isinstance(inner, exp.Not)
        inner = inner.this.unnest() if is_absent else inner
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            query = inner.args["query"]
            yield Others(_in_query(inner.this, query), (query,), is_absent)
        elif isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
            where = inner.this.args.get("where")
            own = inner.this.args.get("from_")
            if own is not None:
                yield Others(matched(where.this if where is not None else None, names), (own,), is_absent)
        elif isinstance(inner, exp.EQ) and isinstance(inner.expression, exp.Any | exp.Subquery):
            query = inner.expression.this
            if isinstance(inner.this, exp.Column) and inner.expression.find(exp.Select) is not None:
                yield Others(_in_query(inner.this, query), (inner.expression,), is_absent)
    sources = [each for each in joined if not isinstance(each, exp.Join)]
    if sources:
        yield Others(matched(condition, names), tuple(sources))


def _in_query(value: exp.Expr, query: exp.Expr) -> tuple[Match, ...]:
    """Return the matches of `(a, b) in (select c, d …)`."""
    select = query.find(exp.Select)
    columns = list(value.find_all(exp.Column))
    found = [each.unalias() for each in select.expressions] if select is not None else []
    others = found if len(found) == len(columns) else [None] * len(columns)
    return tuple(Match(each.name.lower(), other) for each, other in zip(columns, others, strict=True))


def _is_null(condition: exp.Expr) -> bool:
    inner = condition.unnest()
    return isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and isinstance(inner.this, exp.Column)
