"""Histories: who writes to one table at the same time, and with which pauses. All of it follows from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from tests.model_rows import Order, Row

D1, D2, D3, OUTSIDE = (date(2024, 3, day) for day in (1, 2, 3, 9))
DAYS = (D1, D2, D3)
"""The days that are backfilled; on the day outside of them there are rows that only live writers touch."""
CHANNELS = ("phone", "store", "web")
RANGES = ("equal", "overlapping", "disjoint")
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
METHODS = ("replace_slice", "merge", "append_version")


@dataclass(frozen=True, slots=True)
class Write:
    """One statement of a live writer. `channel` is a new one for an insert, and for a move the one it becomes."""

    kind: str
    day: date
    channel: str
    value: Decimal = Decimal(0)
    to_day: date = OUTSIDE
    to_channel: str = ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a live writer does in one transaction, seconds before each statement included."""

    writes: tuple[Write, ...]
    pauses: tuple[float, ...]
    commits: bool


@dataclass(frozen=True, slots=True)
class Writer:
    """One live writer, with the writer lock or without."""

    name: str
    is_locked: bool
    level: str
    is_autocommit: bool
    transactions: tuple[Transaction, ...]
    delay: float
    seed: int


@dataclass(frozen=True, slots=True)
class Backfill:
    """One run. `delay` is how many seconds after the others it begins; `seed` chooses where it pauses."""

    first: date
    last: date
    delay: float
    seed: int
    per_slice: bool = False
    rewrite: bool = False

    @property
    def days(self) -> frozenset[date]:
        return frozenset(day for day in DAYS if self.first <= day <= self.last)


@dataclass(frozen=True, slots=True)
class History:
    """One history. `broken` is what is taken out of every publish, so that it is not safe any more."""

    seed: int
    method: str
    ranges: str
    key: bool
    is_filled: bool
    has_ledger: bool
    lock: str
    backfills: tuple[Backfill, ...]
    writers: tuple[Writer, ...]
    broken: str = ""

    @property
    def has_unlocked(self) -> bool:
        """Whether a live writer takes no lock."""
        return any(not writer.is_locked for writer in self.writers)

    def __str__(self) -> str:
        writers = ", ".join(f"{'locked' if each.is_locked else 'live'} {each.level.lower()}" for each in self.writers)
        rows = "filled" if self.is_filled else "empty"
        known = "" if self.has_ledger else ", first ever"
        runs = f"{len(self.backfills)} {self.ranges} backfills"
        return f"seed {self.seed}: {runs} by {self.method}, {rows}{known}, {writers or 'nobody else'}"


@dataclass(slots=True)
class _Maker:
    """Chooses a history. Every value a live writer writes is its own, so that it can be told where it went."""

    chance: random.Random
    moves: bool = True
    """Whether rows are moved to other days; one that a version wrote belongs to its day."""
    written: int = 0

    def backfills(self, ranges: str, most: int) -> tuple[Backfill, ...]:
        spans = {
            "equal": [(D1, D2)] * 3,
            "overlapping": [(D1, D2), (D2, D3), (D1, D3)],
            "disjoint": [(D1, D1), (D2, D2), (D3, D3)],
        }[ranges]
        self.chance.shuffle(spans)
        return tuple(
            Backfill(
                first,
                last,
                delay=self.chance.choice((0.0, 0.0, self.chance.uniform(0, 0.05))),
                seed=self.chance.getrandbits(32),
                per_slice=self.chance.random() < 0.2,
                rewrite=self.chance.random() < 0.1,
            )
            for first, last in spans[: self.chance.randint(1 if ranges == "equal" else 2, most)]
        )

    def writer(self, number: int, *, is_locked: bool) -> Writer:
        count = self.chance.randint(1, 2)
        return Writer(
            f"live{number}",
            is_locked,
            self.chance.choice(LEVELS),
            self.chance.random() < 0.5,
            tuple(self.transaction(f"live{number}") for _ in range(count)),
            self.chance.uniform(0, 0.12),
            self.chance.getrandbits(32),
        )

    def inserting(self, number: int) -> Writer:
        """Return a writer who takes no lock and adds a row to a slice that is backfilled, again and again."""
        name = f"live{number}"
        transactions = []
        for _ in range(6):
            self.written += 1
            write = Write("insert", self.chance.choice((D1, D2)), f"{name}-{self.written}", Decimal(self.written))
            transactions.append(Transaction((write,), (self.chance.uniform(0.1, 0.8), 0.0), commits=True))
        delay = self.chance.uniform(0, 0.1)
        return Writer(name, False, LEVELS[0], True, tuple(transactions), delay, self.chance.getrandbits(32))

    def transaction(self, name: str) -> Transaction:
        groups = [(day, channel) for day in (*DAYS, OUTSIDE) for channel in CHANNELS]
        chosen = sorted(self.chance.sample(groups, self.chance.randint(1, 3)))  # one order, so that none is a deadlock
        writes = tuple(self.write(name, day, channel) for day, channel in chosen)
        pauses = tuple(self.chance.choice((0.0, self.chance.uniform(0, 0.04))) for _ in range(len(writes) + 1))
        return Transaction(writes, pauses, self.chance.random() < 0.85)

    def write(self, name: str, day: date, channel: str) -> Write:
        self.written += 1
        value = Decimal(self.chance.randint(1, 99)) + Decimal(self.written) * 1000
        kind = self.chance.choice(("insert", "update", "update", "delete", "move" if self.moves else "update"))
        own = f"{name}-{self.written}"
        if kind == "insert":
            return Write(kind, day, own, value)
        to_day = self.chance.choice([each for each in (*DAYS, OUTSIDE) if each != day])
        return Write(kind, day, channel, value, to_day, own)


