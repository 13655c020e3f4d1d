"""What the first page and the page of a target say alike: what a target is, and its runs as rows of a list."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from reslice.contract import Contract
from reslice.recorded import LedgerRun
from reslice.report_json import exact
from reslice.studio.standing import Stand, Standing, counts
from reslice.studio.values import instant
from reslice.totals import EXACT, is_finite
from reslice.values import Number, State

TONES = {
    "published": "good",
    "unchanged": "good",
    "restored": "good",
    "running": "quiet",
    "stopped": "warn",
    "not finished": "warn",
    "interrupted": "warn",
}
"""How the end of a run is to be taken; what is not named here is bad."""


def about(contract: Contract, now: datetime) -> dict[str, Any]:
    """Return what the contract says of a target."""
    limit = closed_through(contract, now)
    return {
        "target": contract.name,
        "table": contract.table,
        "key": [column.name for column in contract.grain],
        "slice": {
            "column": contract.slice.column,
            "unit": contract.slice.unit.value,
            "timezone": contract.slice.timezone,
        },
        "measures": [measure.name for measure in contract.measures],
        "method": contract.method.value,
        "closed_through": None if limit is None else limit.isoformat(),
        "controls_declared": contract.controls is not None,
    }


def closed_through(contract: Contract, now: datetime) -> date | None:
    """Return the last day of the contract's zone that it calls closed; None when it names no limit."""
    closed = contract.guards.closed_through
    if closed is None or closed.on is not None:
        return None if closed is None else closed.on
    today = now.astimezone(ZoneInfo(contract.slice.timezone)).toordinal()
    return date.fromordinal(max(1, today - (closed.days_ago or 0)))


def figures(found: dict[str, Stand]) -> dict[str, int]:
    """Return how many slices are known, and how many of them stand how."""
    counted = counts(found)
    return {"slices": len(found) - counted[Standing.EMPTY]} | {
        state.value.replace(" ", "_"): number for state, number in counted.items() if state is not Standing.UNKNOWN
    }


def run_row(run: LedgerRun) -> dict[str, Any]:
    """Return one run as a list has it."""
    took = None if run.finished_at is None else round((run.finished_at - run.requested_at).total_seconds() * 1000)
    counted = run.counts
    return {
        "run": run.id,
        "target": run.target,
        "kind": run.kind,
        "state": state_of(run),
        "word": _word(run),
        "range": run.range_text,
        "unit": run.unit,
        "slices": run.slices,
        "restores": run.restores,
        "groups": None
        if counted is None
        else {"added": counted.added, "changed": counted.changed, "removed": counted.removed},
        "measures": _changes(run),
        "controls": _controls(run),
        "actor": run.actor,
        "requested_at": instant(run.requested_at),
        "finished_at": instant(run.finished_at),
        "milliseconds": took,
        "lock_milliseconds": run.lock_milliseconds,
    }


def state_of(run: LedgerRun) -> str:
    """Return how a run ended, in a word; one without an end is at work, or its process is gone."""
    if run.state == State.REQUESTED:
        return "running" if run.alive else "not finished"
    return run.ended


_WORDS = {
    ("verify", "unchanged"): "verified",
    ("verify", "failed"): "not verified",
    ("prune", "published"): "pruned",
    ("restore", "unchanged"): "restored, no change",
}


def _word(run: LedgerRun) -> str:
    """Return what became of a run, in the word of what it was for."""
    state = state_of(run)
    return _WORDS.get((run.kind, state), state if run.kind in ("run", "restore") else f"{run.kind} {state}")


def tone_of(state: str) -> str:
    """Return how the end of a run is to be taken: good, quiet, warn or bad."""
    return TONES.get(state, "bad")


def _changes(run: LedgerRun) -> dict[str, int | str | None]:
    """Return by how much the total of each measure moved; None where a side is unknown or no number."""
    changes: dict[str, Any] = {}
    for name, total in run.totals.items():
        before, after = total.before or 0, total.after or 0
        changes[name] = exact(_moved(before, after)) if is_finite(before, after) else None
    return changes


def _moved(before: Number, after: Number) -> Number:
    """Return the exact difference; of whole numbers a whole number."""
    if isinstance(before, int) and isinstance(after, int):
        return after - before
    return EXACT.subtract(Decimal(after), Decimal(before))


def _controls(run: LedgerRun) -> dict[str, Any]:
    """Return whether the rows added up to the control: `reconciled` is None where none was held against it."""
    if not run.controls:
        return {"reconciled": None, "figures": []}
    lines = [
        {"figure": line.figure, "control": exact(line.control), "target": exact(line.target), "ok": line.ok}
        for line in run.controls
    ]
    return {"reconciled": all(line.ok for line in run.controls), "figures": lines}
