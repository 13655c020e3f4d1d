"""What is written into the ledger: the request of a run, its slices and groups, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reslice.engines.session import Session
from reslice.engines.sql import quote
from reslice.ledger.tables import RUN_GROUPS, RUN_SLICES, LedgerTable
from reslice.ledger.texts import dump, id_of, span
from reslice.ranges import Scope
from reslice.tables import Target
from reslice.values import Check, Fingerprint, GroupDiff, Guard, Request, Run, SliceDiff, State

SLICES_LISTED_MAX = 3660
"""Scopes of up to this many slices list also those that are empty on both sides."""


def open_request(session: Session, where: str, request: Request, target: Target, about: Mapping[str, str]) -> str:
    """Insert the request as a new run, and its table's fence; return its id. The caller holds the lock and commits."""
    number = session.execute(f"SELECT coalesce(max(number), 0) + 1 FROM {where}.runs")[0][0]
    run_id = id_of(number)
    contract = request.contract
    first, last = span(request.scope.hull)
    values = {
        "id": run_id,
        "number": number,
        "target": contract.name,
        "table_name": target.resolved,
        "kind": request.kind.value,
        "state": State.REQUESTED.value,
        "method": contract.method.value,
        "contract_digest": contract.digest,
        "range_text": request.scope.text,
        "range_first": first,
        "range_last": last,
        "unit": request.scope.unit.value,
        "slices": request.scope.count,
        "actor": request.actor,
        "reason": request.reason,
        "consents": dump([asdict(consent) for consent in request.consents]),
        "approves": request.approves,
        "restores": request.restores,
        **about,
    }
    names = ", ".join(quote(name) for name in values)
    marks = ", ".join(f"${name}" for name in values)
    clock = session.dialect.clock
    session.execute(f"INSERT INTO {where}.runs ({names}, requested_at) VALUES ({marks}, {clock})", values)
    add_fence(session, where, target.resolved)
    return run_id


def add_fence(session: Session, where: str, table: str) -> None:
    """Insert the fence of a table where it has none; the caller holds the ledger's lock and commits."""
    session.execute(
        f"INSERT INTO {where}.fences (table_name, generation) SELECT $table_name, 0"
        f" WHERE NOT EXISTS (SELECT 1 FROM {where}.fences WHERE table_name = $table_name)",
        {"table_name": table},
    )


def close(session: Session, where: str, run_id: str, run: Run, state: State, more: Mapping[str, Any]) -> int:
    """Write how a run ended into its row; return how many rows that were still open it found (1, or 0)."""
    values = {**_record(run), "state": state.value, **more}
    assignments = ", ".join(f"{quote(name)} = ${name}" for name in values)
    count = session.execute(
        f"UPDATE {where}.runs SET {assignments}, finished_at = {session.dialect.clock}"
        " WHERE id = $run_id AND state = 'requested'",
        {**values, "run_id": run_id},
    )
    return int(count[0][0])


def _record(run: Run) -> dict[str, Any]:
    """Return the columns of `runs` that a Run fills."""
    first, last = span(run.scope.hull)
    values: dict[str, Any] = {
        "range_text": run.scope.text,
        "range_first": first,
        "range_last": last,
        "slices": run.scope.count,
        "checks": dump([*map(asdict, run.checks), *map(_guard_values, run.guards)]),
        "controls": dump([asdict(line) for line in run.controls]),
        "warnings": dump(list(run.warnings)),
        "affected": dump(list(run.affected)),
        "sql": dump(list(run.sql)),
        "error": None if run.error is None else dump(error_values(run.error)),
    }
    diff = run.diff
    if diff is not None:
        counts = diff.counts
        values |= {
            "rows_before": diff.base.rows,
            "rows_staged": diff.staged.rows,
            "rows_after": run.rows_after,
            "totals": dump({name: asdict(total) for name, total in diff.totals.items()}),
            "groups_added": counts.added,
            "groups_changed": counts.changed,
            "groups_removed": counts.removed,
            "groups_unchanged": counts.unchanged,
            "groups_left_out": diff.groups_left_out,
            "fingerprint_base": str(diff.base),
            "fingerprint_staged": str(diff.staged),
            "fingerprint_after": None if run.after is None else str(run.after),
            "fingerprint_columns": dump(list(diff.columns)),
        }
    return values


def _guard_values(guard: Guard) -> dict[str, Any]:
    """Return what a guard saw as a check; `stops` and `consented` are told apart for good."""
    check = Check(guard.name, not guard.fired, guard.found, consented=guard.consented, stops=guard.stops)
    return asdict(check)


def count_published(session: Session, where: str, run_id: str) -> int:
    """Return how many slices of a run the ledger has as published."""
    rows = session.execute(
        f"SELECT count(*) FROM {where}.run_slices WHERE run_id = $run_id AND state = 'published'", {"run_id": run_id}
    )
    return int(rows[0][0])


def error_values(error: Any) -> dict[str, Any]:
    """Return the four parts of an error, and its kind, as JSON-ready values."""
    first = error.failures[0]
    return {
        "kind": error.kind,
        "asked": first.asked,
        "found": list(first.found),
        "unchanged": error.unchanged,
        "next": error.next,
        "failures": [asdict(failure) for failure in error.failures],
    }