def history(seed: int) -> History:
    """Return the history of a seed."""
    chance = random.Random(f"history {seed}")
    method = chance.choice(METHODS)
    maker = _Maker(chance, moves=method != "append_version")
    ranges = chance.choice(RANGES)
    locking = chance.choice(("all", "some", "none"))
    locked = [
        locking == "all" or (locking == "some" and chance.random() < 0.5) for _ in range(chance.choice((0, 1, 1, 2, 2)))
    ]
    writers = tuple(maker.writer(number, is_locked=is_locked) for number, is_locked in enumerate(locked))
    return History(
        seed,
        method,
        ranges,
        key=method != "append_version" and chance.random() < 0.5,
        is_filled=chance.random() < 0.7,
        has_ledger=chance.random() < 0.5,
        lock=chance.choice(("50ms", "5s")),
        backfills=maker.backfills(ranges, 3 if len(writers) < 2 else 2),
        writers=writers,
    )


def broken(seed: int, what: str) -> History:
    """Return a history in which what is taken out of every publish is missed: rows that are doubled, or lost."""
    chance = random.Random(f"broken {seed}")
    maker = _Maker(chance)
    backfills = [Backfill(D1, D2, 0.0, chance.getrandbits(32)) for _ in range(2)]
    writers: list[Writer] = []
    if what != "no turn":
        del backfills[1]
        writers = [maker.inserting(0)]
    method = chance.choice(METHODS[:2])
    return History(seed, method, "equal", False, what != "no turn", False, "5s", tuple(backfills), tuple(writers), what)


def facts() -> dict[int, Order]:
    """Return the orders: on every day two channels with several orders, and one that only some days have."""
    orders = [
        Order(day, channel, Decimal(price + 100 * place))
        for place, day in enumerate(DAYS)
        for channel, price in (("web", 10), ("web", 25), ("store", 7), ("phone", 3))
        if (day, channel) != (D2, "phone")
    ]
    return dict(enumerate(orders))


def old_rows() -> list[Row]:
    """Return rows that are not as the orders say: one group of each day is wrong, one is gone, one is too many."""
    rows = [
        row
        for place, day in enumerate(DAYS, start=1)
        for row in (
            Row(day, "store", 1, Decimal("9.50") * place, False, "by hand"),
            Row(day, "web", 5, Decimal(50) * place, False, "by hand"),
            Row(day, "fax", 1, Decimal(2), False, "by hand"),
        )
    ]
    return [*rows, *outside_rows()]


def outside_rows() -> list[Row]:
    """Return the rows of the day that no backfill touches."""
    return [Row(OUTSIDE, channel, 3, Decimal(77), False, "by hand") for channel in CHANNELS]
