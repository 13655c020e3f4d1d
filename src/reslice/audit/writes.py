"""The writes of a script: each INSERT, MERGE, UPDATE and CREATE with what the statements around it do to its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.aggregate import grain_of, is_aggregate
from reslice.audit.guards import Guard, guards_in
from reslice.audit.history import History, Removal, history_of, is_never, is_within_old, is_without_rows
from reslice.audit.known import name_of
from reslice.audit.matching import Match, matched, matched_by_using
from reslice.audit.naming import run_column_of, table_columns
from reslice.audit.read_query import ReadQuery
from reslice.audit.script import Script
from reslice.audit.stages import looked_through, stages_of
from reslice.audit.steps import Step, names_of, target_of
from reslice.audit.write import Way, Write
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import merged_query, query_in, written_query

_KEEPS_WITHOUT_KEY = frozenset({"mysql", "sqlite", "postgres", "singlestore", "tidb"})
"""Dialects of databases in which rows that have no key to conflict with are added, and no error is raised."""
_IN_PLACE = (Way.APPEND, Way.FILL, Way.UPSERT)
"""The ways of an INSERT that rows which were removed before make a replacement."""


def writes_of(script: Script) -> tuple[Write, ...]:
    """Return the writes of a script, in order, without those of tables that only serve a later one.

    Such stages are tables of the session, and tables that are made anew and then read by a later write of the script:
    what they hold is looked through. A table that several writes fill anew is left out as well.
    """
    history = history_of(script)
    found = [write for index in range(len(history.steps)) for write in _written(script, history, index)]
    stages = stages_of(found, history, script)
    times = Counter(write.table for write in found if write.way is not Way.UPDATE)
    kept = [
        write
        for write in found
        if write.table not in stages and not (history.made.get(write.table) and times[write.table] > 1)
    ]
    for write in kept:
        looked_through(write, stages)
        _tell(write)
    for write, index in zip(kept, _indexes(kept, history), strict=True):
        _settle(write, history, index)
    return tuple(kept)


def _indexes(writes: list[Write], history: History) -> list[int]:
    places = {id(step.statement): index for index, step in enumerate(history.steps)}
    return [places[id(write.statement)] for write in writes]


def _written(script: Script, history: History, index: int) -> Iterator[Write]:
    step = history.steps[index]
    node = step.node
    target = target_of(node)
    if isinstance(node, exp.Insert) and target is not None:
        yield _insert(script, step, node, name_of(target))
    elif isinstance(node, exp.Merge) and target is not None:
        yield _merge(script, step, node, name_of(target))
    elif isinstance(node, exp.Update) and target is not None:
        write = _made(script, step, name_of(target), Way.UPDATE, _updated_from(node))
        write.matches = _updated_matches(node)
        write.keys = tuple(each.column for each in write.matches)
        yield write
    elif isinstance(node, exp.Create) and node.kind == "TABLE":
        query = written_query(node)
        if query is not None and not is_without_rows(node):
            way = Way.FILL if node.args.get("exists") else Way.REPLACE
            yield _made(script, step, name_of(node.this), way, query)
    elif isinstance(node, exp.Select) and target is not None:
        query = node.copy()
        query.set("into", None)
        yield _made(script, step, name_of(target), Way.REPLACE, query)


def _made(script: Script, step: Step, table: str, way: Way, query: exp.Query | None) -> Write:
    job = None if query is None else ReadQuery(query, script.dialect)
    return Write(script, step.statement, table, way, job, None, _head(script, step), position=step.position)


def _head(script: Script, step: Step) -> tuple[int, int]:
    """Return the span from a statement's first word to the name of the table it writes."""
    node = step.node
    table = node.args["into"].this if isinstance(node, exp.Select) and node.args.get("into") else node.this
    name = table.this if isinstance(table, exp.Schema) else table
    identifier = name.this if isinstance(name, exp.Table) else None
    has_place = isinstance(identifier, exp.Identifier) and "start" in identifier.meta
    if node is not script.statements[step.position].node and isinstance(identifier, exp.Identifier) and has_place:
        return script.span(identifier, step.statement)
    start, end = script.span(exp.Placeholder(), step.statement)
    if isinstance(identifier, exp.Identifier) and has_place:
        end = max(end, script.span(identifier, step.statement)[1])
    return start, end


