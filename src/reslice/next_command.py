"""The last line of every answer: a command that works when it is pasted.

Each is made from the answer alone. `place` holds the options that lead to the project, such as `-C shop`, and goes into
every command of a text.
"""

from __future__ import annotations

import re
import shlex

from reslice.ranges import Scope
from reslice.values import Guard, LedgerRun, Outcome, Run, State

_COMMAND = re.compile(r"\breslice (?=(?:plan|run|verify|history|show)\b)")
_SLICES_NAMED = 3


def placed(text: str, place: str) -> str:
    """Return the text with the options of `place` in each reslice command it holds."""
    return _COMMAND.sub(lambda found: f"{found[0]}{place} ", text) if place else text


def words_of(scope: Scope, run_id: str | None, typed: str = "") -> str:
    """Return what follows the target's name to mean this scope again.

    A scope of several ranges has no RANGE: it is named by the run that has it, or by what was `typed` to get it.
    """
    if len(scope.ranges) == 1:
        return shlex.quote(scope.text)
    return f"--again {run_id}" if run_id else typed or shlex.quote(scope.hull.text)


def next_command(run: Run, typed: str = "") -> str:
    """Return the way on from an answer that is no error."""
    what = f"{shlex.quote(run.target)} {words_of(run.scope, run.id, typed)}"
    if run.command == "verify":
        return _after_verify(run, what)
    if run.outcome is Outcome.PLANNED and run.diff is not None and run.diff.differing:
        return _after_plan(run, what)
    return f"reslice verify {what}"


def _after_plan(run: Run, what: str) -> str:
    """Return the run that publishes the plan; where guards stop it, with the consent they need."""
    stopping = [guard for guard in run.guards if guard.stops]
    if any(guard.name == "empty_slice" and len(guard.slices) > _SLICES_NAMED for guard in stopping):
        return f"reslice plan {what} --out plan.json && reslice run plan.json"
    consents = "".join(f" --allow {shlex.quote(name)}" for guard in stopping for name in _consents(guard))
    return f"reslice run {what}{consents}" + (' --reason "say why"' if stopping else "")


def _consents(guard: Guard) -> list[str]:
    """Return what --allow needs to hear; a slice that would be emptied is named, other guards let the range through."""
    if guard.name == "empty_slice":
        return [f"{guard.name}={label}" for label in guard.slices]
    return [guard.name]


def _after_verify(run: Run, what: str) -> str:
    if run.repeatable is False:
        unstable = ", ".join(run.unstable_columns) or "its rows"
        return f"make {unstable} depend on the range alone, then  reslice verify {what}"
    if run.equals_source is False:
        return f"reslice run {what}"
    differing = dict.fromkeys(line.name for line in run.downstream if not line.ok)
    if differing:
        return f"correct the query of {', '.join(differing)}, then  reslice verify {what}"
    return f"reslice history {shlex.quote(run.target)}"


def next_after(run: LedgerRun) -> str:
    """Return the way on from a run of the ledger."""
    if run.alive:
        return f"reslice show {run.id}"
    match run.state:
        case State.PUBLISHED | State.UNCHANGED:
            return f"reslice verify {shlex.quote(run.target)} {_ledger_words(run)}"
        case State.STOPPED:
            return f"reslice run --approve {run.id}"
    return f"reslice run --again {run.id}"


def _ledger_words(run: LedgerRun) -> str:
    return f"--again {run.id}" if "," in run.range_text else shlex.quote(run.range_text)
