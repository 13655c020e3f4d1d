"""The steps of the demo: a late correction on synthetic orders, with the real product; not accounting revenue.

Each step does one thing to the project in a directory and returns what came of it. Nothing is computed for show: runs
are the product's own, and every other figure is read from the database. The append is done to throw-away copies only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from reslice.engines import duckdb as duckdb_engine
from reslice.lab import sketches
from reslice.project import Project, open_project
from reslice.retail import demo_folder, load
from reslice.values import Run

TARGET = "daily_orders"
FIRST, SECOND, THIRD = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)
TWO_DAYS = f"{FIRST}..{SECOND}"
THREE_DAYS = f"{FIRST}..{THIRD}"
WATCHED = (SECOND, "web")
"""The group whose figures the appended copies are shown by: the day and channel to which an order has moved."""

REJECTED_SQL = "SELECT event_id, reasons FROM rejected_events ORDER BY event_id"
KEY_SQL = f"CREATE UNIQUE INDEX one_row_per_grain ON {TARGET} (order_date, channel)"


@dataclass(frozen=True, slots=True)
class Table:
    """What the whole target adds up to, as a reader sums it."""

    rows: int
    orders: int
    cents: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """One event that is left out, with every reason."""

    event_id: str | None
    reasons: str


@dataclass(frozen=True, slots=True)
class Events:
    """What became of all events that have arrived. `superseded` are accepted and not the winner of their order."""

    arrived: int
    repeats: int
    accepted: int
    superseded: int
    current: int
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """A copy after a number of appends: the orders and cents of the watched group, and the whole table."""

    times: int
    orders: int
    cents: int
    table: Table


@dataclass(frozen=True, slots=True)
class KeyViolation:
    """What the database answered to an append that a unique key forbids."""

    message: str


Answer = Run | Events | tuple[Appended, ...] | KeyViolation


@dataclass(frozen=True, slots=True)
class Step:
    """One step that was done: the commands it stands for, what came of it, and the whole table after it.

    `told` is said before the commands, `learnt` after the answer.
    """

    name: str
    title: str
    told: str
    commands: tuple[str, ...]
    answer: Answer
    learnt: str
    table: Table


@dataclass(frozen=True, slots=True)
class Story:
    """All steps, and the directory in which the project is left. `is_again`: an earlier demo there was replaced."""

    folder: Path
    is_again: bool
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        """Return one step by its name."""
        return next(step for step in self.steps if step.name == name)


def tell(folder: Path) -> Iterator[Step]:
    """Do one step after the other in a directory that `demo_folder.make` has just made."""
    project = open_project(folder / demo_folder.CONTRACT)
    for step in (first_load, follow_up, look_first, replace, again, rewrite, third_day, verify, append, unique_key):
        yield step(project)


def first_load(project: Project) -> Step:
    """Load the first events and fill the table from them."""
    with _database(project, read_only=False) as database:
        load.create_pipeline(_Loader(database))
        load.load_events(_Loader(database), load.initial_events(), loaded_at=database.now())
        arrived = database.execute("SELECT count(*) FROM order_events")[0][0]
    done = project.target(TARGET).run(THREE_DAYS)
    return Step(
        name="first_load",
        title="The table is filled",
        told=f"{arrived} order events have arrived. sql/daily_orders.sql recomputes any days of {TARGET} from them,\n"
        "and reslice.yml says what is true of that table: one row per day and channel, replaced by whole days.",
        commands=(f"reslice run {TARGET} {THREE_DAYS}",),
        answer=done,
        learnt="",
        table=_table(project),
    )


def follow_up(project: Project) -> Step:
    """Load the events that arrive later, and read what the pipeline makes of them all. The target is not touched."""
    with _database(project, read_only=False) as database:
        late = load.follow_up_events()
        load.load_events(_Loader(database), late, loaded_at=database.now())
        events = _events(database)
    return Step(
        name="follow_up",
        title="A follow-up arrives",
        told=f"{len(late)} more events: corrections, repeats, one that is out of date, a late order and a mistake.\n"
        "Plain SQL views sort all of them out and keep one winner per order. What cannot be used is named:",
        commands=(REJECTED_SQL,),
        answer=events,
        learnt=f"Order o100 has moved from {FIRST} to {SECOND}. {TARGET} is a table and does not know it yet.",
        table=_table(project),
    )


def look_first(project: Project) -> Step:
    """Plan the two days that the corrections are about. Nothing is written."""
    return Step(
        name="plan",
        title="Look before anything is written",
        told="A plan recomputes the days, checks the rows, and compares them with the table, group by group.",
        commands=(f"reslice plan {TARGET} {TWO_DAYS}",),
        answer=project.target(TARGET).plan(TWO_DAYS),
        learnt="The group that the order left is removed: the range decides what is deleted, not the new rows.\n"
        f"And the warning names a day that nobody asked for: {THIRD} has changed too.",
        table=_table(project),
    )


def replace(project: Project) -> Step:
    """Publish the two days."""
    done = project.target(TARGET).run(TWO_DAYS)
    return Step(
        name="run",
        title="Run it",
        told="What was planned, in one commit: a reader sees the old days or the new ones, nothing between.",
        commands=(f"reslice run {TARGET} {TWO_DAYS}",),
        answer=done,
        learnt="",
        table=_table(project),
    )


def again(project: Project) -> Step:
    """Run the same command a second time; the table already holds these rows."""
    done = project.target(TARGET).run(TWO_DAYS)
    return Step(
        name="run_again",
        title="Run it again",
        told="Schedulers retry, and people press the button twice. The same command once more:",
        commands=(f"reslice run {TARGET} {TWO_DAYS}",),
        answer=done,
        learnt="",
        table=_table(project),
    )


def rewrite(project: Project) -> Step:
    """Write the two days again although nothing differs; the rows stay the same."""
    done = project.target(TARGET).run(TWO_DAYS, rewrite=True)
    return Step(
        name="rewrite",
        title="Write it again all the same",
        told="Is it safe only because nothing was written? With --rewrite the days are deleted and inserted once more:",
        commands=(f"reslice run {TARGET} {TWO_DAYS} --rewrite",),
        answer=done,
        learnt="The write happened, and the result did not move.",
        table=_table(project),
    )


def third_day(project: Project) -> Step:
    """Publish the day that the plan's warning has named; the table is then what the events say."""
    done = project.target(TARGET).run(TWO_DAYS, with_affected=True)
    return Step(
        name="third_day",
        title="The day that the warning named",
        told=f"{THIRD} is still as it was, and every run says so. --with-affected takes it along; of three days, only\n"
        "the one that differs is written.",
        commands=(f"reslice run {TARGET} {TWO_DAYS} --with-affected",),
        answer=done,
        learnt="",
        table=_table(project),
    )


