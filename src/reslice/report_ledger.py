"""The text of what the ledger holds: a list of runs, and one run with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from reslice.layout import counted, escaped, placed, table
from reslice.next_command import next_after
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.report import (
    GROUPS_SHOWN,
    control_rows,
    counts_text,
    fact_lines,
    group_lines,
    script,
    sections,
    total_rows,
)
from reslice.report_error import part
from reslice.values import Counts, Kind, State, Total

_SLICES_SHOWN = 20
_HEADINGS = ("run", "target", "range", "state", "groups", "rows", "asked for", "by")


def history_text(runs: Sequence[LedgerRun], *, place: str = "") -> str:
    """Return the runs as a table, in the order given; instants are UTC to the second."""
    if not runs:
        return f"no run is in the ledger\n\nnext: {placed('reslice run --help', place)}"
    lines = table([_HEADINGS, *(_history_row(run) for run in runs)])
    return sections(lines, [f"next: {placed(f'reslice show {runs[0].id}', place)}"])


def show_text(run: LedgerRun, *, with_diff: bool = False, place: str = "") -> str:
    """Return one run: its scope, its changed groups (`with_diff`: all that were recorded), and the evidence."""
    head = [f"{state_text(run)} {run.id}: {escaped(run.target)} for {run.range_text}, {_scope_words(run)}"]
    if run.counts is not None:
        head.append(counts_text(run.counts))
    error = _error_lines(run.ended, run.error) if run.error is not None else []
    warnings = [f"warning: {escaped(text)}" for text in run.warnings]
    way_on = [f"next: {placed(next_after(run), place)}"]
    slices = _slice_lines(run.slice_rows, with_all=with_diff)
    return sections(head, error, _groups(run, place, with_diff=with_diff), _facts(run), slices, warnings, way_on)


def ledger_sql_text(run: LedgerRun) -> str:
    """Return the statements that the run executed as a script."""
    head = f"-- {state_text(run)} {run.id}: {escaped(run.target)} for {run.range_text}, {_scope_words(run)}"
    return script(head, run.sql)


def _history_row(run: LedgerRun) -> list[str]:
    return [
        run.id,
        escaped(run.target),
        run.range_text,
        state_text(run),
        "" if run.counts is None else _short_counts(run.counts),
        _rows_text(run),
        _instant(run.requested_at),
        escaped(run.actor),
    ]


def _short_counts(counts: Counts) -> str:
    """Return the groups that move: added, changed, removed."""
    return f"+{counts.added} ~{counts.changed} -{counts.removed}" if counts.any else "none"


def _rows_text(run: LedgerRun) -> str:
    if run.rows_before is None:
        return ""
    if run.rows_after is None or run.rows_after == run.rows_before:
        return str(run.rows_before)
    return f"{run.rows_before} → {run.rows_after}"


def state_text(run: LedgerRun) -> str:
    """Return the state in a word; a run without an end is either at work or gone."""
    if run.state == State.REQUESTED:
        return "running" if run.alive else "not finished"
    if run.state == State.RESTORED:
        return run.state
    return f"{run.kind} {run.ended}" if run.kind != "run" else run.ended


def _scope_words(run: LedgerRun) -> str:
    if run.slices == 1:
        return "1 slice"
    ends = "both ends included" if "," in run.range_text else f"both {run.unit}s included"
    return f"{ends}, {counted(run.slices, 'slice')}"


def _error_lines(ended: str, error: Mapping[str, Any]) -> list[str]:
    """Return the recorded failures in the form that was printed when the run ended."""
    lines = [f"{ended}[{escaped(str(error.get('kind', '')))}]"]
    for failure in error.get("failures") or [error]:
        lines += part("asked", [str(failure.get("asked", ""))])
        lines += part("found", [str(each) for each in failure.get("found") or ()])
    return lines + part("unchanged", [str(error.get("unchanged", ""))])


def _groups(run: LedgerRun, place: str, *, with_diff: bool) -> list[str]:
    shown = run.groups if with_diff else run.groups[:GROUPS_SHOWN]
    lines = group_lines(shown)
    hidden = len(run.groups) - len(shown)
    if hidden:
        command = placed(f"reslice show {run.id} --diff", place)
        lines.append(f"  … and {hidden + run.groups_left_out} more: {command}")
    elif run.groups_left_out:
        lines.append(f"  … and {run.groups_left_out} more that the ledger does not hold")
    return lines


def _facts(run: LedgerRun) -> list[str]:
    rows: list[tuple[str, str]] = []
    if run.rows_before is not None:
        after = run.rows_staged if run.rows_after is None else run.rows_after
        rows += total_rows(Total(run.rows_before, after), run.totals)
        if run.kind not in (Kind.RESTORE, Kind.PRUNE):
            rows += control_rows(run.controls, bool(run.controls), run.slices)
    rows += [("" if place else "checks", text) for place, text in enumerate(_check_texts(run))]
    for consent in run.consents:
        where = f" for {', '.join(consent.slices)}" if consent.slices else ""
        rows.append(("consent", f"{consent.guard}{where}"))
    facts = [
        ("reason", escaped(run.reason)),
        ("approves", escaped(run.approves)),
        ("undoes", run.restores),
        ("asked for", f"{_instant(run.requested_at)} by {escaped(run.actor)}"),
        ("finished", _instant(run.finished_at)),
        ("method", run.method),
        ("table", escaped(run.table)),
        ("fingerprint", _fingerprint_text(run)),
        ("columns", ", ".join(escaped(each) for each in run.columns)),
        ("locked", "" if run.lock_milliseconds is None else f"{run.lock_milliseconds} ms"),
        ("pruned", "" if run.pruned_at is None else f"{_instant(run.pruned_at)}: kept rows and groups, by keep_days"),
        ("contract", run.contract_digest),
        ("versions", f"reslice {run.tool_version}, {run.engine_version}"),
    ]
    return fact_lines([*rows, *((name, text) for name, text in facts if text)])


def _check_texts(run: LedgerRun) -> list[str]:
    """Return a text for each check that did not hold, or one for all that did."""
    broken = [f"{check.name}: {escaped(check.found)}" for check in run.checks if not check.ok]
    return broken or ([f"all {len(run.checks)} held"] if run.checks else [])


def _fingerprint_text(run: LedgerRun) -> str:
    """Return the fingerprints before and after; those of staged rows that were not published are named so."""
    if run.fingerprint_base is None:
        return ""
    if run.fingerprint_after is not None:
        same = run.fingerprint_after == run.fingerprint_base
        return run.fingerprint_base if same else f"{run.fingerprint_base} → {run.fingerprint_after}"
    staged = "" if run.fingerprint_staged is None else f", staged {run.fingerprint_staged}"
    return f"{run.fingerprint_base}{staged}"


def _slice_lines(slices: Sequence[LedgerSlice], *, with_all: bool) -> list[str]:
    """Return one line per recorded slice, and how many are empty; a single slice is told by the lines above."""
    if len(slices) < 2:
        return []
    filled = [each for each in slices if each.state != "empty"]
    shown = filled if with_all else filled[:_SLICES_SHOWN]
    lines = table([(f"  {each.slice}", each.state, counts_text(_slice_counts(each))) for each in shown])
    left, empty = len(filled) - len(shown), len(slices) - len(filled)
    if left:
        lines.append(f"  … and {left} more slices")
    if empty:
        lines.append(f"  {counted(empty, 'slice')} {'is' if empty == 1 else 'are'} empty on both sides")
    return lines


def _slice_counts(each: LedgerSlice) -> Counts:
    return Counts(each.added, each.changed, each.removed, each.unchanged)


def _instant(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
