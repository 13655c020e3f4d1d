"""The conditions of a DELETE or a query as ranges of a column, in one form however they are written.

`between :a and :b`, `>= :a and < :b + interval '1 day'` and `date(x) <= '{{ b }}'` all become a first value and one
that is no longer included. What a condition says is only taken in where it compares a column with a date from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from reslice.audit.known import Known
from reslice.audit.reached import reached
from reslice.audit.values import CLOCK, Names, Value, value_of
from reslice.contract import Unit
from reslice.reading.marks import MARK
from reslice.reading.nodes import every
from reslice.reading.outputs import JobQuery, unit_of, zone_of
from reslice.reading.statements import flat

_TIME_NAME = re.compile(r"(?:_at|_ts|_time|_tstamp|timestamp|_dttm|_datetime)$|^(?:ts|datetime|time|created|updated)$")
_DATE_NAME = re.compile(
    r"(?:^|_)(?:date|day|dt|ds|week|month|year|quarter|hour|period|yyyymmdd|ymd|at|ts|time|timestamp|datetime|when)(?:_|$)"
    r"|(?:date|day|month|time|timestamp)$"
)
_MONTHS = {Unit.MONTH: 1, Unit.QUARTER: 3}
_DAYS = {Unit.HOUR: 1 / 24, Unit.DAY: 1, Unit.WEEK: 7}
_ORDER = (Unit.HOUR, Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.QUARTER)
_DEPTH_LIMIT = 30
_PARTS = {"year": "year", "yyyy": "year", "yy": "year", "month": "month", "mm": "month", "day": "day", "dd": "day"}
_FORMATS = {"%Y-%m-%d": Unit.DAY, "%Y%m%d": Unit.DAY, "%F": Unit.DAY, "%Y-%m": Unit.MONTH, "%Y%m": Unit.MONTH}
_CALLS = {"toyyyymm": Unit.MONTH, "toyyyymmdd": Unit.DAY, "trunc": Unit.DAY, "to_date": Unit.DAY, "todate": Unit.DAY}
_MONTH_TEXT = re.compile(r"(\d{4})-?(\d\d)")
_OPPOSITES: dict[type, type[exp.Binary]] = {exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT}
_SECONDS_OF_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Subject:
    """What a condition is about: a column, cut to a unit, or a part of it such as its year, read in a zone."""

    column: exp.Column
    unit: Unit | None = None
    part: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a subject with dates from outside. `kind` is low, high, equal or in."""

    node: exp.Expr
    subject: Subject
    kind: str
    values: tuple[Value, ...]
    is_open: bool = False
    select: exp.Select | None = None


