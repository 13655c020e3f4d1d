"""What is measured on the temporary tables of one staging: the rules of the contract, the controls, and the diff.

Shared by engines: each function takes a `Session` (execute and dialect) and gives values. Statements are few, because
each has a fixed cost; examples are fetched only where something is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from reslice.contract import Contract, Method
from reslice.engines import sql
from reslice.engines.controls import control_lines
from reslice.engines.dialect import Dialect
from reslice.engines.session import Session, exact_number, label_of, moment_of, sum_of
from reslice.engines.sql import Names, quote
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Scope, moment_from_column
from reslice.tables import Column, Family, Target
from reslice.totals import added_up
from reslice.values import (
    Change,
    ControlLine,
    Diff,
    Findings,
    Fingerprint,
    GroupDiff,
    Problem,
    SliceDiff,
    Staged,
    Total,
)

GROUPS_MAX = 500
"""Groups of a diff that are fetched, shown and recorded; how many more there are is always said."""

NEAR_EQUAL_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Rule:
    """A condition on rows of the source that must hold for none of them."""

    kind: str
    column: str | None
    condition: str
    is_not_finite: bool = False


def inspect(session: Session, staged: Staged, names: Names) -> Findings:
    """Measure every rule of the contract on the source's rows and on the cast rows made from them."""
    rules = _rules(session.dialect, staged)
    counts = ", ".join(f"count(*) FILTER (WHERE {rule.condition})" for rule in rules)
    row = session.execute(f"SELECT count(*), {counts} FROM {names.source}")[0]
    problems = [
        Problem(rule.kind, rule.column, count, _example(session, staged, names, rule), rule.is_not_finite)
        for rule, count in zip(rules, row[1:], strict=True)
        if count
    ]
    problems += _repeated_keys(session, staged, names)
    controls: tuple[ControlLine, ...] = ()
    if staged.contract.controls is not None:
        found, controls = control_lines(session, staged, names, staged.contract.controls, names.staged)
        problems += found
    return Findings(row[0], tuple(problems), tuple(_near_equal(session, staged, names)), controls)


def _rules(dialect: Dialect, staged: Staged) -> list[_Rule]:
    """Return every rule that one pass over the source's rows can decide, in the order failures are told."""
    contract, target = staged.contract, staged.target
    sources = {column.name: column for column in staged.source_columns}
    declared = sql.scales(contract)

    def cast(name: str) -> str:
        return sql.cast(dialect, sources[name], target.column(name))

    rules = []
    for name in contract.columns:
        lossy = dialect.lossy(quote(name), sources[name], target.column(name), declared.get(name))
        if lossy is not None and sources[name].family is Family.FLOAT:
            not_finite = dialect.not_finite(quote(name))
            rules.append(_Rule("lossy_value", name, not_finite, is_not_finite=True))
            lossy = f"({lossy} AND NOT {not_finite})"
        if lossy is not None:
            rules.append(_Rule("lossy_value", name, lossy))
    slice_name = contract.slice.column
    column = target.column(slice_name)
    rules.append(_Rule("slice_null", slice_name, f"{quote(slice_name)} IS NULL"))
    in_hull = sql.within_range(dialect, cast(slice_name), column, staged.scope.hull)
    rules.append(_Rule("outside_range", slice_name, f"NOT {in_hull}"))
    off = dialect.off_unit(cast(slice_name), column, contract.slice)
    rules.append(_Rule("slice_off_unit", slice_name, f"({in_hull} AND {off})"))
    strict = [grain.name for grain in contract.grain if grain.name != slice_name and not grain.nulls_allowed]
    rules += [_Rule("key_null", name, f"{quote(name)} IS NULL") for name in strict]
    for measure in contract.measures:
        if not measure.nulls_allowed:
            rules.append(_Rule("measure_null", measure.name, f"{quote(measure.name)} IS NULL"))
        if measure.minimum is not None:
            rules.append(_Rule("measure_minimum", measure.name, f"{cast(measure.name)} < {measure.minimum:f}"))
    return rules


