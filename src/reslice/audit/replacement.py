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
    reached,
    subject_of,
)
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


def _by_condition(write: Write, query: JobQuery, where: exp.Expr) -> Iterator[Compared]:
    marks, known = write.script.outside, write.script.known
    found = list(conditions(where, marks))
    dated = [each for each in found if is_dated(each, known)]
    names = list(dict.fromkeys(each.subject.column.name.lower() for each in dated))
    told = {_part_of(query, output) for name in names for output in _outputs(write, query, name)} - {""}
    for name in names:
        own = [each for each in dated if each.subject.column.name.lower() == name]
        for output in _outputs(write, query, name):
            side = _compared(write, query, name, own, output, told)
            if side is not None and side.differences:
                yield side
    yield from _by_fixed(write, query, where)


def _part_of(query: JobQuery, output: Output) -> str:
    subject = subject_of(output.origin) if output.origin is not None else None
    return leaf_of(query, subject, output.select).part if subject is not None else ""


def _outputs(write: Write, query: JobQuery, name: str) -> list[Output]:
    """Return what each SELECT of a query writes to a column of the table."""
    columns = table_columns(write)
    first = query.outputs()
    place = next((at for at, each in enumerate(first) if columns.get(each.name.lower(), each.name.lower()) == name), -1)
    if place < 0:
        place = _place_by_limits(write, query, first)
    if place < 0:
        return []
    arms = [query.outputs_of(arm) for arm in _arms(query.tree)]
    return [outputs[place] for outputs in arms if place < len(outputs)]


def _place_by_limits(write: Write, query: JobQuery, outputs: list[Output]) -> int:
    """Return the place of the only column that the query limits by dates; -1 where there is none or several."""
    known = write.script.known
    limited = {_leaf(query, each).name for each in _limits(write, query) if is_dated(each, known)}
    places = []
    for at, each in enumerate(outputs):
        subject = subject_of(each.origin) if each.origin is not None else None
        if subject is not None and leaf_of(query, subject, each.select).name in limited:
            places.append(at)
    return places[0] if len(places) == 1 else -1


def _arms(tree: exp.Expr) -> list[exp.Expr]:
    found, pending = [], [tree]
    while pending:
        each = pending.pop(0)
        if isinstance(each, exp.SetOperation):
            pending[:0] = [each.this, each.expression]
        elif isinstance(each, exp.Subquery):
            pending.insert(0, each.this)
        else:
            found.append(each)
    return found


def _limits(write: Write, query: JobQuery, start: exp.Expr | None = None) -> list[Condition]:
    return query_conditions(query, write.script.outside, start)


def _leaf(query: JobQuery, each: Condition) -> Leaf:
    return leaf_of(query, each.subject, each.select)


def _compared(
    write: Write, query: JobQuery, name: str, own: list[Condition], output: Output, told: set[str]
) -> Compared | None:
    """Compare one column; `told` are the parts of it, such as its hour, that are columns by which rows are removed."""
    if output.origin is None:
        return None
    known = write.script.known
    removed_text, span = _text_of(write, own), _span_of(write, own)
    constant = value_of(output.origin, write.script.outside)
    subject = subject_of(output.origin)
    if constant is not None:
        unit = own[0].subject.unit or Unit.DAY
        removed, written = range_of(own, unit), _of_constant(constant, unit)
        found = differences(removed, written)
        return Compared(removed_text, f"{name} = {write.shown(output.origin)}", tuple(found), span)
    if subject is None or output.select is None:
        return None
    leaf = leaf_of(query, subject, output.select)
    is_raw = leaf.unit is None and is_time(name, write.table, known) is True
    removed = range_of(own, None if is_raw else leaf.unit or Unit.DAY)
    start = next((arm for arm in _arms(query.tree) if any(each is output.select for each in reached(query, arm))), None)
    limits = [each for each in _limits(write, query, start) if is_dated(each, known)]
    same = [each for each in limits if _leaf(query, each).name in _equal_names(query, leaf.name)]
    same = [each for each in same if not _leaf(query, each).part or _leaf(query, each).part not in told]
    if leaf.part:
        return None
    if not same:
        return _unlimited(write, query, own, limits, name)
    zones = {_leaf(query, each).zone for each in same}
    if leaf.unit is not None and zones != {leaf.zone}:
        doubt = f"{name} is the day in {leaf.zone or 'another zone'}, and the bounds are not said in it"
        written_text = shown_range(write, tuple(same))
        return Compared(removed_text, written_text, (Difference("all", Effect.UNSURE),), span, doubt=doubt)
    written = _written(query, same, write)
    found = differences(removed, written)
    found = _of_longer_units(found, leaf.unit, same, query)
    return Compared(removed_text, shown_range(write, tuple(same)), tuple(found), span)


def _text_of(write: Write, own: list[Condition]) -> str:
    return " and ".join(dict.fromkeys(write.shown(each.node) for each in own))


def _span_of(write: Write, own: list[Condition]) -> tuple[int, int] | None:
    return write.script.span(own[0].node, write.delete) if write.delete is not None else None


def _of_constant(value: Value, unit: Unit) -> Range:
    return Range(value, after(value, unit), is_nameless=value.is_nameless)


def _written(query: JobQuery, same: list[Condition], write: Write) -> Range:
    """Return the range that conditions of a query leave of the column that they all come down to."""
    cut = []
    for each in same:
        leaf = _leaf(query, each)
        unit = leaf.unit
        if unit is None and is_time(leaf.name, leaf.table, write.script.known) is False:
            unit = Unit.DAY
        cut.append(replace(each, subject=replace(each.subject, unit=unit, part=leaf.part)))
    return range_of(cut, None)


def _of_longer_units(
    found: list[Difference], unit: Unit | None, same: list[Condition], query: JobQuery
) -> list[Difference]:
    """Take back what is sure of a table by the month whose source is limited by days: it depends on the days."""
    if unit in (None, Unit.DAY, Unit.HOUR) or all(_leaf(query, each).unit == unit for each in same):
        return found
    are_closed = any(each.kind == "high" and not each.is_open for each in same)
    if not are_closed:
        return found
    return [] if all(each.effect is Effect.LOSES and each.end == "high" for each in found) else found


def _equal_names(query: JobQuery, name: str) -> set[str]:
    """Return the names of the columns that a query sets equal to one, in its joins and conditions, and its own."""
    pairs = []
    for select in reached(query):
        where = select.args.get("where")
        holders = [where.this] if where is not None else []
        holders += [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
        for holder in holders:
            for each in flat(holder):
                if isinstance(each, exp.EQ):
                    sides = [subject_of(side) for side in (each.this, each.expression)]
                    if sides[0] is not None and sides[1] is not None:
                        pairs.append({leaf_of(query, side, select).name for side in sides if side is not None})
    names = {name}
    for _ in range(len(pairs)):
        grown = names.union(*(pair for pair in pairs if pair & names))
        if grown == names:
            break
        names = grown
    return names


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
        if beside and not differences(range_of(own, Unit.DAY), _written(query, beside, write)):
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
        names = _equal_names(query, leaf_of(query, subject, output.select).name)
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
        same = [limit for limit in _limits(write, query) if _leaf(query, limit).name == name]
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
