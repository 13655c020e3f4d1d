"""RS401: The query depends on when it is run, or on chance.

`current_date - 1` is another day tomorrow: a run for last month cannot be asked for, and a job that is run again a day
later leaves the day it missed for ever. A clock or a random number within a value gives other totals for the same rows.
Bounds from outside, :start and :end, give the same answer at any time. A clock that only fills a column such as
loaded_at, and one that only keeps out what lies in the future, do no harm.

Bad (postgres):

    begin;
    delete from daily_orders where order_date = current_date - 1;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents) from orders
    where order_date = current_date - 1 group by order_date, channel;
    commit

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, count(*), sum(amount_cents), now() as loaded_at from orders
    where order_date between :start and :end group by order_date, channel;
    commit

Bad (snowflake):

    begin;
    delete from daily_overdue where due_date between :start and :end;
    insert into daily_overdue
    select due_date, count_if(due_date < current_date()) as overdue from invoices
    where due_date between :start and :end group by due_date;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.predicates import conditions, query_conditions
from reslice.audit.rule import Found
from reslice.audit.rules.emptied_for_range import overwrites_all
from reslice.audit.rules.own_maximum import is_guard
from reslice.audit.scope import asked, is_by_placeholder, place_of
from reslice.audit.unstable import Sort as Made
from reslice.audit.unstable import Unstable, Use, is_new_id, sort_of, unstable
from reslice.audit.values import CLOCK
from reslice.audit.write import Way, Write
from reslice.reading.statements import flat

HELP = "take the range from outside, :start and :end, and pass in what has to be the time of the run"
_HELP_CHANCE = "make the value from the row's own columns, or leave it out"
_WHOLE = frozenset({Way.REPLACE, Way.EMPTIED})


def write(write: Write) -> Iterator[Found]:
    """Yield a clock, and a random value, that the rows of an aggregate depend on."""
    if write.query is None or not write.is_aggregate or write.way is Way.UPDATE:
        return
    found = [each for each in unstable(write.query) if each.use is not Use.STAMP and not _is_harmless(write, each)]
    if write.way is Way.APPEND:  # a log of runs has a row for each, with its time
        found = [each for each in found if each.use is Use.ROWS or each.holder is not each.node]
    is_whole = write.way in _WHOLE or overwrites_all(write)
    for made in Made:
        those = [each for each in found if each.sort is made]
        first = next((each for each in those if each.use is Use.ROWS), those[0] if those else None)
        if made is Made.CLOCK and (first is None or first.use is not Use.ROWS):
            first = _by_variable(write) or first
        if first is None:
            continue
        is_note = (is_whole and made is Made.CLOCK) or is_new_id(first)
        place = first.holder.parent if isinstance(first.holder.parent, exp.Alias) else first.holder
        span = place_of(write, place)
        help_ = _HELP_CHANCE if made is Made.CHANCE else ""
        yield Found(span, _why(write, first), Sort.NOTE if is_note else Sort.FINDING, help_)


def _by_variable(write: Write) -> Unstable | None:
    """Return a condition by a variable that the script fills from the clock."""
    assert write.query is not None, "only writes with a query are judged"
    held = write.script.variables.held
    for each in query_conditions(write.query, write.script.outside):
        for value in each.values:
            source = held.get(value.base)
            is_clock = source is not None and any(sort_of(part) is Made.CLOCK for part in source.walk())
            if source is not None and is_clock and each.kind != "high" and each.select is not None:
                return Unstable(source, Made.CLOCK, Use.ROWS, each.node, each.select)
    return None


def _is_harmless(write: Write, each: Unstable) -> bool:
    """Whether a clock only keeps out what lies after now: no row of a day that has passed depends on it."""
    if each.use is not Use.ROWS or each.sort is not Made.CLOCK:
        return False
    marks = write.script.outside
    where = each.select.args.get("where")
    if is_guard(each.holder) or _keeps_out_the_future(each.holder):
        return True
    own = list(conditions(each.holder, marks))
    if not own or any(found.kind != "high" for found in own):
        return False
    others = list(conditions(where.this, marks)) if where is not None else []
    subject = own[0].subject.column.sql()
    lows = [found for found in others if found.kind != "high" and found.subject.column.sql() == subject]
    return all(value.base != CLOCK for found in lows for value in found.values) and len(flat(each.holder)) == 1


def _keeps_out_the_future(holder: exp.Expr) -> bool:
    """Whether a condition only says that something is not later than now."""
    inner = holder.unnest()
    if not isinstance(inner, exp.LT | exp.LTE):
        return False
    value = inner.expression
    is_bare = value.find(exp.Sub, exp.Add, exp.Interval, exp.Column, exp.Select, exp.Case, exp.If) is None
    is_now = any(sort_of(each) is Made.CLOCK for each in value.walk())
    return is_bare and is_now and all(sort_of(each) is None for each in inner.this.walk())


def _why(write: Write, each: Unstable) -> str:
    shown = write.shown(each.holder)
    if each.use is Use.ROWS:
        if each.sort is Made.CHANCE:
            return f"{shown} chooses other rows at each run"
        if is_by_placeholder(asked(write)):
            return f"{shown} chooses rows by the time of the run: the same range has other figures later"
        return f"{shown} moves with the clock: the range cannot be asked for, and a later run computes another one"
    name = each.name or shown
    if each.sort is Made.CHANCE:
        return f"{name} is made by chance: {shown} is another value at each run"
    return f"{name} depends on the time of the run: {shown}"
