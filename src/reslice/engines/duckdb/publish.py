"""How a publish is done on DuckDB: fence first, base again, keep, touch, delete, insert, read back, ledger, commit.

The target is as before or wholly replaced. A publish that meets another one waits its turn and compares its base again.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import duckdb

from reslice.engines import methods
from reslice.engines.duckdb.errors import lines_of
from reslice.engines.failures import unknown
from reslice.engines.methods import Step
from reslice.engines.publication import Entry, Publication
from reslice.engines.publishing import (
    as_it_was_compared,
    generation_of,
    not_published,
    referenced,
    refuse_when_not_as_staged,
    refused,
    write_ledger,
)
from reslice.engines.touch import Touch
from reslice.errors import SAME_AGAIN, Failure, Interrupted, ResliceError, Retryable
from reslice.values import Published

if TYPE_CHECKING:
    from reslice.engines.duckdb.engine import DuckDB

TURN_SECONDS = 0.02
IN_FRONT = "another publish of this table, or a writer that holds its writer_lock, is under way"
GUARDING = (Touch.OTHER, Touch.NULL)
"""What makes every concurrent UPDATE visible; the others leave out columns, or all."""


class _TurnAwaitedError(Exception):
    """Another publish of the table, or a writer of the same rows, is in front; `is_fence` says which of the two."""

    def __init__(self, *, is_fence: bool, found: str) -> None:
        super().__init__(found)
        self.is_fence = is_fence
        self.found = found


class _CheckHitError(Exception):
    """A CHECK of the target forbids the value that would make a concurrent UPDATE visible."""


def publish(engine: DuckDB, publication: Publication, entry: Entry) -> Published:
    """Replace the slices in one commit; wait for another publish up to `timeouts.wait`, for a writer up to `lock`."""
    timeouts = publication.staged.contract.timeouts
    touches = list(Touch)
    waited_since: dict[bool, float] = {}
    while True:
        try:
            return _once(engine, publication, entry, touches[0])
        except _CheckHitError:
            touches.pop(0)
        except _TurnAwaitedError as turn:
            limit = timeouts.wait if turn.is_fence else timeouts.lock
            began = waited_since.setdefault(turn.is_fence, time.monotonic())
            if time.monotonic() - began >= limit.total_seconds():
                raise _not_our_turn(publication, turn, "wait" if turn.is_fence else "lock") from turn
            time.sleep(TURN_SECONDS)


def _once(engine: DuckDB, publication: Publication, entry: Entry, touch: Touch) -> Published:
    """Try the whole transaction once; anything but a commit rolls all of it back."""
    opened = entry.opened
    try:
        engine.execute("BEGIN TRANSACTION")
        order = _take_fence(engine, publication)
        began = time.monotonic()
        publication = as_it_was_compared(engine, publication, entry.staged_order)
        _replace(engine, publication, opened.id, touch)
        refuse_when_not_as_staged(engine, publication)
        milliseconds = round((time.monotonic() - began) * 1000)
        write_ledger(engine, publication, entry, order, milliseconds)
        engine.stop_if_asked()
    except duckdb.Error as error:
        engine.roll_back()
        raise _sorted(error, publication) from error
    except BaseException:
        engine.roll_back()
        raise
    with engine.ending():
        _commit(engine, publication, entry)
    return Published(order, milliseconds, touch in GUARDING)


def _take_fence(engine: DuckDB, publication: Publication) -> int:
    """Update the fence row first, so that any other publish of the table conflicts; return its new generation."""
    table = {"table_name": publication.staged.target.resolved}
    try:
        generations = engine.execute(publication.fence(), table)
    except duckdb.TransactionException as error:
        raise _TurnAwaitedError(is_fence=True, found=IN_FRONT) from error
    return generation_of(publication, generations)


def _replace(engine: DuckDB, publication: Publication, run_id: str, touch: Touch) -> None:
    """Execute the statements of the method."""
    values = {"run_id": run_id, "run_time": _now(engine) if publication.stamps_time else None}
    for write in methods.writes(publication, engine.dialect, touch):
        try:
            engine.execute(write.statement, {name: values[name] for name in write.takes})
        except duckdb.BinderException as error:
            if write.step is not Step.KEEP:
                raise
            found = "its columns are no longer those that were looked at: " + lines_of(error)[0]
            raise refused(publication, "base_moved", "the table is what it was compared with", found) from error
        except duckdb.ConstraintException as error:
            if STILL_REFERENCED in str(error):
                row = str(error).partition('key "')[2].partition('" is')[0]
                raise referenced(publication, row) from error
            if write.step is not Step.TOUCH:
                raise
            raise _CheckHitError from error


STILL_REFERENCED = "still referenced by a foreign key"
"""What DuckDB says of a row that may not be removed, nor written where that means to remove and insert it."""


def _now(engine: DuckDB) -> str:
    now: datetime = engine.now()
    return now.isoformat(" ")


def _commit(engine: DuckDB, publication: Publication, entry: Entry) -> None:
    """Commit, and read from the ledger whether it happened: COMMIT of an aborted transaction raises nothing.

    A run of many commits reads them all when it closes, since a statement per slice is what such a run is slow by.
    """
    failed: duckdb.Error | Interrupted | None = None
    run_id = entry.opened.id
    try:
        engine.execute("COMMIT")
        if entry.run is None:
            return
    except (duckdb.Error, Interrupted) as error:
        failed = error
        engine.roll_back()
    try:
        committed = engine.execute(
            f"SELECT count(*) FROM {publication.where}.run_slices WHERE run_id = $run_id AND slice = $slice"
            " AND state = 'published'",
            {"run_id": run_id, "slice": publication.slices[0].label},
        )[0][0]
    except (duckdb.Error, ResliceError) as error:
        contract, found = publication.staged.contract, "its commit was sent, and the ledger could not be read after it"
        raise unknown(contract, publication.staged.scope, run_id, found) from error
    if not committed:
        if isinstance(failed, Interrupted):
            raise failed
        text = (
            lines_of(failed)[0]
            if isinstance(failed, duckdb.Error)
            else "the database dropped the transaction in silence"
        )
        raise not_published(publication, "conflict", text) from failed


def _sorted(error: duckdb.Error, publication: Publication) -> Exception:
    """Tell a conflict with another writer, which is waited for, from a failure of the statement itself."""
    text = lines_of(error)[0]
    if isinstance(error, duckdb.TransactionException):
        return _TurnAwaitedError(is_fence=False, found=text)
    return not_published(publication, "publish_failed", text)


def _not_our_turn(publication: Publication, turn: _TurnAwaitedError, limit: str) -> Retryable:
    contract = publication.staged.contract
    seconds = getattr(contract.timeouts, limit).total_seconds()
    kind = "database_busy" if turn.is_fence else "conflict"
    asked = contract.quote(f"timeouts.{limit}", f"timeouts.{limit}: {seconds:g}s")
    failure = Failure(kind, asked, (turn.found,), SAME_AGAIN)
    about = f"{contract.name} for {publication.staged.scope.text}"
    return Retryable(about, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
