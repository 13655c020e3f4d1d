"""SQL that engines share: how a slice, a row and a range are written, given the few words in which dialects differ.

Identifiers are quoted by one function, `quote`. Values of the user are bound; the only literals are texts that
`ranges` made from validated dates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reslice.contract import Contract, Measure, SliceColumn
from reslice.engines.dialect import Dialect
from reslice.fingerprint import columns_of
from reslice.ranges import Range, Scope
from reslice.tables import Column, Family, Fill, Target
from reslice.values import Staged

SLICE = '"reslice:slice"'
HASH = '"reslice:hash"'
CHANGE = '"reslice:change"'
ROWS = '"reslice:rows"'
TOTAL = '"reslice:total"'
PRESENT = '"reslice:present"'
MOVED = '"reslice:moved"'
"""Our own columns beside those of a user: a contract may not name one that begins so."""

OPEN_RANGES_MAX = 40
"""Ranges written out as conditions; a scope of more ranges is matched against a list of its slices."""


def quote(name: str) -> str:
    """Return `name` as one quoted identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """Return `value` as a text literal."""
    return "'" + value.replace("'", "''") + "'"


def before(place: int) -> str:
    """Return the column of a diff that holds a measure of the base, by its place among the measures, from 0.

    A name made of the measure's own would be cut off where a database allows no longer one.
    """
    return quote(f"reslice:before:{place}")


def after(place: int) -> str:
    """Return the column of a diff that holds a measure of the staged rows, by its place."""
    return quote(f"reslice:after:{place}")


def column_list(names: Iterable[str]) -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(quote(name) for name in names)


@dataclass(frozen=True, slots=True)
class Names:
    """The temporary relations of one staging, already qualified."""

    source: str
    staged: str
    base: str
    control: str
    slices: str
    diff: str
    rows: str


def dotted(*names: str) -> str:
    """Return names quoted, with dots between them; empty ones are left out."""
    return ".".join(quote(name) for name in names if name)


def target_name(target: Target) -> str:
    """Return the qualified, quoted name of the target."""
    return dotted(target.catalog, target.schema, target.table)


def relation(target: Target) -> str:
    """Return what the target's rows are read from: the table, or the SELECT of the current versions."""
    return f"({target.current}) AS current_rows" if target.current else target_name(target)


def slice_column(contract: Contract, target: Target) -> Column:
    """Return the target's column that decides which slice a row belongs to."""
    return target.column(contract.slice.column)


def scales(contract: Contract) -> Mapping[str, int | None]:
    """Return the declared scale of each measure."""
    return {measure.name: measure.scale for measure in contract.measures}


def numeric_measures(contract: Contract, target: Target) -> tuple[Measure, ...]:
    """Return the measures that can be summed, in declared order."""
    return tuple(measure for measure in contract.measures if target.column(measure.name).family.is_number)


def hash_of(dialect: Dialect, contract: Contract, target: Target, columns: Iterable[str], prefix: str = "") -> str:
    """Return the hash expression of a row that holds the target's types."""
    declared = scales(contract)
    texts = [
        f"coalesce('V' || {dialect.canonical(prefix + quote(name), target.column(name), declared.get(name))}, 'N')"
        for name in columns
    ]
    return dialect.row_hash(dialect.joined(texts))


KNOWN_ROWS = ("V" + "a\\pb\\\\c", "N")
"""The texts of two known rows: the value `a|b\\c`, and NULL."""

KNOWN_ANSWER = (2, sum(int(hashlib.md5(row.encode()).hexdigest()[:15], 16) for row in KNOWN_ROWS))
"""Row count and hash sum of the known rows, by the definition of the fingerprint."""


def known_answer_select(dialect: Dialect) -> str:
    """Return the SELECT that must give KNOWN_ANSWER where functions are what their names say."""
    text = dialect.canonical("value", Column("value", "VARCHAR", Family.TEXT), None)
    hashed = dialect.row_hash(dialect.joined([f"coalesce('V' || {text}, 'N')"]))
    return f"SELECT count(*), sum({hashed}) FROM (VALUES ('a|b\\c'), (NULL)) AS known (value)"


