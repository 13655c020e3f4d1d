"""Processes that live as long as a module: each is told what to do in one history after the other.

An actor runs a backfill, or is a live writer; one more process reads all the while. Where an actor pauses follows from
a seed, so that a history that went wrong can be had again, as far as the machine lets it.
"""

from __future__ import annotations

import multiprocessing
import random
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import patch

import psycopg

import reslice
from reslice.errors import ResliceError
from tests.races.histories import Backfill, Transaction, Write, Writer

PATIENCE_SECONDS = 60
HEAD_START_SECONDS = 0.01
PAUSES, PAUSES_AT_TURNS = 0.06, 0.3
"""How often an actor pauses before a statement of reslice's, and before one with which others come or go."""

Sums = tuple[int, int, Decimal | None]
Seen = Mapping[date, Sums]
"""What a reader saw at one moment: by day, how many rows there were, and what counts and revenues added up to."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a backfill ended: its outcome, or the kind of its error and the exit code."""

    outcome: str
    exit_code: int
    run: str | None
    warnings: tuple[str, ...]
    unexpected: str = ""


@dataclass(frozen=True, slots=True)
class Touched:
    """What one statement of a live writer has written: the stamp `batch_id` of each row that it touched."""

    write: Write
    stamps: tuple[str | None, ...]


@dataclass(slots=True)
class Wrote:
    """One transaction of a live writer: its number, what it touched, and the error that it was told."""

    transaction: Transaction
    number: str = ""
    touched: list[Touched] = field(default_factory=list)
    error: str = ""
    unexpected: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What an actor is to do: where, what, when it begins, and what is taken out of a publish."""

    place: str
    work: Backfill | Writer
    begins: float
    broken: str = ""
    is_versioned: bool = False


def act(pipe: Connection) -> None:
    """Be an actor until the pipe is closed."""
    connections: dict[str, psycopg.Connection[Any]] = {}
    with suppress(EOFError):
        while True:
            job: Job = pipe.recv()
            time.sleep(max(job.begins + job.work.delay - time.time(), 0))
            work = job.work
            pipe.send(_backfill(job, work) if isinstance(work, Backfill) else _write(job, work, connections))


# --- a backfill -----------------------------------------------------------------------------------------------------


def _backfill(job: Job, work: Backfill) -> Ran:
    with _pausing(work.seed, job.broken):
        try:
            handle = reslice.open(job.place).target("daily_orders")
            run = handle.run(f"{work.first}..{work.last}", per_slice=work.per_slice, rewrite=work.rewrite)
            return Ran(run.outcome.value, 0, run.id, run.warnings)
        except ResliceError as error:
            return Ran(error.kind, error.exit_code, error.run.id if error.run else None, (), _shown(error))
        except Exception:  # told to the test, which fails
            return Ran("crashed", 1, None, (), traceback.format_exc())


def _shown(error: ResliceError) -> str:
    return f"{error}: {'; '.join(line for failure in error.failures for line in failure.found)}"


@contextmanager
def _pausing(seed: int, broken: str) -> Iterator[None]:
    """Pause before some statements of reslice's, and leave out of a publish what is to be `broken`."""
    from reslice.engines.postgres import publish
    from reslice.engines.postgres.session import PostgresSession
    from reslice.engines.postgres.writers import WriterConnection

    chance = random.Random(seed)
    missing = Missing(broken)

    def paused(execute: Any) -> Any:
        def executed(self: Any, statement: str, parameters: Any = None) -> Any:
            often = PAUSES_AT_TURNS if statement.startswith(("LOCK TABLE", "COMMIT")) else PAUSES
            if chance.random() < often:
                time.sleep(chance.uniform(0, 0.02))
            answer = missing.answer(statement)
            return execute(self, statement, parameters) if answer is None else answer

        return executed

    with ExitStack() as stack:
        for owner in (PostgresSession, WriterConnection):
            stack.enter_context(patch.object(owner, "execute", paused(owner.execute)))
        if broken == "no base check":
            stack.enter_context(patch.object(publish, "_refuse_another_base", lambda *_: None))
        yield


@dataclass(slots=True)
class Missing:
    """What a publish leaves out, with time for others to do what it keeps them from."""

    what: str
    is_publishing: bool = False

    def answer(self, statement: str) -> list[tuple[Any, ...]] | None:
        """Return the answer that is given to a statement that is left out; None for any other, which is executed."""
        if not self.what:
            return None
        if statement.startswith("LOCK TABLE"):
            self.is_publishing = True
            if self.what == "no base check":
                time.sleep(0.8)
                return None
            return []
        if self.is_publishing and statement == "COMMIT":
            self.is_publishing = False
            time.sleep(1.0 if self.what == "no table lock" else 0.2)
        if self.what == "no turn":
            for begins, answer in TURN.items():
                if statement.startswith(begins):
                    return answer
        return None


TURN: Mapping[str, list[tuple[Any, ...]]] = {
    "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('reslice table": [],
    'UPDATE "races"."reslice".fences': [(1,)],
}
"""The statements that make publishes take turns, and what each would answer."""


# --- a live writer --------------------------------------------------------------------------------------------------


