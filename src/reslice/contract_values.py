"""The values that stand in `reslice.yml`: how each is read, what it becomes, and what is said when it is not one.

Each is a type that pydantic validates by one small function, with the JSON Schema that an editor checks it by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from reslice.contract import Action, ClosedThrough, Method, StampValue, Unit

_SHOWN_LENGTH = 60
_DAYS_LIMIT = 36500
_WAIT_LIMIT = timedelta(days=24)
"""Engines count a timeout in milliseconds of 31 bits."""

_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*%")
_DURATION = re.compile(r"([0-9]{1,10})\s*(ms|s|m|h)")
_DAYS_AGO = re.compile(r"([0-9]{1,5}) days? ago")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DURATION_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
_LOCAL_ZONES = frozenset({"localtime", "posixrules", "Factory"})

Word = TypeVar("Word", bound=StrEnum)


def shown(value: object) -> str:
    """Return how a message shows a value of the file: short and on one line."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(str(value), _SHOWN_LENGTH)


def one_line(text: str, length: int = 4096) -> str:
    """Return text as a message shows it: on one line, cut to a length, and without a URL, which could hold a secret."""
    if "://" in text:
        return "a URL"
    line = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[: length + 1])
    return line if len(text) <= length else f"{line[:length]}…"


def near(word: object, words: Mapping[str, Any] | list[str] | tuple[str, ...] | set[str]) -> str:
    """Return `; did you mean X?` when one of `words` looks like `word`, else nothing."""
    by_small = {each.casefold(): each for each in words}
    found = get_close_matches(str(word).casefold(), by_small, n=1)
    return f"; did you mean {by_small[found[0]]}?" if found else ""


def _wrong(expected: str, value: object, hint: str = "") -> PydanticCustomError:
    message = f"expected {expected}, found {shown(value)}{hint}"
    return PydanticCustomError("contract", "{message}", {"message": message})


def _text(value: object) -> str:
    if not isinstance(value, str):
        hint = "; write it in quotes" if isinstance(value, int | Decimal) else ""
        raise _wrong("text", value, hint)
    if not value.strip():
        raise _wrong("text that is not empty", "nothing")
    return value


def _one_of(words: type[Word], *allowed: Word) -> Callable[[object], Word]:
    names = [str(word) for word in (allowed or tuple(words))]

    def read(value: object) -> Word:
        if isinstance(value, str) and value in names:
            return words(value)
        raise _wrong(f"one of {', '.join(names)}", value, near(value, names))

    return read


def _choice(words: type[Word], *allowed: Word) -> Any:
    names = [str(word) for word in (allowed or tuple(words))]
    return Annotated[words, PlainValidator(_one_of(words, *allowed)), WithJsonSchema({"enum": names})]


