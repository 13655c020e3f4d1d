"""The ledger: tables in the target's own database that say what every run was asked, found and did.

This module knows the tables, what each column means, and how a `Run` becomes rows and rows become a `LedgerRun`. A row
that says *published* is written in the commit that replaces the data, so one is never there without the other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from reslice.engines.session import Session
from reslice.engines.sql import quote
from reslice.ranges import Range, Scope
from reslice.values import (
    Change,
    Check,
    Consent,
    ControlLine,
    Counts,
    Fill,
    Fingerprint,
    GroupDiff,
    Guard,
    LedgerRun,
    LedgerSlice,
    Number,
    Opened,
    Request,
    Run,
    SliceDiff,
    State,
    Target,
    Total,
)

SLICES_LISTED_MAX = 3660
"""Scopes of up to this many slices list also those that are empty on both sides."""


@dataclass(frozen=True, slots=True)
class LedgerColumn:
    """One column of a ledger table: its type in SQL, and what it means."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """One table of the ledger."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[LedgerColumn, ...]


def _columns(text: str) -> tuple[LedgerColumn, ...]:
    """Read a table's columns, one per line: name, type, meaning."""
    types = {"text": "VARCHAR", "integer": "BIGINT", "instant": "TIMESTAMP WITH TIME ZONE"}
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    return tuple(LedgerColumn(name, types[kind], meaning) for name, kind, meaning in rows)


RUNS = LedgerTable(
    "runs",
    "one row per run, from the moment it is asked for; never pruned",
    ("id",),
    _columns("""
        id                  text     the run's name, such as r-0042
        number              integer  counts up with every run
        target              text     the target's name in the contract
        table_name          text     the table, with catalog and schema
        kind                text     run or verify
        state               text     requested, published, unchanged, stopped, refused or failed
        method              text     how a publish replaces slices
        contract_digest     text     changes when the contract or its SQL changes
        range_text          text     the ranges covered, as they are typed
        range_first         text     the first value of the first slice, local to the contract's zone
        range_last          text     the last value of the last slice, local to the contract's zone
        unit                text     the unit of the slices
        slices              integer  how many slices the ranges cover
        actor               text     who ran it: user and host
        process             text     the connection that runs it; a requested run whose process is gone is abandoned
        reason              text     the reason given for a consent
        consents            text     JSON: the guards that were allowed, and for which slices
        approves            text     the run or plan file whose exact diff was approved
        requested_at        instant  when it was asked for, before anything was read
        finished_at         instant  when its state became final
        staged_order        integer  counts up with every snapshot that a run staged from
        publish_order       integer  counts up with every commit to the table
        lock_milliseconds   integer  how long the publish held the table
        rows_before         integer  rows of the ranges in the base
        rows_staged         integer  rows of the ranges in the staged rows
        rows_after          integer  rows of the ranges after the run
        totals              text     JSON: the sum of each measure before and after
        groups_added        integer  groups that were not there before
        groups_changed      integer  groups whose measures changed
        groups_removed      integer  groups that are no longer there
        groups_unchanged    integer  groups that stayed as they were
        groups_left_out     integer  moved groups that run_groups does not list
        fingerprint_base    text     fingerprint of the base, rows:sum
        fingerprint_staged  text     fingerprint of the staged rows
        fingerprint_after   text     fingerprint read back from the target
        fingerprint_columns text     JSON: the columns the fingerprints cover, in order
        checks              text     JSON: every check and guard, whether it held, and what was found
        controls            text     JSON: each figure of the source and of the rows
        warnings            text     JSON: what was said beside the result
        affected            text     JSON: slices outside the ranges that corrections touch and that were left
        error               text     JSON: kind, asked, found, unchanged and next, when it did not go through
        sql                 text     JSON: the statements that recomputed and replaced the slices, in order
        kept_table          text     the table that keeps the rows it replaced
        tool_version        text     the version of reslice
        engine_version      text     the database and its version
    """),
)

RUN_SLICES = LedgerTable(
    "run_slices",
    "one row per slice of a run; slices of very long ranges are listed when they hold rows",
    ("run_id", "slice"),
    _columns("""
        run_id             text     the run
        slice              text     the slice, as it is typed in a range
        state              text     published, unchanged, empty, or open: seen, and not written
        fingerprint_base   text     fingerprint of the slice in the base
        fingerprint_staged text     fingerprint of the slice in the staged rows
        fingerprint_after  text     fingerprint read back after it was written
        groups_added       integer  groups that were not there before
        groups_changed     integer  groups whose measures changed
        groups_removed     integer  groups that are no longer there
        groups_unchanged   integer  groups that stayed as they were
        published_at       instant  when it was committed
    """),
)

