"""The corrected project of `scenario` on a real PostgreSQL server, and what must be true after a run was cut short."""

from __future__ import annotations

import copy
import itertools
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

import reslice
from reslice.engines.postgres.session import PostgresSession
from reslice.values import Run, State
from tests import orders_project as project
from tests import postgres
from tests.agreement import abandoned, differences, left_by_crash
from tests.crash.scenario import D1, D2, D3, D4
from tests.model import Call, Model
from tests.model_rows import Order, Row

_NUMBERS = itertools.count(1)
_SECONDS = 20

SPELLED = {
    "duckdb_tables()": "(SELECT tablename AS table_name, schemaname AS schema_name FROM pg_catalog.pg_tables"
    " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')) AS found_tables",
    "duckdb_views()": "(SELECT viewname AS view_name FROM pg_catalog.pg_views) AS found_views",
    # The number of a staging is committed before it is known how the run ends; the model has it from the end on.
    "restores, staged_order,": "restores, CASE WHEN state <> 'requested' AND coalesce(error, '') NOT LIKE"
    " '%\"abandoned\"%' THEN staged_order END,",
}
"""What the queries of `orders_project` say to DuckDB, and how it is said to PostgreSQL."""


class Reader:
    """A connection that takes what `orders_project` and `agreement` ask."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.RawCursor[Any]:
        for duckdb_words, words in SPELLED.items():
            sql = sql.replace(duckdb_words, words)
        sql = re.sub(r"unnest\((\$\d)\)", r"unnest(CAST(\1 AS text[]))", sql).replace(
            "SELECT number,", "SELECT number::int,"
        )
        values = [
            [None if each is None else str(each) for each in value] if isinstance(value, list) else value
            for value in parameters
        ]
        cursor = psycopg.RawCursor(self._connection)
        return cursor.execute(sql.encode(), values or None)


@dataclass(frozen=True)
class PostgresScenario:
    """A project in a database of its own, and the model of it. It is never run itself; `copied` makes the one that is.

    `server` holds the database; `reached` is the URL that the contract names, which may lead through a proxy.
    """

    server: postgres.Server
    database: str
    folder: Path
    model: Model

    @property
    def contract(self) -> Path:
        return self.folder / "reslice.yml"

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """Give a connection that reads what is there, past every proxy."""
        with psycopg.connect(self.url, autocommit=True, options="-c lock_timeout=5s") as connection:
            yield cast(Any, Reader(connection))

    def copied(self, folder: Path, *, url: str | None = None) -> PostgresScenario:
        """Return a copy of the whole project in another folder; it takes the place of the copy before.

        A ledger names tables with their database, so that every copy has the name of the first.
        """
        self.drop()
        name = self.database
        how = f"TEMPLATE {name}_made STRATEGY file_copy OWNER {postgres.ROLE}"
        _as_admin(self.server, f"CREATE DATABASE {name} {how}")
        copied = PostgresScenario(self.server, name, folder, copy.deepcopy(self.model))
        (folder / "sql").mkdir(parents=True)
        for file in ("reslice.yml", "sql/daily_orders.sql"):
            (folder / file).write_text((self.folder / file).read_text())
        copied.lead_to(url or copied.url)
        return copied

    def lead_to(self, url: str) -> None:
        """Have the contract name another way to the database."""
        text = re.sub(r"(?m)^connection: .*$", lambda _: f'connection: "{url}"', self.contract.read_text())
        self.contract.write_text(text)

    def keep(self) -> PostgresScenario:
        """Put the database as it is aside, for copies to be made of; return the scenario."""
        wait_until_alone(self)
        _as_admin(self.server, f"ALTER DATABASE {self.database} RENAME TO {self.database}_made")
        return self

    def drop(self) -> None:
        """Let go of the copy."""
        _as_admin(self.server, f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def options(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a run, or of a restore, as the API takes them."""
        if call.restores is not None:
            return {"run": call.restores, "range": f"{call.first}..{call.last}"}
        return {"range": f"{call.first}..{call.last}", "rewrite": call.rewrite, "per_slice": call.per_slice}

    def run(self, call: Call) -> Run:
        """Run, or restore, on a connection of its own, as the command line does."""
        target = reslice.open(self.contract).target(call.target)
        options = self.options(call)
        return target.run(**options) if call.restores is None else target.restore(**options)

    def plan(self, call: Call) -> Run:
        """Return what the call would change."""
        handle, span = reslice.open(self.contract).target(call.target), f"{call.first}..{call.last}"
        return handle.plan(span) if call.restores is None else handle.plan_restore(call.restores, span)


