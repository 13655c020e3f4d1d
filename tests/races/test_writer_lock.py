"""A live writer under `writer_lock` beside a run, at every statement of either: one of the two is first, and both know.

What is written is never lost, never doubled, and never slips in: a run that compared before the writer refuses with
`base_moved` and leaves the table as the writer has it, or the writer waits until the run has published.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import reslice
from reslice.engines.duckdb.writers import WriterConnection
from reslice.errors import Misused, Refused, ResliceError, Retryable
from reslice.values import Run
from tests import orders_project as project
from tests.model import Call
from tests.model_rows import Row
from tests.races.conftest import D1, D2, D3, Shared
from tests.races.interleaving import GOES_SECONDS, PATIENCE_SECONDS, Beside, Ended, before, is_fence, outcome, run

Make = Callable[..., Shared]
Rows = Counter[tuple[Any, ...]]

ALL = Call(project.FREE, D1, D3)
EACH = Call(project.FREE, D1, D3, per_slice=True)
EVERY = [pytest.param(17), pytest.param(1, marks=pytest.mark.slow)]
"""At which statements the other one begins: around the fences and commits, and every n-th of the others; or at all."""

FOLLOWED: dict[tuple[str, str], list[str]] = {}
"""The statements of a run that nobody is in the way of, by its call and what it starts from."""

LIVE = Decimal("4242.00")
MINE = Row(D1, "live", 1, LIVE, False)
WRITES = {
    "insert": f"INSERT INTO daily_orders VALUES ('{D1}', 'live', 1, {LIVE}, false, NULL, 'live')",
    "update": f"UPDATE daily_orders SET revenue = {LIVE} WHERE order_date = '{D1}' AND channel = 'store'",
    "update of the slice column": (
        f"UPDATE daily_orders SET order_date = '{D2}', channel = 'moved'"
        f" WHERE order_date = '{D1}' AND channel = 'store'"
    ),
    "delete": f"DELETE FROM daily_orders WHERE order_date = '{D1}' AND channel = 'store'",
}


def written(name: str, rows: Rows) -> Rows:
    """Return the rows after a write, done here by hand."""
    after = Counter(rows)
    store = [values for values in rows if values[0] == "store" and D1 in values]
    assert len(store) == 1, "every table of these tests has one row of the shop on the first day"
    channel, has_gift, order_count, day, _ = old = store[0]
    if name != "insert":
        del after[old]
    if name == "insert":
        after[MINE.values] += 1
    elif name == "update":
        after[channel, has_gift, order_count, day, LIVE] += 1
    elif name == "update of the slice column":
        after["moved", has_gift, order_count, D2, old[4]] += 1
    return after


def rows_of(shared: Shared) -> Rows:
    return Counter(row.values for row in project.rows_of(shared.connection))


def is_mine(name: str, row: Row) -> bool:
    """Whether a kept row is one that only this write makes."""
    return row.revenue == LIVE or row.channel in ("live", "moved")


@dataclass
class Locked:
    """A writer in a thread of its own. It holds the lock, with its write done, until it is let go."""

    shared: Shared
    statement: str
    wait: timedelta = timedelta(seconds=PATIENCE_SECONDS)
    generation: int = 0
    errors: list[BaseException] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._holds, self._let_go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        connection = self.shared.connection.cursor()
        try:
            with reslice.writer_lock(connection, "daily_orders", wait=self.wait):
                self.generation = connection.execute("SELECT generation FROM reslice.fences").fetchall()[0][0]
                connection.execute(self.statement)
                self._holds.set()
                self._let_go.wait(PATIENCE_SECONDS)
        except (ResliceError, duckdb.Error, AssertionError) as error:
            self.errors.append(error)
        finally:
            connection.close()

    @property
    def waits(self) -> bool:
        """Whether it has met the fence, and tries again."""
        return not self._holds.is_set() and sum(is_fence(text) for text in self.statements) > 1

    def begin(self) -> None:
        """Start it, and wait until it holds the lock, or cannot have it before the run goes on."""
        self._thread.start()
        self._go(lambda: self._holds.is_set() or self.waits)

    def commit(self) -> None:
        """Let it commit, and wait until it has, or goes on waiting for the lock."""
        self._let_go.set()
        self._go(lambda: self.waits)

    def _go(self, is_far: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GOES_SECONDS
        while self._thread.is_alive() and not is_far() and time.monotonic() < deadline:
            time.sleep(0.001)

    def both(self) -> None:
        """Write and commit."""
        self.begin()
        self.commit()

    def end(self) -> None:
        """Wait for its end."""
        self._let_go.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the writer hangs"


def follow(patch: pytest.MonkeyPatch, writer: Locked) -> None:
    """Keep the statements with which a lock is taken and given back, of the thread of this writer."""
    execute = WriterConnection.execute

    def followed(self: WriterConnection, text: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        if threading.current_thread() is writer._thread:
            writer.statements.append(text)
        return execute(self, text, parameters)

    patch.setattr(WriterConnection, "execute", followed)


def places(make: Make, call: Call, every: int, **options: Any) -> list[int]:
    """Return the statements of a run to write at: around its fences and commits, and every n-th."""
    followed = (repr(call), repr(options))
    if followed not in FOLLOWED:
        made = make(**options)
        with pytest.MonkeyPatch.context() as patch:
            FOLLOWED[followed] = before(patch, {}).mine
            assert outcome(run(made.project, call)) == "published"
    seen = FOLLOWED[followed]
    fences = {place for place, text in enumerate(seen, start=1) if is_fence(text)}
    commits = {place for place, text in enumerate(seen, start=1) if text == "COMMIT"}
    near = {*fences, *(place + 1 for place in fences), *(place + 1 for place in commits)}
    return [place for place in range(1, len(seen) + 1) if place in near or place % every == 0]


def held_to(made: Shared, name: str, ended: Ended, writer: Locked, old: Rows, call: Call) -> str:
    """Hold table, ledger and both answers to one of the two orders; return which one."""
    assert writer.errors == []
    new = Counter(row.values for row in made.new(call).rows)
    kept = [row for _, row in project.kept_of(made.connection)]
    *_, recorded = project.runs_of(made.connection)
    if isinstance(ended, ResliceError):
        assert ended.kind == "base_moved", ended
        assert (recorded.state, recorded.error_kind) == ("refused", "base_moved")
        assert rows_of(made) == written(name, old), "the run did nothing, and the table is as the writer left it"
        assert kept == []
        return "writer first, run refused"
    assert ended.outcome.value == "published", ended
    assert recorded.publish_order is not None
    if writer.generation > recorded.publish_order:
        assert rows_of(made) == written(name, new), "the writer came after the run, and wrote upon its rows"
        assert not any(is_mine(name, row) for row in kept)
        return "run first"
    assert rows_of(made) == new
    stores = [row for row in kept if (row.order_date, row.channel) == (D1, "store")]
    assert any(is_mine(name, row) for row in kept) if name != "delete" else not stores
    return "writer first, run saw it"


def fill(shared: Shared, *, filled: bool) -> Rows:
    """Return the rows before; a target that was never published has them by hand."""
    if not filled:
        project.insert_rows(shared.connection, [Row(D1, "store", 9, Decimal("9.00"), False)])
    return rows_of(shared)


KEYED = [
    pytest.param(name, key, id=f"{name}, {'key' if key else 'no key'}", marks=() if is_sampled else pytest.mark.slow)
    for name in WRITES
    for key, is_sampled in (("", True), (project.PRIMARY_KEY, name == "update"))
]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(("name", "key"), KEYED)
def test_a_writer_begins_and_commits_at_every_statement_of_a_run(shared: Make, name: str, key: str, every: int) -> None:
    orders = set()
    for place in places(shared, ALL, every, key=key):
        made = shared(key=key)
        old, writer = rows_of(made), Locked(made, WRITES[name])
        with pytest.MonkeyPatch.context() as patch:
            follow(patch, writer)
            before(patch, {place: writer.both})
            ended = run(made.project, ALL)
            writer.end()
        orders.add(held_to(made, name, ended, writer, old, ALL))
    assert isinstance(run(made.project, ALL), Run), "the next run puts the slice right"
    assert rows_of(made) == Counter(row.values for row in made.new(ALL).rows)
    assert orders == {"writer first, run refused", "run first", "writer first, run saw it"}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize(
    "name",
    [
        "update",
        "update of the slice column",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("insert", "delete")),
    ],
)
def test_a_writer_holds_the_lock_over_many_statements_of_a_run(shared: Make, name: str, every: int) -> None:
    """It begins before one statement and commits before a later one, also one that the run waits for its turn at."""
    chosen = places(shared, ALL, every)
    spans = [(first, first + length) for first in chosen for length in (1, 4, 40)]
    orders = set()
    for first, last in spans if every == 1 else spans[:: len(spans) // 10 + 1]:
        made = shared()
        old, writer = rows_of(made), Locked(made, WRITES[name])
        with pytest.MonkeyPatch.context() as patch:
            follow(patch, writer)
            before(patch, {first: writer.begin, last: writer.commit})
            ended = run(made.project, ALL)
            writer.end()
        orders.add(held_to(made, name, ended, writer, old, ALL))
    assert "writer first, run refused" in orders and "run first" in orders


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("name", ["insert", pytest.param("update", marks=pytest.mark.slow)])
def test_a_table_that_no_run_has_seen_has_no_ledger_yet(shared: Make, name: str, every: int) -> None:
    """Whoever is first makes it, the other finds it."""
    for place in places(shared, ALL, every, filled=False):
        made = shared(filled=False)
        old, writer = fill(made, filled=False), Locked(made, WRITES[name])
        with pytest.MonkeyPatch.context() as patch:
            follow(patch, writer)
            before(patch, {place: writer.both})
            ended = run(made.project, ALL)
            writer.end()
        held_to(made, name, ended, writer, old, ALL)
        is_published = isinstance(ended, Run)
        assert project.generation_of(made.connection) == 1 + is_published


def test_nothing_slips_into_an_empty_slice(shared: Make) -> None:
    """Where there is no row, nothing but the fence can conflict."""
    empty = Counter[tuple[Any, ...]]()
    for place in places(shared, ALL, 13, filled=False):
        made = shared(filled=False)
        writer = Locked(made, WRITES["insert"])
        with pytest.MonkeyPatch.context() as patch:
            follow(patch, writer)
            before(patch, {place: writer.both})
            ended = run(made.project, ALL)
            writer.end()
        new = Counter(row.values for row in made.new(ALL).rows)
        mine = Counter([MINE.values])
        assert outcome(ended) in ("published", "base_moved")
        assert rows_of(made) in ([new, new + mine] if isinstance(ended, Run) else [empty + mine])


@pytest.mark.parametrize("every", EVERY)
def test_a_writer_between_the_commits_of_a_run(shared: Make, every: int) -> None:
    """With one commit per slice a writer may come between two: what it wrote upon a published slice is no slip."""
    told = set()
    for place in places(shared, EACH, every):
        made = shared()
        writer = Locked(made, WRITES["update"])
        with pytest.MonkeyPatch.context() as patch:
            follow(patch, writer)
            before(patch, {place: writer.both})
            ended = run(made.project, EACH)
            writer.end()
        assert writer.errors == []
        told.add(outcome(ended))
        is_there = any(row.revenue == LIVE for row in project.rows_of(made.connection))
        is_kept = any(row.revenue == LIVE for _, row in project.kept_of(made.connection))
        assert is_there != is_kept, "lost, or doubled"
        if isinstance(ended, Run) and is_there:
            assert not ended.warnings or f"{D1} changed again" in ended.warnings[-1]
    assert told == {"published", "base_moved"}


def steps_of(patch: pytest.MonkeyPatch, acts: Mapping[int, Callable[[], None]]) -> list[str]:
    """Do each act before the n-th statement with which this thread takes its lock or gives it back."""
    execute = WriterConnection.execute
    me, seen, waiting = threading.get_ident(), list[str](), dict(acts)

    def counted(self: WriterConnection, text: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        if threading.get_ident() == me:
            seen.append(text)
            waiting.pop(len(seen), lambda: None)()
        return execute(self, text, parameters)

    patch.setattr(WriterConnection, "execute", counted)
    return seen


STARTED = [
    pytest.param(name, filled, id=f"{name}, {'ledger' if filled else 'no ledger'}", marks=marks)
    for name in WRITES
    for filled in (True, False)
    for marks in [() if (name, filled) in (("insert", False), ("update", True)) else pytest.mark.slow]
]


@pytest.mark.parametrize(("name", "filled"), STARTED)
def test_a_run_begins_at_every_step_of_a_writer(shared: Make, name: str, filled: bool) -> None:
    """Before each statement of the lock, before and after the write in it, and after its end."""
    count = 40
    orders, place = set(), 0
    while place < count + 3:
        place += 1
        made = shared(filled=filled)
        old, other = fill(made, filled=filled), Beside(made.project, ALL)
        writer = Locked(made, WRITES[name])
        connection = made.connection.cursor()
        with pytest.MonkeyPatch.context() as patch:
            seen = before(patch, {})
            acts = {place: lambda: other.go(seen)} if place <= count else {}  # noqa: B023 - called in here
            statements = steps_of(patch, acts)
            with reslice.writer_lock(connection, "daily_orders", wait=timedelta(seconds=PATIENCE_SECONDS)):
                writer.generation = project.generation_of(connection)
                if place == count + 1:
                    other.go(seen)
                connection.execute(WRITES[name])
                if place == count + 2:
                    other.go(seen)
            count = min(count, len(statements))
            if place == count + 3:
                other.go(seen)
            ended = other.end()
        orders.add(held_to(made, name, ended, writer, old, ALL))
    assert "writer first, run refused" in orders or not filled
    assert len(orders) > 1


@pytest.mark.parametrize("rounds", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_many_writers_and_many_runs_at_once(shared: Make, rounds: int) -> None:
    """Each writer adds one to a count, as a read and a write of its own: no addition is lost, whoever publishes."""
    chance = random.Random(f"20240304 {rounds}")
    for _ in range(rounds):
        made = shared(filled=chance.random() < 0.5)
        extra = replace(MINE, order_count=0, order_date=date_outside())
        project.insert_rows(made.connection, [extra])
        done: list[str] = []
        threads = [threading.Thread(target=count_up, args=(made, done)) for _ in range(6)]
        threads += [threading.Thread(target=run_often, args=(made, done)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE_SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        assert Counter(done) == Counter({"counted": 6 * 5, "ran": 2}), done
        counts = [row.order_count for row in project.rows_of(made.connection) if row.channel == "live"]
        assert counts == [6 * 5]
        run(made.project, ALL)
        made.model.rows.append(replace(extra, order_count=30))
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).rows)


def date_outside() -> Any:
    return D3 + timedelta(days=30)


def count_up(made: Shared, done: list[str]) -> None:
    connection = made.connection.cursor()
    for _ in range(5):
        with reslice.writer_lock(connection, "daily_orders", wait=timedelta(seconds=2 * PATIENCE_SECONDS)):
            (count,) = connection.execute("SELECT order_count FROM daily_orders WHERE channel = 'live'").fetchall()[0]
            connection.execute("UPDATE daily_orders SET order_count = $1 WHERE channel = 'live'", [count + 1])
        done.append("counted")


def run_often(made: Shared, done: list[str]) -> None:
    for _ in range(4):
        ended = run(made.project, replace(ALL, rewrite=True))
        if outcome(ended) not in ("published", "base_moved", "later_run", "conflict"):
            done.append(str(ended))
    done.append("ran")


# What the lock is, by itself.


@pytest.fixture
def made(shared: Make) -> Shared:
    return shared()


def generation(made: Shared) -> int:
    return project.generation_of(made.connection)


def test_a_block_that_ends_commits_and_gives_the_connection(made: Shared) -> None:
    before_it = generation(made)
    with reslice.writer_lock(made.connection, "daily_orders") as connection:
        assert connection is made.connection
        connection.execute(WRITES["insert"])
    made.connection.execute("BEGIN")  # none is open
    made.connection.execute("ROLLBACK")
    assert rows_of(made)[MINE.values] == 1
    assert generation(made) == before_it + 1


def test_a_block_that_raises_leaves_the_table_as_it_was(made: Shared) -> None:
    old, before_it = rows_of(made), generation(made)

    class MyOwnError(Exception):
        pass

    with pytest.raises(MyOwnError), reslice.writer_lock(made.connection, "daily_orders"):
        made.connection.execute(WRITES["insert"])
        raise MyOwnError
    with pytest.raises(duckdb.ConversionException), reslice.writer_lock(made.connection, "daily_orders"):
        made.connection.execute(WRITES["insert"])
        made.connection.execute("SELECT CAST('no number' AS INTEGER)")
    made.connection.execute("BEGIN")
    made.connection.execute("ROLLBACK")
    assert (rows_of(made), generation(made)) == (old, before_it)


def test_an_error_that_the_block_swallows_is_told_at_its_end(made: Shared) -> None:
    """DuckDB ends the transaction with the error, and its COMMIT would raise nothing and keep nothing."""
    old = rows_of(made)
    with pytest.raises(Retryable) as caught, reslice.writer_lock(made.connection, "daily_orders"):
        made.connection.execute(WRITES["insert"])
        with pytest.raises(duckdb.ConversionException):
            made.connection.execute("SELECT CAST('no number' AS INTEGER)")
    assert (caught.value.kind, caught.value.retry) == ("write_aborted", True)
    assert caught.value.unchanged == "daily_orders is as it was; everything was rolled back"
    assert rows_of(made) == old


def test_a_commit_that_fails_is_told(shared: Make) -> None:
    """Somebody without the lock takes the key first."""
    made = shared(key=project.PRIMARY_KEY)
    with pytest.raises(Retryable) as caught, reslice.writer_lock(made.connection, "daily_orders"):
        made.connection.execute(WRITES["insert"])
        made.connection.cursor().execute(WRITES["insert"])
    assert caught.value.kind == "write_aborted" and "violat" in caught.value.failures[0].found[0]
    assert rows_of(made)[MINE.values] == 1


@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("again", [True, False], ids=["and begins another", ""])
def test_a_block_that_ends_the_transaction_itself_is_told_so(made: Shared, word: str, again: bool) -> None:
    with pytest.raises(Misused) as caught, reslice.writer_lock(made.connection, "daily_orders"):
        made.connection.execute(WRITES["insert"])
        made.connection.execute(word)
        if again:
            made.connection.execute("BEGIN")
    assert caught.value.kind == "usage" and "ended the transaction itself" in str(caught.value)
    assert rows_of(made)[MINE.values] == (word == "COMMIT")
    assert not in_transaction(made.connection)


def in_transaction(connection: duckdb.DuckDBPyConnection) -> bool:
    return WriterConnection(connection).is_in_transaction()


def test_an_open_transaction_is_refused_and_left_open(made: Shared) -> None:
    made.connection.execute("BEGIN")
    made.connection.execute(WRITES["insert"])
    with pytest.raises(Misused) as caught, reslice.writer_lock(made.connection, "daily_orders"):
        raise AssertionError("never inside")
    assert caught.value.kind == "usage" and "has a transaction open" in str(caught.value)
    made.connection.execute("COMMIT")
    assert rows_of(made)[MINE.values] == 1

    lock = reslice.writer_lock(made.connection, "daily_orders")
    with lock, pytest.raises(Misused), reslice.writer_lock(made.connection, "daily_orders"):
        raise AssertionError("never inside")
    assert not in_transaction(made.connection)


def test_a_transaction_that_an_error_has_ended_is_refused_as_well(made: Shared) -> None:
    made.connection.execute("BEGIN")
    with pytest.raises(duckdb.ConversionException):
        made.connection.execute("SELECT CAST('no number' AS INTEGER)")
    with pytest.raises(Misused), reslice.writer_lock(made.connection, "daily_orders"):
        raise AssertionError("never inside")
    made.connection.execute("ROLLBACK")


@pytest.mark.parametrize("name", ["daily_orders", "DAILY_ORDERS", "main.Daily_Orders", '"orders".main."daily_orders"'])
def test_every_name_of_a_table_is_the_same_turn(made: Shared, name: str) -> None:
    before_it = generation(made)
    with reslice.writer_lock(made.connection, name):
        writer = Locked(made, WRITES["insert"], wait=timedelta(milliseconds=100))
        writer.begin()
        writer.end()
    (error,) = writer.errors
    assert isinstance(error, Retryable)
    assert (error.kind, error.exit_code) == ("database_busy", 4)
    assert generation(made) == before_it + 1


def test_a_name_is_what_the_connection_of_the_writer_takes_it_for(made: Shared) -> None:
    """`USE` of the writer counts, since it counts for what is written."""
    made.connection.execute("CREATE SCHEMA other")
    made.connection.execute("CREATE TABLE other.daily_orders (n INTEGER)")
    cursor = made.connection.cursor()
    cursor.execute("USE other")
    with reslice.writer_lock(cursor, "daily_orders"):
        cursor.execute("INSERT INTO daily_orders VALUES (1)")
    fences = made.connection.execute("SELECT table_name, generation FROM reslice.fences ORDER BY 1").fetchall()
    assert fences == [("orders.main.daily_orders", 1), ("orders.other.daily_orders", 1)]


def test_another_table_is_in_nobodys_way(made: Shared) -> None:
    with reslice.writer_lock(made.connection, "orders"):
        assert outcome(run(made.project, ALL)) == "published"


def test_what_a_writer_waits_for_is_bounded_by_wait(made: Shared) -> None:
    with reslice.writer_lock(made.connection, "daily_orders"):
        began = time.monotonic()
        with (
            pytest.raises(Retryable),
            reslice.writer_lock(made.connection.cursor(), "daily_orders", wait=timedelta(milliseconds=300)),
        ):
            raise AssertionError("never inside")
        assert 0.3 <= time.monotonic() - began < 5


def test_a_run_waits_for_a_writer_as_long_as_its_contract_says(shared: Make) -> None:
    made = shared(wait="300ms")
    with reslice.writer_lock(made.connection, "daily_orders"):
        ended = run(made.project, ALL)
    assert isinstance(ended, Retryable)
    assert (ended.kind, ended.exit_code) == ("database_busy", 4)
    assert "a writer that holds its writer_lock" in ended.failures[0].found[0]


def test_what_cannot_be_locked_is_refused_by_name(made: Shared) -> None:
    made.connection.execute("CREATE VIEW shown AS SELECT * FROM daily_orders")
    made.connection.execute("CREATE SCHEMA foreign_one")
    made.connection.execute("CREATE TABLE foreign_one.fences (owner VARCHAR)")
    for name, schema, kind in (
        ("nowhere", "reslice", "target_missing"),
        ("shown", "reslice", "target_not_table"),
        ("daily_orders", "elsewhere", "ledger_foreign"),
        ("orders", "foreign_one", "ledger_foreign"),
    ):
        with pytest.raises(Refused) as caught, reslice.writer_lock(made.connection, name, schema=schema):
            raise AssertionError("never inside")
        assert caught.value.kind == kind
        assert not in_transaction(made.connection)
    assert made.connection.execute(
        "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'elsewhere'"
    ).fetchall() == [(0,)]


@pytest.mark.parametrize("connection", [None, "orders.duckdb", 7])
def test_what_is_no_connection_is_refused(connection: Any) -> None:
    with pytest.raises(Misused) as caught, reslice.writer_lock(connection, "daily_orders"):
        raise AssertionError("never inside")
    assert caught.value.kind == "connection"


def test_a_database_that_is_open_for_reading_is_refused(made: Shared) -> None:
    folder = made.contract.parent
    made.connection.close()
    with project.connect(folder, read_only=True) as connection:
        with pytest.raises(Refused) as caught, reslice.writer_lock(connection, "daily_orders"):
            raise AssertionError("never inside")
        assert caught.value.kind == "target_rights"


def test_settings_of_the_writer_are_as_they_were(made: Shared) -> None:
    asked = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    cursor = made.connection.cursor()
    before_it = cursor.execute(asked).fetchall()
    with reslice.writer_lock(cursor, "daily_orders"):
        pass
    assert cursor.execute(asked).fetchall() == before_it
