"""The first page: every target of the contract, those that somebody should look at first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reslice.contract import Contract
from reslice.ledger import overview
from reslice.recorded import LedgerRun
from reslice.studio.standing import EXCEPTIONS
from reslice.studio.targets import about, figures, run_row, tone_of
from reslice.studio.values import Ask, View

if TYPE_CHECKING:
    from reslice.engines.base import Engine


def view(ask: Ask) -> View:
    """Return every target with its newest run, and how its slices stand."""
    contracts = [ask.project.target(name).contract for name in ask.project.targets]
    targets: list[dict[str, Any]] = []
    with ask.project.engine(read_only=True) as engine:
        now = engine.now()
        newest = _newest(engine, contracts)
        for contract in contracts:
            run = newest.get(contract.name)
            found = ask.words.stands(engine, contract, ask.jobs.compared(contract), run.number if run else 0)
            targets.append(about(contract, now) | {"figures": figures(found), "newest": run_row(run) if run else None})
    targets.sort(key=_urgency, reverse=True)
    return View("first", {"targets": targets}, {"tone_of": tone_of, "exceptions": exceptions})


def exceptions(target: dict[str, Any]) -> dict[str, int]:
    """Return how many slices are exceptions, by how they stand; those of which there are none are left out."""
    counted = {state.value: target["figures"][state.value.replace(" ", "_")] for state in EXCEPTIONS}
    return {word: number for word, number in counted.items() if number}


def _urgency(target: dict[str, Any]) -> tuple[bool, int]:
    """Return what comes first: a newest run that ended badly, then many slices that are exceptions."""
    newest = target["newest"]
    is_bad = newest is not None and tone_of(newest["state"]) in ("bad", "warn")
    return is_bad, sum(exceptions(target).values())


def _newest(engine: Engine, contracts: Sequence[Contract]) -> dict[str, LedgerRun]:
    """Return the newest run of each target that has any."""
    by_schema: dict[str, list[str]] = {}
    for contract in contracts:
        by_schema.setdefault(contract.ledger.schema, []).append(contract.name)
    found: list[LedgerRun] = []
    for schema, names in by_schema.items():
        found += (run for part in engine.ledger.look(schema, partial(overview.newest, targets=names)) for run in part)
    ordered = sorted(engine.ledger.seen(found), key=lambda run: run.requested_at)
    return {run.target: run for run in ordered}
