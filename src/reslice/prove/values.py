"""What a proof is asked, and what it answers, as frozen values without a connection.

Two questions are never mixed: does the command repeat, and is the table equal to its source? A third looks at the rows
themselves: repeated keys, NULL keys, and rows outside the range that moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from reslice.contract import Contract, SliceColumn
from reslice.ranges import Scope
from reslice.values import Fingerprint, Number


class Verdict(StrEnum):
    """What two runs of a command have shown."""

    PROVEN = "proven"
    STILL_WRONG = "repeats, still wrong"
    NOT_SAFE = "repeats, not safe"
    NOT_REPEATABLE = "not repeatable"
    NOT_PROVEN = "not proven"


class Group(StrEnum):
    """What is wrong with a group, or how it moved."""

    DOUBLED = "doubled"
    STALE = "stale"
    DIFFERS = "differs"
    MISSING = "missing"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    OUTSIDE = "outside the range"
    REPEATED_KEY = "repeated key"
    NULL_KEY = "NULL key"


class Between(StrEnum):
    """Which two states of the table a group was compared in."""

    RUNS = "runs"
    SOURCE = "source"
    OUTSIDE = "outside"
    KEYS = "keys"


@dataclass(frozen=True, slots=True)
class Subject:
    """The table that is looked at, its grain, and the range that the command is meant to write.

    `contract` is None where the command line alone says what the table is; then no source is known. `connection` is
    its URL then, where that may be shown as it is and no contract file has it.
    """

    name: str
    table: str
    grain: tuple[str, ...]
    contract: Contract | None = None
    slice: SliceColumn | None = None
    scope: Scope | None = None
    ignored: tuple[str, ...] = ()
    connection: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A SQL file that is run statement by statement, with a value for each `:name` in it."""

    path: Path
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """What is run, how often, and where. `words` are those of the command; a script stands in their place."""

    words: tuple[str, ...]
    script: Script | None = None
    times: int = 2
    timeout: timedelta | None = None
    keep: bool = False
    in_place: bool = False
    crash: bool = False
    at_once: bool = False
    tries: int = 5
    seed: int | None = None

    @property
    def shown(self) -> str:
        """The command as a person reads it."""
        import shlex

        return f"--sql {shlex.quote(str(self.script.path))}" if self.script is not None else shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class State:
    """The rows of the table at one time: how many, and a digest of what is compared.

    `inside` counts the rows of the range, and `totals` are the sums over them; where no range is named, of all rows.
    """

    rows: int
    inside: int
    fingerprint: Fingerprint
    totals: Mapping[str, Number | None]