def subject_of(node: exp.Expr) -> Subject | None:
    """Return what an expression is about; None where it is made of no column or of several."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        is_own = MARK.fullmatch(node.name) is None and not isinstance(node.this, exp.Star)
        return Subject(node) if is_own else None
    columns = [each for each in every(node, exp.Column) if not MARK.fullmatch(each.name)]
    if len(columns) != 1 or node.find(exp.AggFunc, exp.Window, exp.Query, exp.Case, exp.Coalesce) is not None:
        return None
    part, zone = _part(node), _zone(node)
    if part:
        return Subject(columns[0], part=part, zone=zone)
    unit = _unit(node)
    if unit is None and not isinstance(node, exp.Cast | exp.TryCast | exp.AtTimeZone | exp.ConvertTimezone):
        return None
    return Subject(columns[0], unit, zone=zone)


def _zone(node: exp.Expr) -> str:
    """Return the time zone in which an expression reads an instant; empty when it names none."""
    own = [each.args.get("zone") for each in every(node, exp.Date, exp.TimestampTrunc, exp.Datetime)]
    named = [each.name for each in own if isinstance(each, exp.Literal)]
    return zone_of(node) or (named[0] if named else "")


def _part(node: exp.Expr) -> str:
    if isinstance(node, exp.Year | exp.Month | exp.Day | exp.DayOfMonth):
        return "year" if isinstance(node, exp.Year) else "month" if isinstance(node, exp.Month) else "day"
    if isinstance(node, exp.Extract):
        name = str(node.this.name).lower()
        return _PARTS.get(name, name)
    return ""


def _unit(node: exp.Expr) -> Unit | None:
    if isinstance(node, exp.TimeToStr):
        return _FORMATS.get(node.args["format"].name)
    if isinstance(node, exp.Cast | exp.TryCast) and isinstance(node.this, exp.TimeToStr):
        return _unit(node.this)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name == "trunc" and len(node.expressions) > 1:
            text = node.expressions[1].name.upper()
            return {"MM": Unit.MONTH, "MONTH": Unit.MONTH, "Q": Unit.QUARTER, "IW": Unit.WEEK}.get(text, unit_of(node))
        return _CALLS.get(name, unit_of(node))
    if isinstance(node, exp.Trunc) and node.args.get("decimals") is None:
        return Unit.DAY
    return unit_of(node)


def conditions(
    where: exp.Expr | None, marks: Names, query: JobQuery | None = None, select: exp.Select | None = None
) -> Iterator[Condition]:
    """Yield what a condition compares with dates from outside; `query` follows a name to the value it stands for."""

    def value(node: exp.Expr, subject: Subject) -> Value | None:
        found = value_of(node, marks) or _number(node, subject)
        if found is None and query is not None and select is not None and isinstance(node, exp.Column):
            origin, _ = query.traced(node, select)
            found = value_of(origin, marks) if origin is not node else None
        return found

    for each, condition in [(whole, part) for whole in flat(where) for part in _without_not(whole.unnest())]:
        for subject, kind, nodes, is_open in _compared(condition):
            values = tuple(value(node, subject) for node in nodes)
            known = tuple(found for found in values if found is not None)
            if known and len(known) == len(values):
                yield Condition(each, subject, kind, known, is_open, select)


def _without_not(condition: exp.Expr) -> list[exp.Expr]:
    """Return a condition, or those that hold together in its place, without NOT: `not (a < x or a > y)` is a range."""
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    if isinstance(inner, exp.Or):
        return [part for each in inner.flatten() for part in _without_not(exp.Not(this=each.copy()))]
    opposite = _OPPOSITES.get(type(inner)) if inner is not None else None
    if inner is None or opposite is None:
        return [condition]
    return [opposite(this=inner.this.copy(), expression=inner.expression.copy())]


def _number(node: exp.Expr, subject: Subject) -> Value | None:
    """Return a year, or a month as text or number, as a value."""
    if not isinstance(node, exp.Literal):
        return None
    if subject.part:
        return Value("", seconds=int(node.name)) if node.name.isdigit() and len(node.name) <= 4 else None
    found = _MONTH_TEXT.fullmatch(node.name) if subject.unit is Unit.MONTH else None
    return value_of(exp.Literal.string(f"{found[1]}-{found[2]}-01"), {}) if found is not None else None


_Compared = tuple[Subject, str, list[exp.Expr], bool]


def _compared(condition: exp.Expr) -> Iterator[_Compared]:
    """Yield subject, kind, values and whether they are left out, of one comparison."""
    if isinstance(condition, exp.Between):
        subject = subject_of(condition.this)
        if subject is not None:
            yield subject, "low", [condition.args["low"]], False
            yield subject, "high", [condition.args["high"]], False
    elif isinstance(condition, exp.In):
        subject = subject_of(condition.this)
        if subject is not None and condition.expressions:
            yield subject, "in", list(condition.expressions), False
    elif isinstance(condition, exp.Or):
        yield from _any_of(condition)
    elif isinstance(condition, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.NullSafeEQ):
        left, right = condition.this, condition.expression
        is_low = isinstance(condition, exp.GT | exp.GTE)
        subject = subject_of(left)
        if subject is None:
            subject, right, is_low = subject_of(right), left, not is_low
        if subject is not None:
            kind = "equal" if isinstance(condition, exp.EQ | exp.NullSafeEQ) else "low" if is_low else "high"
            yield subject, kind, [right], isinstance(condition, exp.GT | exp.LT)


def _any_of(condition: exp.Or) -> Iterator[_Compared]:
    """Yield `a = x or a = y` as `a in (x, y)`."""
    parts = [found for each in condition.flatten() for found in _compared(each.unnest())]
    is_list = len(parts) == len(list(condition.flatten())) and all(kind in ("equal", "in") for _, kind, _, _ in parts)
    if is_list and len({subject.column.sql() for subject, _, _, _ in parts}) == 1:
        yield parts[0][0], "in", [node for _, _, nodes, _ in parts for node in nodes], False


def query_conditions(query: JobQuery, marks: Names, start: exp.Expr | None = None) -> list[Condition]:
    """Return the conditions that limit the rows of a query, at any depth.

    What stands in the ON of an outer join limits the rows of one side only, and is left out.
    """
    found: list[Condition] = []
    for select in reached(query, start):
        where = select.args.get("where")
        found += conditions(where.this if where is not None else None, marks, query, select)
        for join in select.args.get("joins") or []:
            if not join.args.get("side"):
                found += conditions(join.args.get("on"), marks, query, select)
    return found


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a subject of a query comes from: a column of a table, cut to a unit."""

    name: str
    table: str
    unit: Unit | None
    part: str
    zone: str


