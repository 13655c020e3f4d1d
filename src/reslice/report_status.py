"""The text of status: how many slices stand how, then each that is not equal, then the range as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reslice.layout import counted, escaped, placed, table
from reslice.next_command import next_command
from reslice.report import change_text, control_rows, fact_lines, sections, talk_lines, total_rows
from reslice.values import Diff, Run, SliceDiff, SliceState, Total

SLICES_SHOWN = 40


def status_text(run: Run, *, place: str = "") -> str:
    """Return everything a user reads about a status."""
    assert run.diff is not None, "status is said of what was compared"
    head = [
        f"status: {escaped(run.target)} for {run.scope.text}, {run.scope.words}",
        _states_text(run.diff),
    ]
    facts = total_rows(Total(run.diff.base.rows, run.diff.staged.rows), run.diff.totals)
    facts += control_rows(run.controls, run.controls_declared, run.scope.count)
    end = [
        f"{escaped(run.target)} was not touched: status only reads it.",
        f"next: {placed(next_command(run), place)}",
    ]
    return sections(head, _slice_lines(run.diff.differing), fact_lines(facts), talk_lines(run), end)


def _states_text(diff: Diff) -> str:
    """Return how many slices stand how, every number said; slices without rows on either side count as none of them."""
    counts = Counter(each.state for each in diff.slices)
    words = {
        SliceState.EQUAL: "equal",
        SliceState.DIFFERS: "differs" if counts[SliceState.DIFFERS] == 1 else "differ",
        SliceState.MISSING: "missing",
        SliceState.EXTRA: "extra",
    }
    parts = [f"{counts[state]} {word}" for state, word in words.items()]
    bare = diff.scope.count - len(diff.slices)
    return ", ".join(parts) + (f"; {counted(bare, 'slice')} without rows on either side" if bare else "")


def _slice_lines(slices: Sequence[SliceDiff]) -> list[str]:
    """Return one line per slice that is not equal: its state, its groups, and the totals that differ."""
    shown = slices[:SLICES_SHOWN]
    names = dict.fromkeys(name for each in shown for name in each.totals)
    rows = [
        [f"  {each.label}", each.state, _groups_text(each), *(_total_text(each.totals, name) for name in names)]
        for each in shown
    ]
    left = len(slices) - len(shown)
    more = [f"  … and {left} more: --json lists every slice"] if left else []
    return [*(table(rows, gap="   ") if rows else []), *more]


def _groups_text(each: SliceDiff) -> str:
    repeated = f", {counted(each.repeated, 'repeated row')}" if each.repeated else ""
    return f"+{each.added} ~{each.changed} -{each.removed}{repeated}"


def _total_text(totals: Mapping[str, Total], name: str) -> str:
    total = totals.get(name)
    if total is None or total.before == total.after:
        return ""
    return f"{escaped(name)} {change_text(total, with_difference=True)}"
