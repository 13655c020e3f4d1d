"""Restore: put back what one run replaced, slice by slice, alone, and as a run of its own.

The rows that are put back are compared with what is live, kept like any other, and read back. It is refused where a
later run or somebody else has written to a slice since, so that no later work is undone with it.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reslice.approve import approve
from reslice.attempt import OnOpened, OnStep, Progress, attempt, blank, tell_nobody, unchanged, with_run
from reslice.commands import command
from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.errors import Failure, Misused, Refused, ResliceError
from reslice.fingerprint import columns_of
from reslice.publish import Job, publish_whole
from reslice.ranges import Moment, Range, Scope
from reslice.recorded import LedgerRun, LedgerSlice, SliceWrite
from reslice.stage import looked_at, refuse_irreplaceable
from reslice.tables import Target
from reslice.values import Check, Diff, Fingerprint, Kind, Opened, Outcome, Request, Run, SliceDiff, Staged

SLICES_NAMED = 5


def scope_of(contract: Contract, undone: LedgerRun, wanted: Scope | None) -> Scope:
    """Return the slices that a run replaced, of those `wanted`; all of them when None.

    Raises Misused[nothing_to_restore] when there are none, Refused[contract_changed] when they are no slices any more.
    """
    written = [each.slice for each in undone.slice_rows if each.state == "published"]
    moments = [_moment(contract, undone, label) for label in written]
    chosen = [moment for moment in moments if wanted is None or wanted.contains(moment)]
    if not chosen:
        found = f"{undone.id} is {undone.state} and replaced no slice"
        if written:
            found = f"{undone.id} replaced {_listed(written)}, and none of it lies in {wanted.text if wanted else ''}"
        after = f"reslice history {shlex.quote(undone.target)}"
        failure = Failure("nothing_to_restore", "a run that replaced slices", (found,), after)
        raise Misused(
            f"restore {undone.id}", [failure], unchanged=f"{contract.table} is as it was; nothing was written"
        )
    unit, zone = contract.slice.unit, contract.slice.timezone
    return Scope.of(Range(unit, zone, chosen[0], chosen[0])).plus(chosen)


def _moment(contract: Contract, undone: LedgerRun, label: str) -> Moment:
    """Return the slice that a run of the ledger named; Refused when the contract has no such slice any more."""
    moment = moment_of(contract, undone, label)
    if moment is None:
        found = f"{undone.id} replaced {label}, which is no {contract.slice.unit} of the contract as it is now"
        failure = Failure("contract_changed", contract.quote("slice", "slice"), (found,), "put slice back as it was")
        about = f"{contract.name}, restore {undone.id}"
        raise Refused(about, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
    return moment


def moment_of(contract: Contract, run: LedgerRun, label: str) -> Moment | None:
    """Return the slice that a run of the ledger named; None when the contract has no such slice any more."""
    try:
        scope = Scope.parse(label, contract.slice)
        is_one = run.unit == contract.slice.unit and scope.count == 1 and scope.text == label
    except ResliceError:  # the unit or the zone was another one then
        return None
    return scope.hull.start if is_one else None


def plan_restore(engine: Engine, contract: Contract, scope: Scope, undone: LedgerRun, on_step: OnStep) -> Run:
    """Return what a restore would change; nothing is written. What would refuse it is raised."""
    began = time.monotonic()
    progress = Progress(_begun(contract, scope, undone, Outcome.PLANNED))
    try:
        target = looked_at(engine.target(contract))
        progress.run = replace(progress.run, table=target.resolved)
        staged, diff = _staged(engine, contract, target, undone, None, progress, on_step)
    except ResliceError as error:
        raise with_run(error, progress.run, began) from error.__cause__
    return replace(
        progress.run,
        sql=engine.publish_statements(staged, diff.differing, diff),
        seconds=time.monotonic() - began,
    )


def restore(
    engine: Engine, request: Request, undone: LedgerRun, on_step: OnStep, on_opened: OnOpened = tell_nobody
) -> Run:
    """Put the replaced rows back in one commit, or end with the table as it was; the ledger has it either way.

    Slices that hold those rows already are left. Raises Refused when a slice is not as the run left it.
    """
    contract = request.contract

    def work(opened: Opened, progress: Progress) -> Run:
        staged, diff = _staged(engine, contract, opened.target, undone, opened, progress, on_step)
        if not diff.differing:
            return unchanged(engine, staged, opened, progress.run)
        approved = approve(contract, diff, (), opened.id, rewrite=False)
        return publish_whole(Job(engine, staged, approved, opened, on_step), progress.run)

    return attempt(engine, request, _begun(contract, request.scope, undone, Outcome.FAILED), work, on_opened)


def _begun(contract: Contract, scope: Scope, undone: LedgerRun, outcome: Outcome) -> Run:
    return replace(blank("restore", contract, scope, outcome), kind=Kind.RESTORE, restores=undone.id)


def _staged(
    engine: Engine,
    contract: Contract,
    target: Target,
    undone: LedgerRun,
    opened: Opened | None,
    progress: Progress,
    on_step: OnStep,
) -> tuple[Staged, Diff]:
    """Stage what the run replaced, compare it with what is live, and refuse what is not as the run left it."""
    if undone.columns and undone.columns != columns_of(contract):
        found = (
            f"{undone.id} compared {', '.join(undone.columns)}; the contract names {', '.join(columns_of(contract))}"
        )
        raise _refused(contract, undone, [_failure(undone, "contract_changed", found)])
    refuse_irreplaceable(engine, contract, target)
    on_step("staging")
    staged = engine.stage_replaced(contract, target, progress.run.scope, undone, opened)
    progress.staged = staged
    on_step("comparing")
    diff = engine.compare(staged)
    progress.run = replace(progress.run, diff=diff)
    on_step("checking")
    recorded = {each.slice: each for each in undone.slice_rows if each.state == "published"}
    labels = tuple(each.label for each in diff.differing)
    writes = engine.ledger.writes_since(contract, target, undone.id, labels) if labels else ()
    failures = [*_gone(contract, undone, diff, recorded), *_written_since(undone, diff, recorded, writes)]
    if failures:
        progress.run = replace(
            progress.run, checks=tuple(Check(each.kind, False, "; ".join(each.found), stops=True) for each in failures)
        )
        raise _refused(contract, undone, failures)
    notes = (*progress.run.notes, *_notes(undone))
    progress.run = replace(progress.run, checks=_held(undone), warnings=_warnings(undone, staged), notes=notes)
    return staged, diff


def _gone(contract: Contract, undone: LedgerRun, diff: Diff, recorded: Mapping[str, LedgerSlice]) -> Iterator[Failure]:
    """Yield a failure when what is staged is not what the run replaced: it was pruned, or deleted by hand."""
    staged = {each.label: str(each.staged) for each in diff.slices}
    asked = (diff.scope.label(moment) for moment in diff.scope.slices())
    labels = [label for label in asked if staged.get(label, EMPTY) != recorded[label].fingerprint_base]
    if not labels:
        return
    found = [f"what {undone.id} replaced in {_listed(labels)} is not kept any more"]
    if undone.pruned_at is not None:
        found.append(f"it was pruned on {undone.pruned_at:%Y-%m-%d}, older than {contract.ledger.keep_days} days")
    elif undone.contract_digest != contract.digest:
        found.append(f"or the contract cuts its rows otherwise than it did: it has changed since {undone.id}")
    yield Failure("kept_gone", _asked_words(undone), tuple(found), command("plan", undone.target, diff.scope))


EMPTY = "0:0"
"""The fingerprint of no rows."""


def _written_since(
    undone: LedgerRun, diff: Diff, recorded: Mapping[str, LedgerSlice], writes: Sequence[SliceWrite]
) -> Iterator[Failure]:
    """Yield a failure for what came after the run where slices are not as it found them: runs, and other writers."""
    of_slice: dict[str, list[SliceWrite]] = {}
    for write in writes:
        of_slice.setdefault(write.slice, []).append(write)
    later: dict[str, list[str]] = {}
    changed = []
    for each in diff.differing:
        last = last_writer(of_slice.get(each.label, ()), undone.id)
        if last != undone.id:
            later.setdefault(last, []).append(each.label)
        elif str(each.base) != recorded[each.label].fingerprint_after:
            changed.append(each)
    for run_id, labels in later.items():
        found = f"{run_id} wrote {_listed(labels)} after {undone.id} did; it can be restored first"
        yield Failure("later_run", _asked_words(undone), (found,), f"reslice restore {run_id}")
    if changed:
        labels = [each.label for each in changed]
        lines = (f"{_listed(labels)} changed since {undone.id}", _moved_words(changed[0], recorded, undone))
        yield Failure("changed_since_run", _asked_words(undone), lines, command("status", undone.target, diff.scope))


def _moved_words(each: SliceDiff, recorded: Mapping[str, LedgerSlice], undone: LedgerRun) -> str:
    """Say how many rows a slice had when the run left it, and has now."""
    left, now = Fingerprint.parse(recorded[each.label].fingerprint_after or EMPTY).rows, each.base.rows
    rows = f"{now} row{'' if now == 1 else 's'}"
    if left == now:
        return f"{each.label} has {rows} as {undone.id} left it, with other values"
    return f"{each.label} had {left} row{'' if left == 1 else 's'} when {undone.id} left it, and has {rows} now"


def last_writer(writes: Sequence[SliceWrite], undone: str) -> str:
    """Return the run whose rows a slice holds, of its writes, the latest first.

    A restore takes itself and the run it undid away, and what was there before them counts again, unless it is the one
    asked for.
    """
    rest = list(writes)
    while rest and rest[0].run != undone and rest[0].restores:
        undid = [place for place, write in enumerate(rest) if write.run == rest[0].restores]
        if not undid:  # it undid a run from before the one that is asked for
            return rest[0].run
        rest = rest[undid[0] + 1 :]
    return rest[0].run if rest else undone


def _held(undone: LedgerRun) -> tuple[Check, ...]:
    """Return the checks that held, as they are told."""
    return (
        Check("kept_columns", True, "the table has the columns of the rows that were kept"),
        Check("kept_gone", True, f"the rows are those that {undone.id} found, by their fingerprints"),
        Check("later_run", True, f"no later run has written these slices after {undone.id}"),
        Check("changed_since_run", True, f"every slice that is written holds what {undone.id} left"),
    )


def _warnings(undone: LedgerRun, staged: Staged) -> tuple[str, ...]:
    if not staged.repeated:
        return ()
    rows = "row" if staged.repeated == 1 else "rows"
    comes = "comes" if staged.repeated == 1 else "come"
    return (f"{staged.repeated} {rows} with a repeated key {comes} back, which {undone.id} had healed",)


def _notes(undone: LedgerRun) -> tuple[str, ...]:
    """Say what undoing a restore means."""
    if not undone.restores:
        return ()
    return (f"{undone.id} is a restore itself: this puts back what {undone.restores} had written",)


def _asked_words(undone: LedgerRun) -> str:
    return f"the slices put back as {undone.id} found them, and nothing later undone with it"


def _failure(undone: LedgerRun, kind: str, found: str) -> Failure:
    return Failure(kind, _asked_words(undone), (found,), f"reslice show {undone.id} --diff")


def _refused(contract: Contract, undone: LedgerRun, failures: Sequence[Failure]) -> Refused:
    about = f"{contract.name}, restore {undone.id}"
    return Refused(about, failures, unchanged=f"{contract.table} is as it was; nothing was written")


def _listed(labels: Sequence[str]) -> str:
    more = len(labels) - SLICES_NAMED
    return ", ".join(labels[:SLICES_NAMED]) + (f" and {more} more" if more > 0 else "")
