"""Status: compare the target with its source, slice by slice, and write nothing.

The source is evaluated once over the range, as a run would, and every slice is equal, differs, is missing (the source
has rows, the target none) or extra (the target has rows, the source none).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from reslice.attempt import OnStep, Progress, blank, staged_and_compared, with_run
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused, ResliceError
from reslice.fingerprint import columns_of
from reslice.ranges import Moment, Range, Scope, last_over
from reslice.stage import refuse_target
from reslice.tables import Target
from reslice.values import Diff, Fingerprint, Outcome, Run

SLICES_NAMED = 5


def status(engine: Engine, contract: Contract, wanted: Scope | None, since: datetime | None, on_step: OnStep) -> Run:
    """Return how every slice stands; `equals_source` is true when all are equal.

    Without `wanted` the slices are those from the first that the target holds to the last that is over by now, or the
    last that the target holds, whichever is later. `since` leaves those that corrections since then touch.
    """
    began = time.monotonic()
    target = replace(engine.target(contract), rights_missing=())  # who may not write may look
    refuse_target(engine, contract, target)
    if since is None:
        run = _begun(contract, target, wanted or _whole(engine, contract, target))
    else:
        touched = _touched(engine, contract, target, since)
        chosen = [moment for moment in touched if wanted is None or wanted.contains(moment)]
        if not chosen:
            scope = wanted or _whole(engine, contract, target)
            return replace(_nothing_touched(contract, target, scope, since, touched), seconds=time.monotonic() - began)
        run = _narrowed(_begun(contract, target, _scope_of(contract, chosen)), since, set(touched) - set(chosen))
    progress = Progress(run)
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
        found = f"{contract.table} holds no row with a value in {contract.slice.column}, so there is no first slice"
        asked = "a RANGE, or a target whose first slice is where to begin"
        failure = Failure("usage", asked, (found,), "reslice status --help")
        raise Misused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
    first, last = ends
    through = max(last, last_over(engine.now(), contract.slice))
    return Scope.of(Range(contract.slice.unit, contract.slice.timezone, first, through))


def _touched(engine: Engine, contract: Contract, target: Target, since: datetime) -> tuple[Moment, ...]:
    """Return the slices that corrections since an instant touch; Misused[usage] when the contract cannot tell."""
    if contract.affected is None:
        found = "the contract has no affected query, so what corrections touch is not known"
        after = f"reslice status {shlex.quote(contract.name)}"
        failure = Failure("usage", "--since looks at the slices that corrections touch", (found,), after)
        raise Misused(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
    return engine.ledger.affected_since(contract, target, since)


def _begun(contract: Contract, target: Target, scope: Scope) -> Run:
    return replace(blank("status", contract, scope, Outcome.UNCHANGED), table=target.resolved)


def _scope_of(contract: Contract, moments: Sequence[Moment]) -> Scope:
    first = Range(contract.slice.unit, contract.slice.timezone, moments[0], moments[0])
    return Scope.of(first).plus(moments)


def _narrowed(run: Run, since: datetime, outside: Collection[Moment]) -> Run:
    """Return the answer to be, with what was left out of it: slices that corrections touch outside the range."""
    labels = tuple(run.scope.label(moment) for moment in sorted(outside))
    note = f"only the slices that corrections since {_instant(since)} touch are compared"
    return replace(run, affected=labels, warnings=_outside_warning(labels), notes=(note,))


def _nothing_touched(
    contract: Contract, target: Target, scope: Scope, since: datetime, outside: Collection[Moment]
) -> Run:
    """Return the answer where corrections touch no slice of the range; the source was not evaluated."""
    note = f"no correction since {_instant(since)} touches a slice of this range; the source was not evaluated"
    return replace(
        _narrowed(_begun(contract, target, scope), since, outside),
        diff=Diff(scope, (), (), 0, {}, columns_of(contract)),
        rows_after=0,
        after=Fingerprint(),
        equals_source=True,
        notes=(note,),
    )


def _instant(since: datetime) -> str:
    return f"{since.astimezone(UTC).isoformat(' ', 'seconds').removesuffix('+00:00')} UTC"


def _outside_warning(labels: Sequence[str]) -> tuple[str, ...]:
    if not labels:
        return ()
    more = f" and {len(labels) - SLICES_NAMED} more" if len(labels) > SLICES_NAMED else ""
    named = ", ".join(labels[:SLICES_NAMED]) + more
    return (f"corrections also touch {named}, outside this range, which was not compared",)
