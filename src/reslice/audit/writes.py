"""The writes of a script: each INSERT, MERGE, UPDATE and CREATE with what the statements before it do to its table."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.aggregate import grain_of, is_aggregate
from reslice.audit.known import name_of
from reslice.audit.script import Script, Statement
from reslice.audit.write import Way, Write
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import flat, is_temporary, merged_query, query_in, written_query


def writes_of(script: Script) -> tuple[Write, ...]:
    """Return the writes of a script, in order, without those of tables that only serve a later one.

    Such stages are tables of the session, and tables that are made anew and then read by a later write of the script:
    what they hold is looked through.
    """
    found = [write for statement in script.statements for write in _written(script, statement)]
    stages = {write.table: write.query for write in found if _is_stage(write, found)}
    for write in found:
        _see_through(write, stages)
    return tuple(write for write in found if not _is_stage(write, found))


def _written(script: Script, statement: Statement) -> Iterator[Write]:
    node = statement.node
    if isinstance(node, exp.Insert):
        yield _insert(script, statement, node)
    elif isinstance(node, exp.Merge):
        yield _merge(script, statement, node)
    elif isinstance(node, exp.Update) and isinstance(node.this, exp.Table):
        yield _made(script, statement, name_of(node.this), Way.UPDATE, _updated_from(node))
    elif isinstance(node, exp.Create) and node.kind == "TABLE":
        query = written_query(node)
        if query is not None:
            yield _made(script, statement, name_of(node.this), Way.REPLACE, query)
    elif isinstance(node, exp.Select) and node.args.get("into"):
        query = node.copy()
        query.set("into", None)
        yield _made(script, statement, name_of(node.args["into"].this), Way.REPLACE, query)


def _made(
    script: Script, statement: Statement, table: str, way: Way, query: exp.Query | None, keys: tuple[str, ...] = ()
) -> Write:
    job = None if query is None else JobQuery(query, script.dialect)
    return Write(script, statement, table, way, job, None, _head(script, statement), keys=keys)


def _head(script: Script, statement: Statement) -> tuple[int, int]:
    """Return the span from a statement's first word to the name of the table it writes."""
    start, end = script.span(exp.Placeholder(), statement)
    node = statement.node
    table = node.args["into"].this if isinstance(node, exp.Select) and node.args.get("into") else node.this
    name = table.this if isinstance(table, exp.Schema) else table
    identifier = name.this if isinstance(name, exp.Table) else None
    if isinstance(identifier, exp.Identifier) and "start" in identifier.meta:
        end = max(end, script.span(identifier, statement)[1])
    return start, end


def _insert(script: Script, statement: Statement, node: exp.Insert) -> Write:
    conflict = node.args.get("conflict")
    keys: tuple[str, ...] = ()
    way = Way.APPEND
    if node.args.get("overwrite") or node.args.get("where") is not None:
        way = Way.OVERWRITE
    elif isinstance(conflict, exp.OnConflict):
        way = Way.UPSERT if conflict.expressions else Way.FILL
        keys = tuple(each.name.lower() or each.this.name.lower() for each in conflict.args.get("conflict_keys") or [])
    elif node.args.get("ignore") or node.args.get("alternative") == "ignore":
        way = Way.FILL
    elif node.args.get("alternative") == "replace":
        way = Way.UPSERT
    write = _made(script, statement, name_of(node.this), way, written_query(node), keys)
    if isinstance(node.this, exp.Schema):
        write.columns = tuple(each.name.lower() for each in node.this.expressions)
    if way is Way.APPEND:
        _after_delete(write)
    return write


def _after_delete(write: Write) -> None:
    """Take in what the statements before an INSERT remove of its table, since the last one that wrote it."""
    before = write.script.statements[: write.script.statements.index(write.statement)]
    for statement in reversed(before):
        node = statement.node
        if isinstance(node, exp.Delete) and deleted_table(node) == write.table:
            write.delete, write.way = statement, _way_of_delete(node, write.table)
            if write.way is Way.KEYED:
                write.keys = deleted_keys(node, write.table)
            break
        if isinstance(node, exp.TruncateTable) and write.table in map(name_of, node.expressions):
            write.delete, write.way = statement, Way.EMPTIED
            break
        if isinstance(node, exp.Insert | exp.Merge) and name_of(node.this) == write.table:
            break
    if write.delete is not None:
        number = write.statement.transaction
        write.is_atomic = number is not None and write.delete.transaction == number


def deleted_table(node: exp.Delete) -> str:
    """Return the table that a DELETE removes rows of, by the last part of its name in small letters."""
    target = node.this if isinstance(node.this, exp.Table) else None
    named = node.args.get("tables") or []
    if named and target is not None:  # DELETE alias FROM table AS alias JOIN …
        for each in target.find_all(exp.Table):
            if each.alias_or_name.lower() == named[0].name.lower():
                return each.name.lower()
    return name_of(named[0] if named else target)


