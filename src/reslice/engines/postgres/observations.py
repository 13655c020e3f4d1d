"""What two sessions see of a PostgreSQL server, in words that depend on nothing but what the server did.

Each function is given a bench on which no table, no transaction and no lock is left, and says what it observed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg

from reslice.engines import sql
from reslice.engines.postgres import locks
from reslice.engines.postgres.bench import Bench, asked, failed
from reslice.engines.sql import text_literal
from reslice.tables import Column, Family

_SLICE = "day >= DATE '2024-03-01' AND day < DATE '2024-03-02'"
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"
_GRAIN = (Column("day", "date", Family.DATE), Column("channel", "text", Family.TEXT))
COST_ROWS, COST_SLICES = 1_000, 30

OLD_OR_NEW = "the old rows to the end, then the new ones"
WAITS = "the second waits, and has it when the first rolls back"
CLOSED = "held while the session is open, free when it is closed"
KEPT_OUT = "the reader reads on; the writer waits until it ends"
SEES = "the statement after the lock sees the row"
MISSES = "it misses the row, which is there"
KNOWN = "those that its definition gives"
HASHED = "joined by hash"
IN_TIME = "an error within its time, and nothing is locked"
KNOWN_STATES = "in progress, committed, aborted"


def _delete(bench: Bench) -> str:
    return f"DELETE FROM {bench.table} WHERE {_SLICE}"


def _insert(bench: Bench) -> str:
    return f"INSERT INTO {bench.table} VALUES ('2024-03-01', 'web', 10), ('2024-03-01', 'store', 20)"


def _lock(bench: Bench) -> str:
    return f"LOCK TABLE {bench.table} IN SHARE ROW EXCLUSIVE MODE"


def _live(bench: Bench) -> str:
    return f"INSERT INTO {bench.table} VALUES ('2024-03-01', 'live', 4242)"


def _landed(bench: Bench) -> str:
    return f"SELECT count(*) FROM {bench.table} WHERE channel = 'live'"


def rollback(bench: Bench) -> str:
    """Replace a slice and roll back."""
    bench.fill()
    before = bench.rows()
    for statement in (BEGIN, _delete(bench), _insert(bench), "ROLLBACK"):
        bench.ask(statement)
    return "the slice is back, row for row" if bench.rows() == before else f"left {bench.rows()}"


def ddl(bench: Bench) -> str:
    """Make, alter, rename and drop tables, and roll back."""
    bench.fill()
    place = bench.table.rpartition(".")[0]
    listed = (
        "SELECT CAST(a.attrelid AS regclass), a.attname FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c"
        f" ON c.oid = a.attrelid WHERE c.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class"
        f" WHERE oid = CAST({text_literal(bench.table)} AS regclass)) AND a.attnum > 0 ORDER BY 1, 2"
    )
    before = bench.ask(listed)
    for statement in (
        BEGIN,
        f"CREATE TABLE {place}.kept (n integer)",
        f"ALTER TABLE {bench.table} ADD COLUMN note text",
        f"ALTER TABLE {bench.table} RENAME TO gone",
        f"DROP TABLE {place}.gone",
        "ROLLBACK",
    ):
        bench.ask(statement)
    return "all of it is undone" if bench.ask(listed) == before else "some of it stays"


def reader(bench: Bench) -> str:
    """Read from one snapshot, all the while a slice is replaced under its lock, and then anew."""
    bench.fill()
    look = f"SELECT array_agg(n ORDER BY n) FROM {bench.table} WHERE {_SLICE}"
    asked(bench.two, SNAPSHOT)
    seen = [asked(bench.two, look)[0][0]]
    for statement in (BEGIN, _lock(bench), _delete(bench), _insert(bench), "COMMIT"):
        bench.ask(statement)
        seen.append(asked(bench.two, look)[0][0])
    asked(bench.two, "COMMIT")
    after = asked(bench.two, look)[0][0]
    return OLD_OR_NEW if seen == [[1, 2]] * 6 and after == [10, 20] else f"saw {seen}, then {after}"


def commit_of_aborted(bench: Bench) -> str:
    """Commit a transaction that an error has ended."""
    bench.fill()
    before = bench.rows()
    bench.ask(BEGIN)
    bench.ask(_insert(bench))
    failed(bench.one, "SELECT CAST('no number' AS integer)")
    try:
        answer = bench.one.execute("COMMIT").statusmessage
        word = f"raises nothing, answers {answer}"
    except psycopg.Error:
        word = "raises"
    bench.calm(bench.one)
    return f"{word}, and keeps {'nothing' if bench.rows() == before else 'what was written'}"


def same_key(bench: Bench) -> str:
    """Replace rows of a primary key twice in one transaction."""
    bench.fill(key=True)
    bench.ask(BEGIN)
    once = (_delete(bench), _insert(bench))
    found = next(filter(None, (failed(bench.one, statement) for statement in (*once, *once, "COMMIT"))), "")
    return found or "goes through, also twice"


def same_new_key(bench: Bench) -> str:
    """Insert one new key from two transactions; the first commits while the second waits."""
    bench.fill(key=True)
    insert = f"INSERT INTO {bench.table} VALUES ('2024-03-05', 'web', 1)"
    bench.ask(BEGIN)
    bench.ask(insert)
    with bench.waiting(bench.two, insert) as second:
        waits = second.is_blocked()
        bench.ask("COMMIT")
    return f"{'the second waits, and then ends' if waits else 'the second ends'} with {second.error or 'success'}"


def turn(bench: Bench) -> str:
    """Take the turn of a table twice; the first rolls back while the second waits."""
    take = f"SELECT pg_advisory_xact_lock({locks.key(locks.TABLE, text_literal(bench.table))})"
    bench.ask(BEGIN)
    bench.ask(take)
    with bench.waiting(bench.two, take) as second:
        waits = second.is_blocked()
        bench.ask("ROLLBACK")
    if not waits:
        return "the second does not wait"
    return second.error or WAITS


def session_lock(bench: Bench) -> str:
    """Hold a lock of a session, and close it."""
    key = locks.key(locks.RUN, text_literal(bench.table))
    asked(bench.two, f"SELECT pg_advisory_lock({key})")
    taking = f"SELECT pg_try_advisory_lock({key})"
    held = not bench.ask(taking)[0][0]
    bench.two.close()
    until = time.monotonic() + 5
    while not (is_free := bool(bench.ask(taking)[0][0])) and time.monotonic() < until:
        time.sleep(0.01)  # the server notices that the client has gone
    bench.ask("SELECT pg_advisory_unlock_all()")
    return CLOSED if held and is_free else f"{'held' if held else 'not held'}, then {'free' if is_free else 'not free'}"


def table_lock(bench: Bench) -> str:
    """Hold the lock of a publish, and read and write from another session."""
    bench.fill()
    bench.ask(BEGIN)
    bench.ask(_lock(bench))
    reads = asked(bench.two, f"SELECT count(*) FROM {bench.table}")[0][0] == 3
    with bench.waiting(bench.two, _live(bench)) as writer:
        waits = writer.is_blocked()
        bench.ask("COMMIT")
    if not (reads and waits):
        return f"the reader {'reads' if reads else 'does not'}, the writer {'waits' if waits else 'does not wait'}"
    return writer.error or KEPT_OUT


def after_lock(begin: str) -> Callable[[Bench], str]:
    """Return what looks for a row that a writer commits while the lock is waited for, after a first statement."""

    def observe(bench: Bench) -> str:
        bench.fill()
        asked(bench.two, BEGIN)
        asked(bench.two, _live(bench))
        bench.ask(begin)
        bench.ask("SELECT 1")
        with bench.waiting(bench.one, _lock(bench)) as lock:
            waits = lock.is_blocked()
            asked(bench.two, "COMMIT")
        if lock.error or not waits:
            return lock.error or "the lock is not waited for"
        return SEES if bench.ask(_landed(bench))[0][0] else MISSES

    return observe


def empty_slice(bench: Bench) -> str:
    """Replace an empty slice from two transactions, as no run does: without its turn and its lock."""
    bench.fill()
    bench.ask(f"DELETE FROM {bench.table}")
    for connection in (bench.one, bench.two):
        for statement in (BEGIN, _delete(bench), _insert(bench)):
            asked(connection, statement)
    for connection in (bench.one, bench.two):
        asked(connection, "COMMIT")
    return f"both commit, and the slice holds {len(bench.rows())} rows for 2"


def lock_timeout(bench: Bench) -> str:
    """Wait for the lock no longer than said, and look whether anything stays locked."""
    bench.fill()
    asked(bench.two, BEGIN)
    asked(bench.two, _live(bench))
    bench.ask(BEGIN)
    bench.ask("SELECT set_config('lock_timeout', '50ms', true)")
    began = time.monotonic()
    error = failed(bench.one, _lock(bench))
    took = time.monotonic() - began
    bench.calm(bench.one)
    held = bench.ask(f"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND {_granted(bench)}")[0][0]
    return IN_TIME if error == "LockNotAvailable" and took < 5 and not held else f"{error or 'no error'} in {took:.1f}s"


def _granted(bench: Bench) -> str:
    return f"relation = CAST({text_literal(bench.table)} AS regclass)"


def transaction_states(bench: Bench) -> str:
    """Look a transaction up by its number while it runs, and after each way that it may end."""
    bench.fill()
    states = []
    for end in ("COMMIT", "ROLLBACK"):
        bench.ask(BEGIN)
        bench.ask(_live(bench))
        number = bench.ask("SELECT CAST(pg_current_xact_id() AS text)")[0][0]
        look = f"SELECT pg_xact_status(CAST('{number}' AS xid8))"
        states.append(asked(bench.two, look)[0][0])
        bench.ask(end)
        states.append(asked(bench.two, look)[0][0])
    return ", ".join(dict.fromkeys(str(state) for state in states))


def temporary(bench: Bench) -> str:
    """Fill a temporary table in one transaction and read it in the next."""
    for statement in (BEGIN, "CREATE TEMPORARY TABLE reslice_probe AS SELECT 42 AS n", "COMMIT", BEGIN):
        bench.ask(statement)
    found = bench.ask("SELECT n FROM pg_temp.reslice_probe")
    for statement in ("COMMIT", "DROP TABLE pg_temp.reslice_probe"):
        bench.ask(statement)
    return "its rows are there" if found == [(42,)] else "its rows are gone"


_KNOWN_VALUES = (
    (r"'a|b\c'", Column("v", "text", Family.TEXT), r"a\pb\\c"),
    ("''", Column("v", "text", Family.TEXT), ""),
    ("'héllo 東京 🎉'", Column("v", "text", Family.TEXT), "héllo 東京 🎉"),
    ("DATE '0001-01-01'", Column("v", "date", Family.DATE), "0001-01-01"),
    ("DATE '9999-12-31'", Column("v", "date", Family.DATE), "9999-12-31"),
    ("TIMESTAMPTZ '2024-03-31 01:30:00+02'", Column("v", "timestamp with time zone", Family.TIMESTAMPTZ),
     "2024-03-30 23:30:00"),
    ("CAST(-9223372036854775808 AS bigint)", Column("v", "bigint", Family.INTEGER), "-9223372036854775808"),
    ("CAST(1.50 AS numeric)", Column("v", "numeric", Family.DECIMAL), "1.5"),
    ("CAST(1.5 AS numeric(18,2))", Column("v", "numeric(18,2)", Family.DECIMAL), "1.50"),
    ("true", Column("v", "boolean", Family.BOOLEAN), "true"),
)  # fmt: skip
"""Values in SQL, their columns, and their texts by the definition of the fingerprint."""


def fingerprints(bench: Bench) -> str:
    """Hash known values one by one; characters that the database cannot hold are left out."""
    wrong = []
    for value, column, text in _KNOWN_VALUES:
        if not _can_hold(bench, text):
            continue
        hashed = bench.dialect.row_hash(f"concat_ws('|', 'V' || {bench.dialect.canonical(value, column, None)}, 'N')")
        wanted = int(hashlib.md5(f"V{text}|N".encode()).hexdigest()[:15], 16)
        if bench.ask(f"SELECT {hashed}") != [(wanted,)]:
            wrong.append(value)
    found = bench.ask(sql.known_answer_select(bench.dialect))[0]
    if (int(found[0]), int(found[1])) != sql.KNOWN_ANSWER:
        wrong.append("rows with NULL")
    return KNOWN if not wrong else f"not those of {', '.join(wrong)}"


def _can_hold(bench: Bench, text: str) -> bool:
    return text.isascii() or bench.ask("SELECT current_setting('server_encoding')") == [("UTF8",)]


def joined(bench: Bench) -> str:
    """Let the server say how it would join the rows of a base and of a staging by their keys."""
    bench.fill()
    rows = "SELECT DATE '2024-01-01' + n % 30, 'c' || n, n FROM generate_series(1, 20000) AS s (n)"
    bench.ask(f"INSERT INTO {bench.table} {rows}")
    bench.ask(f"ANALYZE {bench.table}")
    same = " AND ".join(
        bench.dialect.equal(f"b.{column.name}", f"s.{column.name}", column, nulls=True) for column in _GRAIN
    )
    plan = bench.ask(f"EXPLAIN SELECT * FROM {bench.table} AS b FULL JOIN {bench.table} AS s ON {same}")
    words = " ".join(line for (line,) in plan)
    return HASHED if "Hash Full Join" in words else "joined by order" if "Merge Full Join" in words else "not joined"


def clock(bench: Bench) -> str:
    """Compare the clock of the server with this one."""
    text = bench.ask("SELECT CAST(timezone('UTC', clock_timestamp()) AS text)")[0][0]
    ahead = (datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
    if abs(ahead) < 60:
        return "agrees with this machine's to the minute"
    return f"is {abs(ahead):.0f} seconds {'ahead of' if ahead > 0 else 'behind'} this machine's"


def cost(bench: Bench) -> str:
    """Replace one slice of a table of some, as a publish does, and time it; the fastest of three is told."""
    bench.fill()
    rows = f"SELECT DATE '2024-01-01' + d, 'c' || n, n FROM generate_series(1, {COST_ROWS}) AS r (n)"
    bench.ask(f"INSERT INTO {bench.table} {rows} CROSS JOIN generate_series(1, {COST_SLICES}) AS s (d)")
    bench.ask(f"CREATE INDEX ON {bench.table} (day)")
    bench.ask(f"ANALYZE {bench.table}")
    day = "day = DATE '2024-01-11'"
    anew = f"SELECT DATE '2024-01-11', 'c' || n, n FROM generate_series(1, {COST_ROWS}) AS r (n)"
    again = (f"DELETE FROM {bench.table} WHERE {day}", f"INSERT INTO {bench.table} {anew}")
    replace = (BEGIN, _lock(bench), *again, "COMMIT")
    whole, commit, nothing = (
        min(_milliseconds(bench, statements) for _ in range(3)) for statements in (replace, replace[-1:], ("SELECT 1",))
    )
    return f"{whole:.0f} ms; a COMMIT of nothing {commit:.1f} ms, a statement that does nothing {nothing:.1f} ms"


def _milliseconds(bench: Bench, statements: tuple[str, ...]) -> float:
    began = time.perf_counter()
    for statement in statements:
        bench.ask(statement)
    return (time.perf_counter() - began) * 1000
