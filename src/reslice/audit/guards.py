"""Conditions by which an INSERT leaves out what its table holds already."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.known import name_of
from reslice.audit.matching import Match, matched, matched_by_using, others_in
from reslice.audit.steps import Step
from reslice.reading.nodes import every
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import flat


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """What an INSERT leaves out: rows whose key is there, or (a watermark) rows that are not later than all of them.

    `log` is the table that tells whether the run was done, where that is another one.
    """

    matches: tuple[Match, ...] = ()
    is_watermark: bool = False
    log: str = ""


def guards_in(query: JobQuery, table: str, step: Step, filled: Collection[str]) -> Guard | None:
    """Return the condition of an INSERT's query, or of an IF around it, that leaves out what the table holds.

    `filled` are the tables that the script adds rows to: one of them may tell what was done.
    """
    updates = {name for name, node in step.within.items() if isinstance(node, exp.Update) and _is(node.this, table)}
    for select in query.parts(query.tree, exp.Select):
        found = next(_guards(select, table, updates), None)
        if found is not None:
            return found
    for each in query.parts(query.tree, exp.Except):
        if _reads(each.expression, {table}):
            return Guard()
    for condition, is_true in step.branches:
        if is_true and isinstance(condition.this, exp.Not) and _reads(condition.this, {table}):
            return Guard()
    return _log_guard(query, table, step, filled)


def _log_guard(query: JobQuery, table: str, step: Step, filled: Collection[str]) -> Guard | None:
    """Return the condition by which nothing is added where another table tells that it was done."""
    conditions = [branch.this for branch, is_true in step.branches if is_true]
    where = query.tree.args.get("where") if isinstance(query.tree, exp.Select) else None
    conditions += [each for each in flat(where.this if where is not None else None) if not _is_correlated(each)]
    for each in conditions:
        inner = each.unnest()
        if isinstance(inner, exp.Not) and inner.find(exp.Select) is not None:
            logs = {name_of(one) for one in every(inner, exp.Table)} & set(filled) - {table}
            if logs:
                return Guard(log=min(logs))
    return None


def _is_correlated(condition: exp.Expr) -> bool:
    """Whether a condition looks at the row that is added."""
    own = {each.alias_or_name.lower() for each in every(condition, exp.Table)}
    outer = condition.unnest()
    tested = outer.this if isinstance(outer, exp.Not) else outer
    if isinstance(tested, exp.In):
        return True
    return any(each.table and each.table.lower() not in own for each in every(condition, exp.Column))


def _guards(select: exp.Select, table: str, updates: set[str]) -> Iterator[Guard]:
    where = select.args.get("where")
    condition = where.this if where is not None else None
    names = {table, *updates}
    for each in others_in(condition, (), select.args.get("joins") or []):
        if each.is_absent and each.reads() & names:
            yield Guard(_inside_out(each.source, condition, select, names))
    for part in flat(condition):
        highest = part.expression if isinstance(part, exp.GT) else part.this if isinstance(part, exp.LT) else None
        if highest is not None and _is_highest(highest, table):
            yield Guard((), is_watermark=True)


def _inside_out(
    source: tuple[exp.Expr, ...], condition: exp.Expr | None, select: exp.Select, names: set[str]
) -> tuple[Match, ...]:
    """Return the columns of the table that its rows are looked up by: the table stands inside of the condition."""
    tables = [each for tree in source for each in every(tree, exp.Table) if name_of(each) in names]
    aliases = {each.alias_or_name.lower() for each in tables} | names
    for join in select.args.get("joins") or []:
        if any(join.this is tree for tree in source):
            return matched_by_using(join.args.get("using") or []) or matched(join.args.get("on"), aliases)
    for each in flat(condition):
        inner = each.unnest()
        inner = inner.this.unnest() if isinstance(inner, exp.Not) else inner
        if isinstance(inner, exp.Exists) and any(inner.this.args.get("from_") is tree for tree in source):
            where = inner.this.args.get("where")
            return matched(where.this if where is not None else None, aliases)
        if isinstance(inner, exp.In) and inner.args.get("query") in source:
            found = inner.args["query"].find(exp.Select)
            # NOT IN is never true of NULL: such rows are left out, and not added again
            return tuple(Match(column.alias_or_name.lower(), inner.this, True) for column in found.expressions)
    return ()


def _is_highest(value: exp.Expr, table: str) -> bool:
    """Whether a value is the highest that the table holds."""
    return value.find(exp.Max) is not None and _reads(value, {table})


def _is(node: exp.Expr, table: str) -> bool:
    return name_of(node) == table


def _reads(tree: exp.Expr, names: set[str]) -> bool:
    return any(name_of(each) in names for each in every(tree, exp.Table))
