"""Every figure of the retail example, computed again in plain Python.

No SQL, and nothing of reslice: it reads the two arrays of events, validates them, chooses a winner per order,
aggregates, and simulates append and replace, so that the product can be tested against it. The data are synthetic, not
accounting revenue. `python -m reslice.retail.oracle` prints all figures as JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent


class Event(NamedTuple):
    """One event as it arrived. Two events are repeats when all of this is equal."""

    event_id: str | None
    order_id: str | None
    order_date: str | None
    channel: str | None
    amount_cents: int | None
    source_version: int | None
    updated_at: str | None


class Fact(NamedTuple):
    """One order as it stands: the event that won, with its values read."""

    order_id: str
    order_date: date
    channel: str
    amount_cents: int
    source_version: int
    updated_at: datetime
    event_id: str


class Rejected(NamedTuple):
    """An event that is left out, with every reason, sorted. `payloads` is above one for a conflict."""

    event_id: str | None
    payloads: int
    reasons: tuple[str, ...]


class Row(NamedTuple):
    """One physical row of the target."""

    order_date: date
    channel: str
    order_count: int
    amount_cents: int


Table = tuple[Row, ...]
"""The target, sorted. Equal rows may stand in it more than once: nothing enforces its key."""


class Totals(NamedTuple):
    """What a table, or a part of it, adds up to."""

    rows: int
    orders: int
    cents: int


class Range(NamedTuple):
    """Days from `start` to `end`, both included."""

    start: date
    end: date

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.start <= day <= self.end

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


class Diff(NamedTuple):
    """How many groups one table has to gain, change, lose and keep to become another."""

    added: int
    changed: int
    removed: int
    unchanged: int


class Method(StrEnum):
    """How a recomputed range is written."""

    APPEND = "append"
    REPLACE = "replace"
    UPSERT = "upsert"
    INSERT_MISSING = "insert_missing"
    BOUNDS_DISAGREE = "bounds_disagree"
    MERGE_SCOPED_DELETE = "merge_scoped_delete"


class Start(StrEnum):
    """What the target holds when the simulated runs begin; the facts are always those after the follow-up."""

    BEFORE_FOLLOW_UP = "before_follow_up"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class SortedEvents:
    """What became of the events that arrived: repeats, rejected ones, accepted ones, and of these the winners."""

    arrivals: int
    repeats: int
    rejected: tuple[Rejected, ...]
    accepted: tuple[Fact, ...]
    current: tuple[Fact, ...]

    @property
    def superseded(self) -> int:
        """How many accepted events are not the winner of their order."""
        return len(self.accepted) - len(self.current)


RANGES = (Range(date(2026, 1, 1), date(2026, 1, 2)), Range(date(2026, 1, 2), date(2026, 1, 3)))
WHOLE = Range(date(2026, 1, 1), date(2026, 1, 3))


def read_events(name: str) -> list[Event]:
    """Return the events of one of the two files beside this module; an empty text is a missing one."""
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [
        Event(**{field: None if value == "" else value for field, value in each.items()}) for each in document["events"]
    ]


def initial_events() -> list[Event]:
    """Return the events of the first load."""
    return read_events("initial_events.json")


def all_events() -> list[Event]:
    """Return the events of the first load and of the follow-up."""
    return initial_events() + read_events("follow_up_events.json")


def read_day(text: str) -> date | None:
    """Return the calendar date written as YYYY-MM-DD, None when there is no such day."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_instant(text: str) -> datetime | None:
    """Return the instant written as YYYY-MM-DDTHH:MM:SSZ, None when there is no such instant."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def reasons_against(event: Event) -> set[str]:
    """Return every rule that one event breaks on its own, empty when it can be used."""
    reasons = {f"{field} is missing" for field, value in event._asdict().items() if value is None}
    if event.order_date is not None and read_day(event.order_date) is None:
        reasons.add(f"order_date is no calendar date: {event.order_date}")
    if event.amount_cents is not None and event.amount_cents < 0:
        reasons.add(f"amount_cents is negative: {event.amount_cents}")
    if event.updated_at is not None and read_instant(event.updated_at) is None:
        reasons.add(f"updated_at is no UTC instant: {event.updated_at}")
    return reasons


def as_fact(event: Event) -> Fact:
    """Return the values of an event against which there is no reason."""
    assert event.order_id is not None and event.channel is not None and event.event_id is not None
    assert event.amount_cents is not None and event.source_version is not None
    day, instant = read_day(event.order_date or ""), read_instant(event.updated_at or "")
    assert day is not None and instant is not None
    return Fact(event.order_id, day, event.channel, event.amount_cents, event.source_version, instant, event.event_id)


def sort_out(events: Iterable[Event]) -> SortedEvents:
    """Say what becomes of `events`, in whatever order they arrived."""
    arrived = list(events)
    payloads_by_id: dict[str | None, set[Event]] = defaultdict(set)
    for event in arrived:
        payloads_by_id[event.event_id].add(event)
    rejected: list[Rejected] = []
    accepted: list[Fact] = []
    for event_id, payloads in payloads_by_id.items():
        conflict = event_id is not None and len(payloads) > 1
        if conflict:
            reasons = {f"event_id has different payloads: {len(payloads)}"}.union(*map(reasons_against, payloads))
            rejected.append(Rejected(event_id, len(payloads), tuple(sorted(reasons))))
            continue
        for event in payloads:
            broken = reasons_against(event)
            if broken:
                rejected.append(Rejected(event_id, 1, tuple(sorted(broken))))
            else:
                accepted.append(as_fact(event))
    return SortedEvents(
        arrivals=len(arrived),
        repeats=len(arrived) - len(set(arrived)),
        rejected=tuple(sorted(rejected, key=lambda each: (each.event_id or "", each.reasons))),
        accepted=tuple(sorted(accepted)),
        current=choose_winners(accepted),
    )


def choose_winners(accepted: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return one event per order, sorted by order: the highest version, then latest instant, then greatest event id.

    All events of an order compete, whatever their day.
    """
    winners: dict[str, Fact] = {}
    for fact in accepted:
        rival = winners.get(fact.order_id)
        if rival is None or rank(fact) > rank(rival):
            winners[fact.order_id] = fact
    return tuple(sorted(winners.values()))


