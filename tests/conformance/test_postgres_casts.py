"""Values of a source become the target's type once, and exactly, or the run is refused before anything is written."""

from __future__ import annotations

import re

from reslice.errors import Refused
from reslice.values import Outcome
from tests.conformance.databases import Database, only
from tests.conformance.orders import ALLOWED, D2, Target, kinds

pytestmark = only("postgresql", "types of PostgreSQL")

MADE = (
    "CREATE TYPE mood AS ENUM ('calm', 'it''s')",
    "CREATE DOMAIN small AS smallint",
    "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)",
    "CREATE DOMAIN money_of_ours AS numeric(6,2)",
    "CREATE DOMAIN short AS varchar(3)",
    "CREATE DOMAIN shorter AS short CHECK (VALUE <> 'bad')",
    "CREATE DOMAIN feeling AS mood",
    "CREATE DOMAIN this_year AS date CHECK (VALUE >= '2024-01-01')",
)

EXACT = [
    ("smallint", "32767", "32767"),
    ("smallint", "CAST(7.000 AS numeric)", "7"),
    ("integer", "sum(2000000000)", "2000000000"),
    ("bigint", "CAST('-9223372036854775808' AS numeric)", "-9223372036854775808"),
    ("bigint", "CAST(9007199254740992 AS double precision)", "9007199254740992"),
    ("numeric(6,2)", "CAST(1.5 AS numeric)", "1.50"),
    ("numeric(6,2)", "9999.99", "9999.99"),
    ("numeric", "CAST(1.50 AS numeric(9,2))", "1.50"),
    ("numeric(6,-2)", "1200", "1200"),
    ("small", "CAST(7.000 AS numeric)", "7"),
    ("small", "CAST(-32768 AS bigint)", "-32768"),
    ("positive", "count(*)", "1"),
    ("money_of_ours", "CAST(9999.9900 AS numeric)", "9999.99"),
    ("text", "CAST('a  ' AS varchar)", "a  "),
    ("varchar(3)", "CAST('abc' AS text)", "abc"),
    ("char(5)", "CAST('ab' AS text)", "ab"),
    ("char(5)", "CAST('ab ' AS text)", "ab"),
    ("char(2)", "CAST('ab   ' AS varchar)", "ab"),
    ("text", "CAST('ab' AS char(5))", "ab"),
    ("short", "CAST('abc' AS text)", "abc"),
    ("shorter", "CAST('abc' AS text)", "abc"),
    ("mood", "CAST('it''s' AS text)", "it's"),
    ("feeling", "CAST('calm' AS text)", "calm"),
    ("text", "CAST('calm' AS mood)", "calm"),
    ("date", "CAST('2024-03-02 00:00' AS timestamp)", "2024-03-02"),
    ("timestamp", "DATE '2024-03-02'", "2024-03-02 00:00:00"),
    ("this_year", "DATE '2024-03-02'", "2024-03-02"),
]

LOSSY = [
    ("smallint", "32768"),
    ("integer", "CAST(sum(4000000000) AS numeric)"),
    ("bigint", "CAST('9223372036854775808' AS numeric)"),
    ("bigint", "1.5"),
    ("bigint", "CAST(9007199254740994 AS double precision)"),
    ("numeric(6,2)", "1.005"),
    ("numeric(6,2)", "10000"),
    ("numeric(6,2)", "9999.995"),
    ("numeric(6,-2)", "1250"),
    ("numeric", "CAST('NaN' AS numeric)"),
    ("numeric", "CAST('Infinity' AS numeric)"),
    ("small", "CAST(40000 AS integer)"),
    ("small", "0.5"),
    ("positive", "CAST(-1 AS bigint)"),
    ("money_of_ours", "10000"),
    ("money_of_ours", "0.005"),
    ("varchar(3)", "CAST('abcd' AS text)"),
    ("varchar(3)", "CAST('abc ' AS text)"),
    ("char(3)", "CAST('abc d' AS text)"),
    ("short", "CAST('abcd' AS text)"),
    ("shorter", "CAST('bad' AS text)"),
    ("mood", "CAST('wild' AS text)"),
    ("feeling", "CAST('wild' AS text)"),
    ("date", "CAST('2024-03-02 00:00:01' AS timestamp)"),
    ("this_year", "DATE '2023-12-31'"),
    ("timestamp(0)", "CAST('2024-03-02 00:00:00.5' AS timestamp)"),
]

