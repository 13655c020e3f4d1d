"""The JSON of every command: stable fields in a stable order, added to and never renamed.

Integers are JSON integers, decimals are strings, so that no digit is lost on the way; dates are ISO text. Every answer
ends with `error`, `next` and `exit_code`, where the exit code is the one the process ends with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from reslice.errors import (
    Failure,
    Interrupted,
    Misused,
    OutcomeUnknown,
    PartlyPublished,
    Refused,
    ResliceError,
    Retryable,
    Stopped,
)
from reslice.layout import placed
from reslice.next_command import next_after, next_command
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.values import Check, ControlLine, Counts, Diff, GroupDiff, Guard, Outcome, Run, SliceDiff, Total

_OUTCOMES: dict[type[ResliceError], Outcome] = {
    Misused: Outcome.FAILED,
    Refused: Outcome.REFUSED,
    Stopped: Outcome.STOPPED,
    Retryable: Outcome.FAILED,
    OutcomeUnknown: Outcome.UNKNOWN,
    PartlyPublished: Outcome.FAILED,
    Interrupted: Outcome.FAILED,
}


def exit_code(run: Run, *, changes_count: bool = False) -> int:
    """Return what a command ends with: 1 when verify or status says no, or a plan would change rows and that counts."""
    if run.error is not None:
        return run.error.exit_code
    if run.command == "status":
        return 0 if run.equals_source else 1
    if run.command == "verify":
        return 0 if run.repeatable and run.equals_source and all(line.ok for line in run.downstream) else 1
    return 1 if changes_count and run.diff is not None and run.diff.differing else 0


def as_json(run: Run, *, place: str = "", way_on: str | None = None, code: int | None = None) -> dict[str, Any]:
    """Return a plan, run or verify as JSON has it. `way_on` and `code` are given when they are not the usual ones."""
    error = run.error
    if way_on is None:
        way_on = error.next if error is not None else next_command(run)
    return {
        "schema": f"reslice/{run.command}/1",
        "target": run.target,
        "table": run.table,
        "run": run.id,
        "kind": str(run.kind),
        "method": str(run.method),
        "slice": _slice_value(run),
        **_outcome_fields(run, error),
        **_diff_fields(run.diff, run),
        "checks": [*map(_check_value, run.checks), *map(_guard_value, run.guards)],
        "controls": [*map(_control_value, run.controls)],
        "slices_published": [*run.slices_done],
        "affected": [*run.affected],
        "warnings": [*run.warnings],
        "notes": [*run.notes],
        "seconds": round(run.seconds, 3),
        **_own_fields(run.command, run),
        "error": None if error is None else error_value(error, place=place),
        "next": placed(way_on, place),
        "exit_code": exit_code(run) if code is None else code,
    }


def error_json(
    command: str, error: ResliceError, *, way_on: str | None = None, place: str = "", code: int | None = None
) -> dict[str, Any]:
    """Return an error as the JSON of its command: with the run as far as it got, or with every field empty.

    `way_on` replaces the error's own next, which is otherwise used.
    """
    fields: dict[str, Any] = {"schema": f"reslice/{command}/1"}
    if command in ("plan", "run", "verify", "status", "restore"):
        fields |= _empty_run(command, error)
    elif command == "history":
        fields |= {"runs": []}
    elif command == "versions":
        fields |= {"target": None, "run": None, "pruned": False, "versions": []}
    elif command == "doctor":
        fields |= {"engine": None, "checks": []}
    elif command == "prove":
        from reslice.report_prove_json import proof_json

        fields |= proof_json(None)
    elif command == "audit":
        from reslice.report_audit import audit_json

        fields |= audit_json(None)
    elif command == "rule":
        fields |= {"rules": []}
    elif command == "show":
        fields |= {"run": None, "slices": [], "groups": []}
    elif command == "studio":
        fields |= {"address": None, "export": None, "files_copied": None}
    elif command == "init":
        fields |= {"target": None, "table": None, "files_written": [], "unsure": [], "notes": [], "contract": None}
        fields |= {"source": None, "ledger": [], "sql": []}
    if error.run is not None and command == error.run.command:
        fields |= as_json(error.run, place=place) | _outcome_fields(error.run, error)
    after = placed(error.next, place) if way_on is None else way_on
    fields |= {"error": error_value(error, place=place) | {"next": after}, "next": after}
    return fields | {"exit_code": error.exit_code if code is None else code}


def error_value(error: ResliceError, *, place: str = "") -> dict[str, Any]:
    """Return the four parts of an error; the first failure stands above, all of them are in `failures`."""
    first = error.failures[0]
    return {
        "kind": error.kind,
        "asked": first.asked,
        "found": [*first.found],
        "unchanged": error.unchanged,
        "next": placed(error.next, place),
        "consent": placed(error.consent, place) if isinstance(error, Stopped) else "",
        "failures": [_failure_value(failure, place) for failure in error.failures],
    }


def history_json(runs: Sequence[LedgerRun], *, place: str = "") -> dict[str, Any]:
    """Return runs of the ledger, the newest first, as they were given."""
    way_on = f"reslice show {runs[0].id}" if runs else "reslice run --help"
    return {
        "schema": "reslice/history/1",
        "runs": [ledger_run_value(run) for run in runs],
        "error": None,
        "next": placed(way_on, place),
        "exit_code": 0,
    }


def show_json(run: LedgerRun, *, place: str = "") -> dict[str, Any]:
    """Return one run of the ledger with its slices and its changed groups."""
    return {
        "schema": "reslice/show/1",
        "run": ledger_run_value(run),
        "slices": [_ledger_slice_value(each) for each in run.slice_rows],
        "groups": [_group_value(group) for group in run.groups],
        "groups_left_out": run.groups_left_out,
        "sql": [*run.sql],
        "error": None,
        "next": placed(next_after(run), place),
        "exit_code": 0,
    }


def ledger_run_value(run: LedgerRun) -> dict[str, Any]:
    """Return one row of the ledger's runs; `alive` says that its process still works on it."""
    return {
        "id": run.id,
        "number": run.number,
        "target": run.target,
        "table": run.table,
        "kind": run.kind,
        "state": run.state,
        "alive": run.alive,
        "method": run.method,
        "range": run.range_text,
        "unit": run.unit,
        "slices": run.slices,
        "actor": run.actor,
        "requested_at": _instant(run.requested_at),
        "finished_at": _instant(run.finished_at),
        "diff": None if run.counts is None else _counts_value(run.counts),
        "rows": {"before": run.rows_before, "staged": run.rows_staged, "after": run.rows_after},
        "totals": _totals_value(run.totals),
        "fingerprint": {
            "base": run.fingerprint_base,
            "staged": run.fingerprint_staged,
            "after": run.fingerprint_after,
            "columns": [*run.columns],
        },
        "checks": [*map(_check_value, run.checks)],
        "controls": [*map(_control_value, run.controls)],
        "reason": run.reason,
        "consents": [{"guard": each.guard, "slices": [*each.slices]} for each in run.consents],
        "approves": run.approves,
        "restores": run.restores,
        "contract_digest": run.contract_digest,
        "publish_order": run.publish_order,
        "lock_milliseconds": run.lock_milliseconds,
        "pruned_at": _instant(run.pruned_at),
        "tool_version": run.tool_version,
        "engine_version": run.engine_version,
        "warnings": [*run.warnings],
        "error": None if run.error is None else exact(run.error),
    }


