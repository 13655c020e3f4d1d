"""`init --table`: what a table is, read from its keys, types and rows; and that a plan works at once."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reslice import contract_file
from reslice.cli import main
from reslice.contract import Contract, Method
from tests.conformance.databases import Database, only


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def unsure(self) -> list[str]:
        return [line.removeprefix("unsure: ") for line in self.out.splitlines() if line.startswith("unsure: ")]


Reslice = Callable[..., Answer]
POSTGRES16_SLOW = True


@pytest.fixture
def folder(engine: Database) -> Path:
    return engine.folder


@pytest.fixture
def reslice(engine: Database, folder: Path, capsys: pytest.CaptureFixture[str]) -> Reslice:
    def call(*arguments: str) -> Answer:
        engine.let_go()
        code = main(["-C", str(folder), *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def sql(engine: Database, *statements: str) -> list[Any]:
    """Run statements on the database, and return the rows of the last query among them."""
    found: list[Any] = []
    for statement in statements:
        if statement.startswith("SELECT"):
            found = engine.rows(statement)
        else:
            engine.execute(statement)
    return found


def files(folder: Path) -> list[str]:
    """Return the names of the files beside the database."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("warehouse"))


def contract(folder: Path, name: str = "t") -> Contract:
    return contract_file.load(folder / "reslice.yml").targets[name]


def names(found: Contract) -> tuple[list[str], str, list[str], dict[str, str]]:
    """Return grain, slice, measures and stamps of a contract as plain values."""
    slice_text = f"{found.slice.column} {found.slice.unit} {found.slice.timezone}"
    stamps = {stamp.column: str(stamp.value) for stamp in found.stamps}
    return [each.name for each in found.grain], slice_text, [each.name for each in found.measures], stamps


DAYS = "(SELECT DATE '2026-01-01' + CAST(i AS INTEGER) AS d, i FROM generate_series(0, 5) AS days (i)) AS some_days"

