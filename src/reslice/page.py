"""One run of the ledger as one page of HTML, to be kept or attached to a ticket.

The page needs no network, no script and no other file, and is made from the run alone: the same run always gives the
same page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from reslice.approve import GUARDS
from reslice.layout import counted, placed, shown
from reslice.next_command import next_after
from reslice.page_template import environment
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.report_ledger import ledger_sql_text
from reslice.totals import EXACT, is_finite
from reslice.values import Change, Check, ControlLine, GroupDiff, Number, State, Total

SLICES_SHOWN = 100
_SIGNS = {Change.ADDED: "+", Change.CHANGED: "~", Change.REMOVED: "-"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run ended: a sign and a word, a tone (`good`, `quiet`, `warn`, `bad`), and a sentence on the table."""

    sign: str
    word: str
    tone: str
    sentence: str
    changed: str


def page_html(run: LedgerRun, *, place: str = "") -> str:
    """Return the whole page. `place` holds the options that lead to the project, for the commands on the page."""
    values = {"frame": "run_kept.html.j2", "figure": shown}
    return environment().get_template("run_body.html.j2").render(run_values(run, place) | values)


def run_values(run: LedgerRun, place: str) -> dict[str, Any]:
    """Return everything that the parts of a run's page name."""
    return {
        "id": run.id,
        "target": run.target,
        "kind": run.kind,
        "range": run.range_text,
        "scope_words": _scope_words(run),
        "outcome": _outcome(run),
        "asked": _asked(run),
        "counts": run.counts,
        "after_word": "recomputed" if run.rows_after is None else "after",
        "rows": None if run.rows_before is None else _total(Total(run.rows_before, _rows_after(run))),
        "error": _error(run, place),
        "warnings": run.warnings,
        "diff": _diff(run),
        "totals": [(name, _total(total)) for name, total in run.totals.items()],
        "slices": _slices(run),
        "checks": [check_words(check, run) for check in sorted(run.checks, key=lambda check: check.ok)],
        "controls": [control_words(line) for line in sorted(run.controls, key=lambda line: line.ok)],
        "consents": _consents(run),
        "fingerprints": _fingerprints(run),
        "way_back": _way_back(run, place),
        "next": placed(next_after(run), place),
        "sql": _lines(ledger_sql_text(run)) if run.sql else [],
        "record": _record(run),
    }


def _scope_words(run: LedgerRun) -> str:
    if run.slices == 1:
        return f"one {run.unit}"
    ends = "both ends included" if "," in run.range_text else f"both {run.unit}s included"
    return f"{ends}, {counted(run.slices, 'slice')}"


def _written(run: LedgerRun) -> tuple[LedgerSlice, ...]:
    """Return the slices that the run wrote: what they held afterwards was read back."""
    return tuple(each for each in run.slice_rows if each.fingerprint_after is not None)


def _outcome(run: LedgerRun) -> Outcome:
    """Return what became of the run and of the table, said so that a reader need not know the words of the ledger."""
    name = run.target
    if run.kind == "verify":
        return _verified(run, name)
    written = _written(run)
    moved = [each for each in written if each.fingerprint_after != each.fingerprint_base]
    changed = "yes" if moved else "no"
    slices = counted(len(written), "slice")
    match run.state:
        case State.REQUESTED if run.alive:
            return Outcome("…", "running", "quiet", f"The run still works on {name}.", "not known yet")
        case State.REQUESTED:
            found = f"The run has no end in the ledger. The next run of {name} finds out what became of it."
            return Outcome("?", "not finished", "warn", found, "yes, in part" if moved else "not known")
        case State.UNCHANGED:
            return Outcome("=", "unchanged", "quiet", f"{name} already held exactly these rows.", "no")
        case State.STOPPED:
            return Outcome("!", "stopped", "warn", "A guard wants a person to look first.", "no")
        case State.REFUSED:
            return Outcome("✕", "refused", "bad", "A rule was broken, and nothing was published.", "no")
        case State.FAILED if written:
            found = f"It ended part-way: {slices} published, each whole; the others are as they were."
            return Outcome("✕", run.ended, "bad", found, "yes, in part" if moved else "no")
        case State.FAILED:
            return Outcome("✕", run.ended, "bad", "It did not get to its end, and published nothing.", "no")
    if not moved:
        return Outcome("✓", run.state, "good", f"The same rows were written again: {slices}.", "no")
    return Outcome("✓", run.state, "good", f"{slices} of {name} replaced, and read back.", changed)


