"""What stands around a table of PostgreSQL and decides what a run costs, or what it leaves behind; nothing is written.

Each function yields one finding per thing it looks at, also where all is well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reslice.contract import Contract
from reslice.engines import sql
from reslice.engines.names import name_parts
from reslice.engines.postgres.sandbox_copy import LEFT
from reslice.engines.session import Session
from reslice.engines.sql import quote
from reslice.findings import Finding, Health, some
from reslice.tables import Family, Target

NAME_BYTES = 63
"""Longer names are cut, in silence."""


def server(session: Session, pooler: str | None) -> Iterator[Finding]:
    """Say whether the server takes writes, knows what its text means, and is talked to directly."""
    encoding, is_standby, is_read_only, source, role = session.execute(
        "SELECT current_setting('server_encoding'), pg_is_in_recovery(), reset_val = 'on', source, current_user"
        " FROM pg_catalog.pg_settings WHERE name = 'default_transaction_read_only'"
    )[0]
    if is_standby:
        after = "connect to the primary; with several hosts,  ?target_session_attrs=read-write  finds it"
        yield Finding(None, "writable", Health.WRONG, "the server is a standby: it can be read and not written", after)
    elif is_read_only:
        found = f"default_transaction_read_only is on for the role {role}, by its {source} settings"
        after = f"ALTER ROLE {quote(role)} SET default_transaction_read_only = off"
        yield Finding(None, "writable", Health.WRONG, found, after)
    else:
        yield Finding(None, "writable", Health.OK, "the server takes writes")
    if encoding == "SQL_ASCII":
        found = "SQL_ASCII: the server does not know what its text means; what is no UTF-8 cannot be read"
        after = "CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8', and move the tables there"
        yield Finding(None, "encoding", Health.WARNING, found, after)
    else:
        words = encoding if encoding == "UTF8" else f"{encoding}; what is hashed is made UTF-8 first"
        yield Finding(None, "encoding", Health.OK, words)
    if pooler is None:
        yield Finding(None, "pooler", Health.OK, "none that gives single transactions")
    else:
        found = f"{pooler}; a run keeps locks and temporary tables between its transactions, and is refused"
        yield Finding(None, "pooler", Health.WRONG, found, "name the server itself, or a pool in session mode")
    yield _sandboxes(session)


def _sandboxes(session: Session) -> Finding:
    """Name the databases that proofs have left which were killed."""
    names = [name for (name,) in session.execute(LEFT)]
    if not names:
        return Finding(None, "sandboxes", Health.OK, "none is left of a proof that was killed")
    dropped = "; ".join(f"DROP DATABASE {quote(name)} WITH (FORCE)" for name in names)
    found = f"{some(names)}: left by a proof that was killed; the next one drops them as well"
    return Finding(None, "sandboxes", Health.ADVICE, found, dropped)


def table(session: Session, contract: Contract, target: Target) -> Iterator[Finding]:
    """Say what it costs to find a slice, and what hangs on the table."""
    yield _slice_index(session, contract, target)
    yield from _invalid_indexes(session, contract, target)
    yield _crash(session, contract, target)
    yield _triggers(session, contract, target)
    yield _materialised(contract, target)
    yield _timeouts(session, contract)


# Indexes.


def index_name(target: Target, word: str) -> str:
    """Return the quoted name of an index, no longer than names may be."""
    room = NAME_BYTES - len(word) - 1
    return quote(f"{target.table.encode()[:room].decode(errors='ignore')}_{word}")


def indexed(contract: Contract, target: Target, name: str) -> str:
    """Return a column as an index has it: slices of text are found by bytes."""
    is_text = name == contract.slice.column and target.column(name).family is Family.TEXT
    return f'{quote(name)} COLLATE "C"' if is_text else quote(name)


def building(session: Session, target: Target) -> str:
    """Return how an index is built that keeps nobody from writing; a partitioned table has no such way."""
    return "" if _of(session, target, "c.relkind = 'p'") else "CONCURRENTLY "


def _of(session: Session, target: Target, expression: str) -> Any:
    rows = session.execute(
        f"SELECT {expression} FROM pg_catalog.pg_class AS c WHERE c.oid = CAST($name AS regclass)",
        {"name": sql.target_name(target)},
    )
    return rows[0][0]


_LEADING = """
SELECT x.relname, CAST(i.indcollation[0] AS bigint) = CAST('"C"'::regcollation AS bigint)
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = CAST($name AS regclass) AND a.attname = $column
    AND m.amname IN ('btree', 'brin') AND i.indisvalid AND i.indpred IS NULL
