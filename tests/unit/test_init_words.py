"""What `init --source` says of a job quotes its SQL as the database of the contract has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.test_init_fuzz import _Survey

from reslice.init.job import read_job
from reslice.init.job_draft import drafted

JOBS = {
    "the draft takes CAST(raw AS {double}), by which it is filtered": (
        "SELECT DATE '2026-01-02' AS order_date, count(*) AS order_count FROM facts"
        " WHERE CAST(raw AS {double}) = DATE '2026-01-02'"
    ),
    "CAST(raw AS {double}) = '2025-01-01' stays in the source as it is": (
        "SELECT order_date, count(*) AS order_count FROM facts"
        " WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' AND CAST(raw AS {double}) = '2025-01-01'"
        " GROUP BY order_date"
    ),
    "range: CAST(raw AS {double}) is limited by the same dates": (
        "SELECT order_date, count(*) AS order_count FROM facts"
        " WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' AND CAST(raw AS {double}) <= '2026-01-02'"
        " GROUP BY order_date"
    ),
    "the job has no upper bound on CAST(raw AS {double})": (
        "SELECT CAST(raw AS {double}) AS order_date, count(*) AS order_count FROM facts"
        " WHERE CAST(raw AS {double}) >= '2026-01-01' GROUP BY 1"
    ),
    "CAST(CAST(raw AS {double}) AS TIMESTAMPTZ) BETWEEN two instants left out": (
        "SELECT CAST(CAST(raw AS {double}) AS timestamptz) AS order_date, count(*) AS order_count FROM facts"
        " WHERE CAST(CAST(raw AS {double}) AS timestamptz) BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY 1"
    ),
    "CAST(raw AS TIMESTAMP) BETWEEN two instants left out": (
        "SELECT CAST(raw AS date) AS order_date, count(*) AS order_count FROM facts"
        " WHERE CAST(raw AS timestamp) BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY 1"
    ),
    "not repeatable: {now} is the time of the run": (
        "SELECT order_date, count(*) AS order_count, max(now()) AS seen FROM facts"
        " WHERE order_date BETWEEN '2026-01-01' AND '2026-01-02' GROUP BY order_date"
    ),
}
WORDS = {
    "duckdb": {"double": "DOUBLE", "now": "NOW()"},
    "postgresql": {"double": "DOUBLE PRECISION", "now": "CURRENT_TIMESTAMP"},
}


class _Database:
    """A database of some engine, without tables."""

    survey = _Survey()

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("database", WORDS)
@pytest.mark.parametrize("said", JOBS)
def test_what_is_said_of_a_job_is_in_the_sql_of_the_database(said: str, database: str, tmp_path: Path) -> None:
    file = tmp_path / "job.sql"
    file.write_text(f"INSERT INTO daily_orders {JOBS[said].format(**WORDS[database])}")
    found = drafted(_Database(database), read_job(file, None, None, None, database), None)  # type: ignore[arg-type]
    _, doubts = found.source(found.alone())
    assert said.format(**WORDS[database]) in "\n".join([*found.unsure, *doubts])
