"""RS403: The query goes on from the newest row of the table that it fills.

`where order_ts > (select max(order_ts) from …)` computes what is new since the last run. A row that comes late, with a
time before that maximum, is never counted; a correction of an older row is never seen; and to run the job again
computes nothing at all, so that a wrong day stays wrong. One row with a date in the far future stops the job for ever.
An aggregate has to be computed for a range that is asked for, whatever its table holds.

Bad (postgres):

    begin;
    delete from daily_orders where order_date > (select max(order_date) from daily_orders);
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date > (select max(order_date) from daily_orders) group by order_date, channel;
    commit

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date between :start and :end group by order_date, channel;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.reached import reached
from reslice.audit.rule import Found
from reslice.audit.scope import own_names, place_of
from reslice.audit.values import value_of
from reslice.audit.write import Way, Write
from reslice.reading.nodes import every
from reslice.reading.statements import flat

HELP = "compute the range that is asked for, :start and :end, whatever the table holds"
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.Between, exp.In)
_SHIFTS = (exp.Sub, exp.DateSub, exp.DateAdd, exp.DatetimeSub, exp.TimestampSub, exp.TsOrDsAdd, exp.TimestampAdd)


def write(write: Write) -> Iterator[Found]:
    """Yield a query that computes what comes after its own table's maximum."""
    if write.query is None or write.way in (Way.UPDATE, Way.REPLACE):
        return
    for select in reached(write.query):
        for condition, maximum in _conditions(write, select):
            if is_guard(condition):
                continue
            span = place_of(write, condition)
            looks_back = _looks_back(condition, maximum)
            if not write.is_aggregate:
                text = f"rows before the newest of {write.table} that come late are never added"
                yield Found(span, text, Sort.NOTE)
            elif looks_back:
                text = f"rows that come later than the days it looks back from {write.table}'s newest are never counted"
                yield Found(span, text, Sort.NOTE)
            else:
                text = f"rows before the newest of {write.table} are never computed again, and late ones never counted"
                yield Found(span, text)
            return


def is_after_maximum(write: Write) -> bool:
    """Whether only rows later than all of the table are written, so that a second run adds none."""
    if write.query is None:
        return False
    found = [each for select in reached(write.query) for each in _conditions(write, select)]
    return any(
        isinstance(condition, exp.GT | exp.LT) and not _looks_back(condition, maximum) for condition, maximum in found
    )


def _conditions(write: Write, select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield each condition of a SELECT that compares with the maximum of the table, and that maximum."""
    where = select.args.get("where")
    holders = [where.this] if where is not None else []
    holders += [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
    for holder in holders:
        for condition in flat(holder):
            for part in every(condition, *_COMPARISONS):
                maximum = _maximum(write, part, select)
                if maximum is not None:
                    yield condition, maximum
                    break


def _maximum(write: Write, comparison: exp.Expr, select: exp.Select) -> exp.Expr | None:
    for each in every(comparison, exp.Select):
        if is_own_maximum(write, each):
            return each
    held = _held(write, comparison)
    if held is not None:
        return held
    assert write.query is not None, "only writes with a query are judged"
    relations = write.query.relations(select)
    for column in every(comparison, exp.Column):
        inner = relations.get(column.table.lower()) if column.table else None
        if inner is None and not column.table:
            origin, where = write.query.traced(column, select)
            if origin is not column and origin.find(exp.Max) and is_own_maximum(write, where):
                return origin
        elif isinstance(inner, exp.Select) and is_own_maximum(write, inner):
            return inner
    return None


def _held(write: Write, comparison: exp.Expr) -> exp.Expr | None:
    """Return the maximum that a variable of the script holds with which a column is compared."""
    for key in ("this", "expression", "low", "high"):
        side = comparison.args.get(key)
        value = value_of(side, write.script.outside) if isinstance(side, exp.Expr) else None
        held = write.script.variables.held.get(value.base) if value is not None else None
        for each in every(held, exp.Select) if held is not None else ():
            if is_own_maximum(write, each):
                return held
    return None


def is_own_maximum(write: Write, select: exp.Select) -> bool:
    """Whether a SELECT is the maximum of the table that is written."""
    start = select.args.get("from_")
    table = start.this if start is not None else None
    is_own = isinstance(table, exp.Table) and table.name.lower() in own_names(write)
    has_maximum = any(each.find(exp.Max) is not None for each in select.expressions)
    order = select.args.get("order")
    is_newest = (
        order is not None and select.args.get("limit") is not None and bool(order.expressions[0].args.get("desc"))
    )
    return is_own and select.args.get("group") is None and (has_maximum or is_newest)


def is_guard(condition: exp.Expr) -> bool:
    """Whether a condition compares no column of a row, so that it only says whether to run at all: once a day."""
    inner = condition.unnest()
    if not isinstance(inner, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return False
    sides = [each for each in (inner.this, inner.expression) if each.find(exp.Select) is None]
    return bool(sides) and not any(each.find(exp.Column) for each in sides)


def _looks_back(condition: exp.Expr, maximum: exp.Expr) -> bool:
    """Whether time is taken from the maximum, so that the last days are computed again."""
    if any(isinstance(each, exp.Interval) for each in every(condition, exp.Interval)):
        return True
    return any(isinstance(each, _SHIFTS) for each in condition.walk()) or maximum.find(*_SHIFTS) is not None
