"""What the rows of a table say about its columns: what `init` proposes a contract from.

Values only. An engine fills them from one look at the table; nothing here is a promise about rows to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reslice.contract import Unit
from reslice.tables import Column
from reslice.values import Number


@dataclass(frozen=True, slots=True)
class SliceValues:
    """What the values of a date-like column have in common.

    `units` are those of which every value is the first moment, in `zone`. `first` and `last` are as
    `moments.moment_from_column` reads them.
    """

    units: frozenset[Unit]
    distinct: int
    first: str
    last: str
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column. `lowest` and `scale` are of numbers; `scale` is None where no short decimal holds every float.

    `slices` is there when every value could be a slice: a date, a timestamp, ISO text, or an integer yyyymmdd.
    """

    column: Column
    nulls: int = 0
    distinct: int = 0
    lowest: Number | None = None
    scale: int | None = None
    slices: SliceValues | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The columns of a table by name. Of a large table `rows_seen` are a sample; NULLs and bounds are of all rows.

    Where `rows` is estimated, since the database would read for minutes to count them, NULLs are of the sample as well,
    and so are bounds, but for those that an index has at hand.
    """

    rows: int
    rows_seen: int
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    is_estimated: bool = False

    @property
    def rows_counted(self) -> int:
        """How many rows NULLs and bounds are of."""
        return self.rows_seen if self.is_estimated else self.rows


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many rows were looked at, and how many distinct keys each set of columns that was asked for has in them.

    `example` is a key that stands more than once by the first set, and how often: "(2026-01-02, web) 2 times".
    """

    rows: int
    keys: tuple[int, ...]
    example: str = ""
