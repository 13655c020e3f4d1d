"""Parts of statements that write: the query within, the table's name, the conditions of an AND."""

from __future__ import annotations

from sqlglot import exp


def query_in(found: exp.Expr | None) -> exp.Query | None:
    """Return the query in whatever brackets it stands."""
    while isinstance(found, exp.Subquery | exp.Paren) and not found.args.get("joins"):
        inner = found.this
        if isinstance(found, exp.Subquery) and found.args.get("with_") and isinstance(inner, exp.Query):
            inner = inner.copy()
            inner.set("with_", found.args["with_"].copy())
        found = inner
    return found if isinstance(found, exp.Select | exp.SetOperation) else None


def written_query(statement: exp.Expr) -> exp.Query | None:
    """Return the query whose rows an INSERT or a CREATE TABLE writes, with a WITH that stands before the statement."""
    query = query_in(statement.args.get("expression"))
    if query is not None and statement.args.get("with_"):
        query = query.copy()
        query.set("with_", statement.args["with_"].copy())
    return query


def merged_query(merge: exp.Merge) -> exp.Query | None:
    """Return the query whose rows a MERGE brings: that in its USING, or all rows of the table that stands there."""
    using = merge.args.get("using")
    query = query_in(using) if isinstance(using, exp.Subquery) else None
    if query is None and isinstance(using, exp.Table):
        query = exp.select("*").from_(using.copy())
    if query is not None and merge.args.get("with_"):
        query = query.copy()
        query.set("with_", merge.args["with_"].copy())
    return query


def flat(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that all have to hold."""
    if not isinstance(condition, exp.Expr):  # False where a MERGE has no ON
        return []
    condition = condition.unnest()
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def is_temporary(statement: exp.Expr) -> bool:
    """Whether a statement makes a table for its session alone; a SELECT INTO is taken for one that does."""
    if isinstance(statement, exp.Select):
        return True
    if not isinstance(statement, exp.Create):
        return False
    properties = statement.args.get("properties")
    return any(isinstance(each, exp.TemporaryProperty) for each in properties.expressions) if properties else False
