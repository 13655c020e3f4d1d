"""The control flow of plan and run: stage, check, compare, approve, publish, and the ledger row of what happened.

`plan` is the same code up to the guards and writes nothing. Whatever ends a run is written to the ledger and raised
with what was known when it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from reslice.approve import approve, judge, slices_to_write
from reslice.check import check
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
    Check,
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


@dataclass(frozen=True, slots=True)
class Approval:
    """The exact diff a person has approved, by run id or plan file: what was compared, under which contract."""

    name: str
    contract_digest: str
    base: Fingerprint
    staged: Fingerprint
    columns: tuple[str, ...]


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
    target = engine.target(contract)
    scope, affected = _widened(engine, contract, target, scope, options)
    run = Run("plan", contract.name, target.resolved, scope, Outcome.PLANNED, method=contract.method)
    run = replace(run, controls_declared=contract.controls is not None, affected=affected)
    run = replace(run, warnings=_affected_warning(affected))
    progress = _Progress(run)
    try:
        staged, diff = _staged_and_compared(engine, contract, target, None, progress, on_step)
        guards = judge(contract, diff, engine.now(), (), approves=False)
    except ResliceError as error:
        raise _with_run(error, progress.run, began) from None
    written = slices_to_write(diff, rewrite=options.rewrite)
    return replace(
        progress.run,
        guards=guards,
        sql=engine.publish_statements(staged, written),
        seconds=time.monotonic() - began,
    )


def run(engine: Engine, request: Request, options: Options, on_step: OnStep) -> Run:
    """Publish the slices that differ, or end with the table as it was; the ledger has the run either way.

    Raises every error of `reslice.errors`, with `error.run` set to what was known.
    """
    began = time.monotonic()
    contract = request.contract
    target = engine.target(contract)
    refuse_without_rights(contract, target)
    scope, affected = _widened(engine, contract, target, request.scope, options)
    request = replace(request, scope=scope)
    opened = engine.open_run(request, target)
    answer = Run(
        "run",
        contract.name,
        target.resolved,
        scope,
        Outcome.FAILED,
        id=opened.id,
        method=contract.method,
        controls_declared=contract.controls is not None,
        affected=affected,
        warnings=(*_affected_warning(affected), *_downstream_warning(contract)),
        notes=opened.abandoned,
    )
    progress = _Progress(answer)
    try:
        done = _run(engine, request, options, target, opened, progress, on_step)
    except ResliceError as error:
        failed = _with_run(error, progress.run, began)
        _close_failed(engine, progress, contract, target, opened, failed)
        raise failed from error.__cause__
    return replace(done, seconds=time.monotonic() - began)


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
    guards = judge(contract, diff, engine.now(), request.consents, approves=options.approval is not None)
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
        failed = tuple(Check(f.kind, False, "; ".join(f.found)) for f in refused.failures)
        progress.run = replace(progress.run, checks=failed)
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
    engine.close_run(staged, staged.contract, staged.target, opened, done, State.UNCHANGED)
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


def _widened(
    engine: Engine, contract: Contract, target: Target, scope: Scope, options: Options
) -> tuple[Scope, tuple[str, ...]]:
    """Return the scope with the slices the same corrections touch, or as it is with the labels of those it leaves."""
    if contract.affected is None:
        if options.with_affected:
            asked = "--with-affected adds the slices that the contract's affected query names"
            found = "the contract has no affected query"
            failure = Failure("usage", asked, (found,), "add  affected: sql/affected.sql")
            raise Misused(contract.name, [failure], unchanged="nothing was read or written")
        return scope, ()
    moments = engine.affected(contract, target, scope)
    if options.with_affected:
        return scope.plus(moments), ()
    return scope, tuple(scope.label(moment) for moment in moments)


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
    with suppress(ResliceError):
        engine.close_run(progress.staged, contract, target, opened, run, state)
