"""Dates that come from outside a query, in a form in which two of them can be compared.

`:a`, `cast(:a as date)` and `'{{ a }}'` are one value; `:a + interval '1 day'` is the same one moved by a day.
Nothing is known of what a placeholder holds, only that equal names of one file hold equal values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from reslice.reading.marks import MARK

CLOCK = "the clock"
"""The base of a value that is made from the time of the run."""
_DEPTH_LIMIT = 20
_DAY_SECONDS = 86_400
_LAST_SECOND = _DAY_SECONDS - 1
_CLOCKS = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTimestamp,
    exp.CurrentTimestampLTZ,
    exp.Localtimestamp,
    exp.Systimestamp,
    exp.UtcDate,
    exp.UtcTimestamp,
)
CLOCK_NAMES = frozenset(
    {"now", "getdate", "getutcdate", "sysdate", "systimestamp", "sysdatetime", "sysutcdatetime", "today", "yesterday"}
    | {
        "curdate",
        "current_date",
        "current_timestamp",
        "clock_timestamp",
        "statement_timestamp",
        "transaction_timestamp",
    }
    | {"timeofday", "utc_timestamp", "utc_date", "now64", "unix_timestamp", "systimestamp", "localtimestamp"}
    | {"get_current_timestamp", "get_current_time", "current_localtimestamp", "current_localtime", "nowinblock"}
    | {"sysdatetimeoffset", "current_datetime", "current_time", "localtime", "utc_time", "current_unix_timestamp"}
)
"""Functions, in small letters, that tell the time and that are not always read as such."""
COLUMN_CLOCKS = frozenset(
    {"sysdate", "systimestamp", "current_date", "current_timestamp", "localtimestamp", "current_datetime", "systime"}
)
"""Those that are written without brackets, so that they are read as columns."""
_WRAPPERS = (
    exp.Paren,
    exp.Cast,
    exp.TryCast,
    exp.Date,
    exp.DateStrToDate,
    exp.Datetime,
    exp.StrToDate,
    exp.StrToTime,
    exp.Timestamp,
    exp.TsOrDsToDate,
    exp.TsOrDsToDatetime,
    exp.TsOrDsToTimestamp,
)
_WRAPPER_NAMES = frozenset(
    {"todate", "to_date", "todatetime", "to_timestamp", "to_timestamp_ntz", "to_timestamp_ltz", "to_timestamp_tz"}
    | {
        "date",
        "parse_date",
        "from_iso8601_date",
        "from_iso8601_timestamp",
        "try_to_date",
        "todatetime64",
        "to_datetime",
    }
    | {"fromisodate", "trunc", "toyyyymmdd", "tostring"}
)
_PLUS = (exp.Add, exp.DateAdd, exp.DatetimeAdd, exp.TimestampAdd, exp.TsOrDsAdd, exp.TimeAdd)
_MINUS = (exp.Sub, exp.DateSub, exp.DatetimeSub, exp.TimestampSub, exp.TimeSub)
_MONTHS = {"MONTH": 1, "MM": 1, "MON": 1, "QUARTER": 3, "QQ": 3, "Q": 3, "YEAR": 12, "YY": 12, "YYYY": 12, "Y": 12}
_SECONDS = {
    "WEEK": 7 * _DAY_SECONDS,
    "WK": 7 * _DAY_SECONDS,
    "DAY": _DAY_SECONDS,
    "DD": _DAY_SECONDS,
    "D": _DAY_SECONDS,
    "HOUR": 3600,
    "HH": 3600,
    "MINUTE": 60,
    "MI": 60,
    "SECOND": 1,
    "SS": 1,
}
_TINY = frozenset({"MILLISECOND", "MS", "MICROSECOND", "MCS", "US", "NANOSECOND", "NS"})
_DATE = re.compile(
    r"\s*(\d{4})-?(\d\d)-?(\d\d)(?:[ T](\d\d):?(\d\d)(?::?(\d\d)(?:\.(\d+))?)?)?(?:Z|[+-]\d\d:?\d\d)?\s*"
)
_CLOCK_TIME = re.compile(r"[ T]*(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?\s*")
_PLACEHOLDER = re.compile(r"^(?:%\(|[#$:@{\s])*(.*?)(?:\)s|[}\s])*$", re.DOTALL)
_NAMELESS = re.compile(r"\?|%s")
_DAY_MACRO = re.compile(r"macros\.ds_add\(\s*(\w+)\s*,\s*(-?\d+)\s*\)")
_FILTER = re.compile(r"\s*\|\s*(?:ds|ds_nodash|ts|ts_nodash|string)\b.*|\.(?:to_date_string|date|isoformat)\(\)")
_SAME_DAY = {"ds_nodash": ("ds", 0), "tomorrow_ds": ("ds", 1), "tomorrow_ds_nodash": ("ds", 1)}
_SAME_DAY |= {"yesterday_ds": ("ds", -1), "yesterday_ds_nodash": ("ds", -1)}
_SAME_DAY |= dict.fromkeys(("data_interval_start", "execution_date", "logical_date"), ("ds", 0))
_SAME_DAY |= dict.fromkeys(("next_ds", "next_ds_nodash", "next_execution_date"), ("data_interval_end", 0))


@dataclass(frozen=True, slots=True)
class Value:
    """A date from outside, moved by months and then by seconds.

    `base` is the placeholder's name in small letters without what is written around it, `CLOCK`, or empty for a date
    that is written out: then `seconds` counts from the first day of year 1. `is_nameless` is a placeholder that only
    its place tells from others. `kind` says whether it was made a day or a time, empty where it was made neither.
    """

    base: str
    months: int = 0
    seconds: int = 0
    is_nameless: bool = False
    kind: str = ""

    def moved(self, *, months: int = 0, seconds: int = 0) -> Value:
        """Return the value that much later."""
        if not self.base and months:
            return replace(self, seconds=_later(self.seconds, months) + seconds)
        return replace(self, months=self.months + months, seconds=self.seconds + seconds)

    @property
    def is_written(self) -> bool:
        """Whether the date stands in the text itself."""
        return self.base == ""

    @property
    def is_midnight(self) -> bool:
        """Whether it is the first moment of a day, as far as its text says."""
        return self.seconds % _DAY_SECONDS == 0

    @property
    def is_last_second(self) -> bool:
        """Whether it is the last second of a day, as far as its text says."""
        return self.seconds % _DAY_SECONDS == _LAST_SECOND

    def key(self) -> tuple[str, int, int]:
        """Return what equal values have in common."""
        return self.base, self.months, self.seconds

    def minus(self, other: Value) -> float | None:
        """Return by how many seconds it is later than another, about so for months; None where that is not known."""
        if self.base != other.base:
            return None
        return (self.months - other.months) * 30.4 * _DAY_SECONDS + self.seconds - other.seconds


def _later(seconds: int, months: int) -> int:
    day = date(1, 1, 1) + timedelta(seconds=seconds)
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    if not 1 <= year <= 9998:
        return seconds
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    moved = date(year, month + 1, min(day.day, last))
    return (moved - date(1, 1, 1)).days * _DAY_SECONDS + seconds % _DAY_SECONDS


Names = Mapping[str, "str | Value"]
"""What a mark or a variable stands for: a placeholder as it is written, or the value that it is known to be."""


def value_of(node: exp.Expr, marks: Names, depth: int = 0) -> Value | None:
    """Return the date from outside that an expression is; None where it is none, or one that cannot be told."""
    if depth > _DEPTH_LIMIT:
        return None
    plain = _plain(node, marks)
    if plain is not None:
        return plain
    if isinstance(node, (*_PLUS, *_MINUS)):
        return _moved(node, marks, depth, -1 if isinstance(node, _MINUS) else 1)
    if isinstance(node, exp.AddMonths):
        count = _number(node.expression)
        inner = value_of(node.this, marks, depth + 1)
        return inner.moved(months=count) if inner is not None and count is not None else None
    if isinstance(node, exp.DPipe | exp.Concat):
        return _joined(node, marks, depth)
    if isinstance(node, exp.LastDay) and node.args.get("unit") is None:
        month = _begin_of(node.this, "MONTH", marks, depth)
        return month.moved(months=1, seconds=-_DAY_SECONDS) if month is not None else None
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc | exp.DatetimeTrunc):
        unit = node.args.get("unit")
        name = unit.name.upper() if unit is not None else ""
        if name not in ("DAY", "DD"):
            return _begin_of(node.this, {"MM": "MONTH", "MON": "MONTH"}.get(name, name), marks, depth)
    inner_node, kind = _unwrapped(node)
    inner = value_of(inner_node, marks, depth + 1) if inner_node is not None else None
    if inner is None:
        return None
    if kind == "day" and inner.base == "":
        inner = replace(inner, seconds=inner.seconds - inner.seconds % _DAY_SECONDS)
    return replace(inner, kind=kind or inner.kind)


def _plain(node: exp.Expr, marks: Names) -> Value | None:
    """Return the value of a literal, a placeholder or the clock."""
    if isinstance(node, exp.Literal):
        return _literal(node.name, marks)
    if isinstance(node, exp.Column) and not node.table and (MARK.fullmatch(node.name) or node.name.lower() in marks):
        return _meant(node.name, marks)
    if isinstance(node, exp.Parameter | exp.Placeholder):
        return named(node.name) if node.name else Value("?", is_nameless=True)
    is_column_clock = isinstance(node, exp.Column) and not node.table and node.name.lower() in COLUMN_CLOCKS
    is_call = isinstance(node, exp.Anonymous) and str(node.this).lower() in CLOCK_NAMES
    if isinstance(node, _CLOCKS) or is_column_clock or is_call:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        is_day = isinstance(node, exp.CurrentDate | exp.UtcDate) or name in ("today", "curdate", "yesterday")
        return Value(CLOCK, kind="day" if is_day else "time")
    if isinstance(node, exp.DateFromParts):
        parts = [_number(node.args.get(name)) for name in ("year", "month", "day")]
        return _date(*parts) if all(part is not None for part in parts) else None
    return None


def _meant(name: str, marks: Names) -> Value:
    """Return what a mark or a variable stands for."""
    found = marks.get(name) or marks.get(name.lower()) or name
    return named(found) if isinstance(found, str) else found


def named(text: str) -> Value:
    """Return the value of a placeholder as it is written: `:start`, `%(start)s`, `${start}`, `{{ ds }}`."""
    if _NAMELESS.fullmatch(text):
        return Value("?", is_nameless=True)
    inside = " ".join(_PLACEHOLDER.sub(r"\1", text).lower().split())
    inside = inside.split(":")[-1] if re.fullmatch(r"[\w:]+", inside) else inside
    macro = _DAY_MACRO.fullmatch(inside)
    if macro is not None:
        return Value(macro[1], seconds=int(macro[2]) * _DAY_SECONDS, kind="day")
    plain = _FILTER.sub("", inside)
    base, days = _SAME_DAY.get(plain, (plain, 0))
    return Value(base, seconds=days * _DAY_SECONDS)


def _literal(text: str, marks: Names) -> Value | None:
    mark = MARK.match(text.strip())
    if mark is not None:
        rest = text.strip()[mark.end() :]
        time = _CLOCK_TIME.fullmatch(rest)
        if rest and time is None:
            return None
        whole = _meant(mark[0], marks)
        return whole if time is None else replace(whole.moved(seconds=_time_of(time)), kind="time")
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    value = _date(int(found[1]), int(found[2]), int(found[3]))
    if value is None or found[4] is None:
        return value
    hour, minute, second = int(found[4]), int(found[5]), int(found[6] or 0)
    return replace(value.moved(seconds=hour * 3600 + minute * 60 + second), kind="time")


def _time_of(found: re.Match[str]) -> int:
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)


def _date(year: int | None, month: int | None, day: int | None) -> Value | None:
    try:
        made = date(year or 0, month or 0, day or 0)
    except ValueError:
        return None
    return Value("", seconds=(made - date(1, 1, 1)).days * _DAY_SECONDS)


def _moved(node: exp.Expr, marks: Names, depth: int, sign: int) -> Value | None:
    start, by = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(start, exp.Interval):
        start, by = by, start
    value = value_of(start, marks, depth + 1)
    if value is None:
        return None
    unit: exp.Expr | str | None = node.args.get("unit")
    if isinstance(by, exp.Interval):
        unit, by = by.args.get("unit"), by.this
    elif isinstance(node, exp.Add | exp.Sub):
        unit = "DAY"
    return _by(value, by, unit, sign)


def _by(value: Value, by: exp.Expr | None, unit: exp.Expr | str | None, sign: int) -> Value | None:
    name = unit if isinstance(unit, str) else unit.name if unit is not None else "DAY"
    count = _number(by)
    name = (name or "DAY").upper()
    if name not in _MONTHS and name not in _SECONDS and name not in _TINY:
        name = name.removesuffix("S")
    if count is None:
        return None
    if name in _MONTHS:
        return value.moved(months=sign * count * _MONTHS[name])
    if name in _SECONDS:
        return value.moved(seconds=sign * count * _SECONDS[name])
    if name in _TINY:  # the last moment before: as if it were a second
        return value.moved(seconds=-1 if sign * count < 0 else 1)
    return None


def _number(node: exp.Expr | None) -> int | None:
    """Return the whole number that an expression is: a literal, one with a minus, or a product of such."""
    if node is None:
        return None
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Mul):
        left, right = _number(node.this), _number(node.expression)
        return None if left is None or right is None else left * right
    if isinstance(node, exp.Cast):
        return _number(node.this)
    if not isinstance(node, exp.Literal):
        return None
    try:
        number = Decimal(node.name)
    except InvalidOperation:
        return None
    return int(number) if number == number.to_integral_value() and abs(number) < 10**6 else None


def _begin_of(node: exp.Expr, unit: str, marks: Names, depth: int) -> Value | None:
    """Return the first day of the month, or another unit, in which a value lies."""
    inner = value_of(node, marks, depth + 1)
    if inner is None or inner.is_nameless or not unit:
        return None
    if inner.is_written and unit == "MONTH":
        day = date(1, 1, 1) + timedelta(seconds=inner.seconds)
        return _date(day.year, day.month, 1)
    if inner.base == CLOCK:
        return replace(inner, kind="day")
    base = f"{unit.lower()} of {inner.base} {inner.months} {inner.seconds}"
    return Value(base, kind="day")


def _joined(node: exp.Expr, marks: Names, depth: int) -> Value | None:
    """Return the value of a placeholder with a time of day after it, put together as text."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    if len(parts) != 2 or not isinstance(parts[1], exp.Literal):
        return None
    value = value_of(parts[0], marks, depth + 1)
    time = _CLOCK_TIME.fullmatch(parts[1].name)
    return replace(value.moved(seconds=_time_of(time)), kind="time") if value is not None and time is not None else None


