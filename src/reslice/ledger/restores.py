"""What the ledger knows of restores: who wrote a slice and in which order, and which slices were put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reslice.engines.session import Session
from reslice.recorded import RestoredSlice, SliceWrite
from reslice.tables import Target
from reslice.values import Fingerprint, State

OF_TABLE = "(r.table_name = $table_name OR substr(r.table_name, position('.' IN r.table_name) + 1) = $beside)"
"""Runs of one table, also from before its DuckDB file or its database was renamed: its ledger is in there with it."""


def table_values(target: Target) -> dict[str, Any]:
    """Return the parameters of OF_TABLE."""
    return {"table_name": target.resolved, "beside": target.beside}


def writes_since(
    session: Session, where: str, target: Target, run_id: str, labels: Sequence[str], *, knows_restores: bool
) -> tuple[SliceWrite, ...]:
    """Return every time the slices of a run were written, from that run on, the latest first.

    A later run that wrote the rows again that were there has changed nothing and is left out. A ledger that is older
    than restores are, which `knows_restores` says, holds none.
    """
    restores = "coalesce(r.restores, '')" if knows_restores else "''"
    # A window, and no join of the slices with themselves: rows that came lately have no statistics, and a planner may
    # then compare each with each.
    rows = session.execute(
        "SELECT run_id, slice, restores FROM ("
        f"SELECT s.run_id, s.slice, {restores} AS restores, s.published_at, r.number,"
        " s.run_id = $run_id OR s.fingerprint_base <> s.fingerprint_staged AS is_told,"
        " max(s.published_at) FILTER (WHERE s.run_id = $run_id) OVER (PARTITION BY s.slice) AS mine_at"
        f" FROM {where}.run_slices AS s JOIN {where}.runs AS r ON r.id = s.run_id"
        f" WHERE {OF_TABLE} AND s.state = 'published' AND s.slice = ANY(CAST($labels AS VARCHAR[]))"
        ") AS writes WHERE published_at >= mine_at AND is_told ORDER BY published_at DESC, number DESC",
        {"run_id": run_id, "labels": list(labels)} | table_values(target),
    )
    return tuple(SliceWrite(*row) for row in rows)


def restored(session: Session, where: str, target: Target, labels: Sequence[str]) -> dict[str, RestoredSlice]:
    """Return the slices, of those named, whose last word is a restore: not written or found equal by a run since.

    A run that found a slice equal counts from when it was asked for: what it saw is not older than that. Which word is
    the last one is asked of the clock and of the number that counts up with every run, and either may say that it is a
    restore: a clock can be set back, and runs can overlap.
    """
    any_restore = f"SELECT 1 FROM {where}.runs AS r WHERE {OF_TABLE} AND state = '{State.RESTORED}' LIMIT 1"
    if not labels or not session.execute(any_restore, table_values(target)):
        return {}
    rows = session.execute(
        "SELECT slice, id, restores, (SELECT u.fingerprint_after FROM"
        f" {where}.run_slices AS u WHERE u.run_id = last.restores AND u.slice = last.slice)"
        " FROM (SELECT s.slice, r.id, coalesce(r.restores, '') AS restores,"
        " row_number() OVER (PARTITION BY s.slice"
        " ORDER BY coalesce(s.published_at, r.requested_at) DESC, r.number DESC) AS by_time,"
        " row_number() OVER (PARTITION BY s.slice ORDER BY r.number DESC) AS by_number"
        f" FROM {where}.run_slices AS s JOIN {where}.runs AS r ON r.id = s.run_id"
        f" WHERE {OF_TABLE} AND r.kind IN ('run', 'restore') AND s.slice = ANY(CAST($labels AS VARCHAR[]))"
        " AND (s.state = 'published' OR (r.kind = 'run'"
        " AND s.state IN ('unchanged', 'empty') AND r.state IN ('published', 'unchanged')))"
        ") AS last WHERE restores <> '' AND (by_time = 1 OR by_number = 1) ORDER BY by_time DESC",
        {"labels": list(labels)} | table_values(target),
    )
    return {
        label: RestoredSlice(run_id, undone, Fingerprint.parse(left)) for label, run_id, undone, left in rows if left
    }
