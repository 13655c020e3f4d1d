"""Which columns tell the rows of a table apart: by what a write groups by, else by the table's keys, else by its rows.

Where rows repeat a key, that is said: it may be the accident that a run heals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reslice.contract import SliceColumn
from reslice.engines.base import Survey
from reslice.init.draft import Hints
from reslice.init.names import is_identifier, is_prose
from reslice.layout import counted
from reslice.profile import KeyCount, Profile
from reslice.tables import Column, Family, Target

_TELLING = frozenset({Family.TEXT, Family.ENUM, Family.BOOLEAN, Family.UUID, Family.TIME})
_INEXACT = frozenset({Family.FLOAT, Family.OTHER})
_COLUMNS_COMPARED = 6
"""Attributes are looked for among so many columns at most: every pair of them is counted."""


@dataclass(frozen=True, slots=True)
class Grain:
    """The columns of the grain in the table's order, why, and what is not sure."""

    columns: tuple[str, ...]
    why: str
    unsure: tuple[str, ...] = ()


def grain_of(
    survey: Survey, target: Target, columns: Sequence[Column], profile: Profile, slice_of: SliceColumn, known: Hints
) -> Grain:
    """Return the grain of a table whose slice is chosen; `columns` are those a source may compute."""
    names = [column.name for column in columns]
    keys = [key for key in target.keys if slice_of.column in key and _is_exact(key, columns)]
    if known.grain is not None and set(known.grain) <= set(names):
        wanted = _ordered({*known.grain, slice_of.column}, names)
        return _with_rows(survey, target, slice_of, Grain(wanted, known.grain_why, _disagreeing(wanted, keys)), profile)
    if keys:
        rest = [f"unique as well: {', '.join(_ordered(key, names))}" for key in keys[1:]]
        return Grain(_ordered(keys[0], names), "; ".join(["a key of the table", *rest]))
    doubts = _unusable(target, slice_of)
    telling = [
        slice_of.column,
        *(each.name for each in columns if each.name != slice_of.column and _tells(each, profile)),
    ]
    if not profile.rows:
        why = "by types and names; the table is empty and has no key"
        doubt = "grain: by types and names alone, since the table is empty and no key says it"
        return Grain(_ordered(telling, names), why, (*doubts, doubt))
    found = _by_rows(survey, target, slice_of, telling, columns)
    return Grain(_ordered(found.columns, names), found.why, (*doubts, *found.unsure))


def _is_exact(key: Iterable[str], columns: Sequence[Column]) -> bool:
    present = {column.name: column for column in columns}
    return all(name in present and present[name].family not in _INEXACT for name in key)


def _ordered(wanted: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    chosen = set(wanted)
    return tuple(name for name in names if name in chosen)


def _disagreeing(wanted: Sequence[str], keys: Sequence[frozenset[str]]) -> tuple[str, ...]:
    if not keys or frozenset(wanted) in keys:
        return ()
    return (f"grain: the job says {', '.join(wanted)}; the table's own key is {', '.join(sorted(keys[0]))}",)


def _unusable(target: Target, slice_of: SliceColumn) -> tuple[str, ...]:
    """Say which keys of the table are none for a grain: those without the slice column."""
    return tuple(
        f"grain: the key on {', '.join(sorted(key))} is left aside, since {slice_of.column} is not in it"
        for key in target.keys
        if slice_of.column not in key and not any(target.column(name).fill != "plain" for name in key)
    )


def _tells(column: Column, profile: Profile) -> bool:
    """Whether a column is likely to be a part of the grain, by type and name; a number that never changes is none."""
    if column.family is Family.INTEGER:
        found = profile.columns.get(column.name)
        is_constant = found is not None and found.distinct == 1 and profile.rows > 1
        return is_identifier(column.name) and not is_constant
    return column.family in _TELLING and not is_prose(column.name)


def _with_rows(survey: Survey, target: Target, slice_of: SliceColumn, grain: Grain, profile: Profile) -> Grain:
    """Say where the rows repeat the grain that is otherwise known."""
    if not profile.rows or frozenset(grain.columns) in target.keys:
        return grain
    counted_keys = survey.count_keys(target, slice_of.column, [grain.columns])
    return Grain(grain.columns, grain.why, (*grain.unsure, *_repeated(grain.columns, counted_keys, 0)))


def _repeated(columns: Sequence[str], found: KeyCount, place: int) -> tuple[str, ...]:
    surplus = found.rows - found.keys[place]
    if not surplus:
        return ()
    text = f"grain: {counted(surplus, 'row')} of {found.rows} {'repeats' if surplus == 1 else 'repeat'} a key of"
    example = f", such as {found.example}" if found.example else ""
    return (f"{text} {', '.join(columns)}{example}: doubled rows, which a run heals, or the grain lacks a column",)


def _by_rows(
    survey: Survey, target: Target, slice_of: SliceColumn, telling: list[str], columns: Sequence[Column]
) -> Grain:
    """Return the likely columns when no two rows agree in them; with one column more when that tells rows apart."""
    others = [each.name for each in columns if each.name not in telling and _could_tell(each)][:_COLUMNS_COMPARED]
    sets = [telling, *([*telling, name] for name in others)]
    found = survey.count_keys(target, slice_of.column, sets)
    why = f"no key is declared; no two of {found.rows} rows agree in it"
    if found.rows < 2:
        why = "no key is declared, and one row tells nothing"
    if found.keys[0] == found.rows:
        return _without_attributes(survey, target, slice_of, telling, columns, why)
    for name, keys in zip(others, found.keys[1:], strict=True):
        if keys == found.rows:
            doubt = f"grain: {name} is in it because rows share the other columns; look whether it is one"
            return Grain((*telling, name), why, (doubt,))
    return Grain(tuple(telling), "no key is declared, and the rows repeat it", _repeated(telling, found, 0))


def _could_tell(column: Column) -> bool:
    """Whether a column may have to be a part of the grain when the likely ones do not suffice."""
    return column.family in (Family.DATE, Family.INTEGER, Family.TEXT, Family.TIMESTAMP, Family.TIMESTAMPTZ)


def _without_attributes(
    survey: Survey, target: Target, slice_of: SliceColumn, telling: list[str], columns: Sequence[Column], why: str
) -> Grain:
    """Take out columns that always go with another one: a name that goes with an id says nothing more."""
    doubt = (f"grain: {', '.join(telling)}; {why}",)
    free = [name for name in telling if name != slice_of.column]
    if not 2 <= len(free) <= _COLUMNS_COMPARED:
        return Grain(tuple(telling), why, doubt)
    singles = [[name] for name in free]
    pairs = [(kept, gone) for kept in free for gone in free if kept != gone]
    found = survey.count_keys(target, slice_of.column, [*singles, *map(list, pairs)])
    distinct = dict(zip(free, found.keys, strict=False))
    together = dict(zip(pairs, found.keys[len(free) :], strict=True))
    identifiers = {each.name for each in columns if is_identifier(each.name)}
    removed: dict[str, str] = {}
    for kept, gone in pairs:
        goes_with = together[kept, gone] == distinct[kept] > 1 and found.rows >= 2 * distinct[kept]
        is_attribute = gone not in identifiers and (kept in identifiers or distinct[gone] < distinct[kept])
        if goes_with and is_attribute and kept not in removed and gone not in removed and distinct[gone] > 1:
            removed[gone] = kept
    left = [name for name in telling if name not in removed]
    notes = [
        f"{gone} always goes with {kept}, so it is a measure and no part of the grain" for gone, kept in removed.items()
    ]
    return Grain(tuple(left), why, (f"grain: {', '.join(left)}; {why}", *notes))
