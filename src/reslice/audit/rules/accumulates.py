"""RS103: A run adds to what the run before stored.

The new figure is put on top of the stored one. That is right only when every row of the source is read once in the life
of the table: run the same range again, and it is counted twice, with the same number of rows as before.

Bad (postgres):

    insert into daily_orders as target
    select order_date, channel, sum(amount_cents) as amount_cents from orders
    where order_date between :start and :end group by order_date, channel
    on conflict (order_date, channel) do update set amount_cents = target.amount_cents + excluded.amount_cents

Good (postgres):

    begin;
    delete from daily_orders where order_date between :start and :end;
    insert into daily_orders
    select order_date, channel, sum(amount_cents) as amount_cents from orders
    where order_date between :start and :end group by order_date, channel;
    commit
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from reslice.audit.carried import carried
from reslice.audit.finding import Sort
from reslice.audit.rule import Found
from reslice.audit.steps import names_of
from reslice.audit.write import Way, Write, listed
from reslice.reading.marks import MARK
from reslice.reading.nodes import every
from reslice.reading.statements import flat

HELP = "compute the whole figure of the range from the source, and put it in the place of the stored one"
_PLUS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv)
_JOINED = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.ArrayAppend, exp.ArrayPrepend, exp.ArrayConcat)
_JOINED_NAMES = frozenset(
    {"array_append", "array_prepend", "array_cat", "array_concat", "list_append", "list_concat", "list_cat"}
    | {"arrayconcat", "arraypushback", "arraypushfront", "concat", "concat_ws"}
)
_PASSES = (exp.Paren, exp.Coalesce, exp.Cast, exp.TryCast, exp.Round, exp.Neg, exp.Nullif)


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """A column that is set to its stored value and something beside it."""

    column: str
    node: exp.Expr
    is_from_source: bool
    is_unsure: bool = False
    """Whether `||` may merge documents instead of adding text."""


def write(write: Write) -> Iterator[Found]:
    """Yield the columns that a write adds onto, all of one statement as one thing."""
    sum_of_all = carried(write)
    if sum_of_all is not None:
        text = f"{write.shown(sum_of_all)} takes up what {write.called} holds"
        yield Found(write.spot(sum_of_all), f"{text}: a second run of the same range adds it again")
        return
    found = accumulated(write)
    certain = [each for each in found if each.is_from_source and not each.is_unsure]
    for sort, several in (
        (Sort.FINDING, certain),
        (Sort.UNKNOWN, [each for each in found if each.is_unsure]),
        (Sort.NOTE, [each for each in found if not each.is_from_source and not each.is_unsure]),
    ):
        if several:
            yield _said(write, sort, several)
            return


def _said(write: Write, sort: Sort, several: list[Added]) -> Found:
    first = several[0]
    text = f"{first.column} is set to {write.shown(first.node)}"
    others = [each.column for each in several[1:]]
    if others:
        text += f", and {listed(others)} in the same way"
    where = write.spot(first.node)
    if sort is Sort.UNKNOWN:
        return Found(where, f"{text}: that grows with each run, unless {first.column} is a document", sort)
    if sort is Sort.FINDING and _is_one_row_of_a_program(write):
        return Found(where, f"{text}: a call that is made again for the same rows adds them again", Sort.NOTE)
    if sort is Sort.FINDING:
        return Found(where, f"{text}: a second run of the same range adds it again")
    return Found(where, f"{text}: each run changes it again", sort)


def _is_one_row_of_a_program(write: Write) -> bool:
    """Whether a program passes the values, as it does to count what happens: only its callers know what is new."""
    return write.query is None and isinstance(write.node, exp.Insert) and not write.script.path.endswith(".sql")


def accumulated(write: Write) -> list[Added]:
    """Return the columns that a write adds onto, unless the same script resets them or removes the rows first."""
    if write.way not in (Way.UPSERT, Way.UPDATE, Way.SYNC, Way.FILL) or _moves_on(write):
        return []
    return _accumulated(write, write.node)


def _moves_on(write: Write) -> bool:
    """Whether only rows are added that are newer than a column of the row, which the same statement moves on.

    A second run finds none, as the row then holds how far it was counted.
    """
    if write.query is None:
        return False
    moved = {target.name.lower() for target, _ in _assigned(write.node)}
    for select in write.query.parts(write.query.tree, exp.Select):
        of_table = {name for name, table in write.query.tables(select).items() if table == write.table}
        where = select.args.get("where")
        for each in flat(where.this if where is not None else None):
            sides = [each.this, each.expression] if isinstance(each, exp.GT | exp.LT) else []
            newest = sides[1] if isinstance(each, exp.GT) else sides[0] if sides else None
            if isinstance(newest, exp.Column) and newest.table.lower() in of_table and newest.name.lower() in moved:
                return True
    return False


def accumulates_before(write: Write) -> bool:
    """Whether the UPDATE that goes with an INSERT adds onto a column."""
    return write.update is not None and bool(_accumulated(write, write.update))


def _accumulated(write: Write, node: exp.Expr) -> list[Added]:
    names = names_of(node)
    found = []
    for target, value in _assigned(node):
        column = target.name.lower()
        if column in write.resets:
            continue
        added = _added(column, value, names, write)
        if added is not None:
            found.append(added)
    return found


def _assigned(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the columns that a statement sets where the row is there, each with its value."""
    holders: list[exp.Expr] = []
    if isinstance(node, exp.Insert) and isinstance(node.args.get("conflict"), exp.OnConflict):
        holders = [node.args["conflict"]]
    elif isinstance(node, exp.Update):
        holders = [node]
    elif isinstance(node, exp.Merge):
        whens = node.args["whens"].expressions if node.args.get("whens") else []
        holders = [when.args["then"] for when in whens if isinstance(when.args.get("then"), exp.Update)]
    for holder in holders:
        for each in holder.expressions if isinstance(holder.expressions, list) else []:
            if not isinstance(each, exp.EQ):
                continue
            left, right = each.this.unnest(), each.expression.unnest()
            if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
                yield from zip(left.expressions, right.expressions, strict=False)
            else:
                yield left, right


