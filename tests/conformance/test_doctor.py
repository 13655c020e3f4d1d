"""doctor: what is wrong is named with its numbers, what is right is not, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from reslice import cli, ledger
from reslice.contract import Contract, GrainColumn, SliceColumn, SqlFile, Unit
from reslice.doctor import Diagnosis, Finding, Health
from reslice.engines import sql
from reslice.engines.duckdb import probe
from reslice.engines.probing import Probe
from reslice.errors import PartlyPublished, Retryable
from reslice.tables import Column, Family
from reslice.values import Outcome
from tests.conformance.databases import Database, file_of, only
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, SOURCE, VERSION, Orders, Target

ALL = f"{D1}..{D3}"
EVERY_CHECK = [
    "contract", "rights", "other_targets", "source", "controls", "unique_key", "foreign_keys", "views",
    "repeated_keys", "null_keys", "slice_values", "ledger", "abandoned_runs", "part_way_runs", "kept_rows",
    "other_writers",
]  # fmt: skip
OF_POSTGRES = ["slice_index", "crash", "triggers", "materialised_views", "timeouts"]
"""The checks of a table that only PostgreSQL has."""
OF_A_SERVER = ["writable", "encoding", "pooler", "sandboxes"]
KEY_VIOLATIONS = (duckdb.ConstraintException, psycopg.errors.UniqueViolation)
FILES = "only DuckDB has its tables in one file, which one process holds"
MACROS = "a function of PostgreSQL is replaced by another one of its name, in a test of its own"


def doctor(target: Target, **options: Any) -> Diagnosis:
    return target.database.project(target.file).doctor(target.name, **options)


def check(target: Target, name: str) -> Finding:
    """Return the one check of this name."""
    (found,) = (each for each in doctor(target).checks if each.name == name)
    return found


def named(database: Database, words: str) -> str:
    """Return words in which `TYPE x` stands for what the database calls a type."""
    for type_text in ("double precision", "varchar", "bigint"):
        words = words.replace(f"TYPE {type_text}", database.type_name(type_text))
    return words


def troubles(target: Target) -> list[tuple[str, str]]:
    """Return the names and states of all that is not ok, but for key and index, which no table of this suite has."""
    found = [(each.name, str(each.state)) for each in doctor(target).checks if each.state is not Health.OK]
    return [each for each in found if each not in (("unique_key", "advice"), ("slice_index", "advice"))]


def diagnosis_version(database: Database) -> str:
    """Return the version of the database, as it says it itself."""
    if database.name == "duckdb":
        return duckdb.__version__
    version: str = database.rows("SELECT split_part(current_setting('server_version'), ' ', 1)")[0][0]
    return version


def everything(database: Database) -> dict[str, Any]:
    """Return all that there is in a database, and what its files are."""
    if database.name == "duckdb":
        database.let_go()
        return files_of(database.folder)
    names = "SELECT CAST(oid AS text), relname FROM pg_class WHERE relpersistence <> 't' ORDER BY 1"
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_t%' ORDER BY 1"
    return {"tables": database.rows(names), "schemas": database.rows(schemas)}


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


# What is right.


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_a_target_that_was_published_is_well(engine: Database, method: str) -> None:
    orders = Orders(engine, method=method)
    orders.run(ALL)
    orders.correct(4, 1300)
    orders.run(D2)
    found = doctor(orders)
    assert troubles(orders) == [] and found.is_well
    checks = [*EVERY_CHECK]
    if method == "append_version":
        checks[checks.index("repeated_keys") : 0] = ["current_view", "old_versions"]
    server: list[str] = []
    version = diagnosis_version(engine)
    if engine.name == "postgresql":
        server = OF_A_SERVER
        place = checks.index("views") + 1
        checks[place:place] = OF_POSTGRES
        assert f"database {engine.catalog}, postgresql {version}" in found.checks[0].found
    assert [each.name for each in found.checks] == ["connection", "functions", *server, *checks]
    assert (found.engine, found.version) == (engine.name, version)
    assert version in found.checks[0].found
    first = 2 + len(server)
    assert found.checks[first].target == "daily_orders" and found.checks[first - 1].target is None


def test_a_target_without_a_ledger_is_well_and_nothing_is_made(orders: Orders) -> None:
    before = everything(orders.database)
    found = doctor(orders, probe=True)
    assert found.is_well
    assert check(orders, "ledger").found == "none yet: the first run makes it in the schema reslice"
    assert everything(orders.database) == before
    names = [each.name for each in found.checks]
    assert "other_writers" not in names and "probe_rollback" in names


def test_every_target_is_looked_at_when_none_is_named(orders: Orders) -> None:
    contract = json.loads(orders.file.read_text())
    contract["targets"]["gone"] = contract["targets"]["daily_orders"] | {"table": "gone"}
    orders.file.write_text(json.dumps(contract))
    found = orders.database.project(orders.file).doctor()
    assert list(dict.fromkeys(each.target for each in found.checks)) == [None, "daily_orders", "gone"]
    (wrong,) = (each for each in found.checks if each.state is Health.WRONG)
    assert (wrong.target, wrong.name) == ("gone", "contract") and "no table gone" in wrong.found


@pytest.mark.parametrize("table", ["daily_orders", "SCHEMA.DAILY_ORDERS", "CATALOG.SCHEMA.daily_orders"])
def test_two_targets_of_one_table_are_told(orders: Orders, table: str) -> None:
    catalog, schema = orders.database.catalog, orders.database.schema
    contract = json.loads(orders.file.read_text())
    own = contract["targets"]["daily_orders"]
    table = table.replace("CATALOG", catalog).replace("SCHEMA", schema)
    contract["targets"] |= {"again": own | {"table": table}}
    contract["targets"] |= {"another": own | {"table": "orders_fact"}, "gone": own | {"table": "gone"}}
    orders.file.write_text(json.dumps(contract))
    said = check(orders, "other_targets")
    found = f"again fills {catalog}.{schema}.daily_orders as well"
    assert said.state is Health.WARNING
    assert said.found == f"{found}: a run of one removes the rows of the other from its slices"
    assert said.next == "take one of these targets out" and doctor(orders).is_well


# The contract against the table.


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DROP TABLE daily_orders", "has no table daily_orders"),
        (
            "ALTER TABLE daily_orders RENAME amount_cents TO amount_cent",
            "no column amount_cents; did you mean amount_cent?",
        ),
        ("ALTER TABLE daily_orders ADD COLUMN note VARCHAR", "note (TYPE varchar) is none of these"),
        ("ALTER TABLE daily_orders ALTER amount_cents TYPE DOUBLE PRECISION", "amount_cents is TYPE double precision"),
        (
            "ALTER TABLE daily_orders ALTER order_date TYPE DOUBLE PRECISION USING 1.0",
            "order_date is TYPE double precision",
        ),
    ],
)
def test_a_contract_that_is_not_the_tables_is_wrong(orders: Orders, statement: str, found: str) -> None:
    orders.database.execute(statement)
    found = named(orders.database, found)
    wrong = [each for each in doctor(orders).checks if each.state is Health.WRONG]
    assert {each.name for each in wrong} <= {"contract", "source"}
    assert any(found in each.found for each in wrong), wrong


def test_a_view_is_wrong(orders: Orders) -> None:
    orders.database.execute("ALTER TABLE daily_orders RENAME TO real_orders")
    orders.database.execute("CREATE VIEW daily_orders AS SELECT * FROM real_orders")
    assert troubles(orders) == [("contract", "wrong")]
    assert "is a view" in check(orders, "contract").found


# The files.


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (SOURCE.replace("FROM orders_fact", "FRM orders_fact"), "syntax error"),
        (SOURCE.replace("orders_fact", "nowhere"), "nowhere"),
        (SOURCE.replace("channel", "chanel"), "chanel"),
        (SOURCE.replace("count(*) AS order_count, ", ""), "returns no column order_count"),
        (
            SOURCE.replace("count(*)", "CAST('many' AS varchar)"),
            "order_count is TYPE varchar in the source and TYPE bigint in",
        ),
        (SOURCE.replace("count(*)", "1 AS extra, count(*)"), "returns extra, which the contract does not name"),
    ],
)
def test_a_source_that_cannot_be_staged_is_wrong(orders: Orders, source: str, found: str) -> None:
    orders.source(source)
    assert set(troubles(orders)) == {("source", "wrong")}
    found = named(orders.database, found)
    said = [each for each in doctor(orders).checks if each.name == "source"]
    assert any(found in each.found for each in said), said
    assert said[0].next != "run the same command again" and len(orders.rows()) == 6


def test_an_error_of_the_database_is_one_line(orders: Orders) -> None:
    orders.source(SOURCE.replace("FROM orders_fact", "FRM orders_fact"))
    (said,) = (each for each in doctor(orders).checks if each.name == "source")
    assert said.found.removeprefix("Parser Error: ").startswith("syntax error at or near ")
    assert "LINE" not in said.found and "^" not in said.found and ";" not in said.found


def test_no_source_is_evaluated(orders: Orders) -> None:
    """Neither a source that fails on its first row, nor one that would take for ever."""
    series = "range" if orders.database.name == "duckdb" else "generate_series"
    first = "0, " if orders.database.name == "postgresql" else ""
    for body in (
        "CAST('evaluated' || order_id AS bigint)",
        f"(SELECT count(*) FROM {series}({first}1000000000000) AS r(n) WHERE n % 7 = order_id % 7)",
    ):
        orders.source(
            f"SELECT order_date, channel, 1 AS order_count, {body} AS amount_cents FROM orders_fact"
            " WHERE order_date BETWEEN :start AND :end"
        )
        began = time.monotonic()
        columns = check(orders, "source")
        assert time.monotonic() - began < 20
        assert columns.state is Health.OK, columns


@pytest.mark.parametrize(
    ("control", "state", "found"),
    [
        ("SELECT order_date, count(*) AS orders FROM orders_fact GROUP BY 1", "ok", "returns order_date, orders"),
        ("SELECT order_date, count(*) AS n FROM orders_fact GROUP BY 1", "wrong", "returns no column orders"),
        (
            "SELECT order_date, sum(CAST(1 AS double precision)) AS orders FROM orders_fact GROUP BY 1",
            "wrong",
            "as TYPE double precision",
        ),
        ("SELECT FROM WHERE", "wrong", "syntax error"),
    ],
)
def test_a_control_is_looked_at_as_well(orders: Orders, control: str, state: str, found: str) -> None:
    orders.source(control, "control")
    orders.declare(controls={"source": "control.sql", "match": {"orders": "sum(order_count)"}})
    said = check(orders, "controls")
    assert (said.state, named(orders.database, found) in said.found) == (state, True), said


def test_readers_downstream_and_corrections_are_looked_at_as_well(orders: Orders) -> None:
    orders.source("SELECT order_date, sum(order_count) AS orders FROM daily_orders GROUP BY 1", "report")
    orders.source("SELECT order_date FROM orders_fact WHERE :since > '2024-01-01'", "affected")
    orders.declare(
        affected="affected.sql", downstream={"report": {"query": "report.sql", "match": {"orders": "sum(order_count)"}}}
    )
    assert check(orders, "report").found == "report.sql returns order_date, orders"
    assert check(orders, "affected").found == "affected.sql returns order_date"
    orders.source("SELECT day FROM orders_fact WHERE :since IS NOT NULL", "affected")
    assert check(orders, "affected").state is Health.WRONG


# Rights, keys, neighbours.


@only("duckdb", FILES)
def test_a_database_that_is_open_for_reading_has_no_rights(orders: Orders) -> None:
    orders.database.let_go()
    with duckdb.connect(str(file_of(orders.database)), read_only=True) as connection:
        import reslice

        found = reslice.open(orders.file, connection=connection).doctor("daily_orders")
    (wrong,) = (each for each in found.checks if each.state is Health.WRONG)
    assert wrong.name == "rights" and "read-only" in wrong.found


def test_the_key_that_is_recommended_can_be_made_and_is_then_seen(orders: Orders) -> None:
    orders.run(ALL)
    advice = check(orders, "unique_key")
    assert advice.state is Health.ADVICE and doctor(orders).is_well
    assert advice.found == (
        "none on the grain (order_date, channel); with one the database refuses a repeated row of any writer, save"
        " where order_date or channel is NULL"
    )
    how = "CONCURRENTLY " if orders.database.name == "postgresql" else ""
    table = f'"{orders.database.schema}"."daily_orders"'
    assert advice.next == f'CREATE UNIQUE INDEX {how}"daily_orders_grain" ON {table} ("order_date", "channel")'
    orders.database.execute(advice.next)
    assert check(orders, "unique_key").state is Health.OK
    with pytest.raises(KEY_VIOLATIONS):
        orders.database.insert("daily_orders", [(D1, "web", 1, 1)])
    orders.correct(4, 1300)
    assert orders.run(ALL).outcome is Outcome.PUBLISHED


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("table", ['"Daily ""Orders"""', "daily_orders"])
def test_the_key_that_is_recommended_fits_the_method_and_the_names(engine: Database, table: str, method: str) -> None:
    orders = Orders(engine, method=method)
    if table != "daily_orders":
        engine.execute(f"ALTER TABLE daily_orders RENAME TO {table}")
    orders.declare(table=table)
    engine.execute(check(orders, "unique_key").next)
    assert check(orders, "unique_key").state is Health.OK
    orders.correct(4, 1300)
    assert orders.run(ALL).outcome is Outcome.PUBLISHED
    assert check(orders, "contract").state is Health.OK


