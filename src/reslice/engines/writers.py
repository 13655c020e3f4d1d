"""What taking turns with live writers has in common: the fence, where it has to be made, and what a writer is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reslice import ledger
from reslice.engines.refusals import other_ledgers
from reslice.engines.session import Ledgers
from reslice.errors import Failure, Misused, OutcomeUnknown, Refused, Retryable
from reslice.tables import beside

Found = tuple[str, str, str, str]
"""What a name means on the connection of the writer: catalog, schema, name, and what kind of thing it is."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The row that publishes of a table update first: `where` is its ledger, `table` the full name it stands under."""

    catalog: str
    schema: str
    """The schema of the ledger."""
    table: str
    named: str
    """The table as the writer named it."""

    @property
    def where(self) -> str:
        """The ledger, as statements name it."""
        return ledger.place(self.catalog, self.schema)


def fence_of(name: str, schema: str, found: Found | None) -> Fence:
    """Return the fence of what a name means; Refused when it means nothing, or no table."""
    if found is None or found[3] != "table":
        kind, words = "target_missing", f"the database has no table {name}"
        if found is not None:
            kind, words = "target_not_table", f"a {found[3]} is {name}"
        asked = f"writer_lock(connection, {name!r})"
        failure = Failure(kind, asked, (words,), "name the table that the contract names")
        raise Refused(name, [failure], unchanged="nothing was written")
    catalog, table_schema, table, _ = found
    return Fence(catalog, schema, f"{catalog}.{beside(table_schema, table)}", name)


def is_there(writer: Ledgers, fence: Fence) -> bool:
    """Whether the fence is there, as far as this writer may see it."""
    if ("fences", "generation") not in _columns_in(writer, fence):
        return False
    return bool(writer.execute(f"SELECT 1 FROM {fence.where}.fences WHERE table_name = $name", {"name": fence.table}))


def make(writer: Ledgers, fence: Fence) -> None:
    """Make the fence, in a ledger that is made when absent, as the first run of the table does.

    The caller holds the ledger's lock and commits; Refused when the schema is not, or another one is, the ledger.
    """
    present = _columns_in(writer, fence)
    foreign = ledger.foreign_tables(present)
    others = other_ledgers(writer, fence.catalog, fence.schema, fence.table)
    if foreign or others:
        raise _not_the_ledger(fence, foreign, others)
    new_schema = writer.dialect.new_schema(fence.catalog, fence.schema)
    for statement in ledger.create_statements(fence.where, present, new_schema):
        writer.execute(statement)
    ledger.add_fence(writer, fence.where, fence.table)


def _columns_in(writer: Ledgers, fence: Fence) -> set[tuple[str, str]]:
    return {(table, column) for table, column, _ in writer.columns_in(fence.catalog, fence.schema)}


def _not_the_ledger(fence: Fence, foreign: tuple[str, ...], others: list[str]) -> Refused:
    asked = f"the ledger of {fence.table} is in the schema {fence.schema}"
    if foreign:
        found = f"the schema {fence.schema} holds {', '.join(foreign)}, which reslice did not make; left untouched"
        after = "pass schema=, as the contract's ledger: {schema: …} says"
    else:
        found = f"the ledger in schema {others[0]} already guards {fence.table}; a table has one ledger"
        after = f"writer_lock(connection, table, schema={others[0]!r})"
    return Refused(fence.table, [Failure("ledger_foreign", asked, (found,), after)], unchanged="nothing was written")


# --- what a writer is told ------------------------------------------------------------------------------------------


def already_open(table: str, after: str) -> Misused:
    """Return the error for a connection that has a transaction open; `after` is what to do, which drivers differ in."""
    asked = "writer_lock begins its transaction itself: its snapshot may not be older than its turn"
    found = "the connection has a transaction open"
    return Misused(table, [Failure("usage", asked, (found,), after)], unchanged="the open transaction is as it was")


def ended_within(fence: Fence) -> Misused:
    """Return the error for a block that ended the transaction it was given."""
    asked = "writer_lock commits at the end of its block, and rolls back when the block raises"
    found = "the block has ended the transaction itself, and the lock with it"
    failure = Failure("usage", asked, (found,), "take BEGIN, COMMIT and ROLLBACK out of the block; to undo, raise")
    return Misused(
        fence.table, [failure], unchanged="what the block committed itself is there; what it left open was rolled back"
    )


def no_rights(table: str, text: str, after: str) -> Refused:
    """Return the error for a connection that may not write what takes a turn."""
    failure = Failure("target_rights", f"the turn of {table}", (text,), after)
    return Refused(table, [failure], unchanged="nothing was written")


def not_available(table: str, text: str) -> Retryable:
    """Return the error for a database that failed before anything was written."""
    failure = Failure("database_unavailable", f"the turn of {table}", (text,), "try again")
    return Retryable(table, [failure], unchanged="nothing was written")


def no_fence(fence: Fence) -> Retryable:
    """Return the error for a fence that was there a moment ago, and is gone."""
    return not_available(fence.table, "its fence is gone from the ledger: somebody has deleted it")


IN_FRONT = "a publish of this table, or another writer that holds its lock, is under way"


def not_our_turn(table: str, wait: timedelta, found: str = IN_FRONT) -> Retryable:
    """Return the error for a turn that did not come in time; `found` says who has it, where that is known."""
    asked = f"the turn of {table} within {wait.total_seconds():g}s"
    failure = Failure("database_busy", asked, (found,), 'try again, or wait longer: wait="10m"')
    return Retryable(table, [failure], unchanged="nothing was written")


def not_committed(fence: Fence, text: str) -> Retryable:
    """Return the error for a commit that is known not to have happened."""
    asked = "what was written under the lock in one commit"
    failure = Failure("write_aborted", asked, (text,), "write again, under the lock")
    return Retryable(fence.table, [failure], unchanged=f"{fence.named} is as it was; everything was rolled back")


def unknown(fence: Fence, text: str) -> OutcomeUnknown:
    """Return the error for a commit that was sent, and of which nobody can say what became of it."""
    found = f"the commit was sent, and the database failed: {text}"
    failure = Failure("outcome_unknown", "what was written is looked up after its commit", (found,), "look at the rows")
    return OutcomeUnknown(fence.table, [failure], unchanged="not known: all of it is there, or nothing")
