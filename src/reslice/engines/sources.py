"""The first text of a source, in SQL that every engine understands: over a table it seems to come from, or over none.

A table is proposed when it has every column of the grain, and columns for some of the measures, by name. Without one
the text names a relation that does not exist, so that a plan says what is missing and can publish nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reslice.contract import Unit
from reslice.engines.sql import quote
from reslice.values import Column, Family, Target

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = re.compile(
    "all|and|any|as|asc|by|case|cast|check|column|constraint|create|cross|current_date|default|desc|distinct|do|else|end"
    "|except|false|fetch|for|foreign|from|full|grant|group|having|in|inner|intersect|into|is|join|lateral|left|like"
    "|limit|natural|not|null|offset|on|only|or|order|outer|primary|qualify|references|returning|right|select|some|table"
    "|then|to|trailing|true|union|unique|using|values|when|where|window|with"
)
_COUNT = re.compile(r"(?:^|_)(?:count|cnt|counts|n|num|rows)(?:_|$)")
_FOLDED = re.compile(
    r"^(?P<before>total|sum|avg|mean|min|max)_(?P<x>.+)$|^(?P<y>.+)_(?P<after>total|sum|avg|mean|min|max)$"
)
_FOLDS = {"total": "sum", "mean": "avg"}
_INSTANTS = (Family.TIMESTAMP, Family.TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The text of a source and what it was made from; `table` is None where none fits. `unknown` are open measures."""

    text: str
    table: str | None
    unknown: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def skeleton(
    target: Target,
    grain: Sequence[str],
    measures: Sequence[str],
    slice_of: tuple[str, Unit],
    relations: Sequence[Target],
) -> Skeleton:
    """Return the first text of a source for a table; `slice_of` is its slice column and unit."""
    found = [
        candidate
        for each in relations
        if each.resolved != target.resolved
        for candidate in _candidate(target, grain, measures, slice_of, each)
    ]
    if not found:
        return Skeleton(_placeholder(target, grain, measures, slice_of[0]), None)
    best = max(found, key=lambda each: len(each.known))
    others = tuple(each.name for each in found if each is not best and len(each.known) == len(best.known))
    unknown = tuple(name for name in measures if name not in best.known)
    return Skeleton(_text(target, grain, measures, best), best.name, unknown, others)


def identifier(name: str) -> str:
    """Return a name as a person writes it: quoted only where it has to be."""
    return name if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name) else quote(name)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A relation that the target may be computed from: the slice expression, its filter, and the known measures."""

    name: str
    slice_column: str
    slice_expression: str
    condition: str
    known: dict[str, str]


def _candidate(
    target: Target, grain: Sequence[str], measures: Sequence[str], slice_of: tuple[str, Unit], relation: Target
) -> Iterator[_Candidate]:
    columns = {column.name.lower(): column for column in relation.columns}
    slice_column = target.column(slice_of[0])
    if not all(name.lower() in columns for name in grain if name != slice_column.name):
        return
    if {column.name.lower() for column in target.columns} <= set(columns):
        return  # a copy of the target, or a table made from it
    day = _day_column(slice_column, relation, columns)
    known = {name: text for name in measures for text in _aggregate(target.column(name), columns)}
    if day is None or not known:
        return
    name = identifier(relation.table)
    name = name if relation.schema in ("main", "public") else f"{identifier(relation.schema)}.{name}"
    yield _Candidate(name, slice_column.name, *_sliced(slice_column, slice_of[1], day), known)


def _day_column(wanted: Column, relation: Target, columns: dict[str, Column]) -> Column | None:
    """Return the column of the relation that the slice comes from: of its name, else the only one with a time."""
    same = columns.get(wanted.name.lower())
    if same is not None:
        return same if same.family is wanted.family or wanted.family in (Family.DATE, *_INSTANTS) else None
    timed = [column for column in relation.columns if column.family in (Family.DATE, *_INSTANTS)]
    return timed[0] if len(timed) == 1 and wanted.family in (Family.DATE, *_INSTANTS) else None


def _sliced(wanted: Column, unit: Unit, day: Column) -> tuple[str, str]:
    """Return the slice expression over a column of the relation, and the condition that keeps to the range."""
    name = identifier(day.name)
    if day.family in _INSTANTS:
        condition = f"{name} >= :start_instant AND {name} < :end_instant"
    else:
        condition = f"{name} BETWEEN :start AND :end"
    if day.family is wanted.family and (unit is Unit.DAY and day.family not in _INSTANTS):
        return name, condition
    if day.family not in (Family.DATE, *_INSTANTS):
        return name, condition
    if unit is Unit.DAY and wanted.family is Family.DATE:
        return f"CAST({name} AS DATE)", condition
    cut = f"date_trunc('{unit}', {name})"
    return (f"CAST({cut} AS DATE)" if wanted.family is Family.DATE else cut), condition


def _aggregate(measure: Column, columns: dict[str, Column]) -> Iterator[str]:
    """Yield how a measure seems to be computed, by its name; nothing when its name does not say."""
    name = measure.name.lower()
    same = columns.get(name)
    if same is not None and same.family.is_number and measure.family.is_number:
        yield f"sum({identifier(same.name)})"
        return
    folded = _FOLDED.match(name)
    if folded is not None:
        inner = columns.get(folded["x"] or folded["y"])
        word = folded["before"] or folded["after"]
        if inner is not None and inner.family.is_number:
            yield f"{_FOLDS.get(word, word)}({identifier(inner.name)})"
            return
    if measure.family is Family.INTEGER and _COUNT.search(name):
        yield "count(*)"


def _text(target: Target, grain: Sequence[str], measures: Sequence[str], candidate: _Candidate) -> str:
    lines = []
    for name in grain:
        written = identifier(name)
        if name == candidate.slice_column and candidate.slice_expression != written:
            written = f"{candidate.slice_expression} AS {written}"
        lines.append(written)
    for name in measures:
        value = candidate.known.get(name, f"CAST(NULL AS {target.column(name).type})")
        lines.append(f"{value} AS {identifier(name)}")
    return _select(lines, candidate.name, candidate.condition, len(grain))


def _placeholder(target: Target, grain: Sequence[str], measures: Sequence[str], slice_column: str) -> str:
    """Return a SELECT of the right names and types over a relation that has to be named first."""
    lines = [f"CAST({identifier(name)} AS {target.column(name).type}) AS {identifier(name)}" for name in grain]
    for name in measures:
        column = target.column(name)
        fold = "sum" if column.family.is_number else "max"
        lines.append(f"CAST({fold}({identifier(name)}) AS {column.type}) AS {identifier(name)}")
    condition = f"{identifier(slice_column)} BETWEEN :start AND :end"
    return _select(lines, identifier(f"source_of_{target.table}"), condition, len(grain))


def _select(lines: Sequence[str], relation: str, condition: str, grouped: int) -> str:
    columns = ",\n".join(f"    {line}" for line in lines)
    positions = ", ".join(str(place) for place in range(1, grouped + 1))
    return f"SELECT\n{columns}\nFROM {relation}\nWHERE {condition}\nGROUP BY {positions}\n"
