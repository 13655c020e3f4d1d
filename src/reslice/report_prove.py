"""The text and the JSON of prove: the verdict, what moved between runs, what is not as the source has it, the totals.

The two questions stand apart: a command that repeats is not yet right, and one whose table is right may not repeat.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from reslice.layout import counted, escaped, placed, shown, table
from reslice.prove.values import (
    AtOnce,
    Between,
    Comparison,
    Crash,
    Group,
    Moved,
    Proof,
    Verdict,
)
from reslice.report import fact_lines, sections
from reslice.totals import EXACT, is_finite
from reslice.values import Number

GROUPS_SHOWN = 10
TIMES = "\N{MULTIPLICATION SIGN}"

_HEADS = {
    Between.RUNS: "between runs",
    Between.SOURCE: "source → table after the last run",
    Between.OUTSIDE: "outside the range, before → after the last run",
    Between.KEYS: "keys after the last run",
}


def proof_text(proof: Proof, *, place: str = "") -> str:
    """Return everything a user reads about a proof."""
    return sections(
        [_head(proof), _summary(proof)],
        *(_groups(each) for each in _told(proof)),
        _totals(proof),
        fact_lines(_facts(proof)),
        [placed(escaped(text), place) for text in _talk(proof)],
        [_closing(proof), f"next: {placed(next_step(proof), place)}"],
    )


def _head(proof: Proof) -> str:
    scope = proof.subject.scope
    about = escaped(proof.subject.name)
    return f"{proof.verdict}: {about}" + (f" for {scope.text}, {scope.words}" if scope is not None else "")


def _summary(proof: Proof) -> str:
    """Return the verdict in a sentence."""
    match proof.verdict:
        case Verdict.NOT_REPEATABLE:
            return f"a later run did not leave what run 1 left: {_counts(proof.between_runs)}"
        case Verdict.STILL_WRONG:
            return f"{_runs(proof)} left the same rows, and they are not right: {'; '.join(_wrongs(proof))}"
        case Verdict.NOT_SAFE:
            return f"{_runs(proof)} left the same rows, one after the other; {' and '.join(_unsafe(proof))}"
        case Verdict.NOT_PROVEN if proof.repeatable is None:
            return f"the command left {_where(proof)} as it was in {_runs(proof)}: nothing could have been doubled"
        case Verdict.NOT_PROVEN:
            return f"{_runs(proof)} left the same rows, and it is not known what the source gives"
    equal = ", and they are those of the source" if proof.equals_source else ""
    return f"{_runs(proof)} left the same rows{equal}"


def _where(proof: Proof) -> str:
    return "the database" if proof.task.in_place else "the sandbox"


def _unsafe(proof: Proof) -> Iterator[str]:
    if proof.crash is not None and not proof.crash.ok:
        yield "killed part-way, it left the table neither old nor new"
    if proof.at_once is not None and proof.at_once.ok is False:
        yield "two at once left other rows than one"


def _runs(proof: Proof) -> str:
    return f"{len(proof.runs)} runs"


def _counts(comparison: Comparison) -> str:
    """Return how many groups there are of each kind."""
    whole = counted(comparison.count, "group")
    words = [(number, _plural(kind, number)) for kind, number in comparison.counts.items()]
    if len(words) == 1:
        return f"{whole} {words[0][1]}"
    return f"{whole}: {', '.join(f'{number} {word}' for number, word in words)}"


def _plural(kind: Group, number: int) -> str:
    """Return the word for so many groups of a kind."""
    if number == 1:
        return str(kind)
    return {Group.DIFFERS: "differ"}.get(
        kind, f"{kind}s" if kind in (Group.REPEATED_KEY, Group.NULL_KEY) else str(kind)
    )


def _wrongs(proof: Proof) -> Iterator[str]:
    """Yield what is wrong with rows that repeat."""
    if proof.source is not None and proof.source.comparison is not None and proof.source.comparison.count:
        yield f"{_counts(proof.source.comparison)}, beside the source"
    if proof.outside.count:
        yield f"{counted(proof.outside.count, 'group')} outside the range moved"
    for kind, number in proof.keys.counts.items():
        if kind is Group.REPEATED_KEY or proof.subject.contract is not None:
            yield f"{number} {_plural(kind, number)}"


def comparisons(proof: Proof) -> Iterator[Comparison]:
    """Yield what was compared, in the order in which it is told."""
    yield proof.between_runs
    if proof.source is not None and proof.source.comparison is not None:
        yield proof.source.comparison
    yield proof.outside
    yield proof.keys


def _told(proof: Proof) -> Iterator[Comparison]:
    """Yield what is shown: keys alone only where no group has told of them."""
    for each in comparisons(proof):
        is_told = any(
            group.rows_after > 1 for other in comparisons(proof) if other is not each for group in other.groups
        )
        if each.between is not Between.KEYS or not is_told:
            yield each


def _groups(comparison: Comparison) -> list[str]:
    """Return a heading and one line per group."""
    if not comparison.groups:
        return []
    head = f"run 1 → run {comparison.run}" if comparison.between is Between.RUNS else _HEADS[comparison.between]
    lines = group_lines(comparison.groups[:GROUPS_SHOWN])
    left = comparison.count - min(len(comparison.groups), GROUPS_SHOWN)
    more = [f"    … and {left} more: --json lists more of them"] if left else []
    return [f"  {head}", *lines, *more]


def group_lines(groups: Sequence[Moved]) -> list[str]:
    """Return one line per group: what it is, its key, and the measures that moved, each with its factor."""
    names = dict.fromkeys(name for group in groups for name in (group.before or group.after or {}))
    rows = []
    for group in groups:
        key = " ".join(shown(value) for value in group.key.values())
        rows.append([f"    {group.kind}", key, *(_cell(group, name) for name in names), _rows_cell(group)])
    return table(rows, gap="   ")


def _cell(group: Moved, name: str) -> str:
    """Return one measure of a group; of both sides where it is on both, and moved."""
    if group.before is None or group.after is None:
        row: Mapping[str, Any] = group.after or group.before or {}
        return f"{escaped(name)} {shown(row.get(name))}"
    before, after = group.before.get(name), group.after.get(name)
    return "" if before == after else f"{escaped(name)} {change_text(before, after)}"


def _rows_cell(group: Moved) -> str:
    if group.kind in (Group.REPEATED_KEY, Group.NULL_KEY):
        return counted(group.rows_after, "row")
    if group.rows_before <= 1 and group.rows_after <= 1:
        gone = {Group.STALE: "not in the source", Group.REMOVED: "gone"}
        return gone.get(group.kind, "") if None in (group.before, group.after) else ""
    return f"{group.rows_before} → {counted(group.rows_after, 'row')}"


def change_text(before: Any, after: Any) -> str:
    """Return a value before and after, and how many times larger it is where that is a round number."""
    text = f"{shown(before)} → {shown(after)}"
    factor = _factor(before, after)
    return f"{text}, {TIMES} {factor}" if factor else text


def _factor(before: Any, after: Any) -> str:
    """Return by how much a number was multiplied, when it grew and the factor has two digits at most; else nothing."""
    numbers = (before, after)
    if not all(isinstance(each, int | Decimal) and not isinstance(each, bool) for each in numbers):
        return ""
    if not before or not is_finite(before, after):
        return ""
    found = EXACT.divide(Decimal(after), Decimal(before))
    rounded = found.quantize(Decimal("0.01"))
    if found <= 1 or found != rounded:
        return ""
    return format(rounded.normalize(), "f")


def _totals(proof: Proof) -> list[str]:
    """Return rows and sums before, after each run, and in the source."""
    states = [("before", proof.before), *((f"run {each.number}", each.state) for each in proof.runs)]
    if proof.source is not None and proof.source.state is not None:
        states.append(("source", proof.source.state))
    rows = [["", *(name for name, _ in states)], ["  rows", *(str(state.inside) for _, state in states)]]
    rows += [
        [f"  {escaped(name)}", *(_number(state.totals.get(name)) for _, state in states)]
        for name in proof.before.totals
    ]
    if proof.subject.scope is not None:
        outside = [str(state.rows - state.inside) for name, state in states if name != "source"]
        rows.append(["  rows outside", *outside, *[""] * (len(states) - len(outside))])
    return table(rows, gap="   ")


def _number(value: Number | None) -> str:
    return "none" if value is None else shown(value)


def _facts(proof: Proof) -> Iterator[tuple[str, str]]:
    """Yield the two answers, and those of the hard questions."""
    yield "repeatable", _repeatable_text(proof)
    yield "equal", _equal_text(proof)
    if proof.crash is not None:
        yield "old or new", _crash_text(proof, proof.crash)
    if proof.at_once is not None:
        yield from (("at once", text) for text in _at_once_texts(proof, proof.at_once))


def _repeatable_text(proof: Proof) -> str:
    if proof.repeatable is None:
        return "not known: the command wrote nothing, so a second run had nothing to double"
    if not proof.repeatable:
        if proof.stamps_moved:
            names = ", ".join(map(escaped, proof.stamps_moved))
            return f"no: {names} alone differs between runs, and looks like a stamp: see --ignore"
        return f"no: {_counts(proof.between_runs)}"
    if proof.is_as_before:
        return "yes: the rows were as they are now before the first run, too"
    return f"yes: run {len(proof.runs)} left what run 1 left"


def _equal_text(proof: Proof) -> str:
    source = proof.source
    if source is None:
        return "not asked: no contract says what the source is"
    if source.error:
        return f"not known: {escaped(source.error)}"
    over = "" if proof.subject.scope is not None or source.scope is None else f", over {source.scope.text}"
    if source.is_equal:
        return f"yes: the table holds what its source gives{over}"
    assert source.comparison is not None, "a source that was compared and is not equal"
    return f"no: {_counts(source.comparison)}{over}"


def _crash_text(proof: Proof, crash: Crash) -> str:
    tries = len(crash.tries)
    torn = [each for each in crash.tries if each.table == "torn"]
    how = f"killed {counted(tries, 'time')} (--seed {crash.seed})"
    if not torn:
        if proof.is_as_before:
            return f"yes: {how}, the table held each time what it holds before and after"
        old = sum(each.table == "before" for each in crash.tries)
        new = counted(tries - old, "time")
        return f"yes: {how}, the table was as before {counted(old, 'time')} and as after {new}"
    first = torn[0]
    often = counted(len(torn), "time")
    return f"no: {how}, neither old nor new {often}; after {first.seconds:.2f} s it had {counted(first.rows, 'row')}"


def _at_once_texts(proof: Proof, found: AtOnce) -> Iterator[str]:
    """Yield whether two commands at once left what one leaves, and what became of one that failed."""
    apart = len(found.pairs) - found.together
    if found.ok is None:
        yield f"not tried: of two, one was refused by the file lock each time ({counted(apart, 'time')})"
    elif found.ok:
        yield f"yes: two at once, {counted(found.together, 'time')}, left what one leaves"
    else:
        yield f"no: two at once left other rows than one: {_moved_at_once(proof, found)}"
    if found.ok is not None and apart:
        yield f"{counted(apart, 'time')} more, one of the two was refused by the file lock: that counts for nothing"
    failed = [each for each in found.pairs if any(each.codes) and not each.was_apart]
    if failed:
        yield f"of two, one failed {counted(len(failed), 'time')}: {escaped(failed[0].said)}"


def _moved_at_once(proof: Proof, found: AtOnce) -> str:
    """Return rows and totals that two commands at once left, beside those of one."""
    alone, last = proof.runs[0].state, found.pairs[-1].state
    moved = [
        f"{name} {change_text(alone.totals[name], total)}"
        for name, total in last.totals.items()
        if alone.totals[name] != total
    ]
    return "; ".join([f"rows {alone.rows} → {last.rows}", *moved])


def _talk(proof: Proof) -> Iterator[str]:
    if proof.real_changed:
        yield f"WARNING: {proof.real_changed}"
    yield from (f"warning: {text}" for text in warnings_of(proof) if text != proof.real_changed)
    if not proof.did_nothing and proof.is_as_before:
        yield f"note: the command wrote to {_where(proof)} and left the table as it was"
    for text in proof.notes:
        yield f"note: {text}"
    if proof.ignored:
        yield f"note: not compared: {', '.join(proof.ignored)}"


def warnings_of(proof: Proof) -> list[str]:
    """Return what a person should look at, the most serious first."""
    real = [proof.real_changed] if proof.real_changed else []
    return [*real, *([nothing_text(proof)] if proof.did_nothing else [])]


def nothing_text(proof: Proof) -> str:
    """Say that the command left the sandbox as it was, and what that may mean."""
    if proof.task.script is not None:
        return f"the script left {_where(proof)} as it was; does it write to the table, and COMMIT what it begins?"
    how = "RESLICE_URL, RESLICE_PATH, PGDATABASE or {url}"
    return f"the command left {_where(proof)} as it was; does it look for it in {how}?"


def _closing(proof: Proof) -> str:
    name = escaped(proof.subject.table)
    if proof.task.in_place:
        return f"The command ran in the database itself; {name} has its rows from before again, read back."
    kept = f"is kept: {escaped(proof.kept)}" if proof.kept else "is gone"
    untouched = "" if proof.real_changed else f"; {name} itself was not touched"
    return f"The command ran in a sandbox, which {kept}{untouched}."


def next_step(proof: Proof) -> str:
    """Return what to do next."""
    subject = proof.subject
    name = shlex.quote(subject.name)
    if proof.stamps_moved:
        ignored = " ".join(f"--ignore {shlex.quote(each)}" for each in proof.stamps_moved)
        return f"the same command with  {ignored}"
    if proof.verdict is Verdict.NOT_PROVEN and proof.repeatable is None:
        if proof.task.script is not None:
            return "let the script write to the table, and COMMIT what it begins, then prove it again"
        if proof.task.in_place:
            return "let the command write to the table, then prove it again"
        return "let the command write to the sandbox, by RESLICE_URL, RESLICE_PATH or {url}, then prove it again"
    if subject.contract is None:
        where = f" --connection {shlex.quote(subject.connection)}" if subject.connection else ""
        return f"reslice init --table {name}{where}"
    if proof.ok:
        scope = f" {shlex.quote(subject.scope.text)}" if subject.scope is not None else ""
        return f"reslice status {name}{scope}"
    if subject.scope is None:
        return f"reslice status {name}"
    return f"reslice plan {name} {shlex.quote(subject.scope.text)}"
