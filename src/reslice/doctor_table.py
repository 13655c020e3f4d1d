"""What doctor says of a table: its keys, what names it, its versions, and its rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from reslice.commands import command
from reslice.contract import Contract, Method, Unit
from reslice.engines.base import Engine
from reslice.engines.versions import view_name
from reslice.findings import Finding, Health, counted, some
from reslice.health import RowHealth
from reslice.ranges import Scope
from reslice.recorded import Version
from reslice.tables import Target


def key_checked(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Say whether a unique key keeps one row per grain, whoever writes."""
    grain = {column.name for column in contract.grain}
    allowed = grain
    if contract.method is Method.APPEND_VERSION:
        allowed = grain | {stamp.column for stamp in contract.stamps}
    keys = [key for key in target.keys if key <= allowed and key & grain]
    names = ", ".join(column.name for column in contract.grain)
    if not keys:
        statement = engine.health.key_statement(contract, target)
        is_null_safe = engine.health.key_is_null_safe(contract, target)
        found = f"none on the grain ({names}); {_worth_of_a_key(contract, target, is_null_safe=is_null_safe)}"
        yield Finding(contract.name, "unique_key", Health.ADVICE, found, statement)
        return
    narrow = [key for key in keys if not grain <= key]
    if narrow:
        found = (
            f"({', '.join(sorted(narrow[0]))}) allows fewer rows than the grain ({names}); a run can be refused by it"
        )
        yield Finding(contract.name, "unique_key", Health.WARNING, found, "widen the key, or narrow the grain")
        return
    nullable = [column.name for column in contract.grain if column.nulls_allowed and column.name not in target.not_null]
    words = f"on the grain ({names})"
    if nullable and not any(grain <= key <= allowed for key in engine.health.null_safe_keys(target)):
        words += f"; rows whose {' or '.join(nullable)} is NULL are not held apart by it, and are by reslice"
    yield Finding(contract.name, "unique_key", Health.OK, words)


def neighbours_checked(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Say which foreign keys and views name the table, and whether they may."""
    pointing = ", ".join(target.referenced_by)
    if not pointing:
        yield Finding(contract.name, "foreign_keys", Health.OK, "none points at the table")
    elif contract.method is Method.REPLACE_SLICE:
        found = f"those of {pointing} point at the table; a replaced row would break them"
        yield Finding(contract.name, "foreign_keys", Health.WRONG, found, "method: merge")
    else:
        yield Finding(contract.name, "foreign_keys", Health.OK, f"those of {pointing} point at the table")
    views = engine.health.views(target)
    name = "names" if len(views) == 1 else "name"
    if views and contract.method is Method.APPEND_VERSION:
        found = f"{some(views)} {name} the table itself, which holds every version of a slice, and may count it twice"
        after = f"let {views[0]} read {view_name(target)}"
        yield Finding(contract.name, "views", Health.WARNING, found, after)
    else:
        words = f"{some(views)} {name} the table" if views else "none names the table"
        yield Finding(contract.name, "views", Health.OK, words)


def versions_checked(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Say whether readers find the current versions, and how much of the table is not current."""
    if contract.method is not Method.APPEND_VERSION:
        return
    view = view_name(target)
    versions = engine.ledger.versions(contract, target, None)
    written = [each.slice for each in versions if each.run]
    state, after = engine.health.current_view(contract, target), ""
    if not written:
        health, found = Health.OK, f"none yet: the first run makes {view}"
    elif state is not True:
        health, after = Health.WARNING, command("run", contract.name, Scope.parse(written[-1], contract.slice))
        found = f"{view} is gone" if state is None else f"{view} is not what this contract and its ledger need"
        found += "; the next run makes it anew"
    else:
        health, found = Health.OK, f"{view} is up to date: readers use it, and not the table"
    yield Finding(contract.name, "current_view", health, found, after)
    yield Finding(contract.name, "old_versions", Health.OK, _old_words(versions))


def _old_words(versions: Sequence[Version]) -> str:
    """Say how many versions of runs are not current; rows that no run wrote are no version, and told apart."""
    old = [each for each in versions if each.run and not each.is_current]
    rows = counted(sum(each.rows for each in old), "row")
    words = f"{counted(len(old), 'version')} with {rows} that {'is' if len(old) == 1 else 'are'} not current"
    beside = sum(each.rows for each in versions if not each.run and not each.is_current)
    left = f"; {counted(beside, 'row')} of no run, which readers of the view do not see and pruning leaves"
    return (words if old else "none: every version is current") + (left if beside else "")


def rows_checked(contract: Contract, rows: RowHealth) -> Iterator[Finding]:
    """Say which rows no run can be right about: repeated keys, keys that are NULL, values off the unit."""
    name = shlex.quote(contract.name)
    if rows.repeated is None:
        yield Finding(contract.name, "repeated_keys", Health.OK, f"none in {counted(rows.rows, 'row')}")
    else:
        again = rows.repeated
        keys = "1 key stands" if again.keys == 1 else f"{again.keys} keys stand"
        found = f"{keys} in {again.rows} rows; e.g. {again.example}"
        span = again.first if again.first == again.last else f"{again.first}..{again.last}"
        after = f"reslice plan {name} {shlex.quote(span)}"
        yield Finding(contract.name, "repeated_keys", Health.WRONG, found, after)
    nulls = dict(rows.null_keys)
    if rows.slice_nulls:
        nulls = {contract.slice.column: rows.slice_nulls} | nulls
    if nulls:
        found = ", ".join(f"{column} is NULL in {counted(count, 'row')}" for column, count in nulls.items())
        after = "correct these rows: a row without a slice is never replaced" if rows.slice_nulls else (
            f"correct these rows, or allow it:  grain: [{{column: {next(iter(nulls))}, nulls: allow}}]"
        )  # fmt: skip
        yield Finding(contract.name, "null_keys", Health.WRONG, found, after)
    else:
        yield Finding(contract.name, "null_keys", Health.OK, "none where the contract forbids them")
    if rows.off_unit:
        unit = contract.slice.unit
        lie = "1 row lies" if rows.off_unit == 1 else f"{rows.off_unit} rows lie"
        found = f"{lie} off the beginning of {_a(unit)}; e.g. {rows.off_example}"
        yield Finding(
            contract.name, "slice_values", Health.WRONG, found, f"correct {contract.slice.column} of these rows"
        )
    else:
        words = f"each is the first moment of {_a(contract.slice.unit)}"
        yield Finding(contract.name, "slice_values", Health.OK, words)


def _worth_of_a_key(contract: Contract, target: Target, *, is_null_safe: bool) -> str:
    """Say what a key on the grain would do, and which rows it leaves out; a choice, for it has its price."""
    nullable = [column.name for column in contract.grain if column.name not in target.not_null and not is_null_safe]
    words = "with one the database refuses a repeated row of any writer"
    return f"{words}, save where {' or '.join(nullable)} is NULL" if nullable else words


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit is Unit.HOUR else f"a {unit}"
