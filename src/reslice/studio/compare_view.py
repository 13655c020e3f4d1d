"""Two runs of one target beside each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reslice.layout import shown
from reslice.page import check_words, control_words, group_words, run_values
from reslice.project import misused
from reslice.ranges import Range, Scope
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.report_json import exact, ledger_run_value
from reslice.restore import moment_of
from reslice.studio.compared import Compared, GroupPair, MovedBy, SlicePair, compared
from reslice.studio.figures import figure
from reslice.studio.values import Ask, View
from reslice.values import Check, ControlLine, GroupDiff

GROUPS_SHOWN = 100
SLICES_SHOWN = 100
_NAMED = 5
_MOMENTS = ("at", "finished", "took", "held the table")
"""Facts that two runs have never alike."""


def view(ask: Ask) -> View:
    """Return the two runs that the query names as `a` and `b`; Misused when they are not two runs of one target."""
    first, second = (_run(ask, name) for name in ("a", "b"))
    if (first.target, first.table) != (second.target, second.table):
        found = f"{first.id} is a run of {first.target}, and {second.id} of {second.target}"
        raise misused("usage", f"{first.id} beside {second.id}", "two runs of one target", found, "reslice history")
    both = compared(first, second)
    values = {
        "a": ledger_run_value(first),
        "b": ledger_run_value(second),
        "slices": [_slice_value(pair) for pair in both.slices],
        "slices_only_a": [*both.only_first],
        "slices_only_b": [*both.only_second],
        "groups": [_group_value(pair) for pair in both.groups],
        "groups_left_out": {"a": first.groups_left_out, "b": second.groups_left_out},
        "checks": [
            {"name": name, "a": _check_value(mine), "b": _check_value(theirs)} for name, mine, theirs in both.checks
        ],
        "controls": [
            {"figure": name, "a": _control_value(mine), "b": _control_value(theirs)}
            for name, mine, theirs in both.controls
        ],
        "sql_difference": [*both.sql],
        "sql_lines_left_out": both.sql_left_out,
    }
    return View("compare", values, _drawn(ask, both))


def _run(ask: Ask, name: str) -> LedgerRun:
    reference = ask.word(name)
    if not reference:
        found = f"{name} is not given"
        raise misused("usage", "two runs", "two runs to compare, a and b", found, "reslice history")
    return ask.project.show(reference, target=ask.word("target") or None)


# --- the twin ---------------------------------------------------------------------------------------------------------


def _slice_value(pair: SlicePair) -> dict[str, Any]:
    return {
        "slice": pair.slice,
        "same": pair.is_same,
        "follows": pair.follows,
        "a": _fingerprints(pair.first),
        "b": _fingerprints(pair.second),
    }


def _fingerprints(each: LedgerSlice) -> dict[str, Any]:
    return {
        "state": each.state,
        "base": each.fingerprint_base,
        "staged": each.fingerprint_staged,
        "after": each.fingerprint_after,
    }


def _group_value(pair: GroupPair) -> dict[str, Any]:
    words = {MovedBy.BOTH: "both", MovedBy.FIRST: "a", MovedBy.SECOND: "b"}
    return {
        "slice": pair.any.slice,
        "key": exact(pair.any.key),
        "moved_by": words[pair.moved_by],
        "ends_differ": pair.ends_differ,
        "a": _side_value(pair.first),
        "b": _side_value(pair.second),
    }


def _side_value(group: GroupDiff | None) -> dict[str, Any] | None:
    if group is None:
        return None
    return {"change": str(group.change), "before": exact(group.before), "after": exact(group.after)}


def _check_value(check: Check | None) -> dict[str, Any] | None:
    if check is None:
        return None
    return {"ok": check.ok, "found": check.found, "consented": check.consented, "stops": check.stops}


def _control_value(line: ControlLine | None) -> dict[str, Any] | None:
    return None if line is None else {"control": exact(line.control), "target": exact(line.target), "ok": line.ok}


# --- the page ---------------------------------------------------------------------------------------------------------


def _drawn(ask: Ask, both: Compared) -> dict[str, Any]:
    first, second = both.first, both.second
    values = [run_values(run, ask.place) for run in (first, second)]
    differing = [pair for pair in both.slices if not pair.is_same]
    names = dict.fromkeys([*first.totals, *second.totals])
    return {
        "figure": figure,
        "target": first.target,
        "target_address": ask.links.target(first.target) if first.target in ask.project.targets else None,
        "runs": [
            each | {"address": ask.links.run(run.id, run.target)}
            for each, run in zip(values, (first, second), strict=True)
        ],
        "swapped": ask.links.compare(second.id, first.id, first.target),
        "facts": _facts(*values),
        "totals": [
            ("rows", *(each["rows"] for each in values)),
            *((name, *(dict(each["totals"]).get(name) for each in values)) for name in names),
        ],
        "shared_count": len(both.slices),
        "differing_count": len(differing),
        "follows_count": len([pair for pair in both.slices if pair.follows]),
        "differing": differing[:SLICES_SHOWN],
        "differing_left_out": len(differing[SLICES_SHOWN:]),
        "only": [(run.id, len(labels), _ranges(ask, run, labels)) for run, labels in _only(both)],
        "part": _part(ask, both),
        "checks": [(name, _checked(mine, first), _checked(theirs, second)) for name, mine, theirs in both.checks],
        "controls": [(name, *(line and control_words(line) for line in pair)) for name, *pair in both.controls],
        "controls_count": max(len(first.controls), len(second.controls)),
        "sql": [(_line_word(place, line), line) for place, line in enumerate(both.sql)],
        "sql_left_out": both.sql_left_out,
        "has_sql": bool(first.sql or second.sql),
    }


def _facts(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return what was asked of each, and its record: name, what the two have, and whether that is the same."""
    sides = []
    for each in (first, second):
        found = {"outcome": each["outcome"].word, "range": f"{each['range']}, {each['scope_words']}"}
        counts = each["counts"]
        if counts is not None:
            found["groups"] = f"{counts.added} added, {counts.changed} changed, {counts.removed} removed"
        sides.append(found | dict(each["asked"]) | dict(each["record"]))
    names = dict.fromkeys([*sides[0], *sides[1]])
    pairs = ((name, sides[0].get(name, ""), sides[1].get(name, "")) for name in names)
    same = {True: "same", False: "different"}
    return [(name, mine, theirs, "" if name in _MOMENTS else same[mine == theirs]) for name, mine, theirs in pairs]


