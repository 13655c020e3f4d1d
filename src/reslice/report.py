"""The text of a plan, run or verify that ended well: one fact per line, the scope first, the next command last.

Errors are in `report_error`, the ledger's runs in `report_ledger`, JSON in `report_json`. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reslice.contract import Action, Method
from reslice.engines.versions import VIEW_SUFFIX
from reslice.layout import counted, escaped, placed, shown, table
from reslice.next_command import next_command
from reslice.report_json import exit_code
from reslice.totals import is_finite
from reslice.values import Change, ControlLine, Counts, Diff, GroupDiff, Guard, Number, Outcome, Run, Total

GROUPS_SHOWN = 20
_MEASURES_ALIGNED = 4
_SIGNS = {Change.ADDED: "+", Change.CHANGED: "~", Change.REMOVED: "-"}


def run_text(run: Run, *, place: str = "", way_on: str | None = None) -> str:
    """Return everything a user reads about an answer that is no error.

    `place` holds the options that lead to the project; `way_on` is said in place of the usual next command.
    """
    head = [f"{_title(run)}: {escaped(run.target)} for {run.scope.text}, {run.scope.words}"]
    if run.diff is not None:
        head += _summary(run.diff)
    groups = _groups(run, place) if run.diff is not None else []
    end = [_closing(run), f"next: {placed(next_command(run) if way_on is None else way_on, place)}"]
    return sections(head, groups, _facts(run), talk_lines(run, place), end)


def talk_lines(run: Run, place: str = "") -> list[str]:
    """Return what a run warns of and notes, one line each."""
    said = [f"warning: {text}" for text in run.warnings] + [f"note: {text}" for text in run.notes]
    return [placed(escaped(text), place) for text in said]


def sections(*parts: Sequence[str]) -> str:
    """Return the parts that have lines, with an empty line between them."""
    return "\n\n".join("\n".join(part) for part in parts if part)


def sql_text(run: Run) -> str:
    """Return the statements of a publish as a script, below a line that says what they are for."""
    doing = "what would be executed" if run.outcome is Outcome.PLANNED else "what was executed"
    head = f"-- {escaped(run.target)} for {run.scope.text}, {run.scope.words}: {doing}"
    return script(head, run.sql)


def script(head: str, statements: Iterable[str]) -> str:
    """Return SQL statements, each ended by a semicolon, below a comment. What is a comment itself needs none."""
    return "\n\n".join([head, *map(_ended, statements)])


def _ended(statement: str) -> str:
    text = statement.strip().removesuffix(";")
    return text if text.rpartition("\n")[2].startswith("--") else f"{text};"


def _title(run: Run) -> str:
    """Return how it ended, and the run's id when it has one."""
    ended = str(run.outcome)
    if run.command == "verify":
        ended = "not verified" if exit_code(run) else "verified"
    if run.command == "restore" and run.outcome is not Outcome.RESTORED:
        ended = f"restore {ended}"
    return ended if run.id is None else f"{ended} {run.id}"


def _summary(diff: Diff) -> list[str]:
    differing = len(diff.differing)
    lines = [f"{counts_text(diff.counts)}; {_differ_text(differing, diff.scope.count)}"]
    if diff.repeated:
        lines.append(f"heals {counted(diff.repeated, 'repeated row')}")
    return lines


def counts_text(counts: Counts) -> str:
    """Return how many groups move, every number said."""
    return f"{counts.added} added, {counts.changed} changed, {counts.removed} removed, {counts.unchanged} unchanged"


def _differ_text(differing: int, count: int) -> str:
    if not differing:
        return "no slice differs"
    return f"{differing} of {counted(count, 'slice')} {'differs' if differing == 1 else 'differ'}"


