"""The conditions by which a job keeps to its range, and the same query with `:start` and `:end` in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlglot import exp

from reslice.contract import Unit
from reslice.reading.marks import MARK, THIS
from reslice.reading.outputs import JobQuery, Output, is_day, unit_of
from reslice.tables import Family

_DATE_TEXT = re.compile(r"\s*\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?\s*|\d{8}")
_DATES_FROM_OUTSIDE = (
    exp.CurrentDate,
    exp.CurrentTimestamp,
    exp.CurrentDatetime,
    exp.CurrentTimestampLTZ,
    exp.DateFromParts,
    exp.Placeholder,
    exp.Parameter,
)
_CLOCK_NAMES = frozenset({"now", "getdate", "today", "sysdate", "current_date", "curdate"})
_INSTANT_NAME = re.compile(r"(?:_at|_ts|_time|timestamp|_dttm|datetime)$|^ts$", re.IGNORECASE)
_DAY_FAMILIES = frozenset({Family.DATE, Family.TEXT, Family.INTEGER})
_NO_TIME = frozenset({Family.DATE, Family.INTEGER})
_PARTS = {
    Unit.WEEK: (Unit.WEEK, Unit.DAY),
    Unit.MONTH: (Unit.MONTH, Unit.DAY),
    Unit.QUARTER: (Unit.QUARTER, Unit.MONTH, Unit.DAY),
}
"""The units whose first values lie between `:start` and `:end` exactly when their days do; others are cut otherwise."""

BOUND = {name: f"reslice_bound_{name}" for name in ("start", "end", "start_instant", "end_instant")}
"""The words that stand for the bounds until the query is text: no dialect writes a placeholder as reslice reads it."""

FamilyOf = Callable[[str, str], Family | None]
"""The kind of a column of a table of the database, both in small letters; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Bounding:
    """One condition that compares something with a date: what, with which values, and how.

    `kind` is between, low, high, equal, in, or watermark (compared with what the table holds already).
    """

    node: exp.Expr
    select: exp.Select
    left: exp.Expr
    values: tuple[exp.Expr, ...]
    kind: str
    is_open: bool = False

    @property
    def is_half_open(self) -> bool:
        """Whether it is an upper bound that is not included."""
        return self.kind == "high" and self.is_open

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns that are compared, in small letters."""
        return frozenset(column.name.lower() for column in self.left.find_all(exp.Column))


def boundings(query: JobQuery, table: str) -> list[Bounding]:
    """Return every condition of a query, at any depth, that compares something with a date; `table` is the target."""
    return [
        found
        for select in query.parts(query.tree, exp.Select)
        for holder in _holders(select)
        for conjunct in conjuncts(holder)
        for found in read(conjunct, select, table)
    ]


def _holders(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    joins = [join for join in select.args.get("joins") or [] if join.args.get("on") is not None]
    return [*([where] if where is not None else []), *joins]


def conjuncts(holder: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that all have to hold in a WHERE or an ON."""
    condition = holder.args["on"] if isinstance(holder, exp.Join) else holder.this
    found: list[exp.Expr] = []
    pending = [condition]
    while pending:
        each = pending.pop(0)
        inner = each.unnest() if isinstance(each, exp.Paren) else each
        if isinstance(inner, exp.And):
            pending[:0] = [inner.left, inner.right]
        else:
            found.append(each)
    return found


def read(condition: exp.Expr, select: exp.Select, table: str) -> Iterator[Bounding]:
    """Yield how a condition compares something with a date; nothing when it does not."""
    node, condition = condition, condition.unnest()
    if isinstance(condition, exp.Or):
        parts = [found for each in condition.flatten() for found in read(each, select, table)]
        lefts = {part.left.sql() for part in parts}
        if len(parts) == len(list(condition.flatten())) and len(lefts) == 1:
            yield Bounding(node, select, parts[0].left, tuple(each for part in parts for each in part.values), "in")
    elif isinstance(condition, exp.Between):
        low, high = condition.args["low"], condition.args["high"]
        if is_value(low) and is_value(high) and _is_compared(condition.this):
            yield Bounding(node, select, condition.this, (low, high), "between")
    elif isinstance(condition, exp.In):
        values = condition.expressions
        if values and all(map(is_value, values)) and _is_compared(condition.this):
            yield Bounding(node, select, condition.this, tuple(values), "in")
        elif condition.args.get("query") is not None and _reads(condition.args["query"], table):
            yield Bounding(node, select, condition.this, (), "watermark")
    elif isinstance(condition, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.NullSafeEQ):
        yield from _compared(node, condition, select, table)