def rank(fact: Fact) -> tuple[int, datetime, str]:
    """Return what decides between the events of one order; the highest wins."""
    return fact.source_version, fact.updated_at, fact.event_id


def aggregate(facts: Iterable[Fact]) -> Table:
    """Return the right target for `facts`: one row per day and channel."""
    amounts: dict[tuple[date, str], list[int]] = defaultdict(list)
    for fact in facts:
        amounts[fact.order_date, fact.channel].append(fact.amount_cents)
    return tuple(sorted(Row(*key, len(each), sum(each)) for key, each in amounts.items()))


def within(table: Table, days: Range) -> Table:
    """Return the rows of `table` whose day lies in `days`."""
    return tuple(row for row in table if row.order_date in days)


def append(table: Table, source: Table, days: Range) -> Table:
    """Return `table` after the recomputed range was added to what stood there."""
    return tuple(sorted(table + within(source, days)))


def replace(table: Table, source: Table, days: Range) -> Table:
    """Return `table` after every row of the range, and no other, gave way to the recomputed range."""
    outside = tuple(row for row in table if row.order_date not in days)
    return tuple(sorted(outside + within(source, days)))


def upsert(table: Table, source: Table, days: Range) -> Table:
    """Return `table`, which has one row per key, after each recomputed row took the place of the one with its key."""
    rows = by_key(table)
    for row in within(source, days):
        rows[row.order_date, row.channel] = row
    return tuple(sorted(rows.values()))


def insert_missing(table: Table, source: Table, days: Range) -> Table:
    """Return `table`, which has one row per key, after only the recomputed rows with a new key were added."""
    rows = by_key(table)
    for row in within(source, days):
        if (row.order_date, row.channel) not in rows:
            rows[row.order_date, row.channel] = row
    return tuple(sorted(rows.values()))


def replace_with_bounds_that_disagree(table: Table, source: Table, days: Range) -> Table:
    """Return `table` after the days before the last one were removed, and the range with its last day was added."""
    kept = tuple(row for row in table if row.order_date < days.start or row.order_date >= days.end)
    return tuple(sorted(kept + within(source, days)))


def merge_with_scoped_delete(table: Table, source: Table, days: Range) -> Table:
    """Return `table`, which has one row per key, after an upsert, and without the range's keys that have no order."""
    recomputed = by_key(within(source, days))
    rows = by_key(upsert(table, source, days))
    return tuple(sorted(row for key, row in rows.items() if key[0] not in days or key in recomputed))


def by_key(table: Table) -> dict[tuple[date, str], Row]:
    """Return the rows of a table that has one row per key."""
    rows = {(row.order_date, row.channel): row for row in table}
    assert len(rows) == len(table), "a key stands in two rows"
    return rows


def totals(table: Table) -> Totals:
    """Return the rows, orders and cents of `table`, counted as a reader would: a doubled row counts twice."""
    return Totals(len(table), sum(row.order_count for row in table), sum(row.amount_cents for row in table))


def group(table: Table) -> dict[tuple[date, str], Totals]:
    """Return what a report grouped by the grain shows, and how many physical rows are behind each group."""
    rows: dict[tuple[date, str], list[Row]] = defaultdict(list)
    for row in table:
        rows[row.order_date, row.channel].append(row)
    return {key: totals(tuple(each)) for key, each in sorted(rows.items())}


def compare(before: Table, after: Table) -> Diff:
    """Return how the groups of `before` have to change to become those of `after`."""
    old, new = group(before), group(after)
    both = old.keys() & new.keys()
    unchanged = sum(old[key] == new[key] for key in both)
    return Diff(len(new.keys() - old.keys()), len(both) - unchanged, len(old.keys() - new.keys()), unchanged)


