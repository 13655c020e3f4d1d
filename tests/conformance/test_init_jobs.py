"""`init --source`: jobs of many dialects become contract and source, which plan and run as a person would expect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reslice
from reslice import contract_file
from reslice.contract import Connection, ProjectFile
from reslice.init import Asked, Initiated, from_job
from reslice.init.job import read_job
from reslice.project import Project
from reslice.reading.parse import OWN
from reslice.values import Outcome
from tests.conformance.databases import Database
from tests.conformance.init_jobs import CASES, PAID, JobCase

POSTGRES16_SLOW = True

FACTS = """
    (1, DATE '2026-01-01', TIMESTAMP '2026-01-01 09:00:00', 'web', 'paid', 1000),
    (2, DATE '2026-01-01', TIMESTAMP '2026-01-01 23:30:00', 'web', 'paid', 2500),
    (3, DATE '2026-01-02', TIMESTAMP '2026-01-02 00:00:00', 'store', 'paid', 700),
    (4, DATE '2026-01-02', TIMESTAMP '2026-01-02 12:00:00', 'web', 'void', 9900),
    (5, DATE '2026-01-03', TIMESTAMP '2026-01-03 08:00:00', 'web', 'paid', 300)
"""
OUTSIDE = ("2026-01-03", "web", 7, 7)
"""A row of another day, which is wrong and has to stay so: the range that is run does not hold it."""

AFTER = {
    "every": [("2026-01-01", "web", 2, 3500), ("2026-01-02", "store", 1, 700), ("2026-01-02", "web", 1, 9900), OUTSIDE],
    "paid": [("2026-01-01", "web", 2, 3500), ("2026-01-02", "store", 1, 700), OUTSIDE],
}


@pytest.fixture
def folder(engine: Database) -> Path:
    engine.execute(
        "CREATE TABLE orders_fact (order_id INTEGER, order_date DATE, ordered_at TIMESTAMP, channel VARCHAR,"
        " status VARCHAR, amount_cents BIGINT)"
    )
    engine.execute(f"INSERT INTO orders_fact VALUES {FACTS}")
    engine.execute(
        "CREATE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)"
    )
    engine.execute("INSERT INTO daily_orders VALUES ('2026-01-01', 'phone', 4, 400), ('2026-01-03', 'web', 7, 7)")
    return engine.folder


def drafted(
    engine: Database, folder: Path, text: str, dialect: str | None = None, name: str = "daily_orders"
) -> Initiated:
    engine.let_go()
    job_file = folder / "job.sql"
    job_file.write_text(text, encoding="utf-8")
    contract = folder / "reslice.yml"
    path = folder / "warehouse.duckdb" if engine.name == "duckdb" else None
    file = ProjectFile(contract, Connection(engine.name, engine.url, engine.url, path), {})
    job = read_job(job_file, dialect, None, name, engine.name)
    with Project(file).engine(read_only=True) as connected:
        return from_job(connected, Asked(name, contract, engine.url), job, None)


def plain(text: str) -> str:
    """Return SQL on one line, without comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_job_is_drafted_as_a_person_would(case: JobCase, engine: Database, folder: Path) -> None:
    found = drafted(engine, folder, case.text, case.dialect)
    contract = contract_file.load(folder / "reslice.yml").targets["daily_orders"]
    assert contract.table == "daily_orders"
    assert tuple(column.name for column in contract.grain) == case.grain
    assert (contract.slice.column, str(contract.slice.unit)) == ("order_date", "day")
    assert [measure.name for measure in contract.measures] == ["order_count", "amount_cents"]
    assert [measure.minimum for measure in contract.measures] == [0, 0]
    days = re.sub(r"\bDATE\(([\w.]+)\)", r"CAST(\1 AS DATE)", plain(contract.source.text))  # two ways to say it
    assert f"WHERE {case.where}" in days
    assert contract.source.text.count(":start") == contract.source.text.count(":end") > 0
    said = "\n".join(found.unsure)
    own = case.dialect == OWN[engine.name][0]
    for words in case.unsure:
        assert words in said or (own and words.startswith("translated"))
    assert ("translated from" in said) == (case.dialect is not None and not own)
    assert found.next == f"reslice plan daily_orders {case.range}"