@pytest.mark.parametrize(
    ("key", "state", "found"),
    [
        ("PRIMARY KEY (order_date, channel)", "ok", "on the grain (order_date, channel)"),
        ("UNIQUE (order_date)", "warning", "(order_date) allows fewer rows than the grain"),
        ("UNIQUE (order_date, channel, order_count)", "advice", "none on the grain"),
        ("UNIQUE (order_count)", "advice", "none on the grain"),
    ],
)
def test_only_a_key_on_the_grain_keeps_one_row_per_group(orders: Orders, key: str, state: str, found: str) -> None:
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint, {key}")
    said = check(orders, "unique_key")
    assert (said.state, found in said.found) == (state, True), said


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("order_date date NOT NULL, channel varchar NOT NULL", "refuses a repeated row of any writer"),
        ("order_date date NOT NULL, channel varchar", "of any writer, save where channel is NULL"),
    ],
)
def test_what_a_key_would_not_do_is_said_beforehand(orders: Orders, columns: str, words: str) -> None:
    orders.make_target(f"{columns}, order_count bigint, amount_cents bigint")
    said = check(orders, "unique_key")
    assert said.state is Health.ADVICE and said.found.endswith(words)
    orders.database.execute(said.next)
    orders.database.insert("daily_orders", [(D1, "web", 1, 1)])
    with pytest.raises(KEY_VIOLATIONS):
        orders.database.insert("daily_orders", [(D1, "web", 2, 2)])
    if "save" in words:
        orders.database.insert("daily_orders", [(D1, None, 1, 1), (D1, None, 2, 2)])


