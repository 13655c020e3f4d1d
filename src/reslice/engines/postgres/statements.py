"""The statements of a publish on PostgreSQL, in order: a publish executes them, and `plan --sql` prints them."""

from __future__ import annotations

from reslice import ledger
from reslice.contract import Contract, Method
from reslice.engines import methods, sql
from reslice.engines import query as query_text
from reslice.engines.dialect import Dialect
from reslice.engines.methods import RUN_ID, Step, Write
from reslice.engines.postgres import locks
from reslice.engines.postgres.session import BEGIN
from reslice.engines.publication import Publication
from reslice.engines.touch import Touch
from reslice.tables import Target

TURN = f"SELECT pg_advisory_xact_lock({locks.key(locks.TABLE, '$table_name')})"
"""Waits for the turn of the table `table_name`, which ends with the transaction."""


def lock(target: Target) -> str:
    """Return the statement that keeps every other writer out of a table until the transaction ends, and readers in."""
    return f"LOCK TABLE {sql.target_name(target)} IN SHARE ROW EXCLUSIVE MODE"


def writes(publication: Publication, dialect: Dialect) -> tuple[Write, ...]:
    """Return the statements of the method; no row is touched first, since the lock keeps every writer out.

    Rows that are replaced are kept ahead of the lock, of the base.
    """
    each = methods.writes(publication, dialect, Touch.NOTHING)
    return tuple(write for write in each if write.step is not Step.KEEP)


def beside(contract: Contract, target: Target) -> tuple[str, ...]:
    """Return the columns that are kept and not the contract's, such as stamps; none where no row is replaced."""
    if contract.method is Method.APPEND_VERSION:
        return ()
    return tuple(name for name in sql.kept_columns(target) if name not in contract.columns)


def keep_ahead(publication: Publication, dialect: Dialect) -> tuple[Write, ...]:
    """Return the statement that keeps the rows of the base; they are what is removed, which the lock then shows."""
    contract, target = publication.staged.contract, publication.staged.target
    if contract.method is Method.APPEND_VERSION:
        return ()
    inside = publication.within(dialect, publication.written)
    rows = f"SELECT $run_id, {dialect.every_column(target)} FROM {publication.names.base} WHERE {inside}"
    return (Write(Step.KEEP, f"INSERT INTO {publication.kept}\n{rows}", RUN_ID),)


def keep_again(publication: Publication, dialect: Dialect) -> tuple[Write, ...]:
    """Return the statements that keep, instead of the rows of the base, those that are there."""
    each = methods.writes(publication, dialect, Touch.NOTHING)
    kept, inside = publication.kept, publication.within(dialect, publication.written)
    gone = f"DELETE FROM {kept} WHERE {sql.quote(ledger.KEPT_RUN)} = $run_id AND {inside}"
    return (Write(Step.KEEP, gone, RUN_ID), *(write for write in each if write.step is Step.KEEP))


def digest_of_kept(publication: Publication, dialect: Dialect, relation: str) -> str:
    """Return the SELECT of what a relation holds of the slices that must not have moved, in every column kept."""
    staged = publication.staged
    return publication.digest(dialect, relation, publication.compared, beside(staged.contract, staged.target))


def compare(publication: Publication, dialect: Dialect) -> str:
    """Return the SELECT of what the slices hold now, which must be what was compared, and kept."""
    return digest_of_kept(publication, dialect, sql.relation(publication.staged.target))


def shown_base(publication: Publication, dialect: Dialect) -> str:
    """Return the statement that makes the base, as a person reads it."""
    contract, target = publication.staged.contract, publication.staged.target
    base = sql.base_select(dialect, contract, target, publication.staged.scope, beside(contract, target))
    return f"-- the base\n{query_text.create(publication.names.base, base)}"


def shown(publication: Publication, dialect: Dialect) -> tuple[str, ...]:
    """Return the statements of the commit, in order, as a person reads them."""
    target, timeouts = publication.staged.target, publication.staged.contract.timeouts
    return (
        BEGIN,
        f"-- the turn of the table, waited for up to {timeouts.wait.total_seconds():g}s\n{TURN}",
        publication.fence(),
        f"-- the run's row in {publication.where}.runs, its slices and its groups",
        *(f"-- {write.step}\n{write.statement}" for write in keep_ahead(publication, dialect)),
        f"-- no other writer from here on; waited for up to {timeouts.lock.total_seconds():g}s\n{lock(target)}",
        f"-- must be {publication.base}, as it was compared\n{compare(publication, dialect)}",
        *(write.statement for write in writes(publication, dialect)),
        f"-- must be {publication.after}, as it was staged\n{publication.written_back(dialect)}",
        "COMMIT",
    )
