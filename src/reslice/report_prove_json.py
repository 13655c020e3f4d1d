"""The JSON of prove: both verdicts, the groups that moved or are not as the source has them, and the totals per run."""

from __future__ import annotations

from typing import Any

from reslice.layout import placed
from reslice.prove.values import AtOnce, Crash, Moved, Proof, Source, State
from reslice.report_json import exact
from reslice.report_prove import comparisons, next_step, warnings_of


def proof_json(proof: Proof | None, *, place: str = "") -> dict[str, Any]:
    """Return a proof as JSON has it; None gives every field without a value, for an error."""
    if proof is None:
        return dict.fromkeys(FIELDS) | {"schema": "reslice/prove/1"}
    groups = [group for each in comparisons(proof) for group in each.groups]
    subject, task = proof.subject, proof.task
    return {
        "schema": "reslice/prove/1",
        "target": None if subject.contract is None else subject.name,
        "table": proof.resolved,
        "range": None if subject.scope is None else subject.scope.text,
        "grain": [*subject.grain],
        "columns": [*proof.columns],
        "ignored": [*proof.ignored],
        "command": [*task.words],
        "sql": None if task.script is None else str(task.script.path),
        "in_place": task.in_place,
        "kept": proof.kept or None,
        "verdict": str(proof.verdict),
        "repeatable": proof.repeatable,
        "equals_source": proof.equals_source,
        "wrote_nothing": proof.did_nothing,
        "real_table_changed": bool(proof.real_changed),
        "before": _state_value(proof.before),
        "runs": [
            {"run": each.number, "seconds": round(each.seconds, 3), **_state_value(each.state)} for each in proof.runs
        ],
        "source": _source_value(proof.source),
        "counts": {
            str(each.between): {str(kind): number for kind, number in each.counts.items()}
            for each in comparisons(proof)
        },
        "groups": [_group_value(group) for group in groups],
        "groups_left_out": sum(each.left_out for each in comparisons(proof)),
        "stamps_moved": [*proof.stamps_moved],
        "crash": _crash_value(proof.crash),
        "at_once": _at_once_value(proof.at_once),
        "warnings": warnings_of(proof),
        "notes": [*proof.notes],
        "seconds": round(proof.seconds, 3),
        "error": None,
        "next": placed(next_step(proof), place),
        "exit_code": proof.exit_code,
    }  # fmt: skip


FIELDS = (
    "schema", "target", "table", "range", "grain", "columns", "ignored", "command", "sql", "in_place", "kept",
    "verdict", "repeatable", "equals_source", "wrote_nothing", "real_table_changed", "before", "runs", "source",
    "counts", "groups", "groups_left_out", "stamps_moved", "crash", "at_once", "warnings", "notes", "seconds",
)  # fmt: skip
"""The fields of an answer, in its order, before those that every command has at the end."""


def _state_value(state: State) -> dict[str, Any]:
    return {"rows": state.rows, "rows_in_range": state.inside, "totals": exact(state.totals)}


def _source_value(source: Source | None) -> dict[str, Any] | None:
    if source is None:
        return None
    state = {} if source.state is None else _state_value(source.state)
    return {"range": None if source.scope is None else source.scope.text, "error": source.error or None, **state}


def _group_value(group: Moved) -> dict[str, Any]:
    return {
        "kind": str(group.kind),
        "between": str(group.between),
        "key": exact(group.key),
        "before": None if group.before is None else exact(group.before),
        "after": None if group.after is None else exact(group.after),
        "rows_before": group.rows_before,
        "rows_after": group.rows_after,
    }


def _crash_value(crash: Crash | None) -> dict[str, Any] | None:
    if crash is None:
        return None
    tries = [
        {"seconds": each.seconds, "killed": not each.ended, "table": each.table, "rows": each.rows}
        for each in crash.tries
    ]
    return {"ok": crash.ok, "seed": crash.seed, "tries": tries}


def _at_once_value(found: AtOnce | None) -> dict[str, Any] | None:
    if found is None:
        return None
    pairs = [
        {
            "exit_codes": [*each.codes],
            "as_one": each.is_same,
            "at_once": not each.was_apart,
            "said": each.said,
            **_state_value(each.state),
        }
        for each in found.pairs
    ]
    return {"ok": found.ok, "pairs": pairs, "groups": [_group_value(group) for group in found.keys.groups]}
