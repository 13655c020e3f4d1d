"""RS402: Which rows are taken is left to the database.

LIMIT and TOP without ORDER BY, row_number() and first_value() over a window without an order, and DISTINCT ON without
an ORDER BY that goes on after its keys take whichever rows come first. That changes with the plan, the number of
workers and the place of rows on disk: the same query gives other rows at the next run. Order by columns that decide,
with a key of the row as the last one.

Bad (postgres):

    begin;
    delete from latest_orders where order_date between :start and :end;
    insert into latest_orders
    select distinct on (order_id) order_id, order_date, status from order_versions
    where order_date between :start and :end order by order_id;
    commit

Good (postgres):

    begin;
    delete from latest_orders where order_date between :start and :end;
    insert into latest_orders
    select order_id, order_date, status from (
      select distinct on (order_id) order_id, order_date, status from order_versions
      order by order_id, version_number desc
    ) as newest
    where order_date between :start and :end;
    commit

Bad (snowflake):

    create or replace table latest_orders as
    select order_id, status from order_versions
    qualify row_number() over (partition by order_id order by order_id) = 1
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.finding import Sort
from reslice.audit.reached import reached
from reslice.audit.rule import Found
from reslice.audit.scope import place_of
from reslice.audit.unstable import is_id_name
from reslice.audit.write import Way, Write
from reslice.reading.nodes import inside
from reslice.reading.statements import flat

HELP = "say the order: columns that decide, and a key of the row last"
_NUMBER_HELP = "number the rows in the order of a key, or make the id from the key itself"
_PICKS = (exp.RowNumber, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Ntile, exp.Lag, exp.Lead)
_ANY = (exp.AnyValue, exp.First, exp.Last)


def write(write: Write) -> Iterator[Found]:
    """Yield what takes rows in an order that nothing decides, once for each place."""
    if write.query is None or write.way is Way.UPDATE:
        return
    seen: set[tuple[tuple[int, int], str]] = set()
    note: Found | None = None
    for select in reached(write.query):
        for node, detail in _arbitrary(write, select):
            span = place_of(write, node)
            if (span, detail) not in seen:
                seen.add((span, detail))
                number = _number_of_row(node, select)
                if number:
                    again = f"{write.shown(node)} numbers them in any order: a row has another {number} after each run"
                    yield Found(span, again, Sort.NOTE, _NUMBER_HELP)
                else:
                    yield Found(span, detail, Sort.NOTE if _is_looked_up(node, select) else Sort.FINDING)
        note = note or _any_value(write, select)
    if note is not None:
        yield note


def _arbitrary(write: Write, select: exp.Select) -> Iterator[tuple[exp.Expr, str]]:
    limit = None if _is_one_row(select) or _is_of_array(select) else _limit(select)
    if limit is not None and limit.expressions:
        if not _goes_beyond(select.args.get("order"), list(limit.expressions)):
            keys = ", ".join(write.shown(each) for each in limit.expressions)
            yield limit, f"{_shown_limit(limit)} BY {keys} keeps any row of each"
    elif limit is not None and not _has_order(select):
        yield limit, f"{_shown_limit(limit)} without an ORDER BY takes any rows"
    numbered = _numbered(select) if write.dialect == "oracle" else None
    if numbered is not None and not _has_order(select):
        yield numbered, f"{write.shown(numbered)} without an ordered query below takes any rows"
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    firsts: list[exp.Expr] = list(on.expressions) or [on] if on is not None else []
    if on is not None and not _goes_beyond(select.args.get("order"), firsts) and not _is_of_keys(select, firsts):
        yield on, f"DISTINCT ON ({', '.join(map(write.shown, firsts))}) keeps any row of each"
    for window in _own(select, exp.Window):
        is_unordered = isinstance(window, exp.Window) and _is_unordered(window)
        if is_unordered and not _is_of_keys(select, window.args.get("partition_by") or []):
            yield window, f"{write.shown(window)} has no order that decides"
    sample = next((each.args["sample"] for each in _read(select) if each.args.get("sample")), None)
    if sample is not None and not sample.args.get("seed"):
        yield sample, "TABLESAMPLE takes other rows at each run"


def _is_looked_up(node: exp.Expr, select: exp.Select) -> bool:
    """Whether LIMIT 1 takes the row that equals something: mostly there is only one."""
    where = select.args.get("where")
    is_one = isinstance(node, exp.Limit) and isinstance(node.expression, exp.Literal) and node.expression.name == "1"
    conditions = flat(where.this if where is not None else None)
    is_equal = any(isinstance(each, exp.EQ) and each.find(exp.Column) for each in conditions)
    return is_one and is_equal and isinstance(select.parent, exp.Subquery)


def _is_one_row(select: exp.Select) -> bool:
    """Whether a SELECT reads no table, and so returns one row."""
    return select.args.get("from_") is None


def _is_of_array(select: exp.Select) -> bool:
    """Whether a SELECT looks one element of an array up by something it equals: arrays keep their order."""
    start = select.args.get("from_")
    where = select.args.get("where")
    conditions = flat(where.this if where is not None else None)
    is_equal = any(isinstance(each, exp.EQ) and each.find(exp.Column) for each in conditions)
    return start is not None and isinstance(start.this, exp.Unnest) and not select.args.get("joins") and is_equal


def _number_of_row(node: exp.Expr, select: exp.Select) -> str:
    """Return the id that rows are only numbered to have, when none of them is left out; empty where it is none."""
    for projection in select.expressions:
        name = str(projection.alias_or_name)
        if projection.unalias() is node and isinstance(node.this, exp.RowNumber) and is_id_name(name):
            return name
    return ""


def _is_of_keys(select: exp.Select, keys: list[exp.Expr]) -> bool:
    """Whether a SELECT returns nothing but the keys, so that all rows of a key are the same."""
    own = {each.sql().lower() for each in keys}
    values = [each.unalias() for each in select.expressions]
    return all(each.sql().lower() in own or isinstance(each, exp.Window) for each in values)


def _read(select: exp.Select) -> list[exp.Expr]:
    start = select.args.get("from_")
    return [*([start.this] if start is not None else []), *(join.this for join in select.args.get("joins") or [])]


def _own(select: exp.Select, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the parts of a kind that are a SELECT's own, and not those of a query within it."""
    pending = [*select.expressions, select.args.get("qualify"), select.args.get("order")]
    for each in pending:  # goes on over what is added meanwhile
        if each is None or isinstance(each, exp.Query):
            continue
        if isinstance(each, kind):
            yield each
        pending += inside(each)


