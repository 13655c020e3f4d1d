"""The nouns of `reslice.yml`: what a target is, what recomputes it, and what may happen to it.

Values only: no file, no database. `contract_file` makes them from YAML; every step reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path


class Unit(StrEnum):
    """How long one slice is. Weeks begin on Monday (ISO 8601)."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"


class Method(StrEnum):
    """How a publish replaces the slices."""

    REPLACE_SLICE = "replace_slice"
    MERGE = "merge"
    APPEND_VERSION = "append_version"
    REPLACE_PARTITION = "replace_partition"


class Action(StrEnum):
    """What a guard does when its rule is broken."""

    STOP = "stop"
    REPORT = "report"
    ALLOW = "allow"


class StampValue(StrEnum):
    """What reslice writes into a stamp column: the time of the run (an instant), or its id."""

    RUN_TIME = "run_time"
    RUN_ID = "run_id"


@dataclass(frozen=True, slots=True)
class Line:
    """Where a key of the contract stands, and the text of that line (stripped)."""

    file: str
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class GrainColumn:
    """One column of the target key."""

    name: str
    nulls_allowed: bool = False


@dataclass(frozen=True, slots=True)
class SliceColumn:
    """The grain column that decides which slice a row belongs to; `timezone` is an IANA name."""

    column: str
    unit: Unit
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Measure:
    """A column outside the grain that the source computes. `scale` is declared for floats: digits that count."""

    name: str
    minimum: Decimal | None = None
    nulls_allowed: bool = False
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """A column reslice fills itself, outside diff and fingerprint."""

    column: str
    value: StampValue


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One SELECT in a file. `name` is the path as the contract writes it, `text` the whole file."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    """A named figure of a control and what it must equal per slice: sum(measure), or count(*) when measure is None."""

    figure: str
    measure: str | None

    @property
    def expression(self) -> str:
        """The right-hand side as the contract writes it."""
        return f"sum({self.measure})" if self.measure is not None else "count(*)"


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A query with the slice column and named figures, one row per slice, and what each figure must equal.

    `name` is `controls`, or the name of the downstream reader.
    """

    name: str
    query: SqlFile
    match: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class ClosedThrough:
    """Which slices are closed: a fixed last date, or a number of days before today (yesterday is 1)."""

    on: date | None = None
    days_ago: int | None = None


@dataclass(frozen=True, slots=True)
class Guards:
    """The rules that stop a run until a person consents. `total_change` 0.5 is 50%; None never stops."""

    empty_slice: Action = Action.STOP
    total_change: Decimal | None = Decimal("0.5")
    removed_groups: Action = Action.REPORT
    restored: Action = Action.STOP
    closed_through: ClosedThrough | None = None
    max_slices: int = 3660


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Where the ledger is, in the target's own database, and for how many days replaced rows are kept."""

    schema: str = "reslice"
    keep_days: int = 90


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait. `statement` None is no limit."""

    wait: timedelta = timedelta(minutes=10)
    lock: timedelta = timedelta(seconds=5)
    statement: timedelta | None = None
    idle: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Contract:
    """The declaration of one target. `digest` changes when the declaration or one of its SQL files changes.

    `lines` maps a dotted key below the target, such as `guards.empty_slice` or `measures.order_count`, to where it is
    written; a key that is absent has its default.
    """

    name: str
    table: str
    source: SqlFile
    grain: tuple[GrainColumn, ...]
    slice: SliceColumn
    measures: tuple[Measure, ...]
    stamps: tuple[Stamp, ...] = ()
    controls: Reconciliation | None = None
    method: Method = Method.REPLACE_SLICE
    guards: Guards = field(default_factory=Guards)
    affected: SqlFile | None = None
    downstream: tuple[Reconciliation, ...] = ()
    ledger: LedgerOptions = field(default_factory=LedgerOptions)
    timeouts: Timeouts = field(default_factory=Timeouts)
    digest: str = ""
    lines: Mapping[str, Line] = field(default_factory=dict, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the source returns: grain, then measures, as declared."""
        return (*(column.name for column in self.grain), *(measure.name for measure in self.measures))

    def quote(self, key: str, default: str) -> str:
        """Return the contract line that states `key`, or the default with a note that no line does."""
        line = self.lines.get(key)
        if line is None:
            return f"{default}  (default; the contract has no line for it)"
        return f"{line.text}  ({line.file}, line {line.line})"


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the target's database is. `url` may hold a secret and is never shown; `shown` is the masked form.

    For DuckDB `path` is the database file (None for other engines); it too may come from the environment.
    """

    engine: str
    url: str = field(repr=False)
    shown: str
    path: Path | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """One `reslice.yml`: a connection and the contracts of its targets, by name."""

    path: Path
    connection: Connection
    targets: Mapping[str, Contract]