@pytest.mark.parametrize("case", [case for case in CASES if case.is_run], ids=lambda case: case.name)
def test_a_draft_plans_and_runs_at_once(case: JobCase, engine: Database, folder: Path) -> None:
    drafted(engine, folder, case.text, case.dialect)
    target = reslice.open(folder / "reslice.yml").target("daily_orders")
    wanted = AFTER[PAID if case.rows == PAID else "every"]
    plan = target.plan("2026-01-01..2026-01-02")
    assert plan.diff is not None
    assert (plan.diff.counts.added, plan.diff.counts.removed) == (len(wanted) - 1, 1)
    run = target.run("2026-01-01..2026-01-02", allow=["total_change"], reason="the first run")
    assert run.outcome is Outcome.PUBLISHED
    engine.let_go()
    columns = "CAST(order_date AS VARCHAR), channel, order_count, amount_cents"
    assert engine.rows(f"SELECT {columns} FROM daily_orders ORDER BY 1, 2") == wanted


def said(found: Initiated) -> str:
    return "\n".join(found.unsure)


def test_the_clock_becomes_a_stamp_and_leaves_the_source(engine: Database, folder: Path) -> None:
    engine.execute("ALTER TABLE daily_orders ADD COLUMN written TIMESTAMPTZ")
    found = drafted(
        engine,
        folder,
        "INSERT INTO daily_orders SELECT order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents, now() AS written FROM orders_fact"
        " WHERE order_date = '{{ ds }}' GROUP BY 1, 2, 5",
    )
    contract = contract_file.load(folder / "reslice.yml").targets["daily_orders"]
    assert [(stamp.column, str(stamp.value)) for stamp in contract.stamps] == [("written", "run_time")]
    assert "now()" not in plain(contract.source.text).lower()
    assert plain(contract.source.text).endswith("GROUP BY order_date, channel")
    assert found.files_written


def test_a_placeholder_that_is_no_bound_stops_a_plan(engine: Database, folder: Path) -> None:
    found = drafted(
        engine,
        folder,
        "INSERT INTO daily_orders SELECT order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date = '{{ ds }}'"
        " AND status = '{{ params.status }}' GROUP BY 1, 2",
    )
    assert "{{ params.status }} is no bound of the range; replace_params_status stands in its place" in said(found)
    with pytest.raises(reslice.Misused, match="replace_params_status"):
        reslice.open(folder / "reslice.yml").target("daily_orders").plan("2026-01-01")


def test_columns_are_held_to_the_live_table(engine: Database, folder: Path) -> None:
    engine.execute("ALTER TABLE daily_orders ADD COLUMN refunds BIGINT")
    found = drafted(
        engine,
        folder,
        "INSERT INTO daily_orders (order_date, channel, order_count, amount_cents, visits)"
        " SELECT order_date, channel, count(*), sum(amount_cents), 0 FROM orders_fact"
        " WHERE order_date = '2026-01-01' GROUP BY 1, 2",
    )
    assert "source: it does not return refunds, which a replace would blank" in said(found)
    assert "the job writes visits, which daily_orders does not have; left out" in said(found)


def test_a_job_whose_table_is_not_there_is_drafted_alone(engine: Database, folder: Path) -> None:
    found = drafted(
        engine,
        folder,
        "CREATE TABLE monthly AS SELECT date_trunc('month', order_date) AS month, channel, count(*) AS orders,"
        " sum(amount_cents) AS cents FROM orders_fact GROUP BY ALL",
        name="monthly",
    )
    contract = contract_file.load(folder / "reslice.yml").targets["monthly"]
    assert [column.name for column in contract.grain] == ["month", "channel"]
    assert (contract.slice.column, contract.slice.unit) == ("month", "month")
    assert [(each.name, each.minimum) for each in contract.measures] == [("orders", 0), ("cents", None)]
    assert "the database has no table monthly" in said(found)
    with pytest.raises(reslice.Refused, match="target_missing"):
        reslice.open(folder / "reslice.yml").target("monthly").plan("2026-01")


def test_a_zone_and_a_unit_are_read_from_the_expression(engine: Database, folder: Path) -> None:
    drafted(
        engine,
        folder,
        "CREATE TABLE weekly AS SELECT date_trunc('week', ordered_at AT TIME ZONE 'Europe/Amsterdam')::DATE AS week,"
        " count(*) AS orders FROM orders_fact GROUP BY 1",
        name="weekly",
    )
    contract = contract_file.load(folder / "reslice.yml").targets["weekly"]
    assert (contract.slice.column, contract.slice.unit, contract.slice.timezone) == ("week", "week", "Europe/Amsterdam")
    assert "ordered_at >= :start_instant AND ordered_at < :end_instant" in plain(contract.source.text)