def _whole(lowest: int, highest: int) -> Any:
    def read(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
            return value
        raise _wrong(f"a whole number from {lowest} to {highest}", value)

    schema = {"type": "integer", "minimum": lowest, "maximum": highest}
    return Annotated[int, PlainValidator(read), WithJsonSchema(schema)]


def _number(value: object) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        number = Decimal(value)
        digits = f"{number:f}".lstrip("+-0").partition(".")
        if len(digits[0]) + len(digits[2]) <= 38 and len(digits[2]) <= 18:
            return number
    raise _wrong("a number of at most 38 digits, 18 behind the point", value)


def _timezone(value: object) -> str:
    name = value if isinstance(value, str) else ""
    try:
        if not name or name in _LOCAL_ZONES or name.startswith(("posix/", "right/")):
            raise ValueError(name)
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise _wrong("a time zone such as Europe/Amsterdam", value, near(name, available_timezones())) from None
    return name


def _change(value: object) -> Decimal | None:
    if value == "allow":
        return None
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        hint = ""
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and 0 <= value < 10**6:
            percent = value * 100 if value <= 1 else value
            hint = f"; did you mean {Decimal(percent).normalize():f}%?"
        raise _wrong("a percentage such as 50%, or allow", value, hint)
    return Decimal(found[1]) / 100


def _closed_through(value: object) -> ClosedThrough:
    text = value if isinstance(value, str) else ""
    if text == "yesterday":
        return ClosedThrough(days_ago=1)
    ago = _DAYS_AGO.fullmatch(text)
    if ago is not None and 1 <= int(ago[1]) <= _DAYS_LIMIT:
        return ClosedThrough(days_ago=int(ago[1]))
    if _ISO_DATE.fullmatch(text):
        try:
            return ClosedThrough(on=date.fromisoformat(text))
        except ValueError:
            raise _wrong("a date of the calendar", value) from None
    raise _wrong(
        "yesterday, a number of days such as 2 days ago, or a date such as 2026-01-31", value, near(text, ["yesterday"])
    )


def _duration(shortest: timedelta, *, or_none: bool = False) -> Any:
    words = "a time such as 10m, 5s, 500ms or 1h" + (", or none" if or_none else "")

    def read(value: object) -> timedelta | None:
        if or_none and value == "none":
            return None
        found = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            hint = f"; did you mean {value}s?" if isinstance(value, int) and not isinstance(value, bool) else ""
            raise _wrong(words, value, hint)
        time = timedelta(**{_DURATION_UNITS[found[2]]: int(found[1])})
        if not shortest <= time <= _WAIT_LIMIT:
            raise _wrong("a time of 24 days at most, and above zero where 0 would mean no limit", value)
        return time

    pattern = "^[0-9]+ *(ms|s|m|h)$" + ("|^none$" if or_none else "")
    kind = timedelta | None if or_none else timedelta
    return Annotated[kind, PlainValidator(read), WithJsonSchema({"type": "string", "pattern": pattern})]


def _version(value: object) -> int:
    if type(value) is int and value == 1:
        return 1
    raise _wrong("1, the version this reslice reads", value)


class NullsWord(StrEnum):
    """Whether a column may hold NULL."""

    ALLOW = "allow"
    REFUSE = "refuse"


_TEXT_SCHEMA = {"type": "string", "minLength": 1}
_CLOSED_SCHEMA = {"type": "string", "pattern": r"^yesterday$|^[0-9]+ days? ago$|^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_PERCENT_SCHEMA = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *%$|^allow$"}
Text = Annotated[str, PlainValidator(_text), WithJsonSchema(_TEXT_SCHEMA)]

Number = Annotated[Decimal, PlainValidator(_number), WithJsonSchema({"type": "number"})]
TimeZone = Annotated[str, PlainValidator(_timezone), WithJsonSchema(_TEXT_SCHEMA)]
TotalChange = Annotated[Decimal | None, PlainValidator(_change), WithJsonSchema(_PERCENT_SCHEMA)]
Closed = Annotated[ClosedThrough, PlainValidator(_closed_through), WithJsonSchema(_CLOSED_SCHEMA)]
Version = Annotated[int, PlainValidator(_version), WithJsonSchema({"const": 1})]
if TYPE_CHECKING:
    Nulls = NullsWord
    SliceUnit = Unit
    PublishMethod = Method
    FilledBy = StampValue
    StopReportOrAllow = Action
    StopOrAllow = Action
    Scale = int
    SliceLimit = int
    KeepDays = int
    WaitTime = timedelta
    LockTime = timedelta
    StatementTime = timedelta | None
else:
    Nulls = _choice(NullsWord)
    SliceUnit = _choice(Unit)
    PublishMethod = _choice(Method)
    FilledBy = _choice(StampValue)
    StopReportOrAllow = _choice(Action)
    StopOrAllow = _choice(Action, Action.STOP, Action.ALLOW)
    Scale = _whole(0, 18)
    SliceLimit = _whole(1, 100_000_000)
    KeepDays = _whole(1, _DAYS_LIMIT)
    WaitTime = _duration(timedelta(0))
    LockTime = _duration(timedelta(milliseconds=1))
    StatementTime = _duration(timedelta(milliseconds=1), or_none=True)
