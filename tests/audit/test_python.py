"""How Python is read: the text of expressions with its places, names, dialects, and what is not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reslice.audit.python_driver import dialect_of, modules_of, opens_transaction
from reslice.audit.python_scope import scopes_of
from reslice.audit.python_text import Spelled, Speller
from reslice.audit.runner import audit
from reslice.audit.text import Text


def spelled(source: str) -> Spelled | None:
    """Return the text of the last statement's expression of a program."""
    tree = ast.parse(source)
    scope = scopes_of(tree)[0]
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return Speller(Text("a.py", source), scope.value).spelled(last.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'a b'", "a b"),
        ("'a' \"b\"", "ab"),
        ("('a'\n  # and\n  'b')", "ab"),
        ("'''a\nb'''", "a\nb"),
        (r"'a\n\x41\u00e9\'\\'", "a\nA\u00e9'\\"),
        (r"r'a\n'", r"a\n"),
        ("f'x {day} y'", "x {day} y"),
        ("f'x {day:%Y-%m-%d} {row.id!r}'", "x {day} {row.id}"),
        ("f'{a()} {{b}}'", "{a} {b}"),
        ("f'{d[\"k\"]}'", "{d_k}"),
        ("'x {} {}'.format(a, b)", "x {field} {field}"),
        ("'x {day}'.format(day=d)", "x {day}"),
        ("'x %s' % day", "x %s"),
        ("'a ' + b + ' c'", "a {b} c"),
        ("T = 'orders'\nf'from {T}'", "from orders"),
        ("A = 'a'\nB = A + 'b'\nB", "ab"),
        ("text('a')", "a"),
        ("sql.SQL('a {}').format(sql.Identifier('t'))", "a {field}"),
        ("'a'.strip()", "a"),
    ],
)
def test_what_an_expression_spells(source: str, text: str) -> None:
    found = spelled(source)
    assert found is not None and found.text == text


@pytest.mark.parametrize("source", ["x", "f(1)", "x = 'a'\nx = 'b'\nx", "x = x\nx", "1 + 2", "''"])
def test_what_is_not_known_is_no_text(source: str) -> None:
    assert spelled(source) is None


def test_every_character_knows_where_it_is_written() -> None:
    source = "é = 1\nx = f'''ä{é}\\n<b>''' + \"c\"\nx"
    found = spelled(source)
    assert found is not None
    assert found.text == "ä{é}\n<b>c"
    for character in ("ä", "<", "b", ">", "c"):
        assert source[found.origin(found.text.index(character))] == character
    assert source[found.origin(found.text.index("\n"))] == "\\"


def test_a_finding_is_placed_in_the_literal_behind_letters_of_several_bytes(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(
        "import psycopg\nx.execute('é', 1); c.execute('insert into t select a, count(*) from f group by 1')\n"
    )
    (found,) = audit([file]).findings
    assert (found.code, found.place.line, found.place.column) == ("RS101", 2, 31)


@pytest.mark.parametrize(
    ("source", "dialect"),
    [
        ("import psycopg", "postgres"),
        ("import mysql.connector", "mysql"),
        ("from google.cloud import bigquery", "bigquery"),
        ("from airflow.providers.snowflake.hooks.snowflake import SnowflakeHook", "snowflake"),
        ("from sqlalchemy import create_engine\ncreate_engine('postgresql+psycopg://h/d')", "postgres"),
        ("from sqlalchemy import create_engine\ncreate_engine('postgresql://h/d')", "postgres"),
        ("import psycopg, duckdb", None),
        ("import os", None),
    ],
)
def test_the_dialect_is_that_of_the_one_driver(source: str, dialect: str | None) -> None:
    assert dialect_of(modules_of(ast.parse(source)), source) == dialect


@pytest.mark.parametrize(
    ("source", "opens"),
    [
        ("import psycopg", True),
        ("import psycopg\npsycopg.connect(autocommit=True)", False),
        ("import psycopg2\nc.set_session(autocommit=True)", False),
        ("import duckdb", False),
        ("import snowflake.connector", False),
        ("import sqlite3", True),
        ("import sqlite3\nsqlite3.connect('x', isolation_level=None)", False),
        ("from google.cloud import bigquery", False),
    ],
)
def test_who_opens_a_transaction(source: str, opens: bool) -> None:
    assert opens_transaction(modules_of(ast.parse(source)), source) is opens


def test_scopes_are_in_the_order_of_the_file_and_see_what_is_around_them() -> None:
    tree = ast.parse("A = 'a'\nclass C:\n    B = 'b'\n    def f(self, A):\n        return A\ndef g():\n    return A")
    module, method, function = scopes_of(tree)
    assert [each.function.name if each.function else "" for each in (module, method, function)] == ["", "f", "g"]
    assert isinstance(function.value(ast.Name("A")), ast.Constant)
    assert method.value(ast.Name("A")) is None  # its own argument hides it
    assert isinstance(method.value(ast.parse("self.B").body[0].value), ast.Constant)  # type: ignore[attr-defined]


def test_what_is_read_is_never_run(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(f"open({str(tmp_path / 'made')!r}, 'w')\nraise SystemExit(7)\n")
    assert audit([file]).findings == ()
    assert not (tmp_path / "made").exists()


def test_warnings_of_other_peoples_files_are_not_ours(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text("import re\nre.compile('\\d')\nx = 1 is 1\n")
    assert audit([file]).unparsed == ()
