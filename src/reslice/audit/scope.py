"""How much of its table a write computes: all of it, or a range that somebody asks for."""

from __future__ import annotations

import re

from sqlglot import exp

from reslice.audit.predicates import Condition, is_dated, leaf_of, query_conditions
from reslice.audit.script import Script
from reslice.audit.values import CLOCK, Value, value_of
from reslice.audit.write import Write
from reslice.reading.marks import MARK, THIS

_STAGE_NAME = re.compile(
    r"(?:^|_)(?:stg|stage|staging|staged|tmp|temp|work|wrk|load|landing|incoming|delta|batch|buffer|scratch|swap)(?:_|$|\d)"
)


def is_stage_name(table: str) -> bool:
    """Whether a table is called as those are that only hold rows on their way to another."""
    return _STAGE_NAME.search(table) is not None or table.startswith("#")


def asked(write: Write) -> tuple[Condition, ...]:
    """Return the conditions that keep the query to a range that is asked for from outside.

    Those are bounds by placeholders, and written dates on both sides. A written beginning alone, an end alone and a
    window that moves with the clock leave a whole table.
    """
    if write.query is None:
        return ()
    marks = write.script.outside
    found = [each for each in query_conditions(write.query, marks) if is_dated(each, write.script.known)]
    by_name = [each for each in found if each.kind != "high" and any(map(_is_placeholder, each.values))]
    if by_name:
        return tuple(each for each in found if any(map(_is_placeholder, each.values)))
    written = [each for each in found if all(value.is_written for value in each.values)]
    kinds = {each.kind for each in written}
    if "equal" in kinds or "in" in kinds or {"low", "high"} <= kinds:
        return tuple(written)
    return tuple(each for each in found if each.kind == "equal" and each.values[0].base == CLOCK)


def _is_placeholder(value: Value) -> bool:
    return value.base not in ("", CLOCK)


def holds_range(write: Write, found: tuple[Condition, ...]) -> bool:
    """Whether the rows say which part of the range they are of, so that the table can hold several ranges.

    A table of totals over the range that was asked for last has no other range to lose.
    """
    query = write.query
    if query is None:
        return False
    limited = {leaf_of(query, each.subject, each.select).name for each in found}
    words = {value.base for each in found for value in each.values if _is_placeholder(value)}
    if any(each.is_star and not isinstance(each, exp.AggFunc) for each in query.select().expressions):
        return True
    for output in query.outputs():
        origin, where = output.origin, output.select
        if origin is None:
            return True
        constant = value_of(origin, write.script.outside)
        if constant is not None and constant.base in words:
            return True
        if where is not None and limited & query.names_behind(origin, where) and origin.find(exp.AggFunc) is None:
            return True
    return False


def is_by_placeholder(found: tuple[Condition, ...]) -> bool:
    """Whether one of the conditions is by a placeholder, so that each run has a range of its own."""
    return any(_is_placeholder(value) for each in found for value in each.values)


def shown_range(write: Write, found: tuple[Condition, ...]) -> str:
    """Return the conditions of a range in one line, as they were written."""
    texts = [write.shown(each.node) for each in found]
    return " and ".join(dict.fromkeys(texts))


def reads_itself(write: Write) -> bool:
    """Whether the query reads the table that it fills."""
    if write.query is None:
        return False
    names = {table.name.lower() for table in write.query.parts(write.query.tree, exp.Table)}
    return bool(names & own_names(write))


def own_names(write: Write) -> set[str]:
    """Return the names by which a query reads the table that it fills; one that a WITH has is the WITH's."""
    named = write.query.named if write.query is not None else {}
    return {each for each in (write.table, THIS) if each not in named}


def has_marked_name(write: Write) -> bool:
    """Whether the table's name is made with a placeholder, so that each range has a table of its own."""
    into = write.node.args.get("into")
    target = into.this if isinstance(into, exp.Into) else write.node.args.get("this")
    target = target.this if isinstance(target, exp.Schema) else target
    return isinstance(target, exp.Table) and any(MARK.search(part.name) for part in target.parts)


def is_in_query(write: Write, node: exp.Expr) -> bool:
    """Whether a part stands in the write's own statement, and not in that of a stage that it reads."""
    return write.query is not None and node.root() is write.query.tree.root()


def place_of(write: Write, node: exp.Expr) -> tuple[int, int]:
    """Return where a part of a write's query stands, also when it is that of a stage; else where the write stands."""
    if is_in_query(write, node):
        return write.spot(node)
    root = node.root()
    for statement in write.script.statements:
        if statement.node is root:
            return write.script.span(node, statement)
    return write.span


def setting(script: Script, name: str) -> str | None:
    """Return the last value, in small letters, that a SET of the script gives a setting; None where none does."""
    found = None
    for each in script.statements:
        if isinstance(each.node, exp.Set | exp.Command):
            text = " ".join(each.node.sql().lower().replace("=", " ").replace("`", "").split())
            match = re.match(rf"set (?:session |local )?{re.escape(name.lower())} '?\"?(\w+)", text)
            found = match[1] if match is not None else found
    return found
