"""Approve: guards stop what is suspicious until a person consents. Pure: a diff in, an Approved out, or Stopped.

This module is the only maker of an Approved, and only an Approved can be published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from reslice.contract import Action, Contract
from reslice.errors import Failure, Stopped
from reslice.ranges import open_slices
from reslice.recorded import RestoredSlice
from reslice.totals import added_up, is_finite
from reslice.values import Approved, Consent, Diff, Guard, Number, SliceDiff, Total

GUARDS = ("empty_slice", "total_change", "removed_groups", "restored", "closed_through", "max_slices")
"""The guards a consent can name."""

SLICES_NAMED = 5


def slices_to_write(diff: Diff, *, rewrite: bool) -> tuple[SliceDiff, ...]:
    """Return the slices that differ; with `rewrite` every slice that holds rows."""
    return diff.slices if rewrite else diff.differing


def approve(contract: Contract, diff: Diff, guards: tuple[Guard, ...], run_id: str, *, rewrite: bool) -> Approved:
    """Return the diff as approved: no guard stops it, or a person has consented.

    Raises Stopped with every guard that stops, and with the command to look; `error.consent` is the one to consent.
    """
    stopping = [guard for guard in guards if guard.stops]
    if not stopping:
        return Approved(diff, guards, slices_to_write(diff, rewrite=rewrite))
    after = f"reslice show {run_id} --diff"
    failures = [Failure(guard.name, guard.asked, (guard.found,), after) for guard in stopping]
    about = f"{contract.name} for {diff.scope.text}, {diff.scope.words}"
    stopped = Stopped(about, failures, unchanged=f"{contract.table} is as it was; nothing was written")
    stopped.consent = f"reslice run --approve {run_id}"
    raise stopped


def judge(
    contract: Contract,
    diff: Diff,
    now: datetime,
    consents: Iterable[Consent],
    *,
    approves: Collection[str],
    restored: Mapping[str, RestoredSlice],
) -> tuple[Guard, ...]:
    """Return what every guard of the contract sees; `approves` names those a person has approved with this exact diff.

    `now` is the database's clock; `restored` are the slices, by label, whose last word is a restore.
    """
    consented = tuple(consents)
    seen = (
        _empty_slice(contract, diff, consented),
        _total_change(contract, diff),
        _removed_groups(contract, diff),
        _restored(contract, diff, restored),
        _closed_through(contract, diff, now),
        _max_slices(contract, diff),
    )
    return tuple(_consented(guard, consented, approves=approves) for guard in seen)


def _consented(guard: Guard, consents: tuple[Consent, ...], *, approves: Collection[str]) -> Guard:
    named = {label for consent in consents if consent.guard == guard.name for label in consent.slices}
    whole = any(consent.guard == guard.name and not consent.slices for consent in consents)
    is_consented = guard.fired and (
        guard.name in approves or whole or (bool(guard.slices) and set(guard.slices) <= named)
    )
    return Guard(guard.name, guard.action, guard.fired, guard.found, guard.asked, guard.slices, is_consented)


def _empty_slice(contract: Contract, diff: Diff, consents: tuple[Consent, ...]) -> Guard:
    asked = contract.quote("guards.empty_slice", "a slice that has rows may not become empty")
    emptied = [each for each in diff.slices if each.base.rows and not each.staged.rows]
    if not emptied:
        return Guard("empty_slice", contract.guards.empty_slice, False, "no slice that has rows would be empty", asked)
    allowed = {label for consent in consents if consent.guard == "empty_slice" for label in consent.slices}
    told = [each for each in emptied if each.label not in allowed] or emptied
    found = _emptied_words(told, diff)
    return Guard("empty_slice", contract.guards.empty_slice, True, found, asked, tuple(each.label for each in emptied))


def _emptied_words(emptied: list[SliceDiff], diff: Diff) -> str:
    """Say which slices would lose everything, how much that is, and one of their groups."""
    first = emptied[0]
    many = f"{len(emptied)} slices ({_listed([each.label for each in emptied])})" if len(emptied) > 1 else first.label
    groups = sum(each.removed for each in emptied)
    words = f"{many} would go from {groups} group{'' if groups == 1 else 's'} to 0"
    labels = {each.label for each in emptied}
    lost = [group for group in diff.groups if group.slice in labels and group.before is not None]
    if not lost:
        return words
    if len(lost) == groups:
        totals = {name: added_up(group.before[name] or 0 for group in lost if group.before) for name in diff.totals}
        words += ", losing " + ", ".join(f"{name} {total}" for name, total in totals.items())
    example = lost[0]
    key = ", ".join(str(value) for value in example.key.values())
    values = ", ".join(f"{name} {value}" for name, value in (example.before or {}).items())
    return f"{words}; e.g. ({key}) {values}"


def _total_change(contract: Contract, diff: Diff) -> Guard:
    limit = contract.guards.total_change
    if limit is None:
        asked = contract.quote("guards.total_change", "total_change: allow")
        return Guard("total_change", Action.ALLOW, False, "not watched", asked)
    percent = f"{limit * 100:f}".rstrip("0").rstrip(".") if "." in f"{limit * 100:f}" else f"{limit * 100:f}"
    asked = contract.quote("guards.total_change", f"no measure's total over the range moves by more than {percent}%")
    moved = [(name, total) for name, total in diff.totals.items() if _moves(total, limit, diff)]
    if not moved:
        return Guard("total_change", Action.STOP, False, f"no total moves by more than {percent}%", asked)
    found = "; ".join(
        f"{name} {_told(total.before)} → {_told(total.after)} ({_percent(total)})" for name, total in moved
    )
    return Guard("total_change", Action.STOP, True, found, asked)


def _moves(total: Total, limit: Decimal, diff: Diff) -> bool:
    """Whether a total moves too far, either way; a base of zero never does.

    Nobody can say how far a total moves that is NaN or infinite: it does where anything differs.
    """
    if not is_finite(total.before, total.after):
        return bool(diff.differing)
    before, after = Decimal(total.before or 0), Decimal(total.after or 0)
    return before != 0 and abs(after - before) > limit * abs(before)


def _percent(total: Total) -> str:
    if not is_finite(total.before, total.after):
        return "no percentage can be told of it"
    before, after = Decimal(total.before or 0), Decimal(total.after or 0)
    return f"{(after - before) * 100 / abs(before):+.0f}%"


def _told(value: Number | None) -> str:
    return "none" if value is None else str(value)


def _removed_groups(contract: Contract, diff: Diff) -> Guard:
    action, removed = contract.guards.removed_groups, diff.counts.removed
    asked = contract.quote("guards.removed_groups", f"removed_groups: {action}")
    found = f"{removed} group{' is' if removed == 1 else 's are'} no longer in the source"
    labels = tuple(each.label for each in diff.slices if each.removed)
    return Guard("removed_groups", action, removed > 0, found, asked, labels)


def _restored(contract: Contract, diff: Diff, restored: Mapping[str, RestoredSlice]) -> Guard:
    """See whether slices that differ were restored, and not written or found equal since."""
    action = contract.guards.restored
    asked = contract.quote("guards.restored", "a run may not undo a restore")
    undoing = [each for each in diff.differing if each.label in restored]
    if not undoing:
        return Guard("restored", action, False, "no restore would be undone", asked)
    first = undoing[0]
    last = restored[first.label]
    rows = f"the rows that {last.undone} had put there" if first.staged == last.left else "other rows"
    found = f"{last.run} put {first.label} back as it was before {last.undone}; this run would write {rows}"
    more = len(undoing) - 1
    found += f"; so too for {more} more slice{'' if more == 1 else 's'}" if more else ""
    return Guard("restored", action, True, found, asked, tuple(each.label for each in undoing))


def _closed_through(contract: Contract, diff: Diff, now: datetime) -> Guard:
    closed = contract.guards.closed_through
    if closed is None:
        asked = contract.quote("guards.closed_through", "no closed_through")
        return Guard("closed_through", Action.ALLOW, False, "not watched", asked)
    asked = contract.quote("guards.closed_through", "closed_through")
    still = open_slices(diff.scope, closed, now, contract.slice)
    if not still.count:
        return Guard("closed_through", Action.STOP, False, "every slice is closed", asked)
    labels = [diff.scope.label(moment) for moment in still.first]
    more = f" and {still.count - len(labels)} more" if still.count > len(labels) else ""
    found = f"{still.count} slice{' is' if still.count == 1 else 's are'} still filling: {', '.join(labels)}{more}"
    return Guard("closed_through", Action.STOP, True, found, asked)


def _max_slices(contract: Contract, diff: Diff) -> Guard:
    limit, count = contract.guards.max_slices, diff.scope.count
    asked = contract.quote("guards.max_slices", f"max_slices: {limit}")
    return Guard(
        "max_slices", Action.STOP, count > limit, f"the range has {count} slice{'' if count == 1 else 's'}", asked
    )


def _listed(labels: list[str]) -> str:
    more = len(labels) - SLICES_NAMED
    return ", ".join(labels[:SLICES_NAMED]) + (f" and {more} more" if more > 0 else "")
