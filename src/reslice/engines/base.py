"""What reslice asks of a database. One engine is one class; a step asks it for things, never for SQL.

Every method that reads or writes rows says what is true of the target afterwards. Errors of the driver never leave an
engine: they arrive as `reslice.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from reslice.contract import Contract, Method, Reconciliation, SqlFile
from reslice.errors import Failure
from reslice.findings import Finding
from reslice.health import LedgerHealth, MovedSlice, Observation, Place, Rights, RowHealth
from reslice.profile import KeyCount, Profile
from reslice.ranges import Moment, Scope
from reslice.recorded import LedgerRun, RestoredSlice, SliceRows, SliceWrite, Version
from reslice.tables import Column, Target
from reslice.values import (
    Approved,
    ControlLine,
    Diff,
    Findings,
    Number,
    Opened,
    Published,
    Request,
    Run,
    SliceDiff,
    Staged,
    State,
)

if TYPE_CHECKING:
    from reslice.engines.session import Session


class Support(StrEnum):
    """Whether an engine can do a thing: `never` is the database's limit, `not yet` is ours."""

    YES = "yes"
    NEVER = "never"
    NOT_YET = "not yet"


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing an engine can or cannot do, with the reason a user is shown."""

    support: Support
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What committed slices hold when they are read again. `differing` names those that are not the staged rows.

    `is_later` says that others took their turn of the table after the commit: another publish, or a writer under
    `writer_lock`. A difference is then what they wrote, in order, and nothing slipped in.
    """

    differing: tuple[str, ...]
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class LedgerMade:
    """The ledger of one schema: where it is, the tables that were made or gained columns, and those that were there.

    `views` are those of current versions that were made, beside their tables.
    """

    schema: str
    made: tuple[str, ...]
    present: tuple[str, ...]
    views: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerScript:
    """SQL for an owner: what makes that which is missing of a ledger, and what lets one role run. Nothing is done."""

    statements: tuple[str, ...]
    grants: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What keeps it from being all that the role needs."""


Answer = TypeVar("Answer")
Question = Callable[["Session", str, Collection[str]], Answer]
"""What is asked of a ledger: by a session, of the schema it stands in (quoted), which lacks these columns of `runs`."""


class Ledger(Protocol):
    """The record of runs in one database."""

    def rights_failures(self, contract: Contract, target: Target) -> tuple[Failure, ...]:
        """Return what a run needs of the ledger, and this connection may not do; nothing is raised or written."""

    def open_run(self, request: Request, target: Target) -> Opened:
        """Commit the request to the ledger, which is made when absent, and close runs whose process is gone."""

    def create(self, contract: Contract, target: Target | None) -> LedgerMade:
        """Make the ledger of a contract ahead of its first run, or bring it up to date; rows that are there stay.

        It stands in the database of the target; where there is no target yet, in that of the connection.
        """

    def script(self, contract: Contract, target: Target | None, role: str | None) -> LedgerScript:
        """Return the SQL of what `create` does, and of what `role` needs to run; without one, whoever connects."""

    def close_run(
        self, staged: Staged | None, contract: Contract, target: Target, opened: Opened, run: Run, state: State
    ) -> None:
        """Commit how a run ended that publishes nothing more. The target is not touched."""

    def restored(self, contract: Contract, target: Target, labels: tuple[str, ...]) -> Mapping[str, RestoredSlice]:
        """Return which of the slices were restored, and neither written nor found equal since."""

    def versions(self, contract: Contract, target: Target, scope: Scope | None) -> tuple[Version, ...]:
        """Return the versions in the table, of the slices of `scope` or of all, by slice and then by age."""

    def prune_versions(
        self, contract: Contract, target: Target, scope: Scope, before: datetime, opened: Opened, run: Run
    ) -> tuple[Version, ...]:
        """Delete the versions that are not current and were replaced before an instant; return which they were.

        One commit, in turn with publishes, that ends the run in the ledger as well.
        """

    def writes_since(
        self, contract: Contract, target: Target, run_id: str, labels: tuple[str, ...]
    ) -> tuple[SliceWrite, ...]:
        """Return each time that slices of a run were written, from that run on, the latest first."""

    def sums(
        self, contract: Contract, target: Target, run: LedgerRun, scope: Scope, measure: str
    ) -> Mapping[SliceRows, Number | None]:
        """Return what a measure adds up to in the rows of `scope` that a run found and left, slice by slice.

        Rows that are neither in the table nor kept any more are left out. Nothing is written.
        """

    def affected_since(self, contract: Contract, target: Target, instant: datetime) -> tuple[Moment, ...]:
        """Return the slices that corrections since an instant touch, in order."""

    def prune(self, contract: Contract, target: Target) -> tuple[str, ...]:
        """Let go of what runs of this table kept for longer than `ledger.keep_days`, and say so; a commit of its own.

        The last published run of a slice keeps what it has. It looks at most once a day, and waits for nobody.
        """

    def affected(self, contract: Contract, target: Target, scope: Scope) -> tuple[Moment, ...]:
        """Return the slices outside `scope` that corrections touch and no run has covered since."""

    def runs(self, ledger_schema: str, target: str | None, limit: int) -> tuple[LedgerRun, ...]:
        """Return the newest runs of the ledger, newest first; none when there is no ledger."""

    def find_runs(self, ledger_schema: str, reference: str, target: str | None = None) -> tuple[LedgerRun, ...]:
        """Return the runs a reference may mean; none when there is no ledger.

        The only one has its slices, groups and statements. `last` is the last run of a `target` that is named.
        """

    def look(self, ledger_schema: str, question: Question[Answer]) -> tuple[Answer, ...]:
        """Return the answer of each ledger of that schema; none when there is none. A question writes nothing."""

    def seen(self, runs: Sequence[LedgerRun]) -> tuple[LedgerRun, ...]:
        """Return the runs with whether each is at work now."""


class Survey(Protocol):
    """What a database says about tables that no contract names yet. Nothing is written."""

    def find(self, name: str) -> Target | None:
        """Describe a table or view by name; None when there is none."""

    def relations(self) -> tuple[Target, ...]:
        """Return the tables and views of the database with their columns alone, those of ledgers left out."""

    def profile(self, target: Target) -> Profile:
        """Look at the columns of a table."""

    def count_keys(self, target: Target, slice_column: str, sets: Sequence[Sequence[str]]) -> KeyCount:
        """Count the distinct keys that each set of columns has, in the newest slices of a large table."""

    def source_columns(self, contract: Contract, target: Target, scope: Scope) -> tuple[Column, ...]:
        """Return the columns that the contract's source would return; Misused[source_invalid] when it cannot."""