def within_range(dialect: Dialect, expression: str, column: Column, span: Range) -> str:
    """Return the condition that a slice value lies in a closed range: `>= start AND < next unit`."""
    bounds = span.column_values(column.family.value)
    start = dialect.bound(bounds.start, column, span.zone, local=bounds.local)
    after = dialect.bound(bounds.next, column, span.zone, local=bounds.local)
    value = dialect.plain(expression, column)
    return f"({value} >= {start} AND {value} < {after})"


def within(dialect: Dialect, expression: str, column: Column, slice_of: SliceColumn, scope: Scope) -> str:
    """Return the condition that a slice value lies in one of the ranges of `scope`."""
    if len(scope.ranges) <= OPEN_RANGES_MAX:
        conditions = [within_range(dialect, expression, column, span) for span in scope.ranges]
        return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"
    starts = []
    for moment in scope.slices():
        one = Range(scope.unit, scope.zone, moment, moment).column_values(column.family.value)
        starts.append(dialect.literal(one.start, column, scope.zone, local=one.local))
    hull = within_range(dialect, expression, column, scope.hull)
    return f"({hull} AND {dialect.slice_start(expression, column, slice_of)} IN ({', '.join(starts)}))"


def same_key(dialect: Dialect, staged: Staged, left: str, right: str) -> str:
    """Return the NULL-safe condition that two rows share their grain key, of which one is a staged row."""
    return " AND ".join(
        dialect.equal(
            f"{left}.{quote(grain.name)}",
            f"{right}.{quote(grain.name)}",
            staged.target.column(grain.name),
            nulls=grain.nulls_allowed or bool(staged.restores),
        )
        for grain in staged.contract.grain
    )


def base_select(dialect: Dialect, contract: Contract, target: Target, scope: Scope, beside: Sequence[str] = ()) -> str:
    """Return the SELECT of the base: the target's rows of the scope, with slice and hash.

    They have the contract's columns, and those `beside` them.
    """
    return rows_select(dialect, contract, target, relation(target), scope, beside)


def rows_select(
    dialect: Dialect, contract: Contract, target: Target, rows: str, scope: Scope, beside: Sequence[str] = ()
) -> str:
    """Return the SELECT of rows of the target's shape in the scope, with slice and hash."""
    column = slice_column(contract, target)
    names = (*contract.columns, *beside)
    values = [f"{dialect.plain(quote(name), target.column(name))} AS {quote(name)}" for name in names]
    return (
        f"SELECT {', '.join(values)},\n"
        f"  {dialect.slice_start(quote(column.name), column, contract.slice)} AS {SLICE},\n"
        f"  {hash_of(dialect, contract, target, columns_of(contract))} AS {HASH}\n"
        f"FROM {rows}\n"
        f"WHERE {within(dialect, quote(column.name), column, contract.slice, scope)}"
    )


def kept_select(dialect: Dialect, staged: Staged, rows: str, hashed: Sequence[str]) -> str:
    """Return the SELECT that stages rows which were the target's before: every kept column, with slice and hash."""
    contract, target = staged.contract, staged.target
    column = slice_column(contract, target)
    plain = [(name, dialect.plain(quote(name), target.column(name))) for name in kept_columns(target)]
    return (
        f"SELECT {', '.join(f'{value} AS {quote(name)}' for name, value in plain)},\n"
        f"  {dialect.slice_start(quote(column.name), column, contract.slice)} AS {SLICE},\n"
        f"  {hash_of(dialect, contract, target, hashed)} AS {HASH}\n"
        f"FROM ({rows}) AS kept_rows\n"
        f"WHERE {within(dialect, quote(column.name), column, contract.slice, staged.scope)}"
    )