def _insert(script: Script, step: Step, node: exp.Insert, table: str) -> Write:
    conflict = node.args.get("conflict")
    declared = script.table(table)
    way = Way.APPEND
    keys: tuple[str, ...] = ()
    if node.args.get("overwrite") or node.args.get("where") is not None:
        way = Way.OVERWRITE
    elif node.args.get("using"):
        way, keys = Way.KEYED, tuple(each.name.lower() for each in node.args["using"])
    elif isinstance(conflict, exp.OnConflict):
        names = names_of(node)
        way = Way.UPSERT if any(_is_change(each, names) for each in conflict.expressions) else Way.FILL
        keys = tuple(
            column.name.lower() for each in conflict.args.get("conflict_keys") or [] for column in _columns_in(each)
        )
    elif node.args.get("ignore") or node.args.get("alternative") == "ignore":
        way = Way.FILL
    elif node.args.get("alternative") == "replace":
        way = Way.UPSERT
    elif declared.replacing:
        way, keys = Way.UPSERT, declared.replacing
    write = _made(script, step, table, way, written_query(node))
    if isinstance(node.this, exp.Schema):
        write.columns = tuple(each.name.lower() for each in node.this.expressions)
    if way in (Way.UPSERT, Way.FILL) and not keys and not (conflict is not None and conflict.args.get("constraint")):
        keys = _enforced_key(write)
        if not keys and declared.types and script.dialect in _KEEPS_WITHOUT_KEY:
            write.way = Way.APPEND
    elif not keys and way in (Way.UPSERT, Way.FILL) and len(declared.unique) == 1:
        keys = declared.unique[0]
    write.keys = keys
    write.matches = tuple(Match(key) for key in keys)
    return write


def _is_change(assigned: exp.Expr, names: set[str]) -> bool:
    """Whether an assignment changes its column; `c = c` does not."""
    if not isinstance(assigned, exp.EQ) or not isinstance(assigned.expression, exp.Column):
        return True
    value = assigned.expression
    is_own = not value.table or value.table.lower() in names
    return not is_own or assigned.this.name.lower() != value.name.lower()


def _columns_in(part: exp.Expr) -> list[exp.Expr]:
    columns: list[exp.Expr] = list(part.find_all(exp.Column))
    return columns or list(part.find_all(exp.Identifier))


def _enforced_key(write: Write) -> tuple[str, ...]:
    """Return a key of the table that the rows of an INSERT can conflict with."""
    usable = [key for key in write.declared.unique if not write.columns or set(key) <= set(write.columns)]
    return usable[0] if usable else ()


def _merge(script: Script, step: Step, node: exp.Merge, table: str) -> Write:
    whens = node.args["whens"].expressions if node.args.get("whens") else []
    kinds = {
        (bool(when.args.get("matched")), bool(when.args.get("source")), _then(when.args.get("then"))) for when in whens
    }
    inserts = any(then == "insert" for _, _, then in kinds)
    updates = any(matched and then in ("update", "delete") for matched, _, then in kinds)
    query = merged_query(node)
    removes_matched = any(matched and then == "delete" for matched, _, then in kinds)
    removes_absent = any(not matched and by_source for matched, by_source, _ in kinds)
    if removes_absent or (removes_matched and inserts and query is not None and _reads(query, table)):
        way = Way.SYNC
    elif inserts:
        way = Way.UPSERT if updates else Way.FILL
    else:
        way = Way.UPDATE
    if way in (Way.UPSERT, Way.FILL) and is_never(node.args.get("on")):
        way = Way.APPEND
    write = _made(script, step, table, way, query)
    using = node.args.get("using_cond")
    write.matches = matched_by_using(using) if using else matched(node.args.get("on"), names_of(node))
    write.keys = tuple(each.column for each in write.matches)
    if way is Way.SYNC:
        write.delete = step.statement
    return write


def _then(action: exp.Expr | None) -> str:
    if isinstance(action, exp.Insert):
        return "insert"
    if isinstance(action, exp.Update):
        return "update"
    text = action.name.lower() if action is not None else ""
    return "insert" if text.startswith("insert") else "delete" if text.startswith("delete") else "update"


def _reads(tree: exp.Expr, table: str) -> bool:
    return any(name_of(each) == table for each in tree.find_all(exp.Table))


def _updated_from(node: exp.Update) -> exp.Query | None:
    """Return the query that brings the new values of an UPDATE: the first that is joined to the table."""
    start = node.args.get("from_")
    own = names_of(node)
    holders = [start.this if start is not None else None, node.this]
    sources = [
        holders[0],
        *(join.this for each in holders if each is not None for join in each.args.get("joins") or []),
    ]
    for source in sources:
        if isinstance(source, exp.Table) and not {source.alias_or_name.lower(), name_of(source)} & own:
            bare = source.copy()
            bare.set("joins", None)
            query: exp.Query = exp.select("*").from_(bare)
        else:
            inner = query_in(source) if isinstance(source, exp.Subquery) else None
            if inner is None:
                continue
            query = inner
        if node.args.get("with_"):
            query = query.copy()
            query.set("with_", node.args["with_"].copy())
        return query
    return None


