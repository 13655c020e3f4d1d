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
from reslice.tables import Column, Family, Target

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = re.compile(
    "all|analyse|analyze|and|anti|any|array|as|asc|asof|asymmetric|at|authorization|between|bigint|"
    "binary|bit|boolean|both|by|case|cast|char|character|check|coalesce|collate|collation|column|"
    "columns|concurrently|constraint|create|cross|current_date|current_timestamp|dec|decimal|default|"
    "deferrable|desc|describe|distinct|do|else|end|except|exists|extract|false|fetch|float|for|foreign|"
    "freeze|from|full|generated|glob|grant|group|grouping|grouping_id|having|ilike|in|initially|inner|"
    "inout|int|integer|intersect|interval|into|is|isnull|join|lambda|lateral|leading|left|like|limit|"
    "map|national|natural|nchar|none|not|notnull|null|nullif|numeric|offset|on|only|or|order|out|"
    "outer|overlaps|overlay|pivot|pivot_longer|pivot_wider|placing|position|positional|precision|primary|"
    "qualify|real|references|returning|right|row|select|semi|setof|show|similar|smallint|some|struct|"
    "substring|summarize|symmetric|table|tablesample|then|time|timestamp|to|trailing|treat|trim|true|"
    "try_cast|tuple|union|unique|unpack|unpivot|user|using|values|varchar|variadic|verbose|when|where|"
    "window|with|xmlattributes|xmlconcat|xmlelement|xmlexists|xmlforest|xmlnamespaces|xmlparse|xmlpi|"
    "xmlroot|xmlserialize|xmltable"
)
"""Words that some database does not take for a name without quotes."""

_COUNTED = "count(*)"
_COUNT = re.compile(r"(?:^|_)(?:count|cnt|counts|n|num|rows)(?:_|$)")
_FOLDED = re.compile(
    r"^(?P<before>total|sum|avg|mean|min|max)_(?P<x>.+)$|^(?P<y>.+)_(?P<after>total|sum|avg|mean|min|max)$"
)
_FOLDS = {"total": "sum", "mean": "avg"}
_INSTANTS = (Family.TIMESTAMP, Family.TIMESTAMPTZ)
_TIMED = (Family.DATE, *_INSTANTS)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The text of a source over one table. `unknown` are measures that nothing in the table's columns tells of.

    `keys` are the relation's columns of the grain, of which the first decides the slice. Of a relation that
    `has_counts` every measure is a column, also those that count: it is likely to be an aggregate itself.
    """

    text: str
    table: str
    unknown: tuple[str, ...]
    relation: Target
    keys: tuple[str, ...]
    has_counts: bool


def candidates(
    target: Target,
    grain: Sequence[str],
    measures: Sequence[str],
    slice_of: tuple[str, Unit],
    relations: Sequence[Target],
) -> list[Skeleton]:
    """Return a source over each table that the target may be computed from, those that tell most of it first."""
    found = [
        candidate
        for each in relations
        if each.resolved != target.resolved
        for candidate in _candidate(target, grain, measures, slice_of, each)
    ]
    found.sort(key=lambda each: (_has_counts(each), -len(each.known)))
    return [
        Skeleton(
            text=_text(target, grain, measures, each),
            table=each.name,
            unknown=tuple(name for name in measures if name not in each.known),
            relation=each.relation,
            keys=each.keys,
            has_counts=len(each.known) == len(measures) and _has_counts(each),
        )
        for each in found
    ]


def _has_counts(candidate: _Candidate) -> bool:
    """Whether every measure would be the sum of a column, and one of them is a count."""
    return _COUNTED not in candidate.known.values() and any(_COUNT.search(name.lower()) for name in candidate.known)


def identifier(name: str) -> str:
    """Return a name as a person writes it: quoted only where it has to be."""
    return name if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name) else quote(name)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A relation that the target may be computed from: its grain, slice expression, filter, and the known measures."""

    name: str
    relation: Target
    keys: tuple[str, ...]
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
    is_alike = len(grain) > 1 or any(text != _COUNTED for text in known.values())
    if day is None or not known or not is_alike:
        return
    name = identifier(relation.table)
    name = name if relation.schema in ("main", "public") else f"{identifier(relation.schema)}.{name}"
    keys = (day.name, *(columns[each.lower()].name for each in grain if each != slice_column.name))
    yield _Candidate(name, relation, keys, slice_column.name, *_sliced(slice_column, slice_of[1], day), known)


def _day_column(wanted: Column, relation: Target, columns: dict[str, Column]) -> Column | None:
    """Return the column of the relation that the slice comes from: of its name, else the only one with a time."""
    same = columns.get(wanted.name.lower())
    is_timed = wanted.family in _TIMED
    if same is not None:
        return same if same.family is wanted.family or (is_timed and same.family in _TIMED) else None
    timed = [column for column in relation.columns if column.family in _TIMED]
    return timed[0] if len(timed) == 1 and is_timed else None


def _sliced(wanted: Column, unit: Unit, day: Column) -> tuple[str, str]:
    """Return the slice expression over a column of the relation, and the condition that keeps to the range."""
    name = identifier(day.name)
    if day.family in _INSTANTS:
        condition = f"{name} >= :start_instant AND {name} < :end_instant"
    else:
        condition = f"{name} BETWEEN :start AND :end"
    if day.family is wanted.family and (unit is Unit.DAY and day.family not in _INSTANTS):
        return name, condition
    if day.family not in _TIMED:
        return name, condition
    if unit is Unit.DAY and wanted.family is Family.DATE:
        return f"CAST({name} AS DATE)", condition
    if day.family is Family.DATE and wanted.family is Family.TIMESTAMP:
        name = f"CAST({name} AS TIMESTAMP)"  # else PostgreSQL makes an instant of it
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
        yield _COUNTED


def _text(target: Target, grain: Sequence[str], measures: Sequence[str], candidate: _Candidate) -> str:
    _, *others = candidate.keys
    rest = iter(others)
    lines = []
    for name in grain:
        written = identifier(name)
        value = candidate.slice_expression if name == candidate.slice_column else identifier(next(rest))
        lines.append(written if value == written else f"{value} AS {written}")
    for name in measures:
        value = candidate.known.get(name, f"CAST(NULL AS {target.column(name).type})")
        lines.append(f"{value} AS {identifier(name)}")
    return _select(lines, candidate.name, candidate.condition, len(grain))


def placeholder_name(target: Target) -> str:
    """Return the name that stands for the table that has to be named first."""
    return f"source_of_{target.table}"


def placeholder(target: Target, grain: Sequence[str], measures: Sequence[str], slice_column: str) -> str:
    """Return a SELECT of the right names and types over a relation that has to be named first."""
    lines = [f"CAST({identifier(name)} AS {target.column(name).type}) AS {identifier(name)}" for name in grain]
    for name in measures:
        column = target.column(name)
        fold = "sum" if column.family.is_number else "max"
        lines.append(f"CAST({fold}({identifier(name)}) AS {column.type}) AS {identifier(name)}")
    condition = f"{identifier(slice_column)} BETWEEN :start AND :end"
    return _select(lines, identifier(placeholder_name(target)), condition, len(grain))


def _select(lines: Sequence[str], relation: str, condition: str, grouped: int) -> str:
    columns = ",\n".join(f"    {line}" for line in lines)
    positions = ", ".join(str(place) for place in range(1, grouped + 1))
    return f"SELECT\n{columns}\nFROM {relation}\nWHERE {condition}\nGROUP BY {positions}\n"
