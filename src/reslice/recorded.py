"""What the ledger says of runs that were: who wrote a slice, which versions there are, what was let go of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reslice.values import Check, Consent, ControlLine, Counts, Fingerprint, GroupDiff, State, Total


@dataclass(frozen=True, slots=True)
class RestoredSlice:
    """A slice whose last word in the ledger is a restore: by which run, and what the run it undid had put there."""

    run: str
    undone: str
    left: Fingerprint


@dataclass(frozen=True, slots=True)
class SliceWrite:
    """One time that a run wrote a slice, as the ledger tells it. `restores` names the run it undid, or is empty."""

    run: str
    slice: str
    restores: str


@dataclass(frozen=True, slots=True)
class SliceRows:
    """The rows that a slice held at one time, as they are known by their fingerprint."""

    slice: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LedgerRun:
    """One row of the ledger's `runs`, as `history` and `show` read it. Instants are UTC."""

    id: str
    number: int
    target: str
    table: str
    kind: str
    state: str
    method: str
    range_text: str
    unit: str
    slices: int
    actor: str
    requested_at: datetime
    finished_at: datetime | None
    rows_before: int | None
    rows_staged: int | None
    rows_after: int | None
    counts: Counts | None
    totals: Mapping[str, Total]
    fingerprint_base: str | None
    fingerprint_staged: str | None
    fingerprint_after: str | None
    columns: tuple[str, ...]
    contract_digest: str
    publish_order: int | None
    lock_milliseconds: int | None
    tool_version: str
    engine_version: str
    reason: str
    consents: tuple[Consent, ...]
    approves: str
    restores: str
    kept_table: str | None
    groups_left_out: int
    checks: tuple[Check, ...]
    controls: tuple[ControlLine, ...]
    warnings: tuple[str, ...]
    error: Mapping[str, Any] | None
    sql: tuple[str, ...]
    process: str = ""
    alive: bool = False
    """Whether the connection that runs it is open: on the server; for DuckDB in this process, which has the file."""
    pruned_at: datetime | None = None
    """When its kept rows and groups were let go of, because they were older than `ledger.keep_days`."""
    slice_rows: tuple[LedgerSlice, ...] = ()
    groups: tuple[GroupDiff, ...] = ()

    @property
    def ended(self) -> str:
        """How it ended, in a word: the state, and of a failed run whether it was interrupted or got part of the way."""
        kind = "" if self.error is None else self.error.get("kind")
        words = {"interrupted": "interrupted", "partly_published": "partly published"}
        return words.get(str(kind), self.state) if self.state == State.FAILED else self.state


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a slice that is in the table: the run that wrote it, empty for rows that no version wrote.

    `replaced_at` is when it was last replaced by another, None where it never was.
    """

    slice: str
    run: str
    rows: int
    is_current: bool
    replaced_at: datetime | None

    def is_replaced_before(self, instant: datetime) -> bool:
        """Whether it is not current, and was replaced before an instant, so that it may be let go of.

        Rows that no version wrote may have come yesterday: nobody can say when they were replaced.
        """
        return self.run != "" and not self.is_current and self.replaced_at is not None and self.replaced_at < instant


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning of old versions removed: which they are, and their rows. `run` is its id in the ledger."""

    versions: tuple[Version, ...]
    run: str | None = None

    @property
    def rows(self) -> int:
        """How many rows they have together."""
        return sum(version.rows for version in self.versions)


@dataclass(frozen=True, slots=True)
class LedgerSlice:
    """One row of the ledger's `run_slices`: what a run found, and did, in one slice."""

    slice: str
    state: str
    fingerprint_base: str
    fingerprint_staged: str
    fingerprint_after: str | None
    added: int
    changed: int
    removed: int
    unchanged: int
    published_at: datetime | None = None