def cast(dialect: Dialect, source: Column, wanted: Column) -> str:
    """Return a column of the source in the target's type, NULL where it cannot be, free of any collation."""
    value = quote(source.name)
    return dialect.plain(value if source.type == wanted.type else dialect.try_cast(value, wanted, source), wanted)


def staged_select(dialect: Dialect, staged: Staged, names: Names, hashed: Sequence[str]) -> str:
    """Return the SELECT that casts the source's rows once to the target's types, with slice and hash.

    Rows between the ranges of a scope are left out; rows beyond its hull, or with no slice, were counted before.
    """
    contract, target = staged.contract, staged.target
    column = slice_column(contract, target)
    casts = [
        f"{cast(dialect, source, target.column(source.name))} AS {quote(source.name)}"
        for source in staged.source_columns
        if source.name in contract.columns
    ]
    condition = within(dialect, quote(column.name), column, contract.slice, staged.scope)
    return (
        f"SELECT *, {dialect.slice_start(quote(column.name), column, contract.slice)} AS {SLICE},\n"
        f"  {hash_of(dialect, contract, target, hashed)} AS {HASH}\n"
        f"FROM (SELECT {', '.join(casts)} FROM {names.source}) AS source_rows\n"
        f"WHERE {condition}"
    )


def repeated_select(contract: Contract, table: str) -> str:
    """Return the SELECT of how many surplus rows of repeated keys a table holds."""
    keys = column_list(column.name for column in contract.grain)
    return f"SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM {table} GROUP BY {keys}) AS keys"


def slices_select(names: Names, sums: Sequence[str]) -> str:
    """Return the SELECT that puts both sides of every slice with rows beside each other: fingerprints, and `sums`.

    Sums are columns `base_sum_N` and `staged_sum_N`, counted from 0; NULL where a side has no value to add up.
    """
    summed = "".join(f", {expression} AS sum_{place}" for place, expression in enumerate(sums))
    side = f"SELECT {SLICE} AS slice, count(*) AS row_count, sum({HASH}) AS total{summed} FROM"
    shown = "".join(f",\n  b.sum_{n} AS base_sum_{n}, s.sum_{n} AS staged_sum_{n}" for n in range(len(sums)))
    return (
        "SELECT coalesce(b.slice, s.slice) AS slice,\n"
        "  coalesce(b.row_count, 0) AS base_rows, coalesce(b.total, 0) AS base_total,\n"
        f"  coalesce(s.row_count, 0) AS staged_rows, coalesce(s.total, 0) AS staged_total{shown}\n"
        f"FROM ({side} {names.base} GROUP BY 1) AS b\n"
        f"FULL JOIN ({side} {names.staged} GROUP BY 1) AS s ON b.slice = s.slice"
    )


DIFFERS = "(base_rows <> staged_rows OR base_total <> staged_total)"
"""A slice of `slices_select` whose rows are not the same rows."""