def _unwrapped(node: exp.Expr) -> tuple[exp.Expr | None, str]:
    """Return what a cast or a like function is of, and whether it makes a day or a time of it."""
    if isinstance(node, exp.Convert):
        return node.expression, _kind_of(node.this)
    if isinstance(node, exp.Cast | exp.TryCast):
        return node.this, _kind_of(node.to)
    if isinstance(node, exp.Date | exp.DateStrToDate | exp.StrToDate | exp.TsOrDsToDate):
        return node.this, "day"
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc | exp.DatetimeTrunc):
        unit = node.args.get("unit")
        is_day = unit is not None and unit.name.upper() in ("DAY", "DD")
        return (node.this, "day") if is_day else (None, "")
    if isinstance(node, exp.Anonymous):
        return _unwrapped_call(node)
    return (node.this, "") if isinstance(node, _WRAPPERS) else (None, "")


def _unwrapped_call(node: exp.Anonymous) -> tuple[exp.Expr | None, str]:
    name = str(node.this).lower()
    if name in ("adddays", "subtractdays", "addmonths", "subtractmonths") and len(node.expressions) == 2:
        unit = exp.var("DAY" if name.endswith("days") else "MONTH")
        kind = exp.DateAdd if name.startswith("add") else exp.DateSub
        return kind(this=node.expressions[0].copy(), expression=node.expressions[1].copy(), unit=unit), ""
    if name not in _WRAPPER_NAMES or not node.expressions:
        return None, ""
    at = 1 if name == "parse_date" and len(node.expressions) > 1 else 0
    return node.expressions[at], "day" if "date" in name and "time" not in name else ""


def _kind_of(to: exp.Expr) -> str:
    if not isinstance(to, exp.DataType):
        return ""
    if to.this in (exp.DataType.Type.DATE, exp.DataType.Type.DATE32):
        return "day"
    return "time" if to.this in exp.DataType.TEMPORAL_TYPES else ""
