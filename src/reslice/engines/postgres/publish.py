"""How a publish is done on PostgreSQL: take the turn, lock the table, then look again, replace, read back and record.

All of it is one short transaction at READ COMMITTED, in which every statement sees what was committed before it began:
under a snapshot that is older than the lock, a row that was written meanwhile would be missed. The lock keeps writers
out and readers in. A commit whose answer is lost is looked up, by the id of the run, once the turn is held again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors as driver

from reslice.engines import sql
from reslice.engines.failures import unknown
from reslice.engines.methods import Write
from reslice.engines.postgres import statements
from reslice.engines.postgres.catalog import columns_of, shape_of
from reslice.engines.postgres.errors import BEYOND_LIMITS, CONFLICTS, beyond_limits, lines_of
from reslice.engines.postgres.records import take_turn
from reslice.engines.postgres.session import BEGIN, milliseconds
from reslice.engines.postgres.waiting import table_of, waited
from reslice.engines.publication import Entry, Publication
from reslice.engines.publishing import (
    base_moved,
    generation_of,
    not_as_staged,
    not_published,
    referenced,
    refuse_later_run,
    refused,
    with_points,
    write_ledger,
)
from reslice.errors import Failure, Interrupted, Refused, ResliceError, Retryable
from reslice.values import Published

if TYPE_CHECKING:
    from reslice.engines.postgres.engine import Postgres

IS_THE_SAME = "the table is what it was compared with"
ATTEMPTS = 5
"""How often a publish that a deadlock or a serialization failure has rolled back is tried in all."""
RECONNECT_SECONDS = 30.0
"""How long a server that took a commit and gave no answer is asked for; the wait for the turn comes on top."""


def publish(engine: Postgres, publication: Publication, entry: Entry) -> Published:
    """Replace the slices in one commit; what another transaction was in the way of is tried again, a few times."""
    if engine.was_reopened:
        words = "the connection was lost on the way, and with it the rows that were staged"
        raise not_published(publication, "database_unavailable", words)
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
        publication, turn = _in_turn(engine, publication, entry)
        _lock(engine, publication)
        began = time.monotonic()
        _refuse_another_shape(engine, publication)
        _refuse_another_base(engine, publication, entry.opened.id, turn.base)
        _replace(engine, publication, entry.opened.id)
        if _numbers(engine.execute(publication.written_back(engine.dialect))[0]) != turn.staged:
            raise not_as_staged(engine, publication)
        held = round((time.monotonic() - began) * 1000)
        if entry.run is not None:
            _record_hold(engine, publication, entry, held)
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
        warning = _commit(engine, publication, entry, turn.number)
    return Published(turn.order, held, warnings=(*entry.warnings, *warning))


def _table(publication: Publication) -> dict[str, str]:
    return {"table_name": publication.staged.target.resolved}


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is known once the turn is held, and does not change until it ends, but for the rows of the table.

    `order` is the generation of the fence, `number` the transaction's own, by which the server knows it. Of the base
    and of the staged rows it is how many they are, and the sum of the server's own hashes.
    """

    order: int
    number: str
    base: tuple[int, int]
    staged: tuple[int, int]


def _numbers(row: tuple[Any, ...]) -> tuple[int, int]:
    return int(row[0]), int(row[1] or 0)


def _in_turn(engine: Postgres, publication: Publication, entry: Entry) -> tuple[Publication, _Turn]:
    """Begin, wait for the turn of the table, and do all that needs no lock of it: writers still write meanwhile."""
    contract, target = publication.staged.contract, publication.staged.target
    engine.execute(BEGIN)
    take_turn(engine, contract, target, _about(publication))
    order = generation_of(publication, engine.execute(publication.fence(), _table(publication)))
    refuse_later_run(engine, publication, entry.staged_order)
    publication = with_points(engine, publication)
    write_ledger(engine, publication, entry, order, None)
    _write(engine, statements.keep_ahead(publication, engine.dialect), {"run_id": entry.opened.id})
    base = statements.digest_of_kept(publication, engine.dialect, publication.names.base)
    rows = publication.digest(engine.dialect, publication.names.staged, publication.written)
    digests = engine.execute(f"SELECT * FROM ({base}) AS base, ({rows}) AS staged")[0]
    number = str(
        engine.execute(
            "SELECT CAST(pg_current_xact_id() AS text), set_config('lock_timeout', $limit, true)",
            {"limit": milliseconds(contract.timeouts.lock)},
        )[0][0]
    )
    return publication, _Turn(order, number, _numbers(digests[:2]), _numbers(digests[2:]))


def _lock(engine: Postgres, publication: Publication) -> None:
    """Keep every other writer out of the table until the transaction ends, and readers in."""
    contract, target = publication.staged.contract, publication.staged.target
    with waited(engine, contract, table_of(contract, target), _about(publication)):
        engine.execute(statements.lock(target))


def _about(publication: Publication) -> str:
    return f"{publication.staged.contract.name} for {publication.staged.scope.text}"


def _record_hold(engine: Postgres, publication: Publication, entry: Entry, held: int) -> None:
    """Say in the ledger how long the table was held."""
    statement = f"UPDATE {publication.where}.runs SET lock_milliseconds = $held WHERE id = $id"
    engine.execute(statement, {"held": held, "id": entry.opened.id})


