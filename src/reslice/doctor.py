"""Doctor: look at a target's contract, table, ledger and database, and say what is wrong and what to do about it.

Nothing is written, and no source is evaluated. What is wrong keeps a run from being right, or from running at all; a
warning is for a person to look at. With a probe, what the engine really does is tried in a place of its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from reslice import parameters
from reslice.contract import Contract, SqlFile, Unit
from reslice.doctor_table import key_checked, neighbours_checked, rows_checked, versions_checked
from reslice.engines.base import Engine
from reslice.engines.controls import column_problem
from reslice.errors import Failure, Refused, ResliceError
from reslice.findings import NAMED_MAX, Diagnosis, Finding, Health, counted, some
from reslice.health import LedgerHealth, MovedSlice, Rights
from reslice.ranges import Moment, Range, Scope, is_closed, last_over
from reslice.stage import column_failures, target_failures
from reslice.tables import Column, Target
from reslice.values import Staged

__all__ = ["Diagnosis", "Finding", "Health", "doctor"]


def doctor(
    engine: Engine, contracts: Sequence[Contract], *, every: Sequence[Contract] = (), probe: bool = False
) -> Diagnosis:
    """Return what is found in the database and in each target; `probe` also tries what the engine does.

    `every` are all targets of the contract file, where these are not: two of one table are in each other's way.
    """
    tables = {each.name: engine.survey.find(each.table) for each in every or contracts}
    checks = [*_database(engine)]
    for contract in contracts:
        checks += _target(engine, contract, tables, probe=probe)
    return Diagnosis(engine.name, engine.version, tuple(checks))


def _database(engine: Engine) -> Iterator[Finding]:
    place = engine.health.place()
    database = f", database {place.database}" if place.database else ""
    words = f"{place.shown}{database}, {engine.name} {place.version}"
    if place.is_too_old:
        found = f"{words}: reslice works from {place.oldest} on"
        yield Finding(None, "connection", Health.WRONG, found, place.upgrade)
    elif not place.is_tested:
        found = f"{words}: reslice is tested with {', '.join(place.tested)}"
        yield Finding(None, "connection", Health.WARNING, found, "reslice doctor --probe")
    else:
        yield Finding(None, "connection", Health.OK, words)
    found_ones, word = engine.health.replaced_functions(), engine.health.stand_in
    if found_ones:
        names = f"a {word}" if found_ones == ("?",) else f"the {word} {', '.join(found_ones)}"
        found = f"{names} replaces a function that fingerprints are made with"
        statements = "; ".join(f"DROP {word.upper()} {name}" for name in found_ones)
        dropped = f"drop the {word}, or put the database's own back" if found_ones == ("?",) else statements
        yield Finding(None, "functions", Health.WRONG, found, dropped)
    else:
        yield Finding(None, "functions", Health.OK, "the database's own give the known fingerprint")
    yield from engine.health.server()


def _target(
    engine: Engine, contract: Contract, tables: Mapping[str, Target | None], *, probe: bool
) -> Iterator[Finding]:
    try:
        target = engine.target(contract)
    except Refused as refused:
        for failure in refused.failures:
            yield from _wrong(contract, _OWN_CHECK.get(failure.kind, "contract"), [failure])
        return
    failures = target_failures(engine, contract, target)
    rights = engine.health.rights(contract, target) if target.kind == "table" else Rights("")
    yield from _contract(contract, target, failures)
    if target.kind == "table":
        yield from _rights(contract, failures, rights)
    yield _other_targets(contract, target, tables)
    columns = {column.name for column in target.columns}
    kinds = {failure.kind for failure in failures}
    is_hidden = not rights.is_readable or "target_policies" in kinds
    if is_hidden or kinds & {"target_not_table", "target_type"} or not set(contract.columns) <= columns:
        return  # the other questions are about rows that the contract cannot read
    yield from _queries(engine, contract, target)
    yield from _clock_changes(engine, contract)
    yield from key_checked(engine, contract, target)
    yield from neighbours_checked(engine, contract, target)
    yield from engine.health.table(contract, target)
    yield from versions_checked(engine, contract, target)
    yield from rows_checked(contract, engine.health.rows(contract, target))
    health = engine.health.ledger(contract, target)
    yield from _ledger(contract, health)
    if health.exists and not health.is_old and not health.others:
        yield from _runs(contract, health)
        yield _others(engine, contract, engine.health.moved(contract, target))
    if probe:
        yield from _probes(engine, contract, target)


# The contract, and the files it names.

_OWN_CHECK = {"target_rights": "rights", "target_referenced": "foreign_keys"}
"""Failures of a target that have a check of their own."""


def _contract(contract: Contract, target: Target, failures: Sequence[Failure]) -> Iterator[Finding]:
    mine = [failure for failure in failures if failure.kind not in _OWN_CHECK]
    if mine:
        yield from _wrong(contract, "contract", mine)
    else:
        found = f"{target.resolved} has the columns, types and kind that the contract names"
        yield Finding(contract.name, "contract", Health.OK, found)


def _rights(contract: Contract, failures: Sequence[Failure], rights: Rights) -> Iterator[Finding]:
    """Say what of the table may not be written, and what else a run may not do that it has to."""
    denied = [failure for failure in failures if failure.kind == "target_rights"]
    yield from _wrong(contract, "rights", denied)
    for found, after in rights.missing:
        yield Finding(contract.name, "rights", Health.WRONG, found, after)
    if not denied and not rights.missing:
        yield Finding(contract.name, "rights", Health.OK, rights.held)


def _wrong(contract: Contract, name: str, failures: Iterable[Failure]) -> Iterator[Finding]:
    for failure in failures:
        yield Finding(contract.name, name, Health.WRONG, "; ".join(failure.found), failure.next)


def _other_targets(contract: Contract, target: Target, tables: Mapping[str, Target | None]) -> Finding:
    """Say which other targets of the contract file fill the same table."""
    others = [
        name
        for name, table in tables.items()
        if name != contract.name and table is not None and table.resolved == target.resolved
    ]
    if not others:
        return Finding(contract.name, "other_targets", Health.OK, "none fills this table")
    words = f"{'' if len(others) == 1 else 'each of '}{some(others)} fills {target.resolved} as well"
    found = f"{words}: a run of one removes the rows of the other from its slices"
    return Finding(contract.name, "other_targets", Health.WARNING, found, "take one of these targets out")


_CUT_TO_HOURS = re.compile(r"(?i)\bdate_?trunc\s*\(\s*'hours?'\s*,")


def _clock_changes(engine: Engine, contract: Contract) -> Iterator[Finding]:
    """Say whether the source tells apart the two hours that a clock shows alike when it goes back."""
    if contract.slice.unit is not Unit.HOUR or not _goes_back(contract.slice.timezone, engine.now()):
        return
    if not any(engine.health.merges_hours(each) for each in _cut_to_hours(contract.source.text)):
        found = f"{contract.source.name} does not cut {engine.health.cut_at_risk} by date_trunc('hour', …)"
        yield Finding(contract.name, "clock_changes", Health.OK, found)
        return
    found = (
        f"{contract.source.name} cuts hours by date_trunc('hour', …): when clocks go back in {contract.slice.timezone},"
        f" {engine.name} counts both hours as the later one"
    )
    yield Finding(contract.name, "clock_changes", Health.WARNING, found, f"cut by {engine.health.hour_cut}")


def _cut_to_hours(source: str) -> Iterator[str]:
    """Yield what a source cuts to hours by date_trunc, up to the bracket that closes it; comments are no part of it."""
    text = "".join(token.text for token in parameters.tokens(source) if token.kind != "comment")
    for found in _CUT_TO_HOURS.finditer(text):
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[found.end() : end]


def _goes_back(zone: str, now: datetime) -> bool:
    """Whether the clocks of a zone change within the year from now."""
    return len({(now + timedelta(weeks=week)).astimezone(ZoneInfo(zone)).utcoffset() for week in range(53)}) > 1


def _queries(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Let the database read every SQL file for the last slice that is over, and compare the columns it would return."""
    last = last_over(engine.now(), contract.slice)
    scope = Scope.of(Range(contract.slice.unit, contract.slice.timezone, last, last))

    def described(name: str, query: SqlFile) -> tuple[Column, ...] | Finding:
        try:
            return engine.health.describe(contract, target, scope, query)
        except ResliceError as error:
            failure = error.failures[0]
            first = failure.found[0]  # what comes after it points at a place in the SQL, in lines of its own
            return Finding(contract.name, name, Health.WRONG, first, failure.next)

    columns = described("source", contract.source)
    if isinstance(columns, Finding):
        yield columns
        columns = ()
    else:
        failures = column_failures(Staged(contract, target, scope, "", columns))
        yield from _wrong(contract, "source", failures)
        if not failures:
            yield Finding(contract.name, "source", Health.OK, f"{contract.source.name} returns {_listed(columns)}")
    for query in (*([contract.controls] if contract.controls else []), *contract.downstream):
        found = described(query.name, query.query)
        if isinstance(found, Finding):
            yield found
            continue
        problem = column_problem(Staged(contract, target, scope, "", columns, found), query)
        state, words = (Health.WRONG, problem.example) if problem else (Health.OK, f"returns {_listed(found)}")
        after = f"correct {query.query.name}" if problem else ""
        yield Finding(contract.name, query.name, state, words if problem else f"{query.query.name} {words}", after)
    if contract.controls is None:
        found_text = "no control is declared: every run says that it is not reconciled"
        yield Finding(contract.name, "controls", Health.OK, found_text)
    if contract.affected is not None:
        found = described("affected", contract.affected)
        if isinstance(found, Finding):
            yield found
        else:
            yield Finding(contract.name, "affected", Health.OK, f"{contract.affected.name} returns {_listed(found)}")


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


