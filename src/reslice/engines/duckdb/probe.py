"""What this version of DuckDB really does, tried in a database of its own.

Each probe has a fresh database in memory: nothing of the user's file is opened, and nothing is written anywhere, so
that nothing can stay behind, however the process ends. What a crash leaves on disk is therefore not tried here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from reslice import ledger
from reslice.contract import Contract
from reslice.engines import probing, sql
from reslice.engines.dialect import Dialect
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.duckdb.errors import is_signalled, lines_of
from reslice.engines.failures import interrupted
from reslice.engines.probing import ENDS, NOT_RELIED, SLICES, Probe, closed_range, many_ranges
from reslice.health import Observation
from reslice.tables import Column

_TABLE = "CREATE TABLE daily (day DATE, channel VARCHAR, n INTEGER{key})"
_KEY = ", PRIMARY KEY (day, channel)"
_ROWS = "INSERT INTO daily VALUES ('2024-03-01', 'web', 1), ('2024-03-01', 'store', 2), ('2024-03-02', 'web', 3)"
_SLICE = "day >= DATE '2024-03-01' AND day < DATE '2024-03-02'"
_UPDATE = "UPDATE daily SET n = 4242 WHERE day = '2024-03-01' AND channel = 'web'"
_DELETE = f"DELETE FROM daily WHERE {_SLICE}"
_TOUCH = f"UPDATE daily SET n = n + 1 WHERE {_SLICE}"
_INSERT = "INSERT INTO daily VALUES ('2024-03-01', 'web', 10), ('2024-03-01', 'store', 20)"
_REPLACE = (_DELETE, _INSERT)
_MOVE = "UPDATE daily SET day = '2024-03-02', channel = 'moved' WHERE day = '2024-03-01' AND channel = 'web'"

AT_STATEMENT = "the second statement fails"
AT_COMMIT = "the second commit fails"
BOTH = "no conflict: both commit"


class Bench:
    """A database in memory with two connections, `one` and `two`, for one probe on a slice column."""

    ranged = "ranged"

    def __init__(self, contract: Contract, column: Column) -> None:
        self.contract = contract
        self.dialect: Dialect = DuckDBDialect()
        self.column = column
        self.one = duckdb.connect(":memory:")
        self.one.execute(f"SET TimeZone = {sql.text_literal(contract.slice.timezone)}")
        self.two = self.one.cursor()

    def close(self) -> None:
        """Let go of the database, and with it of all that was in it."""
        self.two.close()
        self.one.close()

    def fill(self, *, key: bool = False) -> None:
        """Make the table of daily rows: two on the first day, one on the second."""
        self.one.execute(_TABLE.format(key=_KEY if key else ""))
        self.one.execute(_ROWS)

    def rows(self, where: str = "true") -> list[tuple[str, str, int]]:
        """Return the rows of the table."""
        found = self.one.execute(f"SELECT CAST(day AS VARCHAR), channel, n FROM daily WHERE {where} ORDER BY ALL")
        return [(day, channel, n) for day, channel, n in found.fetchall()]

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, where it has any."""
        return self.one.execute(statement).fetchall()

    def fitted(self, text: str) -> str:
        """Return the text of a slice value; where the column is coarser, of the last value that it can hold."""
        return probing.cut_off(text, {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3}.get(self.column.type))

    def race(self, first: Sequence[str], second: Sequence[str]) -> str:
        """Let one execute and stay open, then two; commit the second and then the first; say what failed."""
        self.one.execute("BEGIN")
        self.two.execute("BEGIN")
        for statement in first:
            self.one.execute(statement)
        for statement in second:
            if failed(self.two, statement):
                self.two.execute("ROLLBACK")
                self.one.execute("COMMIT")
                return AT_STATEMENT
        self.two.execute("COMMIT")
        if not failed(self.one, "COMMIT"):
            return BOTH
        failed(self.one, "ROLLBACK")
        return AT_COMMIT