def _refuse_another_shape(engine: Postgres, publication: Publication) -> None:
    """Refuse when the table is another one, or its columns or what hangs on it are others, than was looked at."""
    target = publication.staged.target
    name = sql.target_name(target)
    shape = shape_of(engine, name)
    if shape == target.shape:
        return
    found = f"what hangs on {target.beside} has changed: foreign keys, triggers, rules, policies or tables that inherit"
    if not shape.startswith(f"{target.number} "):
        found = f"{target.beside} is another table, or a view, and not the one that was looked at"
    else:
        now = columns_of(engine, name)
        if [(each.name, each.type) for each in now] != [(each.name, each.type) for each in target.columns]:
            names = ", ".join(each.name for each in now)
            found = f"its columns are no longer those that were looked at: they are {names}"
    raise refused(publication, "base_moved", IS_THE_SAME, found)


def _refuse_another_base(engine: Postgres, publication: Publication, run_id: str, base: tuple[int, int]) -> None:
    """Refuse when the slices are no longer what was compared; whatever else is there now, it is what is kept.

    Rows that differ in a stamp alone have not moved. They were kept ahead as they had been, and are kept again.
    """
    dialect = engine.dialect
    if _numbers(engine.execute(statements.compare(publication, dialect))[0]) == base:
        return
    if not engine.execute(publication.holds(dialect, publication.names.base, publication.compared))[0][0]:
        raise base_moved(engine, publication)
    _write(engine, statements.keep_again(publication, dialect), {"run_id": run_id})


def _replace(engine: Postgres, publication: Publication, run_id: str) -> None:
    """Execute the statements of the method; no row is touched first, since the lock keeps every writer out."""
    values = {"run_id": run_id, "run_time": engine.now().isoformat(" ") if publication.stamps_time else None}
    try:
        _write(engine, statements.writes(publication, engine.dialect), values)
    except (driver.ForeignKeyViolation, driver.RestrictViolation) as error:
        if (refusal := _referenced(error, publication)) is None:
            raise
        raise refusal from error


def _write(engine: Postgres, writes: Iterable[Write], values: Mapping[str, Any]) -> None:
    for write in writes:
        engine.execute(write.statement, {name: values[name] for name in write.takes})


def _referenced(error: psycopg.Error | Interrupted | None, publication: Publication) -> Refused | None:
    """Return the refusal of a publish that would take a row away which others point at; None for any other error."""
    if not isinstance(error, driver.ForeignKeyViolation | driver.RestrictViolation):
        return None
    if error.diag.table_name == publication.staged.target.table:  # it is our row that points at nothing
        return None
    return referenced(publication, (error.diag.message_detail or "").partition("Key (")[2].partition(") is still")[0])


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
        published = _looked_up(engine, publication, entry, number)
    except (psycopg.Error, ResliceError) as error:
        found = "its commit was sent, and the ledger could not be read after it"
        raise unknown(publication.staged.contract, publication.staged.scope, run_id, found) from error
    if published:
        return ("the answer to the commit was lost; the ledger says that it is published",) if lost else ()
    if isinstance(failed, Interrupted):
        raise failed
    if isinstance(failed, CONFLICTS):
        raise failed
    if refusal := _referenced(failed, publication):  # of a deferred key
        raise refusal from failed
    text = lines_of(failed)[0] if isinstance(failed, psycopg.Error) else "the database dropped it in silence"
    kind = "publish_failed" if isinstance(failed, driver.IntegrityError) else "conflict"
    raise not_published(publication, "database_unavailable" if lost else kind, text) from failed


def _looked_up(engine: Postgres, publication: Publication, entry: Entry, number: str) -> bool:
    """Whether the commit happened, by the ledger: on the same connection while it lasts, otherwise on a new one."""
    if not engine.is_lost:
        try:
            engine.roll_back()
            return _is_recorded(engine, publication, entry)
        except psycopg.Error:
            if not engine.is_lost:
                raise
    return _found_out(engine, publication, entry, number)


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
            is_busy = isinstance(error, Retryable) and error.kind == "database_busy"
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
    if isinstance(error, driver.InsufficientPrivilege):  # of what a trigger does, or of a grant taken away meanwhile
        contract = publication.staged.contract
        failure = Failure("target_rights", "the slice replaced in one commit", (text,), "have its owner grant it")
        about = f"{contract.name} for {publication.staged.scope.text}"
        return Refused(about, [failure], unchanged=f"{contract.table} is as it was; everything was rolled back")
    if isinstance(error, BEYOND_LIMITS):
        contract, doing = publication.staged.contract, "the slice replaced in one commit"
        about, unchanged = f"{contract.name} for {publication.staged.scope.text}", "everything was rolled back"
        return beyond_limits(about, error, doing, unchanged=f"{contract.table} is as it was; {unchanged}")
    if isinstance(error, driver.CheckViolation) and error.diag.constraint_name is None:  # no CHECK: a partition's own
        text = text.rstrip(".") + (
            f"; make a partition for these rows first: CREATE TABLE … PARTITION OF {publication.staged.target.beside}"
        )
    is_gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return not_published(publication, "database_unavailable" if is_gone else "publish_failed", text)
