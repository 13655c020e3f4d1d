"""A dbt model as an audit judges it: its config, each value with where it was said, and its incremental run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reslice.audit.known import Table
from reslice.audit.text import Text
from reslice.reading.jinja import UNKNOWN, Reference

if TYPE_CHECKING:
    from reslice.audit.write import Write

_COLUMN = re.compile(r"[A-Za-z_]\w*")
BUILT_IN = frozenset(
    {
        "table",
        "view",
        "ephemeral",
        "incremental",
        "materialized_view",
        "materializedview",
        "dynamic_table",
        "streaming_table",
        "seed",
        "snapshot",
        "test",
        "external",
    }
)
"""What dbt and its adapters know how to materialize; of these only `incremental` keeps rows from run to run."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a model's config; UNKNOWN where reading does not tell it.

    `span` is where it stands in the model's file; None where it was said elsewhere.
    """

    value: object
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model or source that a model reads, where it is named, and the column of its time; empty: it has none.

    `event_time` is None where that is not known: what it names is in no file that was read. `is_whole` says that it is
    meant to be read whole: `ref('…').render()`.
    """

    reference: Reference
    span: tuple[int, int]
    event_time: str | None
    is_whole: bool = False

    @property
    def name(self) -> str:
        """What it is called, as `source.table` or `model`."""
        return ".".join(self.reference.names)


@dataclass(slots=True, eq=False)
class Model:
    """One model of a project.

    `config` holds what was said last of each key. `is_hidden` says that some of it is given by what cannot be read.
    `span` is where the model is configured in its file. `write` is its incremental run; None where it has none, or how
    it writes is not known. `why_unknown` says what keeps it from being known. `is_filtered` says that the incremental
    run reads something else than the first one. `own_keys` are the keys of a config that the project's macros ask for.
    """

    name: str
    text: Text
    adapter: str | None
    config: Mapping[str, Setting]
    is_hidden: bool
    span: tuple[int, int]
    upstream: tuple[Upstream, ...] = ()
    declared: Table = field(default_factory=lambda: Table(""))
    strategy: str = ""
    write: Write | None = None
    why_unknown: str = ""
    is_filtered: bool = False
    own_keys: frozenset[str] = frozenset()

    def get(self, key: str, default: object = None) -> object:
        """Return the value of a key; UNKNOWN where it may have been given by what cannot be read."""
        found = self.config.get(key)
        if found is None:
            return UNKNOWN if self.is_hidden else default
        return default if found.value is None else found.value

    def spot(self, *keys: str) -> tuple[int, int]:
        """Return where the first of these keys stands in the model's file; else where the model is configured."""
        for key in keys:
            found = self.config.get(key)
            if found is not None and found.span is not None:
                return found.span
        return self.span

    @property
    def materialized(self) -> object:
        """How the model is kept: `view` where nothing says it."""
        return self.get("materialized", "view")

    @property
    def is_incremental(self) -> bool:
        """Whether it keeps its rows from run to run."""
        return self.materialized == "incremental"

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The columns of the unique key in small letters; None where they are not known."""
        return columns_in(self.get("unique_key", []))


def columns_in(value: object) -> tuple[str, ...] | None:
    """Return the columns that a unique key names, in small letters; None where they are not known."""
    if value is UNKNOWN:
        return None
    values = value if isinstance(value, list) else [value]
    if any(not isinstance(each, str) for each in values):
        return None if values != [None] else ()
    found: list[str] = []
    for each in values:
        words = [word.strip().strip('"`[]') for word in str(each).split(",")]
        if all(_COLUMN.fullmatch(word) for word in words):
            found += words
        else:
            found += re.findall(r"[A-Za-z_]\w*(?![\w(])", re.sub(r"'[^']*'", "", str(each)))
    return tuple(dict.fromkeys(each.lower() for each in found if each))