def verify(project: Project) -> Step:
    """Ask whether the source repeats and whether the table equals it."""
    return Step(
        name="verify",
        title="Is it right?",
        told="Two questions with two answers: does the source give the same rows twice, and does the table hold them?",
        commands=(f"reslice verify {TARGET} {THREE_DAYS}",),
        answer=project.target(TARGET).verify(THREE_DAYS),
        learnt="",
        table=_table(project),
    )


def append(project: Project) -> Step:
    """Append the recomputed two days, twice, to a throw-away copy; the project is not touched."""
    with _copy(project) as copied, _database(copied, read_only=False) as database:
        states = [_appended(database, 0)]
        for times in (1, 2):
            database.execute(_append_sql("$start", "$end"), {"start": FIRST, "end": SECOND})
            states.append(_appended(database, times))
    return Step(
        name="append",
        title="Beside it: the same days, appended",
        told="On a throw-away copy. The SELECT is the same, and right; but nothing removes what stood there before.",
        commands=(_append_sql(f"'{FIRST}'", f"'{SECOND}'"),),
        answer=tuple(states),
        learnt="No error, and the task is green each time. A total that counts twice looks like a good month.",
        table=_table(project),
    )


def unique_key(project: Project) -> Step:
    """Append to another throw-away copy, whose key is enforced; the database forbids it and the copy stays as it is."""
    with _copy(project) as copied, _database(copied, read_only=False) as database:
        database.execute(KEY_SQL)
        answer = _refused_append(database)
        table = _measured(database)
    return Step(
        name="unique_key",
        title="The same append, against a unique key",
        told="On another copy, with one row per day and channel enforced by the database:",
        commands=(KEY_SQL, _append_sql(f"'{FIRST}'", f"'{SECOND}'")),
        answer=answer,
        learnt="A useful failure: nothing was doubled. But a failure is not a correction: a late order fails in the\n"
        "same way, and the row of a group that is gone stays. A key is a net; the cure is to replace the days.",
        table=table,
    )


