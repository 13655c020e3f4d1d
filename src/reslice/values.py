"""What each step of a run makes, as frozen values without a connection.

    Request -> Staged -> Checked -> Diff -> Approved -> Published          and Run, the answer a user is given

Only `approve` makes an `Approved`, and only an `Approved` can be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from reslice.contract import Action, Contract, Method, Unit
from reslice.ranges import Moment, Scope
from reslice.tables import Column, Target

if TYPE_CHECKING:
    from reslice.errors import ResliceError

Number = int | Decimal
"""An exact number: integers stay integers, money stays exact. Floats with a declared scale arrive as Decimal."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An order-free digest of rows at their grain: how many, and the sum of 60-bit row hashes. Empty is 0:0."""

    rows: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.rows}:{self.total}"

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, self.total + other.total)

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Read the `rows:total` form back; ValueError when it is not one."""
        rows, _, total = text.partition(":")
        return cls(int(rows), int(total))


class Kind(StrEnum):
    """What a run of the ledger was for."""

    RUN = "run"
    VERIFY = "verify"
    RESTORE = "restore"
    PRUNE = "prune"


class State(StrEnum):
    """How far a run of the ledger got. A run that is `requested` and not alive published nothing more."""

    REQUESTED = "requested"
    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    STOPPED = "stopped"
    REFUSED = "refused"
    FAILED = "failed"
    RESTORED = "restored"


class Outcome(StrEnum):
    """How a plan, run, verify, status or restore ended, as JSON says it."""

    PLANNED = "planned"
    PUBLISHED = "published"
    RESTORED = "restored"
    UNCHANGED = "unchanged"
    STOPPED = "stopped"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class SliceState(StrEnum):
    """How a slice of the target stands to the source: the same rows, other rows, none of them, or rows of no source."""

    EQUAL = "equal"
    DIFFERS = "differs"
    MISSING = "missing"
    EXTRA = "extra"


class Change(StrEnum):
    """What the staged rows do to a group of the base."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's word that one guard may be broken; `slices` (labels) limits it to those slices, empty is the range."""

    guard: str
    slices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What one run is asked to do; in the ledger before anything else happens."""

    contract: Contract
    scope: Scope
    kind: Kind = Kind.RUN
    consents: tuple[Consent, ...] = ()
    reason: str = ""
    actor: str = ""
    approves: str = ""
    """The run or plan file whose exact diff is approved; empty when none is."""
    restores: str = ""
    """The run whose replaced rows are put back; empty for any other kind."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A run that stands in the ledger. `abandoned` names earlier runs whose process is gone, and what they left.

    `target` is the table as it is described once the ledger stands: with what the ledger knows of its versions.
    """

    id: str
    target: Target
    abandoned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Staged:
    """The recomputed range in temporary tables, with controls and base, all of one snapshot.

    `token` names the temporary tables; `source_columns` are as the source returned them, in its order.
    """

    contract: Contract
    target: Target
    scope: Scope
    token: str
    source_columns: tuple[Column, ...]
    control_columns: tuple[Column, ...] = ()
    restores: str = ""
    """The run whose replaced rows are staged, with every column that was kept; empty where the source is."""
    repeated: int = 0
    """Surplus rows of repeated keys among those; the source's rows have none, or are refused."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that staged rows break: how many rows (or keys), and one example in words."""

    kind: str
    column: str | None
    count: int
    example: str
    is_not_finite: bool = False
    """Whether the values are NaN or infinite, which no cast puts right."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was measured on the staged rows. `near_equal` pairs a column with keys that differ by case or spaces."""

    rows: int
    problems: tuple[Problem, ...]
    near_equal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    controls: tuple[ControlLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """Staged rows that keep every rule of the contract."""

    staged: Staged
    checks: tuple[Check, ...]
    controls: tuple[ControlLine, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and whether it held. `name` is an error kind; `found` says what was seen either way.

    A guard that is read from the ledger is a check as well: `consented` says that a person let it through.
    """

    name: str
    ok: bool
    found: str
    consented: bool = False
    stops: bool = False


@dataclass(frozen=True, slots=True)
class ControlLine:
    """One named figure over the whole range: what the control says and what the rows say, and slices that differ."""

    name: str
    figure: str
    expression: str
    control: Number | None
    target: Number | None
    slices_differing: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every slice agreed exactly."""
        return not self.slices_differing


@dataclass(frozen=True, slots=True)
class SliceDiff:
    """One slice that has rows on either side. `repeated` counts surplus rows of repeated base keys."""

    slice: Moment
    label: str
    base: Fingerprint
    staged: Fingerprint
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    repeated: int = 0
    totals: Mapping[str, Total] = field(default_factory=dict)
    """The sum of each measure over the slice, on both sides."""

    @property
    def differs(self) -> bool:
        """Whether base and staged rows are not the same rows; decided by rows and fingerprints, never by a join."""
        return self.base != self.staged

    @property
    def state(self) -> SliceState:
        """How target and source stand to each other in this slice."""
        if not self.differs:
            return SliceState.EQUAL
        if not self.base.rows:
            return SliceState.MISSING
        return SliceState.DIFFERS if self.staged.rows else SliceState.EXTRA


@dataclass(frozen=True, slots=True)
class GroupDiff:
    """One group that is not as it was. `before` and `after` map measures to values; None where there is no row.

    Values are JSON-ready: int, Decimal, str, bool or None. `before` sums repeated rows of the base.
    """

    change: Change
    slice: str
    key: Mapping[str, Any]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    rows_before: int = 1


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of one measure over the range."""

    before: Number | None
    after: Number | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many groups were added, changed, removed and left as they were."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0

    @property
    def any(self) -> bool:
        """Whether any group moves."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Diff:
    """The staged rows against the base, slice by slice.

    `slices` holds every slice with rows on either side, in order; slices of the scope that are absent are empty on both
    sides. `groups` is capped to those that moved most, and `groups_left_out` says how many more there are.
    """

    scope: Scope
    slices: tuple[SliceDiff, ...]
    groups: tuple[GroupDiff, ...]
    groups_left_out: int
    totals: Mapping[str, Total]
    columns: tuple[str, ...]
    """The columns of the fingerprint, in its order."""

    @property
    def base(self) -> Fingerprint:
        """The fingerprint of the base over the whole scope."""
        return sum((each.base for each in self.slices), Fingerprint())

    @property
    def staged(self) -> Fingerprint:
        """The fingerprint of the staged rows over the whole scope."""
        return sum((each.staged for each in self.slices), Fingerprint())

    @property
    def counts(self) -> Counts:
        """The groups of all slices together."""
        return Counts(
            sum(each.added for each in self.slices),
            sum(each.changed for each in self.slices),
            sum(each.removed for each in self.slices),
            sum(each.unchanged for each in self.slices),
        )

    @property
    def repeated(self) -> int:
        """How many surplus rows of repeated keys the base holds."""
        return sum(each.repeated for each in self.slices)

    @property
    def differing(self) -> tuple[SliceDiff, ...]:
        """The slices that a publish has to rewrite."""
        return tuple(each for each in self.slices if each.differs)


@dataclass(frozen=True, slots=True)
class Guard:
    """What one guard saw. `slices` are the labels it fired for; `consented` says a person let it through."""

    name: str
    action: Action
    fired: bool
    found: str
    asked: str
    slices: tuple[str, ...] = ()
    consented: bool = False

    @property
    def stops(self) -> bool:
        """Whether the run may not go on."""
        return self.fired and self.action is Action.STOP and not self.consented


@dataclass(frozen=True, slots=True)
class Approved:
    """A diff that may be published. Made by `approve` alone.

    `rewrite` holds the slices to write: those that differ, or all of the scope that have rows.
    """

    diff: Diff
    guards: tuple[Guard, ...]
    rewrite: tuple[SliceDiff, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """What one commit did: its order number in the ledger, and how long it held the table.

    `guards_updates` is False when a constraint of the target kept the engine from making concurrent updates visible.
    """

    order: int
    lock_milliseconds: int
    guards_updates: bool = True
    warnings: tuple[str, ...] = ()
    """What happened on the way: attempts that were rolled back, an answer that was lost and found out."""


@dataclass(frozen=True, slots=True)
class Run:
    """The answer of plan, run, verify, status or restore: everything that is printed or written as JSON.

    Fingerprints and counts are of the whole scope. `id` is None for a plan. `after` is None until something was read
    back. `slices_done` names the slices that are published.
    """

    command: str
    target: str
    table: str
    scope: Scope
    outcome: Outcome
    id: str | None = None
    kind: Kind = Kind.RUN
    restores: str = ""
    """The run whose replaced rows a restore puts back."""
    method: Method = Method.REPLACE_SLICE
    target_changed: bool = False
    diff: Diff | None = None
    rows_after: int | None = None
    after: Fingerprint | None = None
    checks: tuple[Check, ...] = ()
    guards: tuple[Guard, ...] = ()
    controls: tuple[ControlLine, ...] = ()
    controls_declared: bool = False
    warnings: tuple[str, ...] = ()
    affected: tuple[str, ...] = ()
    """Slices outside the scope that corrections touch, and that this run leaves."""
    notes: tuple[str, ...] = ()
    """Facts worth a line that need no action, such as an abandoned run that was found and closed."""
    slices_done: tuple[str, ...] = ()
    per_slice: bool = False
    """Whether each slice was published in a commit of its own."""
    rewritten: bool = False
    seconds: float = 0.0
    sql: tuple[str, ...] = ()
    """The statements that recompute and replace the slices, in order, as executed or as they would be."""
    downstream: tuple[ControlLine, ...] = ()
    repeatable: bool | None = None
    unstable_columns: tuple[str, ...] = ()
    equals_source: bool | None = None
    error: ResliceError | None = None

    @property
    def unit(self) -> Unit:
        """The unit of the slices."""
        return self.scope.unit
