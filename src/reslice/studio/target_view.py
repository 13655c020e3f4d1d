"""The page of one target: how its slices stand, a range of them that is chosen, and its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from reslice.contract import Contract
from reslice.ledger import overview
from reslice.ledger.texts import span as ledger_span
from reslice.project import misused
from reslice.ranges import Moment, Range, last_over
from reslice.recorded import LedgerRun
from reslice.studio import calendar
from reslice.studio.chosen import Chosen, chosen_range, chosen_values
from reslice.studio.standing import EXCEPTIONS, MEANINGS, Compared, Stand, Standing, counts
from reslice.studio.targets import about, closed_through, figures, run_row, tone_of
from reslice.studio.values import Ask, View, instant, slug
from reslice.values import Kind, State

if TYPE_CHECKING:
    from reslice.engines.base import Engine

RUNS_PER_PAGE = 50
KINDS = tuple(each.value for each in Kind)
STATES = tuple(each.value for each in State)


def view(ask: Ask) -> View:
    """Return how a target stands, in the period that is asked for or the newest, and its newest runs."""
    contract = contract_of(ask)
    chosen = chosen_range(contract, ask.word("from"), ask.word("to"))
    wanted = _wanted(ask, contract)
    compared = ask.jobs.compared(contract)  # asked once: it may be answered while this page is made
    with ask.project.engine(read_only=True) as engine:
        now = engine.now()
        runs = _runs(engine, contract, wanted)
        is_newest = wanted == overview.Wanted(contract.name)
        newest = (runs[0].number if runs else 0) if is_newest else None
        found = ask.words.stands(engine, contract, compared, newest)
    periods = calendar.periods(found, contract.slice.unit)
    due = _last_due(contract, now)
    period = _period(ask, contract, chosen, due, [name for name, _, _ in periods])
    shown = calendar.span(found, period, contract.slice, due)
    slices = {} if shown is None else calendar.stands_of(shown, found)
    listed = runs[:RUNS_PER_PAGE]
    values = about(contract, now) | {
        "figures": figures(found),
        "status": _status_values(compared),
        "period": period,
        "periods": [{"period": name, "slices": count, "exceptions": loud} for name, count, loud in periods],
        "slices": [
            {"slice": label, "state": stand.state.value, "run": stand.run or None, "at": instant(stand.at)}
            for label, (_, stand) in slices.items()
        ],
        "chosen": None if chosen is None else chosen_values(chosen, contract, found, ask.place),
        "filter": {name: ask.word(name) for name in ("state", "kind", "range")},
        "runs": [run_row(run) for run in listed],
        "older": listed[-1].number if len(runs) > RUNS_PER_PAGE else None,
    }
    listing = {"is_newest": is_newest, "is_range_read": bool(wanted.first) or not ask.word("range")}
    return View("target", values, _drawn(ask, contract, slices, chosen, shown) | listing)


def contract_of(ask: Ask) -> Contract:
    """Return the contract of the target that the address names; Misused[usage] when there is none."""
    wanted = ask.path["target"]
    for name in ask.project.targets:
        if slug(name) == wanted:
            return ask.project.target(name).contract
    found = f"the contract has no target of that address; it has {', '.join(ask.project.targets)}"
    raise misused("usage", wanted, "a target of the contract", found, "reslice doctor")


def _wanted(ask: Ask, contract: Contract) -> overview.Wanted:
    """Return which runs are listed; words that no run has leave nothing out."""
    state, kind, before = ask.word("state"), ask.word("kind"), ask.word("before")
    ends = ("", "")
    range_text = ask.word("range")
    if range_text:
        named = chosen_range(contract, range_text, "")
        ends = ledger_span(named.range) if named is not None and named.range is not None else ends
    return overview.Wanted(
        contract.name,
        state if state in STATES else "",
        kind if kind in KINDS else "",
        *ends,
        int(before) if before.isdecimal() and len(before) < 16 else None,
    )


def _runs(engine: Engine, contract: Contract, wanted: overview.Wanted) -> tuple[LedgerRun, ...]:
    """Return the newest runs that are wanted, one more than a page shows."""
    parts = engine.ledger.look(
        contract.ledger.schema,
        lambda session, where, absent: overview.page_of_runs(session, where, absent, wanted, RUNS_PER_PAGE + 1),
    )
    found = sorted((run for part in parts for run in part), key=lambda run: run.number, reverse=True)
    return engine.ledger.seen(found[: RUNS_PER_PAGE + 1])


def _last_due(contract: Contract, now: datetime) -> Moment:
    """Return the last slice that a run may be expected of: it is over, and the contract calls it closed."""
    limit, zone = closed_through(contract, now), ZoneInfo(contract.slice.timezone)
    if limit is not None and limit < now.astimezone(zone).date():
        first = date(1, 12, 31)  # the calendar has a slice before it, of any unit
        now = datetime.combine(max(limit, first) + timedelta(days=1), time.min, zone)
    return last_over(now, contract.slice)


def _period(ask: Ask, contract: Contract, chosen: Chosen | None, due: Moment, known: Sequence[str]) -> str:
    """Return the period that is shown: the one asked for, that of the chosen range, or the newest that has begun."""
    cut = contract.slice
    asked = ask.word("period")
    if chosen is not None and chosen.range is not None and asked not in known:
        asked = calendar.period_of(chosen.range.label(chosen.range.end), cut.unit)
    if asked in known:
        return asked
    now = calendar.period_of(Range(cut.unit, cut.timezone, due, due).text, cut.unit)
    return next((each for each in known if each <= now), next(iter(known), ""))


def _status_values(compared: Compared | None) -> dict[str, Any] | None:
    """Return what the last comparison with the source found."""
    if compared is None:
        return None
    counted = counts({label: Stand(state) for label, state in compared.states.items()})
    return {
        "asked_at": instant(compared.at),
        "range": compared.run.scope.text,
        "slices": compared.run.scope.count,
        "seconds": round(compared.run.seconds, 3),
        "equals_source": compared.run.equals_source,
        "states": {state.value.replace(" ", "_"): counted[state] for state in (Standing.EQUAL, *EXCEPTIONS)},
    }


def _drawn(
    ask: Ask,
    contract: Contract,
    slices: Mapping[str, tuple[Any, Stand]],
    chosen: Chosen | None,
    shown: Range | None,
) -> dict[str, Any]:
    """Return what only the page needs: the picture, and what is written around it."""
    states = {stand.state for _, stand in slices.values()}
    return {
        "blocks": calendar.blocks(slices, contract.slice),
        "legend": [(state, MEANINGS[state]) for state in Standing if state in states],
        "marked": frozenset() if chosen is None else chosen.labels,
        "shown_range": "" if shown is None else shown.text,
        "input_type": {"day": "date", "week": "week", "month": "month"}.get(contract.slice.unit.value, "text"),
        "example": "" if shown is None else shown.label(shown.end),
        "tone_of": tone_of,
        "kinds": KINDS,
        "states": STATES,
        "steps": calendar.STEPS[contract.slice.unit],
        "cell_width": calendar.WIDTH,
        "cell_height": calendar.HEIGHT,
        "is_loud": lambda stand: stand.state in EXCEPTIONS,
    }
