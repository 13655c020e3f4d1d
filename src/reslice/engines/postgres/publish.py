"""How a publish is done on PostgreSQL: take the turn, lock the table, then look again, replace, read back and record.

All of it is one short transaction at READ COMMITTED, in which every statement sees what was committed before it began:
under a snapshot that is older than the lock, a row that was written meanwhile would be missed. The lock keeps writers
out and readers in. A commit whose answer is lost is looked up, by the id of the run, once the turn is held again.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors as driver

from reslice.engines import methods, sql
from reslice.engines.failures import unknown
from reslice.engines.postgres.catalog import columns_of
from reslice.engines.postgres.errors import CONFLICTS, lines_of
from reslice.engines.postgres.records import take_turn
from reslice.engines.publication import Entry, Publication
from reslice.engines.publishing import (
    as_it_was_compared,
    not_published,
    once_more,
    referenced,
    refuse_when_not_as_staged,
    refused,
    write_ledger,
)
from reslice.engines.touch import Touch
from reslice.errors import Failure, Interrupted, ResliceError, Retryable
from reslice.values import Published

if TYPE_CHECKING:
    from reslice.engines.postgres.engine import Postgres

ATTEMPTS = 5
"""How often a publish that a deadlock or a serialization failure has rolled back is tried in all."""
RECONNECT_SECONDS = 30.0
"""How long a server that took a commit and gave no answer is asked for; the wait for the turn comes on top."""


def publish(engine: Postgres, publication: Publication, entry: Entry) -> Published:
    """Replace the slices in one commit; what another transaction was in the way of is tried again, a few times."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _once(engine, publication, entry)
        except CONFLICTS as error:
            if attempt == ATTEMPTS:
                words = f"{lines_of(error)[0]}; tried {ATTEMPTS} times"
                raise not_published(publication, "conflict", words) from error
            entry = _told(entry, f"attempt {attempt} was rolled back by another transaction: {lines_of(error)[0]}")
            time.sleep(random.uniform(0.01, 0.05) * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _told(entry: Entry, warning: str) -> Entry:
    """Return the entry with one more thing to say of the run, which the ledger keeps as well."""
    run = entry.run and replace(entry.run, warnings=(*entry.run.warnings, warning))
    return replace(entry, run=run, warnings=(*entry.warnings, warning))


def _once(engine: Postgres, publication: Publication, entry: Entry) -> Published:
    """Try the whole transaction once; anything but a commit rolls all of it back."""
    try:
        _begin(engine, publication)
        began = time.monotonic()
        order = int(engine.execute(publication.fence(), _table(publication))[0][0])
        _refuse_changed_columns(engine, publication)
        publication = as_it_was_compared(engine, publication, entry.staged_order)
        _replace(engine, publication, entry.opened.id)
        refuse_when_not_as_staged(engine, publication)
        milliseconds = round((time.monotonic() - began) * 1000)
        write_ledger(engine, publication, entry, order, milliseconds)
        number = str(engine.execute("SELECT CAST(pg_current_xact_id() AS text)")[0][0])
        engine.stop_if_asked()
    except CONFLICTS:
        engine.roll_back()
        raise
    except psycopg.Error as error:
        engine.roll_back()
        raise _sorted(error, publication) from error
    except BaseException:
        engine.roll_back()
        raise
    with engine.ending():
        warning = _commit(engine, publication, entry, number)
    return Published(order, milliseconds, warnings=(*entry.warnings, *warning))


def _table(publication: Publication) -> dict[str, str]:
    return {"table_name": publication.staged.target.resolved}


def _begin(engine: Postgres, publication: Publication) -> None:
    """Begin, wait for the turn of the table and then for its lock, each up to its timeout."""
    contract, target = publication.staged.contract, publication.staged.target
    timeouts = contract.timeouts
    engine.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    idle = {"limit": _milliseconds(timeouts.idle)}
    engine.execute("SELECT set_config('idle_in_transaction_session_timeout', $limit, true)", idle)
    try:
        take_turn(engine, contract, target)
    except driver.LockNotAvailable as error:
        found = "another publish of this table, or a writer that holds its writer_lock, is under way"
        raise _not_our_turn(publication, "database_busy", "wait", found) from error
    engine.execute("SELECT set_config('lock_timeout', $limit, true)", {"limit": _milliseconds(timeouts.lock)})
    try:
        engine.execute(f"LOCK TABLE {sql.target_name(target)} IN SHARE ROW EXCLUSIVE MODE")
    except driver.LockNotAvailable as error:
        found = f"another transaction has written to {target.beside} and has not ended"
        raise _not_our_turn(publication, "conflict", "lock", found) from error


def _milliseconds(limit: Any) -> str:
    return f"{max(round(limit.total_seconds() * 1000), 1)}ms"


def _refuse_changed_columns(engine: Postgres, publication: Publication) -> None:
    """Refuse when the table is another one, or has other columns, than was looked at; the lock keeps it so from now."""
    target = publication.staged.target
    now = [(each.name, each.type) for each in columns_of(engine, sql.target_name(target))]
    if now == [(each.name, each.type) for each in target.columns]:
        return
    found = f"its columns are no longer those that were looked at: they are {', '.join(name for name, _ in now)}"
    raise refused(publication, "base_moved", "the table is what it was compared with", found)


def _replace(engine: Postgres, publication: Publication, run_id: str) -> None:
    """Execute the statements of the method; no row is touched first, since the lock keeps every writer out."""
    values = {"run_id": run_id, "run_time": engine.now().isoformat(" ") if publication.stamps_time else None}
    for write in methods.writes(publication, engine.dialect, Touch.NOTHING):
        try:
            engine.execute(write.statement, {name: values[name] for name in write.takes})
        except driver.ForeignKeyViolation as error:
            if error.diag.table_name == publication.staged.target.table:  # it is our row that points at nothing
                raise
            row = (error.diag.message_detail or "").partition("Key (")[2].partition(") is still")[0]
            raise referenced(publication, row) from error


def _commit(engine: Postgres, publication: Publication, entry: Entry, number: str) -> tuple[str, ...]:
    """Commit, and read from the ledger whether it happened; return what to say where the answer was lost.

    COMMIT of an aborted transaction raises nothing. `number` is the transaction's own, by which the server knows it.
    """
    run_id = entry.opened.id
    failed: psycopg.Error | Interrupted | None = None
    try:
        engine.commit()
        if entry.run is None:
            return ()
    except (psycopg.Error, Interrupted) as error:
        failed = error
    lost = isinstance(failed, psycopg.Error) and engine.is_lost
    try:
        if lost:
            published = _found_out(engine, publication, entry, number)
        else:
            engine.roll_back()
            published = _is_recorded(engine, publication, entry)
    except (psycopg.Error, ResliceError) as error:
        found = "its commit was sent, and the ledger could not be read after it"
        raise unknown(publication.staged.contract, publication.staged.scope, run_id, found) from error
    if published:
        return ("the answer to the commit was lost; the ledger says that it is published",) if lost else ()
    if isinstance(failed, Interrupted):
        raise failed
    if isinstance(failed, CONFLICTS):
        raise failed
    text = lines_of(failed)[0] if isinstance(failed, psycopg.Error) else "the database dropped it in silence"
    kind = "publish_failed" if isinstance(failed, driver.IntegrityError) else "conflict"
    raise not_published(publication, "database_unavailable" if lost else kind, text) from failed


def _is_recorded(engine: Postgres, publication: Publication, entry: Entry) -> bool:
    """Whether the ledger has the slices of this commit as published."""
    rows = engine.execute(
        f"SELECT count(*) FROM {publication.where}.run_slices WHERE run_id = $run_id AND slice = $slice"
        " AND state = 'published'",
        {"run_id": entry.opened.id, "slice": publication.slices[0].label},
    )
    return bool(rows[0][0])


def _found_out(engine: Postgres, publication: Publication, entry: Entry, number: str) -> bool:
    """Find out whether a commit without an answer happened: only who holds the turn knows that it is over.

    The transaction may still be committing, and then its row is not there yet. It holds the turn until it has ended.
    """
    contract, target = publication.staged.contract, publication.staged.target
    deadline = time.monotonic() + min(RECONNECT_SECONDS, contract.timeouts.wait.total_seconds())
    while True:
        try:
            engine.reopen()
            if _status(engine, number) == "aborted":
                return _is_recorded(engine, publication, entry)
            with engine.transaction():
                take_turn(engine, contract, target)
                return _is_recorded(engine, publication, entry)
        except (psycopg.OperationalError, ResliceError) as error:
            is_busy = isinstance(error, driver.LockNotAvailable)
            if is_busy or isinstance(error, Interrupted) or time.monotonic() >= deadline:
                raise
            time.sleep(0.2)


def _status(engine: Postgres, number: str) -> str | None:
    """Return what the server knows of a transaction; None where it does not know it, as after a failover."""
    try:
        rows = engine.execute("SELECT pg_xact_status(CAST($number AS xid8))", {"number": number})
    except (driver.InvalidParameterValue, driver.DataError):
        return None
    status: str | None = rows[0][0]
    return status


def _sorted(error: psycopg.Error, publication: Publication) -> Exception:
    """Tell a database that is gone from a failure of the statement itself."""
    text = "; ".join(lines_of(error, 2))
    if isinstance(error, driver.LockNotAvailable):
        return not_published(publication, "conflict", text)
    is_gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return not_published(publication, "database_unavailable" if is_gone else "publish_failed", text)


def _not_our_turn(publication: Publication, kind: str, limit: str, found: str) -> Retryable:
    contract = publication.staged.contract
    seconds = getattr(contract.timeouts, limit).total_seconds()
    asked = contract.quote(f"timeouts.{limit}", f"timeouts.{limit}: {seconds:g}s")
    failure = Failure(kind, asked, (found,), once_more(publication))
    about = f"{contract.name} for {publication.staged.scope.text}"
    return Retryable(about, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