def _as_admin(server: postgres.Server, sql: str) -> None:
    with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as connection:
        connection.execute(sql.encode())


def make(
    server: postgres.Server,
    folder: Path,
    *,
    method: str = project.METHODS[0],
    groups: int = 3,
    is_first: bool = False,
    timeouts: str = "{wait: 20s, lock: 2s}",
) -> PostgresScenario:
    """Make the project: four days that were published, then corrections on three of them, and a row put in twice.

    With `is_first` nothing was ever published, and there is no ledger. `groups` is how many channels a day has.
    """
    database = f"crash_{os.getpid()}_{next(_NUMBERS)}"
    _as_admin(server, f"CREATE DATABASE {database} TEMPLATE template0 STRATEGY file_copy OWNER {postgres.ROLE}")
    scenario = PostgresScenario(server, database, folder, Model(method=method))
    (folder / "sql").mkdir(parents=True)
    (folder / "sql" / "daily_orders.sql").write_text(project.SOURCE)
    contract = project.CONTRACT.replace("METHOD", method).replace("{wait: WAIT, lock: LOCK}", timeouts)
    scenario.contract.write_text(contract)
    scenario.lead_to(scenario.url)
    model = scenario.model
    with scenario.reader() as reader:
        reader.execute(project.ORDERS_TABLE)
        reader.execute(project.TARGET_TABLE.format(key=""))
        orders = [Order(day, f"channel {place}", Decimal(place)) for day in (D1, D2, D4) for place in range(groups)]
        project.load_many(reader, model, dict(enumerate(orders)))
        if not is_first:
            call = Call(project.FREE, D1, D4)
            scenario.run(call)
            assert model.run(call).outcome == "published"
        # Of day 1 an order moves to day 3, which had none; a channel of day 2 goes; a row of day 1 stands twice.
        project.load(reader, model, {0: Order(D3, "channel 0", Decimal("7.50"))})
        del model.orders[groups]
        project.cancel_order(reader, groups)
        version = None if is_first or method != "append_version" else "r-0001"
        repeated = Row(D1, "channel 1", 1, Decimal("1.00"), False, version)
        project.insert_rows(reader, [repeated])
        model.rows.append(repeated)
        assert differences(model, reader) == []
    return scenario


@dataclass
class Shelf:
    """The scenarios of a server, each made once: what a call is done to, by a method."""

    server: postgres.Server
    folder: Path
    made: dict[str, PostgresScenario] = field(default_factory=dict)

    def scenario(self, method: str, name: str, **how: Any) -> PostgresScenario:
        """Return the project that a call is done to."""
        is_restore = name == "restore"
        key = f"{method} {'restore' if is_restore else ''} {how}"
        if key not in self.made:
            folder = self.folder / f"{len(self.made)}"
            scenario = make(self.server, folder, method=method, is_first=is_restore, **how)
            if is_restore:
                call = Call(project.FREE, D1, D4)
                scenario.run(call)
                assert scenario.model.run(call).outcome == "published"
            self.made[key] = scenario.keep()
        return self.made[key]

    def close(self) -> None:
        """Let go of every database."""
        for scenario in self.made.values():
            scenario.drop()
            _as_admin(self.server, f"DROP DATABASE {scenario.database}_made")