ORDER BY x.relname
"""

_PARTITIONED_BY = """
SELECT 1 FROM pg_catalog.pg_partitioned_table AS p
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
WHERE p.partrelid = CAST($name AS regclass) AND p.partstrat = 'r' AND a.attname = $column
"""


def _slice_index(session: Session, contract: Contract, target: Target) -> Finding:
    """Say whether an index finds the rows of a slice, so that a run costs what its slices do."""
    column = contract.slice.column
    of = {"name": sql.target_name(target), "column": column}
    found = session.execute(_LEADING, of)
    is_text = target.column(column).family is Family.TEXT
    usable = [name for name, is_by_bytes in found if is_by_bytes or not is_text]
    if usable:
        return Finding(contract.name, "slice_index", Health.OK, f"{usable[0]} finds the rows of a slice")
    if not is_text and session.execute(_PARTITIONED_BY, of):
        words = f"the table is partitioned by {column}: a run reads the partitions that its slices lie in"
        return Finding(contract.name, "slice_index", Health.OK, words)
    words = f"none begins with {column}: each run reads the whole table, however few its slices are"
    if found:
        words = (
            f"{found[0][0]} is not in the order of bytes, by which slices of text are told apart: each run reads the"
            " whole table"
        )
    after = (
        f"CREATE INDEX {building(session, target)}{index_name(target, 'slice')} ON"
        f" {sql.dotted(target.schema, target.table)} ({indexed(contract, target, column)})"
    )
    return Finding(contract.name, "slice_index", Health.ADVICE, words, after)


def _invalid_indexes(session: Session, contract: Contract, target: Target) -> Iterator[Finding]:
    """Name the indexes whose building did not end: they cost, serve nobody, and hold their names."""
    rows = session.execute(
        "SELECT x.relname, quote_ident(n.nspname) || '.' || quote_ident(x.relname) FROM pg_catalog.pg_index AS i"
        " JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = x.relnamespace"
        " WHERE i.indrelid = CAST($name AS regclass) AND NOT i.indisvalid AND x.relkind = 'i'"
        " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_stat_progress_create_index AS b"
        " WHERE b.index_relid = i.indexrelid) ORDER BY 1",
        {"name": sql.target_name(target)},
    )
    if rows:
        found = f"{some([name for name, _ in rows])}: begun CONCURRENTLY and not ended; it costs each write"
        after = f"DROP INDEX CONCURRENTLY {rows[0][1]}"
        yield Finding(contract.name, "invalid_indexes", Health.WARNING, found, after)


# What hangs on the table.


def _crash(session: Session, contract: Contract, target: Target) -> Finding:
    """Say whether the rows outlive a crash of the server."""
    if _of(session, target, "c.relpersistence = 'u'"):
        found = "the table is UNLOGGED: a crash of the server empties it, and the ledger still says published"
        after = f"ALTER TABLE {sql.dotted(target.schema, target.table)} SET LOGGED"
        return Finding(contract.name, "crash", Health.WARNING, found, after)
    return Finding(contract.name, "crash", Health.OK, "the table outlives one")


def _triggers(session: Session, contract: Contract, target: Target) -> Finding:
    rows = session.execute(
        "SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = CAST($name AS regclass) AND NOT tgisinternal"
        " AND tgenabled IN ('O', 'A') ORDER BY 1",
        {"name": sql.target_name(target)},
    )
    if not rows:
        return Finding(contract.name, "triggers", Health.OK, "none fires")
    fire = "fires" if len(rows) == 1 else "fire"
    found = f"{some([row[0] for row in rows])} {fire} for rows that are replaced, and again when they are once more"
    after = "look whether that may be; what a trigger changes is refused as not staged"
    return Finding(contract.name, "triggers", Health.ADVICE, found, after)


def _materialised(contract: Contract, target: Target) -> Finding:
    """Name the materialised views that keep what they have read until somebody refreshes them."""
    if not target.readers:
        return Finding(contract.name, "materialised_views", Health.OK, "none reads the table")
    names = [".".join(name_parts(name)).removeprefix("public.") for name in target.readers]
    hold = "holds" if len(names) == 1 else "hold"
    found = f"{some(names)} {hold} what was read last: a run does not refresh it"
    after = f"REFRESH MATERIALIZED VIEW {target.readers[0]}"
    return Finding(contract.name, "materialised_views", Health.ADVICE, found, after)


def _timeouts(session: Session, contract: Contract) -> Finding:
    """Name the limits of this role that end what a run does; of those that a run sets itself, nothing is said."""
    limits = {
        name: int(milliseconds)
        for name, milliseconds in session.execute(
            "SELECT name, reset_val FROM pg_catalog.pg_settings"
            " WHERE name IN ('statement_timeout', 'transaction_timeout') AND reset_val <> '0' ORDER BY name"
        )
    }
    wait = contract.timeouts.wait.total_seconds()
    ends = []
    if limits.get("statement_timeout", 0) and limits["statement_timeout"] < wait * 1000:
        seconds = limits["statement_timeout"] / 1000
        ends.append(("statement_timeout", f"statement_timeout of {seconds:g}s ends a wait of {wait:g}s for the turn"))
    if limits.get("transaction_timeout"):
        seconds = limits["transaction_timeout"] / 1000
        ends.append(("transaction_timeout", f"transaction_timeout of {seconds:g}s ends the session of a longer run"))
    if not ends:
        return Finding(contract.name, "timeouts", Health.OK, "no limit of this role is shorter than a run may take")
    role = session.execute("SELECT current_user")[0][0]
    after = "; ".join(f"ALTER ROLE {quote(role)} SET {name} = 0" for name, _ in ends)
    return Finding(contract.name, "timeouts", Health.WARNING, "; ".join(words for _, words in ends), after)