def _verified(run: LedgerRun, name: str) -> Outcome:
    if run.state == State.UNCHANGED:
        return Outcome("✓", "verified", "good", f"The source repeats, and {name} holds its rows.", "no")
    words = {State.REQUESTED: "not finished", State.FAILED: "not verified"}
    if run.ended != run.state:
        return Outcome("✕", f"verify {run.ended}", "bad", "It did not get to its end.", "no")
    return Outcome("✕", words.get(State(run.state), run.state), "bad", "An answer is no; see the checks.", "no")


def _asked(run: LedgerRun) -> list[tuple[str, str]]:
    """Return what the run was asked to do, one fact per line."""
    rows = [
        ("table", run.table),
        ("unit", run.unit),
        ("method", run.method.replace("_", " ")),
        ("asked for by", run.actor),
        ("at", _instant(run.requested_at)),
        ("puts back", f"what {run.restores} replaced" if run.restores else ""),
        ("approves", run.approves),
        ("reason", run.reason),
    ]
    return [(name, text) for name, text in rows if text]


def _rows_after(run: LedgerRun) -> int | None:
    return run.rows_staged if run.rows_after is None else run.rows_after


def _error(run: LedgerRun, place: str) -> dict[str, Any] | None:
    """Return the parts of the recorded error; the first failure alone where there is no list of them."""
    if run.error is None:
        return None
    failures = run.error.get("failures") or [run.error]
    return {
        "failures": [
            {
                "kind": str(each.get("kind", "")),
                "asked": str(each.get("asked", "")),
                "found": [str(text) for text in each.get("found") or ()],
            }
            for each in failures
        ],
        "unchanged": str(run.error.get("unchanged", "")),
        "next": placed(str(run.error.get("next", "")), place),
    }


def _diff(run: LedgerRun) -> dict[str, Any]:
    """Return the groups that moved, those first whose numbers moved furthest together; the ledger keeps those too."""
    measures = dict.fromkeys(name for group in run.groups for name in (group.before or group.after or {}))
    groups = sorted(run.groups, key=lambda group: _distance(group, run.totals), reverse=True)
    return {
        "keys": list(run.groups[0].key) if run.groups else [],
        "measures": list(measures),
        "groups": [group_words(group, list(measures), run.totals) for group in groups],
        "left_out": run.groups_left_out,
    }


def _distance(group: GroupDiff, totals: Mapping[str, Total]) -> Decimal:
    """Return how far the numbers of a group moved, all measures together."""
    before, after = group.before or {}, group.after or {}
    distance = Decimal()
    for name in totals:
        values = _exact(before.get(name)) or 0, _exact(after.get(name)) or 0
        distance += (
            abs(EXACT.subtract(Decimal(values[1]), Decimal(values[0]))) if is_finite(*values) else Decimal("Infinity")
        )
    return distance


def group_words(group: GroupDiff, measures: Sequence[str], totals: Mapping[str, Total]) -> dict[str, Any]:
    """Return a group as text: what becomes of it, its key, and both sides of each measure."""
    repeated = "" if group.rows_before <= 1 else f"{group.rows_before} rows → {0 if group.after is None else 1}"
    return {
        "sign": _SIGNS[group.change],
        "change": str(group.change),
        "repeated": repeated,
        "key": [shown(value) for value in group.key.values()],
        "cells": [_cell(group, name, is_number=name in totals) for name in measures],
    }


def _cell(group: GroupDiff, name: str, *, is_number: bool) -> dict[str, Any]:
    """Return one measure of a group on both sides, and by how much it moved; a side without a row is an empty text.

    Only a measure with a total is a number.
    """
    before, after = (None if side is None else side.get(name) for side in (group.before, group.after))
    return {
        "before": "" if group.before is None else shown(before),
        "after": "" if group.after is None else shown(after),
        "moved": _moved(_exact(before), _exact(after), is_empty_zero=True) if is_number else "",
        "is_number": is_number,
    }