def _updated_matches(node: exp.Update) -> tuple[Match, ...]:
    """Return how an UPDATE finds the row that brings the new values."""
    where = node.args.get("where")
    names = names_of(node)
    found = list(matched(where.this if where is not None else None, names))
    start = node.args.get("from_")
    for holder in (start.this if start is not None else None, node.this):
        for join in holder.args.get("joins") or [] if holder is not None else []:
            found += matched(join.args.get("on"), names)
    return tuple({each.column: each for each in found}.values())


def _tell(write: Write) -> None:
    """Tell what the query of a write aggregates, in the columns of the table."""
    query = write.query
    if query is None:
        write.is_aggregate = False if isinstance(write.node.args.get("expression"), exp.Values) else None
        return
    write.is_aggregate = is_aggregate(query)
    columns = table_columns(write)
    grain = grain_of(query)
    write.grain = None if grain is None else tuple(dict.fromkeys(columns.get(each, each) for each in grain))
    write.run_column = run_column_of(write, columns)


def _settle(write: Write, history: History, index: int) -> None:
    """Take in what other statements of the script do to the table of a write."""
    table = write.table
    write.resets = frozenset(column for at, column in history.resets.get(table, []) if at < index)
    if write.way in _IN_PLACE and history.is_fresh(table, index):
        write.way = Way.REPLACE
        return
    if write.way in _IN_PLACE:
        _take_guard(write, history, index)
        _take_removal(write, history, index)
    if write.way is Way.UPSERT:
        _take_absent(write, history, index)


def _take_removal(write: Write, history: History, index: int) -> None:
    """Take in what was removed of the table before rows are added."""
    ways = (Way.RANGED, Way.EMPTIED, Way.KEYED) if write.way is Way.APPEND else (Way.RANGED, Way.EMPTIED)
    removal = history.removal(write.table, index, ways=ways)
    if removal is None or (removal.is_old and not is_within_old(write.query, write.table)):
        return
    write.delete, write.way = removal.statement, removal.way
    if removal.way is Way.KEYED:
        if not removal.matches or not _comes_back(removal, write):
            write.way = Way.RANGED
        write.matches = removal.matches
        write.keys = tuple(each.column for each in removal.matches)
    write.is_atomic = _is_atomic(removal, history.steps[index])


def _is_atomic(removal: Removal, step: Step) -> bool | None:
    if removal.step.position == step.position:
        is_one = step.statement.node is not step.node or bool(step.within)
        return True if is_one else None
    number = step.statement.transaction
    return number is not None and removal.statement.transaction == number


def _comes_back(removal: Removal, write: Write) -> bool:
    """Whether the rows that a DELETE finds others by are those that are added, and not a list of what to renew."""
    if write.query is None:
        return True
    named = {table for each in removal.others for table in each.reads()}
    return not named or bool(named & _main_tables(write.query))


def _main_tables(query: JobQuery) -> set[str]:
    """Return the tables that a query takes its rows from, not those that only limit them."""
    found: set[str] = set()
    pending: list[exp.Expr] = [query.tree]
    while pending:
        tree = pending.pop()
        if isinstance(tree, exp.SetOperation):
            pending += [tree.this, tree.expression]
        elif isinstance(tree, exp.Subquery):
            pending.append(tree.this)
        elif isinstance(tree, exp.Select):
            start = tree.args.get("from_")
            first = start.this if start is not None else None
            if isinstance(first, exp.Table) and name_of(first) not in found:
                found.add(name_of(first))
                if name_of(first) in query.named:
                    pending.append(query.named[name_of(first)])
            elif isinstance(first, exp.Subquery):
                pending.append(first)
    return found


def _take_guard(write: Write, history: History, index: int) -> None:
    """Take in a condition by which an INSERT leaves out what is there."""
    if write.way is not Way.APPEND or write.query is None:
        return
    step = history.steps[index]
    guard: Guard | None = guards_in(write.query, write.table, step, history.filled)
    if guard is None:
        return
    updates = [history.steps[at].node for at in history.updated.get(write.table, []) if at < index]
    write.update = updates[-1] if updates else None
    write.way = Way.UPSERT if updates else Way.FILL
    write.matches = guard.matches
    write.keys = tuple(each.column for each in guard.matches)
    write.is_watermark, write.log = guard.is_watermark, guard.log


def _take_absent(write: Write, history: History, index: int) -> None:
    """Take in another statement that removes the rows which the source does not have."""
    for each in history.removals.get(write.table, []):
        if each.is_absent and each.index != index:
            write.way, write.delete = Way.SYNC, each.statement
            number = write.statement.transaction
            write.is_atomic = number is not None and each.statement.transaction == number
            return