@only("duckdb", "a key of PostgreSQL can hold rows apart whose key has a NULL, and the one that is advised does")
def test_a_key_does_not_hold_nulls_apart(orders: Orders) -> None:
    orders.database.execute(check(orders, "unique_key").next)
    orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    assert "rows whose channel is NULL are not held apart by it" in check(orders, "unique_key").found
    orders.database.insert("daily_orders", [(D1, None, 1, 1), (D1, None, 2, 2)])
    assert check(orders, "repeated_keys").found == f"1 key stands in 2 rows; e.g. ({D1}, NULL) 2 times"


@pytest.mark.parametrize(("method", "state"), [("replace_slice", "wrong"), ("merge", "ok")])
def test_foreign_keys_that_point_at_the_table_are_named(orders: Orders, method: str, state: str) -> None:
    columns = "order_date date, channel varchar, order_count bigint, amount_cents bigint"
    orders.make_target(f"{columns}, PRIMARY KEY (order_date, channel)")
    orders.database.execute(
        "CREATE TABLE notes (order_date date, channel varchar, note varchar,"
        " FOREIGN KEY (order_date, channel) REFERENCES daily_orders (order_date, channel))"
    )
    orders.declare(method=method)
    said = check(orders, "foreign_keys")
    assert said.state == state and f"{orders.database.schema}.notes" in said.found
    assert said.next == ("method: merge" if state == "wrong" else "")


