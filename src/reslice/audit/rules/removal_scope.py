"""RS302: A merge removes rows outside the range it computes.

Rows that the source does not have are deleted, and the source holds one range only: every row of every other day is one
that it does not have. The first run for a single day leaves that day alone in the table.

A condition in ON does not help: it decides which rows meet, and those that do not meet are the ones that go. The range
has to stand beside NOT MATCHED BY SOURCE, or in the WHERE of the delete.

Bad (bigquery):

    merge daily_orders as target
    using (
      select order_date, channel, count(*) as order_count from orders
      where order_date between @start and @end group by order_date, channel
    ) as source
    on target.order_date = source.order_date and target.channel = source.channel
    when matched then update set order_count = source.order_count
    when not matched then insert (order_date, channel, order_count)
      values (source.order_date, source.channel, source.order_count)
    when not matched by source then delete

Good (bigquery):

    merge daily_orders as target
    using (
      select order_date, channel, count(*) as order_count from orders
      where order_date between @start and @end group by order_date, channel
    ) as source
    on target.order_date = source.order_date and target.channel = source.channel
    when matched then update set order_count = source.order_count
    when not matched then insert (order_date, channel, order_count)
      values (source.order_date, source.channel, source.order_count)
    when not matched by source and target.order_date between @start and @end then delete
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.predicates import Condition, conditions, is_dated, query_conditions
from reslice.audit.reached import reached
from reslice.audit.rule import Found
from reslice.audit.scope import asked, shown_range
from reslice.audit.values import CLOCK
from reslice.audit.write import Way, Write
from reslice.reading.bounds import boundings
from reslice.reading.statements import flat

HELP = "let only rows of the range that is computed be removed, by a condition on the table's own columns"
_BY_SOURCE = re.compile(r"when\s+not\s+matched\s+by\s+source\b[^;]*?\bthen\s+(?:delete|update)", re.IGNORECASE)


def write(write: Write) -> Iterator[Found]:
    """Yield what removes rows that the source lacks, where the source is a range and the removal is not."""
    if write.way is not Way.SYNC or write.delete is None:
        return
    source = _range(write)
    if not source:
        return
    shown = shown_range(write, source)
    for span in _unlimited(write):
        detail = f"the source holds only rows where {shown}, and every other row of {write.called} is removed as well"
        yield Found(span, detail)


def _range(write: Write) -> tuple[Condition, ...]:
    """Return the conditions that keep the source to a range; a window that moves with the clock is one here."""
    found = asked(write)
    if found or write.query is None:
        return found
    marks = write.script.outside
    return tuple(
        each
        for each in query_conditions(write.query, marks)
        if is_dated(each, write.script.known)
        and each.kind == "low"
        and (each.values[0].base == CLOCK or each.values[0].is_written)
    )


def _unlimited(write: Write) -> Iterator[tuple[int, int]]:
    """Yield where each part stands that removes rows of any date."""
    node = write.node
    if write.delete is not write.statement and write.delete is not None:
        where = write.delete.node.args.get("where")
        if not _has_range(write, where.this if where is not None else None):
            yield write.script.span(exp.Placeholder(), write.delete)
        return
    if not isinstance(node, exp.Merge) or _is_target_limited(write, node):
        return
    places = _places(write)
    for when in node.args["whens"].expressions:
        then = when.args.get("then")
        is_delete = isinstance(then, exp.Var) and then.name.lower().startswith("delete")
        if not when.args.get("matched") and when.args.get("source"):
            place = next(places, write.span)
            if not _has_range(write, when.args.get("condition")):
                yield place
        elif when.args.get("matched") and is_delete and _brings_all(write):
            yield write.spot(when.args.get("condition"))


def _places(write: Write) -> Iterator[tuple[int, int]]:
    """Yield where each WHEN NOT MATCHED BY SOURCE stands."""
    marked = write.script.marked
    for found in _BY_SOURCE.finditer(marked.text, write.statement.base):
        start, end = (write.script.start + marked.origin(at) for at in (found.start(), found.end() - 1))
        yield start, end + 1


def _has_range(write: Write, condition: exp.Expr | None) -> bool:
    """Whether a condition limits the table's rows to dates, or to those that another query names."""
    marks = write.script.outside
    if any(is_dated(each, write.script.known) for each in conditions(condition, marks)):
        return True
    for each in flat(condition):
        inner = each.unnest()
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return True
        if isinstance(inner, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.Between) and inner.find(exp.Select):
            return True
    return False


def _is_target_limited(write: Write, node: exp.Merge) -> bool:
    """Whether the MERGE writes through a WITH that holds the range alone."""
    start = node.args.get("with_")
    for part in start.expressions if isinstance(start, exp.With) else []:
        if isinstance(node.this, exp.Table) and part.alias.lower() == node.this.name.lower():
            where = part.this.args.get("where") if isinstance(part.this, exp.Select) else None
            return _has_range(write, where.this if where is not None else None)
    return False


def _brings_all(write: Write) -> bool:
    """Whether the source of a MERGE reads the table itself, and not only its rows of the range."""
    query = write.query
    if query is None:
        return False
    for select in reached(query):
        aliases = {alias for alias, name in query.tables(select).items() if name == write.table}
        if not aliases:
            continue
        tables = {
            column.table.lower()
            for each in boundings(query, write.table)
            for column in each.left.find_all(exp.Column)
            if each.select is select
        }
        is_alone = len(query.relations(select)) == 1
        return not (tables & aliases or (is_alone and tables))
    return False
