"""Whether a history went as it must: everything that was committed, done again one after the other in plain Python.

The server says when each transaction was committed. In that order the model publishes what runs have published, and
writes what live writers have written. What each publish compared, what it kept, what each statement touched, what a
reader saw, and the table at the end: all of it must be what the model has.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.model import Model, RunRecord
from tests.model_rows import Diff, Row, fingerprint
from tests.races.crew import Ran, Seen, Sums, Touched, Wrote
from tests.races.histories import DAYS, History, Writer
from tests.races.shop_postgres import Committed, Shop

QUIET = {"published", "unchanged", "base_moved", "later_run"}
"""How a run may end beside other runs, and beside live writers who take the lock."""
TOLD = {"SerializationFailure", "DeadlockDetected"}
"""What a live writer without the lock may be told, above READ COMMITTED or beside others of its kind."""


@dataclass(slots=True)
class Replay:
    """A model on its way through a history, and what was found wrong with it."""

    history: History
    model: Model
    wrong: list[str] = field(default_factory=list)
    states: list[Model] = field(default_factory=list)
    """What a reader may have seen."""

    def expect(self, is_so: object, words: str) -> None:
        if not is_so:
            self.wrong.append(words)


def faults(
    shop: Shop, history: History, model: Model, first: int, ended: list[Ran | list[Wrote]], seen: list[Seen]
) -> list[str]:
    """Return in words whatever went wrong; `model` is as before, when the ledger had `first` runs."""
    replay = Replay(history, model)
    runs = [each for each in ended if isinstance(each, Ran)]
    writers = list(zip(history.writers, [each for each in ended if not isinstance(each, Ran)], strict=True))
    published = shop.published(first)
    _ends(replay, shop, runs, published)
    _errors(replay, writers)
    _again(replay, _in_order(replay, shop, published, writers))
    _table(replay, shop)
    if history.method != "append_version" or history.has_ledger:  # else the view appears in the middle of it
        _reads(replay, seen)
    left = shop.locks_left()
    replay.expect(not left, f"locks are left: {left}")
    return replay.wrong


# --- how everybody ended --------------------------------------------------------------------------------------------


def _ends(replay: Replay, shop: Shop, runs: list[Ran], published: list[Committed]) -> None:
    """Hold every run to how it may end, and to what the ledger says of it."""
    history = replay.history
    ledger = shop.runs()
    for run, backfill in zip(runs, history.backfills, strict=True):
        allowed = set(QUIET)
        if backfill.per_slice:
            allowed.add("partly_published")
        if history.has_unlocked:
            allowed |= {"conflict", "slipped_in"} if history.lock == "50ms" else {"slipped_in"}
        replay.expect(run.outcome in allowed, f"{backfill} ended with {run}")
        if run.run is None:
            continue
        state, kind = ledger[run.run]
        is_whole = run.outcome in ("published", "slipped_in")
        expected = run.outcome if run.exit_code == 0 else "published" if is_whole else "refused"
        expected = {"conflict": "failed", "partly_published": "failed"}.get(run.outcome, expected)
        replay.expect(state == expected, f"{run} is {state} ({kind}) in the ledger")
        days = {day for each in published if each.run == run.run for day in each.slices}
        replay.expect(bool(days) == (is_whole or run.outcome == "partly_published"), f"{run} published {days}")
        replay.expect(days <= backfill.days, f"{run} published {days}, which are not its days")
    _who_must_publish(replay, runs)


def _who_must_publish(replay: Replay, runs: list[Ran]) -> None:
    """Where nobody else writes, disjoint runs all publish, and of others the first one that gets its turn."""
    history = replay.history
    if history.writers:
        return
    outcomes = Counter(run.outcome for run in runs)
    if history.ranges == "disjoint" or len(runs) == 1:
        replay.expect(outcomes == {"published": len(runs)}, f"nobody was in the way, and runs ended with {outcomes}")
    replay.expect(outcomes["published"] + outcomes["partly_published"] >= 1, f"nobody published: {outcomes}")


def _errors(replay: Replay, writers: list[tuple[Writer, list[Wrote]]]) -> None:
    """Hold live writers to the errors that they may be told."""
    for writer, transactions in writers:
        for wrote in transactions:
            replay.expect(not wrote.unexpected, wrote.unexpected)
            if not wrote.error:
                continue
            is_alone = not replay.history.has_unlocked
            replay.expect(not (writer.is_locked and is_alone), f"{writer.name} holds the lock and got {wrote.error}")
            may = TOLD | ({"write_aborted"} if writer.is_locked else set())
            replay.expect(wrote.error in may, f"{writer.name} got {wrote.error}")
            is_plain = writer.level == "READ COMMITTED" and wrote.error == "SerializationFailure"
            replay.expect(not is_plain, f"{writer.name} got {wrote.error} at READ COMMITTED")


# --- everything again -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Live:
    writer: Writer
    touched: tuple[Touched, ...]


def _in_order(
    replay: Replay, shop: Shop, published: list[Committed], writers: list[tuple[Writer, list[Wrote]]]
) -> list[Committed | _Live]:
    """Return everything that was committed, in the order in which it was."""
    found: list[tuple[datetime, Committed | _Live]] = [(each.at, each) for each in published]
    for writer, transactions in writers:
        for wrote in transactions:
            at = shop.committed_at(wrote.number) if wrote.number else None
            says = bool(wrote.number) and wrote.transaction.commits and not wrote.error
            replay.expect(says == (at is not None), f"{writer.name} was told {says} of a commit at {at}")
            if at is not None:
                found.append((at, _Live(writer, tuple(wrote.touched))))
    return [event for _, event in sorted(found, key=lambda each: each[0])]


def _again(replay: Replay, events: list[Committed | _Live]) -> None:
    """Do everything again, and keep what a reader may see on the way."""
    before, lives = _copied(replay.model), list[_Live]()
    for event in events:
        if isinstance(event, _Live):
            _write(replay, event)
            lives.append(event)
            continue
        replay.states += _seen_between(before, lives)
        _publish(replay, event)
        before, lives = _copied(replay.model), []
    replay.states += _seen_between(before, lives)


def _publish(replay: Replay, event: Committed) -> None:
    """Publish again; what the ledger says was compared and staged must be what is there, and what the orders say."""
    model, days = replay.model, sorted(event.slices)
    base = {day: model.of_day(day) for day in days}
    staged = {day: model.recompute(day) for day in days}
    for day, (said_base, said_staged) in event.slices.items():
        there = str(fingerprint(base[day]))
        words = f"{event.run} replaced {day}, which held {base[day]}, as if it held {said_base}"
        replay.expect(there == said_base, words)
        replay.expect(str(fingerprint(staged[day])) == said_staged, f"{event.run} staged {day} as {said_staged}")
    record = RunRecord(event.run, "daily_orders", days[0], days[-1])
    model.replace_days(record, Diff(days, base, staged), days)


def _write(replay: Replay, event: _Live) -> None:
    """Write again; what each statement touched must be what it meets, unless its snapshot may be an older one."""
    is_exact = event.writer.is_locked or event.writer.level == "READ COMMITTED"
    for touched in event.touched:
        meets, stamps = Counter(_met(replay.model, touched)), Counter(touched.stamps)
        words = f"{event.writer.name}: {touched} met {dict(meets)}"
        replay.expect(stamps == meets if is_exact else stamps <= meets or touched.write.kind == "insert", words)
        _apply(replay.model, touched)


def _met(model: Model, touched: Touched) -> Iterator[str | None]:
    write = touched.write
    if write.kind != "insert":
        yield from (row.batch_id for row in model.rows if (row.order_date, row.channel) == (write.day, write.channel))
    elif model.method == "append_version" and touched.stamps != ("live",):
        current = {row.batch_id for row in model.of_day(write.day)}
        yield touched.stamps[0] if touched.stamps[0] in (current or {None}) else "the current version"
    else:
        yield "live"


def _apply(model: Model, touched: Touched) -> None:
    """Write to the very rows that were touched."""
    write = touched.write
    if write.kind == "insert":
        model.rows.append(Row(write.day, write.channel, 1, write.value, False, touched.stamps[0]))
        return
    left = Counter(touched.stamps)
    rows = []
    for row in model.rows:
        if (row.order_date, row.channel) == (write.day, write.channel) and left[row.batch_id]:
            left[row.batch_id] -= 1
            rows += _written(row, touched)
        else:
            rows.append(row)
    model.rows = rows


def _written(row: Row, touched: Touched) -> list[Row]:
    write = touched.write
    if write.kind == "delete":
        return []
    if write.kind == "move":
        return [replace(row, order_date=write.to_day, channel=write.to_channel)]
    return [replace(row, revenue=None if row.revenue is None else row.revenue + write.value)]


def _seen_between(before: Model, lives: list[_Live]) -> list[Model]:
    """Return what there is to see between two publishes: of each writer what it has committed until some moment.

    Two writers that commit at the same moment may be seen in either order, the transactions of one only in theirs.
    """
    writers = sorted({event.writer.name for event in lives})
    of_writer = {name: [event for event in lives if event.writer.name == name] for name in writers}
    states = []
    for counts in itertools.product(*(range(len(of_writer[name]) + 1) for name in writers)):
        done = [event for name, count in zip(writers, counts, strict=True) for event in of_writer[name][:count]]
        state = _copied(before)
        for event in lives:
            if event in done:
                for touched in event.touched:
                    _apply(state, touched)
        states.append(state)
    return states


def _copied(model: Model) -> Model:
    """Return a model with rows and pointers of its own."""
    state = copy.copy(model)
    state.rows, state.pointers, state.versions = list(model.rows), dict(model.pointers), list(model.versions)
    return state


# --- what is there --------------------------------------------------------------------------------------------------


def _table(replay: Replay, shop: Shop) -> None:
    """Hold the table, the kept rows and the pointers to the model."""
    found = Counter(shop.table())
    replay.expect(found == Counter(replay.model.rows), _differ("the table", found, Counter(replay.model.rows)))
    kept = Counter(shop.kept())
    replay.expect(kept == Counter(replay.model.kept), _differ("kept rows", kept, Counter(replay.model.kept)))
    pointers = shop.pointers()
    replay.expect(pointers == replay.model.pointers, f"pointers {pointers}, not {replay.model.pointers}")
    groups = Counter((row.order_date, row.channel, row.batch_id) for row in found.elements())
    doubled = [group for group, count in groups.items() if count > 1]
    replay.expect(not doubled, f"doubled: {doubled}")


def _differ(what: str, found: Counter[Any], expected: Counter[Any]) -> str:
    return f"{what}: there is {list((found - expected).elements())}, lost is {list((expected - found).elements())}"


def _reads(replay: Replay, seen: list[Seen]) -> None:
    """Hold each day of each look to what was there at one moment or another."""
    there: dict[date, set[Sums | None]] = {}
    for state in replay.states:
        sums = sums_of(state)
        for day in (*DAYS, *sums):
            there.setdefault(day, set()).add(sums.get(day))
    for look in seen:
        for day in {*look, *DAYS}:
            now = look.get(day)
            replay.expect(now in there.get(day, {None}), f"a reader saw {now} on {day}, never {there.get(day)}")


def sums_of(model: Model) -> Mapping[date, Sums]:
    """Return the sums that a reader sees."""
    days: dict[date, list[Row]] = {}
    for row in model.current:
        assert row.order_date is not None
        days.setdefault(row.order_date, []).append(row)
    return {
        day: (
            len(rows),
            sum(row.order_count or 0 for row in rows),
            sum((row.revenue or Decimal(0) for row in rows), Decimal(0)),
        )
        for day, rows in days.items()
    }