def failed(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    """Execute a statement; return the first line of its error, empty when there is none."""
    try:
        connection.execute(statement)
    except duckdb.Error as error:
        return lines_of(error)[0]
    return ""


# What is observed. Each function returns it in words that depend on nothing but what the database did.


def _rollback(bench: Bench) -> str:
    bench.fill()
    before = bench.rows()
    bench.one.execute("BEGIN")
    bench.one.execute(_DELETE)
    bench.one.execute(_INSERT)
    bench.one.execute("ROLLBACK")
    return "the slice is back, row for row" if bench.rows() == before else f"left {bench.rows()}"


def _ddl(bench: Bench) -> str:
    bench.fill()
    listed = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
    before = bench.one.execute(listed).fetchall()
    bench.one.execute("BEGIN")
    for statement in (
        "CREATE TABLE kept (n INTEGER)",
        "ALTER TABLE daily ADD COLUMN note VARCHAR",
        "ALTER TABLE daily RENAME TO gone",
        "CREATE SCHEMA reslice",
        "DROP TABLE gone",
    ):
        bench.one.execute(statement)
    bench.one.execute("ROLLBACK")
    return "all of it is undone" if bench.one.execute(listed).fetchall() == before else "some of it stays"


def _reader(bench: Bench) -> str:
    bench.fill()
    bench.two.execute("BEGIN")
    asked = f"SELECT list(n ORDER BY n) FROM daily WHERE {_SLICE}"
    seen = [bench.two.execute(asked).fetchall()[0][0]]
    bench.one.execute("BEGIN")
    for statement in (_DELETE, _INSERT, "COMMIT"):
        bench.one.execute(statement)
        seen.append(bench.two.execute(asked).fetchall()[0][0])
    bench.two.execute("COMMIT")
    after = bench.two.execute(asked).fetchall()[0][0]
    is_whole = seen == [[1, 2]] * 4 and after == [10, 20]
    return "the old rows to the end, then the new ones" if is_whole else f"saw {seen}, then {after}"


def _commit_of_aborted(bench: Bench) -> str:
    bench.fill()
    before = bench.rows()
    bench.one.execute("BEGIN")
    bench.one.execute(_INSERT)
    failed(bench.one, "SELECT CAST('no number' AS INTEGER)")
    raised = failed(bench.one, "COMMIT")
    failed(bench.one, "ROLLBACK")
    word = "raises" if raised else "raises nothing"
    return f"{word}, and keeps {'nothing' if bench.rows() == before else 'what was written'}"


def _same_key(bench: Bench) -> str:
    bench.fill(key=True)
    bench.two.execute("BEGIN")
    bench.two.execute("SELECT * FROM daily").fetchall()
    bench.one.execute("BEGIN")
    found = next(filter(None, (failed(bench.one, text) for text in (_DELETE, _INSERT, _DELETE, _INSERT, "COMMIT"))), "")
    failed(bench.one, "ROLLBACK")
    return found or "goes through, also twice and beside a reader"


def _merge_matched(bench: Bench) -> str:
    bench.fill()
    error = failed(bench.one, _merge("web", "WHEN MATCHED THEN UPDATE SET n = staged.n"))
    kept = [n for _, _, n in bench.rows("day = '2024-03-01' AND channel = 'web'")]
    return "an error" if error else f"silent; of 10 and 20 it keeps {', '.join(map(str, kept))}"


def _merge_new(bench: Bench) -> str:
    bench.fill()
    error = failed(
        bench.one, _merge("new", "WHEN NOT MATCHED THEN INSERT VALUES (staged.day, staged.channel, staged.n)")
    )
    kept = bench.rows("channel = 'new'")
    return "an error" if error else f"silent; it inserts {len(kept)} of 2"


def _merge(channel: str, clause: str) -> str:
    rows = ", ".join(f"(DATE '2024-03-01', '{channel}', {n})" for n in (10, 20))
    return (
        f"MERGE INTO daily USING (VALUES {rows}) AS staged (day, channel, n)"
        f" ON daily.day = staged.day AND daily.channel = staged.channel {clause}"
    )


def _fence(bench: Bench) -> str:
    bench.one.execute("CREATE SCHEMA reslice")
    bench.one.execute("CREATE TABLE reslice.fences (table_name VARCHAR PRIMARY KEY, generation BIGINT)")
    bench.one.execute("INSERT INTO reslice.fences VALUES ('daily', 0)")
    take = ledger.fence_statement("reslice").replace("$table_name", "'daily'")
    return bench.race([take], [take])


def _empty_slice(bench: Bench) -> str:
    bench.fill()
    bench.one.execute("DELETE FROM daily")
    found = bench.race([_DELETE, _INSERT], [_DELETE, _INSERT])
    return f"{found}, and the slice holds {len(bench.rows())} rows for 2"


def _update_update(bench: Bench) -> str:
    bench.fill()
    return bench.race([_UPDATE], [_UPDATE.replace("4242", "4243")])


def _update_delete(bench: Bench) -> str:
    bench.fill()
    return bench.race([_UPDATE], _REPLACE) + _unless_there(bench, "n = 4242", "the update is lost")


def _update_touched(bench: Bench) -> str:
    """Try both orders: the UPDATE before the publish, and after it."""
    found = []
    for first, second in (([_UPDATE], [_TOUCH, *_REPLACE]), ([_TOUCH, *_REPLACE], [_UPDATE])):
        bench.one.execute("DROP TABLE IF EXISTS daily")
        bench.fill()
        found.append(bench.race(first, second))
    return found[0] if len(set(found)) == 1 else f"{found[0]}; the other way round: {found[1]}"


def _insert_delete(bench: Bench) -> str:
    bench.fill()
    found = bench.race(["INSERT INTO daily VALUES ('2024-03-01', 'live', 4242)"], [_TOUCH, *_REPLACE])
    return found + (f", and the slice holds {len(bench.rows(_SLICE))} rows for 2" if found == BOTH else "")


def _moved(bench: Bench) -> str:
    bench.fill()
    return bench.race([_MOVE], [_TOUCH, *_REPLACE]) + _unless_there(bench, "channel = 'moved'", "the row is gone")


def _moved_keyed(bench: Bench) -> str:
    bench.fill(key=True)
    return bench.race([_MOVE], [_TOUCH, *_REPLACE])


def _unless_there(bench: Bench, where: str, words: str) -> str:
    return "" if bench.rows(where) else f", and {words}"


def _same_new_key(bench: Bench) -> str:
    bench.fill(key=True)
    first, second = (f"INSERT INTO daily VALUES ('2024-03-05', 'web', {n})" for n in (1, 2))
    return bench.race([first], [second])


def _probe(name: str, observe: Callable[[Bench], str], does: str, relies: str, *expected: str) -> Probe[Bench]:
    return Probe(name, does, relies, observe, frozenset(expected))


PROBES = (
    _probe("rollback", _rollback, "a slice is deleted, inserted anew, and rolled back",
           "a run that fails leaves the slice as it was", "the slice is back, row for row"),
    _probe("transactional_ddl", _ddl, "tables are made, altered, renamed and dropped, and rolled back",
           "a ledger is made whole or not at all", "all of it is undone"),
    _probe("old_or_new", _reader, "a reader has a transaction open while a slice is replaced",
           "readers see the old rows or the new ones", "the old rows to the end, then the new ones"),
    _probe("closed_range", closed_range, "values lie at both ends of a range, and just outside, in its column's type",
           "both ends are included, and nothing else", ENDS),
    _probe("many_ranges", many_ranges, "every other slice is asked for, of more ranges than are written out",
           "exactly the slices that are named", SLICES),
    _probe("commit_of_aborted", _commit_of_aborted, "an error ends a transaction, which is then committed",
           "nothing of it is kept; that it was is read from the ledger",
           "raises nothing, and keeps nothing", "raises, and keeps nothing"),
    _probe("same_key", _same_key, "rows of a primary key are deleted and inserted again, in one transaction",
           "a slice with a key can be replaced", "goes through, also twice and beside a reader"),
    _probe("same_new_key", _same_new_key, "two transactions insert the same new key",
           "one of them fails", AT_STATEMENT, AT_COMMIT),
    _probe("fence", _fence, "two transactions take the turn of one table",
           "the second waits its turn: it fails at once", AT_STATEMENT),
    _probe("empty_slice", _empty_slice, "two transactions replace a slice that is empty, without the fence",
           NOT_RELIED + "that is what the fence is for"),
    _probe("update_update", _update_update, "two transactions update one row",
           "the second fails at once: fence and touch rest on it", AT_STATEMENT),
    _probe("update_delete", _update_delete, "one updates a row of a slice that another deletes",
           NOT_RELIED + "a publish updates the rows before it deletes them"),
    _probe("update_touched", _update_touched, "the same, where the slice is updated before it is deleted; both orders",
           "one of the two fails, whichever is first", AT_STATEMENT),
    _probe("insert_delete", _insert_delete, "one inserts into a slice that another replaces",
           NOT_RELIED + "slices are read back; writer_lock keeps writers apart"),
    _probe("moved_row", _moved, "one moves a row to another slice, while its old slice is replaced",
           NOT_RELIED + "a unique key on the grain, or writer_lock"),
    _probe("moved_row_keyed", _moved_keyed, "the same, where a key covers the slice column",
           "one of the two fails", AT_STATEMENT, AT_COMMIT),
    _probe("merge_matched", _merge_matched, "MERGE has two source rows for one row",
           NOT_RELIED + "repeated keys are refused before"),
    _probe("merge_new", _merge_new, "MERGE has two source rows of one new key",
           NOT_RELIED + "repeated keys are refused before"),
)  # fmt: skip
"""Everything that is tried, in order."""


def probed(contract: Contract, column: Column) -> tuple[Observation, ...]:
    """Try everything, and say what was observed; an error of the database is an observation as well."""
    return tuple(_observed(probe, contract, column) for probe in PROBES)


def _observed(probe: Probe[Bench], contract: Contract, column: Column) -> Observation:
    bench = Bench(contract, column)
    try:
        return probe.observed(probe.observe(bench))
    except duckdb.Error as error:
        return probe.failed(lines_of(error)[0])
    except RuntimeError as error:
        if not is_signalled(error):
            raise
        raise interrupted("doctor --probe") from error
    finally:
        bench.close()