RUN_GROUPS = LedgerTable(
    "run_groups",
    "the groups that moved; beyond a cap those that moved most, and runs.groups_left_out says how many more there were",
    ("run_id", "position"),
    _columns("""
        run_id      text     the run
        position    integer  place in the diff, from 1
        change      text     added, changed or removed
        slice       text     the slice the group lies in
        key         text     JSON: the grain columns
        before      text     JSON: the measures before; NULL when the group is new
        after       text     JSON: the measures after; NULL when the group is gone
        rows_before integer  how many rows the group had; more than one is a repeated key that was healed
    """),
)

FENCES = LedgerTable(
    "fences",
    "one row per table; a publish updates it first, so that two publishes of one table cannot overlap",
    ("table_name",),
    _columns("""
        table_name text     the table, with catalog and schema
        generation integer  counts up with every publish
    """),
)

TABLES = (RUNS, RUN_SLICES, RUN_GROUPS, FENCES)


def place(catalog: str, schema: str) -> str:
    """Return the qualified, quoted name of a ledger's schema."""
    return f"{quote(catalog)}.{quote(schema)}"


def foreign_tables(present: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the tables of a ledger's schema that bear a name of ours and are not ours: most of our columns lack."""
    foreign = []
    for table in TABLES:
        columns = {column for name, column in present if name == table.name}
        ours = {column.name for column in table.columns}
        if columns and len(columns & ours) * 2 < len(ours):
            foreign.append(table.name)
    return tuple(foreign)


def create_statements(where: str, present: Collection[tuple[str, str]]) -> list[str]:
    """Return the statements that make the ledger in the schema `where`, or bring an older one up to date.

    `present` are the tables and columns that are there. Columns are only ever added, so older rows stay readable.
    """
    tables = {table for table, _ in present}
    statements = [] if tables else [f"CREATE SCHEMA IF NOT EXISTS {where}"]
    for table in TABLES:
        name = f"{where}.{quote(table.name)}"
        columns = [f"{quote(column.name)} {column.type}" for column in table.columns]
        if table.name not in tables:
            key = ", ".join(quote(name) for name in table.key)
            statements.append(f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key}))")
            continue
        missing = [column for column in table.columns if (table.name, column.name) not in present]
        statements += [f"ALTER TABLE {name} ADD COLUMN {quote(column.name)} {column.type}" for column in missing]
    return statements


KEPT_RUN = "reslice:run"
"""The column of a kept table that names the run which replaced the row."""


def kept_columns(target: Target) -> tuple[str, ...]:
    """Return the target's columns that are kept: all but those the database computes."""
    return tuple(column.name for column in target.columns if column.fill is not Fill.GENERATED)


def kept_table(where: str, target: Target) -> str:
    """Return the qualified table that keeps replaced rows of `target`; another set of columns has another table."""
    columns = [[column.name, column.type] for column in target.columns if column.fill is not Fill.GENERATED]
    digest = hashlib.sha256(_dump([target.resolved, columns]).encode()).hexdigest()[:12]
    return f"{where}.{quote(f'kept_{digest}')}"


def create_kept(kept: str, live: str, target: Target) -> str:
    """Return the statement that makes the kept table, with the live table's types and none of its constraints."""
    columns = ", ".join(quote(name) for name in kept_columns(target))
    return (
        f"CREATE TABLE IF NOT EXISTS {kept} AS"
        f" SELECT CAST(NULL AS VARCHAR) AS {quote(KEPT_RUN)}, {columns} FROM {live} LIMIT 0"
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def open_request(session: Session, where: str, request: Request, target: Target, about: Mapping[str, str]) -> Opened:
    """Insert the request as a new run, and its table's fence; the caller holds the ledger's lock and commits."""
    number = session.execute(f"SELECT coalesce(max(number), 0) + 1 FROM {where}.runs")[0][0]
    run_id = f"r-{number:04d}"
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
        "consents": _dump([asdict(consent) for consent in request.consents]),
        "approves": request.approves,
        **about,
    }
    names = ", ".join(quote(name) for name in values)
    marks = ", ".join(f"${name}" for name in values)
    session.execute(f"INSERT INTO {where}.runs ({names}, requested_at) VALUES ({marks}, now())", values)
    session.execute(
        f"INSERT INTO {where}.fences (table_name, generation) SELECT $table_name, 0"
        f" WHERE NOT EXISTS (SELECT 1 FROM {where}.fences WHERE table_name = $table_name)",
        {"table_name": target.resolved},
    )
    return Opened(run_id)


def span(hull: Range) -> tuple[str, str]:
    """Return the first and last value of a range as texts that sort as the values do."""
    bounds = hull.column_values("timestamptz")
    return bounds.start, bounds.end


