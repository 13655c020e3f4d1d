"""RS406: Versions of the same rows are summed together.

The table keeps the rows of each run beside those of the runs before: the run's id is part of its key. A reader has to
choose one run for each day. One that sums all of them counts each order as often as it was computed, and the total
grows with every backfill.

Bad (postgres):

    create table daily_orders (
      order_date date, channel text, run_id bigint, order_count bigint, primary key (order_date, channel, run_id));
    begin;
    delete from monthly_orders where month = :month;
    insert into monthly_orders (month, order_count)
    select date_trunc('month', order_date)::date, sum(order_count) from daily_orders
    where order_date >= :month and order_date < :month::date + interval '1 month' group by 1;
    commit

Good (postgres):

    create table daily_orders (
      order_date date, channel text, run_id bigint, order_count bigint, primary key (order_date, channel, run_id));
    begin;
    delete from monthly_orders where month = :month;
    insert into monthly_orders (month, order_count)
    select date_trunc('month', d.order_date)::date, sum(d.order_count)
    from daily_orders d join current_runs c on c.order_date = d.order_date and c.run_id = d.run_id
    where d.order_date >= :month and d.order_date < :month::date + interval '1 month' group by 1;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from reslice.audit.aggregate import is_aggregate
from reslice.audit.known import name_of
from reslice.audit.naming import is_run_name
from reslice.audit.reached import reached
from reslice.audit.read_query import ReadQuery
from reslice.audit.rule import Found
from reslice.audit.scope import place_of
from reslice.audit.script import Script
from reslice.audit.write import Way, Write
from reslice.reading.outputs import JobQuery
from reslice.reading.statements import written_query

HELP = "read one run of each slice: join the table that says which run is current, or take the newest run of each"


def write(write: Write) -> Iterator[Found]:
    """Yield an aggregate over a table of versions of which none is chosen."""
    if write.query is None or not write.is_aggregate or write.way is Way.UPDATE:
        return
    for table, column, node in _unchosen(write.query, write.script):
        if table != write.table:
            yield Found(place_of(write, node), _why(table, column))
            return


def script(script: Script) -> Iterator[Found]:
    """Yield a view that sums the versions of a table."""
    for statement in script.statements:
        node = statement.node
        query = written_query(node) if isinstance(node, exp.Create) and node.kind == "VIEW" else None
        if query is None:
            continue
        job = ReadQuery(query, script.dialect)
        if is_aggregate(job):
            for table, column, part in _unchosen(job, script):
                yield Found(script.span(part, statement), _why(table, column))
                break


def _why(table: str, column: str) -> str:
    return f"{table} holds several versions of the same rows, told apart by {column}, and no condition chooses one"


def _unchosen(query: JobQuery, script: Script) -> Iterator[tuple[str, str, exp.Expr]]:
    """Yield the tables of versions that a query reads without a word of the version: table, column and place."""
    selects = reached(query)
    for select in selects:
        start = select.args.get("from_")
        sources = [*([start.this] if start is not None else []), *(j.this for j in select.args.get("joins") or [])]
        for source in sources:
            name = name_of(source)
            column = _version_of(script, name) if name and name not in query.named else ""
            if column and not any(_speaks_of(each, column) for each in selects):
                yield name, column, source


def _version_of(script: Script, table: str) -> str:
    """Return the column of a table's declared key that tells runs apart; empty where there is none."""
    for key in script.table(table).keys:
        if len(key) > 1:
            for column in key:
                if is_run_name(column):
                    return column
    return ""


def _speaks_of(select: exp.Select, column: str) -> bool:
    """Whether a SELECT limits, groups, orders or joins by a column, or takes its maximum."""
    for part in select.find_all(exp.Column):
        if part.name.lower() == column and not _is_only_shown(part, select):
            return True
    return any(
        each.name.lower() == column for join in select.args.get("joins") or [] for each in join.args.get("using") or []
    )


def _is_only_shown(column: exp.Column, select: exp.Select) -> bool:
    return column.parent is select or (isinstance(column.parent, exp.Alias) and column.parent.parent is select)
