"""What a caller of the Python API gives, read into what the steps take; anything else is Misused, in four parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from reslice.errors import Failure, Misused
from reslice.ranges import Range

_RANGE = "a RANGE: text such as 2026-01-02 or 2026-01-01..2026-01-02, a date, or a reslice.Range"
_INTERVAL = "an interval: START and END, each text, a date or a datetime; END is not included"


def read_wait(value: object) -> timedelta:
    """Return a time to wait, given as the contract file writes it or as a timedelta; ValueError says what it is not."""
    from pydantic import TypeAdapter, ValidationError

    from reslice.contract_values import WaitTime

    text = f"{value // timedelta(milliseconds=1)}ms" if isinstance(value, timedelta) else value
    try:
        found: timedelta = TypeAdapter(WaitTime).validate_python(text)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from error
    return found


def wait(value: timedelta | str | None) -> timedelta | None:
    """Return how long to wait; None where nothing is given."""
    if value is None:
        return None
    try:
        return read_wait(value)
    except ValueError as error:
        raise _misused(
            "wait", "wait: a timedelta, or text", str(error), 'wait="10m", or wait=timedelta(minutes=10)'
        ) from error


def older_than(value: timedelta) -> timedelta:
    """Return an age, which is a timedelta and not below zero."""
    if isinstance(value, timedelta) and value >= timedelta(0):
        return value
    found = f"{value!r} is none"
    raise _misused("older_than", "older_than: a timedelta, zero or more", found, "older_than=timedelta(days=90)")


def slices(value: str | date | Range | None) -> str | Range | None:
    """Return which slices are meant; a date is read as its text is."""
    if value is None or isinstance(value, str | Range):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    found = f"{value!r} is of type {type(value).__name__}"
    raise _misused("RANGE", _RANGE, found, 'pass text: "2026-01-01..2026-01-02"')


def interval(value: Sequence[str | date] | None) -> tuple[str, str] | None:
    """Return a scheduler's interval as text."""
    if value is None:
        return None
    ends = [value] if isinstance(value, str) or not isinstance(value, Sequence) else [*value]
    texts = [each.isoformat() if isinstance(each, date) else each for each in ends]
    if len(texts) != 2 or not all(isinstance(each, str) for each in texts):
        raise _misused("interval", _INTERVAL, f"{value!r}", 'interval=("2026-01-01", "2026-01-02")')
    return texts[0], texts[1]


def guards(value: str | Sequence[str]) -> Sequence[str]:
    """Return the guards to let pass; a single one may stand alone."""
    return (value,) if isinstance(value, str) else value


def which_slices(verb: str, about: str, **given: Any) -> Misused:
    """Return the error for a call in which not exactly one of its arguments says which slices."""
    names = ", ".join(given)
    said = [name for name, value in given.items() if value is not None]
    found = f"{' and '.join(said)} are given" if said else f"which slices is not said: none of {names} is given"
    return _misused(about, f"one of {names}", found, f"reslice {verb} --help")


def _misused(about: str, asked: str, found: str, after: str) -> Misused:
    return Misused(about, [Failure("usage", asked, (found,), after)], unchanged="nothing was read or written")
