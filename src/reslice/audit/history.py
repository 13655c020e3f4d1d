"""What the statements of a script do to tables around one of them: rows removed, tables made anew, emptied, swapped."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from reslice.audit.known import name_of
from reslice.audit.matching import Match, Others, others_in
from reslice.audit.script import Script, Statement
from reslice.audit.steps import Step, names_of, steps, target_of
from reslice.audit.write import Way
from reslice.reading.bounds import boundings, read
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import flat, is_temporary, query_in

_CHILD = re.compile(r"(.+?)(?:_(?:p|y|part|partition)?_?)?(?:\d{4,}\w*|reslice_mark_\d+_\w*)")
"""The name of a table's partition that is a table itself: the table's, and a date."""
_PARTITION_GONE = re.compile(
    r"\s*table\s+(?:if\s+exists\s+)?([\w.\"`\[\]]+)\s+(?:drop|truncate|clear)\s+(?:sub)?partition", re.I
)
_MADE_TEMPORARY = re.compile(
    r"\s*(?:or\s+replace\s+)?(?:global\s+|local\s+)?(?:temp|temporary|volatile)\s+table\s+(?:if\s+not\s+exists\s+)?"
    r"([\w.\"`\[\]]+)",
    re.IGNORECASE,
)
_LOOKS_BACK = 50
"""How many of the statements that remove rows of a table are looked at, from the last one backwards."""
_WORDS = re.compile(r"[\w$#]+")
_TABLE_COMMANDS = frozenset({"rename", "exchange", "alter", "execute", "exec", "call", "drop"})


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """What a statement removes of a table's rows: all (EMPTIED), some (RANGED), or by those of other rows (KEYED)."""

    index: int
    step: Step
    way: Way
    others: tuple[Others, ...] = ()
    is_absent: bool = False
    """Whether it removes the rows that another query does not have."""
    is_old: bool = False
    """Whether it removes only what lies before a date."""

    @property
    def statement(self) -> Statement:
        """The statement."""
        return self.step.statement

    @property
    def matches(self) -> tuple[Match, ...]:
        """How rows are found by others."""
        return tuple(match for each in self.others for match in each.matches)


@dataclass(slots=True)
class History:
    """The steps of a script, and for each table, by the last part of its name in small letters, what is done to it."""

    steps: list[Step]
    removals: dict[str, list[Removal]] = field(default_factory=lambda: defaultdict(list))
    made: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Where it is made anew without rows: the steps' places."""
    session: set[str] = field(default_factory=set)
    """Tables of the session alone."""
    updated: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    filled: set[str] = field(default_factory=set)
    """Tables to which rows are added."""
    resets: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    """Where which column is set to a fixed value."""

    def is_fresh(self, table: str, index: int) -> bool:
        """Whether a table is made anew by the steps before one."""
        return bool(self.made[table]) and self.made[table][0] < index

    def removal(self, table: str, index: int, *, ways: tuple[Way, ...]) -> Removal | None:
        """Return what removed rows of a table before a step; None where nothing did for sure."""
        step = self.steps[index]
        keyed = None
        found = self.removals.get(table, [])
        end = bisect_left(found, index, key=lambda each: each.index)
        for each in reversed(found[max(0, end - _LOOKS_BACK) : end]):
            if each.is_absent or each.way not in ways or not _is_done(each.step, step, table):
                continue
            if each.way is not Way.KEYED:
                return each
            keyed = keyed or each
        return keyed


def _is_done(before: Step, step: Step, table: str) -> bool:
    """Whether an earlier step was done; one that is done only where the table has such rows counts as well."""
    if step.follows(before):
        return True
    outer = [branch for branch in before.branches if branch not in step.branches]
    return all(is_true and _reads(each.this, table) for each, is_true in outer)


def _reads(tree: exp.Expr, table: str) -> bool:
    return any(name_of(each) == table for each in tree.find_all(exp.Table))


def history_of(script: Script) -> History:
    """Return what the statements of a script do to tables."""
    found = History(steps(script))
    dropped: set[str] = set()
    renamed = _renamed(found.steps)
    for index, step in enumerate(found.steps):
        node = step.node
        if isinstance(node, exp.Create):
            _take_create(found, index, node, dropped, renamed)
        elif isinstance(node, exp.Drop):
            for name in map(name_of, node.find_all(exp.Table)):
                dropped.add(name)
                _take_child(found, index, step, name)
        elif isinstance(node, exp.Insert):
            found.filled.add(name_of(target_of(node)))
        elif isinstance(node, exp.Update):
            _take_update(found, index, node)
        elif isinstance(node, exp.Command):
            _take_command(found, index, step, node)
        else:
            for table, removal in _removals(index, step):
                found.removals[table].append(removal)
                if removal.way is Way.EMPTIED:
                    _take_child(found, index, step, table)
    return found


def _take_create(found: History, index: int, node: exp.Create, dropped: set[str], renamed: set[str]) -> None:
    name = name_of(node.this)
    if node.kind != "TABLE" or not name:
        return
    if is_temporary(node) or name.startswith("#"):
        found.session.add(name)
    is_there = bool(node.args.get("exists")) and name not in dropped
    has_rows = node.args.get("expression") is not None and not is_without_rows(node)
    if is_there or node.args.get("clone") is not None:
        return
    # a CREATE alone is taken for what was done once, and not for a part of each run
    if node.args.get("replace") or name in dropped or name in renamed or has_rows:
        found.made[name].append(index)


