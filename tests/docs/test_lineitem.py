"""The lineitem example, with the real command line, against its independent computation in plain Python.

DuckDB's generator has an environment of its own, `.venv-tpch`, that `make test` makes. In the sample of scale factor
0.01 and, marked slow, ten times that.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from examples.lineitem import correct, independent, load
from examples.lineitem.__main__ import GENERATOR, READY, YEARS
from examples.lineitem.independent import Key, Shipments

from tests.docs.example_project import absent, as_text, not_equal, query, reslice

TARGET = "daily_shipments"
DAYS_IN_YEARS = 2557
ROOT = Path(__file__).parents[2]

# Read off corrections.json by hand, with the ship dates that every scale factor gives these lines: the days on which a
# figure moves. Order 6 gets another remark, so its day is not among them.
DAYS_THAT_DIFFER = {
    date(1996, 3, 13), date(1996, 4, 2),   # to another month
    date(1996, 2, 3), date(1996, 1, 31),   # to another month
    date(1994, 1, 16), date(1993, 10, 29), date(1998, 10, 9), date(1996, 2, 10), date(1996, 1, 10),
    date(1996, 9, 29), date(1997, 3, 1),
}  # fmt: skip


@pytest.fixture(params=[pytest.param("0.01", id="sample"), pytest.param("0.1", marks=pytest.mark.slow)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a project with generated lines and an empty target."""
    if not READY.exists():
        absent(f"there is no {READY}, so TPC-H cannot be generated: make tpch says why")
    generate = [GENERATOR, "-m", "examples.lineitem.generate", "--into", tmp_path, "--scale", request.param]
    subprocess.run(generate, cwd=ROOT, check=True, capture_output=True)
    load.load(tmp_path)
    return tmp_path


def shipments_of(project: Path) -> dict[Key, Shipments]:
    columns = ", ".join(independent.HEADER)
    rows = query(project / load.DATABASE, f"SELECT {columns} FROM {TARGET}")
    return {(day, mode, flag): Shipments(*measures) for day, mode, flag, *measures in rows}


def days_written_by(project: Path, run: str) -> set[date]:
    sql = f"SELECT DISTINCT ship_date FROM {TARGET} WHERE written_by = '{run}'"
    return {day for (day,) in query(project / load.DATABASE, sql)}


def total(shipments: dict[Key, Shipments], measure: str) -> str:
    return str(sum(getattr(row, measure) for row in shipments.values()))


def test_the_target_follows_the_corrections_and_only_differing_days_are_written(project: Path) -> None:
    before, after = (independent.daily_shipments(project, corrected=corrected) for corrected in (False, True))
    differing = {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert differing == DAYS_THAT_DIFFER

    loaded = reslice(project, "run", TARGET, YEARS)
    assert (loaded["outcome"], loaded["slice"]["count"]) == ("published", DAYS_IN_YEARS)
    assert shipments_of(project) == before
    assert reslice(project, "run", TARGET, YEARS)["outcome"] == "unchanged"

    assert len(correct.correct(project)) == 10
    assert not_equal(project, TARGET, YEARS) == {day.isoformat() for day in differing}
    plan = reslice(project, "plan", TARGET, YEARS)
    for measure in ("quantity", "base_price", "disc_price", "charge"):
        assert plan["totals"][measure] == {"before": total(before, measure), "after": total(after, measure)}, measure
    assert shipments_of(project) == before
    healed = reslice(project, "run", TARGET, YEARS)
    assert shipments_of(project) == after
    assert days_written_by(project, healed["run"]) == differing
    assert days_written_by(project, loaded["run"]) == {key[0] for key in after} - differing
    verified = reslice(project, "verify", TARGET, YEARS)
    assert (verified["repeatable"], verified["equals_source"]) == (True, True)
    assert correct.correct(project) == []
    reslice(project, "restore", healed["run"], "--yes")
    assert shipments_of(project) == before


def test_a_price_is_exact_to_its_last_digit() -> None:
    """Twice two digits, then twice again: by hand, 24710.35 less 4% plus 2%."""
    line = independent.Line(1, 1, Decimal("17.00"), Decimal("24710.35"), Decimal("0.04"), Decimal("0.02"), "N",
                            date(1996, 3, 13), "TRUCK")  # fmt: skip
    assert independent.shipments(line) == Shipments(
        1, Decimal("17.00"), Decimal("24710.35"), Decimal("23721.9360"), Decimal("24196.374720")
    )


def test_a_target_of_fewer_digits_is_refused_and_not_rounded(project: Path) -> None:
    with duckdb.connect(str(project / load.DATABASE)) as connection:
        connection.execute(f"ALTER TABLE {TARGET} ALTER charge TYPE DECIMAL(22, 2)")
    refused = reslice(project, "run", TARGET, "1996-03", code=3)
    assert "charge" in str(refused["error"]["found"])


def test_a_day_after_the_last_is_not_closed(project: Path) -> None:
    with duckdb.connect(str(project / load.DATABASE)) as connection:
        connection.execute("UPDATE lineitem SET l_shipdate = '1999-01-01' WHERE l_orderkey = 1")
    stopped = reslice(project, "run", TARGET, "1999-01-01", code=3)
    assert stopped["error"]["kind"] == "closed_through"


def test_the_rows_as_text_are_the_same(project: Path) -> None:
    """What the story compares: a CSV beside the table, digit by digit."""
    reslice(project, "run", TARGET, "1996-03")
    with (project / "march.csv").open("w", encoding="utf-8") as file:
        module = [sys.executable, "-m", "examples.lineitem.independent", "--from", str(project)]
        subprocess.run(module, cwd=ROOT, check=True, stdout=file)
    columns = ", ".join(f"CAST({column} AS VARCHAR)" for column in independent.HEADER)
    found = query(project / load.DATABASE, f"SELECT {columns} FROM {TARGET}")
    assert sorted(found) == sorted(row for row in as_text(project / "march.csv") if row[0].startswith("1996-03"))
