"""What a probe is, and those that every engine is put to: a condition of ranges matches what lies in them, exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from reslice import moments
from reslice.contract import Contract, Unit
from reslice.engines import sql
from reslice.engines.dialect import Dialect
from reslice.engines.sql import OPEN_RANGES_MAX
from reslice.health import Observation
from reslice.ranges import Moment, Range, Scope
from reslice.tables import Column

NOT_RELIED = "nothing: "
"""How it begins what reslice needs of an observation, where it needs nothing of it."""

ENDS = "it holds its first and its last value, not the one before nor the one after"
SLICES = "those slices, and no other"
_LAST_DAY, _LAST_HOUR = date(2124, 1, 1), datetime(2024, 12, 31, tzinfo=UTC)

OnBench = TypeVar("OnBench")


@dataclass(frozen=True, slots=True)
class Probe(Generic[OnBench]):
    """One thing that is tried. `expected` are the observations that reslice is built for; any, where it is empty."""

    name: str
    does: str
    relies: str
    observe: Callable[[OnBench], str]
    expected: frozenset[str] = frozenset()

    def observed(self, found: str) -> Observation:
        """Return what was found, held against what is expected."""
        holds = not self.expected or found in self.expected
        return Observation(self.name, self.does, self.relies, found, holds)

    def failed(self, words: str) -> Observation:
        """Return that it ended with an error, which is never what reslice is built for."""
        return Observation(self.name, self.does, self.relies, f"an error: {words}", holds=False)


class RangeBench(Protocol):
    """Where ranges are tried: statements in a database of one's own, for one slice column."""

    contract: Contract
    column: Column
    dialect: Dialect

    @property
    def ranged(self) -> str:
        """The table that values are put into."""

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, where it has any."""

    def fitted(self, text: str) -> str:
        """Return the text of a slice value; where the column is coarser, of the last value that it can hold."""


def closed_range(bench: RangeBench) -> str:
    """Keep, of four values, the first and the last of a range of two slices; the others lie just before and after."""
    before, first, last, *_ = _moments(bench.contract, 3)
    ahead, span = _range(bench.contract, before, before), _range(bench.contract, first, last)
    family = bench.column.family.value
    values = {
        "the value before": (ahead, ahead.column_values(family).end),
        "the first value": (span, span.column_values(family).start),
        "the last value": (span, span.column_values(family).end),
        "the value after": (span, span.column_values(family).next),
    }
    bench.ask(f"CREATE TABLE {bench.ranged} (name VARCHAR, value {bench.column.type})")
    for name, (of, text) in values.items():
        value = _literal(bench, of, text)
        bench.ask(f"INSERT INTO {bench.ranged} SELECT {sql.text_literal(name)}, CAST({value} AS {bench.column.type})")
    found = _inside(bench, Scope.of(span))
    return (
        ENDS if found == {"the first value", "the last value"} else f"matches {', '.join(sorted(found)) or 'nothing'}"
    )


def many_ranges(bench: RangeBench) -> str:
    """Keep every other slice of many; a condition this long is written another way."""
    every = _moments(bench.contract, 2 * OPEN_RANGES_MAX + 4)
    scope = Scope.of(_range(bench.contract, every[0], every[0])).plus(every[::2])
    bench.ask(f"CREATE TABLE {bench.ranged} (name VARCHAR, value {bench.column.type})")
    for moment in every:
        span = _range(bench.contract, moment, moment)
        value = _literal(bench, span, span.column_values(bench.column.family.value).start)
        bench.ask(f"INSERT INTO {bench.ranged} SELECT {sql.text_literal(span.text)}, {value}")
    wanted = {scope.label(moment) for moment in every[::2]}
    found = _inside(bench, scope)
    return SLICES if found == wanted else f"{len(found & wanted)} of {len(wanted)}, and {len(found - wanted)} others"


def _literal(bench: RangeBench, of: Range, text: str) -> str:
    is_local = of.column_values(bench.column.family.value).local
    return bench.dialect.literal(bench.fitted(text), bench.column, of.zone, local=is_local)


def cut_off(text: str, digits: int | None) -> str:
    """Return a time with no more digits of a second than these; None leaves it as it is."""
    if digits is None:
        return text
    return re.sub(r"\.\d+", lambda found: found[0][: digits + 1] if digits else "", text)


def _inside(bench: RangeBench, scope: Scope) -> set[str]:
    """Return the names of the rows that the condition of a publish matches."""
    condition = sql.within(bench.dialect, "value", bench.column, bench.contract.slice, scope)
    return {name for (name,) in bench.ask(f"SELECT name FROM {bench.ranged} WHERE {condition}")}


def _moments(contract: Contract, count: int) -> Sequence[Moment]:
    """Return slices in a row, across a night in which clocks change in many zones."""
    unit, zone = contract.slice.unit, contract.slice.timezone
    is_hour = unit is Unit.HOUR
    first: Moment = moments.hour_of(datetime(2024, 3, 31, tzinfo=UTC), zone) if is_hour else _slice(unit)
    return [*islice(moments.walk(first, _LAST_HOUR if is_hour else _LAST_DAY, unit, zone), count)]


def _slice(unit: Unit) -> date:
    return moments.slice_of(date(2024, 3, 30), unit)


def _range(contract: Contract, first: Moment, last: Moment) -> Range:
    return Range(contract.slice.unit, contract.slice.timezone, first, last)
