"""Which column decides the slice, and how long a slice is: from types, keys, values and, last, names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from reslice import moments
from reslice.contract import SliceColumn, Unit
from reslice.init.names import is_day, is_stamp_date, unit_of
from reslice.layout import counted
from reslice.profile import ColumnProfile, Profile, SliceValues
from reslice.tables import Column, Family

_TYPED = (Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ)
_COARSE = (Unit.QUARTER, Unit.MONTH, Unit.WEEK)
_HOURS_OF_DAYS = 20
_VALUES_TO_TELL = 3
"""So many values have to begin a month before a month is believed: any one day may."""


@dataclass(frozen=True, slots=True)
class SliceChoice:
    """The slice that is proposed, why, its newest value as it is typed, and what is not sure about it."""

    slice: SliceColumn
    why: str
    newest: str
    unsure: tuple[str, ...]


def candidates(columns: Sequence[Column], profile: Profile, key: frozenset[str]) -> list[str]:
    """Return the columns that could decide the slice, the most likely first; none when there is none."""
    found = [column for column in columns if could_be_slice(column, profile)]
    place = {column.name: index for index, column in enumerate(columns)}
    return [each.name for each in sorted(found, key=lambda each: (-_likelihood(each, profile, key), place[each.name]))]


def could_be_slice(column: Column, profile: Profile) -> bool:
    """Whether every value of a column could be a slice; in an empty table, whether its type or name says so."""
    found = profile.columns.get(column.name)
    if profile.rows and found is not None and found.nulls < profile.rows_counted:
        return found.slices is not None
    is_named = column.family in (Family.TEXT, Family.INTEGER) and is_day(column.name)
    return column.family in _TYPED or (is_named and not column.name.lower().endswith("_id"))


def _likelihood(column: Column, profile: Profile, key: frozenset[str]) -> int:
    found = profile.columns.get(column.name, ColumnProfile(column))
    points = {Family.DATE: 5, Family.TIMESTAMPTZ: 4, Family.TIMESTAMP: 4}.get(column.family, 2)
    points += 100 if column.name in key else 0
    points += 5 if is_day(column.name) else 0
    points -= 40 if is_stamp_date(column.name) else 0
    points -= 30 if found.nulls else 0
    if found.slices is not None:
        points += 20 if found.slices.units else -50
    return points


def choose(column: Column, profile: Profile, unit: Unit | None = None, timezone: str = "") -> SliceChoice:
    """Return the slice that the values of a column suggest; `unit` and `timezone` are already known when given."""
    values = (profile.columns.get(column.name) or ColumnProfile(column)).slices
    if values is None:
        named = unit or unit_of(column.name) or Unit.DAY
        if column.family in (Family.DATE, Family.TEXT, Family.INTEGER) and named is Unit.HOUR:
            named = Unit.DAY
        why = f"{column.type}; no row tells the unit"
        doubt = f"slice: no row tells how long a slice is; {named} is a guess from the name of {column.name}"
        unsure = () if unit else (doubt,)
        return SliceChoice(SliceColumn(column.name, named, timezone or "UTC"), why, "", unsure)
    found, doubts = _unit(column, values) if unit is None else (unit, _doubts_of(column, values, unit))
    zone = timezone or (values.zone if found in values.units else "UTC")
    declared = SliceColumn(column.name, found, zone)
    newest, oldest = (_label(text, column, declared) for text in (values.last, values.first))
    span = f"{oldest} to {newest}" if oldest != newest else newest
    sample = " in a sample of the rows" if profile.rows_seen < profile.rows else ""
    why = f"{counted(values.distinct, 'value')}{sample}, {span}"
    if found is Unit.HOUR and _is_sparse(values):
        doubts.append(
            "slice: values are hours, most of them a day or more apart; days of a zone? then say so: timezone"
        )
    if zone != "UTC" and not timezone:
        doubts.append(f"slice: the values begin a {found} in {zone}, the zone of this session, and not in UTC")
    return SliceChoice(declared, why, newest, tuple(doubts))


def _unit(column: Column, values: SliceValues) -> tuple[Unit, list[str]]:
    """Return the longest unit that every value begins, when there are enough values to believe it."""
    named = unit_of(column.name)
    coarse = [unit for unit in _COARSE if unit in values.units]
    if named in values.units and named in coarse:
        return named, []
    if coarse and values.distinct >= _VALUES_TO_TELL:
        return coarse[0], _year_doubt(coarse[0], values)
    if coarse:
        few = "the only value begins" if values.distinct == 1 else "both values begin"
        return Unit.DAY, [f"slice: {few} a {coarse[0]}; with so few, day is proposed"]
    if Unit.DAY in values.units:
        return Unit.DAY, []
    if Unit.HOUR in values.units:
        return Unit.HOUR, []
    return Unit.DAY, _doubts_of(column, values, Unit.DAY)


def _doubts_of(column: Column, values: SliceValues, unit: Unit) -> list[str]:
    if unit in values.units:
        return []
    text = f"slice: values of {column.name} lie within a {unit}; a target holds the first moment of each {unit}"
    return [f"{text}: truncate them once, or choose another column"]


def _year_doubt(unit: Unit, values: SliceValues) -> list[str]:
    """Say that the values are years, where they are quarters that all begin one, one value per year."""
    if unit is not Unit.QUARTER or int(values.last[:4]) - int(values.first[:4]) + 1 != values.distinct:
        return []
    return ["slice: one value per year; there are no slices of a year, and a quarter will do"]


def _is_sparse(values: SliceValues) -> bool:
    """Whether hours lie so far apart that they are likely to be days, or longer, of another zone."""
    try:
        first, last = (datetime.fromisoformat(text) for text in (values.first, values.last))
    except ValueError:
        return False
    return values.distinct > 1 and (last - first).total_seconds() / 3600 / (values.distinct - 1) >= _HOURS_OF_DAYS


def _label(text: str, column: Column, declared: SliceColumn) -> str:
    """Return a value as it is typed in a range; where it is within a slice, that slice, or its day for hours."""
    unit, zone = declared.unit, declared.timezone
    try:
        return moments.label(moments.moment_from_column(text, column.family.value, unit, zone), unit, zone)
    except ValueError:
        digits = text.replace("-", "")[:8]
    try:
        day = date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return ""
    return day.isoformat() if unit is Unit.HOUR else moments.label(moments.slice_of(day, unit), unit, zone)