@pytest.mark.parametrize("method", ["replace_slice", "append_version"])
def test_views_that_name_the_table_are_named(engine: Database, method: str) -> None:
    orders = Orders(engine, method=method)
    orders.run(ALL)
    assert check(orders, "views").found == "none names the table", "the view of current versions is ours"
    engine.execute(
        'CREATE VIEW report AS SELECT channel FROM "{}"'.format(
            "DAILY_ORDERS" if engine.name == "duckdb" else "daily_orders"
        )
    )
    engine.execute("CREATE VIEW other_daily_orders AS SELECT 1 AS n")
    said = check(orders, "views")
    if method == "replace_slice":
        assert (said.state, said.found, said.next) == (Health.OK, "report names the table", "")
    else:
        told = "report names the table itself, which holds every version of a slice, and may count it twice"
        assert (said.state, said.found) == (Health.WARNING, told)
        assert said.next == "let report read daily_orders_current"
        engine.execute("CREATE OR REPLACE VIEW report AS SELECT channel FROM daily_orders_current")
        assert check(orders, "views").state is Health.OK


def test_the_view_of_current_versions_and_what_is_not_current_are_told(engine: Database) -> None:
    orders = Orders(engine, method="append_version")
    assert check(orders, "current_view").found == "none yet: the first run makes daily_orders_current"
    assert check(orders, "old_versions").found == "none: every version is current"
    orders.run(ALL)
    orders.correct(4, 1300)
    orders.run(D2)
    before = engine.rows("SELECT count(*) FROM daily_orders WHERE order_date = '2024-03-02'")[0][0]
    now = engine.rows("SELECT count(*) FROM daily_orders_current WHERE order_date = '2024-03-02'")[0][0]
    assert (before, now) == (4, 2)
    well = "daily_orders_current is up to date: readers use it, and not the table"
    assert check(orders, "current_view").found == well
    of_no_run = "; 2 rows of no run, which readers of the view do not see and pruning leaves"
    assert check(orders, "old_versions").found == f"none: every version is current{of_no_run}"
    orders.correct(4, 1400)
    orders.run(D2)
    assert check(orders, "old_versions").found == f"1 version with 2 rows that is not current{of_no_run}"
    orders.database.execute(f"DELETE FROM daily_orders WHERE order_date = '{D2}' AND {VERSION} IS NULL")
    assert check(orders, "old_versions").found == "1 version with 2 rows that is not current"
    for statement, told in (
        ("COMMENT ON VIEW daily_orders_current IS 'reslice: another'", "is not what this contract and its ledger need"),
        ("DROP VIEW daily_orders_current", "is gone"),
    ):
        engine.execute(statement)
        said = check(orders, "current_view")
        assert said.state is Health.WARNING and said.found == f"daily_orders_current {told}; the next run makes it anew"
        assert said.next == f"reslice run daily_orders {D2}"
        if "DROP" in statement:
            orders.run(D3)
            assert check(orders, "current_view").state is Health.OK


# Rows.


def test_repeated_keys_are_counted_and_the_command_leads_to_a_heal(orders: Orders) -> None:
    orders.database.insert("daily_orders", [(D1, "web", 9, 9), (D1, "web", 9, 9), (D3, "phone", 1, 999)])
    said = check(orders, "repeated_keys")
    assert said.state is Health.WRONG and not doctor(orders).is_well
    assert said.found == f"2 keys stand in 5 rows; e.g. ({D1}, web) 3 times"
    assert said.next == f"reslice plan daily_orders {D1}..{D3}"
    orders.run(ALL)
    assert troubles(orders) == []


@pytest.mark.parametrize("column", ["order_date", "channel"])
def test_null_keys_are_counted(orders: Orders, column: str) -> None:
    row = (None if column == "order_date" else D1, None if column == "channel" else "web", 1, 1)
    orders.database.insert("daily_orders", [row, (*row[:3], 2)])
    said = check(orders, "null_keys")
    assert (said.state, said.found) == (Health.WRONG, f"{column} is NULL in 2 rows")
    if column == "channel":
        orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
        assert check(orders, "null_keys").state is Health.OK


