"""The text and the JSON of versions: what a table holds of each slice, and what was deleted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from reslice.layout import counted, escaped, placed, table
from reslice.recorded import Pruned, Version
from reslice.report import sections

VERSIONS_SHOWN = 60


def versions_text(target: str, found: Sequence[Version], *, place: str = "") -> str:
    """Return one line per version: slice, the run that wrote it, rows, and since when it is not current."""
    current = sum(each.is_current for each in found)
    head = [f"{counted(len(found), 'version')} of {escaped(target)}: {current} current, {len(found) - current} before"]
    rows = [
        [f"  {each.slice}", each.run or "no run", counted(each.rows, "row"), _since(each)]
        for each in found[:VERSIONS_SHOWN]
    ]
    left = len(found) - len(rows)
    more = [f"  … and {left} more: --json lists every version"] if left else []
    end = [f"next: {placed(_way_on(target, found), place)}"]
    return sections(head, [*(table(rows) if rows else []), *more], end)


def pruned_text(target: str, pruned: Pruned, *, place: str = "") -> str:
    """Return what was deleted."""
    if pruned.run is None:
        head = [f"no version of {escaped(target)} is old enough; nothing was deleted"]
    else:
        told = f"{counted(len(pruned.versions), 'version')} with {counted(pruned.rows, 'row')}"
        head = [f"pruned {pruned.run}: {told} of {escaped(target)} deleted", "what readers see is as it was"]
    return sections(head, [f"next: {placed(f'reslice versions {shlex.quote(target)}', place)}"])


def versions_json(target: str, found: Sequence[Version], pruned: Pruned | None, *, place: str = "") -> dict[str, Any]:
    """Return the versions that were listed, or deleted; `run` is the id of a pruning."""
    way_on = _way_on(target, found) if pruned is None else f"reslice versions {shlex.quote(target)}"
    return {
        "schema": "reslice/versions/1",
        "target": target,
        "run": None if pruned is None else pruned.run,
        "pruned": pruned is not None and pruned.run is not None,
        "versions": [_version_value(each) for each in found],
        "error": None,
        "next": placed(way_on, place),
        "exit_code": 0,
    }


def _version_value(each: Version) -> dict[str, Any]:
    replaced = None if each.replaced_at is None else _instant(each.replaced_at, "milliseconds")
    return {
        "slice": each.slice,
        "run": each.run or None,
        "rows": each.rows,
        "current": each.is_current,
        "replaced_at": replaced,
    }


def _since(each: Version) -> str:
    if each.is_current:
        return "current"
    return "" if each.replaced_at is None else f"replaced {each.replaced_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _instant(moment: datetime, precision: str) -> str:
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _way_on(target: str, found: Sequence[Version]) -> str:
    """Return the way back to the version before, where there is one."""
    if any(not each.is_current for each in found):
        return f"reslice history {shlex.quote(target)}"
    return f"reslice status {shlex.quote(target)}"
