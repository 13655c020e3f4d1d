"""Do what the lab shows, in a real DuckDB: every pattern on throw-away copies of the retail project.

The table is filled by the product's own run. The copies are written by the sketches alone, and every figure is asked of
the database; nothing is counted here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reslice.engines import duckdb as duckdb_engine
from reslice.lab import sketches
from reslice.lab.choices import RANGES, Choice, Days, Pattern, Start, every_choice
from reslice.lab.states import Group, Refusal, Results, Stage, State, Sum
from reslice.project import open_project
from reslice.retail import demo_folder, demo_steps

Database = duckdb_engine.DuckDB

TARGET, ORDERS = "daily_orders", "daily_channel_mart"
COLUMNS = "order_date, channel, order_count, amount_cents"

GROUPS = """
SELECT CAST(order_date AS VARCHAR), channel, count(*), CAST(sum(order_count) AS BIGINT),
    CAST(sum(amount_cents) AS BIGINT)
FROM {table} GROUP BY order_date, channel ORDER BY order_date, channel
"""
ROWS = """
SELECT CAST(order_date AS VARCHAR), channel, order_count, CAST(amount_cents AS BIGINT)
FROM {table} ORDER BY ALL
"""
SUM = """
SELECT count(*), CAST(coalesce(sum(order_count), 0) AS BIGINT), CAST(coalesce(sum(amount_cents), 0) AS BIGINT)
FROM {table} WHERE {condition}
"""
ARE_EQUAL = """
SELECT NOT EXISTS (
    (SELECT {columns} FROM {one} WHERE {condition} EXCEPT ALL SELECT {columns} FROM {other} WHERE {condition})
    UNION ALL
    (SELECT {columns} FROM {other} WHERE {condition} EXCEPT ALL SELECT {columns} FROM {one} WHERE {condition})
)
"""


def results() -> Results:
    """Return what came of every choice, and of an append that a key forbids. All copies are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="reslice-lab-") as name:
        starts = _starts(Path(name))
        found: dict[Choice, State] = {}
        for choice in every_choice():
            with _copy(starts[choice.start], with_key=choice.pattern.needs_key) as database:
                found[choice] = _run(database, choice)
        with _copy(starts[Start.CURRENT], with_key=True) as database:
            refusal = _refused_append(database)
    return Results(tuple(found.values()), refusal)


def _starts(folder: Path) -> dict[Start, Path]:
    """Make the project twice: as the follow-up found its table, and with all days run again after it."""
    places = {start: folder / start for start in Start}
    before, current = places[Start.BEFORE_FOLLOW_UP], places[Start.CURRENT]
    demo_folder.make(before)
    project = open_project(before / demo_folder.CONTRACT)
    demo_steps.first_load(project)
    demo_steps.follow_up(project)
    current.mkdir()
    demo_folder.copy(before, current)
    open_project(current / demo_folder.CONTRACT).target(TARGET).run(demo_steps.THREE_DAYS)
    return places


@contextmanager
def _copy(project: Path, *, with_key: bool) -> Iterator[Database]:
    """Open a copy that is thrown away afterwards; `with_key` lets the database enforce the target key."""
    with tempfile.TemporaryDirectory(prefix="reslice-lab-") as name:
        demo_folder.copy(project, Path(name))
        with open_project(Path(name) / demo_folder.CONTRACT).engine(read_only=False) as database:
            assert isinstance(database, Database), "the example's contract names a DuckDB file"
            database.execute("SET threads = 1")  # with more, chance decides which of several repeated keys is named
            if with_key:
                database.execute(demo_steps.KEY_SQL)
            yield database


def _run(database: Database, choice: Choice) -> State:
    """Write the range as often as chosen, and twice to see if it repeats; look at the table before and after."""
    write = sql_of(choice.pattern, choice.days)
    stages = [_stage(database, "before", TARGET, choice.days)]
    for number in range(1, choice.runs + 1):
        database.execute(write)
        stages.append(_stage(database, f"after run {number}", TARGET, choice.days))
        if number == 1:
            database.execute(f"CREATE TEMP TABLE after_run_1 AS SELECT {COLUMNS} FROM {TARGET}")
    equal_in_range = _are_equal(database, TARGET, ORDERS, _inside(choice.days))
    equal_everywhere = _are_equal(database, TARGET, ORDERS, "true")
    if choice.runs == 1:
        database.execute(write)
    repeats = _are_equal(database, TARGET, "after_run_1", "true")
    orders = _stage(database, "orders", ORDERS, choice.days)
    return State(choice, tuple(stages), orders, repeats, equal_in_range, equal_everywhere)


def sql_of(pattern: Pattern, days: Days) -> str:
    """Return the SQL of one run."""
    return sketches.filled(pattern, *bounds(days))


def bounds(days: Days) -> tuple[str, str]:
    """Return the two closed bounds as SQL."""
    return f"DATE '{days.start}'", f"DATE '{days.end}'"


def _inside(days: Days) -> str:
    return "order_date BETWEEN {} AND {}".format(*bounds(days))


def _stage(database: Database, name: str, table: str, days: Days) -> Stage:
    return Stage(
        name=name,
        table=_sum(database, table, "true"),
        range=_sum(database, table, _inside(days)),
        groups=tuple(Group(*row) for row in database.execute(GROUPS.format(table=table))),
        rows=tuple((row[0], row[1], row[2], row[3]) for row in database.execute(ROWS.format(table=table))),
    )


def _sum(database: Database, table: str, condition: str) -> Sum:
    return Sum(*database.execute(SUM.format(table=table, condition=condition))[0])


def _are_equal(database: Database, one: str, other: str, condition: str) -> bool:
    """Return whether two tables hold the same rows, each as often."""
    query = ARE_EQUAL.format(one=one, other=other, columns=COLUMNS, condition=condition)
    return bool(database.execute(query)[0][0])


def _refused_append(database: Database) -> Refusal:
    """Append to a table whose key is enforced; return what the database says, and that the table is as it was."""
    before = _sum(database, TARGET, "true")
    try:
        database.execute(sql_of(Pattern.APPEND, RANGES[0]))
    except duckdb_engine.KEY_VIOLATION as error:
        return Refusal(demo_steps.KEY_SQL, str(error).strip(), before, _sum(database, TARGET, "true"))
    raise AssertionError("a unique key let repeated keys pass")