def _limit(select: exp.Select) -> exp.Expr | None:
    """Return what limits the rows of a SELECT; None where nothing does, or no row is taken, or it is one row anyway."""
    limit = select.args.get("limit")
    holder: exp.Expr = select
    while isinstance(holder.parent, exp.Subquery | exp.SetOperation):
        holder = holder.parent
        limit = limit or holder.args.get("limit")
    if limit is None or isinstance(holder.parent, exp.Exists):
        return None
    count = limit.expression if isinstance(limit, exp.Limit) else limit.args.get("count")
    is_none = isinstance(count, exp.Literal) and count.name == "0"
    is_one = select.args.get("group") is None and any(each.find(exp.AggFunc) for each in select.expressions)
    return None if is_none or (is_one and not list(_own(select, exp.Window))) else limit


def _numbered(select: exp.Select) -> exp.Expr | None:
    """Return the condition by which Oracle takes the first rows by number; None where there is none."""
    where = select.args.get("where")
    for each in flat(where.this if where is not None else None):
        is_number = isinstance(each.this, exp.Column | exp.Pseudocolumn) and each.this.name.lower() == "rownum"
        if isinstance(each, exp.LT | exp.LTE | exp.EQ) and is_number:
            return each
    return None


def _shown_limit(limit: exp.Expr) -> str:
    count = limit.expression if isinstance(limit, exp.Limit) else limit.args.get("count")
    return f"LIMIT {count.sql()}" if isinstance(count, exp.Expr) else "LIMIT"


def _has_order(select: exp.Select) -> bool:
    """Whether a SELECT, or what is around it before its rows are limited, has an order that is not a constant."""
    holder: exp.Expr | None = select
    while isinstance(holder, exp.Select | exp.Subquery | exp.SetOperation):
        if _orders(holder.args.get("order")):
            return True
        holder = holder.parent if isinstance(holder.parent, exp.Subquery | exp.SetOperation) else None
    start = select.args.get("from_")
    inner = start.this if start is not None else None
    is_of_ordered = isinstance(inner, exp.Subquery) and bool(_orders(inner.this.args.get("order")))
    return is_of_ordered and not select.args.get("joins")


def _orders(order: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of an ORDER BY that decide an order: not constants, nor T-SQL's (SELECT NULL)."""
    parts = [each.this if isinstance(each, exp.Ordered) else each for each in order.expressions] if order else []
    return [each for each in parts if each.find(exp.Column, exp.AggFunc) or _is_place(each) or _is_call(each)]


def _is_place(each: exp.Expr) -> bool:
    return isinstance(each, exp.Literal) and not each.is_string


def _is_call(each: exp.Expr) -> bool:
    return isinstance(each, exp.Func)


def _goes_beyond(order: exp.Expr | None, keys: list[exp.Expr]) -> bool:
    """Whether an order has a part that is none of the keys."""
    own = {each.sql().lower() for each in keys}
    return any(each.sql().lower() not in own for each in _orders(order))


def _is_unordered(window: exp.Window) -> bool:
    function = window.this
    if isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    if not isinstance(function, _PICKS):
        return False
    order = window.args.get("order")
    if window.args.get("alias") is not None and order is None:
        return False  # OVER name: the order is where the window is named
    parts = [each for each in _orders(order) if not _is_place(each)]  # a number is no place in OVER
    if isinstance(function, exp.RowNumber | exp.FirstValue | exp.LastValue | exp.NthValue):
        own = {each.sql().lower() for each in window.args.get("partition_by") or []}
        return all(each.sql().lower() in own for each in parts)
    return not parts


def _any_value(write: Write, select: exp.Select) -> Found | None:
    for each in _own(select, exp.AggFunc):
        is_decided = isinstance(each.parent, exp.Window | exp.WithinGroup | exp.IgnoreNulls)
        if isinstance(each, _ANY) and not is_decided and each.find(exp.HavingMax, exp.Order) is None:
            span = place_of(write, each)
            return Found(span, f"{write.shown(each)} takes any value of its group", Sort.NOTE)
    return None
