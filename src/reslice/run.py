"""The control flow of plan and run: stage, check, compare, approve, publish, and the ledger row of what happened.

`plan` is the same code up to the guards and writes nothing. Whatever ends a run is written to the ledger and raised
with what was known when it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from reslice.approve import approve, judge, slices_to_write
from reslice.check import check, failed_checks
from reslice.commands import command
from reslice.compare import compare, warnings
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import (
    Failure,
    Interrupted,
    Misused,
    OutcomeUnknown,
    PartlyPublished,
    Refused,
    ResliceError,
    Stopped,
)
from reslice.publish import Job, publish_each, publish_whole
from reslice.ranges import Scope
from reslice.stage import refuse_without_rights, stage
from reslice.values import (
    Diff,
    Fingerprint,
    Opened,
    Outcome,
    Request,
    Run,
    Staged,
    State,
    Target,
)

OnStep = Callable[[str], None]
OnOpened = Callable[[Run], None]


def _tell_nobody(_run: Run) -> None:
    """Tell nobody that a run stands in the ledger."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The exact diff a person has approved, by run id or plan file: what was compared, under which contract."""

    name: str
    contract_digest: str
    base: Fingerprint
    staged: Fingerprint
    columns: tuple[str, ...]
    guards: frozenset[str]
    """The guards that had fired: approving the diff consents to these."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is done. `with_affected` widens the scope by the slices the same corrections touch."""

    rewrite: bool = False
    per_slice: bool = False
    with_affected: bool = False
    approval: Approval | None = None


def plan(engine: Engine, contract: Contract, scope: Scope, options: Options, on_step: OnStep) -> Run:
    """Return what a run would change. Nothing is written; a broken contract is raised, a guard is shown."""
    began = time.monotonic()
    progress = _Progress(_blank("plan", contract, scope, Outcome.PLANNED))
    try:
        target = engine.target(contract)
        progress.run = replace(progress.run, table=target.resolved)
        _widen(engine, contract, target, options, progress)
        staged, diff = _staged_and_compared(engine, contract, target, None, progress, on_step)
        guards = judge(contract, diff, engine.now(), (), approves=frozenset())
    except ResliceError as error:
        raise _with_run(error, progress.run, began) from error.__cause__
    written = slices_to_write(diff, rewrite=options.rewrite)
    return replace(
        progress.run,
        guards=guards,
        sql=engine.publish_statements(staged, written, diff),
        seconds=time.monotonic() - began,
    )


def run(
    engine: Engine, request: Request, options: Options, on_step: OnStep, on_opened: OnOpened = _tell_nobody
) -> Run:
    """Publish the slices that differ, or end with the table as it was; the ledger has the run either way.

    `on_opened` hears of the run as soon as it stands in the ledger, outside of any transaction. Raises every error of
    `reslice.errors`, with `error.run` set to what was known.
    """
    began = time.monotonic()
    contract = request.contract
    progress = _Progress(_blank("run", contract, request.scope, Outcome.FAILED))
    try:
        target = engine.target(contract)
        progress.run = replace(progress.run, table=target.resolved)
        refuse_without_rights(contract, target)
        opened = engine.ledger.open_run(request, target)
    except ResliceError as error:
        raise _with_run(error, progress.run, began) from error.__cause__
    progress.run = replace(progress.run, id=opened.id, notes=opened.abandoned, warnings=_downstream_warning(contract))
    try:
        on_opened(progress.run)
        _widen(engine, contract, target, options, progress)
        done = _run(engine, request, options, target, opened, progress, on_step)
    except ResliceError as error:
        failed = _with_run(error, progress.run, began)
        _close_failed(engine, progress, contract, target, opened, failed)
        raise failed from error.__cause__
    return replace(done, seconds=time.monotonic() - began)


def _blank(word: str, contract: Contract, scope: Scope, outcome: Outcome) -> Run:
    """Return an answer of which only the question is known."""
    declared = contract.controls is not None
    return Run(word, contract.name, contract.table, scope, outcome, method=contract.method, controls_declared=declared)


@dataclass(slots=True)
class _Progress:
    """How far a run got, kept so that an error can say it."""

    run: Run
    staged: Staged | None = None


def _run(
    engine: Engine,
    request: Request,
    options: Options,
    target: Target,
    opened: Opened,
    progress: _Progress,
    on_step: OnStep,
) -> Run:
    contract = request.contract
    staged, diff = _staged_and_compared(engine, contract, target, opened, progress, on_step)
    already = options.approval is not None and _hold_to(contract, options.approval, diff)
    approves = options.approval.guards if options.approval else frozenset()
    guards = judge(contract, diff, engine.now(), request.consents, approves=approves)
    progress.run = replace(progress.run, guards=guards)
    if already or not slices_to_write(diff, rewrite=options.rewrite):
        return _unchanged(engine, staged, opened, progress.run)
    approved = approve(contract, diff, guards, opened.id, rewrite=options.rewrite)
    job = Job(engine, staged, approved, opened, on_step)
    return publish_each(job, progress.run) if options.per_slice else publish_whole(job, progress.run)