@pytest.mark.parametrize(
    ("type_text", "value", "shown"),
    [
        ("TIMESTAMP", "2024-03-02 09:30:00", "2024-03-02 09:30:00"),
        ("VARCHAR", "2024-3-2", "2024-3-2"),
        ("INTEGER", "20240230", "20240230"),
    ],
)
def test_rows_off_the_unit_are_counted(orders: Orders, type_text: str, value: str, shown: str) -> None:
    day = "replace(CAST(order_date AS varchar), '-', '')" if type_text == "INTEGER" else "order_date"
    orders.database.execute(
        f"ALTER TABLE daily_orders ALTER order_date TYPE {type_text} USING CAST({day} AS {type_text})"
    )
    assert check(orders, "slice_values").state is Health.OK
    orders.database.insert("daily_orders", [(value, "late", 1, 1)])
    said = check(orders, "slice_values")
    assert (said.state, said.found) == (Health.WRONG, f"1 row lies off the beginning of a day; e.g. {shown}")


HOURS = "SELECT {} AS order_hour, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"


@only("duckdb", "PostgreSQL cuts an instant as one, and has a test of its own")
@pytest.mark.parametrize(
    ("zone", "hour", "state"),
    [
        ("Europe/Amsterdam", "date_trunc('hour', ordered_at)", "warning"),
        ("Europe/Amsterdam", "DATE_TRUNC ( 'Hour' ,\n (ordered_at))", "warning"),
        ("Europe/Amsterdam", "time_bucket(INTERVAL 1 HOUR, ordered_at) /* date_trunc('hour', x) */", "ok"),
        ("Europe/Amsterdam", "date_trunc('hour', (ordered_at AT TIME ZONE 'UTC')) AT TIME ZONE 'UTC'", "ok"),
        ("Europe/Amsterdam", "date_trunc('hour', ordered_at) AT TIME ZONE 'UTC'", "warning"),
        ("UTC", "date_trunc('hour', ordered_at)", ""),
        ("Asia/Kolkata", "date_trunc('hour', ordered_at)", ""),
    ],
)
def test_hours_that_a_clock_shows_twice_are_thought_of(orders: Orders, zone: str, hour: str, state: str) -> None:
    orders.database.execute("ALTER TABLE orders_fact ADD COLUMN ordered_at TIMESTAMPTZ")
    orders.make_target("order_hour timestamptz, channel varchar, order_count bigint, amount_cents bigint")
    orders.source(HOURS.format(hour) + " WHERE ordered_at >= :start_instant AND ordered_at < :end_instant GROUP BY ALL")
    orders.declare(grain=["order_hour", "channel"], slice={"column": "order_hour", "unit": "hour", "timezone": zone})
    found = {each.name: each for each in doctor(orders).checks}
    assert str(found["clock_changes"].state if "clock_changes" in found else "") == state
    assert found["slice_values"].found == "each is the first moment of an hour"
    if state == "warning":
        told = "when clocks go back in Europe/Amsterdam, duckdb counts both hours as the later one"
        assert told in found["clock_changes"].found
        with duckdb.connect() as connection:  # what the warning says, asked of the database itself
            connection.execute("SET TimeZone = 'Europe/Amsterdam'")
            both = "VALUES (TIMESTAMPTZ '2026-10-25 00:30:00+00'), (TIMESTAMPTZ '2026-10-25 01:30:00+00')"
            select = f"SELECT timezone('UTC', date_trunc('hour', t))::VARCHAR FROM ({both}) AS v (t)"
            assert connection.execute(select).fetchall() == [("2026-10-25 01:00:00",)] * 2


@only("duckdb", MACROS)
def test_macros_that_replace_functions_are_named(orders: Orders) -> None:
    orders.database.execute("CREATE MACRO md5(text) AS 'ffffffffffffffff'")
    said = next(each for each in doctor(orders).checks if each.name == "functions")
    assert (said.state, said.next) == (Health.WRONG, "DROP MACRO md5")
    orders.database.execute(said.next)
    orders.database.execute("CREATE MACRO nobody_needs(text) AS 1")
    assert troubles(orders) == []


# The ledger.


def test_an_older_ledger_is_told(orders: Orders) -> None:
    orders.run(ALL)
    orders.database.execute("ALTER TABLE reslice.runs DROP COLUMN affected")
    orders.database.execute("DROP TABLE reslice.run_groups")
    said = check(orders, "ledger")
    assert (said.state, said.found) == (
        Health.OK,
        "of an older reslice: the next run adds runs.affected, run_groups",
    )
    assert check(orders, "other_writers").state is Health.OK
    orders.database.execute("ALTER TABLE reslice.runs DROP COLUMN fingerprint_columns")
    assert "other_writers" not in [each.name for each in doctor(orders).checks], "what it needs is not there"
    orders.run(ALL)
    assert check(orders, "ledger").found == "in the schema reslice, up to date; 2 runs of this table"