# The ledger.


def _ledger(contract: Contract, health: LedgerHealth) -> Iterator[Finding]:
    schema = contract.ledger.schema
    if health.foreign:
        found = f"the schema {schema} holds {', '.join(health.foreign)}, which reslice did not make"
        yield Finding(contract.name, "ledger", Health.WRONG, found, "ledger: {schema: reslice_ledger}")
    elif health.others:
        found = f"the ledger in schema {health.others[0]} already guards the table; a table has one ledger"
        yield Finding(contract.name, "ledger", Health.WRONG, found, f"ledger: {{schema: {health.others[0]}}}")
    elif health.hidden:
        found = f"the schema {schema} holds {some(health.hidden)}, which this role may not read"
        yield Finding(contract.name, "ledger", Health.WRONG, found, health.grant)
    elif not health.exists:
        yield Finding(contract.name, "ledger", Health.OK, f"none yet: the first run makes it in the schema {schema}")
    elif health.missing:
        found = f"of an older reslice: the next run adds {some(health.missing)}"
        yield Finding(contract.name, "ledger", Health.OK, found)
    else:
        found = f"in the schema {schema}, up to date; {counted(health.runs, 'run')} of this table"
        yield Finding(contract.name, "ledger", Health.OK, found)


def _runs(contract: Contract, health: LedgerHealth) -> Iterator[Finding]:
    gone = [run for run in health.unfinished if not run.is_alive]
    if gone:
        named = some([f"{run.id} over {run.range_text}" for run in gone])
        found = f"{named} never ended, and its process is gone; the next run closes it"
        yield Finding(contract.name, "abandoned_runs", Health.WARNING, found, f"reslice show {gone[0].id}")
    else:
        alive = f"none; {counted(len(health.unfinished), 'run')} at work" if health.unfinished else "none"
        yield Finding(contract.name, "abandoned_runs", Health.OK, alive)
    if health.partly:
        run = health.partly[0]
        found = f"{run.id} over {run.range_text} published {run.published} of {counted(run.slices, 'slice')}"
        found += f", and {len(health.partly) - 1} more did so" if len(health.partly) > 1 else ""
        after = f"reslice run {shlex.quote(contract.name)} {shlex.quote(run.range_text)}"
        yield Finding(contract.name, "part_way_runs", Health.WARNING, found, after)
    else:
        yield Finding(contract.name, "part_way_runs", Health.OK, "none")
    kept = health.kept
    words = "none" if not kept.rows else f"{counted(kept.rows, 'row')} of {counted(kept.runs, 'run')}"
    if kept.oldest is not None:
        age = (datetime.now(UTC) - kept.oldest).days
        words += f", since {kept.oldest:%Y-%m-%d} ({counted(age, 'day')}; kept for {contract.ledger.keep_days})"
    yield Finding(contract.name, "kept_rows", Health.OK, words)


