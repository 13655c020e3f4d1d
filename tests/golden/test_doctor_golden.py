"""What doctor prints and the JSON it writes, compared with files that are read in review."""

from __future__ import annotations

import pytest

from reslice.doctor import Diagnosis, Finding, Health
from reslice.report_doctor import diagnosis_json, diagnosis_text
from reslice.report_json import dumped
from tests.golden.test_golden import agree

OK, ADVICE, WARNING, WRONG = Health
INDEX = 'CREATE UNIQUE INDEX "daily_orders_grain" ON "main"."daily_orders" ("order_date", "channel")'

DATABASE = (
    Finding(None, "connection", OK, "duckdb:///retail.duckdb, duckdb 2.0.1"),
    Finding(None, "functions", OK, "the database's own give the known fingerprint"),
)
WELL = Diagnosis(
    "duckdb",
    "2.0.1",
    (
        *DATABASE,
        Finding("daily_orders", "contract", OK, "retail.main.daily_orders has the columns of the contract"),
        Finding("daily_orders", "repeated_keys", OK, "none in 5 rows"),
    ),
)
ILL = Diagnosis(
    "duckdb",
    "2.0.1",
    (
        *DATABASE,
        Finding("daily_orders", "unique_key", ADVICE, "none on the grain (order_date, channel)", INDEX),
        Finding(
            "daily_orders",
            "repeated_keys",
            WRONG,
            "1 key stands in 2 rows; e.g. (2026-01-02, we\nb) 2 times",
            "reslice plan daily_orders 2026-01-02",
        ),
        Finding("daily_orders", "abandoned_runs", WARNING, "r-0001 never ended", "reslice show r-0001"),
        Finding(
            "東京", "contract", WRONG, "the database has no table 東京", "create the table, or correct the contract"
        ),
    ),
)


@pytest.mark.parametrize(("name", "diagnosis"), [("doctor_well", WELL), ("doctor_ill", ILL)])
def test_text_and_json_of_a_diagnosis(name: str, diagnosis: Diagnosis) -> None:
    agree(f"{name}.txt", diagnosis_text(diagnosis, place="-C shop"))
    agree(f"{name}.json", dumped(diagnosis_json(diagnosis, place="-C shop"), "utf-8"))


def test_no_value_begins_a_line() -> None:
    lines = diagnosis_text(ILL).split("\n")
    assert not [line for line in lines if not line.isprintable()]
    assert [line for line in lines if line.startswith("next:")] == [lines[-1]]
