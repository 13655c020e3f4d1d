"""What can be chosen in the lab: a pattern, a closed range, one run or two, and what the table holds at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Pattern(StrEnum):
    """How a recomputed range is written. The value is the name of its sketch."""

    APPEND = "append"
    REPLACE_SLICE = "replace_slice"
    UPSERT = "upsert"
    INSERT_MISSING = "insert_missing"
    BOUNDS_DISAGREE = "bounds_disagree"
    MERGE_SCOPED_DELETE = "merge_scoped_delete"

    @property
    def needs_key(self) -> bool:
        """Whether its SQL is only understood on a table whose key the database enforces."""
        return self in (Pattern.UPSERT, Pattern.INSERT_MISSING)


class Start(StrEnum):
    """What the table holds when the runs begin. The orders are always those after the follow-up."""

    CURRENT = "current"
    BEFORE_FOLLOW_UP = "before_follow_up"


@dataclass(frozen=True, slots=True)
class Days:
    """Days from `start` to `end`, both included."""

    start: date
    end: date

    def __contains__(self, day: date) -> bool:
        return self.start <= day <= self.end

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


FIRST, SECOND, THIRD = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)
ALL_DAYS = (FIRST, SECOND, THIRD)
RANGES = (Days(FIRST, SECOND), Days(SECOND, THIRD))
TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One state of the page. `address` is its place in the page, and the URL's hash."""

    pattern: Pattern
    days: Days
    runs: int
    start: Start

    @property
    def address(self) -> str:
        """What stands behind the # of the URL."""
        return f"{self.pattern}/{self.days}/{TIMES[self.runs]}/{self.start}"


DEFAULT = Choice(Pattern.APPEND, RANGES[0], 2, Start.CURRENT)
"""The accident."""


def every_choice() -> Iterator[Choice]:
    """Yield all that can be chosen, in the order of the page."""
    for pattern in Pattern:
        for start in Start:
            for days in RANGES:
                for runs in TIMES:
                    yield Choice(pattern, days, runs, start)