def leaf_of(query: JobQuery, subject: Subject, select: exp.Select | None) -> Leaf:
    """Follow a subject through the queries it comes from, to the column of a table that it is made of."""
    unit, part, zone = subject.unit, subject.part, subject.zone
    column = subject.column
    for _ in range(_DEPTH_LIMIT):
        if select is None:
            break
        origin, where = query.traced(column, select)
        inner = subject_of(origin) if origin is not column else None
        select = where
        if inner is None or inner.column is column:
            break
        column, part, zone = inner.column, part or inner.part, zone or inner.zone
        unit = max((each for each in (unit, inner.unit) if each), key=_ORDER.index, default=None)
    tables = query.tables(select) if select is not None else {}
    table = tables.get(column.table.lower(), "") if column.table else ""
    if not table and len(tables) == 1:
        table = next(iter(tables.values()))
    return Leaf(column.name.lower(), table, unit, part, zone)


def is_time(name: str, table: str, known: Known) -> bool | None:
    """Whether a column holds a time of day: by its declared type, else by its name; None where its name is silent."""
    declared = known.get(table)
    kind = declared.types.get(name) if declared is not None else None
    if kind is None and not table:
        kinds = [each.types[name] for each in known.values() if name in each.types]
        kind = kinds[0] if len({each.sql() for each in kinds}) == 1 else None
    if kind is not None:
        is_date = kind.this in (exp.DataType.Type.DATE, exp.DataType.Type.DATE32)
        return kind.this in exp.DataType.TEMPORAL_TYPES and not is_date
    if _TIME_NAME.search(name):
        return True
    return False if _DATE_NAME.search(name) else None


def is_dated(condition: Condition, known: Known) -> bool:
    """Whether a condition is about a date, and not a number or a word that is equal to a placeholder."""
    subject = condition.subject
    if subject.unit is not None or subject.part or condition.kind in ("low", "high"):
        return True
    if any(value.kind or value.is_written or _DATE_NAME.search(value.base) for value in condition.values):
        return True
    name = subject.column.name.lower()
    return is_time(name, "", known) is not None and _DATE_NAME.search(name) is not None


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a column: from `low`, up to and without `high`. None where a side has no bound.

    Of a time, `is_high_closed` says that `high` itself is part of it, and `also` is the end of the day that `high`
    begins; `is_low_open` that `low` is not part of it. `values` are those of a list, and `parts` the year, month and so
    on that it is made of. `is_nameless` says that a placeholder is known by its place alone.
    """

    low: Value | None = None
    high: Value | None = None
    also: Value | None = None
    values: frozenset[tuple[str, int, int]] | None = None
    parts: frozenset[tuple[str, tuple[str, int, int]]] = frozenset()
    is_nameless: bool = False
    is_high_closed: bool = False
    is_low_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing limits the column."""
        return self == Range()