def _exact(value: Any) -> Number | None:
    """Return a measure as a number; the ledger keeps decimals as text."""
    return Decimal(value) if isinstance(value, str) else value


def _moved(before: Number | None, after: Number | None, *, is_empty_zero: bool = False) -> str:
    """Return the difference with its sign; nothing where there is none, or where there is no number on a side."""
    if is_empty_zero:
        before, after = before or 0, after or 0
    if before is None or after is None or before == after:
        return ""
    if not is_finite(before, after):
        return ""
    difference = EXACT.subtract(Decimal(after), Decimal(before))
    return f"{'+' if difference > 0 else ''}{shown(difference)}"


def _total(total: Total) -> dict[str, str]:
    before, after = ("none" if value is None else shown(value) for value in (total.before, total.after))
    return {"before": before, "after": after, "moved": _moved(total.before, total.after)}


def _slices(run: LedgerRun) -> dict[str, Any]:
    """Return the slices that differed; how many more there are; and how many did not."""
    moved = [each for each in run.slice_rows if each.state not in ("unchanged", "empty")]
    return {
        "rows": moved[:SLICES_SHOWN],
        "left_out": len(moved[SLICES_SHOWN:]),
        "same": len(run.slice_rows) - len(moved),
    }


def check_words(check: Check, run: LedgerRun) -> dict[str, str]:
    """Return a rule with what it means for the run, in a word, and how loud that word is."""
    if check.ok:
        verdict, tone = "held", "quiet"
    elif check.consented:
        verdict, tone = "let pass by a person", "warn"
    elif check.stops:
        verdict, tone = ("stopped the run", "warn") if run.state == State.STOPPED else ("broken", "bad")
    else:
        verdict, tone = ("reported", "warn") if check.name in GUARDS else ("no", "bad")
    return {"name": check.name, "verdict": verdict, "tone": tone, "found": check.found}


def control_words(line: ControlLine) -> dict[str, str]:
    """Return both figures of a control as text, and whether they agree."""
    named = ", ".join(line.slices_differing[:5])
    more = f" and {len(line.slices_differing) - 5} more" if len(line.slices_differing) > 5 else ""
    return {
        "figure": line.figure,
        "expression": line.expression,
        "control": shown(line.control),
        "target": shown(line.target),
        "verdict": "equal in every slice" if line.ok else f"differs in {named}{more}",
        "tone": "quiet" if line.ok else "bad",
    }


def _consents(run: LedgerRun) -> list[str]:
    return [
        f"{each.guard} for {', '.join(each.slices)}" if each.slices else f"{each.guard} for the range"
        for each in run.consents
    ]


def _fingerprints(run: LedgerRun) -> list[tuple[str, str]]:
    rows = [
        ("before", run.fingerprint_base),
        ("recomputed", run.fingerprint_staged),
        ("read back", run.fingerprint_after),
        ("columns", ", ".join(run.columns)),
    ]
    return [(name, text) for name, text in rows if text]


def _way_back(run: LedgerRun, place: str) -> dict[str, str] | None:
    """Return the command that puts the replaced rows back, and the same for one slice; None where none moved."""
    written = [each for each in _written(run) if each.fingerprint_after != each.fingerprint_base]
    if not written or run.kind == "verify":
        return None
    command = placed(f"reslice restore {run.id}", place)
    return {"command": command, "one_slice": f"{command} {written[0].slice}" if len(written) > 1 else ""}


def _record(run: LedgerRun) -> list[tuple[str, str]]:
    """Return when it ended, and what it was done with."""
    took = "" if run.finished_at is None else _seconds(run.requested_at, run.finished_at)
    rows = [
        ("finished", _instant(run.finished_at)),
        ("took", took),
        ("held the table", "" if run.lock_milliseconds is None else f"{run.lock_milliseconds} ms"),
        ("contract", run.contract_digest),
        ("reslice", run.tool_version),
        ("database", run.engine_version),
    ]
    return [(name, text) for name, text in rows if text]


def _seconds(began: datetime, ended: datetime) -> str:
    return f"{(ended - began).total_seconds():.1f} seconds"


def _instant(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _lines(text: str) -> list[str]:
    """Return the lines of a text, with spaces for tabs; the template keeps the breaks between them, and no others."""
    return text.replace("\r\n", "\n").expandtabs(4).split("\n")
