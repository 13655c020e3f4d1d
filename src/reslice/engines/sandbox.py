"""What a place is in which a command may run: a copy of the database, or the database itself.

One class per engine, in the engine's own folder. A place knows how the command finds it, how the table in it is looked
at, and how it is gone afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from reslice.contract import Contract
from reslice.engines.base import Engine
from reslice.engines.dialect import Dialect
from reslice.engines.sql import Names


class SandboxEngine(Engine, Protocol):
    """An engine of which statements of one's own are asked, beside what a run asks."""

    dialect: Dialect

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""

    def names(self, token: str) -> Names:
        """Return the temporary tables of one staging."""

    def transaction(self) -> AbstractContextManager[None]:
        """Commit what is done inside, or roll all of it back."""

    def translated(self, contract: Contract | None, doing: str) -> AbstractContextManager[None]:
        """Tell an error of the driver as one of ours."""

    def ending(self) -> AbstractContextManager[None]:
        """Let statements run whoever asks to stop."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What kind of place is wanted: a copy or the database itself, and whether fresh copies will be asked for.

    `on_step` hears of what is waited for; `is_stopped` is asked while a copy is made, and ends that.
    """

    in_place: bool
    more: bool
    on_step: Callable[[str], None]
    is_stopped: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Look:
    """A connection to a place, and the schema beside it in which the evidence stands, qualified and quoted."""

    engine: SandboxEngine
    schema: str


@dataclass(frozen=True, slots=True)
class Way:
    """How a command finds a place: as a URL, as a path, and by environment variables; some are taken from it.

    `secrets` are texts that no message may repeat.
    """

    url: str
    path: str
    environment: Mapping[str, str]
    taken: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()


class Place(Protocol):
    """A copy of a database in which a command runs, or the database itself."""

    shown: str
    """Where it is, as a person finds it; no secret."""
    kept: str
    """Where the rows from before are kept; they outlive a reslice that is killed, where the place is no copy."""
    notes: tuple[str, ...]
    """What there is to say of how it was made, and of what an earlier proof left behind."""

    def way(self) -> Way:
        """Return how a command finds it."""

    def look(self, *, writes: bool = False) -> AbstractContextManager[Look]:
        """Open it, and the evidence beside it, for as long as the block lasts; without `writes` rows are only read."""

    def look_at_real(self) -> AbstractContextManager[Look] | None:
        """Open the database that it is a copy of, only to read; None where it surely was not written to since."""

    def mark(self, table: str) -> str:
        """Return a text that changes when a table, named as SQL needs it, is written to; empty where that is not known.

        Where it is the whole database that tells, a write to another table changes it as well.
        """

    def is_in_use(self) -> bool:
        """Whether the command is seen to be at work in it: connected, or having written."""

    def is_locked_out(self, output: str) -> bool:
        """Whether a command that failed says that it could not open the place, since another one had it."""

    def settle(self) -> None:
        """Wait until nothing that a killed command has begun is still at work in it."""

    def another(self) -> Place:
        """Return a fresh copy, as this one was before the command ran."""

    def keep(self) -> str:
        """Let it stay, also for proofs to come, and return where it is."""

    def remove(self) -> None:
        """Let it be gone, whoever is still connected to it; of the database itself only what was kept goes."""

    def put_back_by_hand(self, table: str) -> str:
        """Return the statements by which a person puts the rows from before back."""
