"""What doctor says: one finding per check, and how each ended. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

NAMED_MAX = 5


class Health(StrEnum):
    """How one thing is; advice is about something that is right as it is, and could be better."""

    OK = "ok"
    ADVICE = "advice"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: of a target, or of the database (None). `next` is a command, a statement, or words; empty when ok."""

    target: str | None
    name: str
    state: Health
    found: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What doctor found, in order: of the database, then of each target."""

    engine: str
    version: str
    checks: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong; there may be warnings."""
        return not any(check.state is Health.WRONG for check in self.checks)

    def count(self, state: Health) -> int:
        """Return how many checks ended so."""
        return sum(check.state is state for check in self.checks)


def some(names: Sequence[str]) -> str:
    """Return the first few of names, and how many more there are."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def counted(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
