"""How the slices of a target stand: by the last word of the ledger, and by the last comparison that was asked for.

A ledger is only ever added to, so that what was heard of it once is remembered while the studio runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from reslice.contract import Contract
from reslice.ledger import overview
from reslice.ledger.overview import SliceWord, Unreconciled
from reslice.values import Kind, Run, SliceState

if TYPE_CHECKING:
    from reslice.engines.base import Engine
    from reslice.engines.session import Session


class Standing(StrEnum):
    """How a slice stands, in the words of `status` and of the ledger."""

    VERIFIED = "verified"
    PUBLISHED = "published"
    RESTORED = "restored"
    EQUAL = "equal"
    EMPTY = "empty"
    DIFFERS = "differs"
    MISSING = "missing"
    EXTRA = "extra"
    UNRECONCILED = "not reconciled"
    UNKNOWN = "no run"


MEANINGS: Mapping[Standing, str] = {
    Standing.VERIFIED: "a later run found the same rows",
    Standing.PUBLISHED: "a run wrote it",
    Standing.RESTORED: "put back as it was before a run",
    Standing.EQUAL: "equal to the source",
    Standing.EMPTY: "no rows in target or source",
    Standing.DIFFERS: "the source gives other rows",
    Standing.MISSING: "the source has rows, the target none",
    Standing.EXTRA: "the target has rows, the source none",
    Standing.UNRECONCILED: "a figure of the control differs",
    Standing.UNKNOWN: "the ledger has no word on it",
}
EXCEPTIONS = (Standing.DIFFERS, Standing.MISSING, Standing.EXTRA, Standing.UNRECONCILED)
"""What somebody should look at."""


@dataclass(frozen=True, slots=True)
class Stand:
    """How one slice stands, who says so, and when that was. Without a `run` a comparison of the studio says it."""

    state: Standing
    run: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with the source that was asked for: its answer, and when it was asked."""

    run: Run
    at: datetime
    unreconciled: frozenset[str] = frozenset()

    @property
    def states(self) -> Mapping[str, Standing]:
        """How each slice that was compared stands; those without rows on either side are empty."""
        found = dict.fromkeys(self.unreconciled, Standing.UNRECONCILED)
        diff = self.run.diff
        if diff is None:
            return found
        return {each.label: _OF_STATUS[each.state] for each in diff.slices} | found


_OF_STATUS = {
    SliceState.EQUAL: Standing.EQUAL,
    SliceState.DIFFERS: Standing.DIFFERS,
    SliceState.MISSING: Standing.MISSING,
    SliceState.EXTRA: Standing.EXTRA,
}


@dataclass(slots=True)
class _Heard:
    """What was heard of one target in one ledger; `run` and `mark` tell whether the ledger is still the same one."""

    run: str = ""
    mark: str | None = None
    through: int = 0
    words: dict[str, SliceWord] = field(default_factory=dict)
    unreconciled: dict[str, Unreconciled] = field(default_factory=dict)

    def add(self, heard: overview.Heard) -> None:
        """Take in what is new; of two words on a slice the later one stays."""
        self.unreconciled |= {each.run: each for each in heard.unreconciled}
        for word in heard.words:
            before = self.words.get(word.slice)
            if before is None or (before.at, before.number) <= (word.at, word.number):
                self.words[word.slice] = word
        self.through = heard.through


class Words:
    """What the ledgers say of slices, remembered between requests."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str, str], _Heard] = {}
        self._lock = threading.Lock()

    def stands(
        self, engine: Engine, contract: Contract, compared: Compared | None, newest: int | None = None
    ) -> dict[str, Stand]:
        """Return how each slice of a target stands of which anything is known.

        Where the number of its `newest` run is known (0 where it has none), and was heard before, the ledger is not
        asked what is new.
        """
        with self._lock:
            heard = engine.ledger.look(
                contract.ledger.schema, lambda session, where, _absent: self._hear(session, where, contract, newest)
            )
            words = {label: word for each in heard for label, word in each.words.items()}
            return stands(words, [refusal for each in heard for refusal in each.unreconciled.values()], compared)

    def _hear(self, session: Session, where: str, contract: Contract, newest: int | None) -> _Heard:
        if newest == 0:
            return _Heard()
        name, unit = contract.name, contract.slice.unit.value
        heard = self._heard.get((where, name, unit))
        if heard is None or heard.mark is None or overview.mark(session, where, heard.run) != heard.mark:
            heard = self._heard[where, name, unit] = _Heard()
        elif newest is not None and newest <= heard.through:
            return heard
        heard.add(overview.hear(session, where, name, unit, heard.through))
        if heard.mark is None and heard.words:
            heard.run = next(iter(heard.words.values())).run
            heard.mark = overview.mark(session, where, heard.run)
        return heard


def stands(
    words: Mapping[str, SliceWord], refused: Iterable[Unreconciled], compared: Compared | None
) -> dict[str, Stand]:
    """Return how each slice stands of which anything is known: what was said last holds."""
    found = {label: Stand(_of_word(word), word.run, word.at) for label, word in words.items()}
    for refusal in sorted(refused, key=lambda each: each.number):
        for label in refusal.slices:
            before = found.get(label)
            if before is None or before.at is None or before.at < refusal.at:
                found[label] = Stand(Standing.UNRECONCILED, refusal.run, refusal.at)
    if compared is not None:
        _compare(found, compared)
    return found


def _compare(found: dict[str, Stand], compared: Compared) -> None:
    """Let a comparison have its say on the slices of which nothing has been said since."""
    for label, state in compared.states.items():
        before = found.get(label)
        if before is not None and before.at is not None and before.at > compared.at:
            continue
        is_quiet = before is not None and before.state not in (*EXCEPTIONS, Standing.UNKNOWN, Standing.EMPTY)
        if state is Standing.EQUAL and is_quiet:
            continue
        found[label] = Stand(state, "", compared.at)


def _of_word(word: SliceWord) -> Standing:
    if word.kind == Kind.RESTORE:
        return Standing.RESTORED
    match word.state:
        case "published":
            return Standing.PUBLISHED
        case "unchanged":
            return Standing.VERIFIED
        case "empty":
            return Standing.EMPTY
    if word.has_base == word.has_staged:
        return Standing.DIFFERS
    return Standing.MISSING if word.has_staged else Standing.EXTRA


def counts(found: Mapping[str, Stand]) -> dict[Standing, int]:
    """Return how many slices stand how, every state said."""
    counter = Counter(each.state for each in found.values())
    return {state: counter[state] for state in Standing}
