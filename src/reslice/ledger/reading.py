"""What is read from the ledger: runs as values, and what earlier runs mean for the next one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reslice.engines.session import Session
from reslice.engines.sql import quote
from reslice.ledger.tables import RUNS, LedgerColumn
from reslice.ledger.texts import instant, load, span, utc
from reslice.ranges import Range
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.values import Change, Check, Consent, ControlLine, Counts, GroupDiff, Number, State, Total


def state_of(session: Session, where: str, run_id: str) -> State | None:
    """Return the state of a run; None when the ledger has no such run."""
    rows = session.execute(f"SELECT state FROM {where}.runs WHERE id = $id", {"id": run_id})
    return State(rows[0][0]) if rows else None


def later_run(session: Session, where: str, table: str, staged_order: int, hull: Range) -> str | None:
    """Return a run that staged later and has already finished on an overlapping range, if there is one."""
    first, last = span(hull)
    rows = session.execute(
        f"SELECT max(id) FROM {where}.runs WHERE table_name = $table_name AND staged_order > $staged_order"
        " AND kind = 'run' AND state IN ('published', 'unchanged') AND range_first <= $last AND range_last >= $first",
        {"table_name": table, "staged_order": staged_order, "first": first, "last": last},
    )
    later: str | None = rows[0][0]
    return later


def last_covering(session: Session, where: str, table: str, hull: Range) -> str | None:
    """Return since when a range is known to be as its source was: the request time, in UTC, of the last run of it."""
    first, last = span(hull)
    rows = session.execute(
        f"SELECT {utc('max(requested_at)')} FROM {where}.runs WHERE {_FINISHED}"
        " AND range_first <= $first AND range_last >= $last"
        " AND position(',' IN range_text) = 0",  # a run of several ranges does not cover what lies between them
        {"table_name": table, "first": first, "last": last},
    )
    since: str | None = rows[0][0]
    return since


@dataclass(frozen=True, slots=True)
class Covering:
    """Ranges that were as their source was: their text, and when the last run of them was requested (UTC)."""

    range_text: str
    at: str


def coverage(session: Session, where: str, table: str, since: str, hull: Range) -> tuple[Covering, ...]:
    """Return the finished runs over some of `hull` that were requested after `since` (UTC), the latest first.

    Of runs of the same ranges the latest alone is returned, so that their number does not grow with the ledger.
    """
    first, last = span(hull)
    rows = session.execute(
        f"SELECT range_text, {utc('max(requested_at)')} FROM {where}.runs WHERE {_FINISHED}"
        " AND requested_at > CAST($since AS TIMESTAMP WITH TIME ZONE) AND range_first <= $last AND range_last >= $first"
        " GROUP BY range_text ORDER BY max(requested_at) DESC",
        {"table_name": table, "since": f"{since}+00", "first": first, "last": last},
    )
    return tuple(Covering(*row) for row in rows)


def left_affected(session: Session, where: str, table: str) -> tuple[str, tuple[str, ...]]:
    """Return the slices that the last finished run named as affected and left, and when it was requested (UTC)."""
    last = f"SELECT max(number) FROM {where}.runs WHERE {_FINISHED} AND affected IS NOT NULL"
    rows = session.execute(
        f"SELECT {utc('requested_at')}, affected FROM {where}.runs WHERE number = ({last})",
        {"table_name": table},
    )
    return (rows[0][0], tuple(load(rows[0][1]))) if rows else ("", ())


_FINISHED = "table_name = $table_name AND kind = 'run' AND state IN ('published', 'unchanged')"
"""Runs after which their ranges were as their source."""


def runs(
    session: Session, where: str, target: str | None, limit: int, *, absent: Collection[str] = ()
) -> list[LedgerRun]:
    """Return the newest runs, newest first, without the statements they executed: those are most of a ledger.

    `absent` are columns that a ledger of an older version lacks, here as everywhere.
    """
    condition = "" if target is None else "WHERE target = $target"
    parameters: dict[str, Any] = {"limit": limit} | ({} if target is None else {"target": target})
    rest = f"{condition} ORDER BY number DESC LIMIT $limit"
    return select_runs(session, where, rest, parameters, unread={*absent, "sql"})


def find(
    session: Session, where: str, reference: str, target: str | None = None, *, absent: Collection[str] = ()
) -> list[LedgerRun]:
    """Return the runs that `reference` may mean: an id, a prefix of ids, `last`, or `last~N`, of `target` where named.

    The only one is whole; of several, only what tells them apart is read.
    """

    def one(rest: str, **parameters: Any) -> list[LedgerRun]:
        return [whole(session, where, run) for run in select_runs(session, where, rest, parameters, unread=absent)]

    back = re.fullmatch(r"last(?:~(\d{1,9}))?", reference)
    if back:
        of_target, named = ("", {}) if target is None else ("WHERE target = $target", {"target": target})
        newest = f"SELECT number FROM {where}.runs {of_target} ORDER BY number DESC LIMIT 1 OFFSET $back"
        return one(f"WHERE number = ({newest})", back=int(back[1] or 0), **named)
    if not reference:  # every id begins with nothing
        return []
    exact = one("WHERE id = $id", id=reference)
    if exact:
        return exact
    unread = {*absent, *_EVIDENCE}
    matches = select_runs(
        session, where, "WHERE starts_with(id, $id) ORDER BY number", {"id": reference}, unread=unread
    )
    return one("WHERE id = $id", id=matches[0].id) if len(matches) == 1 else matches


_EVIDENCE = frozenset({"sql", "checks", "controls", "consents", "warnings", "error", "totals", "fingerprint_columns"})
"""Columns of runs that tell what a run found and did, and not which it is."""


def whole(session: Session, where: str, run: LedgerRun) -> LedgerRun:
    """Return `run` with its slices and groups."""
    slices = session.execute(
        "SELECT slice, state, fingerprint_base, fingerprint_staged, fingerprint_after, groups_added, groups_changed,"
        f" groups_removed, groups_unchanged, {utc('published_at')} FROM {where}.run_slices"
        " WHERE run_id = $id ORDER BY slice",
        {"id": run.id},
    )
    groups = session.execute(
        f"SELECT change, slice, key, before, after, rows_before FROM {where}.run_groups"
        " WHERE run_id = $id ORDER BY position",
        {"id": run.id},
    )
    values = {name: getattr(run, name) for name in LedgerRun.__dataclass_fields__}
    values["slice_rows"] = tuple(_ledger_slice(row) for row in slices)
    values["groups"] = tuple(
        GroupDiff(Change(change), slice_text, load(key), load(before), load(after), rows_before)
        for change, slice_text, key, before, after, rows_before in groups
    )
    return LedgerRun(**values)


def _ledger_slice(row: Sequence[Any]) -> LedgerSlice:
    slice_text, state, base, staged, after, added, changed, removed, unchanged, published_at = row
    return LedgerSlice(
        slice_text, state, base, staged, after, added, changed, removed, unchanged, instant(published_at)
    )


def select_runs(
    session: Session, where: str, rest: str, parameters: Mapping[str, Any], *, unread: Collection[str]
) -> list[LedgerRun]:
    """Return runs as values; a column that is `unread` is as if it were NULL."""
    names = [column.name for column in RUNS.columns]
    shown = ["NULL" if column.name in unread else _shown(column) for column in RUNS.columns]
    rows = session.execute(f"SELECT {', '.join(shown)} FROM {where}.runs {rest}", parameters)
    return [_ledger_run(dict(zip(names, row, strict=True))) for row in rows]


def _shown(column: LedgerColumn) -> str:
    return utc(quote(column.name)) if column.type.startswith("TIMESTAMP") else quote(column.name)


def _ledger_run(row: Mapping[str, Any]) -> LedgerRun:
    counts = None
    if row["groups_added"] is not None:
        counts = Counts(*(row[f"groups_{word}"] for word in ("added", "changed", "removed", "unchanged")))
    same = {
        name: row[name]
        for name in LedgerRun.__dataclass_fields__
        if name in row and name not in ("totals", "consents", "checks", "controls", "warnings", "error", "sql")
    }
    requested = instant(row["requested_at"])
    assert requested is not None, "every run has the time of its request"
    return LedgerRun(
        **same
        | {
            "table": row["table_name"],
            "requested_at": requested,
            "finished_at": instant(row["finished_at"]),
            "pruned_at": instant(row["pruned_at"]),
            "counts": counts,
            "totals": {name: _total(total) for name, total in (load(row["totals"]) or {}).items()},
            "columns": tuple(load(row["fingerprint_columns"]) or ()),
            "groups_left_out": row["groups_left_out"] or 0,
            "restores": row["restores"] or "",
            "consents": tuple(Consent(each["guard"], tuple(each["slices"])) for each in load(row["consents"]) or ()),
            "checks": tuple(Check(**each) for each in load(row["checks"]) or ()),
            "controls": tuple(_control_line(each) for each in load(row["controls"]) or ()),
            "warnings": tuple(load(row["warnings"]) or ()),
            "error": load(row["error"]),
            "sql": tuple(load(row["sql"]) or ()),
        }
    )


def _total(values: Mapping[str, Any]) -> Total:
    return Total(_number(values["before"]), _number(values["after"]))


def _control_line(values: Mapping[str, Any]) -> ControlLine:
    numbers = {name: _number(values[name]) for name in ("control", "target")}
    return ControlLine(**(dict(values) | numbers | {"slices_differing": tuple(values["slices_differing"])}))


def _number(value: int | str | None) -> Number | None:
    """Read a number back: integers are JSON numbers, decimals are text."""
    return Decimal(value) if isinstance(value, str) else value
