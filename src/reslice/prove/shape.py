"""Which columns of a table are looked at, and how: the grain, what is compared, and what is left out and why.

Without a contract every column outside the grain is compared, but for those that the database fills itself.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace

from reslice.contract import StampValue
from reslice.errors import Failure, Misused
from reslice.prove.values import Subject
from reslice.stage import SLICE_FAMILIES
from reslice.tables import Column, Family, Fill, Target

FLOAT_SCALE = 6
"""Digits behind the point at which a float is compared whose scale nobody declares: sums of floats move below it."""

_STAMP_NAME = re.compile(
    r"(^|_)(loaded|updated|inserted|created|ingested|modified|processed|synced|load|run|batch|job|etl|dlt)(_|$)"
)
_STAMP_FAMILIES = frozenset({Family.TIMESTAMP, Family.TIMESTAMPTZ, Family.TEXT, Family.UUID})


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table as the evidence holds them, and from where its rows are read."""

    target: Target
    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    ignored: tuple[str, ...]
    numbered: tuple[str, ...]
    scales: dict[str, int | None]
    required: tuple[str, ...]
    """Columns of the grain that may not be NULL."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The grain and what is compared."""
        return (*self.keys, *self.values)

    @property
    def numbers(self) -> tuple[Column, ...]:
        """The compared columns that can be summed."""
        return tuple(column for column in self.values if column.family.is_number)


def shape_of(subject: Subject, target: Target) -> Shape:
    """Return what is compared of a table; Misused[usage] when a column that is named is not there."""
    known = {column.name.lower(): column.name for column in target.columns}
    names = [column.name for column in target.columns]
    wanted = [*subject.grain, *([subject.slice.column] if subject.slice is not None else []), *subject.ignored]
    if subject.contract is not None:
        wanted += subject.contract.columns
    missing = [name for name in dict.fromkeys(wanted) if name not in names and name.lower() not in known]
    if missing:
        raise _no_columns(subject, target, missing)
    spelled = {name: name if name in names else known[name.lower()] for name in wanted}
    grain = [spelled[name] for name in subject.grain]
    declared = {} if subject.contract is None else {each.name: each.scale for each in subject.contract.measures}
    ignored = _ignored(subject, names, spelled)
    numbered = tuple(each.name for each in target.columns if each.fill is not Fill.PLAIN and each.name not in declared)
    left_out = {*grain, *ignored, *numbered}
    values = [each for each in target.columns if each.name not in left_out]
    if subject.contract is not None:
        values = [each for each in values if each.name in declared]
    _refuse_float_keys(subject, target, grain)
    nulls = set() if subject.contract is None else {each.name for each in subject.contract.grain if each.nulls_allowed}
    return Shape(
        target,
        tuple(_held(target.column(name)) for name in grain),
        tuple(_held(each) for each in values),
        tuple(ignored),
        tuple(name for name in numbered if name not in grain),
        {
            each.name: declared.get(each.name, FLOAT_SCALE) if each.family is Family.FLOAT else None
            for each in target.columns
        },
        tuple(name for name in grain if name not in nulls),
    )


def refitted(shape: Shape, subject: Subject, target: Target) -> Shape:
    """Return the same columns of the table as it is now; Misused[usage] when one of them is gone."""
    names = {column.name for column in target.columns}
    missing = [column.name for column in shape.columns if column.name not in names]
    if missing:
        raise _no_columns(subject, target, missing)
    return replace(shape, target=target)


def check_slice(subject: Subject, shape: Shape) -> Column | None:
    """Return the column of the slice, None where there is no range; Misused when a range cannot be told by it."""
    if subject.scope is None or subject.slice is None:
        return None
    named = subject.slice.column
    column = next(each for each in shape.target.columns if each.name.lower() == named.lower())
    if column.family not in SLICE_FAMILIES:
        found = f"{column.name} is {column.type}; a slice column is a date, timestamp, ISO text or integer yyyymmdd"
        raise misused(subject.name, "a range of a slice column", found, "name another --slice-column")
    return column


def looks_like_a_stamp(column: Column) -> bool:
    """Whether a column seems to say when or by which run its row was written."""
    if column.family in (Family.TIMESTAMP, Family.TIMESTAMPTZ):
        return True
    return column.family in _STAMP_FAMILIES and _STAMP_NAME.search(column.name.lower()) is not None


def misused(about: str, asked: str, found: str, after: str) -> Misused:
    """Return the error for a proof that cannot be started as it is asked for."""
    return Misused(about, [Failure("usage", asked, (found,), after)], unchanged="the command was not run")


def _refuse_float_keys(subject: Subject, target: Target, grain: list[str]) -> None:
    floats = [name for name in grain if target.column(name).family is Family.FLOAT]
    if floats:
        found = f"{', '.join(floats)} is a float, of which two are seldom the same"
        raise misused(subject.name, "a grain of exact values", found, "name a --grain without it")


def _ignored(subject: Subject, names: list[str], spelled: dict[str, str]) -> list[str]:
    """Return the columns that are left out because somebody says so: by word, or as a stamp of the contract."""
    stamps = () if subject.contract is None else subject.contract.stamps
    assert all(stamp.value in StampValue for stamp in stamps), "a stamp is one that reslice knows"
    named = [spelled[name] for name in subject.ignored]
    return [*named, *(stamp.column for stamp in stamps if stamp.column in names and stamp.column not in named)]


def _held(column: Column) -> Column:
    """Return a column as the evidence holds it: a type of no known family as its text."""
    return replace(column, family=Family.TEXT, type="text", base="") if column.family is Family.OTHER else column


def _no_columns(subject: Subject, target: Target, missing: list[str]) -> Misused:
    names = [column.name for column in target.columns]
    words = []
    for name in missing:
        near = difflib.get_close_matches(name, names, n=1)
        words.append(f"{target.beside} has no column {name}" + (f"; did you mean {near[0]}?" if near else ""))
    failures = [Failure("usage", "columns that the table has", tuple(words), f"it has {', '.join(names)}")]
    error = Misused(subject.name, failures, unchanged="the command was not run")
    near = difflib.get_close_matches(missing[0], names, n=1)
    error.meant = (missing[0], near[0]) if near and subject.contract is None else None
    return error
