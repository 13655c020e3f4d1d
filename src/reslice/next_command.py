"""The last line of every answer: a command that works when it is pasted.

Each is made from the answer alone.
"""

from __future__ import annotations

import shlex

from reslice.commands import command, restore_command
from reslice.ranges import Range, Scope
from reslice.recorded import LedgerRun
from reslice.values import Diff, Guard, Kind, Outcome, Run, State

_SLICES_NAMED = 3
_RANGES_NAMED = 5


def next_command(run: Run) -> str:
    """Return the way on from an answer that is no error."""
    if run.command == "verify":
        return _after_verify(run)
    if run.command == "status" and run.diff is not None and run.diff.differing:
        return _after_status(run, run.diff)
    if run.command == "restore":
        return _after_restore(run)
    if run.outcome is Outcome.PLANNED and run.diff is not None and run.diff.differing:
        return _after_plan(run)
    return command("verify", run.target, run.scope)


def _after_plan(run: Run) -> str:
    """Return the run that publishes the plan; where guards stop it, with the consent they need."""
    stopping = [guard for guard in run.guards if guard.stops]
    if any(guard.name == "empty_slice" and len(guard.slices) > _SLICES_NAMED for guard in stopping):
        return command("plan", run.target, run.scope, "--out plan.json && reslice run plan.json")
    consents = [f"--allow {shlex.quote(name)}" for guard in stopping for name in _consents(guard)]
    reason = ['--reason "say why"'] if stopping else []
    return command("run", run.target, run.scope, *consents, *reason)


def _consents(guard: Guard) -> list[str]:
    """Return what --allow needs to hear; a slice that would be emptied is named, other guards let the range through."""
    if guard.name == "empty_slice":
        return [f"{guard.name}={label}" for label in guard.slices]
    return [guard.name]


def _after_status(run: Run, diff: Diff) -> str:
    """Return the plan of what is not equal: those slices, or from the first to the last where they are too many."""
    first, *rest = (each.slice for each in diff.differing)
    differing = Scope.of(Range(run.scope.unit, run.scope.zone, first, first)).plus(rest)
    is_long = len(differing.ranges) > _RANGES_NAMED
    return command("plan", run.target, Scope.of(differing.hull) if is_long else differing)


def _after_restore(run: Run) -> str:
    """Return the way to do it, or to see what is live now beside what the source says."""
    if run.outcome is Outcome.PLANNED:
        return restore_command(run.restores, run.scope, "--yes")
    return command("status", run.target, run.scope)


def _after_verify(run: Run) -> str:
    again = command("verify", run.target, run.scope)
    if run.repeatable is False:
        unstable = ", ".join(run.unstable_columns) or "its rows"
        return f"make {unstable} depend on the range alone, then  {again}"
    if run.equals_source is False:
        return command("run", run.target, run.scope)
    differing = dict.fromkeys(line.name for line in run.downstream if not line.ok)
    if differing:
        return f"correct the query of {', '.join(differing)}, then  {again}"
    return f"reslice history {shlex.quote(run.target)}"


def next_after(run: LedgerRun) -> str:
    """Return the way on from a run of the ledger."""
    if run.alive:
        return f"reslice show {run.id}"
    if run.kind == Kind.RESTORE and run.state != State.RESTORED:
        return f"reslice show {run.restores}"
    match run.state:
        case State.RESTORED:
            return f"reslice status {shlex.quote(run.target)} {shlex.quote(run.range_text)}"
        case State.PUBLISHED | State.UNCHANGED:
            return f"reslice verify {shlex.quote(run.target)} {shlex.quote(run.range_text)}"
        case State.STOPPED:
            return f"reslice run --approve {run.id}"
    return f"reslice run --again {run.id}"