def close(session: Session, where: str, run_id: str, run: Run, state: State, more: Mapping[str, Any]) -> int:
    """Write how a run ended into its row; return how many rows that were still open it found (1, or 0)."""
    values = {**_record(run), "state": state.value, **more}
    assignments = ", ".join(f"{quote(name)} = ${name}" for name in values)
    count = session.execute(
        f"UPDATE {where}.runs SET {assignments}, finished_at = now() WHERE id = $run_id AND state = 'requested'",
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
        "checks": _dump([*map(asdict, run.checks), *map(_guard_values, run.guards)]),
        "controls": _dump([asdict(line) for line in run.controls]),
        "warnings": _dump(list(run.warnings)),
        "affected": _dump(list(run.affected)),
        "sql": _dump(list(run.sql)),
        "error": None if run.error is None else _dump(error_values(run.error)),
    }
    diff = run.diff
    if diff is not None:
        counts = diff.counts
        values |= {
            "rows_before": diff.base.rows,
            "rows_staged": diff.staged.rows,
            "rows_after": run.rows_after,
            "totals": _dump({name: asdict(total) for name, total in diff.totals.items()}),
            "groups_added": counts.added,
            "groups_changed": counts.changed,
            "groups_removed": counts.removed,
            "groups_unchanged": counts.unchanged,
            "groups_left_out": diff.groups_left_out,
            "fingerprint_base": str(diff.base),
            "fingerprint_staged": str(diff.staged),
            "fingerprint_after": None if run.after is None else str(run.after),
            "fingerprint_columns": _dump(list(diff.columns)),
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
    published_at = "now()" if is_published else "NULL"
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
        "key": [_dump(group.key) for group in groups],
        "before": [None if group.before is None else _dump(group.before) for group in groups],
        "after": [None if group.after is None else _dump(group.after) for group in groups],
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


def abandon(session: Session, where: str, alive: Sequence[str]) -> tuple[str, ...]:
    """Mark runs whose process is not among those `alive` as failed, and say what each of them left."""
    rows = session.execute(
        f"SELECT id, range_text, (SELECT count(*) FROM {where}.run_slices AS s"
        f" WHERE s.run_id = r.id AND s.state = 'published') FROM {where}.runs AS r"
        " WHERE state = 'requested' AND NOT list_contains($alive, process) ORDER BY number",
        {"alive": list(alive)},
    )
    said = []
    for run_id, range_text, published in rows:
        left = "nothing of it was published" if not published else f"{published} slices of it are published, each whole"
        found = f"its process is gone; {left}"
        error = {"kind": "abandoned", "asked": range_text, "found": [found], "unchanged": "", "next": ""}
        session.execute(
            f"UPDATE {where}.runs SET state = 'failed', error = $error, finished_at = now() WHERE id = $id",
            {"id": run_id, "error": _dump(error)},
        )
        said.append(f"{run_id} over {range_text} was abandoned: {found}")
    return tuple(said)


# --- asking -----------------------------------------------------------------------------------------------------------


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
        f"SELECT {_utc('max(requested_at)')} FROM {where}.runs WHERE {_FINISHED}"
        " AND range_first <= $first AND range_last >= $last"
        " AND position(',' IN range_text) = 0",  # a run of several ranges does not cover what lies between them
        {"table_name": table, "first": first, "last": last},
    )
    since: str | None = rows[0][0]
    return since


@dataclass(frozen=True, slots=True)
class Covering:
    """A finished run whose ranges were then as their source was: their text, and when it was requested (UTC)."""

    range_text: str
    at: str


def coverage(session: Session, where: str, table: str, since: str) -> tuple[Covering, ...]:
    """Return the finished runs that were requested after `since` (UTC), the latest first."""
    rows = session.execute(
        f"SELECT range_text, {_utc('requested_at')} FROM {where}.runs WHERE {_FINISHED}"
        " AND requested_at > CAST($since AS TIMESTAMP WITH TIME ZONE) ORDER BY requested_at DESC",
        {"table_name": table, "since": f"{since}+00"},
    )
    return tuple(Covering(*row) for row in rows)


def left_affected(session: Session, where: str, table: str) -> tuple[str, tuple[str, ...]]:
    """Return the slices that the last finished run named as affected and left, and when it was requested (UTC)."""
    rows = session.execute(
        f"SELECT {_utc('requested_at')}, affected FROM {where}.runs WHERE {_FINISHED} AND affected IS NOT NULL"
        " ORDER BY requested_at DESC LIMIT 1",
        {"table_name": table},
    )
    return (rows[0][0], tuple(_load(rows[0][1]))) if rows else ("", ())


_FINISHED = "table_name = $table_name AND kind = 'run' AND state IN ('published', 'unchanged')"
"""Runs after which their ranges were as their source."""


