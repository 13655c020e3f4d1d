"""How DuckDB says it: types, canonical text, slices of each column type, and values that are surely different."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reslice.contract import SliceColumn, Unit
from reslice.engines.sql import column_list, dotted, text_literal
from reslice.moments import first_of_two
from reslice.tables import Column, Family, Fill, Target

INTEGER_BITS = {
    "TINYINT": 7,
    "SMALLINT": 15,
    "INTEGER": 31,
    "BIGINT": 63,
    "HUGEINT": 127,
    "UTINYINT": 8,
    "USMALLINT": 16,
    "UINTEGER": 32,
    "UBIGINT": 64,
}
"""Bits of magnitude, so that 2**bits - 1 is the largest value of each integer type. UHUGEINT is left out: its sum is a
double, which is not exact."""

FAMILIES = {
    **dict.fromkeys(INTEGER_BITS, Family.INTEGER),
    "FLOAT": Family.FLOAT,
    "DOUBLE": Family.FLOAT,
    "BOOLEAN": Family.BOOLEAN,
    "VARCHAR": Family.TEXT,
    "DATE": Family.DATE,
    "TIME": Family.TIME,
    "TIMESTAMP": Family.TIMESTAMP,
    "TIMESTAMP_S": Family.TIMESTAMP,
    "TIMESTAMP_MS": Family.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Family.TIMESTAMPTZ,
    "UUID": Family.UUID,
    '"NULL"': Family.INTEGER,
}

DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
FLOAT_DIGITS = 38
"""Digits of the decimal a float is read as when its scale is declared."""


def family_of(type_text: str) -> Family:
    """Return what kind of value a DuckDB type holds."""
    if DECIMAL.fullmatch(type_text):
        return Family.DECIMAL
    if type_text.startswith("ENUM("):
        return Family.ENUM
    return FAMILIES.get(type_text, Family.OTHER)


class DuckDBDialect:
    """DuckDB's words; the session's TimeZone is the contract's zone whenever they are executed."""

    row_id = "rowid"
    clock = "now()"
    magnitude = "DOUBLE"
    reads_back_by_own_hash = False

    def literal(self, text: str, column: Column, zone: str, *, local: bool) -> str:
        """Return a slice value as a literal; an integer stays bare, an instant of local wall time names its zone."""
        quoted = text_literal(text)
        if column.family is Family.INTEGER:
            return str(int(text))
        if column.family is Family.TIMESTAMPTZ and local:
            return f"timezone({text_literal(zone)}, TIMESTAMP {quoted})"
        words = {Family.DATE: "DATE ", Family.TIMESTAMP: "TIMESTAMP ", Family.TIMESTAMPTZ: "TIMESTAMPTZ "}
        return words.get(column.family, "") + quoted

    def bound(self, text: str, column: Column, zone: str, *, local: bool) -> str:
        """Return where a range begins or ends. Of a local time that is shown twice DuckDB itself takes the later."""
        first = first_of_two(text, zone) if local else None
        return self.literal(text, column, zone, local=local) if first is None else f"TIMESTAMPTZ '{first}+00'"

    def parameter(self, name: str, column: Column) -> str:
        """Return a bound slice value in the column's type."""
        if column.family is Family.TIMESTAMP:  # a coarser type would round the last microsecond up to the next slice
            return f"CAST(${name} AS TIMESTAMP)"
        return f"CAST(${name} AS {column.type})"

    def canonical(self, expression: str, column: Column, scale: int | None) -> str:
        """Return the text of a value that is not NULL."""
        match column.family:
            case Family.FLOAT:
                exact = f"TRY_CAST({expression} AS DECIMAL({FLOAT_DIGITS},{scale or 0}))"
                return f"coalesce(CAST({exact} AS VARCHAR), CAST({expression} AS VARCHAR))"
            case Family.TIMESTAMPTZ:
                return f"CAST(timezone('UTC', {expression}) AS VARCHAR)"
            case Family.TEXT | Family.ENUM:
                return rf"replace(replace(CAST({expression} AS VARCHAR), '\', '\\'), '|', '\p')"
        return f"CAST({expression} AS VARCHAR)"

    def joined(self, texts: Sequence[str]) -> str:
        """Return texts, of which none is NULL, joined by `|`."""
        return f"concat_ws('|', {', '.join(texts)})"

    def row_hash(self, text: str) -> str:
        """Return the first 60 bits of the md5 of `text`."""
        return f"CAST(('0x' || left(md5({text}), 15)) AS BIGINT)"

    def own_hash(self, expressions: Sequence[str]) -> str:
        """Return DuckDB's own hash, by its full name: a macro of the database may bear the short one."""
        return f"CAST(system.main.hash({', '.join(expressions)}) AS HUGEINT)"

    def slice_start(self, expression: str, column: Column, slice_column: SliceColumn) -> str:
        """Return the first moment of the unit a value lies in."""
        unit = slice_column.unit.value
        match column.family:
            case Family.TIMESTAMP:
                return f"CAST(date_trunc('{unit}', {expression}) AS {column.type})"
            case Family.TIMESTAMPTZ:
                return self._instant_start(expression, slice_column)
            case Family.DATE:
                if slice_column.unit is Unit.DAY:
                    return expression
                return f"CAST(date_trunc('{unit}', {expression}) AS DATE)"
            case Family.INTEGER:
                if slice_column.unit is Unit.DAY:
                    return expression
                start = f"strftime(date_trunc('{unit}', {self._integer_date(expression)}), '%Y%m%d')"
                return f"coalesce(TRY_CAST({start} AS {column.type}), {expression})"
        start = f"CAST(CAST(date_trunc('{unit}', {self._text_date(expression)}) AS DATE) AS VARCHAR)"
        return f"coalesce({start}, {expression})"

    def _instant_start(self, expression: str, slice_column: SliceColumn) -> str:
        """Return the start of the unit in local time. An hour is cut off the instant: its wall time may occur twice.

        It is cut twice: where the clock was set by a part of an hour since, the first cut leads into the hour before.
        """
        zone = text_literal(slice_column.timezone)
        if slice_column.unit is Unit.HOUR:
            for _ in range(1 if slice_column.timezone == "UTC" else 2):
                wall = f"timezone({zone}, {expression})"
                expression = f"({expression} - ({wall} - date_trunc('hour', {wall})))"
            return expression
        return f"timezone({zone}, date_trunc('{slice_column.unit.value}', timezone({zone}, {expression})))"

    def _integer_date(self, expression: str) -> str:
        digits = f"lpad(CAST({expression} AS VARCHAR), 8, '0')"
        return f"CASE WHEN length(CAST({expression} AS VARCHAR)) <= 8 THEN try_strptime({digits}, '%Y%m%d') END"

    def _text_date(self, expression: str) -> str:
        """Return ISO text as a date; DuckDB 1.5 reads a date out of text that only begins with one."""
        is_iso = f"regexp_full_match({expression}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')"
        return f"CASE WHEN {is_iso} THEN TRY_CAST({expression} AS DATE) END"

    def slice_text(self, expression: str, column: Column) -> str:
        """Return a slice value as text; instants in UTC."""
        if column.family is Family.TIMESTAMPTZ:
            return f"CAST(timezone('UTC', {expression}) AS VARCHAR)"
        return f"CAST({expression} AS VARCHAR)"

    def slice_key(self, expression: str, column: Column) -> str:
        """Return the first moment of a slice as text: it has one, whatever the session's settings are."""
        return self.slice_text(expression, column)

    def off_unit(self, expression: str, column: Column, slice_column: SliceColumn) -> str:
        """Return a condition that is true when a value is not the first moment of a unit."""
        match column.family:
            case Family.TEXT:
                start = f"CAST(date_trunc('{slice_column.unit.value}', {self._text_date(expression)}) AS DATE)"
                return f"coalesce(CAST({start} AS VARCHAR) <> {expression}, true)"
            case Family.INTEGER:
                start = f"date_trunc('{slice_column.unit.value}', {self._integer_date(expression)})"
                return f"coalesce(TRY_CAST(strftime({start}, '%Y%m%d') AS HUGEINT) <> {expression}, true)"
        return f"{self.slice_start(expression, column, slice_column)} <> {expression}"

    def in_calendar(self, expression: str, column: Column) -> str:
        """Return a condition that is true when a value lies on a day of the years 1 to 9999."""
        day = expression
        if column.family is Family.TEXT:
            day = self._text_date(expression)
        elif column.family is Family.INTEGER:
            day = self._integer_date(expression)
        return f"date_part('year', {day}) BETWEEN 1 AND 9999"

    def plain(self, expression: str, column: Column) -> str:
        """Return text under binary collation; other values as they are."""
        return f'{expression} COLLATE "binary"' if column.family is Family.TEXT else expression

    def equal(self, left: str, right: str, column: Column, *, nulls: bool = True) -> str:
        """Return the NULL-safe condition that two values are the same."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def matches(self, expression: str, pattern: str) -> str:
        """Return the condition that a whole text is of a pattern."""
        return f"regexp_full_match({expression}, {text_literal(pattern)})"

    def picked(self, table: str, select: str) -> str:
        """Return the statement that puts rows into a temporary table, in the place of one that is there."""
        return f"CREATE OR REPLACE TEMPORARY TABLE {table} AS\n{select}"

    def every_column(self, target: Target) -> str:
        """Return `*`, so that a column which was added since is an error, without what the database computes."""
        computed = [column.name for column in target.columns if column.fill is Fill.GENERATED]
        return f"* EXCLUDE ({column_list(computed)})" if computed else "*"

    def new_schema(self, catalog: str, schema: str) -> str:
        """Return the name of a schema with that of its file."""
        return dotted(catalog, schema)

    def overriding(self, target: Target, columns: Iterable[str]) -> str:
        """Return nothing: an INSERT may give any column its value."""
        return ""

    def try_cast(self, expression: str, column: Column, source: Column | None = None) -> str:
        """Return the value in the column's type, or NULL."""
        return f"TRY_CAST({expression} AS {column.type})"

    def lossy(self, expression: str, source: Column, target: Column, scale: int | None) -> str | None:
        """Return a condition that is true when the cast changes the value or no decimal can hold the float."""
        if target.family is Family.FLOAT or (source.family is Family.FLOAT and scale is not None):
            return self._lossy_float(expression, target, scale)
        if source.type == target.type or source.type == '"NULL"':
            return None
        cast = self.try_cast(expression, target)
        back = f"TRY_CAST({cast} AS {source.type})"
        changed = f"{cast} IS NULL OR {back} IS DISTINCT FROM {expression}"
        if source.family is Family.FLOAT:  # beyond these digits the cast itself is not exact, and the way back hides it
            changed += f" OR abs({expression}) > {2**53}"
        return f"({expression} IS NOT NULL AND ({changed}))"

    def _lossy_float(self, expression: str, target: Column, scale: int | None) -> str:
        """Compare a float at its declared scale; NaN, infinity and what has no decimal are lossy."""
        decimal = f"DECIMAL({FLOAT_DIGITS},{scale or 0})"
        cast = f"TRY_CAST({self.try_cast(expression, target)} AS {decimal})"
        exact = f"TRY_CAST({expression} AS {decimal})"
        return f"({expression} IS NOT NULL AND ({cast} IS NULL OR {cast} IS DISTINCT FROM {exact}))"

    def not_finite(self, expression: str) -> str:
        """Return a condition that is true when a float is NaN or infinite."""
        return f"(NOT isfinite({expression}))"

    def shown(self, expression: str, column: Column, scale: int | None) -> str:
        """Return a value as it is fetched: integers and decimals as they are, floats at their scale, the rest text."""
        match column.family:
            case Family.INTEGER | Family.DECIMAL | Family.BOOLEAN:
                return expression
            case Family.FLOAT:
                return f"TRY_CAST({expression} AS DECIMAL({FLOAT_DIGITS},{scale or 0}))"
            case Family.TIMESTAMPTZ:
                return f"CAST(timezone('UTC', {expression}) AS VARCHAR) || '+00'"
        return f"CAST({expression} AS VARCHAR)"

    def json_object(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return a JSON object as text."""
        return f"CAST(json_object({', '.join(f'{text_literal(key)}, {value}' for key, value in pairs)}) AS VARCHAR)"

    def near_key(self, expression: str) -> str:
        """Return text folded for case, outer spaces and Unicode form."""
        return f"lower(nfc_normalize(trim({expression})))"

    def different(self, expression: str, column: Column) -> str:
        """Return another value of the type: the next one where there is one, since checks are mostly lower bounds."""
        match column.family:
            case Family.INTEGER:
                largest = 2 ** INTEGER_BITS[column.type] - 1
                other, empty = f"WHEN {expression} = {largest} THEN {expression} - 1 ELSE {expression} + 1", "0"
            case Family.DECIMAL:
                digits, scale = (int(text) for text in re.findall(r"\d+", column.type))
                step = f"CAST('{10**-scale if scale == 0 else '0.' + '0' * (scale - 1) + '1'}' AS {column.type})"
                largest_text = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
                largest_sql = f"CAST('{largest_text}' AS {column.type})"
                other = f"WHEN {expression} = {largest_sql} THEN {expression} - {step} ELSE {expression} + {step}"
                empty = "0"
            case Family.FLOAT:
                other, empty = (
                    f"WHEN {expression} = 0 THEN 1 WHEN isfinite({expression}) THEN {expression} * 2 ELSE 0",
                    "0",
                )
            case Family.BOOLEAN:
                other, empty = f"ELSE NOT {expression}", "true"
            case Family.DATE:
                other, empty = (
                    f"WHEN {expression} = DATE '2000-01-01' THEN DATE '2000-01-02' ELSE DATE '2000-01-01'",
                    "DATE '2000-01-01'",
                )
            case Family.TIMESTAMP | Family.TIMESTAMPTZ:
                one, two = (f"CAST('2000-01-0{day} 00:00:00' AS {column.type})" for day in (1, 2))
                other, empty = f"WHEN {expression} = {one} THEN {two} ELSE {one}", one
            case Family.TIME:
                other, empty = (
                    f"WHEN {expression} = TIME '00:00:00' THEN TIME '01:00:00' ELSE TIME '00:00:00'",
                    "TIME '00:00:00'",
                )
            case Family.UUID:
                other, empty = "ELSE gen_random_uuid()", "gen_random_uuid()"
            case Family.ENUM:
                first, last = f"enum_first(CAST(NULL AS {column.type}))", f"enum_last(CAST(NULL AS {column.type}))"
                other, empty = f"WHEN {expression} = {first} THEN {last} ELSE {first}", first
            case _:
                other, empty = f"ELSE {expression} || '.'", "''"
        return f"CAST(CASE WHEN {expression} IS NULL THEN {empty} {other} END AS {column.type})"
