"""Stage: look at the target, and evaluate source, controls and base in one snapshot.

The target is not touched: staged rows live in temporary tables of this connection.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace

from reslice.contract import Contract, Method, StampValue, Unit
from reslice.engines.base import Engine, Support
from reslice.errors import Failure, Refused
from reslice.ranges import Scope
from reslice.tables import Column, Family, Fill, Target
from reslice.values import Opened, Staged

GRAIN_FAMILIES = frozenset(Family) - {Family.FLOAT, Family.OTHER}
MEASURE_FAMILIES = frozenset(Family) - {Family.OTHER}
SLICE_FAMILIES = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMPTZ, Family.TEXT, Family.INTEGER})
STAMP_FAMILIES = {
    "run_time": frozenset({Family.TIMESTAMP, Family.TIMESTAMPTZ}),
    "run_id": frozenset({Family.TEXT}),
}


def stage(engine: Engine, contract: Contract, target: Target, scope: Scope, opened: Opened | None) -> Staged:
    """Refuse a target that cannot be replaced, then stage; the columns of the staged rows are those of the contract.

    Raises Refused for every fault of the target, or of the source's columns, at once.
    """
    refuse_target(engine, contract, target)
    staged = engine.stage(contract, target, scope, opened)
    _refuse(contract, list(_column_failures(staged)))
    return staged


def refuse_without_rights(engine: Engine, contract: Contract, target: Target) -> None:
    """Refuse a target that this connection may not write, before even the request is written.

    What it may not do with the ledger is told beside it, so that both are granted at once.
    """
    failures = list(_rights_failures(contract, target))
    _refuse(contract, [*failures, *(engine.ledger.rights_failures(contract, target) if failures else ())])


def refuse_target(engine: Engine, contract: Contract, target: Target) -> None:
    """Refuse a target that cannot be compared with the rows of the source, or replaced by them."""
    _refuse(contract, list(_target_failures(engine, contract, target)))


def refuse_irreplaceable(engine: Engine, contract: Contract, target: Target) -> None:
    """Refuse a target whose rows cannot be replaced by the contract's method, whatever its columns are."""
    _refuse(contract, list(_replacing_failures(engine, contract, target)))


def looked_at(target: Target) -> Target:
    """Return the target of a command that only looks: who may write nothing of it hears that a run would be refused.

    Who may write a part of what a run writes was meant to run, and is refused at once.
    """
    if not target.is_only_read:
        return target
    told = (f"only to look at: {reason}" for reason in target.rights_missing)
    return replace(target, rights_missing=(), remarks=(*target.remarks, *told))


def target_failures(engine: Engine, contract: Contract, target: Target) -> tuple[Failure, ...]:
    """Return everything that keeps the target from being replaced slice by slice; nothing is raised."""
    return tuple(_target_failures(engine, contract, target))


def column_failures(staged: Staged) -> tuple[Failure, ...]:
    """Return the columns that the source has too many, too few, or of another kind than the target."""
    return tuple(_column_failures(staged))


def _rights_failures(contract: Contract, target: Target) -> Iterator[Failure]:
    if target.rights_missing:
        asked = contract.quote("table", f"table: {contract.table}")
        after = target.rights_next or "run as a user who may write"
        yield Failure("target_rights", asked, target.rights_missing, after)


def _refuse(contract: Contract, failures: list[Failure]) -> None:
    if failures:
        raise Refused(contract.name, failures, unchanged=f"{contract.table} is as it was; nothing was written")


def _target_failures(engine: Engine, contract: Contract, target: Target) -> Iterator[Failure]:
    """Yield what keeps the target from being replaced slice by slice with the rows of the source."""
    yield from _replacing_failures(engine, contract, target)
    if target.kind == "table":
        yield from _target_columns(contract, target)
        yield from _target_types(contract, target)


def _replacing_failures(engine: Engine, contract: Contract, target: Target) -> Iterator[Failure]:
    """Yield what keeps rows of the target from being replaced at all."""
    capability = engine.methods[contract.method]
    if capability.support is not Support.YES:
        found = f"{engine.name}: {capability.support}: {capability.reason}"
        yield Failure(
            "method_unsupported",
            contract.quote("method", f"method: {contract.method}"),
            (found,),
            "method: replace_slice",
        )
    asked = contract.quote("table", f"table: {contract.table}")
    if target.kind != "table":
        found = f"{target.resolved} is a {target.kind}; rows of a {target.kind} cannot be replaced"
        yield Failure("target_not_table", asked, (found,), "name the table behind it")
        return
    yield from _rights_failures(contract, target)
    for each in target.hindrances:
        if not each.methods or contract.method in each.methods:
            yield Failure(each.kind, asked, (each.found,), each.next)
    if target.referenced_by and contract.method is Method.REPLACE_SLICE:
        found = f"foreign keys of {', '.join(target.referenced_by)} point at {target.resolved}"
        after = "method: merge  leaves rows in place whose values are the same, and updates the others"
        yield Failure("target_referenced", asked, (f"{found}; a replaced row would break them",), after)
    if contract.method is Method.APPEND_VERSION:
        yield from _version_failures(contract, target)


def _version_failures(contract: Contract, target: Target) -> Iterator[Failure]:
    """Yield the unique keys that let no second version of a row in."""
    stamps = {stamp.column for stamp in contract.stamps if stamp.value is StampValue.RUN_ID}
    for key in target.keys:
        if not key & stamps:
            asked = contract.quote("method", "method: append_version")
            found = f"a key of {target.resolved} allows each ({', '.join(sorted(key))}) once; versions repeat it"
            after = f"add {', '.join(sorted(stamps))} to that key, or drop it"
            yield Failure("target_key", asked, (found,), after)