def test_tables_of_a_user_in_the_ledgers_schema_are_told(orders: Orders) -> None:
    orders.database.execute("CREATE SCHEMA reslice")
    orders.database.execute("CREATE TABLE reslice.runs (id integer, distance_km double precision)")
    said = check(orders, "ledger")
    assert said.state is Health.WRONG and "holds runs, which reslice did not make" in said.found


def test_another_ledger_that_guards_the_table_is_told(orders: Orders) -> None:
    orders.run(ALL)
    orders.declare(ledger={"schema": "second"})
    said = check(orders, "ledger")
    assert said.state is Health.WRONG and "the ledger in schema reslice already guards the table" in said.found
    assert said.next == "ledger: {schema: reslice}"


def test_runs_whose_process_is_gone_are_told_and_those_at_work_are_not(orders: Orders) -> None:
    seen: list[Finding] = []
    orders.run(ALL, on_step=orders.at_step("comparing", lambda: seen.append(check(orders, "abandoned_runs"))))
    assert [(each.state, each.found) for each in seen] == [(Health.OK, "none; 1 run at work")]
    orders.database.execute(
        "UPDATE reslice.runs SET state = 'requested', process = 'gone', finished_at = NULL WHERE id = 'r-0001'"
    )
    said = check(orders, "abandoned_runs")
    assert said.state is Health.WARNING and said.found.startswith(f"r-0001 over {ALL} never ended")
    assert said.next == "reslice show r-0001"
    orders.run(ALL)
    assert check(orders, "abandoned_runs").state is Health.OK


def test_a_run_that_ended_part_way_is_told_until_it_is_done(orders: Orders) -> None:
    for order_id in (1, 4, 7):
        orders.correct(order_id, 5)
    write = orders.elsewhere(f"UPDATE daily_orders SET order_count = 99 WHERE order_date = '{D2}'")
    orders.fails(
        "run", PartlyPublished, ALL, per_slice=True, on_step=orders.at_step(f"publishing {D2} (2 of 3)", write)
    )
    said = check(orders, "part_way_runs")
    assert (said.state, said.found) == (Health.WARNING, f"r-0001 over {ALL} published 1 of 3 slices")
    assert said.next == f"reslice run daily_orders {ALL}"
    orders.run(ALL)
    assert check(orders, "part_way_runs").state is Health.OK


def test_kept_rows_are_counted(orders: Orders) -> None:
    assert orders.run(ALL).outcome is Outcome.UNCHANGED
    assert check(orders, "kept_rows").found == "none"
    orders.correct(4, 1300)
    orders.run(D2)
    orders.correct(1, 1300)
    orders.run(D1)
    assert check(orders, "kept_rows").found.startswith("4 rows of 2 runs, since ")
    orders.database.execute(
        "UPDATE reslice.runs SET requested_at = requested_at - INTERVAL '40 days' WHERE id = 'r-0002'"
    )
    assert check(orders, "kept_rows").found.endswith("(40 days; kept for 90)")


# Other writers.


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_slices_that_somebody_else_has_changed_are_named(engine: Database, method: str) -> None:
    orders = Orders(engine, method=method)
    orders.correct(1, 1300)
    orders.run(f"{D1}..{D2}")
    said = check(orders, "other_writers")
    assert (said.state, said.found) == (Health.OK, "no slice has changed since its last run")

    engine.execute("UPDATE daily_orders SET amount_cents = 0 WHERE order_date = '2024-03-03'")
    assert check(orders, "other_writers").state is Health.OK, "no run has had that slice yet"

    engine.execute("UPDATE daily_orders SET amount_cents = amount_cents + 1 WHERE order_date = '2024-03-02'")
    said = check(orders, "other_writers")
    assert said.state is Health.WARNING
    assert said.found == f"{D2} no longer holds what a run left; {D2} held 2 rows after r-0001, and holds other values"
    assert said.next == f"reslice status daily_orders {D2}"

    engine.execute("DELETE FROM daily_orders WHERE order_date = '2024-03-01'")
    said = check(orders, "other_writers")
    assert said.found == f"{D1}, {D2} no longer hold what a run left; {D1} held 2 rows after r-0001 and now 0"
    orders.run(ALL)
    assert check(orders, "other_writers").state is Health.OK
    orders.database.project(orders.file).restore("last", D3)
    assert check(orders, "other_writers").state is Health.OK, "a restore is no other writer"


def test_slices_that_are_still_filling_are_their_writers(orders: Orders) -> None:
    orders.declare(guards={"empty_slice": "allow", "total_change": "allow", "closed_through": D2})
    orders.run(ALL, allow=["closed_through"], reason="a test")
    orders.database.execute("UPDATE daily_orders SET amount_cents = 0 WHERE order_date = '2024-03-03'")
    said = check(orders, "other_writers")
    assert (said.state, said.found) == (
        Health.OK,
        "no closed slice has changed since its last run; 1 slice that is still filling moved",
    )
    orders.database.execute("UPDATE daily_orders SET amount_cents = 0 WHERE order_date = '2024-03-02'")
    assert check(orders, "other_writers").found.startswith(f"{D2} no longer holds")


