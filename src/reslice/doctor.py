"""Doctor: look at a target's contract, table, ledger and database, and say what is wrong and what to do about it.

Nothing is written, and no source is evaluated. What is wrong keeps a run from being right, or from running at all; a
warning is for a person to look at. With a probe, what the engine really does is tried in a place of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from reslice.contract import Contract, Method, SqlFile
from reslice.engines.base import Engine
from reslice.engines.controls import column_problem
from reslice.errors import Failure, Refused, ResliceError
from reslice.health import LedgerHealth, MovedSlice, RowHealth
from reslice.ranges import Moment, Range, Scope, is_closed, last_over
from reslice.stage import column_failures, target_failures
from reslice.values import Column, Staged, Target

NAMED_MAX = 5


class Health(StrEnum):
    """How one thing is."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: of a target, or of the database (None). `next` is a command, a statement, or words; empty when ok."""

    target: str | None
    name: str
    state: Health
    found: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What doctor found, in order: of the database, then of each target."""

    engine: str
    version: str
    checks: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong; there may be warnings."""
        return not any(check.state is Health.WRONG for check in self.checks)

    def count(self, state: Health) -> int:
        """Return how many checks ended so."""
        return sum(check.state is state for check in self.checks)


def doctor(engine: Engine, contracts: Sequence[Contract], *, probe: bool = False) -> Diagnosis:
    """Return what is found in the database and in each target; `probe` also tries what the engine does."""
    checks = [*_database(engine)]
    for contract in contracts:
        checks += _target(engine, contract, probe=probe)
    return Diagnosis(engine.name, engine.version, tuple(checks))


def _database(engine: Engine) -> Iterator[Finding]:
    place = engine.health.place()
    words = f"{place.shown}, {engine.name} {place.version}"
    if place.is_too_old:
        found = f"{words}: reslice works from {place.oldest} on"
        yield Finding(None, "connection", Health.WRONG, found, f"pip install 'duckdb>={place.oldest}'")
    elif not place.is_tested:
        found = f"{words}: reslice is tested with {', '.join(place.tested)}"
        yield Finding(None, "connection", Health.WARNING, found, "reslice doctor --probe")
    else:
        yield Finding(None, "connection", Health.OK, words)
    macros = engine.health.replaced_functions()
    if macros:
        names = "a macro" if macros == ("?",) else f"the macro {', '.join(macros)}"
        found = f"{names} replaces a function that fingerprints are made with"
        dropped = "; ".join(f"DROP MACRO {name}" for name in macros) if macros != ("?",) else "drop the macro"
        yield Finding(None, "functions", Health.WRONG, found, dropped)
    else:
        yield Finding(None, "functions", Health.OK, "the database's own give the known fingerprint")


def _target(engine: Engine, contract: Contract, *, probe: bool) -> Iterator[Finding]:
    try:
        target = engine.target(contract)
    except Refused as refused:
        yield from _wrong(contract, "contract", refused.failures)
        return
    failures = target_failures(engine, contract, target)
    yield from _contract(contract, target, failures)
    columns = {column.name for column in target.columns}
    kinds = {failure.kind for failure in failures}
    if kinds & {"target_not_table", "target_type"} or not set(contract.columns) <= columns:
        return  # the other questions are about rows that the contract cannot read
    yield from _queries(engine, contract, target)
    yield from _key(engine, contract, target)
    yield from _neighbours(engine, contract, target)
    yield from _rows(contract, engine.health.rows(contract, target))
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
    rights = [failure for failure in failures if failure.kind == "target_rights"]
    if rights:
        yield from _wrong(contract, "rights", rights)
    else:
        yield Finding(contract.name, "rights", Health.OK, "file and folder may be written")


def _wrong(contract: Contract, name: str, failures: Iterable[Failure]) -> Iterator[Finding]:
    for failure in failures:
        yield Finding(contract.name, name, Health.WRONG, "; ".join(failure.found), failure.next)