NO_WRITE = {
    "a select alone": ("SELECT 1 AS a", "a SELECT alone is taken when --table says which table it fills"),
    "values": ("INSERT INTO daily_orders VALUES ('2026-01-01', 'web', 1, 1)", "it holds INSERT"),
    "an update": ("UPDATE daily_orders SET order_count = 1", "it holds UPDATE"),
    "a view": ("CREATE VIEW v AS SELECT 1 AS a", "it holds CREATE"),
    "nothing": ("-- nothing at all", "it holds no statement"),
    "no sql": ("dear diary, today I", "it holds no statement"),
    "two tables": (
        "INSERT INTO a SELECT 1 AS x; INSERT INTO b SELECT 2 AS x",
        "job.sql writes a, b",
    ),
}


@pytest.mark.parametrize("case", NO_WRITE)
def test_a_file_without_a_write_is_told_in_four_parts(case: str, engine: Database, folder: Path) -> None:
    text, words = NO_WRITE[case]
    with pytest.raises(reslice.Misused) as caught:
        drafted(engine, folder, text, name="t")
    assert caught.value.kind == "nothing_to_draft" and caught.value.exit_code == 2
    (failure,) = caught.value.failures
    assert failure.asked and failure.next and caught.value.unchanged == "no file was written"
    assert words in "\n".join(failure.found)
    assert not (folder / "reslice.yml").exists() and not (folder / "sql").exists()


def test_one_of_several_tables_is_chosen_by_name(engine: Database, folder: Path) -> None:
    text = (
        "INSERT INTO other SELECT 1 AS x; INSERT INTO daily_orders SELECT order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_fact GROUP BY ALL"
    )
    assert drafted(engine, folder, text).target == "daily_orders"


def test_a_dialect_is_found_where_none_is_said(engine: Database, folder: Path) -> None:
    found = drafted(
        engine,
        folder,
        "MERGE INTO daily_orders t USING (SELECT order_date, channel, COUNT(*) AS order_count, SUM(amount_cents) AS"
        " amount_cents FROM `orders_fact` WHERE order_date = @day GROUP BY order_date, channel) s"
        " ON t.order_date = s.order_date AND t.channel = s.channel WHEN NOT MATCHED THEN INSERT ROW",
    )
    told = f"dialect: it was read as bigquery, since it is not {OWN[engine.name][1]}'s; name it with --dialect"
    assert told in said(found)


def test_a_job_that_no_dialect_reads_whole_asks_for_its_dialect(engine: Database, folder: Path) -> None:
    found = drafted(
        engine,
        folder,
        "SELECT FROM WHERE (;\nINSERT INTO daily_orders SELECT order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date = '{{ ds }}' GROUP BY 1, 2",
    )
    assert "dialect: no dialect reads all of job.sql; name the one it is in:  --dialect NAME" in said(found)


DAMAGED = {
    "bigquery": (
        "DATE_DIFF(CURRENT_DATE(), MIN(order_date), DAY) / 2, APPROX_COUNT_DISTINCT(status), MY_UDF(1)",
        ("whole numbers divide", "boundaries crossed", "an estimate", "MY_UDF: not known", "is the time of the run"),
    ),
    "snowflake": (
        "GREATEST(1, NULL), DATE_TRUNC('WEEK', MIN(order_date)), RANDOM()",
        ("NULL among the values", "a week may begin on another day", "is another value each time"),
    ),
    "mysql": (
        "DATE_FORMAT(MIN(order_date), '%Y'), CONCAT(MIN(status), NULL), ROUND(0.5)",
        ("format letters differ", "NULL in a concatenation", "halves may be rounded", "takes 'a' and 'A' for equal"),
    ),
}


@pytest.mark.parametrize("dialect", DAMAGED)
def test_what_a_translation_may_damage_is_named(dialect: str, engine: Database, folder: Path) -> None:
    expressions, told = DAMAGED[dialect]
    columns = _named(expressions)
    found = drafted(
        engine,
        folder,
        f"CREATE TABLE t AS SELECT order_date, {columns} FROM orders_fact GROUP BY order_date",
        dialect,
        name="t",
    )
    for words in told:
        assert words in said(found)


def _named(expressions: str) -> str:
    """Give each expression of a list a name; commas in brackets do not end one."""
    parts, depth = [""], 0
    for character in expressions:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return ", ".join(f"{part.strip()} AS c{place}" for place, part in enumerate(parts))


# A job whose own range goes by another unit than the slices.

HOURLY = """
    CREATE TABLE hourly_orders (order_hour TIMESTAMP, channel VARCHAR, order_count BIGINT, amount_cents BIGINT);
    INSERT INTO hourly_orders VALUES ('2026-01-01 08:00:00', 'web', 9, 9), ('2026-01-02 12:00:00', 'web', 9, 9),
                                     ('2026-01-03 08:00:00', 'web', 9, 9)
"""
HOURS_AFTER = [
    ("2026-01-01 08:00:00", "web", 9, 9),
    ("2026-01-02 00:00:00", "store", 1, 700),
    ("2026-01-02 12:00:00", "web", 1, 9900),
    ("2026-01-03 08:00:00", "web", 9, 9),
]


