"""What every state of the lab must show, from the oracle alone: plain Python over the two arrays of events, no SQL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from reslice.retail import oracle
from reslice.retail.oracle import Method, Range, Start, Totals

NAMES = {
    Method.APPEND: "append",
    Method.REPLACE: "replace_slice",
    Method.UPSERT: "upsert",
    Method.INSERT_MISSING: "insert_missing",
    Method.BOUNDS_DISAGREE: "bounds_disagree",
    Method.MERGE_SCOPED_DELETE: "merge_scoped_delete",
}
TIMES = {1: "once", 2: "twice"}
Key = tuple[str, str]
SOURCE = oracle.target_at(Start.CURRENT)


@dataclass(frozen=True)
class Expected:
    """One state: the physical table before and after each run."""

    method: Method
    days: Range
    runs: int
    start: Start

    @property
    def address(self) -> str:
        return "/".join((NAMES[self.method], str(self.days), TIMES[self.runs], self.start))

    @cached_property
    def tables(self) -> list[oracle.Table]:
        return [oracle.simulate(self.start, self.method, self.days, runs=runs) for runs in range(self.runs + 1)]

    @property
    def repeats(self) -> bool:
        return oracle.repeats(self.start, self.method, self.days)

    @property
    def is_equal_in_range(self) -> bool:
        return oracle.within(self.tables[-1], self.days) == oracle.within(SOURCE, self.days)

    def in_range(self, table: oracle.Table) -> Totals:
        return oracle.totals(oracle.within(table, self.days))

    @property
    def excess(self) -> int:
        return self.in_range(self.tables[-1]).cents - self.in_range(SOURCE).cents

    @property
    def every_key(self) -> list[Key]:
        """Every key that stands in the table at any moment, or in the orders, sorted."""
        return sorted({key for table in (*self.tables, SOURCE) for key in groups(table)})

    def over_and_short(self, table: oracle.Table) -> tuple[int, int]:
        """By how many cents the groups of the range that hold too much do so, and those that hold too little."""
        there, right = (groups(oracle.within(each, self.days)) for each in (table, SOURCE))
        moved = [
            (there[key].cents if key in there else 0) - (right[key].cents if key in right else 0)
            for key in there.keys() | right.keys()
        ]
        return sum(each for each in moved if each > 0), -sum(each for each in moved if each < 0)


def groups(table: oracle.Table) -> dict[Key, Totals]:
    return {(str(day), channel): totals for (day, channel), totals in oracle.group(table).items()}


STATES = {
    each.address: each
    for each in (
        Expected(method, days, runs, start)
        for method in Method
        for start in Start
        for days in oracle.RANGES
        for runs in (1, 2)
    )
}
DEFAULT = "append/2026-01-01..2026-01-02/twice/current"
