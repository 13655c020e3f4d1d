"""What a database says about tables that no contract names yet, as far as engines ask for it alike. Nothing is written.

Large tables are looked at in part: distinct values in a sample of blocks, keys in the newest slices, which hold every
row of the keys they hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from reslice.contract import Contract, SliceColumn, Unit
from reslice.engines import query as query_text
from reslice.engines import sql
from reslice.engines.session import SqlSession, exact_number
from reslice.engines.sql import quote
from reslice.profile import ColumnProfile, KeyCount, Profile, SliceValues
from reslice.ranges import Scope
from reslice.tables import Column, Family, Target

SAMPLE_ROWS = 1_000_000
"""Of a table of more rows than these a sample is looked at, as large as they are or a part of it."""
SCALES = (0, 1, 2, 3, 4, 6)
"""Digits behind the point that a float is tried with."""

_TYPED = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ})
_DAY_FAMILIES = frozenset({Family.DATE, Family.TEXT, Family.INTEGER})
_DATE_LIKE = _DAY_FAMILIES | _TYPED
_INTEGER_DAYS = (Decimal(19000101), Decimal(22001231))
"""Whole numbers beyond these are not days, whatever their digits say."""


@dataclass(frozen=True, slots=True)
class Look:
    """Where a table is looked at: NULLs and bounds in `counted`, an SQL relation; `rows` is None where all are counted.

    `indexed` are columns whose smallest and largest value the table itself has at hand. Where at most
    `limit` rows are read, fewer are all there are.
    """

    counted: str
    rows: int | None = None
    indexed: frozenset[str] = frozenset()
    limit: int = 0

    def rows_of(self, counted: int) -> int | None:
        """Return how many rows there are, by estimate; None when `counted` is all of them."""
        return None if counted < self.limit else self.rows


class SqlSurvey(ABC):
    """Describes and profiles tables of one session's database."""

    part: ClassVar[int] = 1
    """How many times smaller a sample is than what it is taken from at least, so that it takes a few seconds."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    @property
    def sample_rows(self) -> int:
        """How many rows a sample has, about."""
        return SAMPLE_ROWS // self.part

    @abstractmethod
    def find(self, name: str) -> Target | None:
        """Describe a table or view by name; None when there is none."""

    @abstractmethod
    def relations(self) -> tuple[Target, ...]:
        """Return the tables and views of the database with their columns alone, those of ledgers left out."""

    @abstractmethod
    def _look(self, target: Target) -> Look:
        """Say where a table is looked at."""

    @abstractmethod
    def _sample(self, target: Target, rows: int) -> str:
        """Return blocks of a table of so many rows, with about `sample_rows` of them."""

    @abstractmethod
    def _distinct(self, column: Column) -> str:
        """Return how many values a column has, or about how many."""

    @abstractmethod
    def _exact(self, expression: str) -> str:
        """Return a float as a decimal; NULL where it has none that is near."""

    @abstractmethod
    def _has_scale(self, name: str, digits: int) -> str:
        """Return the condition that a float is a decimal of so many digits behind the point."""

    @abstractmethod
    def _query_columns(self, body: str, values: dict[str, str]) -> tuple[Column, ...]:
        """Return the columns of a query, without evaluating it."""

    # --- columns and rows ---------------------------------------------------------------------------------------------

    def profile(self, target: Target) -> Profile:
        """Look at the columns of a table."""
        with self._session.translated(None, f"the rows of {target.resolved}"):
            look = self._look(target)
            whole = self._whole(target, look)
            counted = int(whole[0])
            estimate = look.rows_of(counted)
            rows = counted if estimate is None else max(estimate, counted)
            is_all = look.rows is not None or counted <= self.sample_rows or target.kind != "table"
            sample, seen = (look.counted, counted) if is_all else (self._sample(target, counted), self.sample_rows)
            sampled = self._sampled(target, sample)
            columns = {}
            for index, column in enumerate(target.columns):
                present, low, high, first, last = whole[1 + index * 5 : 6 + index * 5]
                distinct, is_off, *scales = sampled[index]
                slices = None
                if is_off is False and first is not None and _is_day_number(column, low, high):
                    slices = self._slices(sample, column, (first, last))
                scale = next((digits for digits, fits in zip(SCALES, scales, strict=False) if fits), None)
                lowest = exact_number(low) if column.family.is_number else None
                columns[column.name] = ColumnProfile(column, counted - present, distinct, lowest, scale, slices)
        return Profile(rows, seen, columns, is_estimated=estimate is not None)

    def _whole(self, target: Target, look: Look) -> tuple[Any, ...]:
        """Return the number of rows, and of each column its values that are not NULL, its bounds, and slice texts."""
        wanted = ["count(*)"]
        for column in target.columns:
            name = quote(column.name)
            low, high = self._bounds(column) if column.family.is_number else ("NULL", "NULL")
            texts = ["NULL", "NULL"]
            if column.family in _DATE_LIKE:
                texts = [
                    self._session.dialect.slice_text(self._end(word, column, target, look), column)
                    for word in ("min", "max")
                ]
            wanted += [f"count({name})", low, high, *texts]
        return self._session.execute(f"SELECT {', '.join(wanted)} FROM {look.counted}")[0]

    def _bounds(self, column: Column) -> tuple[str, str]:
        """Return the smallest and the largest number; NULL where it is none."""
        ends = (f"{word}({quote(column.name)})" for word in ("min", "max"))
        if column.family is Family.INTEGER:
            low, high = ends
        elif column.family is Family.FLOAT:
            low, high = (self._exact(end) for end in ends)
        else:
            low, high = (f"CASE WHEN NOT {self._session.dialect.not_finite(end)} THEN {end} END" for end in ends)
        return low, high

    def _end(self, word: str, column: Column, target: Target, look: Look) -> str:
        """Return the first or the last value of a column; of a time, of the years that have slices."""
        name = quote(column.name)
        inside = self._session.dialect.in_calendar(name, column) if column.family in _TYPED else ""
        if column.name in look.indexed:
            return f"(SELECT {word}({name}) FROM {sql.target_name(target)}{f' WHERE {inside}' if inside else ''})"
        return f"{word}({name}){f' FILTER (WHERE {inside})' if inside else ''}"

    def _sampled(self, target: Target, sample: str) -> list[tuple[Any, ...]]:
        """Return of each column about how many values it has, whether one is no slice, and the scales that do."""
        wanted, widths = [], []
        for column in target.columns:
            parts = [self._distinct(column) if column.family is not Family.OTHER else "0"]
            parts.append(self._off(column, Unit.DAY, "UTC") if column.family in _DAY_FAMILIES else self._plain(column))
            if column.family is Family.FLOAT:
                parts += [f"bool_and({self._has_scale(quote(column.name), digits)})" for digits in SCALES]
            wanted += parts
            widths.append(len(parts))
        row = list(self._session.execute(f"SELECT {', '.join(wanted)} FROM {sample}")[0])
        return [tuple(row.pop(0) for _ in range(width)) for width in widths]

    def _plain(self, column: Column) -> str:
        """Return whether a column is no slice, where its type says that it may be one."""
        return f"CASE WHEN count({quote(column.name)}) > 0 THEN {str(column.family not in _DATE_LIKE).lower()} END"

    def _off(self, column: Column, unit: Unit, zone: str) -> str:
        """Return whether a value that is not NULL is off the first moment of a unit; NULL when there is no value."""
        name = quote(column.name)
        off = self._session.dialect.off_unit(name, column, SliceColumn(column.name, unit, zone))
        return f"bool_or({off}) FILTER (WHERE {name} IS NOT NULL)"

    def _slices(self, sample: str, column: Column, bounds: tuple[str, str]) -> SliceValues:
        """Return the units that every value of a date-like column begins, in UTC or else in the session's zone."""
        zones = ["UTC", *(self._own_zone() if column.family is Family.TIMESTAMPTZ else ())]
        units = [unit for unit in Unit if unit is not Unit.HOUR or column.family not in _DAY_FAMILIES]
        wanted = [self._off(column, unit, zone) for zone in zones for unit in units]
        distinct, *off = self._session.execute(
            f"SELECT count(DISTINCT {quote(column.name)}), {', '.join(wanted)} FROM {sample}"
        )[0]
        found = SliceValues(frozenset(), distinct, *bounds)
        for index, zone in enumerate(zones):
            flags = off[index * len(units) : (index + 1) * len(units)]
            begun = frozenset(unit for unit, is_off in zip(units, flags, strict=True) if not is_off)
            if len(begun) > len(found.units):
                found = SliceValues(begun, distinct, *bounds, zone)
        return found

    def _own_zone(self) -> Iterable[str]:
        """Yield the session's zone, where it is one that a contract can name."""
        zone = self._session.execute("SELECT current_setting('TimeZone')")[0][0]
        try:
            ZoneInfo(zone)
        except (ValueError, OSError):
            return
        yield zone

    # --- keys ---------------------------------------------------------------------------------------------------------

    def count_keys(self, target: Target, slice_column: str, sets: Sequence[Sequence[str]]) -> KeyCount:
        """Count the distinct keys that each set of columns has, in the newest slices of a large table."""
        with self._session.translated(None, f"the keys of {target.resolved}"):
            names = sql.column_list(dict.fromkeys(name for each in sets for name in each))
            rows = f"SELECT {names} FROM {sql.target_name(target)}{self._newest(target, slice_column)}"
            counts = "".join(
                f",\n  (SELECT count(*) FROM (SELECT DISTINCT {self._plain_list(target, each)} FROM seen) AS keys)"
                for each in sets
            )
            seen, *keys = self._session.execute(
                f"WITH seen AS MATERIALIZED ({rows})\nSELECT (SELECT count(*) FROM seen){counts}"
            )[0]
            example = self._example(target, rows, sets[0]) if keys[0] < seen else ""
        return KeyCount(seen, tuple(keys), example)

    def _newest(self, target: Target, slice_column: str) -> str:
        """Return the condition for the newest slices that hold enough rows to look at; none where all do."""
        name = quote(slice_column)
        look = self._look(target)
        rows = self._session.execute(
            f"SELECT CAST({name} AS VARCHAR), count(*) FROM {look.counted} WHERE {name} IS NOT NULL"
            f" GROUP BY {name} ORDER BY {name} DESC LIMIT 100000"
        )
        counted = sum(count for _, count in rows)
        estimate = look.rows_of(counted)
        wanted = self.sample_rows
        enough = wanted if estimate is None else counted * min(1.0, wanted / max(estimate, 1))
        seen, first = 0, None
        for text, count in rows:
            seen, first = seen + count, text
            if seen >= enough:
                break
        if seen < enough or first is None:
            return ""
        return f" WHERE {name} >= CAST({sql.text_literal(first)} AS {target.column(slice_column).type})"

    def _example(self, target: Target, rows: str, names: Sequence[str]) -> str:
        texts = ", ".join(f"CAST({quote(name)} AS VARCHAR)" for name in names)
        places = ", ".join(str(place + 1) for place in range(len(names)))
        found = self._session.execute(
            f"SELECT {texts}, count(*) FROM ({rows}) AS seen GROUP BY {self._plain_list(target, names)}, {places}"
            f" HAVING count(*) > 1 ORDER BY {places} LIMIT 1"
        )[0]
        key = ", ".join("NULL" if value is None else str(value) for value in found[:-1])
        return f"({key}) {found[-1]} times"

    def _plain_list(self, target: Target, names: Sequence[str]) -> str:
        """Return columns by which rows are told apart, as bytes and not as a collation has it."""
        return ", ".join(self._session.dialect.plain(quote(name), target.column(name)) for name in names)

    # --- sources ------------------------------------------------------------------------------------------------------

    def source_columns(self, contract: Contract, target: Target, scope: Scope) -> tuple[Column, ...]:
        """Return the columns that the contract's source would return; Misused[source_invalid] when it cannot."""
        session = self._session
        body, values = query_text.over_range(session.dialect, contract, target, scope.hull, contract.source)
        try:
            session.check_select(contract.source, body)
            session.pin(contract)
            return self._query_columns(body, values)
        except session.driver_error as error:
            session.roll_back()
            raise session.query_failed(contract, contract.source, error) from error


def _is_day_number(column: Column, low: Any, high: Any) -> bool:
    """Whether whole numbers lie where days written yyyymmdd do; other columns are not asked."""
    if column.family is not Family.INTEGER:
        return True
    return low is not None and _INTEGER_DAYS[0] <= low and high <= _INTEGER_DAYS[1]