TABLES: dict[str, tuple[tuple[str, ...], Any]] = {
    "primary key": (
        (
            "CREATE TABLE t (n BIGINT, channel VARCHAR, day DATE, PRIMARY KEY (day, channel))",
            f"INSERT INTO t SELECT i, 'web', d FROM {DAYS}",
        ),
        (["channel", "day"], "day day UTC", ["n"], {}),
    ),
    "unique index": (
        (
            "CREATE TABLE t (day DATE, shop VARCHAR, kind VARCHAR, n BIGINT)",
            "CREATE UNIQUE INDEX i ON t (day, shop)",
            f"INSERT INTO t SELECT d, 's', 'k', i FROM {DAYS}",
        ),
        (["day", "shop"], "day day UTC", ["kind", "n"], {}),
    ),
    "key without a date is left aside": (
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, day DATE, channel VARCHAR, n BIGINT)",
            f"INSERT INTO t SELECT i, d, 'web', i FROM {DAYS}",
        ),
        (["id", "day", "channel"], "day day UTC", ["n"], {}),
    ),
    "by rows": (
        (
            "CREATE TABLE t (day DATE, channel VARCHAR, orders BIGINT, cents BIGINT)",
            f"INSERT INTO t SELECT d, c, i, i * 10 FROM {DAYS}, (VALUES ('a'), ('b')) AS v (c)",
        ),
        (["day", "channel"], "day day UTC", ["orders", "cents"], {}),
    ),
    "another number tells rows apart": (
        (
            "CREATE TABLE t (day DATE, channel VARCHAR, age INTEGER, n BIGINT)",
            f"INSERT INTO t SELECT d, 'web', a, 1 FROM {DAYS}, generate_series(0, 2) AS ages (a)",
        ),
        (["day", "channel", "age"], "day day UTC", ["n"], {}),
    ),
    "a name that goes with an id is a measure": (
        (
            "CREATE TABLE t (week_start DATE, shop_id INTEGER, shop_name VARCHAR, sales BIGINT)",
            "INSERT INTO t SELECT DATE '2026-01-05' + CAST(i * 7 AS INTEGER), s, 'shop ' || s, i"
            " FROM generate_series(0, 4) AS w (i), generate_series(0, 2) AS v (s)",
        ),
        (["week_start", "shop_id"], "week_start week UTC", ["shop_name", "sales"], {}),
    ),
    "months": (
        (
            "CREATE TABLE t (m DATE, region VARCHAR, cents BIGINT)",
            "INSERT INTO t SELECT DATE '2025-01-01' + i * INTERVAL '1 month', 'eu', i"
            " FROM generate_series(0, 4) AS w (i)",
        ),
        (["m", "region"], "m month UTC", ["cents"], {}),
    ),
    "quarters": (
        (
            "CREATE TABLE t (q DATE, cents BIGINT)",
            "INSERT INTO t SELECT DATE '2025-01-01' + i * INTERVAL '3 months', i FROM generate_series(0, 4) AS w (i)",
        ),
        (["q"], "q quarter UTC", ["cents"], {}),
    ),
    "midnights are days": (
        ("CREATE TABLE t (moment TIMESTAMP, n BIGINT)", f"INSERT INTO t SELECT d::TIMESTAMP, i FROM {DAYS}"),
        (["moment"], "moment day UTC", ["n"], {}),
    ),
    "hours": (
        (
            "CREATE TABLE t (moment TIMESTAMPTZ, n BIGINT)",
            "INSERT INTO t SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' + i * INTERVAL '1 hour', i"
            " FROM generate_series(0, 29) AS h (i)",
        ),
        (["moment"], "moment hour UTC", ["n"], {}),
    ),
    "iso text": (
        (
            "CREATE TABLE t (ds VARCHAR, channel VARCHAR, n BIGINT)",
            f"INSERT INTO t SELECT d::VARCHAR, 'web', i FROM {DAYS}",
        ),
        (["ds", "channel"], "ds day UTC", ["n"], {}),
    ),
    "integer yyyymmdd": (
        (
            "CREATE TABLE t (date_key INTEGER, shop_id INTEGER, n BIGINT)",
            "INSERT INTO t SELECT CAST(replace(CAST(d AS VARCHAR), '-', '') AS INTEGER), s, 1"
            f" FROM {DAYS}, generate_series(0, 1) AS v (s)",
        ),
        (["date_key", "shop_id"], "date_key day UTC", ["n"], {}),
    ),
    "stamps": (
        (
            "CREATE TABLE t (day DATE, n BIGINT, loaded_at TIMESTAMPTZ, etl_batch_id VARCHAR, updated_at TIMESTAMP)",
            f"INSERT INTO t SELECT d, i, now(), 'b-1', now()::TIMESTAMP FROM {DAYS}",
        ),
        (["day"], "day day UTC", ["n"], {"loaded_at": "run_time", "etl_batch_id": "run_id", "updated_at": "run_time"}),
    ),
    "an id of a batch that is a number is no stamp": (
        ("CREATE TABLE t (day DATE, n BIGINT, batch_id BIGINT)", f"INSERT INTO t SELECT d, i, 7 FROM {DAYS}"),
        (["day"], "day day UTC", ["n", "batch_id"], {}),
    ),
    "generated and identity columns are left out": (
        (
            "CREATE SEQUENCE s",
            "CREATE TABLE t (id BIGINT DEFAULT nextval('s'), day DATE, n BIGINT, twice BIGINT GENERATED)",
            f"INSERT INTO t (day, n) SELECT d, i FROM {DAYS}",
        ),
        (["day"], "day day UTC", ["n"], {}),
    ),
    "an empty table": (
        ("CREATE TABLE t (sales_month DATE, region VARCHAR, cents BIGINT)",),
        (["sales_month", "region"], "sales_month month UTC", ["cents"], {}),
    ),
    "a date of loading is not the slice": (
        (
            "CREATE TABLE t (load_date DATE, day DATE, n BIGINT)",
            f"INSERT INTO t SELECT DATE '2026-02-01', d, i FROM {DAYS}",
        ),
        (["day"], "day day UTC", ["load_date", "n"], {}),
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_read(case: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    statements, wanted = TABLES[case]
    sql(engine, *(text.replace("GENERATED", engine.generated("n * 2")) for text in statements))
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    found = contract(folder)
    assert names(found) == wanted
    types = dict(sql(engine, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't'"))
    for name in found.columns:  # the source names every column with its type
        assert f"AS {types[name]}) AS {name}" in found.source.text
    planned = reslice("plan", "t", "2026-01-01..2026-12-31" if found.slice.unit != "week" else "2026-W02")
    assert planned.code == 2 and "source_of_t does not exist" in planned.err.replace('"', "")


MEASURES = {
    "bigint": ("BIGINT", "0", "5", (0, False, None)),
    "negative": ("BIGINT", "-1", "5", (None, False, None)),
    "null": ("BIGINT", "NULL", "5", (0, True, None)),
    "decimal": ("DECIMAL(10, 2)", "0.10", "5", (0, False, None)),
    "float of two digits": ("FLOAT8", "0.25", "5", (0, False, 2)),
    "float of four digits": ("FLOAT8", "0.1234", "5", (0, False, 4)),
    "float without end": ("FLOAT8", "1.0 / 3", "5", (0, False, 6)),
    "text": ("VARCHAR", "'x'", "'y'", (None, False, None)),
    "boolean": ("BOOLEAN", "true", "NULL", (None, True, None)),
}


@pytest.mark.parametrize("case", MEASURES)
def test_options_of_a_measure_are_true_of_the_rows(case: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    type_text, first, second, wanted = MEASURES[case]
    sql(engine, f"CREATE TABLE t (day DATE PRIMARY KEY, x_total {type_text}, n INTEGER)",
        f"INSERT INTO t VALUES ('2026-01-01', {first}, 1), ('2026-01-02', {second}, 2)")  # fmt: skip
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    found = contract(folder).measures[0]
    assert (None if found.minimum is None else int(found.minimum), found.nulls_allowed, found.scale) == wanted


@pytest.mark.parametrize(
    "name",
    ["net_change", "balance", "mean_temperature", "latitude", "arr_delay", "celsius", "max_deg", "reading", "status"],
)
def test_what_may_fall_below_zero_has_no_minimum(name: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, f"CREATE TABLE t (day DATE PRIMARY KEY, {name} BIGINT)", "INSERT INTO t VALUES ('2026-01-01', 3)")
    assert reslice("init", "--table", "t", "--connection", engine.url).code == 0
    assert contract(folder).measures[0].minimum is None


@pytest.mark.parametrize("name", ["orders", "amount_cents", "n", "passengers", "total_price", "bytes", "visits"])
def test_counts_and_amounts_have_a_minimum(name: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, f"CREATE TABLE t (day DATE PRIMARY KEY, {name} BIGINT)", "INSERT INTO t VALUES ('2026-01-01', 3)")
    assert reslice("init", "--table", "t", "--connection", engine.url).code == 0
    assert contract(folder).measures[0].minimum == 0


def test_a_minimum_that_is_not_proposed_is_told(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (day DATE PRIMARY KEY, reading FLOAT8)", "INSERT INTO t VALUES ('2026-01-01', 3.5)")
    told = "never below 0 in 1 row, and its name does not say that it cannot be"
    assert told in reslice("init", "--table", "t", "--connection", engine.url).out
    assert told in (folder / "reslice.yml").read_text()


def test_a_null_key_is_allowed_and_told(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (day DATE, region VARCHAR, n BIGINT)",
        "INSERT INTO t VALUES ('2026-01-01', NULL, 1), ('2026-01-01', 'eu', 1), ('2026-01-02', NULL, 1)")  # fmt: skip
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    assert [column.nulls_allowed for column in contract(folder).grain] == [False, True]
    assert "grain: region is NULL in 2 rows; NULL is kept as a key of its own" in answer.unsure


def test_doubled_rows_are_told_with_an_example(engine: Database, folder: Path, reslice: Reslice) -> None:
    rows = "('2026-01-01', 'web', 5), ('2026-01-01', 'web', 5), ('2026-01-02', 'web', 5)"
    sql(engine, "CREATE TABLE t (day DATE, channel VARCHAR, n BIGINT)", f"INSERT INTO t VALUES {rows}")
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    assert names(contract(folder))[0] == ["day", "channel"]
    told = next(text for text in answer.unsure if "repeats a key" in text)
    assert "1 row of 3" in told and "such as (2026-01-01, web) 2 times" in told


def test_values_within_a_day_are_told(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (moment TIMESTAMP, n BIGINT)", "INSERT INTO t VALUES ('2026-01-01 10:11:12', 1)")
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    assert any("values of moment lie within a day" in text for text in answer.unsure)


ANY_TARGET = "targets: {t: {table: t, source: t.sql, grain: [d], slice: {column: d, unit: day}, measures: [n]}}\n"


def test_days_of_the_sessions_zone_are_seen(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (d TIMESTAMPTZ, n BIGINT)",
        "INSERT INTO t VALUES ('2026-03-28 00:00:00+01', 1), ('2026-03-30 00:00:00+02', 2)")  # fmt: skip
    (folder / "reslice.yml").write_text(f"version: 1\nconnection: '{engine.url}'\n{ANY_TARGET}")
    (folder / "t.sql").write_text("SELECT d, n FROM t WHERE d BETWEEN :start AND :end")
    engine.set_session_zone("Europe/Amsterdam")
    from reslice.init.propose import propose

    with engine.project(folder / "reslice.yml").engine(read_only=True) as connected:
        target = connected.survey.find("t")
        assert target is not None
        found = propose(connected, target)
    assert (found.slice.unit, found.slice.timezone, found.newest) == ("day", "Europe/Amsterdam", "2026-03-30")
    assert any("in Europe/Amsterdam" in text for text in found.unsure)


def test_a_small_view_is_looked_at_whole_and_an_odd_day_is_no_bound(engine: Database, folder: Path) -> None:
    sql(engine, "CREATE TABLE t (d DATE, n NUMERIC(9, 2))",
        "INSERT INTO t VALUES ('2026-01-01', 1), ('2026-01-02', -2.5), ('infinity', NULL)",
        "CREATE VIEW v AS SELECT * FROM t")  # fmt: skip
    (folder / "reslice.yml").write_text(f"version: 1\nconnection: '{engine.url}'\n{ANY_TARGET}")
    (folder / "t.sql").write_text("SELECT d, n FROM t WHERE d BETWEEN :start AND :end")
    for name in ("t", "v"):
        with engine.project(folder / "reslice.yml").engine(read_only=True) as connected:
            target = connected.survey.find(name)
            assert target is not None
            found = connected.survey.profile(target)
        assert (found.rows, found.rows_seen, found.is_estimated) == (3, 3, False)
        day, number = found.columns["d"], found.columns["n"]
        assert day.slices is not None and (day.slices.first, day.slices.last) == ("2026-01-01", "2026-01-02")
        assert (number.nulls, number.distinct, number.lowest) == (1, 2, Decimal("-2.50"))


LARGE = (
    "CREATE TABLE t AS SELECT DATE '2020-01-01' + CAST(floor(i / 2000.0) AS INTEGER) AS day, i % 2000 AS shop_id,"
    " i AS n"
    " FROM generate_series(0, 399999) AS rows_made (i)",
    "INSERT INTO t VALUES ('2020-01-01', 0, -1)",
)


def test_a_large_table_is_looked_at_in_part(
    engine: Database, folder: Path, reslice: Reslice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reslice.engines import survey

    monkeypatch.setattr(survey, "SAMPLE_ROWS", 10_000 if engine.name == "duckdb" else 50_000)
    sql(engine, *LARGE, "CREATE INDEX by_day ON t (day)", "CREATE INDEX by_n ON t (n)")
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    found = contract(folder)
    assert names(found)[:3] == (["day", "shop_id"], "day day UTC", ["n"])
    assert "values in a sample of the rows, 2020-01-01 to 2020-07-18" in answer.out
    keys = re.search(r"no two of (\d+) rows agree in it", answer.out)
    assert keys is not None and 2000 <= int(keys[1]) <= 50_000 and int(keys[1]) % 2000 == 0  # of the newest slices
    if engine.name == "duckdb":
        assert found.measures[0].minimum is None  # bounds are of every row


@only("postgresql", "DuckDB counts every row")
def test_rows_of_a_large_table_are_not_counted(
    engine: Database, folder: Path, reslice: Reslice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reslice.engines import survey

    monkeypatch.setattr(survey, "SAMPLE_ROWS", 10_000 if engine.name == "duckdb" else 50_000)
    sql(engine, *LARGE, "ALTER TABLE t ADD COLUMN m BIGINT", "UPDATE t SET m = n WHERE n % 2 = 0")
    asked: list[str] = []
    engine.follow_statements(monkeypatch, asked.append)
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    assert answer.code == 0
    whole = [text for text in asked if 'FROM "' in text and '."t"' in text and "count(" in text]
    assert whole and all("TABLESAMPLE" in text or " WHERE " in text for text in whole)
    told = re.search(r"n: \{min: 0\}  \(never below 0 in a sample of (\d+) rows\)", answer.out)
    assert told is not None and 1000 < int(told[1]) < 100_000
    assert re.search(r"NULL in \d+ rows of a sample of \d+", answer.out)
    assert [each.nulls_allowed for each in contract(folder).measures] == [False, True]


def test_two_dates_are_told(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (order_date DATE, ship_date DATE, n BIGINT)",
        "INSERT INTO t VALUES ('2026-01-01', '2026-01-02', 1)")  # fmt: skip
    answer = reslice("init", "--table", "t", "--connection", engine.url)
    assert "slice: order_date decides it; ship_date could as well" in answer.unsure


def test_foreign_keys_ask_for_merge(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE t (day DATE PRIMARY KEY, n BIGINT)", "CREATE TABLE u (day DATE REFERENCES t (day))",
        "INSERT INTO t VALUES ('2026-01-01', 3)")  # fmt: skip
    assert reslice("init", "--table", "t", "--connection", engine.url).code == 0
    assert contract(folder).method is Method.MERGE


FACTS = (
    "CREATE TABLE order_events (order_id INTEGER, ordered_at TIMESTAMP, channel VARCHAR, amount_cents BIGINT)",
    "INSERT INTO order_events VALUES (1, '2026-01-01 09:00:00', 'web', 1000), (2, '2026-01-01 23:59:59', 'web', 500),"
    " (3, '2026-01-02 00:00:00', 'store', 700)",
    "CREATE TABLE daily (day DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)",
)


def test_the_table_it_comes_from_is_found_and_borne_out(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, *FACTS, "CREATE TABLE daily_backup AS SELECT * FROM daily",
        "INSERT INTO daily VALUES ('2026-01-01', 'web', 1, 1), ('2026-01-02', 'store', 1, 700)")  # fmt: skip
    answer = reslice("init", "--table", "daily", "--connection", engine.url)
    told = "source: order_events is a guess from the names of its columns; for 2026-01-02 it gives 1 of 1 group as the"
    assert answer.unsure[0] == f"{told} table has it, which bears it out"
    assert answer.out.splitlines()[-1].endswith("plan daily 2026-01-02")
    planned = reslice("plan", "daily", "2026-01-01..2026-01-02", "--json")
    assert planned.code == 0
    assert planned.json["diff"] == {"added": 0, "changed": 1, "removed": 0, "unchanged": 1}
    run = reslice("run", "daily", "2026-01", "--allow", "total_change", "--reason", "the first run")
    assert run.code == 0
    rows = sql(engine, "SELECT CAST(day AS VARCHAR), channel, order_count, amount_cents FROM daily ORDER BY 1, 2")
    assert rows == [("2026-01-01", "web", 2, 1500), ("2026-01-02", "store", 1, 700)]


def test_days_of_a_table_become_the_times_of_the_target(engine: Database, reslice: Reslice) -> None:
    sql(engine, "CREATE TABLE sales (sold_on DATE, shop VARCHAR, cents BIGINT)",
        "INSERT INTO sales VALUES ('2026-01-05', 'a', 5), ('2026-01-06', 'a', 7), ('2026-02-01', 'a', 1)",
        "CREATE TABLE monthly (month_start TIMESTAMP, shop VARCHAR, cents BIGINT)",
        "INSERT INTO monthly VALUES ('2026-01-01', 'a', 12), ('2026-02-01', 'a', 1)")  # fmt: skip
    answer = reslice("init", "--table", "monthly", "--connection", engine.url)
    assert answer.unsure[0].startswith("source: sales is a guess") and "bears it out" in answer.unsure[0]
    planned = reslice("plan", "monthly", "2026-01..2026-02", "--json")
    assert planned.code == 0 and planned.json["diff"] == {"added": 0, "changed": 0, "removed": 0, "unchanged": 2}


def test_a_guess_that_meets_no_group_is_not_written(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, *FACTS, "INSERT INTO daily VALUES ('2026-05-01', 'web', 1, 1)")
    answer = reslice("init", "--table", "daily", "--connection", engine.url)
    assert answer.unsure[0].startswith("source: which table daily is computed from is not known; source_of_daily")


SIBLINGS = (
    FACTS[0],
    "INSERT INTO order_events VALUES (1, '2026-01-01 09:00:00', 'web', 1000), (2, '2026-01-01 23:59:59', 'web', 500),"
    " (3, '2026-01-02 00:00:00', 'store', 700), (4, '2026-01-02 09:00:00', 'web', 50)",
    'CREATE TABLE "Daily Sales" ("Day" DATE, "Channel" VARCHAR, order_count BIGINT, amount_cents BIGINT)',
    "INSERT INTO \"Daily Sales\" VALUES ('2026-01-01', 'web', 2, 1500), ('2026-01-02', 'store', 1, 700),"
    " ('2026-01-02', 'web', 1, 50)",
    'CREATE TABLE dup AS SELECT "Day" AS day, "Channel" AS channel, order_count, amount_cents, \'x\' AS run_id'
    ' FROM "Daily Sales"',
)


@pytest.mark.parametrize("table", ['"Daily Sales"', "dup"])
def test_another_aggregate_is_not_taken_for_the_source(
    table: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    sql(engine, *SIBLINGS)
    answer = reslice("init", "it", "--table", table, "--connection", engine.url)
    assert "FROM order_events\n" in contract(folder, "it").source.text
    assert answer.unsure[0].startswith("source: order_events is a guess from the names of its columns; for 2026-01-02")


DAILY = "('2026-01-01', 'web', {0}), ('2026-01-02', 'store', {0}), ('2026-01-02', 'web', {0})"
AGGREGATES = {
    "counts": ("CREATE TABLE other (d DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)", "2, 50",
               "it has the same measures, counts among them"),
    "one row per grain": ("CREATE TABLE other (d DATE, channel VARCHAR, amount_cents BIGINT)", "50",
                          "it has one row per d, channel"),
    "a target": ("CREATE TABLE other (d DATE, channel VARCHAR, amount_cents BIGINT, shop INTEGER)", "25, 1",
                 "it is what the target first fills"),
}  # fmt: skip


@pytest.mark.parametrize("case", AGGREGATES)
def test_where_there_is_only_an_aggregate_agreeing_proves_nothing(
    case: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    table, values, why = AGGREGATES[case]
    sql(engine, table, f"INSERT INTO other VALUES {DAILY.format(values)}",
        "CREATE TABLE t (day DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)",
        f"INSERT INTO t VALUES {DAILY.format('2, 50')}")  # fmt: skip
    if case == "a target":
        sql(engine, f"INSERT INTO other VALUES {DAILY.format('25, 2')}")
        assert reslice("init", "first", "--table", "other", "--connection", engine.url).code == 0
    answer = reslice("init", "t", "--table", "t", "--connection", engine.url)
    assert "FROM other\n" in contract(folder).source.text
    told = f"source: other is a guess from the names of its columns, and seems to be an aggregate itself: {why}; that"
    assert told in answer.unsure[0] and "bears it out" not in answer.out


def test_a_measure_that_nothing_tells_is_null_and_refused(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(
        engine,
        *FACTS,
        "ALTER TABLE daily ADD COLUMN margin BIGINT",
        "INSERT INTO daily VALUES ('2026-01-02', 'store', 1, 700, 5)",
    )
    answer = reslice("init", "--table", "daily", "--connection", engine.url)
    assert "source: how margin is computed is not known; it is NULL until you write it" in answer.unsure
    planned = reslice("plan", "daily", "2026-01-02")
    assert planned.code == 3 and "measure_null" in planned.err


NOTHING = {
    "no date": (
        "CREATE TABLE t (name VARCHAR, n BIGINT)",
        "nothing_to_draft",
        2,
        "t has none: name {varchar}, n {bigint}",
    ),
    "no measure": ("CREATE TABLE t (day DATE, channel VARCHAR)", "nothing_to_draft", 2, "none is left for a measure"),
    "a view": ("CREATE VIEW t AS SELECT DATE '2026-01-01' AS day, 1 AS n", "target_not_table", 3, "t is a view"),
    "no table": ("CREATE TABLE tt (day DATE, n BIGINT)", "target_missing", 3, "no table t; did you mean tt?"),
}


@pytest.mark.parametrize("case", NOTHING)
def test_what_cannot_be_drafted_is_said_and_no_file_is_left(
    case: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    statement, kind, code, words = NOTHING[case]
    sql(engine, statement)
    answer = reslice("init", "t", "--table", "t", "--connection", engine.url)
    assert (answer.code, answer.out) == (code, "")
    words = words.format(varchar=engine.type_name("varchar"), bigint=engine.type_name("bigint"))
    assert f"[{kind}]" in answer.err and words in answer.err
    assert [line.split(":")[0].strip() for line in answer.err.splitlines()[1:]] == [
        "asked",
        "found",
        "unchanged",
        "next",
    ]
    assert files(folder) == []


# Files.


def ready(engine: Database) -> None:
    sql(engine, "CREATE TABLE t (day DATE PRIMARY KEY, n BIGINT)", "CREATE TABLE u (day DATE PRIMARY KEY, n BIGINT)",
        "INSERT INTO t VALUES ('2026-01-01', 1)", "INSERT INTO u VALUES ('2026-01-01', 1)")  # fmt: skip


def test_a_second_target_leaves_every_other_byte(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    (folder / "f.sql").write_text("SELECT day, n FROM t WHERE day BETWEEN :start AND :end")
    before = (
        "# ours\nversion: 1   # one\nconnection: 'URL'\ntargets:\n    # the first\n    first:\n"
        "        table: t\n        source: f.sql\n        grain: [ day ]\n        slice: {column: day,   unit: day}\n"
        "        measures: [n]   # all\n\n# the end\n"
    )
    before = before.replace("URL", engine.url)
    (folder / "reslice.yml").write_text(before)
    assert reslice("init", "second", "--table", "u").code == 0
    after = (folder / "reslice.yml").read_text()
    start = after.index("    second:\n")
    end = after.index("\n# the end")
    assert after[:start] + after[end:] == before
    file = contract_file.load(folder / "reslice.yml")
    assert [*file.targets] == ["first", "second"]
    assert file.targets["second"].table == "u"


def test_a_target_of_the_name_is_not_overwritten(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.suffix in (".yml", ".sql")}
    again = reslice("init", "t", "--table", "u")
    assert again.code == 2 and "has a target t already" in again.err
    assert {path: path.read_bytes() for path in before} == before


def test_a_source_that_is_there_is_used_as_it_is(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    text = "SELECT day, n + 1 AS n FROM u WHERE day BETWEEN :start AND :end"
    (folder / "sql").mkdir()
    (folder / "sql" / "t.sql").write_text(text)
    answer = reslice("init", "t", "--table", "t", "--connection", engine.url, "--json")
    assert answer.json["files_written"] == ["reslice.yml"] and answer.json["source"] == text
    assert answer.json["notes"] == ["sql/t.sql was there already; the contract names it, and it stays as it is"]
    assert (folder / "sql" / "t.sql").read_text() == text
    assert reslice("plan", "t", "2026-01-01", "--json").json["totals"] == {"n": {"before": 1, "after": 2}}


def test_another_file_of_the_name_stays(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    (folder / "sql").mkdir()
    (folder / "sql" / "t.sql").write_text("DELETE FROM t")
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    assert (folder / "sql" / "t.sql").read_text() == "DELETE FROM t"
    assert contract(folder).source.name == "sql/t_source.sql"


def test_what_is_in_the_way_of_the_source_leaves_no_contract(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    (folder / "sql").write_text("no folder")
    answer = reslice("init", "t", "--table", "t", "--connection", engine.url)
    assert answer.code == 2 and "sql is in the way; init overwrites nothing" in answer.err
    assert (folder / "sql").read_text() == "no folder"
    assert not (folder / "reslice.yml").exists()


@only("duckdb", "a database is a file")
def test_the_database_is_only_read(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    engine.let_go()
    os.chmod(folder / "warehouse.duckdb", 0o444)
    before = (folder / "warehouse.duckdb").read_bytes()
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    assert (folder / "warehouse.duckdb").read_bytes() == before


# Connections.


@only("duckdb", "a database is a file, which a folder may have")
def test_without_a_connection_the_command_that_has_one_is_printed(
    engine: Database, folder: Path, reslice: Reslice
) -> None:
    ready(engine)
    answer = reslice("init", "t", "--table", "t")
    assert answer.code == 2 and "this folder has warehouse.duckdb" in answer.err
    command = answer.err.splitlines()[-1].split("next:")[1].strip()
    place = ["-C", str(folder)]
    assert shlex.split(command)[:3] == ["reslice", *place]
    assert reslice(*shlex.split(command)[3:]).code == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_password_is_never_repeated(form: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    url = "postgresql://ada:s3cr3t@db/shop"
    answer = reslice("init", "t", "--table", "t", "--connection", url, *(["--json"] if form == "json" else []))
    assert answer.code == 2
    assert "s3cr3t" not in answer.out + answer.err
    assert "--connection '${env:RESLICE_URL}'" in answer.out + answer.err
    assert files(folder) == []


def test_a_connection_from_the_environment_is_written_as_it_is_named(
    engine: Database, folder: Path, reslice: Reslice, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(engine)
    monkeypatch.setenv("SHOP_URL", engine.url)
    assert reslice("init", "t", "--table", "t", "--connection", "${env:SHOP_URL}").code == 0
    assert 'connection: "${env:SHOP_URL}"' in (folder / "reslice.yml").read_text()
    assert contract(folder).table == "t"


def way_on(answer: Answer) -> list[str]:
    """Return the words of the command that an error ends with."""
    return shlex.split(answer.err.splitlines()[-1].split("next:")[1].strip())[3:]


@only("duckdb", "a database is a file")
@pytest.mark.parametrize(
    "url", ["warehouse.duckdb", "duckdb://warehouse.duckdb", "duckdb:warehouse.duckdb", "./warehouse.duckdb"]
)
def test_a_file_that_is_no_url_becomes_one(url: str, engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    answer = reslice("init", "--table", "t", "--connection", url)
    assert answer.code == 2
    assert way_on(answer)[:4] == ["init", "--table", "t", "--connection"]
    assert reslice(*way_on(answer)).code == 0


@pytest.mark.parametrize(("name", "meant"), [("mart.weekly_tmp", "mart.weekly_temp"), ("daily_sale", '"Daily Sale"')])
def test_the_table_that_was_meant_is_in_the_next_command(
    name: str, meant: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    sql(engine, "CREATE SCHEMA mart", "CREATE TABLE mart.weekly_temp (day DATE PRIMARY KEY, n BIGINT)",
        'CREATE TABLE "Daily Sale" (day DATE PRIMARY KEY, n BIGINT)')  # fmt: skip
    answer = reslice("init", name.rpartition(".")[2], "--table", name, "--connection", engine.url)
    assert answer.code == 3 and f"did you mean {meant}?" in answer.err
    assert way_on(answer) == ["init", name.rpartition(".")[2], "--table", meant, "--connection", engine.url]
    assert reslice(*way_on(answer)).code == 0


def test_the_dialect_that_was_meant_is_in_the_next_command(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    (folder / "j.sql").write_text("INSERT INTO t SELECT day, n FROM u WHERE day = '{{ ds }}'")
    answer = reslice("init", "--source", str(folder / "j.sql"), "--dialect", "snowflke", "--connection", engine.url)
    assert answer.code == 2 and "--dialect snowflake" in answer.err
    assert reslice(*way_on(answer)).code == 0


@pytest.mark.parametrize(
    ("name", "meant"), [("bad name!", "bad_name"), ("../x", "x"), ("a/b", "a_b"), ("-", "target"), (".t", "t")]
)
def test_a_name_that_is_none_for_a_file_is_refused(
    name: str, meant: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    ready(engine)
    answer = reslice("init", "--table", "t", "--connection", engine.url, "--", name)
    assert answer.code == 2 and f"{name} holds something else" in answer.err
    assert files(folder) == []
    assert reslice(*way_on(answer)).code == 0
    assert [*contract_file.load(folder / "reslice.yml").targets] == [meant]


def test_a_target_of_a_table_with_an_odd_name_has_a_plain_one(engine: Database, folder: Path, reslice: Reslice) -> None:
    sql(engine, 'CREATE TABLE "Daily  Sales, 東京" (day DATE PRIMARY KEY, n BIGINT)')
    assert reslice("init", "--table", '"Daily  Sales, 東京"', "--connection", engine.url).code == 0
    assert [*contract_file.load(folder / "reslice.yml").targets] == ["Daily_Sales_東京"]


@only("duckdb", "a database is a file; another one of a server needs no more")
def test_another_connection_than_the_files_is_refused(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    assert reslice("init", "u", "--table", "u", "--connection", engine.url).code == 0
    answer = reslice("init", "v", "--table", "u", "--connection", "duckdb:///other.duckdb")
    assert answer.code == 2 and "reslice.yml is about duckdb:///warehouse.duckdb" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Give --table TABLE, --source FILE, or both."),
        (["t", "--dialect", "spark", "--table", "t"], "--dialect goes with --source."),
        (["--sql", "--table", "t"], "--sql goes with --ledger."),
        (["t", "--ledger"], "--ledger stands alone"),
        (["--table", " "], "--table is empty."),
        (["--source", "nope.sql"], "No such file"),
        (["--source", "bytes.sql"], "not UTF-8 text"),
        (["--source", "j.sql", "--dialect", "snowflke"], "did you mean snowflake?"),
    ],
)
def test_words_that_do_not_go_together(
    words: list[str], told: str, engine: Database, folder: Path, reslice: Reslice
) -> None:
    ready(engine)
    (folder / "j.sql").write_text("SELECT 1")
    (folder / "bytes.sql").write_bytes(bytes(range(256)))
    answer = reslice("init", *words)
    assert answer.code == 2 and told in answer.err


# The ledger.


def test_the_ledger_is_made_once(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    made = reslice("init", "--ledger", "--json")
    tables = ["runs", "run_slices", "run_groups", "fences"]
    assert made.code == 0
    (ledger,) = made.json["ledger"]
    assert ledger["schema"] == "reslice" and set(tables) <= {*ledger["made"]} and ledger["present"] == []
    again = reslice("init", "--ledger")
    assert again.code == 0 and "nothing was written: the ledger is there" in again.out
    assert {*engine.table_names("reslice")} == {*ledger["made"]}


def test_a_ledger_of_somebody_else_is_left_alone(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    sql(engine, "CREATE SCHEMA reslice", "CREATE TABLE reslice.runs (kilometres INTEGER)")
    answer = reslice("init", "--ledger")
    assert answer.code == 3 and "[ledger_foreign]" in answer.err
    assert engine.table_names("reslice") == ["runs"]


@only("duckdb", "what is printed on PostgreSQL is tested with its rights")
def test_the_statements_make_the_ledger_by_hand(engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    before = (folder / "warehouse.duckdb").read_bytes()
    script = reslice("init", "--ledger", "--sql")
    assert script.code == 0 and "DuckDB has no grants" in script.out
    assert (folder / "warehouse.duckdb").read_bytes() == before
    sql(engine, script.out)
    assert "nothing was written" in reslice("init", "--ledger").out


# What is loaded.


@pytest.mark.parametrize(
    "words", [["--help"], ["run", "t", "2026-01-01"], ["plan", "t", "2026-01-01"], ["init", "u", "--table", "u"]]
)
def test_only_a_job_loads_the_parser(words: list[str], engine: Database, folder: Path, reslice: Reslice) -> None:
    ready(engine)
    assert reslice("init", "t", "--table", "t", "--connection", engine.url).code == 0
    (folder / "sql" / "t.sql").write_text("SELECT day, n FROM u WHERE day BETWEEN :start AND :end")
    code = (
        "import sys; from reslice.cli import main; "
        f"code = main(['-C', {str(folder)!r}, *{words!r}]); "
        "assert code == 0, code; print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