def dumped(value: Mapping[str, Any], encoding: str | None) -> str:
    """Return JSON text, readable by people too, that the encoding of a stream can carry."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():  # a terminal may take such a character for a command
        text = "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def exact(value: Any) -> Any:
    """Return a value as JSON can hold it without losing a digit."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Mapping):
        return {str(key): exact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    return value


def _empty_run(command: str, error: ResliceError) -> dict[str, Any]:
    """Return the fields of an answer before anything was known."""
    fields: dict[str, Any] = dict.fromkeys(("target", "table", "run", "kind", "method", "slice"))
    fields |= _outcome_fields(None, error) | _diff_fields(None, None)
    fields |= {name: [] for name in ("checks", "controls", "slices_published", "affected", "warnings", "notes")} | {
        "seconds": None
    }
    return fields | _own_fields(command, None)


def _outcome_fields(run: Run | None, error: ResliceError | None) -> dict[str, Any]:
    """Return how it ended. `target_changed` is null where that is not known."""
    ended = run.outcome if run is not None else Outcome.PLANNED
    if error is not None and ended in (Outcome.PLANNED, Outcome.UNCHANGED):
        ended = _OUTCOMES[type(error)]
    is_changed = run is not None and run.target_changed
    return {
        "outcome": str(ended),
        "target_changed": None if ended is Outcome.UNKNOWN and not is_changed else is_changed,
        "retry": error is not None and error.retry,
    }


def _slice_value(run: Run) -> dict[str, Any]:
    hull = run.scope.hull
    return {
        "start": hull.label(hull.start),
        "end": hull.label(hull.end),
        "unit": str(run.unit),
        "count": run.scope.count,
        "range": run.scope.text,
    }


def _diff_fields(diff: Diff | None, run: Run | None) -> dict[str, Any]:
    """Return what was compared, and what was read back; null where the run ended before that."""
    return {
        "diff": None if diff is None else _counts_value(diff.counts),
        "rows": {
            "before": None if diff is None else diff.base.rows,
            "staged": None if diff is None else diff.staged.rows,
            "after": None if run is None else run.rows_after,
        },
        "totals": {} if diff is None else _totals_value(diff.totals),
        "fingerprint": {
            "base": None if diff is None else str(diff.base),
            "staged": None if diff is None else str(diff.staged),
            "after": None if run is None or run.after is None else str(run.after),
        },
        "groups": [] if diff is None else [_group_value(group) for group in diff.groups],
        "groups_left_out": 0 if diff is None else diff.groups_left_out,
    }


def _own_fields(command: str, run: Run | None) -> dict[str, Any]:
    """Return the fields that only this command has, empty where nothing is known."""
    if command == "verify":
        return {
            "repeatable": None if run is None else run.repeatable,
            "unstable_columns": [] if run is None else [*run.unstable_columns],
            "equals_source": None if run is None else run.equals_source,
            "downstream": [] if run is None else [*map(_control_value, run.downstream)],
        }
    if command == "status":
        slices = () if run is None or run.diff is None else run.diff.slices
        return {
            "equals_source": None if run is None else run.equals_source,
            "slices": [_slice_state_value(each) for each in slices],
        }
    return {"restores": None if run is None else run.restores} if command == "restore" else {}


def _slice_state_value(each: SliceDiff) -> dict[str, Any]:
    return {
        "slice": each.label,
        "state": str(each.state),
        "added": each.added,
        "changed": each.changed,
        "removed": each.removed,
        "totals": _totals_value(each.totals),
    }


def _counts_value(counts: Counts) -> dict[str, int]:
    return {
        "added": counts.added,
        "changed": counts.changed,
        "removed": counts.removed,
        "unchanged": counts.unchanged,
    }


def _totals_value(totals: Mapping[str, Total]) -> dict[str, Any]:
    return {name: {"before": exact(total.before), "after": exact(total.after)} for name, total in totals.items()}


def _group_value(group: GroupDiff) -> dict[str, Any]:
    return {
        "change": str(group.change),
        "slice": group.slice,
        "key": exact(group.key),
        "before": None if group.before is None else exact(group.before),
        "after": None if group.after is None else exact(group.after),
        "rows_before": group.rows_before,
    }


def _check_value(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "ok": check.ok,
        "found": check.found,
        "consented": check.consented,
        "stops": check.stops,
    }


def _guard_value(guard: Guard) -> dict[str, Any]:
    return {
        "name": guard.name,
        "ok": not guard.fired,
        "found": guard.found,
        "consented": guard.consented,
        "stops": guard.stops,
    }


def _control_value(line: ControlLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "figure": line.figure,
        "expression": line.expression,
        "control": exact(line.control),
        "target": exact(line.target),
        "ok": line.ok,
        "slices_differing": [*line.slices_differing],
    }


def _failure_value(failure: Failure, place: str) -> dict[str, Any]:
    return {
        "kind": failure.kind,
        "asked": failure.asked,
        "found": [*failure.found],
        "next": placed(failure.next, place),
    }


def _ledger_slice_value(each: LedgerSlice) -> dict[str, Any]:
    return {
        "slice": each.slice,
        "state": each.state,
        "diff": {
            "added": each.added,
            "changed": each.changed,
            "removed": each.removed,
            "unchanged": each.unchanged,
        },
        "fingerprint": {
            "base": each.fingerprint_base,
            "staged": each.fingerprint_staged,
            "after": each.fingerprint_after,
        },
        "published_at": _instant(each.published_at),
    }


def _instant(moment: datetime | None) -> str | None:
    """Return an instant as ISO text in UTC, to the millisecond."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
