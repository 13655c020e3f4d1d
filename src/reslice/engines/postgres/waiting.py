"""Whom a session waits for: told when a lock is not free within a moment, and named when the time for it is up.

Every role sees locks, and of a session that holds one its process, its role and its application. What it does, and
since when, is for its own role to see, and for those with pg_read_all_stats. Which run it is says the ledger, by the
lock with which a run shows that it is alive. What cannot be seen is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors as driver

from reslice.contract import Contract
from reslice.engines import sql
from reslice.engines.postgres import locks
from reslice.engines.sql import text_literal
from reslice.errors import SAME_AGAIN, Failure, Retryable
from reslice.tables import Target

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs one statement and returns its rows."""

NAMED = 3
"""How many of those who hold a table are named."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that is waited for: how it is known among all locks, and what is said of who holds it.

    `condition` is SQL on `pg_locks AS l`; `held` are the words behind `another transaction`, or behind the run.
    """

    condition: str
    held: str
    schema: str
    """The schema of the ledger in which a run stands that holds it."""
    limit: str = "wait"
    """The key of `timeouts` that bounds the wait."""
    kind: str = "database_busy"
    somebody: str = "another transaction"


def turn_of(contract: Contract, target: Target) -> Lock:
    """Return the turn of a table, which publishes, prunings and live writers take."""
    return turn(target.resolved, target.beside, contract.ledger.schema)


def turn(table: str, told: str, schema: str) -> Lock:
    """Return the turn of a table by its full name, which is `told` as that; its ledger is in `schema`."""
    somebody = "another publish, or a writer that holds its writer_lock,"
    return replace(_advisory(locks.TABLE, table, f"has the turn of {told}", schema), somebody=somebody)


def ledger_of(contract: Contract) -> Lock:
    """Return the lock of a ledger, under which runs are opened and closed."""
    schema = contract.ledger.schema
    return _advisory(locks.LEDGER, schema, f"holds the ledger in schema {schema}, and has not ended", schema)


def stagings_of(contract: Contract, target: Target) -> Lock:
    """Return the lock under which a run gets its number and its snapshot."""
    held = f"holds the order of stagings of {target.beside}, and has not ended"
    return _advisory(locks.STAGING, target.resolved, held, contract.ledger.schema)


def guard_of(contract: Contract, target: Target) -> Lock:
    """Return the lock under which it is decided which ledger a table has."""
    held = f"decides which ledger {target.beside} has, and has not ended"
    return _advisory(locks.GUARD, target.resolved, held, contract.ledger.schema)


def _advisory(what: str, name: str, held: str, schema: str) -> Lock:
    return Lock(locks.is_lock(locks.key(what, text_literal(name))), held, schema)


def table_of(contract: Contract, target: Target) -> Lock:
    """Return the lock of a table, with those of its partitions, that keeps writers out."""
    name = f"CAST({text_literal(sql.target_name(target))} AS regclass)"
    condition = (
        f"(l.relation = {name} OR l.relation IN (SELECT relid FROM pg_catalog.pg_partition_tree({name}))) AND l.mode IN"
        " ('RowExclusiveLock', 'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',"
        " 'AccessExclusiveLock')"
    )
    held = f"holds a lock on {target.beside} and has not ended"
    return Lock(condition, held, contract.ledger.schema, limit="lock", kind="conflict")


# --- who it is --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock, as far as it is known; empty is unknown. `pid` is None for a transaction that was prepared."""

    pid: int | None
    role: str
    application: str
    state: str
    since: str
    run: str = ""
    """The run and its target."""

    def words(self, *, is_told: bool = False) -> str:
        """Return what is known, in one line; of a run that `is_told` already, only where it is."""
        process = f"process {self.pid}" if self.pid is not None else "a transaction that was prepared"
        what = (self.state, f"since {self.since} UTC" if self.since else "") if not self.run else ()
        run = f"run {self.run}" if self.run and not is_told else ""
        parts = (process, run, f"role {self.role}" if self.role else "", self.application, *what)
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a lock has found: whether the session itself waits for it, and who holds it."""

    is_waiting: bool
    holders: tuple[Holder, ...]


_LOCKS = """
SELECT l.pid, l.granted, a.usename, coalesce(nullif(a.application_name, ''), nullif(a.backend_type, 'client backend')),
    a.state, CAST(date_trunc('second', timezone('UTC', a.xact_start)) AS text)
FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) AND {condition}
ORDER BY NOT l.granted, l.waitstart, l.pid
"""

_RUNS = """
SELECT l.pid, r.id || ' of ' || r.target
FROM {where}.runs AS r JOIN pg_catalog.pg_locks AS l ON l.granted AND {is_theirs}
WHERE r.state = 'requested' AND l.pid IN ({pids})
ORDER BY r.number
"""


def look(ask: Ask, lock: Lock, own: int) -> Seen:
    """Return who holds a lock; where nobody does, who is next in line. `own` is the process of the session.

    No transaction is open on the connection that is asked: a role that may not read the ledger ends it.
    """
    rows = ask(_LOCKS.format(condition=lock.condition))
    is_waiting = any(pid == own and not granted for pid, granted, *_ in rows)
    others = [row for row in rows if row[0] != own]
    in_front = [row for row in others if row[1]] or others[:1]
    found = {pid: Holder(pid, *(text or "" for text in told)) for pid, _, *told in in_front}
    with suppress(psycopg.Error):
        for pid, run in _runs(ask, lock, [pid for pid in found if pid is not None]):
            found[pid] = replace(found[pid], run=run)
    return Seen(is_waiting, tuple(found.values()))


def _runs(ask: Ask, lock: Lock, pids: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return which of the processes are at work on which run."""
    if not pids:
        return []
    is_theirs = locks.is_lock(locks.key(locks.RUN, "r.process"))
    named = ", ".join(str(pid) for pid in pids)
    return ask(_RUNS.format(where=sql.quote(lock.schema), is_theirs=is_theirs, pids=named))


def words(lock: Lock, holders: Sequence[Holder]) -> str:
    """Return in one line who holds a lock."""
    is_told = len(holders) == 1 and bool(holders[0].run)
    who = f"run {holders[0].run}" if is_told else lock.somebody
    named = "".join(f"; {holder.words(is_told=is_told)}" for holder in holders[:NAMED])
    more = f"; and {len(holders) - NAMED} more" if len(holders) > NAMED else ""
    return f"{who} {lock.held}{named}{more}"


# --- waiting ----------------------------------------------------------------------------------------------------------


@contextmanager
def waited(session: PostgresSession, contract: Contract, lock: Lock, about: str = "") -> Iterator[None]:
    """Have it told whom the statement inside waits for; Retryable, rolled back, when the lock is not free in time."""
    try:
        with session.waiting_for(lock):
            yield
    except driver.LockNotAvailable as error:
        session.roll_back()
        raise _not_free(session, contract, lock, about or contract.name) from error


def _not_free(session: PostgresSession, contract: Contract, lock: Lock, about: str) -> Retryable:
    seconds = getattr(contract.timeouts, lock.limit).total_seconds()
    asked = contract.quote(f"timeouts.{lock.limit}", f"timeouts.{lock.limit}: {seconds:g}s")
    failure = Failure(lock.kind, asked, (still_held(session.execute, lock),), SAME_AGAIN)
    return Retryable(about, [failure], unchanged=f"{contract.table} is as it was; nothing was written")


def still_held(ask: Ask, lock: Lock) -> str:
    """Return who holds a lock that was not free in time; no transaction is open on the connection."""
    with suppress(psycopg.Error):
        if holders := look(ask, lock, 0).holders:
            return words(lock, holders)
    return f"{words(lock, ())}, or did until a moment ago"