def watched(patch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that reslice executes from now on, as they come."""
    execute, seen = PostgresSession.execute, list[str]()

    def noted(session: PostgresSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        seen.append(statement)
        return execute(session, statement, parameters)

    patch.setattr(PostgresSession, "execute", noted)
    return seen


def statements_of(scenario: PostgresScenario, call: Call, folder: Path) -> list[str]:
    """Return the statements of a whole run, done on a copy."""
    undisturbed = scenario.copied(folder / "undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        seen = watched(patch)
        undisturbed.run(call)
    return [*seen]


def sampled(statements: Sequence[str], every: int, offset: int) -> Iterator[int]:
    """Yield the numbers, from 1, of every n-th statement; of each commit that publishes, and of what follows it."""
    holds = after = False
    for number, text in enumerate(statements, start=1):
        holds = holds or text.startswith("LOCK TABLE")
        is_publishing = holds and text == "COMMIT"
        if is_publishing or after or number % every == offset % every:
            yield number
        holds, after = holds and not is_publishing, is_publishing


def wait_until_alone(scenario: PostgresScenario, *, seconds: float = _SECONDS) -> None:
    """Wait until no server process works for anybody in the database.

    It is asked from another database: a limit on the connections of this one may let nobody in yet.
    """
    until = time.monotonic() + seconds
    theirs = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
    with psycopg.connect(scenario.server.url(user=postgres.ADMIN), autocommit=True) as connection:
        while row := connection.execute(theirs, [scenario.database]).fetchone():
            if not row[0]:
                return
            assert time.monotonic() < until, f"{row[0]} sessions do not end"
            time.sleep(0.02)


def locks_of(reader: Any) -> list[Any]:
    """Return every lock that another session holds in the database."""
    found: list[Any] = reader.execute(
        "SELECT locktype, mode, relation::regclass::text FROM pg_locks WHERE pid <> pg_backend_pid()"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend')"
    ).fetchall()
    return found


def sane_after(scenario: PostgresScenario, call: Call, *, is_crashed: bool = False) -> State | None:
    """Hold a project whose run was cut short to all that is promised; return what the ledger said of that run.

    At once readers read, and what they read is old or new. When the server has noticed that the client is gone, no lock
    and no temporary table is left; the table is old or new, or some of its slices are, each whole; a plan changes
    nothing; the same command ends right, says that it found the run, and leaves nothing behind. Temporary tables of a
    server that crashed (`is_crashed`) are left in its catalog until their place is used again.
    """
    with scenario.reader() as reader:
        reader.execute("SET statement_timeout = '2s'")
        project.rows_of(reader)
    wait_until_alone(scenario)
    with scenario.reader() as reader:
        assert locks_of(reader) == []
        if is_crashed:
            forget_temporary_tables(scenario)
        left = left_by_crash(scenario.model, call, reader)
        plan = scenario.plan(call)
        assert plan.diff is not None
        assert {each.label for each in plan.diff.differing} == open_days(left, call)
        assert differences(left, reader) == [], "a plan wrote"
        state = left.runs[-1].state if len(left.runs) > len(scenario.model.runs) else None
    again(scenario, left, call)
    return state


def forget_temporary_tables(scenario: PostgresScenario) -> None:
    """Do what the server does when the place of a temporary schema is used again."""
    with psycopg.connect(scenario.server.url(scenario.database, postgres.ADMIN), autocommit=True) as connection:
        names = "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables"
        for (name,) in connection.execute(f"{names} WHERE schemaname LIKE 'pg\\_temp%'".encode()).fetchall():
            connection.execute(f"DROP TABLE {name}".encode())


def again(scenario: PostgresScenario, left: Model, call: Call) -> Run:
    """Run the same command on what is left, and hold all of the database to the model."""
    expected = left.run(call)
    done = scenario.run(call)
    assert (done.outcome.value, abandoned(done)) == (expected.outcome, expected.abandoned)
    wait_until_alone(scenario)
    with scenario.reader() as reader:
        assert differences(left, reader) == []
        assert locks_of(reader) == []
    return done


def open_days(model: Model, call: Call) -> set[str]:
    """Return the days that a run would write, by asking a copy of the model."""
    imagined = copy.deepcopy(model)
    imagined.run(Call(call.target, call.first, call.last, restores=call.restores))
    diff = imagined.runs[-1].diff
    assert diff is not None
    return {str(day) for day in diff.differing}