# --- reading ----------------------------------------------------------------------------------------------------------


def runs(session: Session, where: str, target: str | None, limit: int) -> list[LedgerRun]:
    """Return the newest runs, newest first."""
    condition = "" if target is None else "WHERE target = $target"
    parameters: dict[str, Any] = {"limit": limit} | ({} if target is None else {"target": target})
    return _select(session, where, f"{condition} ORDER BY number DESC LIMIT $limit", parameters)


def find(session: Session, where: str, reference: str) -> list[LedgerRun]:
    """Return the runs that `reference` may mean: an id, a prefix of ids, `last`, or `last~N`."""
    back = re.fullmatch(r"last(?:~(\d{1,9}))?", reference)
    if back:
        return _select(session, where, "ORDER BY number DESC LIMIT 1 OFFSET $back", {"back": int(back[1] or 0)})
    if not reference:  # every id begins with nothing
        return []
    exact = _select(session, where, "WHERE id = $id", {"id": reference})
    return exact or _select(session, where, "WHERE starts_with(id, $id) ORDER BY number LIMIT 5", {"id": reference})


def whole(session: Session, where: str, run: LedgerRun) -> LedgerRun:
    """Return `run` with its slices and groups."""
    slices = session.execute(
        "SELECT slice, state, fingerprint_base, fingerprint_staged, fingerprint_after, groups_added, groups_changed,"
        f" groups_removed, groups_unchanged, {_utc('published_at')} FROM {where}.run_slices"
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
        GroupDiff(Change(change), slice_text, _load(key), _load(before), _load(after), rows_before)
        for change, slice_text, key, before, after, rows_before in groups
    )
    return LedgerRun(**values)


def _ledger_slice(row: Sequence[Any]) -> LedgerSlice:
    slice_text, state, base, staged, after, added, changed, removed, unchanged, published_at = row
    return LedgerSlice(
        slice_text, state, base, staged, after, added, changed, removed, unchanged, _instant(published_at)
    )


def _select(session: Session, where: str, rest: str, parameters: Mapping[str, Any]) -> list[LedgerRun]:
    names = [column.name for column in RUNS.columns]
    shown = [
        f"{_utc(quote(column.name))} AS {quote(column.name)}"
        if column.type.startswith("TIMESTAMP")
        else quote(column.name)
        for column in RUNS.columns
    ]
    rows = session.execute(f"SELECT {', '.join(shown)} FROM {where}.runs {rest}", parameters)
    return [_ledger_run(dict(zip(names, row, strict=True))) for row in rows]


def _ledger_run(row: Mapping[str, Any]) -> LedgerRun:
    counts = None
    if row["groups_added"] is not None:
        counts = Counts(*(row[f"groups_{word}"] for word in ("added", "changed", "removed", "unchanged")))
    same = {
        name: row[name]
        for name in LedgerRun.__dataclass_fields__
        if name in row and name not in ("totals", "consents", "checks", "controls", "warnings", "error", "sql")
    }
    requested = _instant(row["requested_at"])
    assert requested is not None, "every run has the time of its request"
    return LedgerRun(
        **same
        | {
            "table": row["table_name"],
            "requested_at": requested,
            "finished_at": _instant(row["finished_at"]),
            "counts": counts,
            "totals": {name: _total(total) for name, total in (_load(row["totals"]) or {}).items()},
            "columns": tuple(_load(row["fingerprint_columns"]) or ()),
            "groups_left_out": row["groups_left_out"] or 0,
            "consents": tuple(Consent(each["guard"], tuple(each["slices"])) for each in _load(row["consents"]) or ()),
            "checks": tuple(Check(**each) for each in _load(row["checks"]) or ()),
            "controls": tuple(_control_line(each) for each in _load(row["controls"]) or ()),
            "warnings": tuple(_load(row["warnings"]) or ()),
            "error": _load(row["error"]),
            "sql": tuple(_load(row["sql"]) or ()),
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


def _utc(expression: str) -> str:
    return f"CAST(timezone('UTC', {expression}) AS VARCHAR)"


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text + "+00:00")


def _dump(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Decimals become text, so that no reader turns money into a float."""
    if isinstance(value, Decimal):
        return format(value, "f")
    raise AssertionError(f"{type(value).__name__} has no place in the ledger")


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def listed(diff_slices: Sequence[SliceDiff], scope: Scope) -> list[SliceDiff]:
    """Return the slices to list: all of the scope when it is short enough, otherwise those that hold rows."""
    if scope.count > SLICES_LISTED_MAX:
        return list(diff_slices)
    found = {each.slice: each for each in diff_slices}
    return [
        found.get(moment) or SliceDiff(moment, scope.label(moment), Fingerprint(), Fingerprint())
        for moment in scope.slices()
    ]
