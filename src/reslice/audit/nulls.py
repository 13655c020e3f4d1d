"""Whether a column of a query can be NULL, as far as the text says."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.known import Known
from reslice.reading.bounds import conjuncts
from reslice.reading.outputs import JobQuery

_DEPTH_LIMIT = 12
_KEEPS_NULL = (
    exp.Paren,
    exp.Cast,
    exp.TryCast,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.Date,
)
_NEVER_TRUE = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)
"""Comparisons that no row passes whose value is NULL."""


@dataclass(frozen=True, slots=True)
class Nulls:
    """Whether a value can be NULL: `why` says what makes it so; `is_never` that it cannot. Neither: it is not known."""

    why: str = ""
    is_never: bool = False


_UNKNOWN = Nulls()
_NEVER = Nulls(is_never=True)


def nulls_of(query: JobQuery, name: str, known: Known, tree: exp.Expr | None = None, depth: int = 0) -> Nulls:
    """Return whether the column of a query with that name, in small letters, can be NULL."""
    tree = query.tree if tree is None else tree
    if depth > _DEPTH_LIMIT:
        return _UNKNOWN
    if isinstance(tree, exp.Subquery):
        return nulls_of(query, name, known, tree.this, depth + 1)
    if isinstance(tree, exp.SetOperation):
        sides = [nulls_of(query, name, known, each, depth + 1) for each in (tree.this, tree.expression)]
        told = next((each for each in sides if each.why), None)
        return told or (_NEVER if all(each.is_never for each in sides) else _UNKNOWN)
    if not isinstance(tree, exp.Select):
        return _UNKNOWN
    for each in tree.expressions:
        if each.alias_or_name.lower() == name and not isinstance(each.unalias(), exp.Star):
            return _of_value(query, each.unalias(), tree, known, depth)
    stars = [each for each in tree.expressions if each.is_star]
    for star in stars:
        alias = star.table.lower() if isinstance(star, exp.Column) else ""
        for own, inner in query.relations(tree).items():
            if inner is not None and alias in ("", own):
                return nulls_of(query, name, known, inner, depth + 1)
    return _UNKNOWN


def nulls_made(value: exp.Expr) -> Nulls:
    """Return whether a value is made NULL by what it says itself, such as NULLIF."""
    return _of_choice(value) if isinstance(value, exp.Case | exp.If) else _of_word(value)


def _of_word(value: exp.Expr) -> Nulls:
    if isinstance(value, exp.Null):
        return Nulls("it is written as NULL")
    return Nulls("NULLIF makes it NULL") if isinstance(value, exp.Nullif) else _UNKNOWN


def _of_value(query: JobQuery, value: exp.Expr, select: exp.Select, known: Known, depth: int) -> Nulls:
    while isinstance(value, _KEEPS_NULL) and isinstance(value.this, exp.Expr):
        value = value.this
    if isinstance(value, exp.Coalesce):
        return _NEVER if isinstance(value.expressions[-1], exp.Literal) else _UNKNOWN
    if isinstance(value, exp.Literal | exp.Count):
        return _NEVER
    if isinstance(value, exp.Column):
        return _of_column(query, value, select, known, depth)
    return nulls_made(value)


def _of_choice(value: exp.Case | exp.If) -> Nulls:
    otherwise = value.args.get("default" if isinstance(value, exp.Case) else "false")
    if otherwise is None or isinstance(otherwise, exp.Null):
        return Nulls("a CASE without ELSE makes it NULL")
    branches = [each.args["true"] for each in value.args.get("ifs") or []]
    return (
        Nulls("a branch of a CASE makes it NULL") if any(isinstance(each, exp.Null) for each in branches) else _UNKNOWN
    )


def _of_column(query: JobQuery, column: exp.Column, select: exp.Select, known: Known, depth: int) -> Nulls:
    subtotals = _subtotals(column, select)
    if subtotals:
        return Nulls(f"{subtotals} adds rows of subtotals in which it is NULL")
    if _is_filtered(column, select):
        return _NEVER
    outer = _outer_join(column, select)
    if outer is not None:
        return Nulls(f"a {outer.args['side']} JOIN leaves it NULL where no row is found")
    relations = query.relations(select)
    inner = relations.get(column.table.lower()) if column.table else None
    if not column.table and len(relations) == 1:
        inner = next(iter(relations.values()))
    if inner is not None:
        return nulls_of(query, column.name.lower(), known, inner, depth + 1)
    tables = query.tables(select)
    table = tables.get(column.table.lower()) if column.table else next(iter(tables.values()), None)
    if table is not None and (column.table or len(tables) == 1) and table in known:
        declared = known[table]
        if column.name.lower() in declared.not_null:
            return _NEVER
    return _UNKNOWN


def _subtotals(column: exp.Column, select: exp.Select) -> str:
    """Return what makes subtotals over a column; empty where nothing does."""
    group = select.args.get("group")
    if group is None:
        return ""
    for called, kind in (("ROLLUP", exp.Rollup), ("CUBE", exp.Cube), ("GROUPING SETS", exp.GroupingSets)):
        for each in group.find_all(kind):
            names = {one.name.lower() for one in each.find_all(exp.Column)}
            names |= (
                {one.name.lower() for item in group.expressions for one in item.find_all(exp.Column)}
                if not names
                else set()
            )
            if column.name.lower() in names:
                return called
    return ""


def _is_filtered(column: exp.Column, select: exp.Select) -> bool:
    """Whether no row passes in which a column is NULL."""
    where = select.args.get("where")
    for each in conjuncts(where) if where is not None else []:
        inner = each.unnest()
        if isinstance(inner, exp.Not) and isinstance(inner.this.unnest(), exp.Is):
            inner = inner.this.unnest()
            is_not_null = isinstance(inner.expression, exp.Null)
            if is_not_null and _same(inner.this, column):
                return True
        elif isinstance(inner, _NEVER_TRUE) and inner.find(exp.Coalesce, exp.Nullif, exp.Case) is None:
            sides = [inner.this, inner.args.get("expression")]
            if any(_same(part, column) for side in sides if side is not None for part in side.find_all(exp.Column)):
                return True
    return False


def _same(part: exp.Expr, column: exp.Column) -> bool:
    part = part.unnest()
    if not isinstance(part, exp.Column) or part.name.lower() != column.name.lower():
        return False
    return part.table.lower() == column.table.lower() or not part.table or not column.table


def _outer_join(column: exp.Column, select: exp.Select) -> exp.Join | None:
    """Return the outer join by which a column is NULL where it finds no row; None where a WHERE leaves those out."""
    alias = column.table.lower()
    if not alias:
        return None
    where = select.args.get("where")
    for each in conjuncts(where) if where is not None else []:
        inner = each.unnest()
        if isinstance(inner, _NEVER_TRUE) and inner.find(exp.Coalesce) is None:
            if any(one.table.lower() == alias for one in inner.find_all(exp.Column)):
                return None
        elif isinstance(inner, exp.Not) and any(one.table.lower() == alias for one in inner.find_all(exp.Column)):
            return None
    is_before = True
    joins: list[exp.Join] = list(reversed(select.args.get("joins") or []))
    for join in joins:
        side = join.args.get("side")
        is_joined = join.this.alias_or_name.lower() == alias
        if is_joined and side in ("LEFT", "FULL"):
            return join
        if is_joined:
            is_before = False
        elif is_before and side in ("RIGHT", "FULL"):
            return join
    return None