def _compared(node: exp.Expr, condition: exp.Expr, select: exp.Select, table: str) -> Iterator[Bounding]:
    left, right = condition.this, condition.expression
    is_low = isinstance(condition, exp.GT | exp.GTE)
    if is_value(left) or (_reads(left, table) and not _reads(right, table)):
        left, right, is_low = right, left, not is_low
    if not _is_compared(left):
        return
    kind = "equal" if isinstance(condition, exp.EQ | exp.NullSafeEQ) else "low" if is_low else "high"
    if _reads(right, table):
        yield Bounding(node, select, left, (), "watermark")
    elif is_value(right):
        yield Bounding(node, select, left, (right,), kind, isinstance(condition, exp.GT | exp.LT))


def _reads(value: exp.Expr, table: str) -> bool:
    """Whether a value is a query of the target itself."""
    names = {each.name.lower() for each in value.find_all(exp.Table)}
    return table in names or THIS in names


def _is_compared(left: exp.Expr) -> bool:
    """Whether a side of a comparison is made from columns, row by row."""
    columns = [column for column in left.find_all(exp.Column) if not MARK.fullmatch(column.name)]
    return bool(columns) and left.find(exp.AggFunc, exp.Window, exp.Select) is None


def is_value(value: exp.Expr) -> bool:
    """Whether an expression is a date from outside: a literal, a placeholder, the clock, or made from these."""
    if value.find(exp.Select, exp.Subquery) is not None:
        return False
    columns = [column for column in value.find_all(exp.Column) if not MARK.fullmatch(column.name)]
    if any(column.name.lower() not in _CLOCK_NAMES for column in columns):
        return False
    return any(map(_is_date_like, value.walk())) or bool(columns)


def _is_date_like(part: exp.Expr) -> bool:
    if isinstance(part, exp.Literal):
        return _DATE_TEXT.fullmatch(part.name) is not None or MARK.search(part.name) is not None
    if isinstance(part, exp.Column | exp.Identifier):
        return MARK.fullmatch(part.name) is not None
    if isinstance(part, exp.Anonymous):
        return str(part.this).lower() in _CLOCK_NAMES
    return isinstance(part, _DATES_FROM_OUTSIDE)


