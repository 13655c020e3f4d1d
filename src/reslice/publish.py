"""Publish: replace the approved slices, all in one commit, or each in its own.

After one commit the table is as before or wholly replaced. With one commit per slice every slice is so by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from reslice.commands import command
from reslice.engines.base import Engine
from reslice.errors import Failure, OutcomeUnknown, PartlyPublished, ResliceError
from reslice.ranges import Moment, Scope
from reslice.values import Approved, Fingerprint, Opened, Outcome, Run, SliceDiff, Staged, State

OnStep = Callable[[str], None]

UNGUARDED = (
    "a constraint of the target hid concurrent updates from this publish;"
    " writers that update closed slices need a lock of their own"
)


@dataclass(frozen=True, slots=True)
class Job:
    """What a publish works on: the engine, the staged rows and their approval, and the open run."""

    engine: Engine
    staged: Staged
    approved: Approved
    opened: Opened
    on_step: OnStep


def publish_whole(job: Job, run: Run) -> Run:
    """Replace every approved slice in one commit, with the end of the run in the same commit."""
    approved, staged = job.approved, job.staged
    job.on_step("publishing")
    done = replace(
        run,
        outcome=Outcome.RESTORED if staged.restores else Outcome.PUBLISHED,
        target_changed=bool(approved.diff.differing),
        rewritten=not approved.diff.differing,
        rows_after=approved.diff.staged.rows,
        after=approved.diff.staged,
        sql=job.engine.publish_statements(staged, approved.rewrite, approved.diff),
        slices_done=tuple(each.label for each in approved.rewrite),
    )
    done = replace(done, warnings=(*done.warnings, *_stale(staged)))
    published = job.engine.publish(staged, approved, approved.rewrite, job.opened, replace(done, slices_done=()))
    done = replace(done, warnings=(*done.warnings, *published.warnings))
    if not published.guards_updates:
        done = replace(done, warnings=(*done.warnings, UNGUARDED))
    return _read_back(job, done, approved.rewrite)


def publish_each(job: Job, run: Run) -> Run:
    """Replace every approved slice in a commit of its own, and close the run when the last one is done.

    Raises PartlyPublished, naming the slices that are published, when it ends part-way.
    """
    slices = job.approved.rewrite
    done: list[SliceDiff] = []
    warnings: tuple[str, ...] = ()
    for place, each in enumerate(slices, start=1):
        job.on_step(f"publishing {each.label} ({place} of {len(slices)})")
        try:
            published = job.engine.publish(job.staged, job.approved, (each,), job.opened, None)
        except OutcomeUnknown as error:
            if done:
                error.run = replace(_with_done(job, run, done), outcome=Outcome.UNKNOWN, error=error)
            raise
        except ResliceError as error:
            if not done:
                raise
            raise _partly(job, run, done, each, error) from error
        done.append(each)
        warnings = (*warnings, *(f"{each.label}: {warning}" for warning in published.warnings))
        if not published.guards_updates and UNGUARDED not in warnings:
            warnings = (*warnings, UNGUARDED)
    warnings = (*run.warnings, *_stale(job.staged), *warnings)
    finished = replace(_with_done(job, run, done), outcome=Outcome.PUBLISHED, warnings=warnings)
    contract, target = job.staged.contract, job.staged.target
    try:
        job.engine.ledger.close_run(job.staged, contract, target, job.opened, finished, State.PUBLISHED)
    except ResliceError as error:
        if error.kind == "base_moved":
            raise _overtaken(job, finished, done, error) from error
        raise _unrecorded(job, finished, done, error) from error
    return _read_back(job, finished, tuple(done))


def _stale(staged: Staged) -> tuple[str, ...]:
    """Say which materialised views read the table, and still hold what they read before."""
    words = "reads this table and is stale: REFRESH MATERIALIZED VIEW"
    return tuple(f"{name} {words} {name}" for name in staged.target.readers)


def _with_done(job: Job, run: Run, done: list[SliceDiff]) -> Run:
    """Return the run with what the published slices amount to."""
    written = {each.label for each in done}
    after = sum(
        (each.staged if each.label in written else each.base for each in job.approved.diff.slices), Fingerprint()
    )
    return replace(
        run,
        target_changed=any(each.differs for each in done),
        rewritten=not any(each.differs for each in done),
        rows_after=after.rows,
        after=after,
        slices_done=tuple(each.label for each in done),
        per_slice=True,
        sql=(*job.engine.publish_statements(job.staged, tuple(done[:1]), None), *_and_so_on(done)),
    )


def _and_so_on(done: list[SliceDiff]) -> tuple[str, ...]:
    """Say what is not written out: the same commit, for each slice after the first."""
    return (f"-- the same commit for each of {len(done) - 1} more slices, to {done[-1].label}",) if done[1:] else ()


def _partly(job: Job, run: Run, done: list[SliceDiff], failed: SliceDiff, error: ResliceError) -> PartlyPublished:
    """Return the error that names what is published and what is not."""
    rest = len(job.approved.rewrite) - len(done) - 1
    one = len(done) == 1
    found = [
        f"{len(done)} {'slice is published' if one else 'slices are published, each'} whole: {_ends(done)}",
        f"{failed.label} was not published: {'; '.join(error.failures[0].found)}",
    ]
    if rest:
        found.append(f"{rest} {'slice after it was' if rest == 1 else 'slices after it were'} not started")
    contract, scope = job.staged.contract, job.staged.scope
    left = _since(scope, failed.slice)
    after = command("run", contract.name, left, "--per-slice")
    asked = f"{len(job.approved.rewrite)} slices published, each in a commit of its own"
    failure = Failure("partly_published", asked, tuple(found), after)
    unchanged = f"{failed.label} and the slices after it are as they were"
    partly = PartlyPublished(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)
    partly.rest = left.text
    partly.run = replace(_with_done(job, run, done), outcome=Outcome.FAILED, error=partly)
    return partly


def _since(scope: Scope, first: Moment) -> Scope:
    """Return the slices of `scope` from one of them on."""
    return Scope(tuple(replace(each, start=max(each.start, first)) for each in scope.ranges if each.end >= first))


def _unrecorded(job: Job, run: Run, done: list[SliceDiff], error: ResliceError) -> PartlyPublished:
    """Return the error of a run whose slices are all published, and whose end the ledger could not be told."""
    found = (
        f"all {len(done)} slices are published, each whole: {_ends(done)}",
        f"that {run.id} has ended could not be recorded: {'; '.join(error.failures[0].found)}",
    )
    contract, scope = job.staged.contract, job.staged.scope
    asked = f"{len(done)} slices published, and the end of the run in the ledger"
    failure = Failure("partly_published", asked, found, command("run", contract.name, scope, "--per-slice"))
    unchanged = "nothing but these slices was written; the next run says in the ledger how this one ended"
    unrecorded = PartlyPublished(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)
    unrecorded.rest = scope.text
    unrecorded.run = replace(run, outcome=Outcome.FAILED, error=unrecorded)
    return unrecorded


def _overtaken(job: Job, run: Run, done: list[SliceDiff], error: ResliceError) -> PartlyPublished:
    """Return the error of a run whose slices are all published, while others that were equal have been overwritten."""
    one = len(done) == 1
    found = (
        f"{len(done)} {'slice is published' if one else 'slices are published, each'} whole: {_ends(done)}",
        *error.failures[0].found,
    )
    contract, scope = job.staged.contract, job.staged.scope
    failure = Failure("partly_published", "every slice of the range as its source", found, error.next)
    unchanged = "nothing but these slices was written by this run; the others are as another writer left them"
    overtaken = PartlyPublished(f"{contract.name} for {scope.text}", [failure], unchanged=unchanged)
    overtaken.rest = scope.text
    overtaken.run = replace(run, outcome=Outcome.FAILED, error=overtaken)
    return overtaken


def _ends(slices: list[SliceDiff]) -> str:
    if len(slices) <= 3:
        return ", ".join(each.label for each in slices)
    return f"{slices[0].label} to {slices[-1].label}"


def _read_back(job: Job, run: Run, written: tuple[SliceDiff, ...]) -> Run:
    """Read the written slices once more after the commit; raise OutcomeUnknown when another writer got in."""
    job.on_step("reading back")
    try:
        back = job.engine.read_back(job.staged, written)
    except ResliceError as error:
        found = f"{run.id} is committed, and reading it back failed: {'; '.join(error.failures[0].found)}"
        raise _look_first(job, run, "not_read_back", found, f"{run.id} is committed") from error
    differing = back.differing
    if not differing:
        return run
    if back.is_later:
        return replace(run, warnings=(*run.warnings, _changed_since(differing)))
    found = f"{', '.join(differing[:5])} no longer hold{'s' if len(differing) == 1 else ''} the staged rows"
    found += "; another writer changed the slice around the commit"
    unchanged = f"{run.id} is committed; the rows of the other writer are there too"
    raise _look_first(job, run, "slipped_in", found, unchanged)


def _changed_since(differing: tuple[str, ...]) -> str:
    """Say that others took their turn between the commit and the look at it."""
    more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
    named = ", ".join(differing[:5]) + more
    return f"{named} changed again before it was read back: another publish, or a writer under writer_lock, came next"


def _look_first(job: Job, run: Run, kind: str, found: str, unchanged: str) -> OutcomeUnknown:
    """Return the error of a run that is committed, and not known to hold the staged rows."""
    contract = job.staged.contract
    asked = "the committed slices hold the staged rows when they are read again"
    verb = "status" if run.restores else "plan"
    failure = Failure(kind, asked, (found,), command(verb, contract.name, job.staged.scope))
    error = OutcomeUnknown(f"{contract.name} for {run.scope.text}", [failure], unchanged=unchanged)
    error.run = replace(run, error=error)
    return error
