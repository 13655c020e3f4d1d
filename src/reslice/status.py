"""Status: compare the target with its source, slice by slice, and write nothing.

The source is evaluated once over the range, as a run would, and every slice is equal, differs, is missing (the source
has rows, the target none) or extra (the target has rows, the source none).
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime

from reslice.attempt import OnStep, Progress, blank, staged_and_compared, with_run
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused, ResliceError
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Range, Scope, last_over
from reslice.values import Diff, Fingerprint, Outcome, Run, Target


def status(engine: Engine, contract: Contract, wanted: Scope | None, since: datetime | None, on_step: OnStep) -> Run:
    """Return how every slice stands; `equals_source` is true when all are equal.

    Without `wanted` the slices are those from the first that the target holds to the last that is over by now, or the
    last that the target holds, whichever is later. `since` leaves those that corrections since then touch.
    """
    began = time.monotonic()
    target = engine.target(contract)
    scope = wanted or _whole(engine, contract, target)
    outside: tuple[str, ...] = ()
    if since is not None:
        touched = _touched(engine, contract, target, since)
        chosen = [moment for moment in touched if wanted is None or scope.contains(moment)]
        outside = tuple(scope.label(moment) for moment in touched if moment not in chosen)
        if not chosen:
            return _nothing_touched(contract, target, scope, outside)
        scope = Scope.of(Range(scope.unit, scope.zone, chosen[0], chosen[0])).plus(chosen)
    known = replace(blank("status", contract, scope, Outcome.UNCHANGED), table=target.resolved, affected=outside)
    progress = Progress(known)
    try:
        _, diff = staged_and_compared(engine, contract, target, None, progress, on_step)
    except ResliceError as error:
        raise with_run(error, progress.run, began) from error.__cause__
    return replace(
        progress.run,
        rows_after=diff.base.rows,
        after=diff.base,
        equals_source=not diff.differing,
        seconds=time.monotonic() - began,
    )


def _whole(engine: Engine, contract: Contract, target: Target) -> Scope:
    """Return the range that is compared when none is named."""
    ends = engine.extent(contract, target)
    if ends is None:
        found = f"{contract.table} holds no rows, so there is no first slice"
        failure = Failure("usage", "a RANGE", (found,), f"reslice status {contract.name} RANGE")
        raise Misused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
    first, last = ends
    through = max(last, last_over(engine.now(), contract.slice))
    return Scope.of(Range(contract.slice.unit, contract.slice.timezone, first, through))


def _touched(engine: Engine, contract: Contract, target: Target, since: datetime) -> tuple[Moment, ...]:
    """Return the slices that corrections since an instant touch; Misused[usage] when the contract cannot tell."""
    if contract.affected is None:
        found = "the contract has no affected query, so what corrections touch is not known"
        after = f"reslice status {contract.name}"
        failure = Failure("usage", "--since leaves the slices that corrections touch", (found,), after)
        raise Misused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
    return engine.ledger.affected_since(contract, target, since)


def _nothing_touched(contract: Contract, target: Target, scope: Scope, outside: tuple[str, ...]) -> Run:
    """Return the answer where corrections touch no slice of the range; the source was not evaluated."""
    empty = Diff(scope, (), (), 0, {}, columns_of(contract))
    return replace(
        blank("status", contract, scope, Outcome.UNCHANGED),
        table=target.resolved,
        diff=empty,
        rows_after=0,
        after=Fingerprint(),
        equals_source=True,
        affected=outside,
        notes=("no correction since then touches a slice of this range; the source was not evaluated",),
    )
