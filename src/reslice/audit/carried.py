"""Queries that take up what their own table holds: stored figures with new ones on top."""

from __future__ import annotations

from sqlglot import exp

from reslice.audit.known import name_of
from reslice.audit.matching import matched
from reslice.audit.write import Way, Write
from reslice.reading.nodes import every
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import flat

_REPLACES = (Way.UPSERT, Way.OVERWRITE, Way.REPLACE, Way.RANGED, Way.EMPTIED, Way.KEYED, Way.SYNC)


def carried(write: Write) -> exp.Expr | None:
    """Return the figure that adds what the table holds already to what is new; None where no figure does.

    That is a sum over the table's own rows beside others, or one of its own figures plus one of a row that is joined to
    it. Where the query limits which of the table's rows it takes up, nothing is said.
    """
    query = write.query
    if query is None or write.way not in _REPLACES or not _reads(query.tree, query, write.table):
        return None
    trees = [query.tree, *query.named.values()]
    for tree in trees:
        for select in query.parts(tree, exp.Select):
            found = _summed(select, query, write.table) or _joined(select, query, write.table)
            if found is not None:
                return found
    return None


def _reads(tree: exp.Expr, query: JobQuery, table: str) -> bool:
    return any(
        name_of(each) == table for part in (tree, *query.named.values()) for each in query.parts(part, exp.Table)
    )


def _summed(select: exp.Select, query: JobQuery, table: str) -> exp.Expr | None:
    """Return a sum over a UNION of the table's rows and others."""
    start = select.args.get("from_")
    if start is None or select.args.get("joins") or select.args.get("where") is not None:
        return None
    union = query.relations(select).get(start.this.alias_or_name.lower())
    while isinstance(union, exp.Subquery):
        union = union.this
    if not isinstance(union, exp.Union):
        return None
    sides = _sides(union)
    own = [side for side in sides if _is_whole(side, table)]
    if not own or len(own) == len(sides):
        return None
    projections: list[exp.Expr] = select.expressions
    return next((each for each in projections if each.find(exp.Sum) is not None), None)


def _sides(union: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    pending = [union]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Union):
            pending += [each.this, each.expression]
        elif isinstance(each, exp.Subquery):
            pending.append(each.this)
        else:
            found.append(each)
    return found


def _is_whole(side: exp.Expr, table: str) -> bool:
    """Whether a query takes all rows of the table as they are."""
    if not isinstance(side, exp.Select) or any(side.args.get(name) for name in ("where", "joins", "group", "qualify")):
        return False
    start = side.args.get("from_")
    return start is not None and name_of(start.this) == table


def _joined(select: exp.Select, query: JobQuery, table: str) -> exp.Expr | None:
    """Return a figure of the table plus one of a row that is joined to it by equal columns."""
    aliases = {alias for alias, name in query.tables(select).items() if name == table}
    if len(aliases) != 1 or len(query.relations(select)) != 2:
        return None
    where = select.args.get("where")
    if where is not None and any(column.table.lower() in ("", *aliases) for column in every(where, exp.Column)):
        return None
    join = (select.args.get("joins") or [None])[0]
    on = join.args.get("on") if join is not None else None
    if not _is_by_equal_columns(on, aliases) and not (join is not None and join.args.get("using")):
        return None
    projections: list[exp.Expr] = select.expressions
    for each in projections:
        value = each.unalias()
        while isinstance(value, exp.Paren | exp.Cast):
            value = value.this
        if isinstance(value, exp.Add):
            sides = [
                {column.table.lower() for column in every(side, exp.Column)} for side in (value.this, value.expression)
            ]
            if any(side == aliases for side in sides) and any(side and not side & {"", *aliases} for side in sides):
                return each
    return None


def _is_by_equal_columns(on: exp.Expr | None, aliases: set[str]) -> bool:
    parts = flat(on)
    matches = matched(on, aliases)
    return bool(parts) and len(matches) >= len(parts) and all(isinstance(each.other, exp.Column) for each in matches)