class Health(Protocol):
    """What doctor asks of a database. Nothing is written, and no source is evaluated."""

    stand_in: str
    """What may stand in for a function of the database, as it is called where it is dropped."""
    hour_cut: str
    """How a source cuts instants to hours, so that two hours which a clock shows alike stay two."""
    cut_at_risk: str
    """What `date_trunc('hour', …)` makes one hour of, where a clock shows two alike."""

    def place(self) -> Place:
        """Say which database it is, and whether reslice works on this version of it."""

    def server(self) -> tuple[Finding, ...]:
        """Return what there is to say of the database beyond what is asked of every one."""

    def merges_hours(self, cut: str) -> bool:
        """Whether `date_trunc('hour', cut)` of instants makes one hour of two that a clock shows alike."""

    def rights(self, contract: Contract, target: Target) -> Rights:
        """Say what the connection may do with the target, and what a run needs beside it."""

    def table(self, contract: Contract, target: Target) -> tuple[Finding, ...]:
        """Return what there is to say of the target beyond what is asked of every one."""

    def replaced_functions(self) -> tuple[str, ...]:
        """Name what stands in for functions that fingerprints are made with; `?` when it is not known what."""

    def describe(self, contract: Contract, target: Target, scope: Scope, query: SqlFile) -> tuple[Column, ...]:
        """Return the columns that a SQL file of the contract would return; Misused[source_invalid] when it cannot."""

    def key_statement(self, contract: Contract, target: Target) -> str:
        """Return the statement that makes a unique key on the grain."""

    def null_safe_keys(self, target: Target) -> tuple[frozenset[str], ...]:
        """Return the unique keys of the target to which NULL is a value like any other."""

    def key_is_null_safe(self, contract: Contract, target: Target) -> bool:
        """Whether the key of `key_statement` holds rows apart whose key has a NULL that the contract allows."""

    def views(self, target: Target) -> tuple[str, ...]:
        """Name the views that seem to read the target."""

    def current_view(self, contract: Contract, target: Target) -> bool | None:
        """Whether the view of the current versions is as the contract needs it; None when it is not there."""

    def rows(self, contract: Contract, target: Target) -> RowHealth:
        """Look at the rows of a target whose columns are those of the contract."""

    def ledger(self, contract: Contract, target: Target) -> LedgerHealth:
        """Look at the ledger of a target, which may not be there."""

    def moved(self, contract: Contract, target: Target) -> tuple[MovedSlice, ...]:
        """Return the slices whose rows are no longer those that the last run of them left, in order."""

    def probe(self, contract: Contract, target: Target) -> tuple[Observation, ...]:
        """Try what the engine does, in a place of its own that is gone afterwards, whatever happens."""