def differing_days(before: Table, after: Table) -> tuple[date, ...]:
    """Return the days on which two tables do not hold the same rows, sorted."""
    surplus = (Counter(before) - Counter(after)) + (Counter(after) - Counter(before))
    return tuple(sorted({row.order_date for row in surplus}))


def affected_days(then: Iterable[Fact], now: Iterable[Fact]) -> tuple[date, ...]:
    """Return the days in which an order that is not as it was stood or stands, sorted."""
    old = {(fact.order_id, fact.order_date, fact.channel, fact.amount_cents) for fact in then}
    new = {(fact.order_id, fact.order_date, fact.channel, fact.amount_cents) for fact in now}
    return tuple(sorted({day for _, day, _, _ in old ^ new}))


def facts_before() -> tuple[Fact, ...]:
    """Return the orders as they stood before the follow-up."""
    return sort_out(initial_events()).current


def facts_now() -> tuple[Fact, ...]:
    """Return the orders as they stand after the follow-up."""
    return sort_out(all_events()).current


def target_at(start: Start) -> Table:
    """Return what the target holds when the simulated runs begin."""
    return aggregate(facts_now() if start is Start.CURRENT else facts_before())


def simulate(start: Start, method: Method, days: Range, *, runs: int) -> Table:
    """Return the target after the range was recomputed from the current facts and written `runs` times."""
    table, source = target_at(start), aggregate(facts_now())
    for _ in range(runs):
        table = WRITES[method](table, source, days)
    return table


WRITES = {
    Method.APPEND: append,
    Method.REPLACE: replace,
    Method.UPSERT: upsert,
    Method.INSERT_MISSING: insert_missing,
    Method.BOUNDS_DISAGREE: replace_with_bounds_that_disagree,
    Method.MERGE_SCOPED_DELETE: merge_with_scoped_delete,
}


def repeats(start: Start, method: Method, days: Range) -> bool:
    """Return whether a second run leaves the same rows as the first."""
    return simulate(start, method, days, runs=1) == simulate(start, method, days, runs=2)


def events_figures(events: Iterable[Event]) -> dict[str, Any]:
    """Return the counts of events, JSON-ready."""
    outcome = sort_out(events)
    return {
        "arrivals": outcome.arrivals,
        "repeats": outcome.repeats,
        "rejected": len(outcome.rejected),
        "accepted": len(outcome.accepted),
        "superseded": outcome.superseded,
        "current": len(outcome.current),
        "reasons": {str(each.event_id): list(each.reasons) for each in outcome.rejected},
        "winners": {fact.order_id: fact.event_id for fact in outcome.current},
    }


def table_figures(table: Table) -> dict[str, Any]:
    """Return a table's totals, physical rows, groups and days, JSON-ready."""
    days = sorted({row.order_date for row in table})
    return {
        "totals": totals(table)._asdict(),
        "rows": [{**row._asdict(), "order_date": str(row.order_date)} for row in table],
        "groups": [
            {"order_date": str(day), "channel": channel, **figures._asdict()}
            for (day, channel), figures in group(table).items()
        ],
        "days": {str(day): totals(within(table, Range(day, day)))._asdict() for day in days},
    }


def plan_figures(start: Start, days: Range) -> dict[str, Any]:
    """Return what a replace of the range would do from `start`, JSON-ready."""
    before, after = target_at(start), simulate(start, Method.REPLACE, days, runs=1)
    return {
        "start": start,
        "range": str(days),
        **compare(within(before, days), within(after, days))._asdict(),
        "range_before": totals(within(before, days))._asdict(),
        "range_after": totals(within(after, days))._asdict(),
        "table_before": totals(before)._asdict(),
        "table_after": totals(after)._asdict(),
        "differing_days_left": [str(day) for day in differing_days(after, target_at(Start.CURRENT))],
    }


def figures() -> dict[str, Any]:
    """Return every figure of the example, JSON-ready."""
    before, now = target_at(Start.BEFORE_FOLLOW_UP), target_at(Start.CURRENT)
    return {
        "note": "Synthetic data, not accounting revenue.",
        "events": {"initial": events_figures(initial_events()), "all": events_figures(all_events())},
        "target_before_follow_up": table_figures(before),
        "current_facts": table_figures(now),
        "differing_days": [str(day) for day in differing_days(before, now)],
        "affected_days": [str(day) for day in affected_days(facts_before(), facts_now())],
        "plans": [plan_figures(start, days) for start in Start for days in (*RANGES, WHOLE)],
        "runs": [
            {"start": start, "method": method, "range": str(days), "runs": runs}
            | table_figures(simulate(start, method, days, runs=runs))
            for start in Start
            for method in Method
            for days in RANGES
            for runs in (1, 2)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(figures(), indent=2))
