"""What doctor learns from a database about a target: its rows, its ledger, what others wrote, what was tried.

Values only; `doctor` says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reslice.values import Fingerprint


@dataclass(frozen=True, slots=True)
class Place:
    """The database: `shown` as the contract names it. `tested` are the versions that this reslice is tested with."""

    shown: str
    version: str
    oldest: str
    tested: tuple[str, ...]
    is_too_old: bool
    is_tested: bool
    upgrade: str = ""
    """What to do where it is too old."""
    database: str = ""
    """The name of the database, where a server has several."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a connection may do: in words, where nothing is `missing`; else what is, each with what helps.

    `is_readable` says whether the rows of the target can be looked at.
    """

    held: str
    missing: tuple[tuple[str, str], ...] = ()
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """Keys of the grain that stand in more than one row. `first` and `last` are the slices that hold them all."""

    keys: int
    rows: int
    example: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class RowHealth:
    """The rows of a target. `null_keys` maps grain columns that may not be NULL to how many rows are.

    `off_unit` counts slice values that are not the first moment of a unit. `repeated` is None when no key is.
    """

    rows: int
    slice_nulls: int
    off_unit: int
    off_example: str
    null_keys: Mapping[str, int]
    repeated: RepeatedKeys | None


@dataclass(frozen=True, slots=True)
class Leftover:
    """A run that did not come to its end. `published` counts the slices it had published by then."""

    id: str
    range_text: str
    slices: int
    published: int
    is_alive: bool = False


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that publishes replaced, and that are kept: how many, of how many runs, since when."""

    rows: int
    runs: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class LedgerHealth:
    """The ledger of a target. `missing` are tables and columns (`runs`, `runs.restores`) that the next run adds.

    Where it `is_old`, columns are missing that the questions below need, and they were not asked. `hidden` are tables
    that are there, and that the connection may not read before `grant`.
    """

    exists: bool
    missing: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    is_old: bool = False
    runs: int = 0
    unfinished: tuple[Leftover, ...] = ()
    partly: tuple[Leftover, ...] = ()
    kept: KeptRows = field(default_factory=lambda: KeptRows(0, 0, None))
    hidden: tuple[str, ...] = ()
    grant: str = ""


@dataclass(frozen=True, slots=True)
class MovedSlice:
    """A slice that no longer holds what the ledger says the last run of it left."""

    label: str
    run_id: str
    left: Fingerprint
    now: Fingerprint


@dataclass(frozen=True, slots=True)
class Observation:
    """What an engine did when it was tried. `relies` says what reslice needs of it; `holds` whether it is so."""

    name: str
    does: str
    relies: str
    found: str
    holds: bool
