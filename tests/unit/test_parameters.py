"""Placeholders and statements are found where DuckDB finds them, on any text."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reslice import parameters
from reslice.parameters import Unknown

ANY_TEXT = st.text(st.characters() | st.sampled_from(list("'\"$:;-/*()[]\\eE\n as")), max_size=60)
PIECES = st.lists(
    st.sampled_from(
        [
            "'", "''", '"', "$$", "$a$", "--", "/*", "*/", ";", "\n", " ", "E'", "\\", "\\'", "x", "1", ",", "SELECT 1",
            "SELECT", "a$b$", "'text'", '"name"', "::INT", "(", ")", "[1, 2]", "/* c */", "-- c\n", "$$ ; $$",
        ]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1 WHERE d BETWEEN :start AND :end", {"start", "end"}),
        ("d>=:start_instant AND d<:end_instant", {"start_instant", "end_instant"}),
        ("(:start),:end", {"start", "end"}),
        ("':start' || 'it''s :end'", set()),
        ("E'it\\'s :start' || :end", {"end"}),
        ("e'\\\\' || :start || 'x'", {"start"}),
        ("'a\\' || :start || 'b'", {"start"}),
        ('":start" || "a"":end"', set()),
        ("-- :start\n:end", {"end"}),
        ("/* :start /* :end */ :start */ :end", {"end"}),
        ("x::date, x :: date, :start::date", {"start"}),
        ("$$ :start $$, $tag$ :end $$ :end $tag$, $1, :start", {"start"}),
        ("a$b$ :start a$b$", {"start"}),
        ("a[1:2], x[i:n], x[:n], f(x)[:n], x[a][:n], x[1 :n]", set()),
        ("[:start, :end]", {"start", "end"}),
        ("ARRAY[:start]", {"start"}),
        ("d IN [:start]", {"start"}),
        ("x[f(:start)]", {"start"}),
        ("{'a':start, 'b': :end}", {"end"}),
        ("f(a := 1, b :=start)", set()),
        ("x:start", set()),
        (":Start", {"Start"}),
        (":début", {"début"}),
        (": start, :1", set()),
        ("", set()),
    ],
)
def test_placeholders_are_found_only_where_a_value_can_stand(sql: str, names: set[str]) -> None:
    assert parameters.names(sql) == names


def test_binding_replaces_each_placeholder_and_nothing_else() -> None:
    sql = "SELECT ':start' -- :start\nWHERE d>=:start AND d < :start_instant OR d = :start"
    bound = parameters.bind(sql, {"start": "CAST($a AS DATE)", "start_instant": "$b"})
    assert bound == "SELECT ':start' -- :start\nWHERE d>=CAST($a AS DATE) AND d < $b OR d = CAST($a AS DATE)"


def test_binding_without_a_replacement_is_our_own_mistake() -> None:
    with pytest.raises(KeyError):
        parameters.bind(":start", {})


def test_a_replacement_is_never_read_again() -> None:
    assert parameters.bind(":start :end", {"start": ":end", "end": ":start"}) == ":end :start"


def test_duckdb_computes_what_was_bound() -> None:
    sql = "SELECT ':start' AS text, /* :end */ list_value(7, 8, 9)[:2] AS cut, :start::INT AS low, E'\\':end' AS quote"
    bound = parameters.bind(sql, {"start": "$low"})
    assert duckdb.connect().execute(bound, {"low": 5}).fetchall() == [(":start", [7, 8], 5, "':end")]


def test_an_unknown_placeholder_is_named_once_with_its_line_and_a_near_name() -> None:
    sql = "SELECT :strat,\n :zebra, :strat,\n :END, :since"
    assert parameters.unknown(sql, parameters.BOUNDS) == (
        Unknown("strat", 1, "start"),
        Unknown("zebra", 2, None),
        Unknown("END", 3, "end"),
        Unknown("since", 3, None),
    )
    assert [each.name for each in parameters.unknown(sql)] == ["strat", "zebra", "END"]


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", []),
        (" ;; -- nothing\n; /* ; */", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT ';' ; SELECT \";\" -- ;\n", ["SELECT ';'", 'SELECT ";" -- ;']),
        ("SELECT $$;$$, E'\\';' /* ; /* ; */ ; */", ["SELECT $$;$$, E'\\';' /* ; /* ; */ ; */"]),
        ("; SELECT 1; DELETE FROM x", ["SELECT 1", "DELETE FROM x"]),
    ],
)
def test_statements_end_at_semicolons_outside_quotes_and_comments(sql: str, statements: list[str]) -> None:
    assert parameters.statements(sql) == statements


@pytest.mark.parametrize(
    ("sql", "stripped"),
    [
        ("SELECT 1", "SELECT 1"),
        (" -- before\n; SELECT 1 -- inside\n + 1 ; -- behind", "SELECT 1 -- inside\n + 1"),
        ("/* a */ SELECT 1 /* b */", "SELECT 1"),
        ("-- only", ""),
    ],
)
def test_a_stripped_statement_can_stand_in_brackets(sql: str, stripped: str) -> None:
    assert parameters.strip(sql) == stripped
    if stripped:
        assert duckdb.connect().execute(f"SELECT count(*) FROM ({stripped}) AS source").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "verb"),
    [
        ("SELECT 1", "SELECT"),
        ("-- c\nselect 1", "SELECT"),
        ("FROM t", "FROM"),
        ("((SELECT 1))", "SELECT"),
        ("delete from t", "DELETE"),
        ("PRAGMA x", "PRAGMA"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT"),
        ("WITH RECURSIVE a(x, y) AS NOT MATERIALIZED (SELECT 1), b AS (SELECT 2) FROM a", "FROM"),
        ("WITH a AS (SELECT 1), update AS (SELECT 2) SELECT 3", "SELECT"),
        ("WITH merge AS (SELECT 1) SELECT 3", "SELECT"),
        ("WITH a AS (SELECT 1) (SELECT * FROM a)", "SELECT"),
        ("WITH a AS (SELECT 1) (INSERT INTO t SELECT * FROM a)", "INSERT"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "INSERT"),
        ("WITH a AS (SELECT 1) UPDATE t SET x = 1", "UPDATE"),
        ("WITH a AS (SELECT ')') DELETE FROM t", "DELETE"),
        ("WITH a AS (SELECT 1) MERGE INTO t USING a ON true", "MERGE"),
        ("WITH a AS (DELETE FROM t RETURNING x) SELECT * FROM a", "DELETE"),
        ("WITH a AS MATERIALIZED (INSERT INTO t VALUES (1) RETURNING x) SELECT * FROM a", "INSERT"),
        ("WITH a AS (SELECT 1)", ""),
        ("WITH", ""),
        ("'text'", ""),
        ("", ""),
    ],
)
def test_the_main_verb_says_what_a_statement_does(sql: str, verb: str) -> None:
    assert parameters.main_verb(sql) == verb


@pytest.mark.parametrize(
    ("sql", "flaw"),
    [
        ("SELECT (1)", None),
        ("SELECT '(' -- (", None),
        ("SELECT 1) AS s, (SELECT 2", "the closing bracket on line 1 has no opening one"),
        ("SELECT (1", "an opening bracket has no closing one"),
        ("SELECT 1\n, 'it''s", "the quote that begins on line 2 never ends"),
        ("SELECT E'\\'", "the quote that begins on line 1 never ends"),
        ('SELECT "x', "the quote that begins on line 1 never ends"),
        ("SELECT $a$ $$", "the quote that begins on line 1 never ends"),
        ("\n\n/* /* */", "the comment that begins on line 3 never ends"),
    ],
)
def test_what_would_spill_out_of_brackets_is_said(sql: str, flaw: str | None) -> None:
    assert parameters.flaw(sql) == flaw


@given(ANY_TEXT | PIECES)
@example("E'\\")
@example("x[")
@example("/*/")
def test_no_text_is_too_strange(sql: str) -> None:
    assert "".join(token.text for token in parameters.tokens(sql)) == sql
    parameters.unknown(sql)
    parameters.main_verb(sql)
    parameters.flaw(sql)
    assert parameters.strip(sql) in sql
    replacements = {name: f":{name}" for name in parameters.names(sql)}
    assert parameters.bind(sql, replacements) == sql


@given(PIECES)
@example("SELECT 1a$b$")
@example("SELECT E'\\'';' ; SELECT $$ ; $$")
def test_duckdb_counts_the_same_statements(sql: str) -> None:
    connection = duckdb.connect()
    try:
        counted = len(connection.extract_statements(sql))
    except duckdb.Error:
        return
    assert parameters.flaw(sql) is None
    assert len(parameters.statements(sql)) == counted