def range_of(found: Iterable[Condition], unit: Unit | None) -> Range:
    """Return the range that conditions on one column leave. `unit` is what the column's values are the starts of."""
    made = Range()
    parts: dict[str, Value] = {}
    for each in found:
        if each.subject.part:
            if each.kind == "equal":
                parts[each.subject.part] = each.values[0]
            continue
        made = _narrowed(made, each, each.subject.unit or unit)
    return _with_parts(made, parts)


def _narrowed(made: Range, each: Condition, unit: Unit | None) -> Range:
    first, last = each.values[0], each.values[-1]
    is_nameless = made.is_nameless or any(value.is_nameless for value in each.values)
    made = replace(made, is_nameless=is_nameless)
    if each.kind == "in" and len(each.values) > 1:
        run = _run(each.values, unit)
        if run is None:
            return replace(made, values=frozenset(value.key() for value in each.values))
        first, last = run
    if each.kind != "high" and not _is_wider(first, made.low, is_later=False):
        low = after(first, unit) if each.is_open and unit is not None else first
        made = replace(made, low=low, is_low_open=each.is_open and unit is None)
    if each.kind != "low" and not _is_wider(last, made.high, is_later=True):
        high = last if each.is_open else after(last, unit)
        is_closed = unit is None and not each.is_open and not last.is_last_second
        made = replace(made, high=high, also=after(last, Unit.DAY) if is_closed else None, is_high_closed=is_closed)
    return made


def _is_wider(new: Value, old: Value | None, *, is_later: bool) -> bool:
    """Whether a bound leaves the range as it is: another one is narrower, or is asked for where this is the clock."""
    if old is None:
        return False
    beyond = new.minus(old)
    if beyond is None:  # what is asked for counts, then what is written out, then the clock
        ranks = [2 if value.base == CLOCK else 1 if value.is_written else 0 for value in (new, old)]
        return ranks[0] >= ranks[1]
    return beyond > 0 if is_later else beyond < 0


def _run(values: tuple[Value, ...], unit: Unit | None) -> tuple[Value, Value] | None:
    """Return the first and the last of values that follow each other unit by unit; None where they do not."""
    if len({value.base for value in values}) != 1 or values[0].is_nameless:
        return None
    ordered = sorted(values, key=lambda value: (value.months, value.seconds))
    step = unit or Unit.DAY
    follows = all(after(a, step).key() == b.key() for a, b in pairwise(ordered))
    return (ordered[0], ordered[-1]) if follows else None


def after(value: Value, unit: Unit | None) -> Value:
    """Return the first moment that is no longer part of the unit that begins with a value."""
    if value.is_last_second:
        return value.moved(seconds=1)
    if unit is None:
        return value
    if unit in _MONTHS:
        return value.moved(months=_MONTHS[unit])
    return value.moved(seconds=round(_DAYS[unit] * _SECONDS_OF_DAY))


def _with_parts(made: Range, parts: Mapping[str, Value]) -> Range:
    """Return a range with the year, month and day that it is limited to; as dates where all of them are written out."""
    if not parts:
        return made
    written = {name: value.seconds for name, value in parts.items() if value.is_written}
    if len(written) == len(parts) and set(written) <= {"year", "month", "day"} and "year" in written:
        text = f"{written['year']:04d}-{written.get('month', 1):02d}-{written.get('day', 1):02d}"
        first = value_of(exp.Literal.string(text), {})
        if first is not None:
            length = {1: {"months": 12}, 2: {"months": 1}, 3: {"seconds": _SECONDS_OF_DAY}}[len(written)]
            return replace(made, low=first, high=first.moved(**length))
    return replace(made, parts=frozenset((name, value.key()) for name, value in parts.items()))
