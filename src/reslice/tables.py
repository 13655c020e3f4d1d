"""What a database says of a table: its columns, what kind of value each holds, and what hangs on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reslice.contract import Method


class Family(StrEnum):
    """What kind of value a column type holds, the same word on every engine."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    ENUM = "enum"
    UUID = "uuid"
    OTHER = "other"

    @property
    def is_number(self) -> bool:
        """Whether totals can be summed over it."""
        return self in (Family.INTEGER, Family.DECIMAL, Family.FLOAT)


class Fill(StrEnum):
    """Who fills a column of the target: the insert, the database by a formula, or the database by a sequence."""

    PLAIN = "plain"
    GENERATED = "generated"
    IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table or query. `type` is the engine's own text of the type, `base` what a domain is made of."""

    name: str
    type: str
    family: Family
    fill: Fill = Fill.PLAIN
    base: str = ""

    @property
    def holds(self) -> str:
        """The type of the values: of a domain the one that it is made of."""
        return self.base or self.type


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Something that keeps rows of a target from being replaced: the kind of refusal, and what helps.

    `methods` are those that it concerns; empty is all of them.
    """

    kind: str
    found: str
    next: str
    methods: frozenset[Method] = frozenset()


@dataclass(frozen=True, slots=True)
class Target:
    """The live table a contract names, as the database describes it.

    `kind` is `table`, `view` or the engine's word for another thing; `referenced_by` names tables whose foreign keys
    point here; `rights_missing` what the connection may not do ("write: the file is read-only"). `keyed` are the
    columns that a key or an index covers, `not_null` those that must have a value. `keys` are the sets of columns of
    which the database enforces one row per combination. `current` is the SELECT of the current versions, empty where
    the table has none; `has_pointers` says whether the ledger points at versions of this table.
    """

    catalog: str
    schema: str
    table: str
    kind: str
    columns: tuple[Column, ...]
    referenced_by: tuple[str, ...] = ()
    rights_missing: tuple[str, ...] = ()
    keyed: frozenset[str] = frozenset()
    not_null: frozenset[str] = frozenset()
    keys: tuple[frozenset[str], ...] = ()
    current: str = ""
    has_pointers: bool = False
    hindrances: tuple[Hindrance, ...] = ()
    remarks: tuple[str, ...] = ()
    """What a person should know of before rows are replaced, such as triggers that fire for them."""
    readers: tuple[str, ...] = ()
    """Materialised views that read the table, and stay as they were; written as a statement needs it."""
    fixed: frozenset[str] = frozenset()
    """Columns that have their value from the database, and of which an UPDATE may not give another."""
    number: int | None = None
    shape: str = ""
    """What changes with the table, its columns and what hangs on it, where the engine looks at it again."""
    """By which the database knows the table, whatever it is called."""
    name_bytes_max: int | None = None
    """How long a name may be in this database; longer ones are cut."""
    rights_next: str = ""
    """What helps where something is in `rights_missing`; where the engine knows of nothing better, another user."""
    is_only_read: bool = False
    """Whether who connects may write nothing of the table at all: such a user may look, and is told so."""

    @property
    def resolved(self) -> str:
        """The full name, the one key of fence and ledger."""
        return f"{self.catalog}.{self.beside}"

    @property
    def beside(self) -> str:
        """The name without the catalog: what a DuckDB file is called or attached as at the moment, or the database."""
        return beside(self.schema, self.table)

    def is_called(self, resolved: str) -> bool:
        """Whether a name in the table's own ledger means this table, whatever the file or database was called then."""
        return resolved == self.resolved or resolved.partition(".")[2] == self.beside

    def column(self, name: str) -> Column:
        """Return the column called `name`; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def beside(schema: str, table: str) -> str:
    """Return the name of a table in its database; `"a.b".c` and `a."b.c"` are two, and are quoted."""
    names = (schema, table)
    return ".".join(f'"{each.replace(QUOTE, QUOTE * 2)}"' if {".", QUOTE} & {*each} else each for each in names)


QUOTE = '"'