def _groups(run: Run, place: str) -> list[str]:
    assert run.diff is not None
    left = len(run.diff.groups[GROUPS_SHOWN:]) + run.diff.groups_left_out
    lines = group_lines(run.diff.groups[:GROUPS_SHOWN])
    if left:
        where = placed(f"reslice show {run.id} --diff", place) if run.id else "--json lists more of them"
        lines.append(f"  … and {left} more: {where}")
    return lines


def group_lines(groups: Sequence[GroupDiff]) -> list[str]:
    """Return one line per group: the sign, the key, then every measure before and after, in columns."""
    measures = dict.fromkeys(name for group in groups for name in (group.before or group.after or {}))
    is_wide = len(measures) > _MEASURES_ALIGNED
    keys = table([[shown(value) for value in group.key.values()] for group in groups], gap=" ") if groups else []
    rows = [
        [
            f"  {_SIGNS[group.change]} {key}",
            *(_measure_cell(group, name, is_wide=is_wide) for name in measures),
            _rows_cell(group),
        ]
        for group, key in zip(groups, keys, strict=True)
    ]
    return table(rows, gap="   ") if rows else []


def _measure_cell(group: GroupDiff, name: str, *, is_wide: bool) -> str:
    """Return one measure of a group. In a wide table, a measure that stays as it is is left out."""
    if group.before is None or group.after is None:
        row: Mapping[str, Any] = group.after or group.before or {}
        return f"{escaped(name)} {shown(row.get(name))}"
    before, after = group.before.get(name), group.after.get(name)
    if before == after:
        return "" if is_wide else f"{escaped(name)} {shown(after)}"
    return f"{escaped(name)} {shown(before)} → {shown(after)}"


def _rows_cell(group: GroupDiff) -> str:
    if group.rows_before <= 1:
        return ""
    return f"({group.rows_before} rows → {0 if group.after is None else 1})"


def _facts(run: Run) -> list[str]:
    """Return the range as a whole: rows, totals, controls, guards, and for verify its answers."""
    rows: list[tuple[str, str]] = []
    if run.diff is not None:
        is_written = run.command in ("run", "restore") and run.rows_after is not None
        after = run.rows_after if is_written else run.diff.staged.rows
        rows += total_rows(Total(run.diff.base.rows, after), run.diff.totals)
        if run.command == "restore":
            rows.append(("undoes", run.restores))
        else:
            rows += control_rows(run.controls, run.controls_declared, run.scope.count)
    rows += [("guard", _guard_text(guard, run.outcome)) for guard in run.guards if guard.fired]
    if run.command == "verify":
        rows += _verify_rows(run)
    elif run.method is Method.APPEND_VERSION:
        rows.append(("readers", f"use {_view(run)}: {escaped(run.table)} holds every version of a slice"))
    return fact_lines(rows)


