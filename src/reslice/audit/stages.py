"""Tables that only serve a later write of the same script: what they hold is looked through."""

from __future__ import annotations

from collections import defaultdict

from sqlglot import exp

from reslice.audit.history import History
from reslice.audit.known import name_of
from reslice.audit.read_query import ReadQuery
from reslice.audit.script import Script
from reslice.audit.write import Way, Write
from reslice.reading.nodes import every
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import is_temporary, written_query

_PARTS_MAX = 20
Stages = dict[str, JobQuery | None]
"""What each stage holds, by its name in small letters; None where that cannot be read."""


def stages_of(found: list[Write], history: History, script: Script) -> Stages:
    """Return the stages of a script: tables and views of the session, and tables made anew that a later write reads."""
    last_read: dict[str, int] = {}
    for index, write in enumerate(found):
        for name in read_by(write) - {write.table}:
            last_read[name] = index
    queries: dict[str, list[JobQuery]] = defaultdict(list)
    stages: Stages = {}
    for index, write in enumerate(found):
        if _is_of_session(write, history) or _is_made_for_later(write, history, last_read.get(write.table, -1) > index):
            stages[write.table] = None
    for write in found:
        if write.table in stages and write.query is not None and write.way is not Way.UPDATE:
            queries[write.table].append(_by_its_columns(write))
    for name, several in queries.items():
        stages[name] = _together(several)
    for statement in script.statements:
        view = _view(statement.node, script)
        if view is not None:
            stages.setdefault(*view)
    return stages


def read_by(write: Write) -> set[str]:
    """Return the tables that the query of a write reads, by the last part of their names in small letters."""
    return (
        {name_of(table) for table in write.query.parts(write.query.tree, exp.Table)}
        if write.query is not None
        else set()
    )


def _is_of_session(write: Write, history: History) -> bool:
    if write.table in history.session or write.table.startswith("#"):
        return True
    if write.script.marked.shown(write.table).startswith("@"):
        return True
    node = write.node
    into = node.args.get("into") if isinstance(node, exp.Select) else None
    return (isinstance(node, exp.Create) and is_temporary(node)) or (
        into is not None and bool(into.args.get("temporary"))
    )


def _is_made_for_later(write: Write, history: History, is_read_later: bool) -> bool:
    is_new = write.way is Way.REPLACE or bool(history.made.get(write.table))
    is_emptied = any(each.way is Way.EMPTIED for each in history.removals.get(write.table, []))
    return is_read_later and (is_new or is_emptied)


def _view(node: exp.Expr, script: Script) -> tuple[str, JobQuery | None] | None:
    """Return a view that a statement makes, or a query that Spark keeps under a name."""
    is_view = isinstance(node, exp.Create) and node.kind == "VIEW"
    if not is_view and not isinstance(node, exp.Cache):
        return None
    query = written_query(node)
    return name_of(node.this), ReadQuery(query, script.dialect) if query is not None else None


def _by_its_columns(write: Write) -> JobQuery:
    """Return what a stage holds by the names that its columns have there."""
    query = write.query
    assert query is not None, "only writes with a query hold something"
    columns = write.columns or (tuple(write.declared.types) if isinstance(write.node, exp.Insert) else ())
    outputs = query.outputs()
    names = [each.name.lower() for each in outputs]
    if len(columns) != len(names) or list(columns) == names or any(each.node is None for each in outputs):
        return query
    tree = query.tree.copy()
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    inner = [f"reslice_column_{place}" for place in range(len(names))]
    first.set(
        "expressions", [exp.alias_(each.unalias(), name) for each, name in zip(first.expressions, inner, strict=True)]
    )
    outer = exp.select(*(exp.alias_(exp.column(name), column) for name, column in zip(inner, columns, strict=True)))
    return ReadQuery(
        outer.from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("held")))), query.dialect
    )


def _together(several: list[JobQuery]) -> JobQuery:
    """Return what a stage holds that several writes fill; of very many the first are taken for all."""
    several = several[:_PARTS_MAX]
    tree: exp.Query = several[0].tree
    for place, each in enumerate(several[1:]):
        first = tree if place else tree.copy()
        tree = exp.Union(this=first, expression=each.tree.copy(), distinct=False)
    query = ReadQuery(tree, several[0].dialect)
    for each in several:
        query.named = each.named | query.named
    return query


def looked_through(write: Write, stages: Stages) -> None:
    """Let a query know the stages that it reads as if each were one of its WITH."""
    query = write.query
    if query is None:
        return
    pending = read_by(write)
    while pending:
        name = pending.pop()
        stage = stages.get(name)
        if stage is not None and name != write.table and name not in query.named:
            query.know({name: stage.tree})
            query.know(stage.named)
            pending |= {name_of(table) for table in every(stage.tree, exp.Table)}
