"""A target table, its orders and its ledger in plain Python: what every run must leave behind.

No SQL and no database. Rows are counted, not looked up: a table may hold a row twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from reslice.values import Fingerprint, State
from tests.model_rows import Diff, Group, Order, Row, SliceRecord, days_between, fingerprint, revenue_of

TOTAL_CHANGE_LIMIT = Decimal("0.5")


@dataclass(slots=True)
class RunRecord:
    """One run, as the ledger must tell it. `order` counts stagings; `diff` is None when nothing was compared."""

    id: str
    target: str
    first: date
    last: date
    approves: str = ""
    state: State = State.REQUESTED
    error: str | None = None
    order: int | None = None
    publish_order: int | None = None
    diff: Diff | None = None
    rows_after: int | None = None
    after: Fingerprint | None = None
    slices: dict[date, SliceRecord] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def overlaps(self, first: date, last: date) -> bool:
        return self.first <= last and first <= self.last


Hook = Callable[["Model"], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One run that is asked for. `hooks` happen at the n-th step, counted from 0.

    `crash_after` ends the process once that many slices are committed; None runs to the end.
    """

    target: str
    first: date
    last: date
    rewrite: bool = False
    per_slice: bool = False
    approves: str | None = None
    hooks: Mapping[int, Hook] = field(default_factory=dict)
    crash_after: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run ended: an outcome or an error kind, the steps it told, and how many abandoned runs it found."""

    outcome: str
    steps: tuple[str, ...]
    abandoned: int = 0
    run_id: str | None = None


class Refusal(Exception):
    """A run that ends without publishing; the state is what the ledger says."""

    def __init__(self, kind: str, state: State) -> None:
        super().__init__(kind)
        self.kind = kind
        self.state = state


class Crash(Exception):
    """The process is gone."""


class Model:
    """The whole of it. `guarded` names the targets that stop on guards and forbid a NULL channel."""

    def __init__(self, guarded: Iterable[str] = ()) -> None:
        self.guarded = frozenset(guarded)
        self.orders: dict[int, Order] = {}
        self.rows: list[Row] = []
        self.kept: list[tuple[str, Row]] = []
        self.runs: list[RunRecord] = []
        self.generation = 0
        self._alive: set[str] = set()
        self._stagings = 0

    # --- the table ----------------------------------------------------------------------------------------------------

    def recompute(self, day: date) -> list[Row]:
        """Return the rows that the source has for a day: one for each channel."""
        channels: dict[str | None, list[Decimal | None]] = defaultdict(list)
        for order in self.orders.values():
            if order.day == day:
                channels[order.channel].append(order.price)
        return [
            Row(day, channel, len(prices), _sum(prices), any(price is None for price in prices))
            for channel, prices in channels.items()
        ]

    def of_day(self, day: date) -> list[Row]:
        return [row for row in self.rows if row.order_date == day]

    def run_named(self, run_id: str) -> RunRecord:
        return next(run for run in self.runs if run.id == run_id)

    # --- one run ------------------------------------------------------------------------------------------------------

    def run(self, call: Call) -> Answer:
        """Do what a run must do, and return how it must end."""
        approved = self.run_named(call.approves) if call.approves is not None else None
        if approved is not None and approved.state is not State.STOPPED:
            return Answer("approval_stale", ())
        abandoned = self._abandon()
        record = RunRecord(f"r-{len(self.runs) + 1:04d}", call.target, call.first, call.last, call.approves or "")
        self.runs.append(record)
        self._alive.add(record.id)
        running = _Running(self, call, record)
        outcome = "crashed"
        try:
            outcome = running.outcome(approved)
        except Refusal as refusal:
            outcome = refusal.kind
            running.close(refusal.state, refusal.kind)
        except Crash:
            pass
        self._alive.discard(record.id)
        return Answer(outcome, tuple(running.steps), abandoned, record.id)

    def _abandon(self) -> int:
        """Close the runs whose process is gone; return how many there were."""
        gone = [run for run in self.runs if run.state is State.REQUESTED and run.id not in self._alive]
        for run in gone:
            run.state, run.error, run.publish_order = State.FAILED, "abandoned", None
        return len(gone)

    def staging(self) -> int:
        self._stagings += 1
        return self._stagings

    def later_run(self, record: RunRecord, first: date, last: date) -> bool:
        """Whether a run that staged later has already finished on an overlapping range."""
        ended = (run for run in self.runs if run.state in (State.PUBLISHED, State.UNCHANGED))
        assert record.order is not None
        return any((run.order or 0) > record.order and run.overlaps(first, last) for run in ended)

    def replace_days(self, run_id: str, diff: Diff, days: list[date]) -> None:
        """Keep the rows of `days`, and put the staged rows in their place."""
        self.kept += [(run_id, row) for row in self.rows if row.order_date in days]
        self.rows = [row for row in self.rows if row.order_date not in days]
        self.rows += [replace(row, batch_id=run_id) for day in days for row in diff.staged[day]]
        self.generation += 1


def _sum(prices: list[Decimal | None]) -> Decimal | None:
    paid = [price for price in prices if price is not None]
    return sum(paid, Decimal("0.00")) if paid else None


class _Running:
    """One run on its way through the steps."""

    def __init__(self, model: Model, call: Call, record: RunRecord) -> None:
        self.model = model
        self.call = call
        self.record = record
        self.steps: list[str] = []
        self._written: list[date] = []

    def _step(self, name: str) -> None:
        place = len(self.steps)
        self.steps.append(name)
        if place in self.call.hooks:
            self.call.hooks[place](self.model)

    def outcome(self, approved: RunRecord | None) -> str:
        """Stage, check, compare, approve and publish."""
        if self.call.crash_after == 0:
            raise Crash
        diff = self._staged()
        already = approved is not None and self._is_held_to(approved, diff)
        if already or not (diff.differing or (self.call.rewrite and diff.filled)):
            self.record.rows_after, self.record.after = len(diff.all_base()), fingerprint(diff.all_base())
            self.close(State.UNCHANGED, None)
            return "unchanged"
        if approved is None:
            self._stop(diff)
        days = diff.filled if self.call.rewrite else diff.differing
        (self._publish_each if self.call.per_slice else self._publish_whole)(diff, days)
        self._step("reading back")
        if any(fingerprint(self.model.of_day(day)) != fingerprint(diff.staged[day]) for day in days):
            return "slipped_in"
        return "published"

    def _staged(self) -> Diff:
        self._step("staging")
        days = days_between(self.call.first, self.call.last)
        self.record.order = self.model.staging()
        diff = Diff(
            days, {day: self.model.of_day(day) for day in days}, {day: self.model.recompute(day) for day in days}
        )
        self._step("checking")
        if self.call.target in self.model.guarded and any(row.channel is None for row in diff.all_staged()):
            raise Refusal("key_null", State.REFUSED)
        self._step("comparing")
        self.record.diff = diff
        return diff

    def _is_held_to(self, approved: RunRecord, diff: Diff) -> bool:
        assert approved.diff is not None
        if not diff.differing:
            return True
        if fingerprint(approved.diff.all_staged()) != fingerprint(diff.all_staged()):
            raise Refusal("approval_stale", State.REFUSED)
        if fingerprint(approved.diff.all_base()) != fingerprint(diff.all_base()):
            raise Refusal("approval_stale", State.REFUSED)
        return False

    def _stop(self, diff: Diff) -> None:
        if self.call.target not in self.model.guarded:
            return
        if any(diff.base[day] and not diff.staged[day] for day in diff.days):
            raise Refusal("empty_slice", State.STOPPED)
        base, staged = diff.all_base(), diff.all_staged()
        counts = [Decimal(sum(row.order_count or 0 for row in rows)) for rows in (base, staged)]
        revenues = [revenue_of(rows) or Decimal(0) for rows in (base, staged)]
        if any(
            before and abs(after - before) > TOTAL_CHANGE_LIMIT * abs(before) for before, after in (counts, revenues)
        ):
            raise Refusal("total_change", State.STOPPED)

    def _publish_whole(self, diff: Diff, days: list[date]) -> None:
        self._step("publishing")
        self._refuse_when_moved(diff, diff.days)
        self._replace(diff, days)
        self._finish(diff)

    def _publish_each(self, diff: Diff, days: list[date]) -> None:
        for place, day in enumerate(days, start=1):
            self._step(f"publishing {day} ({place} of {len(days)})")
            try:
                self._refuse_when_moved(diff, [day])
            except Refusal:
                if not self._written:
                    raise
                self._count_after(diff)
                raise Refusal("partly_published", State.FAILED) from None
            self._replace(diff, [day])
            if self.call.crash_after == place:
                raise Crash
        self._finish(diff)

    def _refuse_when_moved(self, diff: Diff, days: list[date]) -> None:
        if self.model.later_run(self.record, days[0], days[-1]):
            raise Refusal("later_run", State.REFUSED)
        if any(fingerprint(self.model.of_day(day)) != fingerprint(diff.base[day]) for day in days):
            raise Refusal("base_moved", State.REFUSED)

    def _replace(self, diff: Diff, days: list[date]) -> None:
        self.model.replace_days(self.record.id, diff, days)
        self.record.publish_order = self.model.generation
        self._written += days
        for day in days:
            base, staged = fingerprint(diff.base[day]), fingerprint(diff.staged[day])
            self.record.slices[day] = SliceRecord("published", base, staged, staged, diff.counts(day))
            self.record.groups += diff.groups(day)

    def _finish(self, diff: Diff) -> None:
        self._count_after(diff)
        self.close(State.PUBLISHED, None)

    def _count_after(self, diff: Diff) -> None:
        rows = [row for day in diff.days for row in (diff.staged if day in self._written else diff.base)[day]]
        self.record.rows_after, self.record.after = len(rows), fingerprint(rows)

    def close(self, state: State, error: str | None) -> None:
        """Write how the run ended, with the slices that no publish has listed."""
        self.record.state, self.record.error = state, error
        diff = self.record.diff
        if diff is None:
            return
        for day in diff.days:
            if day not in self._written:
                self.record.slices[day] = self._seen(diff, day)
        if not self._written:
            self.record.groups = [group for day in diff.days for group in diff.groups(day)]

    def _seen(self, diff: Diff, day: date) -> SliceRecord:
        base, staged = fingerprint(diff.base[day]), fingerprint(diff.staged[day])
        state = "open" if diff.differs(day) else "unchanged" if diff.base[day] else "empty"
        return SliceRecord(state, base, staged, None, diff.counts(day))