def fact_lines(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return named facts below each other."""
    found = [(f"  {escaped(name)}", text) for name, text in rows]
    return table(found) if found else []


def total_rows(rows: Total, totals: Mapping[str, Total]) -> list[tuple[str, str]]:
    """Return the rows of the range and the sum of each measure, before and after."""
    return [
        ("rows", change_text(rows)),
        *((name, change_text(total, with_difference=True)) for name, total in totals.items()),
    ]


def change_text(total: Total, *, with_difference: bool = False) -> str:
    """Return a number before and after; one that stays is said once."""
    before, after = _number(total.before), _number(total.after)
    if total.before == total.after:
        return after
    is_told = with_difference and is_finite(total.before, total.after)
    if not is_told or total.before is None or total.after is None:
        return f"{before} → {after}"
    difference = total.after - total.before
    return f"{before} → {after} ({'+' if difference > 0 else ''}{_number(difference)})"


def _number(value: Number | None) -> str:
    return "none" if value is None else shown(value)


def control_rows(lines: Sequence[ControlLine], is_declared: bool, slices: int) -> list[tuple[str, str]]:
    """Return whether the rows add up to the control, with both figures."""
    if not is_declared:
        return [("control", "not reconciled: no control declared")]
    if not lines:
        return []
    if all(line.ok for line in lines):
        return [("control", f"reconciled: {_pairs(lines)}, {counted(slices, 'slice')}")]
    return [("control", f"not reconciled: {_difference(line)}") for line in lines if not line.ok]


def _pairs(lines: Iterable[ControlLine]) -> str:
    return ", ".join(f"{escaped(line.figure)} {_number(line.control)} = {_number(line.target)}" for line in lines)


def _difference(line: ControlLine) -> str:
    """Return the two figures of a line that differs, and the slices."""
    named = ", ".join(line.slices_differing[:3])
    more = f" and {len(line.slices_differing) - 3} more" if len(line.slices_differing) > 3 else ""
    figures = f"{escaped(line.figure)} {_number(line.control)}, {escaped(line.expression)} {_number(line.target)}"
    return f"{figures}; differs in {named}{more}"


def _guard_text(guard: Guard, outcome: Outcome) -> str:
    """Return what a guard that fired saw, and what came of it."""
    if guard.stops and outcome is Outcome.UNCHANGED:
        return f"{guard.name} had nothing to stop: {escaped(guard.found)}"
    verdict = "would stop a run" if guard.stops else "was consented to" if guard.action is Action.STOP else "reports"
    return f"{guard.name} {verdict}: {escaped(guard.found)}"


def _verify_rows(run: Run) -> list[tuple[str, str]]:
    rows = [("repeatable", _repeatable_text(run)), ("equal", _equal_text(run))]
    for name in dict.fromkeys(line.name for line in run.downstream):
        lines = [line for line in run.downstream if line.name == name]
        if all(line.ok for line in lines):
            rows.append((name, f"agrees with the target: {_pairs(lines)}"))
        rows += [(name, f"differs from the target: {_difference(line)}") for line in lines if not line.ok]
    return rows


def _repeatable_text(run: Run) -> str:
    if run.repeatable is None:
        return "not known"
    if run.repeatable:
        return "yes: evaluated twice, the source gave the same rows"
    columns = ", ".join(escaped(each) for each in run.unstable_columns) or "the rows"
    return f"no: evaluated twice, the source differs in {columns}"


def _equal_text(run: Run) -> str:
    if run.equals_source is None:
        return "not known"
    return "yes: the target holds the source's rows" if run.equals_source else "no: the target holds other rows"


def _closing(run: Run) -> str:
    """Return whether the target changed, in one sentence."""
    name = escaped(run.target)
    if run.command == "verify":
        return f"{name} was not touched: verify only reads it."
    if run.outcome is Outcome.PLANNED:
        is_equal = run.diff is not None and not run.diff.differing
        state = "already holds exactly these rows;" if is_equal else "was not touched:"
        word = "asking" if run.command == "restore" else "a plan"
        return f"{name} {state} {word} writes nothing."
    if run.outcome is Outcome.UNCHANGED:
        return f"{name} is unchanged: it already held exactly these rows; nothing was written."
    written = counted(len(run.slices_done), "slice")
    commits = ", each in its own commit" if run.per_slice else " in one commit"
    is_versioned = run.method is Method.APPEND_VERSION
    if is_versioned:
        name = _view(run)
    if not run.target_changed or run.diff is None or not run.diff.differing:
        return f"{name} holds the same rows as before: {written} written again{commits}, and read back."
    if run.restores:
        them = "it" if len(run.slices_done) == 1 else "them"
        return f"{name} changed: {written} put back{commits} as {run.restores} found {them}, and read back."
    done = "merged" if run.method is Method.MERGE else "replaced"
    if is_versioned:
        done = "with a new version" if len(run.slices_done) == 1 else "with new versions"
    return f"{name} changed: {written} {done}{commits}, and read back."


def _view(run: Run) -> str:
    """Return the view of the current versions, as the table is named."""
    return escaped(f"{run.table.rpartition('.')[2]}{VIEW_SUFFIX}")
