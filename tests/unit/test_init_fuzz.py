"""Whatever stands in a job's file, it is drafted or refused in words: never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.conformance.init_jobs import CASES

from reslice.errors import ResliceError
from reslice.init.job import read_job
from reslice.init.job_draft import drafted
from reslice.reading.parse import dialects

PIECES = (
    *("(", ")", ",", ";", "'", '"', "`", "{{", "}}", "SELECT", "*", "FROM", "ROLLUP(", "NULL", "::", "$1", "?", ":x"),
    *("@y", "--", "/*", "*/", "\x00", "é", "WITH", "AS", "9e999", "BETWEEN", "AND", "OR", "NOT", "IN (", "EXISTS ("),
    *("{% if x %}", "{% endif %}", "{% else %}", "GROUP BY", "INSERT INTO", "MERGE INTO", "UNION ALL", "''"),
    *("[1:2]", "\\", "$$", "#", "ALL", "QUALIFY", "PIVOT"),
)


class _Survey:
    """A database without tables."""

    def relations(self) -> tuple[()]:
        return ()

    def find(self, _name: str) -> None:
        return None


class _Engine:
    name = "duckdb"
    survey = _Survey()


def mutated(chance: random.Random) -> tuple[str, str | None]:
    case = chance.choice(CASES)
    words = case.text.split(" ")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(words) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del words[at : at + chance.randint(1, 4)]
        elif kind == 1:
            words.insert(at, chance.choice(PIECES))
        elif kind == 2:
            words[at:at] = chance.choice(CASES).text.split(" ")[: chance.randint(1, 30)]
        else:
            words = words[:at] or ["x"]
    return " ".join(words), chance.choice([case.dialect, None, *dialects()])


def survives(text: str, dialect: str | None, folder: Path) -> None:
    file = folder / "job.sql"
    file.write_text(text, encoding="utf-8")
    try:
        found = drafted(_Engine(), read_job(file, dialect, None, "daily_orders"), None)  # type: ignore[arg-type]
        proposal = found.alone()
        found.source(proposal)
        found.range_text(proposal.slice)
    except ResliceError as error:
        assert error.exit_code == 2 and error.unchanged and error.failures[0].next


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_job_is_drafted_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        survives(*mutated(chance), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 40))
def test_many_damaged_jobs_are_drafted_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        survives(*mutated(chance), tmp_path)


@pytest.mark.parametrize(
    "text", ["", " ", ";;;", "(" * 5000, "SELECT " + "1+" * 3000 + "1", "'" * 999, "\ufeff", "{{" * 500, "a.b" * 999]
)
def test_strange_texts_are_refused(text: str, tmp_path: Path) -> None:
    survives(text, None, tmp_path)
    survives(f"INSERT INTO t SELECT {text}", "duckdb", tmp_path)
