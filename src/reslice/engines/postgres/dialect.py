"""How PostgreSQL says it: types, canonical text, and slices of each column type.

The session pins DateStyle, IntervalStyle, bytea_output, extra_float_digits and, to the contract's zone, TimeZone, so
that a value has one text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reslice.contract import SliceColumn, Unit
from reslice.engines.postgres.types import INTEGER_BITS, PADDED, holds_every, precision
from reslice.engines.sql import column_list, kept_columns, quote, text_literal
from reslice.moments import first_of_two
from reslice.tables import Column, Family, Fill, Target

ARGUMENTS_MAX = 99
"""How many texts one call of a function joins: it takes a hundred arguments."""
FLOAT_DIGITS = 1000
"""Digits of the decimal a float is read as when its scale is declared: any finite double fits."""
FARTHEST = {
    Family.DATE: ("0001-01-01", "9999-12-31"),
    Family.TIMESTAMP: ("0001-01-01", "9999-12-31 23:59:59.999999"),
    Family.TIMESTAMPTZ: ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
}
"""The first and last value of the years 1 to 9999, in which slices lie."""
SLICE_FORMATS = {
    Family.DATE: "YYYY-MM-DD",
    Family.TIMESTAMP: "YYYY-MM-DD HH24:MI:SS",
    Family.TIMESTAMPTZ: "YYYY-MM-DD HH24:MI:SS",
}
"""How the first moment of a slice is written; it never has a part of a second."""


class PostgresDialect:
    """PostgreSQL's words. `is_utf8` says whether the database holds text as UTF-8, of which a digest is made."""

    row_id = "ctid"
    clock = "clock_timestamp()"
    magnitude = "numeric"
    reads_back_by_own_hash = True

    def __init__(self, *, is_utf8: bool = True) -> None:
        self._is_utf8 = is_utf8

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
        """Return where a range begins or ends. Of a local time that is shown twice PostgreSQL takes the later."""
        first = first_of_two(text, zone) if local else None
        return self.literal(text, column, zone, local=local) if first is None else f"TIMESTAMPTZ '{first}+00'"

    def parameter(self, name: str, column: Column) -> str:
        """Return a bound slice value in the column's type, in full precision."""
        types = {
            Family.TIMESTAMP: "timestamp",
            Family.TIMESTAMPTZ: "timestamptz",
            Family.TEXT: "text",
            Family.DATE: "date",
        }
        return f"CAST(${name} AS {types.get(column.family, column.type)})"

    def canonical(self, expression: str, column: Column, scale: int | None) -> str:
        """Return the text of a value that is not NULL."""
        match column.family:
            case Family.FLOAT:
                exact = self._at_scale(expression, scale)
                return f"coalesce(CAST({exact} AS text), CAST({expression} AS text))"
            case Family.DECIMAL if precision(column.holds) is None:
                return f"CAST(trim_scale({expression}) AS text)"
            case Family.DATE | Family.TIMESTAMP | Family.TIMESTAMPTZ:
                return self._dated(expression, column)
            case Family.TEXT | Family.ENUM:
                return rf"replace(replace(CAST({expression} AS text), '\', '\\'), '|', '\p')"
        return f"CAST({expression} AS text)"

    def _dated(self, expression: str, column: Column) -> str:
        """Return a day or a time as text, instants in UTC; (BC) stands behind the day, as elsewhere, not at the end."""
        if column.family is Family.DATE:
            return f"replace(CAST({expression} AS text), ' BC', ' (BC)')"
        value = f"timezone('UTC', {expression})" if column.family is Family.TIMESTAMPTZ else expression
        moved = rf"regexp_replace(CAST({value} AS text), ' (\S+) BC$', ' (BC) \1')"
        return f"CASE WHEN {value} < TIMESTAMP '0001-01-01' THEN {moved} ELSE CAST({value} AS text) END"

    def _at_scale(self, expression: str, scale: int | None) -> str:
        """Return a float as the decimal of a declared scale; NULL where there is none."""
        value = f"CAST({expression} AS double precision)"
        text = f"CAST({value} AS text)"
        number = f"CAST({text} AS numeric({FLOAT_DIGITS},{scale or 0}))"
        return f"CASE WHEN {value} NOT IN ('NaN', 'Infinity', '-Infinity') THEN {number} END"

    def joined(self, texts: Sequence[str]) -> str:
        """Return texts, of which none is NULL, joined by `|`; by the function's full name, since it takes any types.

        One of another schema that took just these would be called in its place.
        """
        if len(texts) > ARGUMENTS_MAX:
            parts = [texts[at : at + ARGUMENTS_MAX] for at in range(0, len(texts), ARGUMENTS_MAX)]
            return self.joined([self.joined(part) for part in parts])
        return f"pg_catalog.concat_ws('|', {', '.join(texts)})"

    def row_hash(self, text: str) -> str:
        """Return the first 60 bits of the md5 of `text`, of its bytes in UTF-8."""
        digested = text if self._is_utf8 else f"convert_to({text}, 'UTF8')"
        return f"CAST(CAST('x' || left(md5({digested}), 15) AS bit(60)) AS bigint)"

    def own_hash(self, expressions: Sequence[str]) -> str:
        """Return PostgreSQL's own hash of the text of a row, by its full name.

        Its hash of a record adds up the hashes of its values: a sum over rows would not tell which row holds which.
        """
        text = f'CAST(ROW({", ".join(expressions)}) AS text) COLLATE "C"'
        return f"pg_catalog.hashtextextended({text}, CAST(0 AS bigint))"

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
                return f"CAST({self._day_start(expression, unit)} AS date)"
            case Family.INTEGER:
                if slice_column.unit is Unit.DAY:
                    return expression
                start = f"to_char({self._day_start(self._integer_date(expression), unit)}, 'YYYYMMDD')"
                return f"coalesce(CAST({start} AS {column.type}), {expression})"
        start = f"to_char({self._day_start(self._text_date(expression), unit)}, 'YYYY-MM-DD')"
        return f'coalesce({start}, {expression}) COLLATE "C"'

    def _day_start(self, expression: str, unit: str) -> str:
        """Return the first moment of a unit of days, with no zone involved; an infinite day stays one."""
        return f"date_trunc('{unit}', CAST({expression} AS timestamp))"

    def _instant_start(self, expression: str, slice_column: SliceColumn) -> str:
        """Return the start of the unit in local time. An hour is cut off the instant: its wall time may occur twice.

        It is cut twice: where the clock was set by a part of an hour since, the first cut leads into the hour before.
        """
        zone = text_literal(slice_column.timezone)
        if slice_column.unit is not Unit.HOUR:
            return f"timezone({zone}, date_trunc('{slice_column.unit.value}', timezone({zone}, {expression})))"
        start = expression
        for _ in range(1 if slice_column.timezone == "UTC" else 2):
            wall = f"timezone({zone}, {start})"
            start = f"({start} - ({wall} - date_trunc('hour', {wall})))"
        return f"(CASE WHEN isfinite({expression}) THEN {start} ELSE {expression} END)"

    def _integer_date(self, expression: str) -> str:
        """Return a whole number yyyymmdd as a date; NULL where it is none."""
        text = f"CAST({expression} AS text)"
        digits = f"lpad({text}, 8, '0')"
        is_date = f"length({text}) <= 8 AND {text} NOT LIKE '-%' AND {self._is_date(digits)}"
        return f"CASE WHEN {is_date} THEN CAST({digits} AS date) END"

    def _text_date(self, expression: str) -> str:
        """Return ISO text as a date; NULL where it is none."""
        is_iso = f"{expression} ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$'"
        return f"CASE WHEN {is_iso} THEN CASE WHEN {self._is_date(expression)} THEN CAST({expression} AS date) END END"

    def _is_date(self, text: str) -> str:
        return f"pg_input_is_valid({text}, 'date')"

    def slice_text(self, expression: str, column: Column) -> str:
        """Return a slice value as text; instants in UTC."""
        if column.family in (Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ):
            return self._dated(expression, column)
        return f"CAST({expression} AS text)"

    def slice_key(self, expression: str, column: Column) -> str:
        """Return the first moment of a slice as `slice_text` has it, also where a session has another DateStyle.

        What is beyond the calendar is no slice. Its text depends on the session, and is that of no slice in any.
        """
        if column.family not in SLICE_FORMATS:
            return self.slice_text(expression, column)
        value = f"timezone('UTC', {expression})" if column.family is Family.TIMESTAMPTZ else expression
        text = f"to_char(CAST({value} AS timestamp), '{SLICE_FORMATS[column.family]}')"
        inside, other = self.in_calendar(expression, column), self._dated(expression, column)
        return f"CASE WHEN {inside} THEN {text} ELSE {other} END"

    def off_unit(self, expression: str, column: Column, slice_column: SliceColumn) -> str:
        """Return a condition that is true when a value is not the first moment of a unit."""
        unit = slice_column.unit.value
        match column.family:
            case Family.TEXT:
                start = f"to_char({self._day_start(self._text_date(expression), unit)}, 'YYYY-MM-DD')"
                return f"coalesce({start} <> CAST({expression} AS text), true)"
            case Family.INTEGER:
                start = f"to_char({self._day_start(self._integer_date(expression), unit)}, 'YYYYMMDD')"
                return f"coalesce(CAST({start} AS bigint) <> {expression}, true)"
        return f"{self.slice_start(expression, column, slice_column)} <> {expression}"

    def in_calendar(self, expression: str, column: Column) -> str:
        """Return a condition that is true when a value lies on a day of the years 1 to 9999; an index can serve it."""
        if column.family is Family.TEXT:
            return f"{self._text_date(expression)} IS NOT NULL"
        if column.family is Family.INTEGER:
            return f"{self._integer_date(expression)} IS NOT NULL"
        first, last = FARTHEST[column.family]
        type_text = {Family.DATE: "date", Family.TIMESTAMP: "timestamp"}.get(column.family, "timestamptz")
        return f"{expression} BETWEEN {type_text} '{first}' AND {type_text} '{last}'"

    def plain(self, expression: str, column: Column) -> str:
        """Return text under the collation of bytes; other values as they are."""
        return f'{expression} COLLATE "C"' if column.family is Family.TEXT else expression

    def equal(self, left: str, right: str, column: Column, *, nulls: bool = True) -> str:
        """Return the NULL-safe condition that two values are the same: as texts, which can be joined by hash.

        Where one of the two is never NULL they need no texts: what is NULL has no counterpart then.
        """
        if not nulls:
            return f"{left} = {right}"
        sides = [f"coalesce('V' || {self._key_text(side, column)}, 'N')" for side in (left, right)]
        return " = ".join(f'{side} COLLATE "C"' for side in sides)

    def _key_text(self, expression: str, column: Column) -> str:
        """Return a text that is the same where values are."""
        if column.family in (Family.TEXT, Family.ENUM):
            return f"CAST({expression} AS text)"
        return self.canonical(expression, column, None)

    def matches(self, expression: str, pattern: str) -> str:
        """Return the condition that a whole text is of a pattern."""
        return f"({expression} ~ {text_literal(f'^({pattern})$')})"

    def picked(self, table: str, select: str) -> str:
        """Return the statement that puts rows into a temporary table for the transaction that it stands in."""
        return f"CREATE TEMPORARY TABLE {table} ON COMMIT DROP AS\n{select}"

    def every_column(self, target: Target) -> str:
        """Return every column that is kept; whether the table still has just these is looked at under its lock."""
        return column_list(kept_columns(target))

    def new_schema(self, catalog: str, schema: str) -> str:
        """Return the name of a schema; it is made in the database that the session is in."""
        return quote(schema)

    def overriding(self, target: Target, columns: Iterable[str]) -> str:
        """Return what an INSERT says that puts identity values back."""
        identities = {column.name for column in target.columns if column.fill is Fill.IDENTITY}
        return " OVERRIDING SYSTEM VALUE" if identities & set(columns) else ""

    def try_cast(self, expression: str, column: Column, source: Column | None = None) -> str:
        """Return the value in the column's type, or NULL; what is too long for it is cut, and found by `lossy`."""
        text = f"CAST({expression} AS text)"
        if column.base:  # a domain has rules of its own, which a cast would end with
            if column.family is Family.INTEGER:
                text = f"CAST(trim_scale(CAST({self._input(text, 'numeric')} AS numeric)) AS text)"
            return f"CAST({self._input(text, column.type)} AS {column.type})"
        match column.family:
            case Family.INTEGER:
                largest = 2 ** INTEGER_BITS.get(column.type, 63) - 1
                number = self._number(expression, source)
                fits = f"{number} BETWEEN {-largest - 1} AND {largest}"
                return f"CASE WHEN {fits} THEN CAST({number} AS {column.type}) END"
            case Family.DECIMAL:
                return self._decimal(self._number(expression, source), column)
            case Family.TEXT:
                return f"CAST({text} AS {column.type})"
        return f"CAST({self._input(text, column.type)} AS {column.type})"

    def _input(self, text: str, type_text: str) -> str:
        """Return a text where it is one of a type, else NULL."""
        return f"CASE WHEN pg_input_is_valid({text}, {text_literal(type_text)}) THEN {text} END"

    def _number(self, expression: str, source: Column | None) -> str:
        """Return a value as an exact number; NULL where it is none. A float is the number that its text says."""
        if source is not None and source.family in (Family.INTEGER, Family.DECIMAL):
            return f"CAST({expression} AS numeric)"
        return f"CAST({self._input(f'CAST({expression} AS text)', 'numeric')} AS numeric)"

    def _decimal(self, number: str, column: Column) -> str:
        digits = precision(column.type)
        if digits is None:
            return f"CAST({number} AS {column.type})"
        whole, scale = digits
        fits = f"{number} NOT IN ('Infinity', '-Infinity') AND abs(round({number}, {scale})) < 1e{whole - scale}"
        return f"CASE WHEN {fits} OR {number} = 'NaN' THEN CAST({number} AS {column.type}) END"

    def lossy(self, expression: str, source: Column, target: Column, scale: int | None) -> str | None:
        """Return a condition that is true when the cast changes the value, or no decimal can hold it."""
        if target.family is Family.FLOAT or (source.family is Family.FLOAT and scale is not None):
            return self._lossy_float(expression, target, scale)
        changed = []
        if source.type != target.type and not holds_every(source, target):
            cast = self.try_cast(expression, target, source)
            changed = [f"{cast} IS NULL", f"NOT ({self._same_after(cast, expression, source, target)})"]
        if source.family is Family.DECIMAL:
            changed.append(self.not_finite(expression))
        if source.family is Family.FLOAT:  # beyond these digits the cast itself is not exact
            changed.append(f"abs({expression}) > {2**53}")
        return f"({expression} IS NOT NULL AND ({' OR '.join(changed)}))" if changed else None

    def _same_after(self, cast: str, expression: str, source: Column, target: Column) -> str:
        """Return the condition that a cast value is still the value it was."""
        if source.family.is_number and target.family.is_number:
            return f"CAST({cast} AS numeric) = {self._number(expression, source)}"
        if source.family in (Family.DATE, Family.TIMESTAMP) and target.family in (Family.DATE, Family.TIMESTAMP):
            return f"CAST({cast} AS timestamp) = CAST({expression} AS timestamp)"
        if source.family is Family.TEXT or target.family is Family.TEXT:
            before = f"CAST({expression} AS text)"
            if target.holds.startswith(PADDED):
                before = f"rtrim({before}, ' ')"
            return f'CAST({cast} AS text) COLLATE "C" = {before} COLLATE "C"'
        return f"CAST({cast} AS text) = CAST({expression} AS text)"

    def _lossy_float(self, expression: str, target: Column, scale: int | None) -> str:
        """Compare at the declared scale; NaN, infinity and what has no decimal are lossy."""
        cast, exact = (self._at_scale(f"({value})", scale) for value in (self.try_cast(expression, target), expression))
        return f"({expression} IS NOT NULL AND ({cast} IS NULL OR {cast} IS DISTINCT FROM {exact}))"

    def not_finite(self, expression: str) -> str:
        """Return a condition that is true when a number is NaN or infinite."""
        return f"({expression} IN ('NaN', 'Infinity', '-Infinity'))"

    def shown(self, expression: str, column: Column, scale: int | None) -> str:
        """Return a value as it is fetched: integers and decimals as they are, floats at their scale, the rest text."""
        match column.family:
            case Family.INTEGER | Family.BOOLEAN:
                return expression
            case Family.DECIMAL:
                return f"trim_scale({expression})" if precision(column.holds) is None else expression
            case Family.FLOAT:
                return self._at_scale(expression, scale)
            case Family.TIMESTAMPTZ:
                return f"({self.slice_text(expression, column)}) || '+00'"
            case Family.DATE | Family.TIMESTAMP:
                return self.slice_text(expression, column)
        return f"CAST({expression} AS text)"

    def json_object(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return a JSON object as text."""
        columns = ", ".join(f"{value} AS {quote(key)}" for key, value in pairs)
        return f"(SELECT CAST(row_to_json(pairs) AS text) FROM (SELECT {columns}) AS pairs)"

    def near_key(self, expression: str) -> str:
        """Return text folded for case, outer spaces and, in a database of UTF-8, Unicode form."""
        folded = f"normalize(trim({expression}), NFC)" if self._is_utf8 else f"trim({expression})"
        return f'lower({folded} COLLATE "default")'

    def different(self, expression: str, column: Column) -> str:
        """Return the value itself: the table is locked, and no other writer has to see a conflict."""
        return expression
