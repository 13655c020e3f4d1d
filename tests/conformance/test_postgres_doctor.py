"""doctor on PostgreSQL: what it says that DuckDB does not have, and what a server is seen to do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

import reslice
from reslice.contract import Contract, GrainColumn, SliceColumn, SqlFile, Unit
from reslice.doctor import Health
from reslice.engines.postgres import bench, locks, observations, probe
from reslice.engines.postgres.engine import Postgres
from reslice.engines.probing import Probe
from reslice.tables import Column, Family
from reslice.values import Outcome
from tests import postgres
from tests.conformance.databases import Database, only
from tests.conformance.orders import COLUMNS, D1, D2, SOURCE, Orders
from tests.conformance.test_doctor import ALL, HOURS, check, doctor, everything, troubles
from tests.unit.postgres_servers import Server, pgbouncer, pgbouncer_program

POSTGRES16_SLOW = True

pytestmark = only("postgresql", "what is looked at here only a PostgreSQL server has")


def admin(orders: Orders, statement: str) -> None:
    """Run one statement in the database of a test as a superuser."""
    server = postgres.shared(18 if "/18" in orders.database.url else 16)
    with psycopg.connect(server.url(orders.database.catalog, postgres.ADMIN), autocommit=True) as connection:
        connection.execute(statement.encode())


def as_role(orders: Orders, role: str) -> None:
    """Let the contract of a test connect as another role."""
    contract = json.loads(orders.file.read_text())
    contract["connection"] = orders.database.url.replace(f"user={postgres.ROLE}", f"user={role}")
    orders.file.write_text(json.dumps(contract))


@pytest.fixture
def guest(orders: Orders) -> Any:
    """A role without any rights of its own, as which doctor is run."""
    role = f"guest_{orders.database.catalog}"
    admin(orders, f"CREATE ROLE {role} LOGIN")
    as_role(orders, role)
    yield role
    orders.database.let_go()
    admin(orders, f"DROP OWNED BY {role}")
    admin(orders, f"DROP ROLE {role}")


# What it costs to find a slice.


@pytest.mark.parametrize(
    ("type_text", "unit"),
    [("date", "day"), ("timestamp", "day"), ("timestamptz", "hour"), ("text", "day"), ("integer", "day")],
)
def test_the_index_that_is_advised_is_used_by_a_run(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, type_text: str, unit: str
) -> None:
    """The statements of a run that read the table, or take rows from it, go through the index."""
    orders.make_target(COLUMNS.replace("order_date date", f"order_date {type_text}"))
    day = "to_char(order_date, 'YYYYMMDD')" if type_text == "integer" else "order_date"
    orders.source(
        f"SELECT CAST({day} AS {type_text}) AS order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_fact"
        f" WHERE CAST({day} AS {type_text}) BETWEEN :start AND :end GROUP BY 1, 2"
    )
    orders.declare(slice={"column": "order_date", "unit": unit})
    said = check(orders, "slice_index")
    assert said.state is Health.ADVICE and "none begins with order_date" in said.found
    collation = ' COLLATE "C"' if type_text == "text" else ""
    how = 'CREATE INDEX CONCURRENTLY "daily_orders_slice" ON "public"."daily_orders"'
    assert said.next == f'{how} ("order_date"{collation})'
    orders.database.execute(said.next)
    said = check(orders, "slice_index")
    assert (said.state, said.found) == (Health.OK, "daily_orders_slice finds the rows of a slice")

    read: list[str] = []
    orders.database.follow_statements(monkeypatch, lambda text: read.append(text))
    orders.run(f"{D2}T00" if unit == "hour" else D2)
    monkeypatch.undo()
    tables = [text for text in read if text.startswith("CREATE TEMPORARY TABLE") and '"daily_orders"' in text]
    scans = [text for text in tables if not re.search(r"\$[a-z]", text)]
    assert scans, "the base is read"
    with orders.database.session() as session:
        session.execute("SET enable_seqscan = off")
        for text in scans:
            plan = "\n".join(row[0] for row in session.execute(f"EXPLAIN {text}").fetchall())
            assert "daily_orders_slice" in plan, plan


def test_an_index_that_a_run_cannot_use_is_told(orders: Orders) -> None:
    orders.make_target(COLUMNS.replace("order_date date", 'order_date text COLLATE "POSIX"'))
    orders.database.execute("CREATE INDEX by_language ON daily_orders (order_date)")
    said = check(orders, "slice_index")
    assert said.state is Health.ADVICE and said.found.startswith("by_language is not in the order of bytes")
    orders.database.execute(said.next)
    assert check(orders, "slice_index").state is Health.OK


@pytest.mark.parametrize(
    ("index", "state"),
    [
        ("CREATE INDEX i ON daily_orders (channel, order_date)", "advice"),
        ("CREATE INDEX i ON daily_orders (order_date) WHERE channel = 'web'", "advice"),
        ("CREATE INDEX i ON daily_orders USING hash (order_date)", "advice"),
        ("CREATE INDEX i ON daily_orders USING brin (order_date)", "ok"),
        ("CREATE INDEX i ON daily_orders (order_date, channel)", "ok"),
    ],
)
def test_only_an_index_that_begins_with_the_slice_counts(orders: Orders, index: str, state: str) -> None:
    orders.database.execute(index)
    assert check(orders, "slice_index").state == state


def test_one_index_is_enough_where_the_key_begins_with_the_slice(orders: Orders) -> None:
    orders.declare(grain=["channel", "order_date"])
    advice = check(orders, "unique_key")
    assert advice.next.endswith('("order_date", "channel")')
    orders.database.execute(advice.next)
    assert check(orders, "slice_index").state is Health.OK and check(orders, "unique_key").state is Health.OK


def test_a_partitioned_table_is_read_by_its_partitions(orders: Orders) -> None:
    orders.database.execute("DROP TABLE daily_orders")
    orders.database.execute(f"CREATE TABLE daily_orders ({COLUMNS}) PARTITION BY RANGE (order_date)")
    orders.database.execute(
        "CREATE TABLE march PARTITION OF daily_orders FOR VALUES FROM ('2024-03-01') TO ('2024-04-01')"
    )
    assert "partitioned by order_date" in check(orders, "slice_index").found
    advice = check(orders, "unique_key").next
    assert advice.startswith('CREATE UNIQUE INDEX "daily_orders_grain"'), "there is no CONCURRENTLY for these"
    orders.database.execute(advice)
    assert check(orders, "unique_key").state is Health.OK
    orders.declare(method="merge")
    (wrong,) = (each for each in doctor(orders).checks if each.state is Health.WRONG)
    assert wrong.name == "contract" and "is partitioned" in wrong.found and wrong.next == "method: replace_slice"


def test_an_index_whose_building_did_not_end_is_told(orders: Orders) -> None:
    orders.database.insert("daily_orders", [(D1, "web", 1, 1)])
    statement = check(orders, "unique_key").next
    with pytest.raises(psycopg.errors.UniqueViolation):
        orders.database.execute(statement)
    said = check(orders, "invalid_indexes")
    assert said.state is Health.WARNING and said.found.startswith(
        "daily_orders_grain: begun CONCURRENTLY and not ended"
    )
    orders.run(ALL)
    orders.database.execute(said.next)
    orders.database.execute(statement)
    assert "invalid_indexes" not in [each.name for each in doctor(orders).checks]
    assert check(orders, "unique_key").state is Health.OK


@pytest.mark.parametrize("table", ["t" * 63, "é" * 31, 'a "b" c'])
def test_the_statements_fit_any_name(orders: Orders, table: str) -> None:
    quoted = '"' + table.replace('"', '""') + '"'
    orders.database.execute(f"ALTER TABLE daily_orders RENAME TO {quoted}")
    orders.declare(table=quoted)
    for name in ("unique_key", "slice_index"):
        said = check(orders, name)
        assert said.state is Health.ADVICE
        orders.database.execute(said.next)
        assert check(orders, name).state is Health.OK
        orders.database.execute(f"DROP INDEX {said.next.split('CONCURRENTLY ')[1].split(' ON ')[0]}")


def test_the_key_holds_rows_apart_whose_key_has_a_null(orders: Orders) -> None:
    orders.make_target(COLUMNS.replace("order_date date", "order_date date NOT NULL"))
    orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    said = check(orders, "unique_key")
    assert said.next.endswith('("order_date", "channel") NULLS NOT DISTINCT')
    assert said.found.endswith("refuses a repeated row of any writer"), "none is left out"
    orders.database.execute(said.next)
    assert check(orders, "unique_key").found == "on the grain (order_date, channel)"
    orders.database.insert("daily_orders", [(D1, None, 1, 1)])
    with pytest.raises(psycopg.errors.UniqueViolation):
        orders.database.insert("daily_orders", [(D1, None, 2, 2)])
    orders.order(20, D1, None, 500)
    assert orders.run(ALL).outcome is Outcome.PUBLISHED and check(orders, "repeated_keys").state is Health.OK


def test_a_key_that_takes_nulls_for_different_is_said_not_to_hold_them_apart(orders: Orders) -> None:
    orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    orders.database.execute("CREATE UNIQUE INDEX ON daily_orders (order_date, channel)")
    assert "rows whose channel is NULL are not held apart by it" in check(orders, "unique_key").found


# What hangs on the table.


def test_a_table_that_a_crash_empties_is_told(orders: Orders) -> None:
    orders.database.execute("ALTER TABLE daily_orders SET UNLOGGED")
    said = check(orders, "crash")
    assert said.state is Health.WARNING and "a crash of the server empties it" in said.found
    orders.database.execute(said.next)
    assert check(orders, "crash").state is Health.OK


def test_triggers_that_fire_are_named(orders: Orders) -> None:
    orders.database.execute("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$")
    orders.database.execute("CREATE TRIGGER audit AFTER INSERT ON daily_orders FOR EACH ROW EXECUTE FUNCTION note()")
    said = check(orders, "triggers")
    assert said.state is Health.ADVICE and said.found.startswith("audit fires for rows that are replaced")
    orders.database.execute("ALTER TABLE daily_orders DISABLE TRIGGER audit")
    assert check(orders, "triggers").state is Health.OK


def test_views_and_materialised_views_that_read_the_table_are_named(orders: Orders) -> None:
    orders.database.execute("CREATE VIEW middle AS SELECT channel FROM daily_orders")
    orders.database.execute('CREATE MATERIALIZED VIEW "By Channel" AS SELECT channel, count(*) FROM middle GROUP BY 1')
    orders.database.execute("CREATE MATERIALIZED VIEW direct AS SELECT count(*) FROM daily_orders")
    orders.database.execute("CREATE VIEW daily_orders_elsewhere AS SELECT 1 AS n")
    assert check(orders, "views").found == "direct, middle name the table"
    said = check(orders, "materialised_views")
    assert said.state is Health.ADVICE
    assert said.found == "By Channel, direct hold what was read last: a run does not refresh it"
    orders.correct(4, 1300)
    orders.run(ALL)
    orders.database.execute(said.next)
    assert said.next == 'REFRESH MATERIALIZED VIEW public."By Channel"'


# Rights, and the session.


def test_every_right_that_a_run_needs_is_named_until_it_is_there(orders: Orders, guest: str) -> None:
    wrong = [each for each in doctor(orders).checks if each.state is Health.WRONG]
    assert [each.name for each in wrong] == ["rights", "rights"]
    assert f"the role {guest} lacks SELECT, INSERT, UPDATE, DELETE on public.daily_orders" in wrong[0].found
    assert "may not make one" in wrong[1].found
    assert "repeated_keys" not in [each.name for each in doctor(orders).checks], "rows cannot be looked at"
    orders.database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON daily_orders TO {guest}")
    orders.database.execute(f"GRANT CREATE ON DATABASE {orders.database.catalog} TO {guest}")
    (wrong_one,) = (each for each in doctor(orders).checks if each.state is Health.WRONG)
    assert wrong_one.name == "source" and "permission denied for table orders_fact" in wrong_one.found
    orders.database.execute(f"GRANT SELECT ON orders_fact TO {guest}")
    orders.database.execute(f"REVOKE TEMPORARY ON DATABASE {orders.database.catalog} FROM PUBLIC")
    (wrong_one,) = (each for each in doctor(orders).checks if each.state is Health.WRONG)
    assert wrong_one.name == "rights" and "may make no temporary tables" in wrong_one.found
    orders.database.execute(f"GRANT TEMPORARY ON DATABASE {orders.database.catalog} TO {guest}")
    assert doctor(orders).is_well and troubles(orders) == []
    assert orders.run(ALL).outcome is Outcome.UNCHANGED


def test_a_ledger_that_this_role_may_not_read_is_not_taken_to_be_absent(orders: Orders, guest: str) -> None:
    as_role(orders, postgres.ROLE)
    orders.run(ALL)
    as_role(orders, guest)
    orders.database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON daily_orders TO {guest}")
    orders.database.execute(f"GRANT SELECT ON orders_fact TO {guest}")
    said = check(orders, "ledger")
    assert said.state is Health.WRONG and "the schema reslice holds runs, " in said.found
    assert "which this role may not read" in said.found and "init --ledger --sql" in said.next


def test_row_policies_that_hide_rows_are_wrong(orders: Orders, guest: str) -> None:
    orders.database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON daily_orders TO {guest}")
    orders.database.execute("ALTER TABLE daily_orders ENABLE ROW LEVEL SECURITY")
    orders.database.execute("CREATE POLICY web ON daily_orders USING (channel = 'web')")
    wrong = [each for each in doctor(orders).checks if each.state is Health.WRONG]
    assert wrong[0].name == "contract" and "row policies of public.daily_orders hide rows" in wrong[0].found


def test_a_role_that_only_reads_is_wrong(orders: Orders) -> None:
    name = orders.database.catalog
    orders.database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    before = everything(orders.database)
    found = doctor(orders, probe=True)
    wrong = {each.name: each for each in found.checks if each.state is Health.WRONG}
    assert set(wrong) == {"writable", "rights"}
    assert "default_transaction_read_only is on" in wrong["writable"].found
    assert everything(orders.database) == before
    (place,) = (each for each in found.checks if each.name.startswith("probe_"))
    assert place.state is Health.OK and "nothing was tried: default_transaction_read_only is on" in place.found


@pytest.mark.parametrize(
    ("limit", "value", "found"),
    [
        ("statement_timeout", "30s", "statement_timeout of 30s ends a wait of 600s for the turn"),
        ("statement_timeout", "2h", ""),
        ("idle_in_transaction_session_timeout", "10ms", ""),
    ],
)
def test_limits_that_end_a_run_are_told(orders: Orders, limit: str, value: str, found: str) -> None:
    """A run sets for itself how long it may be idle in a transaction."""
    orders.database.execute(f"ALTER DATABASE {orders.database.catalog} SET {limit} = '{value}'")
    said = check(orders, "timeouts")
    assert (said.state, said.found if found else "") == (Health.WARNING if found else Health.OK, found)
    assert said.next == (f'ALTER ROLE "{postgres.ROLE}" SET {limit} = 0' if found else "")
    assert orders.run(ALL).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(("encoding", "state"), [("SQL_ASCII", "warning"), ("LATIN1", "ok")])
def test_a_database_that_does_not_hold_utf8_is_told(orders: Orders, encoding: str, state: str) -> None:
    server, name = postgres.shared(18 if "/18" in orders.database.url else 16), f"{orders.database.catalog}_e"
    with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C' OWNER {postgres.ROLE}".encode()
        )
    try:
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            for table in ("daily_orders", "orders_fact"):
                connection.execute(f"CREATE TABLE {table} ({COLUMNS})".encode())
        contract = json.loads(orders.file.read_text())
        contract["connection"] = server.url(name)
        orders.source("SELECT * FROM orders_fact WHERE order_date BETWEEN :start AND :end")
        orders.file.write_text(json.dumps(contract))
        found = doctor(orders, probe=True)
        assert found.is_well
        (said,) = (each for each in found.checks if each.name == "encoding")
        assert said.state == state and said.found.startswith(encoding)
    finally:
        with psycopg.connect(server.url(user=postgres.ADMIN), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.parametrize(("mode", "state"), [("transaction", Health.WRONG), ("session", Health.OK)])
def test_a_proxy_that_gives_single_transactions_is_wrong(
    orders: Orders, tmp_path: Path, mode: str, state: Health
) -> None:
    program, server = pgbouncer_program(), postgres.shared(18 if "/18" in orders.database.url else 16)
    place = f"host={server.folder} port={server.port} dbname={orders.database.catalog} user={postgres.ROLE}"
    more = f"[databases]\nmine = {place}"
    with pgbouncer(program, Server(server.folder, server.port), tmp_path, mode, 6, more) as url:
        contract = json.loads(orders.file.read_text())
        contract["connection"] = url.replace("/shop", "/mine")
        orders.file.write_text(json.dumps(contract))
        found = doctor(orders, probe=True)
    (said,) = (each for each in found.checks if each.name == "pooler")
    assert said.state is state and ("a proxy" in said.found) == (state is Health.WRONG)
    tried = [each.name for each in found.checks if each.name.startswith("probe_")]
    assert tried == ["probe_place"] if state is Health.WRONG else len(tried) > 15


# What the source is made of.


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("(order_id / (order_id - order_id))", ""),
        ("(SELECT pg_sleep(100) IS NULL)::int", ""),
        ("(WITH gone AS (DELETE FROM daily_orders RETURNING 1) SELECT count(*) FROM gone)", "WITH clause containing"),
    ],
)
def test_no_source_is_evaluated_and_none_writes(orders: Orders, body: str, found: str) -> None:
    orders.source(
        f"SELECT order_date, channel, 1 AS order_count, {body} AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end"
    )
    began = time.monotonic()
    said = check(orders, "source")
    assert time.monotonic() - began < 20 and len(orders.rows()) == 6
    assert said.state is (Health.WRONG if found else Health.OK) and found in said.found, said


def test_the_types_of_a_source_are_told_as_the_database_has_them(orders: Orders) -> None:
    orders.database.execute("CREATE DOMAIN cents AS numeric(12, 2)")
    orders.source(SOURCE.replace("sum(amount_cents)", "CAST(sum(amount_cents) AS cents)"))
    assert check(orders, "source").state is Health.OK
    orders.source(SOURCE.replace("sum(amount_cents)", "CAST('{}' AS jsonb)"))
    assert "amount_cents is jsonb in the source" in check(orders, "source").found


def test_a_function_of_the_name_of_one_that_is_used_changes_nothing(orders: Orders) -> None:
    orders.database.execute(
        "CREATE FUNCTION concat_ws(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'same' $$"
    )
    assert troubles(orders) == [] and orders.run(ALL).outcome is Outcome.UNCHANGED


def test_a_function_of_the_server_that_is_another_one_is_wrong(orders: Orders) -> None:
    body = "LANGUAGE sql IMMUTABLE AS $$ SELECT repeat('f', 32) $$"
    admin(orders, f"CREATE OR REPLACE FUNCTION pg_catalog.md5(text) RETURNS text {body}")
    said = next(each for each in doctor(orders).checks if each.name == "functions")
    assert said.state is Health.WRONG and said.found.startswith("a function replaces a function")
    assert said.next == "drop the function, or put the database's own back"


@pytest.mark.parametrize(
    ("zone", "hour", "state"),
    [
        ("Europe/Amsterdam", "date_trunc('hour', ordered_at)", "ok"),
        ("Europe/Amsterdam", "date_trunc('hour', ordered_at, 'Europe/Amsterdam')", "ok"),
        (
            "Europe/Amsterdam",
            "date_trunc('hour', ordered_at AT TIME ZONE 'Europe/Amsterdam') AT TIME ZONE 'Europe/Amsterdam'",
            "warning",
        ),
        ("Europe/Amsterdam", "date_trunc('hour', ordered_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'", "ok"),
        ("UTC", "date_trunc('hour', ordered_at)", ""),
    ],
)
def test_hours_that_a_clock_shows_twice_are_thought_of(orders: Orders, zone: str, hour: str, state: str) -> None:
    orders.database.execute("ALTER TABLE orders_fact ADD COLUMN ordered_at TIMESTAMPTZ")
    orders.make_target("order_hour timestamptz, channel varchar, order_count bigint, amount_cents bigint")
    orders.source(
        HOURS.format(hour) + " WHERE ordered_at >= :start_instant AND ordered_at < :end_instant GROUP BY 1, 2"
    )
    orders.declare(grain=["order_hour", "channel"], slice={"column": "order_hour", "unit": "hour", "timezone": zone})
    found = {each.name: each for each in doctor(orders).checks}
    assert str(found["clock_changes"].state if "clock_changes" in found else "") == state
    if not state:
        return
    both = "VALUES (TIMESTAMPTZ '2026-10-25 00:30:00+00'), (TIMESTAMPTZ '2026-10-25 01:30:00+00')"
    with orders.database.session() as session:  # what is said, asked of the database itself
        session.execute("SET TimeZone = 'Europe/Amsterdam'")
        cut = session.execute(
            f"SELECT CAST(timezone('UTC', {hour}) AS text) FROM ({both}) AS v (ordered_at)"
        ).fetchall()
    apart = [("2026-10-25 00:00:00",), ("2026-10-25 01:00:00",)]
    assert cut == ([("2026-10-25 01:00:00",)] * 2 if state == "warning" else apart)


# What PostgreSQL really does.

OBSERVED = {
    "rollback": "the slice is back, row for row",
    "transactional_ddl": "all of it is undone",
    "closed_range": "it holds its first and its last value, not the one before nor the one after",
    "many_ranges": "those slices, and no other",
    "commit_of_aborted": "raises nothing, answers ROLLBACK, and keeps nothing",
    "same_key": "goes through, also twice",
    "temporary_tables": "its rows are there",
    "fingerprints": "those that its definition gives",
    "turn": "the second waits, and has it when the first rolls back",
    "session_lock": "held while the session is open, free when it is closed",
    "clock": "agrees with this machine's to the minute",
    "old_or_new": "the old rows to the end, then the new ones",
    "table_lock": "the reader reads on; the writer waits until it ends",
    "after_lock": "the statement after the lock sees the row",
    "snapshot_before_lock": "it misses the row, which is there",
    "lock_timeout": "an error within its time, and nothing is locked",
    "same_new_key": "the second waits, and then ends with UniqueViolation",
    "transaction_states": "in progress, committed, aborted",
    "empty_slice": "both commit, and the slice holds 4 rows for 2",
}
"""As it was measured by hand on PostgreSQL 16.14 and 18.4."""

TIMED = ("key_join", "publish_cost")
"""What may be one or the other, or a number of milliseconds."""


def probed(database: Database, unit: Unit, zone: str, column: Column) -> dict[str, tuple[str, bool]]:
    source = SqlFile("s.sql", Path("s.sql"), "SELECT 1")
    contract = Contract("t", "t", source, (GrainColumn("day"),), SliceColumn("day", unit, zone), ())
    engine = opened(database)
    try:
        return {each.name: (each.found, each.holds) for each in probe.probed(engine, contract, column, None)}
    finally:
        engine.close()


def opened(database: Database) -> Postgres:
    """Return an engine of its own on the database of a test."""

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(database.url, autocommit=True)

    return Postgres(connect(), shown="here", reopen=connect)


def test_the_probe_observes_what_was_measured_by_hand(engine: Database) -> None:
    before = everything(engine)
    found = probed(engine, Unit.DAY, "UTC", Column("day", "date", Family.DATE))
    timed = [found.pop(name) for name in TIMED]
    assert found == {name: (words, True) for name, words in OBSERVED.items()}
    assert all(holds for _, holds in timed) and timed[0][0].startswith("joined by ")
    assert everything(engine) == before


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("type_text", "family"),
    [
        ("date", Family.DATE),
        ("timestamp without time zone", Family.TIMESTAMP),
        ("timestamp(0) without time zone", Family.TIMESTAMP),
        ("timestamp(3) with time zone", Family.TIMESTAMPTZ),
        ("timestamp with time zone", Family.TIMESTAMPTZ),
        ("text", Family.TEXT),
        ("character(10)", Family.TEXT),
        ("integer", Family.INTEGER),
    ],
)
def test_ranges_are_closed_in_every_type_of_slice_column(
    engine: Database, monkeypatch: pytest.MonkeyPatch, zone: str, type_text: str, family: Family
) -> None:
    ranged = tuple(each for each in probe.ALONE if each.name in ("closed_range", "many_ranges"))
    monkeypatch.setattr(probe, "ALONE", ranged)
    monkeypatch.setattr(probe, "TOGETHER", ())
    for unit in Unit:
        if unit is Unit.HOUR and family is not Family.TIMESTAMPTZ and (family is not Family.TIMESTAMP or zone != "UTC"):
            continue  # such hours are refused
        found = probed(engine, unit, zone, Column("day", type_text, family))
        assert found == {each.name: (OBSERVED[each.name], True) for each in ranged}, unit


@pytest.mark.parametrize(
    ("place", "name", "instead", "probe_name", "found"),
    [
        (observations, "_lock", lambda at: "SELECT 1", "table_lock", "the reader reads, the writer does not wait"),
        (observations, "BEGIN", observations.SNAPSHOT, "same_key", "goes through, also twice"),
        (locks, "key", lambda what, name: "(random() * 1e15)::bigint", "turn", "the second does not wait"),
    ],
)
def test_a_server_that_does_otherwise_is_seen(
    engine: Database, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, instead: Any, probe_name: str, found: str
) -> None:
    monkeypatch.setattr(place, name, instead)
    everything_tried = (*probe.ALONE, *probe.TOGETHER)
    monkeypatch.setattr(probe, "ALONE", tuple(each for each in everything_tried if each.name == probe_name))
    monkeypatch.setattr(probe, "TOGETHER", ())
    seen = probed(engine, Unit.DAY, "UTC", Column("day", "date", Family.DATE))
    assert seen == {probe_name: (found, found == OBSERVED[probe_name])}


def test_an_error_of_the_server_is_an_observation_and_nothing_stays(
    engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(at: bench.Bench) -> str:
        at.fill()
        at.ask("BEGIN")
        at.ask("SELECT 1 / 0")
        return "nothing"

    def dies(at: bench.Bench) -> str:
        at.fill()
        with pytest.raises(psycopg.Error):
            at.ask("SELECT pg_terminate_backend(pg_backend_pid())")
        return "gone"

    before = everything(engine)
    monkeypatch.setattr(probe, "ALONE", (Probe("breaks", "divides", "nothing", breaks),))
    monkeypatch.setattr(probe, "TOGETHER", (Probe("dies", "is cut off", "nothing", dies),))
    found = probed(engine, Unit.DAY, "UTC", Column("day", "date", Family.DATE))
    assert found == {"breaks": ("an error: division by zero", False), "dies": ("gone", True)}
    assert everything(engine) == before


def test_a_role_that_may_make_no_schema_is_told_what_was_not_tried(orders: Orders, guest: str) -> None:
    orders.database.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON daily_orders TO {guest}")
    orders.database.execute(f"GRANT SELECT ON orders_fact TO {guest}")
    found = [each for each in doctor(orders, probe=True).checks if each.name.startswith("probe_")]
    assert {each.state for each in found} == {Health.OK}
    assert found[0].name == "probe_place" and f"the role {guest} may make no schema" in found[0].found
    assert [each.name for each in found[1:]] == [f"probe_{each.name}" for each in probe.ALONE]
    assert {each.name: each.found.rpartition(": ")[2] for each in found[1:] if each.name != "probe_key_join"} == {
        f"probe_{name}": words for name, words in OBSERVED.items() if name in {each.name for each in probe.ALONE}
    }


KILLED = """
import sys
from reslice import cli
from reslice.engines.postgres import probe
from reslice.engines.probing import Probe