def _target_columns(contract: Contract, target: Target) -> Iterator[Failure]:
    names = {column.name for column in target.columns}
    wanted = [*contract.columns, *(stamp.column for stamp in contract.stamps)]
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found = f"{target.resolved} has no column {name}{hint}"
            yield Failure(
                "target_column",
                f"grain, measures and stamps name {name}",
                (found,),
                "correct the contract, or add the column",
            )
    for column in target.columns:
        if column.name not in wanted and column.fill is Fill.PLAIN:
            asked = "every column of the target is grain, measure, stamp, generated or identity"
            found = f"{column.name} ({column.type}) is none of these; replacing a slice would blank it"
            yield Failure("target_column", asked, (found,), f"name {column.name} in the contract, or drop it")
        if column.name in wanted and column.fill is Fill.GENERATED:
            asked = f"{column.name} is filled by the source"
            found = f"{column.name} is generated by the database and cannot be inserted"
            yield Failure("target_column", asked, (found,), f"take {column.name} out of the contract")


def _target_types(contract: Contract, target: Target) -> Iterator[Failure]:
    present = {column.name: column for column in target.columns}

    def fault(name: str, asked: str, after: str) -> Failure:
        found = f"{name} is {present[name].type}"
        return Failure("target_type", asked, (found,), after)

    for grain in contract.grain:
        if grain.name in present and present[grain.name].family not in GRAIN_FAMILIES:
            yield fault(grain.name, "a grain column has exact, comparable values", "change the column's type")
    for measure in contract.measures:
        column = present.get(measure.name)
        if column is None:
            continue
        if column.family not in MEASURE_FAMILIES:
            yield fault(
                measure.name,
                "a measure is a number, text, boolean, date, time, timestamp, enum or uuid",
                "change the column's type",
            )
        if measure.minimum is not None and not column.family.is_number:
            yield fault(measure.name, "a minimum is for numbers", f"take min out of measures: {measure.name}")
        if column.family is Family.FLOAT and measure.scale is None:
            yield fault(
                measure.name, "a float needs a declared scale: the digits that count", f"{measure.name}: {{scale: 2}}"
            )
    for stamp in contract.stamps:
        if stamp.column in present and present[stamp.column].family not in STAMP_FAMILIES[stamp.value]:
            yield fault(
                stamp.column, f"{stamp.column}: {stamp.value}", "give run_time a timestamp column, run_id a text column"
            )
    slice_column = present.get(contract.slice.column)
    if slice_column is not None:
        yield from _slice_type(contract, slice_column)


def _slice_type(contract: Contract, column: Column) -> Iterator[Failure]:
    asked = contract.quote("slice", f"slice: {{column: {column.name}, unit: {contract.slice.unit}}}")
    if column.family not in SLICE_FAMILIES:
        found = f"{column.name} is {column.type}; a slice column is a date, timestamp, ISO text or integer yyyymmdd"
        yield Failure("target_type", asked, (found,), "choose another slice column")
    elif contract.slice.unit is Unit.HOUR:
        is_utc = column.family is Family.TIMESTAMP and contract.slice.timezone == "UTC"
        if column.family is not Family.TIMESTAMPTZ and not is_utc:
            found = f"{column.name} is {column.type} in {contract.slice.timezone}, where an hour can occur twice"
            after = "use a timestamp with time zone, or declare timezone: UTC"
            yield Failure("target_type", asked, (found,), after)


def _column_failures(staged: Staged) -> Iterator[Failure]:
    """Yield the columns that the source has too many, too few, or of another kind than the target."""
    contract, target = staged.contract, staged.target
    names = [column.name for column in staged.source_columns]
    for name in contract.columns:
        if name not in names:
            found = f"{contract.source.name} returns no column {name}; it returns {', '.join(names)}"
            yield Failure(
                "source_column", f"the source computes {name}", (found,), f"return {name} from {contract.source.name}"
            )
    for column in staged.source_columns:
        if column.name not in contract.columns:
            found = f"{contract.source.name} returns {column.name}, which the contract does not name"
            after = f"add {column.name} to measures, or take it out of {contract.source.name}"
            yield Failure(
                "source_column", "the source returns the columns of the contract, and no others", (found,), after
            )
        elif not _fits(column, target.column(column.name)):
            wanted = target.column(column.name)
            found = f"{column.name} is {column.type} in the source and {wanted.type} in {target.table}"
            after = f"cast it in {contract.source.name}, where you decide what becomes of values that do not fit"
            yield Failure("source_type", f"{column.name} has the kind of type the target has", (found,), after)


NUMBERS = frozenset({Family.INTEGER, Family.DECIMAL, Family.FLOAT})
WORDS = frozenset({Family.TEXT, Family.ENUM})
DAYS = frozenset({Family.DATE, Family.TIMESTAMP})


def _fits(source: Column, target: Column) -> bool:
    """Whether values of the source's type can be the target's; whether each one does is checked on the rows."""
    if source.type == target.type or source.type == '"NULL"':
        return True
    if source.family is target.family and source.family is not Family.OTHER:
        return True
    return any(source.family in kind and target.family in kind for kind in (NUMBERS, WORDS, DAYS))
