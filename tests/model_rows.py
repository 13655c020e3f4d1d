"""Rows of orders and daily sums in plain Python: their fingerprints and how two sets of them differ.

The fingerprint is computed here from its documented rule, text of values included, and shares no code with the package.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from reslice.values import Change, Counts, Fingerprint

Value = int | Decimal | bool | date | str | None

FINGERPRINT_COLUMNS = ("channel", "has_gift", "order_count", "order_date", "revenue")


@dataclass(frozen=True, slots=True)
class Order:
    """One fact: where an order counts, and for how much. A gift has no price."""

    day: date
    channel: str | None
    price: Decimal | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the target. `batch_id` is a stamp: it names the run that wrote the row."""

    order_date: date | None
    channel: str | None
    order_count: int | None
    revenue: Decimal | None
    has_gift: bool | None
    batch_id: str | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The columns that a fingerprint covers, in name order."""
        return tuple(getattr(self, name) for name in FINGERPRINT_COLUMNS)

    @property
    def measures(self) -> tuple[int | None, Decimal | None, bool | None]:
        return self.order_count, self.revenue, self.has_gift


def text_of(value: Value) -> str:
    """Return the text of one value as the rule has it: NULL is N, anything else V and its escaped text."""
    if value is None:
        return "N"
    if isinstance(value, bool):
        return "Vtrue" if value else "Vfalse"
    if isinstance(value, Decimal):
        return f"V{value:.2f}"
    if isinstance(value, date):
        return f"V{value.year:04d}-{value.month:02d}-{value.day:02d}"
    return "V" + str(value).replace("\\", "\\\\").replace("|", "\\p")


def fingerprint(rows: Iterable[Row]) -> Fingerprint:
    """Return how many rows there are, and the sum of the first 60 bits of the md5 of each row's text."""
    hashes = []
    for row in rows:
        text = "|".join(text_of(value) for value in row.values)
        hashes.append(int.from_bytes(hashlib.md5(text.encode()).digest()[:8], "big") >> 4)
    return Fingerprint(len(hashes), sum(hashes))


def days_between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=place) for place in range((last - first).days + 1)]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a diff that moved; measures are (order_count, revenue, has_gift)."""

    change: Change
    day: date
    channel: str | None
    before: tuple[Value, ...] | None
    after: tuple[Value, ...] | None
    rows_before: int


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """One slice of a run, as the ledger lists it."""

    state: str
    base: Fingerprint
    staged: Fingerprint
    after: Fingerprint | None
    counts: Counts


@dataclass(slots=True)
class Diff:
    """The staged rows against the base, by day."""

    days: list[date]
    base: dict[date, list[Row]]
    staged: dict[date, list[Row]]

    def differs(self, day: date) -> bool:
        return Counter(row.values for row in self.base[day]) != Counter(row.values for row in self.staged[day])

    @property
    def differing(self) -> list[date]:
        return [day for day in self.days if self.differs(day)]

    @property
    def filled(self) -> list[date]:
        return [day for day in self.days if self.base[day] or self.staged[day]]

    def all_base(self) -> list[Row]:
        return [row for day in self.days for row in self.base[day]]

    def all_staged(self) -> list[Row]:
        return [row for day in self.days for row in self.staged[day]]

    def groups(self, day: date) -> list[Group]:
        """Return the groups of a day that moved; a repeated key of the base counts as changed."""
        if not self.differs(day):
            return []
        base: dict[str | None, list[Row]] = defaultdict(list)
        for row in self.base[day]:
            base[row.channel].append(row)
        staged: dict[str | None, list[Row]] = defaultdict(list)
        for row in self.staged[day]:
            staged[row.channel].append(row)
        found = []
        for channel in {*base, *staged}:
            before, after = base.get(channel, []), staged.get(channel, [])
            if not after:
                found.append(Group(Change.REMOVED, day, channel, folded(before), None, len(before)))
            elif not before:
                found.append(Group(Change.ADDED, day, channel, None, folded(after), 0))
            elif len(before) > 1 or [row.values for row in before] != [row.values for row in after]:
                found.append(Group(Change.CHANGED, day, channel, folded(before), folded(after), len(before)))
        return found

    def has_repeated(self, day: date) -> bool:
        """Whether a key stands twice among the staged rows, as only those of a restore may."""
        return len({row.channel for row in self.staged[day]}) < len(self.staged[day])

    def counts(self, day: date) -> Counts:
        changes = Counter(group.change for group in self.groups(day))
        added, changed = changes[Change.ADDED], changes[Change.CHANGED]
        keys = len({row.channel for row in self.staged[day]})
        return Counts(added, changed, changes[Change.REMOVED], keys - added - changed)


def folded(rows: list[Row]) -> tuple[Value, ...]:
    """Return the measures of the rows of one key together: numbers add up, a flag is the lowest."""
    counts = [row.order_count for row in rows if row.order_count is not None]
    flags = [row.has_gift for row in rows if row.has_gift is not None]
    return sum(counts) if counts else None, revenue_of(rows), min(flags) if flags else None


def revenue_of(rows: Iterable[Row]) -> Decimal | None:
    """Return the sum of the revenues that are not NULL; NULL when there is none."""
    found = [row.revenue for row in rows if row.revenue is not None]
    return sum(found, Decimal("0.00")) if found else None
