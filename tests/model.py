"""A target table, its orders and its ledger in plain Python: what every run must leave behind.

No SQL and no database. Rows are counted, not looked up: a table may hold a row twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from reslice.values import Fingerprint, State
from tests.model_rows import Diff, Group, Order, Row, SliceRecord, days_between, fingerprint, revenue_of

TOTAL_CHANGE_LIMIT = Decimal("0.5")


@dataclass(slots=True)
class RunRecord:
    """One run, as the ledger must tell it. `order` counts stagings; `diff` is None when nothing was compared.

    `days` are those it covers, `requested` is the moment it was asked for, `fired` are the guards that stopped it.
    """

    id: str
    target: str
    first: date
    last: date
    approves: str = ""
    restores: str = ""
    days: list[date] = field(default_factory=list)
    requested: int = 0
    fired: frozenset[str] = frozenset()
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

    `crash_after` ends the process once that many slices are committed; None runs to the end. With `restores` it puts
    back what that run replaced from `first` to `last`.
    """

    target: str
    first: date
    last: date
    rewrite: bool = False
    per_slice: bool = False
    approves: str | None = None
    restores: str | None = None
    hooks: Mapping[int, Hook] = field(default_factory=dict)
    crash_after: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run ended: an outcome or an error kind, the steps it told, and how many abandoned runs it found."""

    outcome: str
    steps: tuple[str, ...]
    abandoned: int = 0
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A move of a day's pointer by a run, from one version to another."""

    run: str
    day: date
    version: str
    before: str


@dataclass(frozen=True, slots=True)
class Word:
    """What a run had to say about a day, and when: it wrote it, or it found it as its source was."""

    run: str
    at: int
    is_restore: bool
    is_write: bool
    has_moved: bool


class Refusal(Exception):
    """A run that ends without publishing; the state is what the ledger says."""

    def __init__(self, kind: str, state: State) -> None:
        super().__init__(kind)
        self.kind = kind
        self.state = state


class Crash(Exception):
    """The process is gone."""