class _Loader:
    """The two calls that the loader makes, on an engine: it names its parameters, the loader counts them."""

    def __init__(self, database: duckdb_engine.DuckDB) -> None:
        self._database = database

    def execute(self, query: str, /) -> None:
        """Run every statement of `query`."""
        self._database.execute(query)

    def executemany(self, query: str, parameters: Sequence[Sequence[Any]], /) -> None:
        """Run `query` once per row of parameters, in one transaction."""
        with self._database.transaction():
            for row in parameters:
                names = [f"value_{position}" for position in range(len(row))]
                named = query.replace("?", "${}").format(*names)
                self._database.execute(named, dict(zip(names, row, strict=True)))


@contextmanager
def _database(project: Project, *, read_only: bool) -> Iterator[duckdb_engine.DuckDB]:
    """Open the project's database for plain statements."""
    with project.engine(read_only=read_only) as engine:
        assert isinstance(engine, duckdb_engine.DuckDB), "the example's contract names a DuckDB file"
        yield engine


@contextmanager
def _copy(project: Project) -> Iterator[Project]:
    """Open a copy of the project that is thrown away afterwards."""
    with tempfile.TemporaryDirectory(prefix="reslice-demo-") as name:
        demo_folder.copy(project.path.parent, Path(name))
        yield open_project(Path(name) / demo_folder.CONTRACT)


def _append_sql(start: str, end: str) -> str:
    """Return the append of the lab, without its comment, for the days between two SQL expressions."""
    return sketches.filled("append", start, end)


def _refused_append(database: duckdb_engine.DuckDB) -> KeyViolation:
    """Return what the database says to an append that repeats keys."""
    try:
        database.execute(_append_sql("$start", "$end"), {"start": FIRST, "end": SECOND})
    except duckdb_engine.KEY_VIOLATION as error:
        return KeyViolation(str(error))
    raise AssertionError("a unique key let repeated keys pass")


def _table(project: Project) -> Table:
    with _database(project, read_only=True) as database:
        return _measured(database)


def _measured(database: duckdb_engine.DuckDB) -> Table:
    return Table(
        *database.execute(f"SELECT count(*), sum(order_count)::BIGINT, sum(amount_cents)::BIGINT FROM {TARGET}")[0]
    )


def _appended(database: duckdb_engine.DuckDB, times: int) -> Appended:
    """Measure the watched group and the table as a report would: by summing what is there."""
    day, channel = WATCHED
    orders, cents = database.execute(
        f"SELECT sum(order_count)::BIGINT, sum(amount_cents)::BIGINT FROM {TARGET}"
        " WHERE order_date = $day AND channel = $channel",
        {"day": day, "channel": channel},
    )[0]
    return Appended(times, orders, cents, _measured(database))


def _events(database: duckdb_engine.DuckDB) -> Events:
    """Count the events at each stage of the pipeline."""
    arrived, payloads, accepted, current = database.execute(
        "SELECT (SELECT count(*) FROM order_events), (SELECT count(*) FROM event_payloads),"
        " (SELECT count(*) FROM valid_events), (SELECT count(*) FROM current_events)"
    )[0]
    rejected = tuple(Rejected(*row) for row in database.execute(REJECTED_SQL))
    return Events(arrived, arrived - payloads, accepted, accepted - current, current, rejected)
