"""Whatever a file holds, an audit ends in time, says what it could not read, and reads the other files."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from reslice.audit import reader
from reslice.audit.reader import DEPTH_MAX, Answer, deepest, within_limits
from reslice.audit.runner import audit
from reslice.audit.text import Text

APPEND = "insert into daily_orders\nselect order_date, count(*) from orders group by order_date;\n"

DEEP = {
    "parentheses": "select " + "(" * 10_000 + "1" + ")" * 10_000,
    "subqueries": "select * from (" * 300 + "select 1" + ") x" * 300,
    "cases": "select " + "case when a then " * 3000 + "1" + " else 2 end" * 3000,
    "nots": "select " + "not " * 10_000 + "true",
    "minuses": "select " + "- " * 10_000 + "1",
    "calls": "select " + "coalesce(1, " * 350 + "1" + ")" * 350,
    "brackets": "select " + "[" * 5000 + "]" * 5000,
    "braces": "select " + "{" * 5000 + "}" * 5000,
    "jinja": "select {{ " + "(" * 3000 + ")" * 3000 + " }}",
    "ifs": "{% if a %}" * 3000 + "select 1" + "{% endif %}" * 3000,
}
LONG = {
    "ors": "insert into t select count(*) from a where " + " or ".join(f"x = {n}" for n in range(5000)),
    "ands": "insert into t select count(*) from a where " + " and ".join(f"x{n} > 1" for n in range(5000)),
    "unions": "insert into t " + " union all ".join("select 1" for _ in range(1500)),
    "commas": "insert into t values " + ", ".join("(1, 'a')" for _ in range(20_000)),
    "inserts": APPEND * 2000,
    "semicolons": ";" * 200_000,
    "quotes": "'" * 99_999,
    "dollars": "$a$" * 50_001,
    "comments": "/*" * 100_000,
    "line": "select '" + "x" * 900_000 + "'",
    "blanks": "select 1" + " " * 900_000 + "{",
    "marks": "select " + ":a " * 50_000,
    "go": "go\n" * 100_000,
    "opened": "begin\n" * 30_000,
    "ignores": "-- reslice: ignore RS101 x\n" * 20_000,
}


QUICK = ("parentheses", "calls", "jinja", "unions", "semicolons", "dollars", "line")
HOSTILE = [
    pytest.param(text, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, text in (DEEP | LONG).items()
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_file_ends_in_time_and_hides_no_other(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.sql").write_text(text)
    (tmp_path / "b.sql").write_text(APPEND)
    started = time.process_time()
    found = audit([tmp_path])
    assert time.process_time() - started < 2 * reader.SECONDS_MAX
    assert len(found.files) == 2
    assert "b.sql" in {Path(each.place.path).name for each in found.findings}
    assert not [each.why for each in found.unparsed if "a bug in reslice" in each.why]


@pytest.mark.parametrize("name", ["parentheses"])
def test_what_nests_too_deep_is_unparsed(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.sql").write_text(DEEP[name])
    (found,) = audit([tmp_path]).unparsed
    assert found.why == "its brackets are nested more than 400 deep"


def test_how_deep_a_text_nests_is_counted() -> None:
    assert deepest("") == 0 and deepest("(()())") == 2 and deepest("))((") == 2
    assert deepest("(" * DEPTH_MAX) == DEPTH_MAX


def test_a_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SECONDS_MAX", 0.2)

    def endless() -> Answer:
        while True:
            pass

    started = time.monotonic()
    found = within_limits(Text("x.sql", ""), endless)
    assert time.monotonic() - started < 5
    assert [each.why for each in found.unparsed] == ["it took longer than 0.2 s, the most that one file may take"]


def test_a_bug_costs_one_file_and_says_where_it_is() -> None:
    def broken() -> Answer:
        raise LookupError("in somebody's SQL")

    (found,) = within_limits(Text("x.sql", ""), broken).unparsed
    assert found.why.startswith("a bug in reslice: LookupError in test_hostile.py, line ")


def test_python_that_runs_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    audit([tmp_path])
    assert not (tmp_path / "ran").exists()


WORDS = (  # noqa: SIM905 - a list of a hundred quoted words is no better to read
    "select insert into from where group by order_date ( ) ( ) , ; ' \" -- /* */ begin commit delete merge using on"
    " when matched then update set values case end {{ }} {% %} :a $1 @x 1 * = and or not null create table as with x y"
    " overwrite truncate partition date_trunc ( interval declare go exec \n \n [ ] { } # . ::"
).split(" ")


@pytest.mark.parametrize("seed", range(6))
def test_words_in_any_order_are_no_bug(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    for number in range(25):
        text = " ".join(chosen.choice(WORDS) for _ in range(chosen.randint(1, 60)))
        (tmp_path / f"{number}.sql").write_text(text)
    found = audit([tmp_path], chosen.choice([None, "postgres", "tsql", "bigquery", "spark"]))
    assert not [each for each in found.unparsed if "a bug in reslice" in each.why]


@pytest.mark.parametrize("seed", range(6))
def test_damaged_jobs_are_no_bug(tmp_path: Path, seed: int) -> None:
    """Every labelled SQL case with a piece cut out of it, and a piece put in twice."""
    chosen = random.Random(seed)
    cases = sorted((Path(__file__).parent / "cases").rglob("*.sql"))
    for number, case in enumerate(chosen.sample(cases, min(40, len(cases)))):
        text = case.read_text(errors="replace")
        first, second, third = sorted(chosen.randint(0, len(text)) for _ in range(3))
        (tmp_path / f"{number}.sql").write_text(text[:first] + text[second:] + text[first:third])
    found = audit([tmp_path])
    assert not [each for each in found.unparsed if "a bug in reslice" in each.why]
