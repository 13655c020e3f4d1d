"""Whether a database holds exactly what the model says: target, ledger, kept rows, and nothing besides."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb

from reslice.values import Counts, Run, State
from tests import orders_project as project
from tests.model import Call, Model, RunRecord
from tests.model_rows import FINGERPRINT_COLUMNS, Group, Row, fingerprint, revenue_of

TABLES = {"orders", "daily_orders"}


def differences(model: Model, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return in words whatever is not as the model says; empty when all of it agrees."""
    return [
        *_bags("target", Counter(project.rows_of(connection)), Counter(model.rows)),
        *_bags("kept", Counter(project.kept_of(connection)), Counter(model.kept)),
        *_runs(model, project.runs_of(connection)),
        *_slices(model, project.slices_of(connection)),
        *_bags("groups", Counter(project.groups_of(connection)), Counter(_groups(model))),
        *_versions(model, connection),
        *_equal("generation", project.generation_of(connection), model.generation),
        *_equal("tables", project.tables_of(connection), TABLES),
    ]


def abandoned(run: Run | None) -> int:
    """Return how many runs a run says that it found abandoned."""
    return sum("was abandoned" in note for note in run.notes) if run else 0


def _versions(model: Model, connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Compare what readers of the versions read, and where the pointers are."""
    pointers, moves = project.versions_of(connection)
    yield from _equal("pointers", pointers, model.pointers)
    expected = [(each.run, each.day, each.version, each.before) for each in model.versions]
    yield from _bags("versions", Counter(moves), Counter(expected))
    current = project.current_of(connection)
    if current is not None:
        yield from _bags("current", Counter(current), Counter(model.current))
    is_staged = any(run.order is not None for run in model.runs)
    if model.method == "append_version" and is_staged and current is None:
        yield "there is no view of the current versions"


def _equal(what: str, found: Any, expected: Any) -> Iterator[str]:
    if found != expected:
        yield f"{what}: found {found!r}, expected {expected!r}"


def _bags(what: str, found: Counter[Any], expected: Counter[Any]) -> Iterator[str]:
    for item, count in (found - expected).items():
        yield f"{what}: {count} too many of {item!r}"
    for item, count in (expected - found).items():
        yield f"{what}: {count} missing of {item!r}"


def _runs(model: Model, found: list[project.LedgerRow]) -> Iterator[str]:
    yield from _equal("runs", [run.id for run in found], [run.id for run in model.runs])
    for row, record in zip(found, model.runs, strict=False):
        for what, have, want in _pairs(row, record):
            yield from _equal(f"{record.id} {what}", have, want)
    orders = [(record.order, row.staged_order) for row, record in zip(found, model.runs, strict=False)]
    staged = sorted((order, stored) for order, stored in orders if stored is not None and order is not None)
    for (_, before), (_, after) in pairwise(staged):
        if before >= after:
            yield f"staged_order: {before} is not below {after}"


def _pairs(row: project.LedgerRow, record: RunRecord) -> Iterator[tuple[str, Any, Any]]:
    """Yield each thing that the ledger says of a run, and what it must say."""
    yield "number", row.number, int(record.id.removeprefix("r-"))
    yield "target", row.target, record.target
    yield "kind", row.kind, "restore" if record.restores else "run"
    yield "restores", row.restores, record.restores
    yield "state", row.state, record.state.value
    yield "error", row.error_kind, record.error
    yield "approves", row.approves, record.approves
    yield "slices", row.slices, len(record.days)
    yield "range", row.range_text, _ranges(record.days)
    yield "finished", row.is_finished, record.state is not State.REQUESTED
    is_closed = record.state is not State.REQUESTED and record.error != "abandoned"
    yield "staged order", row.staged_order is not None, is_closed and record.order is not None
    yield "publish order", row.publish_order, record.publish_order if is_closed else None
    if record.diff is None or not is_closed:
        yield "rows", row.rows, (None, None, None)
        yield "fingerprints", row.fingerprints, (None, None, None)
        yield "counts", row.counts, None
        return
    base, staged = record.diff.all_base(), record.diff.all_staged()
    yield "rows", row.rows, (len(base), len(staged), record.rows_after)
    after = None if record.after is None else str(record.after)
    yield "fingerprints", row.fingerprints, (str(fingerprint(base)), str(fingerprint(staged)), after)
    yield "counts", row.counts, _sum(record.diff.counts(day) for day in record.diff.days)
    yield "columns", row.columns, list(FINGERPRINT_COLUMNS)
    yield "totals", _exact(row.totals), _totals(base, staged)


def _ranges(days: list[date]) -> str:
    """Return days as they are typed: those that follow each other as one range."""
    spans: list[list[date]] = []
    for day in days:
        if spans and (day - spans[-1][-1]).days == 1:
            spans[-1].append(day)
        else:
            spans.append([day])
    return ",".join(f"{span[0]}" if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)


def _sum(all_counts: Iterator[Counts]) -> Counts:
    listed = list(all_counts)
    return Counts(
        sum(counts.added for counts in listed),
        sum(counts.changed for counts in listed),
        sum(counts.removed for counts in listed),
        sum(counts.unchanged for counts in listed),
    )


def _exact(totals: dict[str, dict[str, Any]] | None) -> dict[str, tuple[Decimal | None, ...]]:
    """Return recorded totals as exact numbers, before and after; a float has no place among them."""
    values = {name: (total["before"], total["after"]) for name, total in (totals or {}).items()}
    assert not any(isinstance(value, float) for pair in values.values() for value in pair)
    return {name: tuple(None if each is None else Decimal(each) for each in pair) for name, pair in values.items()}


def _totals(base: list[Row], staged: list[Row]) -> dict[str, tuple[Decimal | None, ...]]:
    counts = tuple(_count_of(rows) for rows in (base, staged))
    return {"order_count": counts, "revenue": (revenue_of(base), revenue_of(staged))}


def _count_of(rows: list[Row]) -> Decimal | None:
    found = [row.order_count for row in rows if row.order_count is not None]
    return Decimal(sum(found)) if found else None


def _slices(model: Model, found: dict[tuple[str, str], tuple[Any, ...]]) -> Iterator[str]:
    expected = {
        (run.id, str(day)): (
            each.state,
            str(each.base),
            str(each.staged),
            None if each.after is None else str(each.after),
            each.counts,
            each.state == "published",
        )
        for run in model.runs
        for day, each in run.slices.items()
    }
    yield from _bags("slices", Counter(found.items()), Counter(expected.items()))


def _groups(model: Model) -> Iterator[tuple[Any, ...]]:
    for run in model.runs:
        for group in run.groups:
            yield (run.id, *_group(group))


def _group(group: Group) -> tuple[Any, ...]:
    return group.change.value, str(group.day), group.channel, group.before, group.after, group.rows_before


def left_by_crash(model: Model, call: Call, connection: duckdb.DuckDBPyConnection) -> Model:
    """Return the one state, of all that a run may leave when its process dies, that the database is in.

    Nothing at all, a run that published nothing, with a commit per slice any number of whole slices, or all of it.
    """
    found: list[list[str]] = []
    for possible in _possible(model, call):
        found.append(differences(possible, connection))
        if not found[-1]:
            return possible
    closest = min(found, key=len)
    raise AssertionError("\n".join(closest))


def _possible(model: Model, call: Call) -> Iterator[Model]:
    """Yield every state that a run may leave when its process dies, from nothing to all of it."""
    yield model
    days = (call.last - call.first).days + 1
    crashes = [replace(call, crash_after=count) for count in range(days + 1 if call.per_slice else 1)]
    for each in [*crashes, call]:
        imagined = copy.deepcopy(model)
        imagined.run(each)
        yield imagined
