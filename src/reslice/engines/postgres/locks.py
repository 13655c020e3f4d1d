"""The advisory locks of PostgreSQL that publishes, live writers, runs and ledgers know each other by.

Names become 64-bit keys by the server's own hash, so every client makes the same ones. They are locks of a database:
another database of the same server has its own.
"""

from __future__ import annotations

TABLE, LEDGER, STAGING, RUN, PRUNING, GUARD = "table", "ledger", "staging", "run", "pruning", "guard"
"""What a lock stands for: the turn of a table, a ledger's own transactions, the order of stagings, a live run, the one
session that lets go of old rows, and which ledger a table has, which is decided once.
"""


def key(what: str, name: str) -> str:
    """Return the SQL of the key of a lock; `name` is the SQL of a text."""
    return f"pg_catalog.hashtextextended('reslice {what} ' || {name}, CAST(0 AS bigint))"


def is_lock(key: str) -> str:
    """Return the condition that a row of `pg_locks AS l` is the lock of a key, in whatever database of the server."""
    number = "(CAST(l.classid AS bigint) << 32) | CAST(l.objid AS bigint)"
    return f"l.locktype = 'advisory' AND l.objsubid = 1 AND {number} = {key}"