@dataclass(frozen=True, slots=True)
class Taken:
    """One run of the command: how long it took, what it said, and the table after it.

    `wrote` says whether anything of the database was written at all; None where that is not known. `idle` is after how
    many seconds the command was seen at work, where that was looked for.
    """

    number: int
    seconds: float
    state: State
    output: str = ""
    wrote: bool | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """One group that is not the same in two states. Values are JSON-ready; sums where a key stands in several rows."""

    kind: Group
    between: Between
    key: Mapping[str, Any]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    rows_before: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two states compared at the grain: how many groups of each kind, and the first of them."""

    between: Between
    counts: Mapping[Group, int] = field(default_factory=dict)
    groups: tuple[Moved, ...] = ()
    columns: tuple[str, ...] = ()
    """The columns outside the grain that differ in groups of one row on both sides."""
    run: int = 0
    """The later run that run 1 was compared with: the first that left other rows; 0 where no runs were compared."""

    @property
    def count(self) -> int:
        """How many groups are not the same."""
        return sum(self.counts.values())

    @property
    def left_out(self) -> int:
        """How many of them are not in `groups`."""
        return self.count - len(self.groups)


@dataclass(frozen=True, slots=True)
class Try:
    """One command that was killed: after how long, and what the table was then: before, after or torn."""

    seconds: float
    ended: bool
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Crash:
    """What became of the table when the command was killed. The seed makes the same moments again."""

    seed: int
    tries: tuple[Try, ...]

    @property
    def ok(self) -> bool:
        """Whether the table was as before or as after the command each time."""
        return all(each.table != "torn" for each in self.tries)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two commands started at once: their exit codes, what one that failed said, and the table after both.

    `is_same` says that the table is as after one of them. `was_apart` says that one could not open the database while
    the other had it: they were not at work at the same time.
    """

    codes: tuple[int, int]
    state: State
    is_same: bool
    said: str = ""
    was_apart: bool = False


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What two commands at once left behind, each time in a fresh sandbox."""

    pairs: tuple[Pair, ...]
    keys: Comparison
    """The repeated keys of the first pair that left another table."""

    @property
    def ok(self) -> bool | None:
        """Whether the table was as after one command each time; None where no two were at work at the same time."""
        if not all(each.is_same for each in self.pairs):
            return False
        return True if self.together else None

    @property
    def together(self) -> int:
        """How many pairs were at work at the same time, as far as is known."""
        return sum(not each.was_apart for each in self.pairs)


@dataclass(frozen=True, slots=True)
class Source:
    """What the source of the contract gives, beside the table after the last run.

    `error` says why it could not be compared; `comparison` is None then. `slices_differing` counts the slices that
    `status` would name.
    """

    scope: Scope | None = None
    state: State | None = None
    comparison: Comparison | None = None
    slices_differing: int = 0
    error: str = ""

    @property
    def is_equal(self) -> bool | None:
        """Whether the table holds what the source gives; None where that is not known."""
        return None if self.comparison is None else not (self.comparison.count or self.slices_differing)


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found when a command was run again. `kept` is where the sandbox is, when it was to be kept."""

    subject: Subject
    task: Task
    resolved: str
    place: str
    before: State
    runs: tuple[Taken, ...]
    between_runs: Comparison
    outside: Comparison
    keys: Comparison
    source: Source | None = None
    columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    stamps_moved: tuple[str, ...] = ()
    crash: Crash | None = None
    at_once: AtOnce | None = None
    real_changed: str = ""
    kept: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def did_nothing(self) -> bool:
        """Whether the command wrote nothing at all, so that there is nothing that could have been doubled."""
        return self.is_as_before and not any(each.wrote for each in self.runs)

    @property
    def is_as_before(self) -> bool:
        """Whether the table holds after every run what it held before the first."""
        return all(each.state.fingerprint == self.before.fingerprint for each in self.runs)

    @property
    def repeatable(self) -> bool | None:
        """Whether every later run left what the first one left; None where the command wrote nothing."""
        if self.between_runs.count:
            return False
        return None if self.did_nothing and self.equals_source is not True else True

    @property
    def equals_source(self) -> bool | None:
        """Whether the table holds what its source gives; None where no source is known, or could not be compared."""
        return None if self.source is None else self.source.is_equal

    @property
    def is_wrong(self) -> bool:
        """Whether the rows themselves are not what they should be, however often the command repeats."""
        return self.equals_source is False or bool(self.outside.count or self._faulty_keys)

    @property
    def is_safe(self) -> bool:
        """Whether the table was old or new each time the command was killed, and never wrong after two at once."""
        return (self.crash is None or self.crash.ok) and (self.at_once is None or self.at_once.ok is not False)

    @property
    def _faulty_keys(self) -> int:
        nulls = 0 if self.subject.contract is None else self.keys.counts.get(Group.NULL_KEY, 0)
        return self.keys.counts.get(Group.REPEATED_KEY, 0) + nulls

    @property
    def verdict(self) -> Verdict:
        """The answer in a word; the most serious one where there are several."""
        if self.repeatable is None:
            return Verdict.NOT_PROVEN
        if not self.repeatable:
            return Verdict.NOT_REPEATABLE
        if self.is_wrong:
            return Verdict.STILL_WRONG
        if not self.is_safe:
            return Verdict.NOT_SAFE
        is_source_unknown = self.source is not None and self.source.is_equal is None
        return Verdict.NOT_PROVEN if is_source_unknown else Verdict.PROVEN

    @property
    def ok(self) -> bool:
        """Whether everything that was asked has a good answer."""
        return self.verdict is Verdict.PROVEN

    @property
    def exit_code(self) -> int:
        """What a command line ends with."""
        return 0 if self.ok else 1
