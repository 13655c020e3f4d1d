"""What shared steps need of a connection, and how they read slices and numbers out of rows."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any, ClassVar, Protocol

from reslice.contract import Contract, SqlFile
from reslice.engines import sql
from reslice.engines.dialect import Dialect
from reslice.engines.failures import interrupted
from reslice.engines.sql import quote
from reslice.errors import Interrupted, ResliceError
from reslice.ranges import Moment, Scope, moment_from_column
from reslice.tables import Column, Family, Target
from reslice.values import Number, Staged


class Session(Protocol):
    """A connection that runs one statement and gives its rows."""

    dialect: Dialect

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run `statement` and return its rows; of one that writes, and returns no rows, how many it wrote."""


class Ledgers(Session, Protocol):
    """A session that knows of the ledgers in its database."""

    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables of a schema that this user may read: table, column, type, in order."""

    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger, those of the current database first."""


class Catalog(Ledgers, Protocol):
    """A session that knows what there is in its database."""

    def comment_on(self, catalog: str, schema: str, name: str) -> str | None:
        """Return the comment of the view of a name: `none` where it has none, empty for a table, None for nothing."""


_AGAIN_SECONDS = 0.5
"""How long after a statement was asked to stop it is asked again."""


def unheard(_found: str) -> None:
    """Tell nobody."""


class SqlSession(ABC):
    """One connection of ours: it is a Catalog, has transactions, and tells errors of its driver as ours."""

    dialect: Dialect
    driver_error: ClassVar[type[Exception]]
    """What every error of the driver is."""
    not_understood: ClassVar[tuple[type[Exception], ...]]
    """What a statement ends with that names what there is not, or is no SQL."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self._interrupted = threading.Event()
        self._interrupt_lock = threading.Lock()
        self._is_over = threading.Event()
        """Set once a statement has ended because it was asked to, and when the session is closed."""
        self._is_ending = False
        self.role = ""
        """Who is connected, where the database has roles."""
        self.on_wait: Callable[[str], None] = unheard
        """Hears, on whatever thread, whom a statement waits for, and nothing when it goes on."""

    def interrupt(self) -> None:
        """Stop the running statement and refuse every later one, but for those that end a run. Any thread may ask."""
        with self._interrupt_lock:
            is_first = not self._interrupted.is_set()
            self._interrupted.set()
            if not self._is_ending:
                self._cancel()
        if is_first:
            threading.Thread(target=self._ask_again, name="reslice-interrupt", daemon=True).start()

    def _ask_again(self) -> None:
        """Ask until a statement has heard it: one that was just about to begin did not."""
        while not self._is_over.wait(_AGAIN_SECONDS):
            with self._interrupt_lock:
                if not self._is_ending and not self._is_over.is_set():
                    self._cancel()

    def ask_no_more(self) -> None:
        """Let nobody ask any more: a statement has heard it, or there will be none."""
        with self._interrupt_lock:
            self._is_over.set()

    def stopped(self) -> Interrupted:
        """Return the error for a statement that ended because it was asked to."""
        self.ask_no_more()
        return interrupted(self.shown)

    @abstractmethod
    def _cancel(self) -> None:
        """Stop the statement that runs now, from another thread."""

    def stop_if_asked(self) -> None:
        """Raise Interrupted when `interrupt` was called."""
        if self._interrupted.is_set() and not self._is_ending:
            raise self.stopped()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let statements run that end a run, whoever asks to stop: a commit, its record, and what is read after it."""
        with self._interrupt_lock:
            before, self._is_ending = self._is_ending, True
        try:
            yield
        finally:
            self._is_ending = before

    @abstractmethod
    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; Interrupted when `interrupt` was called."""

    @abstractmethod
    def columns_in(self, catalog: str, schema: str) -> list[tuple[str, str, str]]:
        """Return the columns of the tables of a schema that this user may read: table, column, type, in order."""

    @abstractmethod
    def ledgers(self) -> list[tuple[str, str]]:
        """Return catalog and schema of every ledger, those of the current database first."""

    @abstractmethod
    def comment_on(self, catalog: str, schema: str, name: str) -> str | None:
        """Return the comment of the view of a name: `none` where it has none, empty for a table, None for nothing."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit what is done inside, or roll all of it back."""

    @abstractmethod
    def roll_back(self) -> None:
        """Roll back whatever is open; nothing to roll back is fine."""

    @abstractmethod
    def translated(self, contract: Contract | None, doing: str) -> AbstractContextManager[None]:
        """Roll back whatever is open when an error passes, and tell one of the driver as one of ours."""

    @abstractmethod
    def pin(self, contract: Contract) -> None:
        """Pin what the meaning of a source may depend on."""

    @abstractmethod
    def check_select(self, query: SqlFile, body: str) -> None:
        """Let the database's own parser say that a file is one SELECT; Misused[source_invalid] when it is not."""

    @abstractmethod
    def query_failed(self, contract: Contract, query: SqlFile, error: Exception) -> ResliceError:
        """Return the error for a SQL file that the database could not understand (2), or could not evaluate (4)."""

    @abstractmethod
    def columns_of(self, table: str, wanted: Iterable[str]) -> tuple[Column, ...]:
        """Return the columns of a temporary table, in its order, in the spelling of `wanted`."""

    @abstractmethod
    def way_on_without_view(self, error: Exception, view: str, target: Target) -> tuple[str, str]:
        """Return the kind of refusal, and what helps, where the database does not take the view of current versions."""

    @abstractmethod
    def words_of(self, error: Exception) -> str:
        """Return the first line of what the driver says."""


def moment_of(scope: Scope, column: Column, text: str) -> Moment:
    """Return the slice that a fetched slice value names; ValueError when it is no slice."""
    return moment_from_column(text, column.family.value, scope.unit, scope.zone)


def label_of(scope: Scope, column: Column, text: str) -> str:
    """Return how a fetched slice value is written in a range."""
    return scope.label(moment_of(scope, column, text))


def exact_number(value: Any, family: Family | None = None) -> Number | None:
    """Return an exact number: an int where the column is an integer, whatever type a sum of it has; else a Decimal."""
    if value is not None and family is Family.INTEGER:
        return int(value)
    if value is None or isinstance(value, int | Decimal):
        return value
    return Decimal(str(value))


def sum_of(dialect: Dialect, staged: Staged, measure: str | None) -> str:
    """Return the SQL sum of a measure, exact at its scale; the number of rows when it is None."""
    if measure is None:
        return "count(*)"
    column = staged.target.column(measure)
    return f"sum({dialect.shown(quote(measure), column, sql.scales(staged.contract)[measure])})"
