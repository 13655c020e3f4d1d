"""What a SQL file of a contract did beside reading, as a function may that a SELECT calls.

The locks of the transaction tell: whatever writes to a relation, empties, makes, alters or drops it holds one until the
transaction ends, whether or not the server counts rows.
"""

from __future__ import annotations

from contextlib import closing

from reslice.contract import SqlFile
from reslice.engines.failures import misused
from reslice.engines.postgres.session import PostgresSession
from reslice.errors import Failure

READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""Begins a transaction in which the server itself refuses whatever writes."""
ONLY_READS = "a source reads, and writes nothing"

_LOCKED = (
    "SELECT CAST(l.relation AS bigint), n.nspname || '.' || c.relname"
    " FROM pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_class AS c ON c.oid = l.relation"
    " LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'"
    " AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')"
    " AND (c.oid IS NULL OR n.nspname NOT LIKE 'pg\\_%')"
    " AND (c.relkind IS NULL OR c.relkind <> 'S' OR l.mode <> 'RowExclusiveLock')"  # nextval is no write to a table
)
_NAMES = (
    "SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_class AS c"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE c.oid = ANY(CAST(%s AS bigint[])) AND n.nspname NOT LIKE 'pg\\_%%'"
)


def refuse_writing(session: PostgresSession, query: SqlFile) -> None:
    """Refuse a SQL file that, evaluated in the open transaction, did more than read; the caller rolls back."""
    rows = session.execute(_LOCKED)
    names = {name for _, name in rows if name is not None}
    if dropped := [oid for oid, name in rows if name is None]:
        # Others still see what was there before; a table that a function made for itself, and dropped, they never saw.
        with closing(session.another()) as beside:
            names |= {name for (name,) in beside.execute(_NAMES, [dropped])}
    if names:
        found = f"evaluated, it wrote to, or changed, {', '.join(sorted(names)[:3])}; that is rolled back"
        failure = Failure("source_invalid", ONLY_READS, (found,), f"correct {query.name}")
        raise misused(query.name, failure)