def slow(bench):
    bench.fill()
    print(bench.schema, flush=True)
    sys.stdin.read()
    return "nothing"

probe.ALONE = (Probe("slow", "waits", "nothing", slow),)
sys.exit(cli.main(["--config", sys.argv[1], "doctor", "--probe"]))
"""


def slow_probe(orders: Orders) -> tuple[subprocess.Popen[bytes], str]:
    """Start a probe that waits with its schema in place; return its process and the schema."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(orders.file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(reslice.__file__).parents[1])},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip()


def schemas(orders: Orders) -> list[str]:
    return [
        name for (name,) in orders.database.rows("SELECT nspname FROM pg_namespace WHERE nspname ~ '^reslice_probe'")
    ]


def test_what_a_killed_probe_left_is_dropped_by_the_next_one(orders: Orders) -> None:
    """A probe that still runs keeps its own, and so does a schema that somebody else has made."""
    killed, left = slow_probe(orders)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    running, kept = slow_probe(orders)
    orders.database.execute("CREATE SCHEMA reslice_probe_of_mine")
    assert sorted(schemas(orders)) == sorted({left, kept, "reslice_probe_of_mine"} - {left})
    assert doctor(orders, probe=True).is_well
    assert sorted(schemas(orders)) == sorted([kept, "reslice_probe_of_mine"])
    running.communicate(b"")
    assert running.returncode == 0 and schemas(orders) == ["reslice_probe_of_mine"]


def test_a_probe_that_is_stopped_says_so_and_leaves_nothing(orders: Orders) -> None:
    process, schema = slow_probe(orders)
    assert schema in schemas(orders)
    process.send_signal(signal.SIGINT)
    process.communicate(b"")
    assert process.returncode == 130 and schemas(orders) == []
