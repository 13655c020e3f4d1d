"""`init --source`: jobs of many dialects become contract and source, which plan and run as a person would expect."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import reslice
from reslice import contract_file
from reslice.init import Asked, Initiated, from_job
from reslice.init_job import read_job
from reslice.project import Project
from reslice.values import Outcome
from tests.conformance.init_jobs import CASES, PAID, JobCase

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
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE orders_fact (order_id INTEGER, order_date DATE, ordered_at TIMESTAMP, channel VARCHAR,"
            " status VARCHAR, amount_cents BIGINT)"
        )
        connection.execute(f"INSERT INTO orders_fact VALUES {FACTS}")
        connection.execute(
            "CREATE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT)"
        )
        connection.execute(
            "INSERT INTO daily_orders VALUES ('2026-01-01', 'phone', 4, 400), ('2026-01-03', 'web', 7, 7)"
        )
    return tmp_path


def drafted(folder: Path, text: str, dialect: str | None = None, name: str = "daily_orders") -> Initiated:
    job_file = folder / "job.sql"
    job_file.write_text(text, encoding="utf-8")
    contract = folder / "reslice.yml"
    connection = "duckdb:///w.duckdb"
    contract.write_text(f"version: 1\nconnection: {connection}\ntargets: {{}}\n")
    from reslice.contract import Connection, ProjectFile

    file = ProjectFile(contract, Connection("duckdb", connection, connection, folder / "w.duckdb"), {})
    contract.unlink()
    job = read_job(job_file, dialect, None, name)
    with Project(file).engine(read_only=True) as engine:
        return from_job(engine, Asked(name, contract, connection), job, None)


def plain(text: str) -> str:
    """Return SQL on one line, without comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_job_is_drafted_as_a_person_would(case: JobCase, folder: Path) -> None:
    found = drafted(folder, case.text, case.dialect)
    contract = contract_file.load(folder / "reslice.yml").targets["daily_orders"]
    assert contract.table == "daily_orders"
    assert tuple(column.name for column in contract.grain) == case.grain
    assert (contract.slice.column, str(contract.slice.unit)) == ("order_date", "day")
    assert [measure.name for measure in contract.measures] == ["order_count", "amount_cents"]
    assert [measure.minimum for measure in contract.measures] == [0, 0]
    assert f"WHERE {case.where}" in plain(contract.source.text)
    assert contract.source.text.count(":start") == contract.source.text.count(":end") > 0
    said = "\n".join(found.unsure)
    for words in case.unsure:
        assert words in said
    assert ("translated from" in said) == (case.dialect is not None)
    assert found.next == f"reslice plan daily_orders {case.range}"


@pytest.mark.parametrize("case", [case for case in CASES if case.is_run], ids=lambda case: case.name)
def test_a_draft_plans_and_runs_at_once(case: JobCase, folder: Path) -> None:
    drafted(folder, case.text, case.dialect)
    target = reslice.open(folder / "reslice.yml").target("daily_orders")
    wanted = AFTER[PAID if case.rows == PAID else "every"]
    plan = target.plan("2026-01-01..2026-01-02")
    assert plan.diff is not None
    assert (plan.diff.counts.added, plan.diff.counts.removed) == (len(wanted) - 1, 1)
    run = target.run("2026-01-01..2026-01-02", allow=["total_change"], reason="the first run")
    assert run.outcome is Outcome.PUBLISHED
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        rows = connection.execute(
            "SELECT order_date::VARCHAR, * EXCLUDE order_date FROM daily_orders ORDER BY ALL"
        ).fetchall()
    assert rows == wanted