def _staged_and_compared(
    engine: Engine, contract: Contract, target: Target, opened: Opened | None, progress: _Progress, on_step: OnStep
) -> tuple[Staged, Diff]:
    """Do what plan and run share, keeping in `progress` what an error should be able to tell."""
    on_step("staging")
    staged = stage(engine, contract, target, progress.run.scope, opened)
    progress.staged = staged
    on_step("checking")
    try:
        checked = check(engine, staged)
    except Refused as refused:
        progress.run = replace(progress.run, checks=failed_checks(refused))
        raise
    progress.run = replace(
        progress.run,
        checks=checked.checks,
        controls=checked.controls,
        warnings=(*progress.run.warnings, *checked.warnings),
    )
    on_step("comparing")
    diff = compare(engine, checked)
    progress.run = replace(progress.run, diff=diff, warnings=(*progress.run.warnings, *warnings(checked, diff)))
    return staged, diff


def _unchanged(engine: Engine, staged: Staged, opened: Opened, run: Run) -> Run:
    """Record that the target already holds the staged rows; nothing is rewritten."""
    assert run.diff is not None, "unchanged is said of what was compared"
    done = replace(run, outcome=Outcome.UNCHANGED, rows_after=run.diff.base.rows, after=run.diff.base)
    engine.ledger.close_run(staged, staged.contract, staged.target, opened, done, State.UNCHANGED)
    return done


def _hold_to(contract: Contract, approval: Approval, diff: Diff) -> bool:
    """Refuse unless this is exactly the approved diff; True when the target already holds what was approved."""
    asked = f"exactly what {approval.name} showed"
    after = command("plan", contract.name, diff.scope)

    def refuse(kind: str, found: str) -> Refused:
        about = f"{contract.name} for {diff.scope.text}, approved by {approval.name}"
        failure = Failure(kind, asked, (found,), after)
        return Refused(about, [failure], unchanged=f"{contract.table} is as it was; nothing was written")

    if approval.contract_digest != contract.digest:
        raise refuse("contract_changed", f"the contract or its SQL has changed since {approval.name}")
    if diff.base == diff.staged:
        return True
    if approval.columns != diff.columns or approval.staged != diff.staged:
        found = (
            f"the source now gives {diff.staged.rows} rows ({diff.staged}), {approval.name} staged {approval.staged}"
        )
        raise refuse("approval_stale", found)
    if approval.base != diff.base:
        found = (
            f"the target now holds {diff.base.rows} rows ({diff.base}), {approval.name} compared with {approval.base}"
        )
        raise refuse("approval_stale", found)
    return False


def _widen(engine: Engine, contract: Contract, target: Target, options: Options, progress: _Progress) -> None:
    """Take the slices along that the same corrections touch, or note which of them are left.

    A run does so after it stands in the ledger: corrections are asked for since its request, so none falls between.
    """
    if contract.affected is None:
        if options.with_affected:
            asked = "--with-affected adds the slices that the contract's affected query names"
            found = "the contract has no affected query"
            failure = Failure("usage", asked, (found,), "add  affected: sql/affected.sql  to the contract")
            raise Misused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
        return
    scope = progress.run.scope
    moments = engine.ledger.affected(contract, target, scope)
    if options.with_affected:
        progress.run = replace(progress.run, scope=scope.plus(moments))
        return
    labels = tuple(scope.label(moment) for moment in moments)
    warned = (*_affected_warning(labels), *progress.run.warnings)
    progress.run = replace(progress.run, affected=labels, warnings=warned)


def _affected_warning(labels: tuple[str, ...]) -> tuple[str, ...]:
    if not labels:
        return ()
    more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    named = ", ".join(labels[:5]) + more
    return (f"corrections also touch {named}, outside this range; --with-affected takes them along",)


def _downstream_warning(contract: Contract) -> tuple[str, ...]:
    if not contract.downstream:
        return ()
    names = ", ".join(each.name for each in contract.downstream)
    return (f"{names} reads this target and is not checked by run; reslice verify compares it",)


OUTCOMES = {Refused: Outcome.REFUSED, Stopped: Outcome.STOPPED, OutcomeUnknown: Outcome.UNKNOWN}
STATES = {Outcome.REFUSED: State.REFUSED, Outcome.STOPPED: State.STOPPED}


def _with_run(error: ResliceError, run: Run, began: float) -> ResliceError:
    """Return the error with the run it ended, as far as that got."""
    if isinstance(error, Interrupted):
        error.about = f"{run.target} for {run.scope.text}"
    if error.run is None:
        outcome = OUTCOMES.get(type(error), Outcome.FAILED)
        error.run = replace(run, outcome=outcome, error=error)
    error.run = replace(error.run, seconds=time.monotonic() - began)
    return error


def _close_failed(
    engine: Engine, progress: _Progress, contract: Contract, target: Target, opened: Opened, error: ResliceError
) -> None:
    """Write how the run ended. When the database cannot be reached the row stays open, and the next run closes it."""
    run = error.run
    assert run is not None, "an error that ends a run carries it"
    if isinstance(error, OutcomeUnknown):
        return
    state = State.FAILED if isinstance(error, PartlyPublished) else STATES.get(run.outcome, State.FAILED)
    try:
        engine.ledger.close_run(progress.staged, contract, target, opened, run, state)
    except OutcomeUnknown:  # the ledger does not hold what was said to be published
        raise
    except ResliceError:
        return
