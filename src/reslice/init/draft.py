"""What `init` drafts: a contract with the reason for each choice, and what it was not sure of.

Values only. `init_propose` and `init_job` make them, `init_text` writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from reslice.contract import (
    Contract,
    GrainColumn,
    Measure,
    Method,
    SliceColumn,
    SqlFile,
    Stamp,
    Unit,
)


@dataclass(frozen=True, slots=True)
class Why:
    """Something proposed, and the reason in a few words."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class DraftMeasure:
    """A proposed measure; `reason` says where its options come from."""

    name: str
    minimum: int | None = None
    nulls_allowed: bool = False
    scale: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hints:
    """What an existing write says of its table; empty where nothing is known.

    `columns` are those it writes, in order; None where they are all of the table's. `counts` can be no less than zero,
    `clocks` hold the time of the write. `grain` is None where the write shows none.
    """

    columns: tuple[str, ...] | None = None
    grain: tuple[str, ...] | None = None
    grain_why: str = ""
    slice: str | None = None
    slice_why: str = ""
    unit: Unit | None = None
    timezone: str = ""
    counts: frozenset[str] = frozenset()
    clocks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Proposal:
    """The parts of a contract. `newest` is a slice that has rows, as it is typed in a range."""

    grain: tuple[GrainColumn, ...]
    grain_why: str
    slice: SliceColumn
    slice_why: str
    measures: tuple[DraftMeasure, ...]
    stamps: tuple[Stamp, ...] = ()
    left_out: tuple[Why, ...] = ()
    method: Method = Method.REPLACE_SLICE
    method_why: str = ""
    newest: str = ""
    unsure: tuple[str, ...] = ()

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that the source returns."""
        return (*(column.name for column in self.grain), *(measure.name for measure in self.measures))


@dataclass(frozen=True, slots=True)
class Draft:
    """A target that a contract can be written from. `source` is the text of the SELECT, `source_name` its file.

    `range_text` is a range that a first plan can take.
    """

    name: str
    table: str
    proposal: Proposal
    source: str
    source_name: str
    range_text: str
    origin: str
    unsure: tuple[str, ...] = field(default=())

    def contract(self, path: SqlFile | None = None) -> Contract:
        """Return what the draft declares, as if it had been read from a file."""
        from pathlib import Path

        parts = self.proposal
        measures = tuple(
            Measure(each.name, None if each.minimum is None else Decimal(each.minimum), each.nulls_allowed, each.scale)
            for each in parts.measures
        )
        source = path or SqlFile(self.source_name, Path(self.source_name), self.source)
        return Contract(
            self.name, self.table, source, parts.grain, parts.slice, measures, stamps=parts.stamps, method=parts.method
        )