def _example(session: Session, staged: Staged, names: Names, rule: _Rule) -> str:
    """Return one row that breaks `rule`, in words; for rows outside the range also what they add up to."""
    shown = [_as_text(session.dialect, column) for column in staged.source_columns]
    order = sql.column_list(column.name for column in staged.contract.grain)
    row = session.execute(
        f"SELECT {', '.join(shown)} FROM {names.source} WHERE {rule.condition} ORDER BY {order} LIMIT 1"
    )[0]
    example = row_words([column.name for column in staged.source_columns], row, staged.contract)
    if rule.kind != "outside_range":
        return example
    numbers = sql.numeric_measures(staged.contract, staged.target)
    if not numbers:
        return example
    totals = session.execute(
        f"SELECT {', '.join(f'CAST(sum({quote(measure.name)}) AS VARCHAR)' for measure in numbers)}"
        f" FROM {names.source} WHERE {rule.condition}"
    )[0]
    words = ", ".join(f"{measure.name} {total}" for measure, total in zip(numbers, totals, strict=True))
    return f"{example}; together {words}"


def _as_text(dialect: Dialect, column: Column) -> str:
    """Return a column as text: instants in UTC, as everywhere, and not in the zone of the session."""
    if column.family is Family.TIMESTAMPTZ:
        return dialect.shown(quote(column.name), column, None)
    return f"CAST({quote(column.name)} AS VARCHAR)"


def row_words(columns: Sequence[str], row: Sequence[Any], contract: Any) -> str:
    """Return a row as `(2026-01-02, web) order_count 1, amount_cents 7000`."""
    values = dict(zip(columns, row, strict=True))
    key = ", ".join("NULL" if values.get(c.name) is None else str(values[c.name]) for c in contract.grain)
    measures = ", ".join(
        f"{m.name} {'NULL' if values[m.name] is None else values[m.name]}"
        for m in contract.measures
        if m.name in values
    )
    return f"({key}) {measures}"


def _repeated_keys(session: Session, staged: Staged, names: Names) -> list[Problem]:
    keys = sql.column_list(column.name for column in staged.contract.grain)
    shown = ", ".join(
        session.dialect.shown(quote(column.name), staged.target.column(column.name), None)
        for column in staged.contract.grain
    )
    repeated = f"SELECT {keys}, count(*) AS {sql.ROWS} FROM {names.staged} GROUP BY {keys} HAVING count(*) > 1"
    found = session.execute(
        f"SELECT count(*) OVER (), sum({sql.ROWS}) OVER (), {sql.ROWS}, {shown} FROM ({repeated}) AS repeated"
        f" ORDER BY {sql.ROWS} DESC, {keys} LIMIT 1"
    )
    if not found:
        return []
    key_count, row_count, most, *key = found[0]
    words = ", ".join("NULL" if value is None else str(value) for value in key)
    return [
        Problem(
            "key_repeated", None, int(key_count), f"{int(row_count)} rows share them; e.g. ({words}) has {most} rows"
        )
    ]


