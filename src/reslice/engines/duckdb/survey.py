"""What a DuckDB database says about a table that no contract names yet. Nothing is written.

Large tables are looked at in part: distinct values in a sample of blocks, keys in the newest slices, which hold every
row of the keys they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from reslice.contract import Contract, SliceColumn, Unit
from reslice.engines import query as query_text
from reslice.engines import sql
from reslice.engines.duckdb.dialect import family_of
from reslice.engines.duckdb.errors import query_failed
from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.duckdb.target import described, resolve
from reslice.engines.session import exact_number
from reslice.engines.sql import quote
from reslice.profile import ColumnProfile, KeyCount, Profile, SliceValues
from reslice.ranges import Scope
from reslice.values import Column, Family, Target

SAMPLE_ROWS = 1_000_000
SCALES = (0, 1, 2, 3, 4, 6)
"""Digits behind the point that a float is tried with."""

_DAY_FAMILIES = frozenset({Family.DATE, Family.TEXT, Family.INTEGER})
_DATE_LIKE = _DAY_FAMILIES | {Family.TIMESTAMP, Family.TIMESTAMPTZ}
_INTEGER_DAYS = (Decimal(19000101), Decimal(22001231))
"""Whole numbers beyond these are not days, whatever their digits say."""


class DuckDBSurvey:
    """Describes and profiles tables of one session's database."""

    def __init__(self, session: DuckDBSession, path: Path | None) -> None:
        self._session = session
        self._path = path

    def find(self, name: str) -> Target | None:
        """Describe a table or view by name; None when there is none."""
        with self._session.translated(None, f"what {name} is"):
            found = resolve(self._session, name)
            return None if found is None else described(self._session, found, (), self._path)

    def relations(self) -> tuple[Target, ...]:
        """Return the tables and views of the current database with their columns alone, those of ledgers left out."""
        with self._session.translated(None, "the tables of the database"):
            rows = self._session.execute(
                "SELECT c.database_name, c.schema_name, c.table_name, c.column_name, c.data_type, v.view_name IS NULL"
                " FROM duckdb_columns() AS c LEFT JOIN duckdb_views() AS v ON v.database_name = c.database_name"
                " AND v.schema_name = c.schema_name AND v.view_name = c.table_name"
                " WHERE c.database_name = current_database() AND NOT c.internal AND c.schema_name NOT IN (SELECT"
                " schema_name FROM duckdb_columns() WHERE table_name = 'runs' AND column_name = 'contract_digest')"
                " ORDER BY c.schema_name, c.table_name, c.column_index"
            )
        tables: dict[tuple[str, str, str, bool], list[Column]] = {}
        for catalog, schema, table, name, type_text, is_table in rows:
            columns = tables.setdefault((catalog, schema, table, is_table), [])
            columns.append(Column(name, type_text, family_of(type_text)))
        return tuple(
            Target(catalog, schema, table, "table" if is_table else "view", tuple(columns))
            for (catalog, schema, table, is_table), columns in tables.items()
        )

    def profile(self, target: Target) -> Profile:
        """Look at the columns of a table."""
        with self._session.translated(None, f"the rows of {target.resolved}"):
            whole = self._whole(target)
            rows = int(whole[0])
            sample, seen = self._sample(target, rows)
            sampled = self._sampled(target, sample)
            columns = {}
            for index, column in enumerate(target.columns):
                present, low, high, first, last = whole[1 + index * 5 : 6 + index * 5]
                distinct, is_off, *scales = sampled[index]
                slices = None
                if is_off is False and _is_day_number(column, low, high):
                    slices = self._slices(sample, column, (first, last))
                scale = next((digits for digits, fits in zip(SCALES, scales, strict=False) if fits), None)
                lowest = exact_number(low) if column.family.is_number else None
                columns[column.name] = ColumnProfile(column, rows - present, distinct, lowest, scale, slices)
        return Profile(rows, seen, columns)

    def _whole(self, target: Target) -> tuple[Any, ...]:
        """Return the number of rows, and of each column its values that are not NULL, its bounds, and slice texts."""
        wanted = ["count(*)"]
        for column in target.columns:
            name = quote(column.name)
            is_number = column.family.is_number
            low, high = (f"{word}({name})" if is_number else "NULL" for word in ("min", "max"))
            if column.family is Family.FLOAT:
                low, high = (f"TRY_CAST({each} AS DECIMAL(38, 6))" for each in (low, high))
            texts = ["NULL", "NULL"]
            if column.family in _DATE_LIKE:
                texts = [self._session.dialect.slice_text(f"{word}({name})", column) for word in ("min", "max")]
            wanted += [f"count({name})", low, high, *texts]
        return self._session.execute(f"SELECT {', '.join(wanted)} FROM {sql.target_name(target)}")[0]

    def _sample(self, target: Target, rows: int) -> tuple[str, int]:
        """Return what to look at, and about how many rows that is: the table, or blocks of it."""
        name = sql.target_name(target)
        if rows <= SAMPLE_ROWS or target.kind != "table":
            return name, rows
        percent = max(SAMPLE_ROWS / rows * 100, 0.01)
        return f"{name} TABLESAMPLE system({percent:.4f} PERCENT) REPEATABLE (1)", SAMPLE_ROWS

    def _sampled(self, target: Target, sample: str) -> list[tuple[Any, ...]]:
        """Return of each column about how many values it has, whether one is no slice, and the scales that do."""
        wanted, widths = [], []
        for column in target.columns:
            name = quote(column.name)
            parts = [f"approx_count_distinct({name})" if column.family is not Family.OTHER else "0"]
            parts.append(self._off(column, Unit.DAY, "UTC") if column.family in _DAY_FAMILIES else self._plain(column))
            if column.family is Family.FLOAT:
                parts += [f"bool_and(round({name}, {digits}) = {name})" for digits in SCALES]
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
        zones = ["UTC"]
        if column.family is Family.TIMESTAMPTZ:
            zones += [row[0] for row in self._session.execute("SELECT current_setting('TimeZone')")]
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

    def count_keys(self, target: Target, slice_column: str, sets: Sequence[Sequence[str]]) -> KeyCount:
        """Count the distinct keys that each set of columns has, in the newest slices of a large table."""
        with self._session.translated(None, f"the keys of {target.resolved}"):
            rows = f"(SELECT * FROM {sql.target_name(target)}{self._newest(target, slice_column)}) AS seen"
            counts = ", ".join(f"(SELECT count(*) FROM (SELECT DISTINCT {_list(names)} FROM {rows}))" for names in sets)
            seen, *keys = self._session.execute(f"SELECT (SELECT count(*) FROM {rows}), {counts}")[0]
            example = self._example(rows, sets[0]) if keys[0] < seen else ""
        return KeyCount(seen, tuple(keys), example)

    def _newest(self, target: Target, slice_column: str) -> str:
        """Return the condition for the newest slices that hold enough rows to look at; none where all do."""
        name = quote(slice_column)
        rows = self._session.execute(
            f"SELECT CAST({name} AS VARCHAR), count(*) FROM {sql.target_name(target)} WHERE {name} IS NOT NULL"
            f" GROUP BY {name} ORDER BY {name} DESC LIMIT 100000"
        )
        seen, first = 0, None
        for text, count in rows:
            seen, first = seen + count, text
            if seen >= SAMPLE_ROWS:
                break
        if seen < SAMPLE_ROWS or first is None:
            return ""
        return f" WHERE {name} >= CAST({sql.text_literal(first)} AS {target.column(slice_column).type})"

    def _example(self, rows: str, names: Sequence[str]) -> str:
        texts = ", ".join(f"CAST({quote(name)} AS VARCHAR)" for name in names)
        found = self._session.execute(
            f"SELECT {texts}, count(*) FROM {rows} GROUP BY {_list(names)} HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
        )[0]
        key = ", ".join("NULL" if value is None else str(value) for value in found[:-1])
        return f"({key}) {found[-1]} times"

    def source_columns(self, contract: Contract, target: Target, scope: Scope) -> tuple[Column, ...]:
        """Return the columns that the contract's source would return; Misused[source_invalid] when it cannot."""
        body, values = query_text.over_range(self._session.dialect, contract, target, scope.hull, contract.source)
        try:
            self._session.check_select(contract.source, body)
            self._session.pin(contract)
            rows = self._session.execute(f"DESCRIBE {query_text.subquery(body)}", values)
        except duckdb.Error as error:
            raise query_failed(contract, contract.source, error) from error
        return tuple(Column(name, type_text, family_of(type_text)) for name, type_text, *_ in rows)


def _list(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def _is_day_number(column: Column, low: Any, high: Any) -> bool:
    """Whether whole numbers lie where days written yyyymmdd do; other columns are not asked."""
    if column.family is not Family.INTEGER:
        return True
    return low is not None and _INTEGER_DAYS[0] <= low and high <= _INTEGER_DAYS[1]
