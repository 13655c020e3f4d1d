"""The view of the current versions is made anew only while nobody reads it: who waits for it makes every reader wait.

Each try is short, and holds the ledger no longer. Between two of them readers and other runs go on.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from psycopg import errors as driver

from reslice.contract import Contract
from reslice.engines import sql, versions
from reslice.engines.postgres.session import milliseconds
from reslice.engines.postgres.waiting import Lock, still_held
from reslice.engines.sql import text_literal
from reslice.engines.view import make_view
from reslice.errors import SAME_AGAIN, Failure, Retryable
from reslice.tables import Target

if TYPE_CHECKING:
    from reslice.engines.session import SqlSession

ATTEMPTS = 5
"""How often a view that somebody reads is tried to be made anew."""
LONGEST = timedelta(seconds=1)
"""How long one try waits at most, and with it everybody who begins to read the view meanwhile."""
BETWEEN_SECONDS = 0.3
"""How long readers and other runs have to themselves between two tries."""


class Held(Exception):
    """A try that has waited for another transaction in vain; the caller's own is of no use any more."""


def make_soon(session: SqlSession, contract: Contract, target: Target) -> None:
    """Make the view within a short wait, in the caller's transaction; Held when somebody holds it."""
    limit = min(contract.timeouts.lock, LONGEST)
    session.execute("SELECT set_config('lock_timeout', $limit, true)", {"limit": milliseconds(limit)})
    try:
        make_view(session, contract, target)
    except driver.LockNotAvailable as error:
        raise Held from error


def held(session: SqlSession, contract: Contract, target: Target) -> Retryable:
    """Return the error of a view that is still held when its last try is over and has been rolled back."""
    view = f"{target.schema}.{versions.view_name(target)}"
    live = sql.dotted(target.schema, target.table)
    condition = (
        f"(l.relation = to_regclass({text_literal(sql.dotted(target.schema, versions.view_name(target)))})"
        f" OR l.relation = to_regclass({text_literal(live)}) AND l.mode = 'AccessExclusiveLock')"
    )
    lock = Lock(condition, "holds it", contract.ledger.schema)
    found = f"{view} has to be made anew, and {still_held(session.execute, lock)}"
    failure = Failure("database_busy", "the view of the current versions", (found,), SAME_AGAIN)
    return Retryable(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