def _others(engine: Engine, contract: Contract, moved: Sequence[MovedSlice]) -> Finding:
    """Name the closed slices that somebody else has written to; open ones are theirs to write."""
    closed, now = contract.guards.closed_through, engine.now()
    slices = [
        each for each in moved if closed is None or is_closed(_moment(each, contract), closed, now, contract.slice)
    ]
    still = len(moved) - len(slices)
    filling = f"; {counted(still, 'slice')} that {'is' if still == 1 else 'are'} still filling moved" if still else ""
    if not slices:
        words = f"no {'closed ' if closed else ''}slice has changed since its last run{filling}"
        return Finding(contract.name, "other_writers", Health.OK, words)
    named = some([each.label for each in slices])
    first = slices[0]
    hold = "holds" if len(slices) == 1 else "hold"
    left = counted(first.left.rows, "row")
    found = f"{named} no longer {hold} what a run left; {first.label} held {left} after {first.run_id}"
    found += f" and now {first.now.rows}" if first.now.rows != first.left.rows else ", and holds other values"
    span = ",".join(each.label for each in slices[:NAMED_MAX])
    after = f"reslice status {shlex.quote(contract.name)} {shlex.quote(span)}"
    return Finding(contract.name, "other_writers", Health.WARNING, found + filling, after)


def _moment(each: MovedSlice, contract: Contract) -> Moment:
    return Scope.parse(each.label, contract.slice).hull.start


# What the engine does.


def _probes(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    for each in engine.health.probe(contract, target):
        state = Health.OK if each.holds else Health.WRONG
        found = f"{each.does}: {each.found}"
        after = "" if each.holds else f"do not run here: reslice relies on this: {each.relies}"
        yield Finding(contract.name, f"probe_{each.name}", state, found, after)
