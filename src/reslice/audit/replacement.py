"""What a write removes and what it writes, column by column: the ranges of both, and where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from reslice.audit.comparison import Difference, Effect, differences
from reslice.audit.naming import table_columns
from reslice.audit.predicates import (
    Condition,
    Leaf,
    Range,
    after,
    conditions,
    is_dated,
    is_time,
    leaf_of,
    query_conditions,
    range_of,
    subject_of,
)
from reslice.audit.reached import reached
from reslice.audit.scope import is_stage_name, shown_range
from reslice.audit.values import Value, value_of
from reslice.audit.write import Way, Write
from reslice.contract import Unit
from reslice.reading.marks import MARK
from reslice.reading.outputs import JobQuery, Output
from reslice.reading.statements import flat

_BESIDE = re.compile(
    r"^(?:ds|dt|_?partition\w*|p_\w+|\w*(?:date|day)_?(?:key|id|sk|int|num)|yyyymmdd|ymd)$", re.IGNORECASE
)
"""Names of columns that say the day in another form, or hold the rows of a day together."""


_COLUMNS_MAX = 8
"""How many columns of a DELETE are compared: more are no range that a person wrote."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is removed and what is written, as they are written in the file, and how they differ.

    `span` is where to show it; None: the write. `is_checked` says that the database refuses rows outside of what is
    removed. `doubt` is why it cannot be decided, where that is not for the names of placeholders.
    """

    removed: str
    written: str
    differences: tuple[Difference, ...]
    span: tuple[int, int] | None = None
    is_checked: bool = False
    doubt: str = ""


def compared(write: Write) -> Iterator[Compared]:
    """Yield what differs between the rows that a write removes and those that it brings."""
    query = write.query
    if query is None:
        return
    if write.way is Way.RANGED and write.delete is not None:
        where = write.delete.node.args.get("where")
        if isinstance(where, exp.Where):
            yield from _by_condition(write, query, where.this)
    elif write.way is Way.OVERWRITE and isinstance(write.node, exp.Insert):
        where = write.node.args.get("where")
        if isinstance(where, exp.Expr):
            for each in _by_condition(write, query, where.this if isinstance(where, exp.Where) else where):
                yield replace(each, is_checked=True, span=None)
        else:
            yield from _by_partition(write, query, write.node)


class _Written:
    """What a query writes: its columns, the SELECTs it is made of, and what limits the rows of each, found once."""

    def __init__(self, write: Write, query: JobQuery) -> None:
        self.write = write
        self.query = query
        self.known = write.script.known
        self.columns = table_columns(write)
        self.first = query.outputs()
        self.arms = _arms(query.tree)
        self.outputs = [query.outputs_of(arm) for arm in self.arms]
        self._limits: dict[int, list[tuple[Condition, Leaf]]] = {}
        self._leaves: dict[int, Leaf | None] = {}
        self._equal: dict[str, set[str]] | None = None

    def limits(self, arm: int) -> list[tuple[Condition, Leaf]]:
        """Return the conditions by dates that limit the rows of a SELECT, each with the column it comes down to."""
        if arm not in self._limits:
            found = query_conditions(self.query, self.write.script.outside, self.arms[arm] if self.is_several else None)
            dated = [each for each in found if is_dated(each, self.known)]
            self._limits[arm] = [(each, leaf_of(self.query, each.subject, each.select)) for each in dated]
        return self._limits[arm]

    @property
    def is_several(self) -> bool:
        """Whether the query puts the rows of several SELECTs together."""
        return len(self.arms) > 1

    def leaf(self, output: Output) -> Leaf | None:
        """Return the column that an output comes down to."""
        if id(output) not in self._leaves:
            subject = subject_of(output.origin) if output.origin is not None else None
            has_place = subject is not None and output.select is not None
            self._leaves[id(output)] = leaf_of(self.query, subject, output.select) if has_place and subject else None
        return self._leaves[id(output)]

    def of(self, name: str) -> list[Output]:
        """Return what each SELECT writes to a column of the table."""
        names = [self.columns.get(each.name.lower(), each.name.lower()) for each in self.first]
        place = names.index(name) if name in names else self._place_by_limits()
        return [outputs[place] for outputs in self.outputs if 0 <= place < len(outputs)]

    def _place_by_limits(self) -> int:
        """Return the place of the only column that the query limits by dates; -1 where there is none or several."""
        limited = {leaf.name for _, leaf in self.limits(0)}
        leaves = [self.leaf(each) for each in self.outputs[0]] if self.outputs else []
        places = [at for at, leaf in enumerate(leaves) if leaf is not None and leaf.name in limited]
        return places[0] if len(places) == 1 else -1

    def equal(self, name: str) -> set[str]:
        """Return the names of the columns that the query sets equal to one, in joins and conditions, and its own."""
        if self._equal is None:
            self._equal = _equal_names(self.query)
        return self._equal.get(name, {name})


def _by_condition(write: Write, query: JobQuery, where: exp.Expr) -> Iterator[Compared]:
    dated = [each for each in conditions(where, write.script.outside) if is_dated(each, write.script.known)]
    names = list(dict.fromkeys(each.subject.column.name.lower() for each in dated))[:_COLUMNS_MAX]
    sides = _Written(write, query)
    leaves = [sides.leaf(output) for name in names for output in sides.of(name)]
    told = {leaf.part for leaf in leaves if leaf is not None} - {""}
    for name in names:
        own = [each for each in dated if each.subject.column.name.lower() == name]
        found = [_compared(sides, name, own, output, arm, told) for arm, output in enumerate(sides.of(name))]
        for side in _of_all_arms(found):
            if side.differences:
                yield side
    yield from _by_fixed(write, query, where)


def _of_all_arms(found: list[Compared | None]) -> list[Compared]:
    """Return what is to be said of SELECTs that are put together: rows are lost only where none brings them back."""
    sides = [each for each in found if each is not None]
    if len(found) < 2:
        return sides
    lost = [{each.end for each in side.differences if each.effect is Effect.LOSES} for side in sides]
    by_all = set.intersection(*lost) if len(sides) == len(found) else set()
    return [
        replace(
            side,
            differences=tuple(
                each for each in side.differences if each.effect is not Effect.LOSES or each.end in by_all
            ),
        )
        for side in sides
    ]


def _arms(tree: exp.Expr) -> list[exp.Expr]:
    found, pending = [], [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.SetOperation):
            pending += [each.expression, each.this]
        elif isinstance(each, exp.Subquery):
            pending.append(each.this)
        else:
            found.append(each)
    return found


def _compared(
    sides: _Written, name: str, own: list[Condition], output: Output, arm: int, told: set[str]
) -> Compared | None:
    """Compare one column; `told` are the parts of it, such as its hour, that are columns by which rows are removed."""
    write = sides.write
    if output.origin is None:
        return None
    text, span = _text_of(write, own), _span_of(write, own)
    constant = value_of(output.origin, write.script.outside)
    if constant is not None:
        unit = own[0].subject.unit or Unit.DAY
        found = differences(range_of(own, unit), _of_constant(constant, unit))
        return Compared(text, f"{name} = {write.shown(output.origin)}", tuple(found), span)
    leaf = sides.leaf(output)
    if leaf is None or leaf.part:
        return None
    is_raw = leaf.unit is None and is_time(name, write.table, sides.known) is True
    removed = range_of(own, None if is_raw else leaf.unit or Unit.DAY)
    limits = sides.limits(arm)
    same = [
        (each, at) for each, at in limits if at.name in sides.equal(leaf.name) and not (at.part and at.part in told)
    ]
    if not same:
        return _unlimited(write, sides.query, own, [each for each, _ in limits], name)
    shown = shown_range(write, tuple(each for each, _ in same))
    if leaf.unit is not None and {at.zone for _, at in same} != {leaf.zone}:
        doubt = f"{name} is the day in {leaf.zone or 'another zone'}, and the bounds are not said in it"
        return Compared(text, shown, (Difference("all", Effect.UNSURE),), span, doubt=doubt)
    found = differences(removed, _range_written(same, write))
    return Compared(text, shown, tuple(_of_longer_units(found, leaf.unit, same)), span)


def _text_of(write: Write, own: list[Condition]) -> str:
    return " and ".join(dict.fromkeys(write.shown(each.node) for each in own))


def _span_of(write: Write, own: list[Condition]) -> tuple[int, int] | None:
    return write.script.span(own[0].node, write.delete) if write.delete is not None else None


def _of_constant(value: Value, unit: Unit) -> Range:
    return Range(value, after(value, unit), is_nameless=value.is_nameless)


def _range_written(same: list[tuple[Condition, Leaf]], write: Write) -> Range:
    """Return the range that conditions of a query leave of the column that they all come down to."""
    cut = []
    for each, leaf in same:
        unit = leaf.unit
        if unit is None and is_time(leaf.name, leaf.table, write.script.known) is False:
            unit = Unit.DAY
        cut.append(replace(each, subject=replace(each.subject, unit=unit, part=leaf.part)))
    return range_of(cut, None)


def _of_longer_units(
    found: list[Difference], unit: Unit | None, same: list[tuple[Condition, Leaf]]
) -> list[Difference]:
    """Take back what is sure of a table by the month whose source is limited by days: it depends on the days."""
    if unit in (None, Unit.DAY, Unit.HOUR) or all(leaf.unit == unit for _, leaf in same):
        return found
    if not any(each.kind == "high" and not each.is_open for each, _ in same):
        return found
    return [] if all(each.effect is Effect.LOSES and each.end == "high" for each in found) else found


def _equal_names(query: JobQuery) -> dict[str, set[str]]:
    """Return for each column, by name, those that a query sets equal to it in its joins and conditions, and itself."""
    groups: dict[str, set[str]] = {}
    for select in reached(query):
        where = select.args.get("where")
        holders = [where.this] if where is not None else []
        holders += [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
        for each in (part for holder in holders for part in flat(holder)):
            if not isinstance(each, exp.EQ):
                continue
            left, right = subject_of(each.this), subject_of(each.expression)
            if left is None or right is None:
                continue
            names = [leaf_of(query, side, select).name for side in (left, right)]
            first, second = (groups.get(name, {name}) for name in names)
            if first is not second:
                first |= second
                groups.update(dict.fromkeys(first, first))
    return groups


def _unlimited(
    write: Write, query: JobQuery, own: list[Condition], limits: list[Condition], name: str
) -> Compared | None:
    """Return what is to be said of a query that does not limit the column by which rows are removed."""
    removed = _text_of(write, own)
    span = _span_of(write, own)
    if limits:
        shown = shown_range(write, tuple(limits))
        other = limits[0].subject.column.name
        beside = [each for each in limits if _BESIDE.search(each.subject.column.name)]
        if beside and not differences(
            range_of(own, Unit.DAY),
            _range_written([(each, leaf_of(query, each.subject, each.select)) for each in beside], write),
        ):
            return None  # the number of the day, or the partition that holds it, in the place of its date
        doubt = f"rows of a {other} in the range may have another {name}, and those are not removed"
        return Compared(removed, shown, (Difference("all", Effect.UNSURE),), span, doubt=doubt)
    selects = reached(query)
    tables = {table for select in selects for table in query.tables(select).values()}
    is_whole = len(tables) == 1 and not any(select.args.get("joins") or _has_marks(select) for select in selects)
    if not is_whole or any(map(is_stage_name, tables)) or any(MARK.search(table) for table in tables):
        return None
    if any(select.args.get("limit") for select in selects):
        return None
    if write.is_aggregate:
        return Compared(removed, "", (Difference("all", Effect.DOUBLES),), span)
    doubt = f"this is right only while {next(iter(tables))} holds no other rows"
    return Compared(removed, "", (Difference("all", Effect.UNSURE),), span, doubt=doubt)


def _has_marks(select: exp.Select) -> bool:
    """Whether a SELECT depends on something from outside in any way."""
    return any(MARK.search(each.name) for each in select.find_all(exp.Identifier, exp.Literal))


def _by_fixed(write: Write, query: JobQuery, where: exp.Expr) -> Iterator[Compared]:
    """Yield a column that the DELETE keeps to one value and the query to none."""
    known, marks = write.script.known, write.script.outside
    columns = table_columns(write)
    for each in flat(where):
        condition = each.unnest()
        if not isinstance(condition, exp.EQ) or not isinstance(condition.this, exp.Column):
            continue
        named = list(condition.expression.find_all(exp.Column))
        from_rows = any(not MARK.fullmatch(column.name) for column in named)
        if from_rows or any(is_dated(found, known) for found in conditions(condition, marks)):
            continue
        name = condition.this.name.lower()
        output = next((o for o in query.outputs() if columns.get(o.name.lower(), o.name.lower()) == name), None)
        subject = subject_of(output.origin) if output is not None and output.origin is not None else None
        if output is None or subject is None or isinstance(query.tree, exp.SetOperation):
            continue
        leaf = leaf_of(query, subject, output.select)
        names = _equal_names(query).get(leaf.name, {leaf.name})
        if not _mentions(query, names) and not _is_of_stages(query):
            span = write.script.span(each, write.delete) if write.delete is not None else None
            text = write.shown(each)
            yield Compared(f"rows where {text}", f"every {name}", (Difference("all", Effect.DOUBLES),), span)


def _mentions(query: JobQuery, names: set[str]) -> bool:
    """Whether a condition of a query, or a join, is about a column by one of these names."""
    for select in reached(query):
        holders = [select.args.get("where"), select.args.get("having"), select.args.get("qualify")]
        holders += list(select.args.get("joins") or [])
        for holder in holders:
            if holder is not None and any(column.name.lower() in names for column in holder.find_all(exp.Column)):
                return True
    return False


def _is_of_stages(query: JobQuery) -> bool:
    return any(is_stage_name(table) for select in reached(query) for table in query.tables(select).values())


def _by_partition(write: Write, query: JobQuery, node: exp.Insert) -> Iterator[Compared]:
    """Yield a partition that is replaced by rows of other days than its own."""
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = target.args.get("partition") if isinstance(target, exp.Table) else None
    for each in partition.expressions if isinstance(partition, exp.Partition) else []:
        own = list(conditions(each, write.script.outside))
        if not own or not is_dated(own[0], write.script.known):
            continue
        name = own[0].subject.column.name.lower()
        limits = query_conditions(query, write.script.outside)
        same = [limit for limit in limits if leaf_of(query, limit.subject, limit.select).name == name]
        if not same:
            continue
        removed, written = range_of(own, Unit.DAY), range_of(same, Unit.DAY)
        found = differences(removed, written)
        if found and _is_outside(removed, written):
            text = f"partition {write.shown(each)}"
            yield Compared(text, shown_range(write, tuple(same)), (Difference("all", Effect.LOSES),), write.spot(each))
            return


def _is_outside(removed: Range, written: Range) -> bool:
    """Whether the rows of the removed range are surely not among those that are written."""
    if written.values is not None and removed.low is not None:
        return {key[0] for key in written.values} == {removed.low.base} and removed.low.key() not in written.values
    if removed.low is None or removed.high is None or removed.is_nameless or written.is_nameless:
        return False
    before = written.high.minus(removed.low) if written.high is not None else None
    after = written.low.minus(removed.high) if written.low is not None else None
    return (before is not None and before <= 0) or (after is not None and after >= 0)
