"""The control flow of plan and run: stage, check, compare, approve, publish.

`plan` is the same code up to the guards and writes nothing. That a run stands in the ledger, whatever ends it, is what
`attempt` sees to.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace

from reslice.approve import approve, judge, slices_to_write
from reslice.attempt import (
    OnOpened,
    OnStep,
    Progress,
    attempt,
    blank,
    staged_and_compared,
    tell_nobody,
    unchanged,
    with_run,
)
from reslice.commands import command
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused, Refused, ResliceError
from reslice.findings import counted
from reslice.publish import Job, publish_each, publish_whole
from reslice.ranges import Scope
from reslice.stage import looked_at
from reslice.tables import Target
from reslice.values import Consent, Diff, Fingerprint, Guard, Opened, Outcome, Request, Run, Staged


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
    progress = Progress(blank("plan", contract, scope, Outcome.PLANNED))
    try:
        target = looked_at(engine.target(contract))
        progress.run = replace(progress.run, table=target.resolved)
        _widen(engine, contract, target, options, progress)
        staged, diff = staged_and_compared(engine, contract, target, None, progress, on_step)
        guards = _judged(engine, staged, diff, (), frozenset())
    except ResliceError as error:
        raise with_run(error, progress.run, began) from error.__cause__
    written = slices_to_write(diff, rewrite=options.rewrite)
    return replace(
        progress.run,
        guards=guards,
        notes=(*progress.run.notes, *_elsewhere(contract, diff)),
        sql=engine.publish_statements(staged, written, diff),
        seconds=time.monotonic() - began,
    )


def run(engine: Engine, request: Request, options: Options, on_step: OnStep, on_opened: OnOpened = tell_nobody) -> Run:
    """Publish the slices that differ, or end with the table as it was; the ledger has the run either way.

    `on_opened` hears of the run as soon as it stands in the ledger, outside of any transaction. Raises every error of
    `reslice.errors`, with `error.run` set to what was known.
    """
    contract = request.contract
    begun = replace(blank("run", contract, request.scope, Outcome.FAILED), warnings=_downstream_warning(contract))

    def work(opened: Opened, progress: Progress) -> Run:
        _widen(engine, contract, opened.target, options, progress)
        return _run(engine, request, options, opened, progress, on_step)

    return attempt(engine, request, begun, work, on_opened)


def _run(
    engine: Engine,
    request: Request,
    options: Options,
    opened: Opened,
    progress: Progress,
    on_step: OnStep,
) -> Run:
    contract = request.contract
    staged, diff = staged_and_compared(engine, contract, opened.target, opened, progress, on_step)
    already = options.approval is not None and _hold_to(contract, options.approval, diff)
    approves = options.approval.guards if options.approval else frozenset()
    guards = _judged(engine, staged, diff, request.consents, approves)
    progress.run = replace(progress.run, guards=guards)
    if already or not slices_to_write(diff, rewrite=options.rewrite):
        return unchanged(engine, staged, opened, progress.run)
    approved = approve(contract, diff, guards, opened.id, rewrite=options.rewrite)
    job = Job(engine, staged, approved, opened, on_step)
    done = publish_each(job, progress.run) if options.per_slice else publish_whole(job, progress.run)
    return replace(done, notes=(*done.notes, *_elsewhere(contract, diff)))


def _elsewhere(contract: Contract, diff: Diff) -> tuple[str, ...]:
    """Say that other slices may differ as well, where the contract cannot name those that corrections touch."""
    if contract.affected is not None or not diff.differing:
        return ()
    return (f"slices outside this range are not looked at: reslice status {shlex.quote(contract.name)} compares them",)


def _judged(
    engine: Engine, staged: Staged, diff: Diff, consents: tuple[Consent, ...], approves: frozenset[str]
) -> tuple[Guard, ...]:
    """Return what every guard sees, with what the clock and the ledger of the database say."""
    contract = staged.contract
    labels = tuple(each.label for each in diff.differing)
    restored = engine.ledger.restored(contract, staged.target, labels)
    return judge(contract, diff, engine.now(), consents, approves=approves, restored=restored)


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
    if approval.columns != diff.columns or approval.staged != diff.staged:
        found = (
            f"the source now gives {counted(diff.staged.rows, 'row')} ({diff.staged}),"
            f" {approval.name} staged {approval.staged}"
        )
        raise refuse("approval_stale", found)
    if diff.base == diff.staged:
        return True
    if approval.base != diff.base:
        found = (
            f"the target now holds {counted(diff.base.rows, 'row')} ({diff.base}),"
            f" {approval.name} compared with {approval.base}"
        )
        raise refuse("approval_stale", found)
    return False


def _widen(engine: Engine, contract: Contract, target: Target, options: Options, progress: Progress) -> None:
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
