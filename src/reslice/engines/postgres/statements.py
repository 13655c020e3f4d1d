"""The statements of a publish on PostgreSQL, in order: a publish executes them, and `plan --sql` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from reslice.engines import methods, sql
from reslice.engines.dialect import Dialect
from reslice.engines.methods import Step, Write
from reslice.engines.postgres import locks
from reslice.engines.postgres.session import BEGIN
from reslice.engines.publication import TOLD, Publication
from reslice.engines.touch import Touch
from reslice.tables import Target

TURN = f"SELECT pg_advisory_xact_lock({locks.key(locks.TABLE, '$table_name')})"
"""Waits for the turn of the table `table_name`, which ends with the transaction."""


def lock(target: Target) -> str:
    """Return the statement that keeps every other writer out of a table until the transaction ends, and readers in."""
    return f"LOCK TABLE {sql.target_name(target)} IN SHARE ROW EXCLUSIVE MODE"


def writes(publication: Publication, dialect: Dialect) -> tuple[Write, ...]:
    """Return the statements of the method; no row is touched first, since the lock keeps every writer out."""
    return methods.writes(publication, dialect, Touch.NOTHING)


def is_compared_first(publication: Publication, each: Sequence[Write]) -> bool:
    """Whether the base is compared by a statement of its own: what is taken away at once tells what it was."""
    return publication.compared != publication.written or not any(write.step is Step.TAKE for write in each)


def compare(publication: Publication, dialect: Dialect) -> str:
    """Return the SELECT of what the slices hold now, which must be what was compared."""
    return publication.digest(dialect, sql.relation(publication.staged.target), publication.compared)


def shown(publication: Publication, dialect: Dialect) -> tuple[str, ...]:
    """Return the statements of the commit, in order, as a person reads them."""
    each = writes(publication, dialect)
    timeouts = publication.staged.contract.timeouts
    first = [f"-- must be {publication.base}, as it was compared\n{compare(publication, dialect)}"]
    return (
        BEGIN,
        f"-- the turn of the table, waited for up to {timeouts.wait.total_seconds():g}s\n{TURN}",
        publication.fence(),
        f"-- the run's row in {publication.where}.runs, its slices and its groups",
        f"-- no other writer from here on; waited for up to {timeouts.lock.total_seconds():g}s\n"
        f"{lock(publication.staged.target)}",
        *(first if is_compared_first(publication, each) else ()),
        *(f"-- {write.step}\n{write.statement}" if write.step in TOLD else write.statement for write in each),
        f"-- must be {publication.after}, as it was staged\n{publication.written_back(dialect)}",
        "COMMIT",
    )