class Model:
    """The whole of it. `guarded` names the targets that stop on guards and forbid a NULL channel.

    `looks_again` says that a run which finds nothing to do looks once more before it says so, in its turn.
    """

    def __init__(
        self, guarded: Iterable[str] = (), method: str = "replace_slice", *, looks_again: bool = False
    ) -> None:
        self.guarded = frozenset(guarded)
        self.looks_again = looks_again
        self.method = method
        self.orders: dict[int, Order] = {}
        self.rows: list[Row] = []
        self.kept: list[tuple[str, Row]] = []
        self.runs: list[RunRecord] = []
        self.generation = 0
        self.pointers: dict[date, str] = {}
        self.versions: list[Version] = []
        self.words: dict[date, list[Word]] = defaultdict(list)
        self._clock = 0
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
        """Return the rows of a day that readers read."""
        return self.of_version(day, self.pointers.get(day, ""))

    def of_version(self, day: date, version: str) -> list[Row]:
        """Return the rows of one version of a day; the one without a name has the rows that no version wrote."""
        return [row for row in self.rows if row.order_date == day and self._version_of(row) == version]

    def _version_of(self, row: Row) -> str:
        return row.batch_id or "" if any(each.version == row.batch_id for each in self.versions) else ""

    @property
    def current(self) -> list[Row]:
        """Return every row that readers read."""
        return [row for row in self.rows if self._version_of(row) == self._pointed(row.order_date)]

    def _pointed(self, day: date | None) -> str:
        return "" if day is None else self.pointers.get(day, "")

    def run_named(self, run_id: str) -> RunRecord:
        return next(run for run in self.runs if run.id == run_id)

    # --- one run ------------------------------------------------------------------------------------------------------

    def run(self, call: Call) -> Answer:
        """Do what a run must do, and return how it must end."""
        approved = self.run_named(call.approves) if call.approves is not None else None
        if approved is not None and approved.state is not State.STOPPED:
            return Answer("approval_stale", ())
        days = days_between(call.first, call.last)
        if call.restores is not None:
            days = [day for day in days if self.is_published(call.restores, day)]
            if not days:
                return Answer("nothing_to_restore", ())
        abandoned = self._abandon()
        record = RunRecord(f"r-{len(self.runs) + 1:04d}", call.target, days[0], days[-1], call.approves or "")
        record.restores, record.days, record.requested = call.restores or "", days, self.tick()
        self.runs.append(record)
        self._alive.add(record.id)
        running = _Restoring(self, call, record) if call.restores else _Running(self, call, record)
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

    def is_published(self, run_id: str, day: date) -> bool:
        """Whether a run has replaced a day."""
        slices = self.run_named(run_id).slices
        return day in slices and slices[day].state == "published"

    def tick(self) -> int:
        """Return a moment later than every other."""
        self._clock += 1
        return self._clock

    def staging(self) -> int:
        self._stagings += 1
        return self._stagings

    def later_run(self, record: RunRecord, first: date, last: date) -> bool:
        """Whether a run that staged later has already finished on an overlapping range."""
        ended = (run for run in self.runs if run.state in (State.PUBLISHED, State.UNCHANGED) and not run.restores)
        assert record.order is not None
        return any((run.order or 0) > record.order and run.overlaps(first, last) for run in ended)

    def replace_days(self, record: RunRecord, diff: Diff, days: list[date]) -> None:
        """Put the staged rows of `days` in the place of those that are there, as the method does it."""
        self.generation += 1
        if self.method == "append_version":
            self._point(record, diff, days)
            return
        self.kept += [(record.id, row) for row in self.rows if row.order_date in days]
        repeated = any(diff.has_repeated(day) for day in diff.days)
        stay = [] if self.method == "replace_slice" or repeated else self._stay(diff, days)
        self.rows = [row for row in self.rows if row.order_date not in days] + stay
        left = {(row.order_date, row.channel) for row in stay}
        written = [row for day in days for row in diff.staged[day] if (day, row.channel) not in left]
        self.rows += written if record.restores else [replace(row, batch_id=record.id) for row in written]

    def _stay(self, diff: Diff, days: list[date]) -> list[Row]:
        """Return the rows that merge leaves as they are: the one row of a group that is not to change."""
        stay = []
        for day in days:
            if not diff.differs(day):
                continue
            moved = {group.channel for group in diff.groups(day)}
            stay += [row for row in self.of_day(day) if row.channel not in moved]
        return stay

    def _point(self, record: RunRecord, diff: Diff, days: list[date]) -> None:
        """Add the staged rows as a version and make it the current one; a restore only makes an earlier one so."""
        for day in days:
            version = record.id
            if record.restores:
                version = self.version_before(record.restores, day)
            else:
                self.rows += [replace(row, batch_id=record.id) for row in diff.staged[day]]
            self.versions.append(Version(record.id, day, version, self.pointers.get(day, "")))
            self.pointers[day] = version

    def version_before(self, run_id: str, day: date) -> str:
        """Return the version of a day that was current until a run moved on from it."""
        return next(each.before for each in self.versions if (each.run, each.day) == (run_id, day))

    # --- restores -----------------------------------------------------------------------------------------------------

    def replaced(self, run_id: str, day: date) -> list[Row]:
        """Return the rows of a day that a run replaced, as far as they are still there."""
        if self.method == "append_version":
            return self.of_version(day, self.version_before(run_id, day))
        return [row for kept_by, row in self.kept if kept_by == run_id and row.order_date == day]

    def is_restored(self, day: date) -> bool:
        """Whether the last word on a day is a restore: nobody has written it, or found it right, since."""
        words = self.words[day]
        return bool(words) and max(words, key=lambda word: (word.at, word.run)).is_restore

    def holder(self, day: date, asked: str) -> str:
        """Return the run whose rows a day holds, of `asked` and those after it; what was undone does not count."""
        writes = [word for word in self.words[day] if word.is_write and (word.has_moved or word.run == asked)]
        writes = writes[next(place for place, word in enumerate(writes) if word.run == asked) :]
        while writes[-1].run != asked and writes[-1].is_restore:
            undone = self.run_named(writes[-1].run).restores
            places = [place for place, word in enumerate(writes) if word.run == undone]
            if not places:
                break
            writes = writes[: places[0]]
            if not writes:
                return asked
        return writes[-1].run


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
            return self._unchanged(diff)
        self._stop(diff, approved)
        days = diff.filled if self.call.rewrite else diff.differing
        (self._publish_each if self.call.per_slice else self._publish_whole)(diff, days)
        return self._read_back(diff, days)

    def _read_back(self, diff: Diff, days: list[date]) -> str:
        """Look at the days once more: what is not as it was staged has slipped in, unless others came next in order."""
        last = self.model.generation
        self._step("reading back")
        if self.model.generation != last or all(self._holds(diff, day) for day in days):
            return self.record.state.value
        return "slipped_in"

    def _holds(self, diff: Diff, day: date) -> bool:
        if fingerprint(self.model.of_day(day)) != fingerprint(diff.staged[day]):
            return False
        if self.model.method != "append_version":
            return True
        before = self.model.of_version(day, self.model.version_before(self.record.id, day))
        return fingerprint(before) == fingerprint(diff.base[day])

    def _staged(self) -> Diff:
        self._step("staging")
        days = self.record.days
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
        if fingerprint(approved.diff.all_staged()) != fingerprint(diff.all_staged()):
            raise Refusal("approval_stale", State.REFUSED)
        if not diff.differing:
            return True
        if fingerprint(approved.diff.all_base()) != fingerprint(diff.all_base()):
            raise Refusal("approval_stale", State.REFUSED)
        return False

    def _stop(self, diff: Diff, approved: RunRecord | None) -> None:
        """Stop on the first guard that fires and that nobody has consented to."""
        fired = list(self._firing(diff)) if self.call.target in self.model.guarded else []
        self.record.fired = frozenset(fired)
        consented = approved.fired if approved else frozenset()
        for guard in fired:
            if guard not in consented:
                raise Refusal(guard, State.STOPPED)

    def _firing(self, diff: Diff) -> Iterator[str]:
        if any(diff.base[day] and not diff.staged[day] for day in diff.days):
            yield "empty_slice"
        base, staged = diff.all_base(), diff.all_staged()
        counts = [Decimal(sum(row.order_count or 0 for row in rows)) for rows in (base, staged)]
        revenues = [revenue_of(rows) or Decimal(0) for rows in (base, staged)]
        if any(
            before and abs(after - before) > TOTAL_CHANGE_LIMIT * abs(before) for before, after in (counts, revenues)
        ):
            yield "total_change"
        if any(self.model.is_restored(day) for day in diff.differing):
            yield "restored"

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

    def _unchanged(self, diff: Diff) -> str:
        if self.model.looks_again:
            self._refuse_when_other(diff, diff.days)
        self.record.rows_after, self.record.after = len(diff.all_base()), fingerprint(diff.all_base())
        self.close(State.UNCHANGED, None)
        return "unchanged"

    def _refuse_when_moved(self, diff: Diff, days: list[date]) -> None:
        if self.model.later_run(self.record, days[0], days[-1]):
            raise Refusal("later_run", State.REFUSED)
        self._refuse_when_other(diff, days)

    def _refuse_when_other(self, diff: Diff, days: list[date]) -> None:
        if any(fingerprint(self.model.of_day(day)) != fingerprint(diff.base[day]) for day in days):
            raise Refusal("base_moved", State.REFUSED)

    def _replace(self, diff: Diff, days: list[date]) -> None:
        self.model.replace_days(self.record, diff, days)
        self.record.publish_order = self.model.generation
        self._written += days
        for day in days:
            base, staged = fingerprint(diff.base[day]), fingerprint(diff.staged[day])
            self.record.slices[day] = SliceRecord("published", base, staged, staged, diff.counts(day))
            self.record.groups += diff.groups(day)
            self._say(day, self.model.tick(), is_write=True, has_moved=base != staged)

    def _say(self, day: date, at: int, *, is_write: bool, has_moved: bool) -> None:
        word = Word(self.record.id, at, bool(self.record.restores), is_write, has_moved)
        self.model.words[day].append(word)

    def _finish(self, diff: Diff) -> None:
        self._count_after(diff)
        self.close(State.RESTORED if self.record.restores else State.PUBLISHED, None)

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
                is_said = state in (State.PUBLISHED, State.UNCHANGED) and not self.record.restores
                if is_said and self.record.slices[day].state != "open":
                    self._say(day, self.record.requested, is_write=False, has_moved=False)
        if not self._written:
            self.record.groups = [group for day in diff.days for group in diff.groups(day)]

    def _seen(self, diff: Diff, day: date) -> SliceRecord:
        base, staged = fingerprint(diff.base[day]), fingerprint(diff.staged[day])
        state = "open" if diff.differs(day) else "unchanged" if diff.base[day] else "empty"
        return SliceRecord(state, base, staged, None, diff.counts(day))


