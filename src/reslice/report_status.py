"""The text of status: how many slices stand how, then each that is not equal, then the range as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reslice.layout import counted, escaped, placed, table
from reslice.next_command import next_command
from reslice.report import change_text, control_rows, fact_lines, sections, talk_lines, total_rows
from reslice.values import Diff, Run, SliceDiff, SliceState, Total

SLICES_SHOWN = 40
RANGES_SHOWN = 5


def status_text(run: Run, *, place: str = "") -> str:
    """Return everything a user reads about a status."""
    assert run.diff is not None, "status is said of what was compared"
    differing = run.diff.differing
    head = [f"status: {escaped(run.target)} for {_scope_text(run)}, {run.scope.words}"]
    facts: list[tuple[str, str]] = []
    if run.checks:
        head.append(_states_text(run.diff))
        facts += total_rows(Total(run.diff.base.rows, run.diff.staged.rows), run.diff.totals)
        facts += control_rows(run.controls, run.controls_declared, run.scope.count)
    end = [
        f"{escaped(run.target)} {_verdict(run)}; status only reads it.",
        f"next: {placed(next_command(run), place)}",
    ]
    return sections(head, _slice_lines(differing), fact_lines(facts), talk_lines(run, place), end)


def _verdict(run: Run) -> str:
    """Return what is known now; without a check nothing was compared, since corrections touch nothing."""
    if not run.checks:
        return "was not compared"
    return "holds what its source gives" if run.equals_source else "does not hold what its source gives"


def _scope_text(run: Run) -> str:
    """Return the ranges, or of very many the first and the last."""
    ranges = run.scope.ranges
    if len(ranges) <= RANGES_SHOWN:
        return run.scope.text
    return f"{len(ranges)} ranges in {run.scope.hull.text}"


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
    """Return one line per slice that is not equal: its state, what a run would do, and the totals that differ."""
    shown = slices[:SLICES_SHOWN]
    if not shown:
        return []
    moved = [name for name in dict.fromkeys(name for each in shown for name in each.totals) if _moves(shown, name)]
    heading = ["  slice", "", "a run would", *(["target → source"] if moved else []), *[""] * (len(moved) - 1)]
    rows = [
        [f"  {each.label}", each.state, _groups_text(each), *(_total_text(each.totals, name) for name in moved)]
        for each in shown
    ]
    left = len(slices) - len(shown)
    more = [f"  … and {left} more: --json lists every slice"] if left else []
    return [*table([heading, *rows], gap="   "), *more]


def _moves(slices: Sequence[SliceDiff], name: str) -> bool:
    return any(_total_text(each.totals, name) for each in slices)


def _groups_text(each: SliceDiff) -> str:
    """Return the groups that a run would add, change and remove, and the repeated rows it would heal."""
    groups = {"add": each.added, "change": each.changed, "remove": each.removed}
    parts = [f"{word} {number}" for word, number in groups.items() if number]
    healed = [f"heal {counted(each.repeated, 'repeated row')}"] if each.repeated else []
    return ", ".join([*parts, *healed]) or "rewrite it"


def _total_text(totals: Mapping[str, Total], name: str) -> str:
    total = totals.get(name)
    if total is None or total.before == total.after:
        return ""
    return f"{escaped(name)} {change_text(total, with_difference=True)}"
