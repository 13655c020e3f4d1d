"""Two runs of one target beside each other: what is in both, in one alone, and what is not the same.

Everything here is what the ledger holds. A group that only one run lists may have moved in the other one as well, where
that one left groups out of the ledger.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reslice.recorded import LedgerRun, LedgerSlice
from reslice.report_json import exact
from reslice.values import Check, ControlLine, GroupDiff

_TOKEN = re.compile(r"(\breslice_[a-z]+_)[0-9a-f]{12}\b")
SQL_LINES_MAX = 1000
"""Lines of the difference between statements that are told."""
SQL_LINES_READ = 4_000
"""Lines of the statements that are compared."""


class MovedBy(StrEnum):
    """Which of two runs moved a group."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class SlicePair:
    """A slice that both runs name, with the rows that each left there, or would have."""

    slice: str
    first: LedgerSlice
    second: LedgerSlice

    @property
    def is_same(self) -> bool:
        """Whether both stand for the same rows at their end."""
        return _left(self.first) == _left(self.second)

    @property
    def follows(self) -> bool:
        """Whether the second run found there what the first one left."""
        return _left(self.first) == self.second.fingerprint_base


@dataclass(frozen=True, slots=True)
class GroupPair:
    """A group that one run moved, or both."""

    first: GroupDiff | None
    second: GroupDiff | None

    @property
    def moved_by(self) -> MovedBy:
        """Which of the two lists it."""
        if self.first is None:
            return MovedBy.SECOND
        return MovedBy.FIRST if self.second is None else MovedBy.BOTH

    @property
    def any(self) -> GroupDiff:
        """The group as one of the runs has it: for its key."""
        found = self.first or self.second
        assert found is not None, "one of two runs lists it"
        return found

    @property
    def ends_differ(self) -> bool:
        """Whether both moved it, and not to the same values."""
        return self.first is not None and self.second is not None and self.first.after != self.second.after


@dataclass(frozen=True, slots=True)
class Compared:
    """Two runs, and how they differ. `checks` and `controls` are those that differ; None where a run has none."""

    first: LedgerRun
    second: LedgerRun
    slices: tuple[SlicePair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    groups: tuple[GroupPair, ...]
    checks: tuple[tuple[str, Check | None, Check | None], ...]
    controls: tuple[tuple[str, ControlLine | None, ControlLine | None], ...]
    sql: tuple[str, ...]
    sql_left_out: int


def compared(first: LedgerRun, second: LedgerRun) -> Compared:
    """Return how two runs of one target differ."""
    slices = {each.slice: each for each in first.slice_rows}, {each.slice: each for each in second.slice_rows}
    lines = _sql(first, second)
    return Compared(
        first,
        second,
        tuple(SlicePair(label, slices[0][label], slices[1][label]) for label in slices[0] if label in slices[1]),
        tuple(label for label in slices[0] if label not in slices[1]),
        tuple(label for label in slices[1] if label not in slices[0]),
        tuple(_groups(first.groups, second.groups)),
        tuple(_differing_checks(first.checks, second.checks)),
        tuple(_differing_controls(first.controls, second.controls)),
        tuple(lines[:SQL_LINES_MAX]),
        len(lines[SQL_LINES_MAX:]),
    )


def _left(each: LedgerSlice) -> str:
    """Return the rows that a slice was left with; of one that was not written, those that were recomputed."""
    return each.fingerprint_after or each.fingerprint_staged


def _groups(first: Sequence[GroupDiff], second: Sequence[GroupDiff]) -> list[GroupPair]:
    """Return every group of either run, those of both first, in the order of the first run and then of the second."""
    mine = {_key(group): group for group in first}
    theirs = {_key(group): group for group in second}
    both = [GroupPair(group, theirs[key]) for key, group in mine.items() if key in theirs]
    alone = [GroupPair(group, None) for key, group in mine.items() if key not in theirs]
    return [*both, *alone, *(GroupPair(None, group) for key, group in theirs.items() if key not in mine)]


def _key(group: GroupDiff) -> str:
    return json.dumps(exact(group.key), sort_keys=True)


def _differing_checks(
    first: Sequence[Check], second: Sequence[Check]
) -> Iterator[tuple[str, Check | None, Check | None]]:
    """Yield the rules that did not end alike; what was counted is no difference."""
    mine, theirs = _numbered(first), _numbered(second)
    for name in dict.fromkeys([*mine, *theirs]):
        pair = mine.get(name), theirs.get(name)
        if _verdict(pair[0]) != _verdict(pair[1]):
            yield name[0], *pair


def _numbered(checks: Sequence[Check]) -> dict[tuple[str, int], Check]:
    """Return the checks by their name and, where a rule is broken by several columns, by their place among these."""
    found: dict[tuple[str, int], Check] = {}
    for each in checks:
        found[each.name, len([name for name, _ in found if name == each.name])] = each
    return found


def _verdict(check: Check | None) -> tuple[bool, bool, bool] | None:
    return None if check is None else (check.ok, check.consented, check.stops)


def _differing_controls(
    first: Sequence[ControlLine], second: Sequence[ControlLine]
) -> Iterator[tuple[str, ControlLine | None, ControlLine | None]]:
    """Yield the controls of which a figure is not the same, or the verdict."""
    mine, theirs = ({(each.figure, each.name): each for each in lines} for lines in (first, second))
    for name in dict.fromkeys([*mine, *theirs]):
        if mine.get(name) != theirs.get(name):
            yield name[0], mine.get(name), theirs.get(name)


def _sql(first: LedgerRun, second: LedgerRun) -> list[str]:
    """Return the lines in which the executed statements differ, with some around them; none when they are the same."""
    mine, theirs = (_script(run).split("\n")[:SQL_LINES_READ] for run in (first, second))
    return list(difflib.unified_diff(mine, theirs, fromfile=first.id, tofile=second.id, lineterm=""))


def _script(run: LedgerRun) -> str:
    """Return the statements of a run; what names its temporary tables is left out, since no two runs have the same."""
    return _TOKEN.sub(r"\1…", "\n\n".join(run.sql).expandtabs(4))