def is_without_rows(node: exp.Create) -> bool:
    """Whether CREATE TABLE … AS takes the columns of its query alone."""
    if any(each.args.get("no") for each in node.find_all(exp.WithDataProperty)):
        return True
    query = query_in(node.args.get("expression"))
    if not isinstance(query, exp.Select):
        return False
    limit, where = query.args.get("limit"), query.args.get("where")
    is_none = (
        isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal) and limit.expression.name == "0"
    )
    return is_none or (where is not None and any(is_never(each) for each in flat(where.this)))


def is_never(condition: object) -> bool:
    """Whether a condition holds for no row, as 1 = 0 does; where there is none, it is no condition."""
    if not isinstance(condition, exp.Expr):
        return False
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return not condition.this
    if isinstance(condition, exp.EQ):
        sides = condition.this, condition.expression
        return all(isinstance(side, exp.Literal) for side in sides) and sides[0] != sides[1]
    return False


def _take_child(found: History, index: int, step: Step, name: str) -> None:
    """Note that a partition which is a table itself lost its rows: some rows of the table it is part of."""
    child = _CHILD.fullmatch(name)
    if child is not None:
        found.removals[child[1]].append(Removal(index, step, Way.RANGED))


def _take_update(found: History, index: int, node: exp.Update) -> None:
    target = target_of(node)
    if target is None:
        return
    found.updated[name_of(target)].append(index)
    for each in node.expressions:
        if isinstance(each, exp.EQ) and each.expression.find(exp.Column) is None:
            found.resets[name_of(target)].append((index, each.this.name.lower()))


def _take_command(found: History, index: int, step: Step, node: exp.Command) -> None:
    text = str(node.args.get("expression") or "")
    gone = _PARTITION_GONE.match(text) if str(node.this).lower() == "alter" else None
    if gone is not None:
        found.removals[_last_part(gone[1])].append(Removal(index, step, Way.RANGED))
    made = _MADE_TEMPORARY.match(text) if str(node.this).lower() == "create" else None
    if made is not None:
        found.session.add(_last_part(made[1]))


def _last_part(name: str) -> str:
    return name.split(".")[-1].strip('"`[]').lower()


def _renamed(found: list[Step]) -> set[str]:
    """Return the names in statements that rename, swap, exchange or drop tables: one of them stands for a new table."""
    names: set[str] = set()
    for step in found:
        node = step.node
        if isinstance(node, exp.Command) and str(node.this).lower() in _TABLE_COMMANDS:
            names |= set(_WORDS.findall(str(node.args.get("expression") or "").lower()))
        elif isinstance(node, exp.Execute):
            for each in node.expressions:
                names |= set(_WORDS.findall(each.name.lower()))
        elif isinstance(node, exp.Drop):
            names |= {name_of(each) for each in node.find_all(exp.Table)}
        elif isinstance(node, exp.Alter):
            moves = (exp.AlterRename, exp.SwapTable, exp.ReplacePartition)
            if any(isinstance(each, moves) for each in node.args.get("actions") or []):
                names |= {name_of(each) for each in node.find_all(exp.Table)}
    return names


def _removals(index: int, step: Step) -> Iterator[tuple[str, Removal]]:
    """Yield what a statement removes rows of, and how."""
    node = step.node
    if isinstance(node, exp.Delete):
        target = target_of(node)
        if target is not None:
            yield name_of(target), _deleted(index, step, node, name_of(target))
    elif isinstance(node, exp.TruncateTable):
        way = Way.RANGED if node.args.get("partition") else Way.EMPTIED
        for each in node.expressions:
            yield name_of(each), Removal(index, step, way)
    elif isinstance(node, exp.Alter):
        for action in node.args.get("actions") or []:
            if isinstance(action, exp.DropPartition):
                yield name_of(node.this), Removal(index, step, Way.RANGED)
            elif isinstance(action, exp.Delete):  # ClickHouse removes rows by ALTER TABLE … DELETE WHERE
                delete = exp.Delete(this=node.this.copy(), where=action.args.get("where"))
                inner = Step(
                    Statement(delete, step.statement.base, step.statement.transaction), step.position, step.branches
                )
                yield name_of(node.this), _deleted(index, inner, delete, name_of(node.this))


def _deleted(index: int, step: Step, node: exp.Delete, table: str) -> Removal:
    where = node.args.get("where")
    condition = where.this if where is not None else None
    joined = [*(node.args.get("using") or []), *_joins(node)]
    if not joined and (condition is None or (isinstance(condition, exp.Boolean) and condition.this)):
        return Removal(index, step, Way.EMPTIED)
    others = tuple(others_in(condition, names_of(node), joined))
    if any(each.is_absent for each in others):
        return Removal(index, step, Way.KEYED, others, is_absent=True)
    if not others:
        return Removal(index, step, Way.RANGED, is_old=_is_old(condition, table))
    return Removal(index, step, Way.KEYED, others)


def _joins(node: exp.Delete) -> list[exp.Expr]:
    return list(node.this.args.get("joins") or []) if isinstance(node.this, exp.Table) else []


def _is_old(condition: exp.Expr | None, table: str) -> bool:
    """Whether a condition finds only what lies before a date, as one that keeps a table short does."""
    if condition is None:
        return False
    bounds = [found for each in flat(condition) for found in read(each, exp.Select(), table)]
    return bool(bounds) and all(each.kind == "high" for each in bounds)


def is_within_old(query: JobQuery | None, table: str) -> bool:
    """Whether a query computes what lies before a date, as far back as there is anything."""
    found = boundings(query, table) if query is not None else []
    return bool(found) and all(each.kind == "high" for each in found)