@pytest.mark.parametrize(
    ("condition", "dialect"),
    [
        ("to_date(ordered_at) = '${hiveconf:dt}'", "hive"),
        ("CAST(ordered_at AS DATE) BETWEEN '{{ ds }}' AND '{{ de }}'", None),
        ("strftime(ordered_at, '%Y-%m-%d') = '{{ ds }}'", None),
        ("to_char(ordered_at, 'YYYY-MM-DD') = '{{ ds }}' AND order_date = '{{ ds }}'", "postgres"),  # a partition
        ("ordered_at >= '{{ ds }}' AND ordered_at < '{{ de }}'", None),
        ("date_trunc('hour', ordered_at) >= '{{ ds }}' AND date_trunc('hour', ordered_at) < '{{ de }}'", None),
    ],
)
def test_a_job_that_runs_by_days_fills_slices_of_hours(
    condition: str, dialect: str | None, engine: Database, folder: Path
) -> None:
    engine.execute(HOURLY)
    found = drafted(
        engine,
        folder,
        "INSERT INTO hourly_orders SELECT date_trunc('hour', ordered_at) AS order_hour, channel,"
        " count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        f" WHERE {condition} GROUP BY date_trunc('hour', ordered_at), channel",
        dialect,
        name="hourly_orders",
    )
    assert contract_file.load(folder / "reslice.yml").targets["hourly_orders"].slice.unit == "hour"
    is_by_day = "ordered_at >=" not in condition and "hour" not in condition
    assert ("by the day, and a slice is an hour; the draft limits ordered_at instead" in said(found)) == is_by_day
    target = reslice.open(folder / "reslice.yml").target("hourly_orders")
    target.run("2026-01-02", allow=["total_change"], reason="the first run")
    engine.let_go()
    columns = "CAST(order_hour AS VARCHAR), channel, order_count, amount_cents"
    assert engine.rows(f"SELECT {columns} FROM hourly_orders ORDER BY 1, 2") == HOURS_AFTER


def test_a_filter_that_can_never_match_an_hour_is_told(engine: Database, folder: Path) -> None:
    engine.execute(HOURLY)
    found = drafted(
        engine,
        folder,
        "INSERT INTO hourly_orders SELECT date_trunc('hour', o.ordered_at) AS order_hour, channel, count(*) AS"
        " order_count, sum(amount_cents) AS amount_cents FROM (SELECT * FROM orders_fact WHERE order_date ="
        " '{{ ds }}') AS o WHERE o.ordered_at >= '{{ ds }}' GROUP BY 1, 2",
        name="hourly_orders",
    )
    told = "range: the job limits order_date, by the day, and a slice is an hour; order_date between :start and :end"
    assert f"{told} may never be true: limit a time by hand" in said(found)


def test_a_date_that_stays_in_the_source_is_told(engine: Database, folder: Path) -> None:
    engine.execute(HOURLY)
    found = drafted(
        engine,
        folder,
        "INSERT INTO hourly_orders SELECT date_trunc('hour', ordered_at) AS order_hour, channel, count(*) AS"
        " order_count, sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date = DATE '2026-01-02'"
        " GROUP BY 1, 2",
        name="hourly_orders",
    )
    assert "range: order_date = CAST('2026-01-02' AS DATE) stays in the source as it is" in said(found)


@pytest.mark.parametrize(
    "condition",
    [
        "date_trunc('month', order_date) = '{{ month }}'",
        "order_date = '{{ ds }}' AND date_trunc('hour', ordered_at) = '{{ ds }}'",
    ],
)
def test_a_job_that_runs_by_another_unit_fills_slices_of_days(condition: str, engine: Database, folder: Path) -> None:
    found = drafted(
        engine,
        folder,
        "INSERT INTO daily_orders SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS"
        f" amount_cents FROM orders_fact WHERE {condition} GROUP BY 1, 2",
    )
    assert "and a slice is a day; the draft limits" in said(found)
    target = reslice.open(folder / "reslice.yml").target("daily_orders")
    target.run("2026-01-01..2026-01-02", allow=["total_change"], reason="the first run")
    engine.let_go()
    columns = "CAST(order_date AS VARCHAR), channel, order_count, amount_cents"
    assert engine.rows(f"SELECT {columns} FROM daily_orders ORDER BY 1, 2") == AFTER["every"]