class Engine(Protocol):
    """A database that can stage, compare and publish one range of slices."""

    name: str
    version: str
    address: str
    """The host and port of the server; empty where the database is a file, or in memory."""
    methods: Mapping[Method, Capability]
    on_wait: Callable[[str], None]
    """Hears, on whatever thread, whom a statement waits for, and nothing when it goes on."""

    @property
    def ledger(self) -> Ledger:
        """Return the record of runs in this database."""

    @property
    def survey(self) -> Survey:
        """Return what tables of this database look like, whether or not a contract names them."""

    @property
    def health(self) -> Health:
        """Return what doctor asks of this database."""

    def now(self) -> datetime:
        """Return the database's clock, an aware instant."""

    def target(self, contract: Contract) -> Target:
        """Describe the live table, its columns in the contract's spelling; Refused when there is none."""

    def stage(self, contract: Contract, target: Target, scope: Scope, opened: Opened | None) -> Staged:
        """Evaluate source, controls and base in one snapshot into temporary tables. The target is not touched."""

    def stage_replaced(
        self, contract: Contract, target: Target, scope: Scope, undone: LedgerRun, opened: Opened | None
    ) -> Staged:
        """Put what a run replaced in `scope`, and the base, of one snapshot, into temporary tables.

        Raises Refused when the table has other columns than those rows, or when they are not kept any more.
        """

    def extent(self, contract: Contract, target: Target) -> tuple[Moment, Moment] | None:
        """Return the first and the last slice of which the target holds rows; None when it holds none."""

    def inspect(self, staged: Staged) -> Findings:
        """Cast the staged rows to the target's types and measure every rule of the contract on them."""

    def reconcile(self, staged: Staged, query: Reconciliation) -> tuple[ControlLine, ...]:
        """Compare a downstream reader with the target's own rows, slice by slice, in one snapshot."""

    def compare(self, staged: Staged) -> Diff:
        """Compare the staged rows with the base, slice by slice. Nothing is written but temporary tables."""

    def compare_stagings(self, first: Staged, second: Staged) -> tuple[str, ...]:
        """Name the columns in which two stagings of one scope differ; empty when they are the same rows."""

    def publish(
        self, staged: Staged, approved: Approved, slices: tuple[SliceDiff, ...], opened: Opened, run: Run | None
    ) -> Published:
        """Replace `slices` in one commit together with their ledger rows; the target is as before or wholly replaced.

        `run` closes the ledger row in the same commit; None leaves it open for further slices.
        """

    def publish_statements(self, staged: Staged, slices: tuple[SliceDiff, ...], diff: Diff | None) -> tuple[str, ...]:
        """Return the SQL that recomputes and replaces `slices`, in order; none when there is nothing to replace."""

    def read_back(self, staged: Staged, slices: tuple[SliceDiff, ...]) -> ReadBack:
        """Read the committed slices in a new snapshot and name those that are not the staged rows."""

    def progress(self) -> float | None:
        """Return the percentage of the statement that runs now, None when it is not known. Any thread may ask."""

    def interrupt(self) -> None:
        """Make the running statement, and every later one but the roll-back, end as Interrupted. Any thread may ask."""

    def close(self) -> None:
        """Let go of the database; temporary tables are gone."""