def _added(column: str, value: exp.Expr, names: set[str], write: Write) -> Added | None:
    """Return how a value adds to the stored value of its own column; None when it does not."""
    for each in _reached(value):
        if not _is_sum(each):
            continue
        parts = list(each.iter_expressions())
        own = [part for part in parts if _is_own(part, column, names)]
        rest = [part for part in parts if not any(part is one for one in own)]
        if not own or not rest or all(_is_fixed(part) for part in rest) or _is_document(each, column, write):
            continue
        is_from_source = any(_is_of_source(part, column, names, write) for part in rest)
        if not is_from_source and not any(_is_given(part) for part in rest):
            continue
        return Added(column, value, is_from_source, _may_merge(each, column, write))
    return None


def _reached(value: exp.Expr) -> Iterator[exp.Expr]:
    """Yield a value and the parts that it is as large as: not the sides of a choice, nor what is compared."""
    pending = [value]
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, exp.Case):
            pending += [branch.args["true"] for branch in each.args.get("ifs") or []]
            pending += [each.args["default"]] if each.args.get("default") is not None else []
        elif isinstance(each, exp.If):
            pending += [each.args[name] for name in ("true", "false") if each.args.get(name) is not None]
        elif isinstance(each, _PLUS):
            pending += [each.this, each.expression]
        elif isinstance(each, exp.Coalesce):
            pending += [each.this, *each.expressions]
        elif isinstance(each, _PASSES):
            pending.append(each.this)


def _is_sum(value: exp.Expr) -> bool:
    if isinstance(value, exp.Anonymous):
        return str(value.this).lower() in _JOINED_NAMES
    return isinstance(value, (*_PLUS, *_JOINED))


def _is_own(value: exp.Expr, column: str, names: set[str]) -> bool:
    """Whether a part of a sum is the stored value of the column, or has it as a part that counts in full."""
    return any(
        isinstance(each, exp.Column) and each.name.lower() == column and (not each.table or each.table.lower() in names)
        for each in _reached(value)
    )


def _is_fixed(value: exp.Expr) -> bool:
    return not any(isinstance(each, exp.Column | exp.Select) or MARK.search(each.name) for each in value.walk()) and (
        value.find(exp.Anonymous) is None
    )


def _is_given(value: exp.Expr) -> bool:
    return any(isinstance(each, exp.Identifier | exp.Literal) and MARK.search(each.name) for each in value.walk())


def _is_of_source(value: exp.Expr, column: str, names: set[str], write: Write) -> bool:
    """Whether a part of a sum comes from the rows that are computed."""
    if value.find(exp.Select) is not None:
        return True
    if any(str(each.this).upper() == "VALUES" for each in every(value, exp.Anonymous)):
        return True
    for each in every(value, exp.Column):
        if MARK.fullmatch(each.name):
            continue
        if each.table and each.table.lower() not in names:
            return True
        if not each.table and write.way is not Way.UPDATE and each.name.lower() != column:
            return isinstance(write.node, exp.Merge)
    return False


def _is_document(value: exp.Expr, column: str, write: Write) -> bool:
    """Whether `||` merges two documents, which gives the same the second time."""
    kind = write.declared.types.get(column)
    return (
        isinstance(value, exp.DPipe) and kind is not None and kind.is_type("json", "jsonb", "hstore", "map", "object")
    )


def _may_merge(value: exp.Expr, column: str, write: Write) -> bool:
    """Whether `||` may be PostgreSQL's merging of two documents, which gives the same the second time."""
    if not isinstance(value, exp.DPipe) or write.dialect not in ("postgres", "redshift", "materialize", "risingwave"):
        return False
    return column not in write.declared.types