def _write(job: Job, work: Writer, connections: dict[str, psycopg.Connection[Any]]) -> list[Wrote]:
    connection = connections.get(job.place)
    if connection is None or connection.closed:
        connection = connections[job.place] = psycopg.connect(job.place)
    connection.autocommit = work.is_autocommit
    connection.isolation_level = psycopg.IsolationLevel[work.level.replace(" ", "_")]
    with _pausing(work.seed, ""):
        return [_transact(connection, work, each, job.is_versioned) for each in work.transactions]


class _Undo(Exception):
    """A live writer that changes its mind."""


def _transact(connection: psycopg.Connection[Any], work: Writer, transaction: Transaction, is_versioned: bool) -> Wrote:
    wrote = Wrote(transaction)
    try:
        with suppress(_Undo), _held(connection, work):
            for write, pause in zip(transaction.writes, transaction.pauses, strict=False):
                time.sleep(pause)
                wrote.touched.append(Touched(write, _stamps(connection, write, is_versioned)))
            wrote.number = str(connection.execute("SELECT pg_current_xact_id()").fetchall()[0][0])
            time.sleep(transaction.pauses[-1])
            if not transaction.commits:
                raise _Undo
    except (psycopg.Error, ResliceError) as error:
        wrote.error = error.kind if isinstance(error, ResliceError) else type(error).__name__
    except Exception:  # told to the test, which fails
        wrote.unexpected = traceback.format_exc()
    return wrote


@contextmanager
def _held(connection: psycopg.Connection[Any], work: Writer) -> Iterator[None]:
    """Open a transaction, with the lock where this writer takes it."""
    if work.is_locked:
        with reslice.writer_lock(connection, "daily_orders"):
            yield
    else:
        with connection.transaction():
            yield


def _stamps(connection: psycopg.Connection[Any], write: Write, is_versioned: bool) -> tuple[str | None, ...]:
    """Write, and return the stamps of the rows that were touched."""
    at, values = (
        "WHERE order_date = %(day)s AND channel = %(channel)s",
        {
            "day": write.day,
            "channel": write.channel,
            "value": write.value,
            "to_day": write.to_day,
            "to_channel": write.to_channel,
        },
    )
    stamp = "'live'"
    if is_versioned:  # a new row goes to the version that is current
        stamp = "(SELECT batch_id FROM daily_orders_current WHERE order_date = %(day)s LIMIT 1)"
    statement = {
        "insert": "INSERT INTO daily_orders (order_date, channel, order_count, revenue, has_gift, batch_id)"
        f" SELECT %(day)s, %(channel)s, 1, %(value)s, false, {stamp}",
        "update": f"UPDATE daily_orders SET revenue = revenue + %(value)s {at}",
        "delete": f"DELETE FROM daily_orders {at}",
        "move": f"UPDATE daily_orders SET order_date = %(to_day)s, channel = %(to_channel)s {at}",
    }[write.kind]
    return tuple(row[0] for row in connection.execute(f"{statement} RETURNING batch_id", values).fetchall())


# --- the reader -----------------------------------------------------------------------------------------------------


def read(pipe: Connection) -> None:
    """Look at the sums again and again from one word to the next; give what was seen, each change once."""
    with suppress(EOFError):
        while True:
            place, relation = pipe.recv()
            seen: list[Seen] = []
            looks = 0
            with psycopg.connect(place, autocommit=True) as connection:
                pipe.send("looks")
                while not pipe.poll(0.001):
                    looks += 1
                    with suppress(psycopg.errors.UndefinedTable):  # the view is made by the first run
                        now = _look(connection, relation)
                        if not seen or seen[-1] != now:
                            seen.append(now)
            pipe.recv()
            pipe.send((looks, seen))


def _look(connection: psycopg.Connection[Any], relation: str) -> Seen:
    sums = "count(*), CAST(sum(order_count) AS bigint), sum(revenue)"
    rows = connection.execute(f"SELECT order_date, {sums} FROM {relation} GROUP BY order_date").fetchall()
    return {day: (count, orders, revenue) for day, count, orders, revenue in rows}


# --- all of them ----------------------------------------------------------------------------------------------------


class Crew:
    """The processes. They are started once, and told one history after the other."""

    def __init__(self, actors: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes: list[Any] = []

        def started(work: Any) -> Connection:
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            return ours

        self._reader = started(read)
        self._actors = [started(act) for _ in range(actors)]

    def play(self, jobs: list[Job], reader: tuple[str, str]) -> tuple[list[Any], int, list[Seen]]:
        """Let every job be done at the same time; return how each ended, how often was looked, and what was seen."""
        assert len(jobs) <= len(self._actors)
        self._reader.send(reader)
        _answer(self._reader)  # it is there before anybody begins
        for pipe, job in zip(self._actors, jobs, strict=False):
            pipe.send(job)
        ended = [_answer(pipe) for pipe, _ in zip(self._actors, jobs, strict=False)]
        self._reader.send("stop")
        looks, seen = _answer(self._reader)
        return ended, looks, seen

    def close(self) -> None:
        """Let every process end."""
        for pipe in (self._reader, *self._actors):
            pipe.close()
        for process in self._processes:
            process.join(PATIENCE_SECONDS)
            if process.is_alive():
                process.kill()


def _answer(pipe: Connection) -> Any:
    assert pipe.poll(PATIENCE_SECONDS), "an actor hangs"
    return pipe.recv()