def _near_equal(session: Session, staged: Staged, names: Names) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Find text keys that are equal but for case, outer spaces or Unicode form."""
    for grain in staged.contract.grain:
        if staged.target.column(grain.name).family is not Family.TEXT or grain.name == staged.contract.slice.column:
            continue
        column = quote(grain.name)
        folded = session.dialect.near_key("value")
        distinct = f"SELECT DISTINCT {column} AS value FROM {names.staged} WHERE {column} IS NOT NULL"
        rows = session.execute(
            f"SELECT array_agg(value ORDER BY value) FROM ({distinct}) AS keys GROUP BY {folded}"
            f" HAVING count(*) > 1 ORDER BY {folded} LIMIT {NEAR_EQUAL_SHOWN}"
        )
        if rows:
            yield grain.name, tuple(key for row in rows for key in row[0])


# --- the diff ---------------------------------------------------------------------------------------------------------


def compare(session: Session, staged: Staged, names: Names) -> Diff:
    """Compare staged rows and base. Equal row counts and fingerprints decide, never an empty join."""
    contract, target, scope = staged.contract, staged.target, staged.scope
    column = sql.slice_column(contract, target)
    sides = _sides(session, staged, names)
    counts: dict[Any, tuple[int, int, int, int]] = {}
    groups: tuple[GroupDiff, ...] = ()
    if any(side.differs for side in sides) or contract.method is Method.MERGE:
        diff = sql.diff_select(session.dialect, staged, names)
        session.execute(f"CREATE TEMPORARY TABLE {names.diff} AS {diff}")
        counts = _slice_counts(session, scope, column, names)
        groups = _groups(session, staged, column, names)
    surplus = _surplus(session, staged, column, names) if staged.repeated else {}
    slices = tuple(_counted(side, counts.get(side.slice, (0, 0, 0, 0)), surplus.get(side.slice, 0)) for side in sides)
    moved = sum(added + changed + removed for added, changed, removed, _ in counts.values())
    measures = [measure.name for measure in sql.numeric_measures(contract, target)]
    totals = {name: _added_up(side.totals[name] for side in sides) for name in measures}
    return Diff(scope, slices, groups, moved - len(groups), totals, columns_of(contract))


def _sides(session: Session, staged: Staged, names: Names) -> list[SliceDiff]:
    """Put both sides of every slice with rows beside each other, in order; how groups moved is not counted yet."""
    contract, scope = staged.contract, staged.scope
    column = sql.slice_column(contract, staged.target)
    measures = [measure.name for measure in sql.numeric_measures(contract, staged.target)]
    sums = [sum_of(session.dialect, staged, name) for name in measures]
    session.execute(f"CREATE TEMPORARY TABLE {names.slices} AS {sql.slices_select(names, sums)}")
    summed = "".join(f", base_sum_{place}, staged_sum_{place}" for place in range(len(sums)))
    rows = session.execute(
        f"SELECT {session.dialect.slice_text('slice', column)}, base_rows, base_total, staged_rows, staged_total"
        f"{summed} FROM {names.slices} ORDER BY slice"
    )
    sides = []
    for text, base_rows, base_total, staged_rows, staged_total, *values in rows:
        moment = moment_of(scope, column, text)
        pairs = zip(measures, values[::2], values[1::2], strict=True)
        totals = {
            name: Total(*(exact_number(value, staged.target.column(name).family) for value in sides_of))
            for name, *sides_of in pairs
        }
        base, after = Fingerprint(int(base_rows), int(base_total)), Fingerprint(int(staged_rows), int(staged_total))
        sides.append(SliceDiff(moment, scope.label(moment), base, after, totals=totals))
    return sides


def _surplus(session: Session, staged: Staged, column: Column, names: Names) -> dict[Any, int]:
    """Return how many staged rows of each slice are there beside another one of their key."""
    keys = sql.column_list(grain.name for grain in staged.contract.grain)
    rows = session.execute(
        f"SELECT {session.dialect.slice_text(sql.SLICE, column)}, sum({sql.ROWS} - 1)"
        f" FROM (SELECT {sql.SLICE}, count(*) AS {sql.ROWS} FROM {names.staged} GROUP BY {keys}, {sql.SLICE}) AS keys"
        f" GROUP BY {sql.SLICE}"
    )
    return {moment_of(staged.scope, column, text): int(count) for text, count in rows}


def _counted(side: SliceDiff, counts: tuple[int, int, int, int], surplus: int) -> SliceDiff:
    added, changed, removed, repeated = counts
    unchanged = side.staged.rows - surplus - added - changed
    return replace(side, added=added, changed=changed, removed=removed, unchanged=unchanged, repeated=repeated)


def _added_up(totals: Iterable[Total]) -> Total:
    """Return the sums over all slices; no value to add up on a side is None, as SQL has it."""
    sides = list(totals)
    before = [each.before for each in sides if each.before is not None]
    after = [each.after for each in sides if each.after is not None]
    return Total(added_up(before) if before else None, added_up(after) if after else None)


def _slice_counts(session: Session, scope: Scope, column: Column, names: Names) -> dict[Any, tuple[int, int, int, int]]:
    each = ", ".join(f"count(*) FILTER (WHERE {sql.CHANGE} = '{change.value}')" for change in Change)
    rows = session.execute(
        f"SELECT {session.dialect.slice_text(sql.SLICE, column)}, {each}, sum(greatest({sql.ROWS} - 1, 0))"
        f" FROM {names.diff} GROUP BY {sql.SLICE}"
    )
    return {moment_of(scope, column, row[0]): (row[1], row[2], row[3], int(row[4])) for row in rows}


def _groups(session: Session, staged: Staged, column: Column, names: Names) -> tuple[GroupDiff, ...]:
    """Fetch the groups that moved most, then put them in the order of slice and key."""
    contract, dialect = staged.contract, session.dialect
    exact = frozenset(c.name for c in staged.target.columns if c.family in (Family.DECIMAL, Family.FLOAT))

    def pair(name: str, value: str) -> tuple[str, str]:
        """JSON numbers of a database are doubles where they have a fraction, so those go as text."""
        return name, f"CAST({value} AS VARCHAR)" if name in exact else value

    key = dialect.json_object(
        [pair(g.name, dialect.shown(quote(g.name), staged.target.column(g.name), None)) for g in contract.grain]
    )
    before = dialect.json_object([pair(m.name, sql.before(place)) for place, m in enumerate(contract.measures)])
    after = dialect.json_object([pair(m.name, sql.after(place)) for place, m in enumerate(contract.measures)])
    text = dialect.slice_text(sql.SLICE, column)
    order = f"{sql.SLICE}, {sql.column_list(column.name for column in contract.grain)}"
    rows = session.execute(
        f"SELECT {sql.CHANGE}, {text}, {key}, {before}, {after}, {sql.ROWS}"
        f" FROM (SELECT * FROM {names.diff} ORDER BY {sql.MOVED} DESC, {order} LIMIT {GROUPS_MAX}) AS largest"
        f" ORDER BY {order}"
    )
    labels = {slice_text: label_of(staged.scope, column, slice_text) for slice_text in {row[1] for row in rows}}
    return tuple(
        GroupDiff(
            Change(change),
            labels[slice_text],
            _values(key_text, exact),
            None if change == Change.ADDED else _values(before_text, exact),
            None if change == Change.REMOVED else _values(after_text, exact),
            rows_before,
        )
        for change, slice_text, key_text, before_text, after_text, rows_before in rows
    )


def _values(text: str, exact: frozenset[str]) -> Mapping[str, Any]:
    values = json.loads(text)
    return {n: Decimal(value) if n in exact and value is not None else value for n, value in values.items()}


def compare_stagings(session: Session, staged: Staged, first: Names, second: Names) -> tuple[str, ...]:
    """Name the columns in which two stagings differ; all of the grain when they hold different keys."""
    contract = staged.contract
    fingerprints = session.execute(
        f"SELECT (SELECT (count(*), coalesce(sum({sql.HASH}), 0)) FROM {first.staged})"
        f" = (SELECT (count(*), coalesce(sum({sql.HASH}), 0)) FROM {second.staged})"
    )[0][0]
    if fingerprints:
        return ()
    keys = [column.name for column in contract.grain]
    measures = ", ".join(
        f"count(*) FILTER (WHERE a.{quote(m.name)} IS DISTINCT FROM b.{quote(m.name)})" for m in contract.measures
    )
    same = sql.same_key(session.dialect, staged, "a", "b")
    row = session.execute(
        f"SELECT count(*) FILTER (WHERE a.{sql.PRESENT} IS NULL OR b.{sql.PRESENT} IS NULL), {measures}\n"
        f"FROM (SELECT *, true AS {sql.PRESENT} FROM {first.staged}) AS a\n"
        f"FULL JOIN (SELECT *, true AS {sql.PRESENT} FROM {second.staged}) AS b ON {same}"
    )[0]
    if row[0]:
        return tuple(keys)
    return tuple(m.name for m, count in zip(contract.measures, row[1:], strict=True) if count)


BEYOND_THE_CALENDAR = re.compile(r"-?infinity|.*\(BC\).*|\d{5,}-.*")
"""Dates that a database holds and no slice does."""


def affected_moments(
    session: Session, contract: Contract, target: Target, body: str, values: Mapping[str, str]
) -> list[Moment]:
    """Return the slices that the query `body` names in its first column, in order; NULLs belong to no slice.

    Raises ValueError for a value that is no slice value; infinite dates and those beyond the years 1 to 9999 are none.
    """
    column = sql.slice_column(contract, target)
    cast = session.dialect.try_cast("value", column)
    text = session.dialect.slice_text(session.dialect.slice_start(cast, column, contract.slice), column)
    rows = session.execute(
        f"SELECT DISTINCT {text}, CAST(value AS VARCHAR) FROM (\n{body}\n) AS query (value) WHERE value IS NOT NULL",
        values,
    )
    found = {
        moment_from_column(start or raw, column.family.value, contract.slice.unit, contract.slice.timezone)
        for start, raw in rows
        if not BEYOND_THE_CALENDAR.fullmatch(start or raw)
    }
    return sorted(found)
