"""The statements of a script that change tables, one by one: those within others too.

An IF holds statements, a WITH of PostgreSQL holds DELETE, UPDATE and INSERT, and one INSERT of Hive, Snowflake or
Oracle writes several tables. A name that stands for a table is resolved: an alias, and T-SQL's WITH that is written
through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from reslice.audit.known import name_of
from reslice.audit.script import Script, Statement

_DEPTH_LIMIT = 40
_CHANGES = (exp.Insert, exp.Delete, exp.Update, exp.Merge)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A statement that stands by itself or within another.

    `position` is the place, among the script's statements, of the one that it is or is part of. `branches` are those of
    the IFs around it, outermost first: the IF, and whether it is what is done when the condition holds.
    """

    statement: Statement
    position: int
    branches: tuple[tuple[exp.Expr, bool], ...] = ()
    within: dict[str, exp.Expr] = field(default_factory=dict)
    """What changes tables in the WITH of the same statement, by name in small letters."""

    @property
    def node(self) -> exp.Expr:
        """The statement's tree."""
        return self.statement.node

    def follows(self, before: Step) -> bool:
        """Whether an earlier step is always done when this one is."""
        return all(branch in self.branches for branch in before.branches)


def steps(script: Script) -> list[Step]:
    """Return the statements of a script in the order in which they are run."""
    found: list[Step] = []
    before: tuple[tuple[exp.Expr, bool], ...] = ()
    for position, statement in enumerate(script.statements):
        own = before if isinstance(statement.node, exp.Insert) else ()
        found += _within(statement.node, statement, position, own, 0)
        before = ((statement.node, True),) if _is_begun(statement.node) else ()
    return found


def _is_begun(node: exp.Expr) -> bool:
    """Whether an IF was cut off before what it holds, as one of T-SQL is whose statements end without a semicolon."""
    block = node.args.get("true") if isinstance(node, exp.IfBlock) else None
    return isinstance(block, exp.Block) and not any(isinstance(each, exp.Expr) for each in block.expressions)


def _within(
    node: exp.Expr, statement: Statement, position: int, branches: tuple[tuple[exp.Expr, bool], ...], depth: int
) -> Iterator[Step]:
    if depth > _DEPTH_LIMIT:
        return
    if isinstance(node, exp.Alias | exp.Paren) and isinstance(node.this, exp.IfBlock | exp.WhileBlock):
        node = node.this  # END after a block is read as its alias
    if isinstance(node, exp.IfBlock):
        for is_true, branch in ((True, node.args.get("true")), (False, node.args.get("false"))):
            if isinstance(branch, exp.Expr):
                yield from _within(branch, statement, position, (*branches, (node, is_true)), depth + 1)
    elif isinstance(node, exp.WhileBlock):
        body = node.args.get("body")
        if isinstance(body, exp.Expr):
            yield from _within(body, statement, position, branches, depth + 1)
    elif isinstance(node, exp.Block):
        for each in node.expressions:
            if isinstance(each, exp.Expr):
                yield from _within(each, statement, position, branches, depth + 1)
    elif isinstance(node, exp.Create) and isinstance(node.args.get("expression"), exp.Block):
        yield from _within(node.args["expression"], statement, position, branches, depth + 1)
    elif isinstance(node, exp.MultitableInserts):
        for insert in _inserts(node):
            yield Step(Statement(insert, statement.base, statement.transaction), position, branches)
    else:
        within = _changes_in_with(node)
        for each in within.values():
            yield Step(Statement(each, statement.base, statement.transaction), position, branches)
        own = statement if node is statement.node else Statement(node, statement.base, statement.transaction)
        yield Step(own, position, branches, within)


def _changes_in_with(node: exp.Expr) -> dict[str, exp.Expr]:
    start = node.args.get("with_")
    parts = start.expressions if isinstance(start, exp.With) else []
    return {each.alias.lower(): each.this for each in parts if isinstance(each.this, _CHANGES)}


def _inserts(node: exp.MultitableInserts) -> Iterator[exp.Insert]:
    """Yield the inserts that one statement does, each with the query that it reads."""
    source = node.args.get("source")
    for each in node.expressions:
        insert = each.this.copy() if isinstance(each, exp.ConditionalInsert) else each.copy()
        query = insert.args.get("expression")
        if isinstance(query, exp.Select) and query.args.get("from_") is None and isinstance(source, exp.Expr):
            query.set("from_", exp.From(this=source.copy()))
        elif isinstance(source, exp.Query):
            values = query.expressions[0].expressions if isinstance(query, exp.Values) and query.expressions else []
            select = exp.select(*([value.copy() for value in values] or [exp.Star()]))
            insert.set("expression", select.from_(exp.Subquery(this=source.copy(), alias=exp.TableAlias())))
        yield insert


def target_of(node: exp.Expr) -> exp.Table | None:
    """Return the table that a statement changes, with the alias it goes by in the statement."""
    target = node.args.get("this")
    if isinstance(node, exp.Select):
        into = node.args.get("into")
        target = into.this if isinstance(into, exp.Into) else None
    elif isinstance(node, exp.Delete) and node.args.get("tables"):
        target = node.args["tables"][0]
    target = target.this if isinstance(target, exp.Schema) else target
    return _resolved(target, node) if isinstance(target, exp.Table) else None


def _resolved(target: exp.Table, node: exp.Expr) -> exp.Table:
    name = target.name.lower()
    if target.args.get("db") or isinstance(node, exp.Insert):
        return target
    for each in _read_beside(node):
        if each is not target and each.alias.lower() == name:
            return each
    start = node.args.get("with_")
    for part in start.expressions if isinstance(start, exp.With) else []:
        source = part.this.args.get("from_") if isinstance(part.this, exp.Select) else None
        if part.alias.lower() == name and source is not None and isinstance(source.this, exp.Table):
            return source.this
    return target


def _read_beside(node: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that an UPDATE or a DELETE joins, among which the one that is changed goes by an alias."""
    own = node.args.get("this")
    start = node.args.get("from_")
    for holder in (own, start.this if isinstance(start, exp.From) else None):
        if isinstance(holder, exp.Table):
            yield holder
            yield from (join.this for join in holder.args.get("joins") or [] if isinstance(join.this, exp.Table))


def names_of(node: exp.Expr) -> set[str]:
    """Return what the changed table goes by in the conditions of a statement, in small letters."""
    named = node.args.get("this")
    named = named.this if isinstance(named, exp.Schema) else named
    if isinstance(node, exp.Delete) and node.args.get("tables"):
        named = node.args["tables"][0]
    found = {named.alias_or_name.lower()} if isinstance(named, exp.Table) else set()
    target = target_of(node)
    return found | ({name_of(target), target.alias_or_name.lower()} if target is not None else set())