def _only(both: Compared) -> Sequence[tuple[LedgerRun, tuple[str, ...]]]:
    found = ((both.first, both.only_first), (both.second, both.only_second))
    return [(run, labels) for run, labels in found if labels]


def _ranges(ask: Ask, run: LedgerRun, labels: Sequence[str]) -> str:
    """Return slices as ranges; where the contract has no such slices any more, the first of them by name."""
    if run.target in ask.project.targets:
        contract = ask.project.target(run.target).contract
        moments = [moment for label in labels if (moment := moment_of(contract, run, label)) is not None]
        if len(moments) == len(labels):
            one = Range(contract.slice.unit, contract.slice.timezone, moments[0], moments[0])
            return _few(Scope.of(one).plus(moments).text.split(","), ",")
    return _few(labels, ", ")


def _few(texts: Sequence[str], mark: str) -> str:
    more = len(texts) - _NAMED
    return mark.join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _part(ask: Ask, both: Compared) -> dict[str, Any]:
    """Return the groups of one kind that the query asks for, one page of them, and where the other kinds are."""
    kinds = {
        "": both.groups,
        "ends": [pair for pair in both.groups if pair.ends_differ],
        **{str(kind): [pair for pair in both.groups if pair.moved_by is kind] for kind in MovedBy},
    }
    wanted = ask.word("groups") if ask.word("groups") in kinds else ""
    chosen = kinds[wanted]
    pages = max(1, -(-len(chosen) // GROUPS_SHOWN))
    asked = ask.word("page")
    page = min(int(asked), pages) if re.fullmatch(r"[1-9][0-9]{0,3}", asked) else 1

    def address(kind: str, number: int = 1) -> str | None:
        if not 1 <= number <= (pages if kind == wanted else 1):
            return None
        words = {"groups": kind, "page": str(number) if number > 1 else ""}
        return f"{ask.links.compare(both.first.id, both.second.id, both.first.target, **words)}#groups"

    measures = _measures(both)
    words = {
        "": "all",
        "ends": "moved by both, to other values",
        "both": "moved by both",
        "first": f"by {both.first.id} alone",
        "second": f"by {both.second.id} alone",
    }
    return {
        "kind": wanted,
        "measures": measures,
        "kinds": [(kind, words[kind], len(groups), address(kind)) for kind, groups in kinds.items()],
        "counts": {kind or "all": len(groups) for kind, groups in kinds.items()},
        "keys": [*both.groups[0].any.key] if both.groups else [],
        "groups": [_group(pair, both, measures) for pair in chosen[(page - 1) * GROUPS_SHOWN : page * GROUPS_SHOWN]],
        "first": (page - 1) * GROUPS_SHOWN + 1,
        "matching": len(chosen),
        "before": address(wanted, page - 1),
        "after": address(wanted, page + 1),
    }


def _measures(both: Compared) -> list[str]:
    groups = (group for pair in both.groups for group in (pair.first, pair.second) if group is not None)
    return list(dict.fromkeys(name for group in groups for name in (group.before or group.after or {})))


def _group(pair: GroupPair, both: Compared, measures: Sequence[str]) -> dict[str, Any]:
    sides = zip((pair.first, pair.second), (both.first, both.second), strict=True)
    return {
        "moved_by": {MovedBy.BOTH: "both", MovedBy.FIRST: both.first.id, MovedBy.SECOND: both.second.id}[pair.moved_by],
        "key": [shown(value) for value in pair.any.key.values()],
        "ends_differ": pair.ends_differ,
        "sides": [None if group is None else group_words(group, measures, run.totals) for group, run in sides],
    }


def _checked(check: Check | None, run: LedgerRun) -> dict[str, str] | None:
    return None if check is None else check_words(check, run)


def _line_word(place: int, line: str) -> str:
    """Return what a line of a difference is, in a word; the first two name the runs."""
    if place < 2:
        return "names"
    return {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