def diff_select(dialect: Dialect, staged: Staged, names: Names) -> str:
    """Return the SELECT of the groups that are not as they were, in the slices that differ.

    Columns: CHANGE, SLICE, the grain, `before` and `after` of every measure, ROWS of the base, and MOVED (how far the
    numbers moved together, for the order in which groups are shown). Repeated base keys count as changed.
    """
    contract, target = staged.contract, staged.target
    keys = [column.name for column in contract.grain]
    declared = scales(contract)
    folded, moved = [], ["0"]
    for measure in contract.measures:
        column = target.column(measure.name)
        name = quote(measure.name)
        fold = "sum" if column.family.is_number else "bool_and" if column.family is Family.BOOLEAN else "min"
        shown = dialect.shown(name, column, declared[measure.name])
        folded.append(f"{fold}({shown}) AS {name}")
        if column.family.is_number:
            after_value = dialect.shown(f"s.{name}", column, declared[measure.name])
            sides = [f"coalesce(CAST({value} AS {dialect.magnitude}), 0)" for value in (after_value, f"b.{name}")]
            moved.append(f"abs({' - '.join(sides)})")
    measures = [
        f"b.{quote(m.name)} AS {before(place)}, "
        f"{dialect.shown('s.' + quote(m.name), target.column(m.name), declared[m.name])} AS {after(place)}"
        for place, m in enumerate(contract.measures)
    ]
    differing = f"{SLICE} IN (SELECT slice FROM {names.slices} WHERE {DIFFERS})"
    rows = names.staged
    if staged.repeated:
        listed = column_list(keys)
        sums = f"sum({HASH}) AS {HASH}, {', '.join(folded)}"
        rows = f"(SELECT {listed}, {SLICE}, {sums} FROM {names.staged} GROUP BY {listed}, {SLICE}) AS folded"
    keyed = ", ".join(f"coalesce(s.{quote(key)}, b.{quote(key)}) AS {quote(key)}" for key in keys)
    return (
        f"SELECT CASE WHEN b.{ROWS} IS NULL THEN 'added' WHEN s.{PRESENT} IS NULL THEN 'removed' ELSE 'changed' END"
        f" AS {CHANGE},\n"
        f"  coalesce(s.{SLICE}, b.{SLICE}) AS {SLICE}, {keyed},\n"
        f"  {', '.join(measures)},\n"
        f"  coalesce(b.{ROWS}, 0) AS {ROWS}, {' + '.join(moved)} AS {MOVED}\n"
        f"FROM (SELECT {column_list(keys)}, {SLICE}, count(*) AS {ROWS}, sum({HASH}) AS {TOTAL}, {', '.join(folded)}\n"
        f"      FROM {names.base} WHERE {differing} GROUP BY {column_list(keys)}, {SLICE}) AS b\n"
        f"FULL JOIN (SELECT *, true AS {PRESENT} FROM {rows} WHERE {differing}) AS s\n"
        f"  ON {same_key(dialect, staged, 'b', 's')}\n"
        f"WHERE b.{ROWS} IS NULL OR s.{PRESENT} IS NULL OR b.{ROWS} > 1 OR b.{TOTAL} <> s.{HASH}"
    )


def fingerprint_select(
    dialect: Dialect, contract: Contract, target: Target, hashed: Sequence[str], condition: str
) -> str:
    """Return the SELECT of row count and hash sum of the target's rows that meet `condition`."""
    return (
        f"SELECT count(*), coalesce(sum({hash_of(dialect, contract, target, hashed)}), 0)\n"
        f"FROM {relation(target)} WHERE {condition}"
    )


def kept_columns(target: Target) -> tuple[str, ...]:
    """Return the target's columns that are kept and put back: all but those the database computes."""
    return tuple(column.name for column in target.columns if column.fill is not Fill.GENERATED)


def written_values(staged: Staged, row: str) -> dict[str, str]:
    """Return what each written column gets from a staged `row`: a restore puts every kept column back.

    Stamps of a run take the parameters `run_time` and `run_id`.
    """
    contract, target = staged.contract, staged.target
    if staged.restores:
        return {name: f"{row}.{quote(name)}" for name in kept_columns(target)}
    values = {name: f"{row}.{quote(name)}" for name in contract.columns}
    stamps = {stamp.column: stamp.value.value for stamp in contract.stamps}
    return values | {name: f"CAST(${value} AS {target.column(name).type})" for name, value in stamps.items()}


def insert_statement(dialect: Dialect, staged: Staged, names: Names, condition: str) -> str:
    """Return the INSERT of the staged rows `s` that meet `condition`."""
    values = written_values(staged, "s")
    return (
        f"INSERT INTO {target_name(staged.target)} ({column_list(values)}){dialect.overriding(staged.target, values)}\n"
        f"SELECT {', '.join(values.values())} FROM {names.staged} AS s WHERE {condition}"
    )
