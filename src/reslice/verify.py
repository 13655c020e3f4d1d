"""Verify: run the contract twice without publishing, and answer two questions that are never mixed.

*Repeatable*: do two evaluations of the source give the same rows? *Equal to the source*: does the target hold them?

The two evaluations are made in two snapshots, because a clock such as now() stands still within one. Equal rows settle
the question. Rows that differ are evaluated a third time: if the third equals the second, the source moved in between,
and the second is what the target is compared with; if not, the source is not stable.
"""

from __future__ import annotations

import time
from dataclasses import replace

from reslice.attempt import STATES, with_run
from reslice.check import check, failed_checks
from reslice.compare import compare, warnings
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Refused, ResliceError
from reslice.publish import OnStep
from reslice.ranges import Scope
from reslice.stage import stage
from reslice.tables import Target
from reslice.values import Check, Checked, ControlLine, Diff, Kind, Outcome, Request, Run, State

MOVED = "the source moved while it was read; the target was compared with its newer rows"


def verify(engine: Engine, contract: Contract, scope: Scope, on_step: OnStep, *, request: Request | None) -> Run:
    """Return whether the source repeats and whether the target equals it. The target is not touched.

    With a `request` the answer is recorded in the ledger; without one nothing is written.
    """
    began = time.monotonic()
    target = engine.target(contract)
    opened = None if request is None else engine.ledger.open_run(request, target)
    target = replace(target, rights_missing=())  # who may not write may look
    run = Run(
        "verify", contract.name, target.resolved, scope, Outcome.UNCHANGED, kind=Kind.VERIFY, method=contract.method
    )
    run = replace(
        run,
        id=None if opened is None else opened.id,
        controls_declared=contract.controls is not None,
        notes=() if opened is None else opened.abandoned,
    )
    try:
        done = _verified(engine, contract, target, run, on_step)
    except ResliceError as error:
        checks = failed_checks(error) if isinstance(error, Refused) else ()
        failed = with_run(error, replace(run, checks=checks), began)
        if opened is not None and failed.run is not None:
            state = STATES.get(failed.run.outcome, State.FAILED)
            engine.ledger.close_run(None, contract, target, opened, failed.run, state)
        raise
    done = replace(done, seconds=time.monotonic() - began)
    if opened is not None:
        state = State.UNCHANGED if all(each.ok for each in done.checks) else State.FAILED
        engine.ledger.close_run(None, contract, target, opened, done, state)
    return done


def _verified(engine: Engine, contract: Contract, target: Target, run: Run, on_step: OnStep) -> Run:
    first = _checked(engine, contract, target, run, on_step, "staging the first time")
    second = _checked(engine, contract, target, run, on_step, "staging the second time")
    unstable = engine.compare_stagings(first.staged, second.staged)
    moved = False
    if unstable:
        third = _checked(engine, contract, target, run, on_step, "staging a third time")
        unstable = engine.compare_stagings(second.staged, third.staged)
        moved = not unstable
    on_step("comparing")
    diff = compare(engine, second)
    downstream: list[ControlLine] = []
    for reader in contract.downstream:
        on_step(f"asking {reader.name}")
        downstream += engine.reconcile(second.staged, reader)
    return replace(
        run,
        diff=diff,
        rows_after=diff.base.rows,
        after=diff.base,
        checks=(*second.checks, *_answers(unstable, diff)),
        controls=second.controls,
        warnings=(*second.warnings, *warnings(second, diff), *((MOVED,) if moved else ())),
        downstream=tuple(downstream),
        repeatable=not unstable,
        unstable_columns=unstable,
        equals_source=not diff.differing,
    )


def _checked(engine: Engine, contract: Contract, target: Target, run: Run, on_step: OnStep, words: str) -> Checked:
    on_step(words)
    return check(engine, stage(engine, contract, target, run.scope, None))


def _answers(unstable: tuple[str, ...], diff: Diff) -> tuple[Check, Check]:
    """Return the two questions as checks, so that the ledger holds both answers."""
    repeats = "two evaluations gave the same rows"
    differing = len(diff.differing)
    equal = f"the target differs from the source in {differing} slice{'' if differing == 1 else 's'}"
    return (
        Check("repeatable", not unstable, f"{', '.join(unstable)} differ between evaluations" if unstable else repeats),
        Check("equals_source", not differing, equal if differing else "the target holds the source's rows"),
    )