def _way_of_delete(node: exp.Delete, table: str) -> Way:
    """Return whether a DELETE removes all rows, those of keys that come from other rows, or those of a range."""
    condition = node.args.get("where")
    if node.args.get("using") or (isinstance(node.this, exp.Table) and node.this.args.get("joins")):
        return Way.KEYED
    if condition is None or (isinstance(condition.this, exp.Boolean) and condition.this.this):
        return Way.EMPTIED
    return Way.KEYED if deleted_keys(node, table) else Way.RANGED


def deleted_keys(node: exp.Delete, table: str) -> tuple[str, ...]:
    """Return the columns of the table by which a DELETE finds rows that other rows name; empty when it does not."""
    condition = node.args.get("where")
    if condition is None:
        return ()
    keys: list[str] = []
    for each in flat(condition.this):
        if isinstance(each, exp.In) and each.args.get("query") is not None:
            keys += [column.name.lower() for column in each.this.find_all(exp.Column)]
        elif isinstance(each, exp.Exists):
            inner = each.find(exp.Where)
            keys += _matched(inner.this if inner is not None else None, {table})
        elif node.args.get("using") or (isinstance(node.this, exp.Table) and node.this.args.get("joins")):
            keys += _matched(each, {table, node.this.alias_or_name.lower()})
    return tuple(dict.fromkeys(keys))


def _matched(condition: exp.Expr | None, names: set[str]) -> list[str]:
    """Return the columns of a table, which goes by `names`, that a condition sets equal to a column of another."""
    found = []
    for each in flat(condition):
        if isinstance(each, exp.EQ | exp.NullSafeEQ):
            sides = [side for side in (each.this, each.expression) if isinstance(side, exp.Column)]
            own = [side for side in sides if side.table.lower() in names]
            found += [side.name.lower() for side in own[:1] if len(sides) == 2]
    return found


def _merge(script: Script, statement: Statement, node: exp.Merge) -> Write:
    whens = node.args["whens"].expressions if node.args.get("whens") else []
    kinds = {
        (bool(when.args.get("matched")), bool(when.args.get("source")), _then(when.args.get("then"))) for when in whens
    }
    inserts = any(then == "insert" for _, _, then in kinds)
    updates = any(matched and then in ("update", "delete") for matched, _, then in kinds)
    if any(not matched and by_source and then == "delete" for matched, by_source, then in kinds):
        way = Way.SYNC
    elif inserts:
        way = Way.UPSERT if updates else Way.FILL
    else:
        way = Way.UPDATE
    names = {node.this.alias_or_name.lower(), name_of(node.this)}
    keys = tuple(dict.fromkeys(_matched(node.args.get("on"), names)))
    return _made(script, statement, name_of(node.this), way, merged_query(node), keys)


def _then(action: exp.Expr | None) -> str:
    if isinstance(action, exp.Insert):
        return "insert"
    if isinstance(action, exp.Update):
        return "update"
    text = action.name.lower() if action is not None else ""
    return "insert" if text.startswith("insert") else "delete" if text.startswith("delete") else "update"


def _updated_from(node: exp.Update) -> exp.Query | None:
    start = node.args.get("from_")
    source = start.this if start is not None else None
    if isinstance(source, exp.Table):
        return exp.select("*").from_(source.copy())
    return query_in(source) if isinstance(source, exp.Subquery) else None


def _is_stage(write: Write, found: list[Write]) -> bool:
    """Whether a table only serves a later write: it is the session's own, or made anew and then read by another."""
    is_own = write.table.startswith("#") or (isinstance(write.node, exp.Create) and is_temporary(write.node))
    if write.way is Way.REPLACE and is_own:
        return True
    if write.way not in (Way.REPLACE, Way.EMPTIED):
        return False
    after = found[found.index(write) + 1 :]
    return any(each.table != write.table and write.table in _read_by(each) for each in after)


def _read_by(write: Write) -> set[str]:
    return {table.name.lower() for table in write.query.tree.find_all(exp.Table)} if write.query is not None else set()


def _see_through(write: Write, stages: dict[str, JobQuery | None]) -> None:
    """Let a query know the stages that it reads as if each were one of its WITH; then tell what it aggregates."""
    query = write.query
    if query is None:
        write.is_aggregate = False if isinstance(write.node.args.get("expression"), exp.Values) else None
        return
    pending = _read_by(write)
    while pending:
        name = pending.pop()
        stage = stages.get(name)
        if stage is not None and name != write.table and name not in query.named:
            query.named[name] = stage.tree
            query.named.update({key: value for key, value in stage.named.items() if key not in query.named})
            pending |= {table.name.lower() for table in stage.tree.find_all(exp.Table)}
    write.is_aggregate = is_aggregate(query)
    write.grain = grain_of(query)