def test_of_many_changed_slices_the_first_few_are_named(orders: Orders) -> None:
    orders.database.execute("DELETE FROM orders_fact")
    for day in range(1, 10):
        orders.order(day, f"2024-03-0{day}", "web", 100)
    orders.run("2024-03")
    orders.database.execute("UPDATE daily_orders SET amount_cents = 1")
    assert check(orders, "other_writers").found.startswith(
        "2024-03-01, 2024-03-02, 2024-03-03, 2024-03-04, 2024-03-05 and 4 more no longer hold"
    )


# The command.


def test_the_exit_code_is_the_answer(orders: Orders, capsys: pytest.CaptureFixture[str]) -> None:
    orders.database.let_go()
    place = ["--config", str(orders.file)]

    def run(*words: str) -> tuple[int, str]:
        code = cli.main([*place, "doctor", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    code, said = run()
    advice = 1 if orders.database.name == "duckdb" else 2
    assert code == 0 and said.startswith(f"well: {advice} advice, ")
    assert said.splitlines()[-1] == f"next: reslice --config {orders.file} history"
    assert "advice" in said and "CREATE UNIQUE INDEX" in said
    with orders.database.session() as session:
        session.execute("INSERT INTO daily_orders SELECT * FROM daily_orders WHERE order_date = '2024-03-02'")
    version = diagnosis_version(orders.database)
    orders.database.let_go()
    code, said = run("daily_orders")
    assert code == 1 and said.startswith(f"not well: 1 wrong, {advice} advice, ")
    assert f"\nnext: reslice --config {orders.file} plan daily_orders {D2}\n" in said
    code, said = run("--json")
    value = json.loads(said)
    assert (code, value["schema"], value["exit_code"], value["error"]) == (1, "reslice/doctor/1", 1, None)
    assert value["engine"] == {"name": orders.database.name, "version": version}
    assert all(set(each) == {"target", "name", "state", "found", "next"} for each in value["checks"])
    assert [each["name"] for each in value["checks"] if each["state"] == "wrong"] == ["repeated_keys"]

    code, said = run("no_such_target")
    assert code == 2 and "misused[usage]" in said
    contract = json.loads(orders.file.read_text())
    contract["connection"] = orders.database.url.replace(orders.database.catalog, "nowhere")
    orders.file.write_text(json.dumps(contract))
    code, said = run("--json")
    value = json.loads(said)
    assert (code, value["schema"], value["checks"], value["error"]["kind"]) == (2, "reslice/doctor/1", [], "connection")


def test_next_is_about_the_most_serious_finding(orders: Orders, capsys: pytest.CaptureFixture[str]) -> None:
    def next_step() -> str:
        orders.database.let_go()
        cli.main(["--config", str(orders.file), "doctor"])
        return capsys.readouterr().out.splitlines()[-1].removeprefix(f"next: reslice --config {orders.file} ")

    orders.run(ALL)
    orders.database.execute("UPDATE reslice.runs SET state = 'requested', process = 'gone', finished_at = NULL")
    assert next_step() == "show r-0001"
    orders.run(ALL)
    orders.database.execute(
        "UPDATE reslice.runs SET state = 'requested', process = 'gone', finished_at = NULL WHERE id = 'r-0001'"
    )
    orders.database.execute("UPDATE daily_orders SET amount_cents = 1 WHERE order_date = '2024-03-02'")
    assert next_step() == f"status daily_orders {D2}"
    orders.database.insert("daily_orders", [(D1, "web", 9, 9)])
    assert next_step() == f"plan daily_orders {D1}"


@only("duckdb", FILES)
def test_a_database_that_another_process_holds_is_exit_4(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.database.let_go()
    monkeypatch.setattr("reslice.project.LOOK_WAIT", None)
    holder = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", holder, str(file_of(orders.database))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline()
    with pytest.raises(Retryable) as caught:
        doctor(orders)
    process.communicate()
    assert (caught.value.kind, caught.value.exit_code) == ("database_busy", 4)


# What DuckDB really does.

OBSERVED = {
    "rollback": "the slice is back, row for row",
    "transactional_ddl": "all of it is undone",
    "old_or_new": "the old rows to the end, then the new ones",
    "closed_range": "it holds its first and its last value, not the one before nor the one after",
    "many_ranges": "those slices, and no other",
    "commit_of_aborted": "raises nothing, and keeps nothing",
    "same_key": "goes through, also twice and beside a reader",
    "same_new_key": "the second commit fails",
    "fence": "the second statement fails",
    "empty_slice": "no conflict: both commit, and the slice holds 4 rows for 2",
    "update_update": "the second statement fails",
    "update_delete": "no conflict: both commit, and the update is lost",
    "update_touched": "the second statement fails",
    "insert_delete": "no conflict: both commit, and the slice holds 3 rows for 2",
    "moved_row": "no conflict: both commit, and the row is gone",
    "moved_row_keyed": "the second statement fails",
    "merge_matched": "silent; of 10 and 20 it keeps 20",
    "merge_new": "silent; it inserts 2 of 2",
}
"""As it was measured by hand on DuckDB 1.5.6 and 2.0.1; 2.0.0 alone has an error for a MERGE that matches twice."""


def probed(unit: Unit, zone: str, column: Column) -> dict[str, tuple[str, bool]]:
    source = SqlFile("s.sql", Path("s.sql"), "SELECT 1")
    contract = Contract("t", "t", source, (GrainColumn("day"),), SliceColumn("day", unit, zone), ())
    return {each.name: (each.found, each.holds) for each in probe.probed(contract, column)}


def test_the_probe_observes_what_was_measured_by_hand() -> None:
    found = probed(Unit.DAY, "UTC", Column("day", "DATE", Family.DATE))
    if duckdb.__version__ == "2.0.0":
        assert found.pop("merge_matched") == ("an error", True)
    assert found == {name: (words, True) for name, words in OBSERVED.items() if name in found}
    assert len(found) == len(OBSERVED) - (duckdb.__version__ == "2.0.0")


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("type_text", "family"),
    [
        ("DATE", Family.DATE),
        ("TIMESTAMP", Family.TIMESTAMP),
        ("TIMESTAMP_S", Family.TIMESTAMP),
        ("TIMESTAMP_MS", Family.TIMESTAMP),
        ("TIMESTAMP WITH TIME ZONE", Family.TIMESTAMPTZ),
        ("VARCHAR", Family.TEXT),
        ("INTEGER", Family.INTEGER),
    ],
)
def test_ranges_are_closed_in_every_type_of_slice_column(unit: Unit, zone: str, type_text: str, family: Family) -> None:
    if unit is Unit.HOUR and family is not Family.TIMESTAMPTZ and (family is not Family.TIMESTAMP or zone != "UTC"):
        return  # such hours are refused
    source = SqlFile("s.sql", Path("s.sql"), "SELECT 1")
    contract = Contract("t", "t", source, (GrainColumn("day"),), SliceColumn("day", unit, zone), ())
    ranged = [each for each in probe.PROBES if each.name in ("closed_range", "many_ranges")]
    for each in ranged:
        bench = probe.Bench(contract, Column("day", type_text, family))
        assert each.observe(bench) == OBSERVED[each.name]
        bench.close()


@pytest.mark.parametrize(
    ("place", "name", "instead", "probe_name", "found"),
    [
        (sql, "within_range", "half_open", "closed_range", "matches the first value"),
        (sql, "within_range", "too_wide", "closed_range", "matches the first value, the last value, the value after"),
        pytest.param(
            *(ledger, "fence_statement", "no_fence", "fence", "no conflict: both commit"),
            marks=only("duckdb", "a lock of PostgreSQL keeps two publishes apart"),
        ),
    ],
)
def test_an_engine_that_does_otherwise_is_wrong(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, instead: str, probe_name: str, found: str
) -> None:
    within = sql.within_range

    def half_open(dialect: Any, expression: str, column: Column, span: Any) -> str:
        return within(dialect, expression, column, span).replace(" < DATE '2024-04-02'", " < DATE '2024-04-01'")

    def too_wide(dialect: Any, expression: str, column: Column, span: Any) -> str:
        return within(dialect, expression, column, span).replace(" < ", " <= ")

    def no_fence(where: str) -> str:
        return f"SELECT generation FROM {where}.fences WHERE table_name = $table_name"

    doings = {"half_open": half_open, "too_wide": too_wide, "no_fence": no_fence}
    monkeypatch.setattr(place, name, doings[instead])
    diagnosis = doctor(orders, probe=True)
    wrong = [each for each in diagnosis.checks if each.name == f"probe_{probe_name}"]
    assert [each.state for each in wrong] == [Health.WRONG] and wrong[0].found.endswith(found)
    assert not diagnosis.is_well and "do not run here" in wrong[0].next


@only("duckdb", "what a probe is there is looked at in a test of its own")
def test_a_probe_that_is_stopped_says_so(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C during a statement is an error of the driver's own, in these words."""

    def slow(bench: probe.Bench) -> str:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(probe, "PROBES", (Probe("slow", "waits", "nothing", slow),))
    orders.database.let_go()
    assert cli.main(["--config", str(orders.file), "doctor", "--probe"]) == 130
    assert "interrupted[interrupted]: " in capsys.readouterr().err


@only("duckdb", "what a probe is there is looked at in a test of its own")
def test_a_probe_that_is_killed_leaves_nothing_behind(orders: Orders, tmp_path: Path) -> None:
    orders.database.let_go()
    scratch, work = tmp_path / "scratch", tmp_path / "work"
    scratch.mkdir()
    work.mkdir()
    before = files_of(orders.folder)
    code = (
        "import sys; from reslice import cli; from reslice.engines.duckdb import probe; seen = []\n"
        "race = probe.Bench.race\n"
        "def slow(self, first, second):\n"
        "    print('racing', flush=True); sys.stdin.read()\n"
        "probe.Bench.race = slow\n"
        "cli.main(['--config', sys.argv[1], 'doctor', '--probe'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(orders.file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=work,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    assert process.stdout is not None and process.stdout.readline() == b"racing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [*scratch.iterdir(), *work.iterdir()] == []
    assert files_of(orders.folder) == before
