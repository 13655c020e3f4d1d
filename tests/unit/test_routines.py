"""What stands in a dollar-quoted body keeps its place, and nothing else is touched."""

from __future__ import annotations

import time

import pytest

from reslice.reading.routines import only_defined, opened

BODY = "create procedure p() language plpgsql as $$\nbegin\n  if a then delete from t; end if;\nend\n$$;\nselect 1;"


@pytest.mark.parametrize(
    ("dialect", "words"),
    [("postgres", "BEGIN; delete from t; ; END; select 1;"), ("snowflake", "; delete from t; ; select 1;")],
)
def test_a_statement_of_a_body_stays_at_its_place(dialect: str, words: str) -> None:
    read = opened(BODY, dialect)
    assert len(read) == len(BODY)
    assert [at for at, each in enumerate(read) if each == "\n"] == [at for at, each in enumerate(BODY) if each == "\n"]
    assert read.index("delete from t;") == BODY.index("delete from t;")
    assert "".join(read.split()) == words.replace(" ", "")


@pytest.mark.parametrize(
    "text",
    [
        "select $$insert into t select 1$$;",
        "create function f() returns int as $$ return 1 $$ language plpython3u;",
        "create function f() returns int as 'select 1' language sql;",
        "select $1, $2",
        "create function f() returns int as $$ never closed",
        "select '$$', a from t where b = '$$'",
    ],
)
def test_a_text_that_is_no_routine_in_sql_is_returned_as_it_is(text: str) -> None:
    assert opened(text, "postgres") == text


def test_what_calls_a_transaction_by_name_stays() -> None:
    read = opened("do $$ begin transaction; delete from t; commit; end $$;", "snowflake")
    assert read.split() == [";", "begin", "transaction;", "delete", "from", "t;", "commit;", ";"]


@pytest.mark.parametrize(
    "part",
    ["$", "$$", "$a$", "create function ", "do $$ ", "do $$ begin ", "' $$ ", "as $$ -- ", "$$ language x ", "if "],
)
def test_text_that_means_harm_is_read_in_time(part: str) -> None:
    text = "do $$ " + part * (400_000 // len(part))
    began = time.process_time()
    assert len(opened(text, "postgres")) == len(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("create function f() returns void as $$ select 1 $$ language sql;", ["f"]),
        ('create or replace procedure "etl"."Load"(d date) language plpgsql as $x$ begin end $x$;', ["Load"]),
        ("create function f() returns void as $$ select 1 $$ language sql; select f();", []),
        ("create procedure a.f() language sql as $$ select 1 $$;\ncall a.f ();", []),
        ("create function f() returns void as $$ select f() $$ language sql;", ["f"]),
        ("do $$ begin delete from t; end $$;", []),
    ],
)
def test_a_routine_that_is_made_and_not_called_is_told(text: str, names: list[str]) -> None:
    found = [*only_defined(text)]
    assert [name for name, _, _ in found] == names
    assert all("$" not in text[begin:end] for _, begin, end in found)