class Rewriter:
    """Puts the bounds of a range into a query, in the place of the conditions that limit the slice today."""

    def __init__(
        self, query: JobQuery, family_of: FamilyOf, unit: Unit, made: Output | None, unsure: list[str]
    ) -> None:
        self.query = query
        self.family_of = family_of
        self.unit = unit
        self.made = made
        origin = made.origin if made is not None else None
        self.slice_is_cut = origin is not None and unit_of(origin) is not None
        self.unsure = unsure

    def replace(self, found: Sequence[Bounding]) -> None:
        """Replace conditions; those of one SELECT on one expression become one."""
        by_place = sorted(found, key=lambda each: (id(each.select), each.left.sql()))
        for _, group in groupby(by_place, key=lambda each: (id(each.select), each.left.sql())):
            each = list(group)
            self._replace_one(each)

    def _replace_one(self, found: list[Bounding]) -> None:
        first = found[0]
        bound = self.bound(first.left, first.select, found)
        gone = {id(each.node) for each in found}
        for holder in _holders(first.select):
            before = conjuncts(holder)
            if not any(id(each) in gone for each in before):
                continue
            kept, is_placed = [], False
            for each in before:
                if id(each) not in gone:
                    kept.append(each)
                elif not is_placed:
                    kept += bound
                    is_placed = True
            _set(holder, kept)

    def bound(self, left: exp.Expr, select: exp.Select, found: Sequence[Bounding] = ()) -> list[exp.Expr]:
        """Return the conditions that keep an expression within the range."""
        finer = self._finer(left, select)
        left = (left if finer is None else finer).copy()
        is_time = finer is not None and self._family(finer, select) not in _NO_TIME
        if is_time or self.is_instant(left, select, found):
            if any(each.kind == "between" for each in found):
                text = f"{self.query.shown(left)} BETWEEN two instants left out what comes after the last one"
                self.unsure.append(f"{text}; the draft takes each day to its end")
            return [
                exp.GTE(this=left, expression=exp.column(BOUND["start_instant"])),
                exp.LT(this=left.copy(), expression=exp.column(BOUND["end_instant"])),
            ]
        return [exp.Between(this=left, low=exp.column(BOUND["start"]), high=exp.column(BOUND["end"]))]

    def is_instant(self, left: exp.Expr, select: exp.Select, found: Sequence[Bounding] = ()) -> bool:
        """Whether an expression is a time of day and not a day: by its type where it is known, else by its form."""
        if is_day(left) or unit_of(left) is not None:
            return False
        if not isinstance(left, exp.Column):
            return _is_cast_to_time(left)
        origin, _ = self.query.traced(left, select)
        if origin is not left and not isinstance(origin, exp.Column):
            return not (is_day(origin) or unit_of(origin) is not None) and self.slice_is_cut
        family = self._family(left, select)
        if family is not None:
            return family not in _DAY_FAMILIES
        is_named = _INSTANT_NAME.search(origin.name) is not None
        return is_named or (self.slice_is_cut and any(each.is_half_open for each in found))

    def _family(self, column: exp.Expr, select: exp.Select) -> Family | None:
        """Return the kind of the table's column that a column of a query is; None where it is not known, or made."""
        origin, where = self.query.traced(column, select)
        if isinstance(origin, exp.Column):
            for alias, table in self.query.tables(where).items():
                if origin.table.lower() in ("", alias):
                    family = self.family_of(table, origin.name.lower())
                    if family is not None:
                        return family
        return None

    def _finer(self, left: exp.Expr, select: exp.Select) -> exp.Expr | None:
        """Return the column to limit instead of one that is cut to another unit than the slices; None to keep it.

        A day lies between `:start` and `:end` of a month, but of an hour only when the hour is its first.
        """
        unit = self._unit(left, select)
        if unit is None or unit in _PARTS.get(self.unit, (self.unit,)):
            return None
        shown = self.query.shown(left)
        text = f"range: the job limits {shown}, by the {unit}, and a slice is {_a(self.unit)}"
        for column, where in self._columns_behind(left, select):
            family = self._family(column, where)
            if where is select and (self.unit is not Unit.HOUR or family not in _NO_TIME):
                self.unsure.append(f"{text}; the draft limits {self.query.shown(column)} instead")
                return column
        self.unsure.append(f"{text}; {shown} between :start and :end may never be true: limit a time by hand")
        return None

    def _unit(self, left: exp.Expr, select: exp.Select) -> Unit | None:
        """Return the unit that a side of a condition goes by; None where nothing says so, or it is a plain time."""
        origin, _ = self.query.traced(left, select)
        unit = unit_of(origin)
        if unit is not None or self.unit is not Unit.HOUR:
            return unit
        if isinstance(origin, exp.Column):
            behind = {column.name.lower() for column, _ in self._columns_behind(left, select)}
            is_made_from = origin.name.lower() in behind
            return Unit.DAY if self._family(left, select) in _DAY_FAMILIES and not is_made_from else None
        return None if _is_cast_to_time(origin) else Unit.DAY

    def _columns_behind(self, left: exp.Expr, select: exp.Select) -> list[tuple[exp.Expr, exp.Select]]:
        """Return the one column that a side of a condition is made from, then the one that the slice is made from."""
        found: list[tuple[exp.Expr, exp.Select]] = []
        own = list(left.find_all(exp.Column))
        if len(own) == 1 and own[0] is not left:
            found.append((own[0], select))
        if self.made is not None and self.made.origin is not None and self.made.select is not None:
            behind = {column.sql(): column for column in self.made.origin.find_all(exp.Column)}
            found += [(column, self.made.select) for column in behind.values() if len(behind) == 1]
        return found

    def add(self, value: exp.Expr, select: exp.Select) -> None:
        """Add the bounds where a query has none, in the SELECT in which the slice is made."""
        column = value if isinstance(value, exp.Column) else next(iter(value.find_all(exp.Column)), value)
        self.slice_is_cut = self.slice_is_cut or column is not value
        where = select.args.get("where")
        before = conjuncts(where) if where is not None else []
        if where is None:
            where = exp.Where(this=exp.true())
            select.set("where", where)
        _set(where, [*before, *self.bound(column, select)])


def _is_cast_to_time(value: exp.Expr) -> bool:
    kinds = ("timestamp", "timestampntz", "timestamptz", "datetime")
    return isinstance(value, exp.Cast | exp.TryCast) and bool(value.to.is_type(*kinds))


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit is Unit.HOUR else f"a {unit}"


def _set(holder: exp.Expr, conditions: Iterable[exp.Expr]) -> None:
    """Let a WHERE or an ON hold exactly these conditions."""
    # The nodes themselves, not copies: other conditions that are still to be replaced are known by them.
    wrapped = [exp.paren(each, copy=False) if isinstance(each, exp.Or) else each for each in conditions]
    condition = wrapped[0]
    for each in wrapped[1:]:
        condition = exp.And(this=condition, expression=each)
    holder.set("on" if isinstance(holder, exp.Join) else "this", condition)
