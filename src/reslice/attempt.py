"""One attempt at a range: it stands in the ledger from the request to how it ended, whatever ends it.

`run` and `restore` are attempts, and differ in what they stage and in what may stop them. Whatever ends an attempt is
written to the ledger and raised with what was known when it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from reslice.check import check, failed_checks
from reslice.compare import compare, warnings
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Interrupted, OutcomeUnknown, PartlyPublished, Refused, ResliceError, Stopped
from reslice.ranges import Scope
from reslice.stage import refuse_without_rights, stage
from reslice.tables import Target
from reslice.values import Diff, Opened, Outcome, Request, Run, Staged, State

OnStep = Callable[[str], None]
OnOpened = Callable[[Run], None]


def tell_nobody(_run: Run) -> None:
    """Follow no run."""


def blank(word: str, contract: Contract, scope: Scope, outcome: Outcome) -> Run:
    """Return an answer of which only the question is known."""
    declared = contract.controls is not None
    return Run(word, contract.name, contract.table, scope, outcome, method=contract.method, controls_declared=declared)


@dataclass(slots=True)
class Progress:
    """How far an attempt got, kept so that an error can say it."""

    run: Run
    staged: Staged | None = None


Work = Callable[[Opened, Progress], Run]
"""What an attempt does once it stands in the ledger."""


def attempt(engine: Engine, request: Request, run: Run, work: Work, on_opened: OnOpened = tell_nobody) -> Run:
    """Return what `work` returns, or end with the table as it was; the ledger has the attempt either way.

    `on_opened` hears of it as soon as it stands in the ledger, outside of any transaction. Raises every error of
    `reslice.errors`, with `error.run` set to what was known.
    """
    began = time.monotonic()
    contract = request.contract
    progress = Progress(run)
    try:
        target = engine.target(contract)
        progress.run = replace(progress.run, table=target.resolved)
        refuse_without_rights(engine, contract, target)
        opened = engine.ledger.open_run(request, target)
    except ResliceError as error:
        raise with_run(error, progress.run, began) from error.__cause__
    progress.run = replace(progress.run, id=opened.id, notes=opened.abandoned)
    try:
        on_opened(progress.run)
        done = work(opened, progress)
    except ResliceError as error:
        failed = with_run(error, progress.run, began)
        _close_failed(engine, progress, contract, target, opened, failed)
        raise failed from error.__cause__
    return replace(_pruned(engine, contract, target, done), seconds=time.monotonic() - began)


def _pruned(engine: Engine, contract: Contract, target: Target, done: Run) -> Run:
    """Let the ledger go of what is too old, and return the run with what was said of it.

    The run has ended and stands: pruning that fails is a warning, and pruning that is stopped is left to the next run.
    """
    try:
        return replace(done, notes=(*done.notes, *engine.ledger.prune(contract, target)))
    except Interrupted:
        return done
    except ResliceError as error:
        found = "; ".join(error.failures[0].found)
        warning = f"the ledger still holds what is older than keep_days: pruning it failed, {found}"
        return replace(done, warnings=(*done.warnings, warning))


def staged_and_compared(
    engine: Engine, contract: Contract, target: Target, opened: Opened | None, progress: Progress, on_step: OnStep
) -> tuple[Staged, Diff]:
    """Do what plan and run share, keeping in `progress` what an error should be able to tell."""
    on_step("staging")
    staged = stage(engine, contract, target, progress.run.scope, opened)
    progress.staged = staged
    on_step("checking")
    try:
        checked = check(engine, staged)
    except Refused as refused:
        progress.run = replace(progress.run, checks=failed_checks(refused), controls=refused.controls)
        raise
    progress.run = replace(
        progress.run,
        checks=checked.checks,
        controls=checked.controls,
        warnings=(*progress.run.warnings, *checked.warnings),
    )
    on_step("comparing")
    diff = compare(engine, checked)
    remarks = target.remarks if diff.differing else ()
    warned = (*progress.run.warnings, *remarks, *warnings(checked, diff))
    progress.run = replace(progress.run, diff=diff, warnings=warned)
    return staged, diff


def unchanged(engine: Engine, staged: Staged, opened: Opened, run: Run) -> Run:
    """Record that the target already holds the staged rows; nothing is rewritten."""
    assert run.diff is not None, "unchanged is said of what was compared"
    done = replace(run, outcome=Outcome.UNCHANGED, rows_after=run.diff.base.rows, after=run.diff.base)
    engine.ledger.close_run(staged, staged.contract, staged.target, opened, done, State.UNCHANGED)
    return done


OUTCOMES = {Refused: Outcome.REFUSED, Stopped: Outcome.STOPPED, OutcomeUnknown: Outcome.UNKNOWN}
STATES = {Outcome.REFUSED: State.REFUSED, Outcome.STOPPED: State.STOPPED}


def with_run(error: ResliceError, run: Run, began: float) -> ResliceError:
    """Return the error with the run it ended, as far as that got."""
    if isinstance(error, Interrupted):
        error.about = f"{run.target} for {run.scope.text}, {run.scope.words}"
    if error.run is None:
        outcome = OUTCOMES.get(type(error), Outcome.FAILED)
        error.run = replace(run, outcome=outcome, error=error)
    error.run = replace(error.run, seconds=time.monotonic() - began)
    return error


def _close_failed(
    engine: Engine, progress: Progress, contract: Contract, target: Target, opened: Opened, error: ResliceError
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