class _Restoring(_Running):
    """One restore on its way: what a run replaced is staged, and held to what was recorded of it."""

    def outcome(self, approved: RunRecord | None) -> str:
        """Stage what was replaced, compare, refuse what is not as the run left it, and publish."""
        if self.call.crash_after == 0:
            raise Crash
        diff = self._staged()
        self._step("checking")
        self._refuse(diff, self.model.run_named(self.record.restores))
        if not diff.differing:
            return self._unchanged(diff)
        self._publish_whole(diff, diff.differing)
        return self._read_back(diff, diff.differing)

    def _replace(self, diff: Diff, days: list[date]) -> None:
        """A version is pointed at where it stands: one that was changed after it was staged is not what was wanted."""
        there = [row for day in days for row in self.model.replaced(self.record.restores, day)]
        if fingerprint(there) != fingerprint([row for day in days for row in diff.staged[day]]):
            raise Refusal("not_as_staged", State.REFUSED)
        super()._replace(diff, days)

    def _staged(self) -> Diff:
        self._step("staging")
        days = self.record.days
        self.record.order = self.model.staging()
        diff = Diff(
            days,
            {day: self.model.of_day(day) for day in days},
            {day: self.model.replaced(self.record.restores, day) for day in days},
        )
        self._step("comparing")
        self.record.diff = diff
        return diff

    def _refuse(self, diff: Diff, undone: RunRecord) -> None:
        if any(fingerprint(diff.staged[day]) != undone.slices[day].base for day in diff.days):
            raise Refusal("kept_gone", State.REFUSED)
        holders = {day: self.model.holder(day, undone.id) for day in diff.differing}
        if any(holder != undone.id for holder in holders.values()):
            raise Refusal("later_run", State.REFUSED)
        if any(fingerprint(diff.base[day]) != undone.slices[day].after for day in diff.differing):
            raise Refusal("changed_since_run", State.REFUSED)