def _queries(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Let the database read every SQL file for the last slice that is over, and compare the columns it would return."""
    last = last_over(engine.now(), contract.slice)
    scope = Scope.of(Range(contract.slice.unit, contract.slice.timezone, last, last))

    def described(name: str, query: SqlFile) -> tuple[Column, ...] | Finding:
        try:
            return engine.health.describe(contract, target, scope, query)
        except ResliceError as error:
            failure = error.failures[0]
            return Finding(contract.name, name, Health.WRONG, "; ".join(failure.found), failure.next)

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


# The table.

_WORTH_OF_A_KEY = (
    "with one the database refuses a repeated row of any writer, and sees a conflict where one moves to another slice;"
    " it costs memory, and time per row"
)


def _key(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    """Say whether a unique key keeps one row per grain, whoever writes."""
    grain = {column.name for column in contract.grain}
    allowed = grain
    if contract.method is Method.APPEND_VERSION:
        allowed = grain | {stamp.column for stamp in contract.stamps}
    keys = [key for key in target.keys if key <= allowed and key & grain]
    names = ", ".join(column.name for column in contract.grain)
    if not keys:
        found = f"none on the grain ({names}); {_WORTH_OF_A_KEY}"
        yield Finding(contract.name, "unique_key", Health.WARNING, found, engine.health.key_statement(contract, target))
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
    if nullable:
        words += f"; rows whose {' or '.join(nullable)} is NULL are not held apart by it, and are by reslice"
    yield Finding(contract.name, "unique_key", Health.OK, words)


def _neighbours(engine: Engine, contract: Contract, target: Target) -> Iterator[Finding]:
    pointing = ", ".join(target.referenced_by)
    if not pointing:
        yield Finding(contract.name, "foreign_keys", Health.OK, "none points at the table")
    elif contract.method is Method.REPLACE_SLICE:
        found = f"those of {pointing} point at the table; a replaced row would break them"
        yield Finding(contract.name, "foreign_keys", Health.WRONG, found, "method: merge")
    else:
        yield Finding(contract.name, "foreign_keys", Health.OK, f"those of {pointing} point at the table")
    views = engine.health.views(target)
    words = f"{_some(views)} {'names' if len(views) == 1 else 'name'} the table" if views else "none names the table"
    yield Finding(contract.name, "views", Health.OK, words)


def _rows(contract: Contract, rows: RowHealth) -> Iterator[Finding]:
    name = shlex.quote(contract.name)
    if rows.repeated is None:
        yield Finding(contract.name, "repeated_keys", Health.OK, f"none in {_counted(rows.rows, 'row')}")
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
        found = ", ".join(f"{column} is NULL in {_counted(count, 'row')}" for column, count in nulls.items())
        after = "correct these rows: a row without a slice is never replaced" if rows.slice_nulls else (
            f"correct these rows, or allow it:  grain: [{{column: {next(iter(nulls))}, nulls: allow}}]"
        )  # fmt: skip
        yield Finding(contract.name, "null_keys", Health.WRONG, found, after)
    else:
        yield Finding(contract.name, "null_keys", Health.OK, "none where the contract forbids them")
    if rows.off_unit:
        unit = contract.slice.unit
        lie = "1 row lies" if rows.off_unit == 1 else f"{rows.off_unit} rows lie"
        found = f"{lie} off the beginning of a {unit}; e.g. {rows.off_example}"
        yield Finding(
            contract.name, "slice_values", Health.WRONG, found, f"correct {contract.slice.column} of these rows"
        )
    else:
        yield Finding(contract.name, "slice_values", Health.OK, f"each is the first moment of a {contract.slice.unit}")


# The ledger.


def _ledger(contract: Contract, health: LedgerHealth) -> Iterator[Finding]:
    schema = contract.ledger.schema
    if health.foreign:
        found = f"the schema {schema} holds {', '.join(health.foreign)}, which reslice did not make"
        yield Finding(contract.name, "ledger", Health.WRONG, found, "ledger: {schema: reslice_ledger}")
    elif health.others:
        found = f"the ledger in schema {health.others[0]} already guards the table; a table has one ledger"
        yield Finding(contract.name, "ledger", Health.WRONG, found, f"ledger: {{schema: {health.others[0]}}}")
    elif not health.exists:
        yield Finding(contract.name, "ledger", Health.OK, f"none yet: the first run makes it in the schema {schema}")
    elif health.missing:
        found = f"of an older reslice: the next run adds {_some(health.missing)}"
        yield Finding(contract.name, "ledger", Health.OK, found)
    else:
        found = f"in the schema {schema}, up to date; {_counted(health.runs, 'run')} of this table"
        yield Finding(contract.name, "ledger", Health.OK, found)


def _runs(contract: Contract, health: LedgerHealth) -> Iterator[Finding]:
    gone = [run for run in health.unfinished if not run.is_alive]
    if gone:
        named = _some([f"{run.id} over {run.range_text}" for run in gone])
        found = f"{named} never ended, and its process is gone; the next run closes it"
        yield Finding(contract.name, "abandoned_runs", Health.WARNING, found, f"reslice show {gone[0].id}")
    else:
        alive = f"none; {_counted(len(health.unfinished), 'run')} at work" if health.unfinished else "none"
        yield Finding(contract.name, "abandoned_runs", Health.OK, alive)
    if health.partly:
        run = health.partly[0]
        found = f"{run.id} over {run.range_text} published {run.published} of {_counted(run.slices, 'slice')}"
        found += f", and {len(health.partly) - 1} more did so" if len(health.partly) > 1 else ""
        after = f"reslice run {shlex.quote(contract.name)} {shlex.quote(run.range_text)}"
        yield Finding(contract.name, "part_way_runs", Health.WARNING, found, after)
    else:
        yield Finding(contract.name, "part_way_runs", Health.OK, "none")
    kept = health.kept
    words = "none" if not kept.rows else f"{_counted(kept.rows, 'row')} of {_counted(kept.runs, 'run')}"
    if kept.oldest is not None:
        age = (datetime.now(UTC) - kept.oldest).days
        words += f", since {kept.oldest:%Y-%m-%d} ({_counted(age, 'day')}; kept for {contract.ledger.keep_days})"
    yield Finding(contract.name, "kept_rows", Health.OK, words)


def _others(engine: Engine, contract: Contract, moved: Sequence[MovedSlice]) -> Finding:
    """Name the closed slices that somebody else has written to; open ones are theirs to write."""
    closed, now = contract.guards.closed_through, engine.now()
    slices = [
        each for each in moved if closed is None or is_closed(_moment(each, contract), closed, now, contract.slice)
    ]
    still = len(moved) - len(slices)
    filling = f"; {_counted(still, 'slice')} that {'is' if still == 1 else 'are'} still filling moved" if still else ""
    if not slices:
        words = f"no {'closed ' if closed else ''}slice has changed since its last run{filling}"
        return Finding(contract.name, "other_writers", Health.OK, words)
    named = _some([each.label for each in slices])
    first = slices[0]
    hold = "holds" if len(slices) == 1 else "hold"
    found = f"{named} no longer {hold} what a run left; {first.label} held {first.left.rows} rows after {first.run_id}"
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


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
