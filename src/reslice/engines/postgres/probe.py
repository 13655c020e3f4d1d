"""What is tried of a PostgreSQL server, by two sessions in a schema of its own, and what reslice relies on of it.

Two sessions must see the tables, so that they cannot be temporary ones. Where the role may make no schema, what one
session shows is tried in temporary tables, and the rest is said not to be tried. See `bench` for what is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from reslice.contract import Contract
from reslice.engines.postgres import observations as seen
from reslice.engines.postgres.bench import Bench
from reslice.engines.postgres.errors import lines_of
from reslice.engines.probing import ENDS, NOT_RELIED, SLICES, Probe, closed_range, many_ranges
from reslice.health import Observation
from reslice.tables import Column

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession


def _probe(name: str, observe: Callable[[Bench], str], does: str, relies: str, *expected: str) -> Probe[Bench]:
    return Probe(name, does, relies, observe, frozenset(expected))


ALONE = (
    _probe("rollback", seen.rollback, "a slice is deleted, inserted anew, and rolled back",
           "a run that fails leaves the slice as it was", "the slice is back, row for row"),
    _probe("transactional_ddl", seen.ddl, "tables are made, altered, renamed and dropped, and rolled back",
           "a ledger is made whole or not at all", "all of it is undone"),
    _probe("closed_range", closed_range, "values lie at both ends of a range, and just outside, in its column's type",
           "both ends are included, and nothing else", ENDS),
    _probe("many_ranges", many_ranges, "every other slice is asked for, of more ranges than are written out",
           "exactly the slices that are named", SLICES),
    _probe("commit_of_aborted", seen.commit_of_aborted, "an error ends a transaction, which is then committed",
           "nothing of it is kept, and the answer says so", "raises nothing, answers ROLLBACK, and keeps nothing"),
    _probe("same_key", seen.same_key, "rows of a primary key are deleted and inserted again, in one transaction",
           "a slice with a key can be replaced", "goes through, also twice"),
    _probe("temporary_tables", seen.temporary, "a temporary table is filled in one transaction and read in the next",
           "what is staged is there when it is published", "its rows are there"),
    _probe("fingerprints", seen.fingerprints, "known values of each kind are hashed",
           "fingerprints are the same in every database", seen.KNOWN),
    _probe("key_join", seen.joined, "20,000 rows are matched with as many by a key that may hold NULL",
           "the time of a comparison follows its rows", seen.HASHED, "joined by order"),
    _probe("turn", seen.turn, "two transactions take the turn of one table",
           "the second waits, and is not kept waiting by a run that failed", seen.WAITS),
    _probe("session_lock", seen.session_lock, "a session that holds a lock goes away",
           "a run whose process is gone is known by it", seen.CLOSED),
    _probe("clock", seen.clock, "the server's clock is read",
           NOT_RELIED + "which slices are closed is decided by the server's clock"),
)  # fmt: skip
"""What one session shows, or two without a table that both see."""

TOGETHER = (
    _probe("old_or_new", seen.reader, "a reader has a transaction open while a slice is replaced",
           "readers see the old rows or the new ones, and never wait", seen.OLD_OR_NEW),
    _probe("table_lock", seen.table_lock, "another reads and writes while SHARE ROW EXCLUSIVE is held",
           "writers are kept out while a slice is replaced, and readers are not", seen.KEPT_OUT),
    _probe("after_lock", seen.after_lock(seen.BEGIN),
           "at READ COMMITTED a row lands while that lock is waited for",
           "what is replaced is what is there under the lock", seen.SEES),
    _probe("snapshot_before_lock", seen.after_lock(seen.SNAPSHOT), "the same at REPEATABLE READ",
           NOT_RELIED + "a publish says READ COMMITTED itself"),
    _probe("lock_timeout", seen.lock_timeout, "the lock is not to be had within lock_timeout",
           "a run that does not get its turn says so, and nobody waits for it", seen.IN_TIME),
    _probe("same_new_key", seen.same_new_key, "two transactions insert the same new key",
           "one of them fails", "the second waits, and then ends with UniqueViolation"),
    _probe("transaction_states", seen.transaction_states, "a transaction is looked up by its number",
           "a commit whose answer is lost is found out about", seen.KNOWN_STATES),
    _probe("empty_slice", seen.empty_slice, "two transactions replace a slice that is empty, without turn and lock",
           NOT_RELIED + "that is what the turn is for"),
    _probe("publish_cost", seen.cost, f"one slice of {seen.COST_ROWS:,} rows is replaced, of {seen.COST_SLICES}",
           NOT_RELIED + "what a publish costs on this server, from here"),
)  # fmt: skip
"""What takes two sessions, or a table of some size."""

_OUR_PLACE = "a schema of its own is made for what two sessions must both see"


def probed(session: PostgresSession, contract: Contract, column: Column, pooler: str | None) -> tuple[Observation, ...]:
    """Try everything that can be tried, and say what was observed; an error of the server is an observation as well."""
    with session.translated(contract, "doctor --probe"):
        reason = _cannot_write(session) or (pooler or "")
        if reason:
            return (_untried("place", f"nothing was tried: {reason}"),)
        bench = Bench(session, contract, column)
        try:
            reason = bench.make_schema()
            found = [_observed(probe, bench) for probe in ALONE]
            if reason:
                found.insert(0, _untried("place", f"{reason}; what takes two sessions was not tried"))
            else:
                found += [_observed(probe, bench) for probe in TOGETHER]
        finally:
            bench.close()
    return tuple(found)


def _cannot_write(session: PostgresSession) -> str:
    is_standby, is_read_only = session.execute(
        "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
    )[0]
    if is_standby:
        return "the server is a standby"
    return "default_transaction_read_only is on" if is_read_only else ""


def _untried(name: str, found: str) -> Observation:
    return Observation(name, _OUR_PLACE, NOT_RELIED + "only the probe needs it", found, holds=True)


def _observed(probe: Probe[Bench], bench: Bench) -> Observation:
    try:
        bench.fresh()
        return probe.observed(probe.observe(bench))
    except psycopg.Error as error:
        return probe.failed(lines_of(error)[0])