def insert_slices(
    session: Session, where: str, run_id: str, slices: Sequence[SliceDiff], states: Sequence[str], *, is_published: bool
) -> None:
    """Insert one row per slice, in one statement."""
    if not slices:
        return
    columns: dict[str, list[Any]] = {
        "slice": [each.label for each in slices],
        "state": list(states),
        "fingerprint_base": [str(each.base) for each in slices],
        "fingerprint_staged": [str(each.staged) for each in slices],
        "fingerprint_after": [str(each.staged) if is_published else None for each in slices],
        "groups_added": [each.added for each in slices],
        "groups_changed": [each.changed for each in slices],
        "groups_removed": [each.removed for each in slices],
        "groups_unchanged": [each.unchanged for each in slices],
    }
    published_at = session.dialect.clock if is_published else "NULL"
    _insert_lists(session, f"{where}.run_slices", RUN_SLICES, run_id, columns, {"published_at": published_at})


def insert_groups(session: Session, where: str, run_id: str, numbered: Sequence[tuple[int, GroupDiff]]) -> None:
    """Insert groups of a diff, each with its position in it, in one statement."""
    if not numbered:
        return
    groups = [group for _, group in numbered]
    columns: dict[str, list[Any]] = {
        "position": [position for position, _ in numbered],
        "change": [group.change.value for group in groups],
        "slice": [group.slice for group in groups],
        "key": [dump(group.key) for group in groups],
        "before": [None if group.before is None else dump(group.before) for group in groups],
        "after": [None if group.after is None else dump(group.after) for group in groups],
        "rows_before": [group.rows_before for group in groups],
    }
    _insert_lists(session, f"{where}.run_groups", RUN_GROUPS, run_id, columns, {})


def insert_rest(session: Session, where: str, run_id: str, run: Run, written: Collection[str] = ()) -> None:
    """Insert the slices of a run that no publish has listed; with no publish at all, the groups it saw as well."""
    if run.diff is None:
        return
    done = {*written, *run.slices_done}
    rest = [each for each in listed(run.diff.slices, run.scope) if each.label not in done]
    insert_slices(session, where, run_id, rest, [_seen(each) for each in rest], is_published=False)
    if not done:
        insert_groups(session, where, run_id, list(enumerate(run.diff.groups, start=1)))


def _seen(each: SliceDiff) -> str:
    """Return the state of a slice that was not written."""
    if each.differs:
        return "open"
    return "unchanged" if each.base.rows else "empty"


def _insert_lists(
    session: Session,
    table: str,
    shape: LedgerTable,
    run_id: str,
    columns: Mapping[str, list[Any]],
    fixed: Mapping[str, str],
) -> None:
    names = ", ".join(quote(name) for name in ("run_id", *columns, *fixed))
    if all(len(values) == 1 for values in columns.values()):
        marks = ", ".join(["$run_id", *(f"${name}" for name in columns), *fixed.values()])
        session.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",
            {"run_id": run_id} | {name: values[0] for name, values in columns.items()},
        )
        return
    types = {column.name: column.type for column in shape.columns}
    lists = ", ".join(f"unnest(CAST(${name} AS {types[name]}[])) AS {quote(name)}" for name in columns)
    values = ", ".join(["$run_id", *(quote(name) for name in columns), *fixed.values()])
    session.execute(
        f"INSERT INTO {table} ({names}) SELECT {values} FROM (SELECT {lists}) AS listed",
        {"run_id": run_id, **columns},
    )


def open_processes(session: Session, where: str) -> list[str]:
    """Return the processes of runs that have not ended."""
    return [row[0] for row in session.execute(f"SELECT DISTINCT process FROM {where}.runs WHERE state = 'requested'")]


def abandon(session: Session, where: str, alive: Sequence[str]) -> tuple[str, ...]:
    """Mark runs whose process is not among those `alive` as failed, and say what each of them left."""
    rows = session.execute(
        f"SELECT id, kind, target, range_text FROM {where}.runs"
        " WHERE state = 'requested' AND NOT process = ANY(CAST($alive AS VARCHAR[])) ORDER BY number",
        {"alive": list(alive)},
    )
    said = []
    for run_id, kind, target, range_text in rows:
        published = count_published(session, where, run_id)
        few = {0: "nothing of it was published", 1: "1 slice of it is published, whole"}
        left = few.get(published, f"{published} slices of it are published, each whole")
        found = f"its process is gone; {left}"
        asked = f"{kind} {target} over {range_text}, to its end"
        unchanged = "the other slices are as they were" if published else f"{target} is as it was; nothing was written"
        error = {"kind": "abandoned", "asked": asked, "found": [found], "unchanged": unchanged, "next": ""}
        session.execute(
            f"UPDATE {where}.runs SET state = 'failed', error = $error, finished_at = now() WHERE id = $id",
            {"id": run_id, "error": dump(error)},
        )
        said.append(f"{run_id} over {range_text} was abandoned: {found}")
    return tuple(said)


def listed(diff_slices: Sequence[SliceDiff], scope: Scope) -> list[SliceDiff]:
    """Return the slices to list: all of the scope when it is short enough, otherwise those that hold rows."""
    if scope.count > SLICES_LISTED_MAX:
        return list(diff_slices)
    found = {each.slice: each for each in diff_slices}
    return [
        found.get(moment) or SliceDiff(moment, scope.label(moment), Fingerprint(), Fingerprint())
        for moment in scope.slices()
    ]