REFUSED_TYPES = [
    ("bigint", "CAST('1' AS text)"),
    ("text", "1"),
    ("date", "CAST('2024-03-02' AS text)"),
    ("boolean", "1"),
    ("timestamptz", "CAST('2024-03-02' AS timestamp)"),
    ("time", "CAST('2024-03-02' AS timestamp)"),
    ("uuid", "CAST('4fea6a7a-2eba-d8d7-a1c4-84b3b602ef1b' AS text)"),
]

NO_MEASURES = ["json", "jsonb", "bytea", "interval", "bigint[]", "money", "point", "timetz", "xid", "name", "int4range"]


def values(engine: Database, cases: list[tuple[str, str]]) -> Target:
    """A target with a measure of each type, which the source computes by the expression beside it."""
    for statement in MADE:
        engine.execute(statement)
    engine.execute("CREATE TABLE facts (day date)")
    engine.execute(f"INSERT INTO facts VALUES ('{D2}')")
    columns = ", ".join(f"v{place} {type_text}" for place, (type_text, _) in enumerate(cases))
    engine.execute(f"CREATE TABLE every_value (day date, {columns})")
    declaration = {
        "table": "every_value",
        "source": "source.sql",
        "grain": ["day"],
        "slice": {"column": "day", "unit": "day"},
        "measures": {f"v{place}": {"nulls": "allow"} for place in range(len(cases))},
        "guards": ALLOWED,
    }
    computed = ", ".join(f"{expression} AS v{place}" for place, (_, expression) in enumerate(cases))
    source = f"SELECT day, {computed} FROM facts WHERE day BETWEEN :start AND :end GROUP BY day"
    return Target(engine, "every_value", declaration, source)


def columns_named(error: Refused) -> list[str]:
    """The columns that the failures of an error are about, in order."""
    return [re.findall(r"\bv\d+\b", failure.asked + " " + failure.found[0])[0] for failure in error.failures]


def test_what_fits_is_stored_and_no_change_when_it_is_run_again(engine: Database) -> None:
    target = values(engine, [(type_text, expression) for type_text, expression, _ in EXACT])
    run = target.run(D2)
    assert run.outcome is Outcome.PUBLISHED
    texts = ", ".join(f"CAST(v{place} AS text)" for place in range(len(EXACT)))
    assert engine.rows(f"SELECT {texts} FROM every_value") == [tuple(stored for _, _, stored in EXACT)]
    target.unchanged(D2)
    answer = target.verify(D2)
    assert answer.repeatable and answer.equals_source
    target.restore(run.id)
    assert target.rows() == []


def test_what_would_be_another_value_is_refused(engine: Database) -> None:
    target = values(engine, LOSSY)
    error = target.refuses(D2, *["lossy_value"] * len(LOSSY))
    assert columns_named(error) == [f"v{place}" for place in range(len(LOSSY))]
    assert target.rows() == []


def test_another_kind_of_type_is_refused(engine: Database) -> None:
    error = values(engine, REFUSED_TYPES).refuses(D2, *["source_type"] * len(REFUSED_TYPES))
    assert columns_named(error) == [f"v{place}" for place in range(len(REFUSED_TYPES))]


def test_a_type_without_one_text_is_no_measure(engine: Database) -> None:
    target = values(engine, [(type_text, f"CAST(NULL AS {type_text})") for type_text in NO_MEASURES])
    for command in ("plan", "run"):
        error = target.fails(command, Refused, D2)
        assert kinds(error) == ["target_type"] * len(NO_MEASURES)
        assert columns_named(error) == [f"v{place}" for place in range(len(NO_MEASURES))]
