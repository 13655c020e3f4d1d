"""Statements that commit together have one number, and one that commits by itself has none."""

from __future__ import annotations

import pytest

from reslice.audit.script import script_of
from reslice.audit.text import Text
from reslice.reading import parse

WRITES = "delete from t where a = 1;\ninsert into t select 1;\n"


def _numbers(text: str, dialect: str, *, in_transaction: bool = False) -> list[int | None]:
    read = parse.read("job.sql", text, dialect)
    assert not read.unread
    script = script_of(read, Text("job.sql", text), known={}, in_transaction=in_transaction)
    return [each.transaction for each in script.statements if each.node.key in ("delete", "insert")]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (f"begin;\n{WRITES}commit;", "postgres"),
        (f"begin transaction isolation level serializable;\n{WRITES}end;", "postgres"),
        (f"start transaction isolation level repeatable read, read write;\n{WRITES}commit;", "postgres"),
        (f"start transaction with consistent snapshot;\n{WRITES}commit;", "mysql"),
        (f"set autocommit = 0;\n{WRITES}commit;", "mysql"),
        (f"set session autocommit = off;\n{WRITES}", "mysql"),
        (f"{WRITES}commit;", "oracle"),
        (f"begin;\n{WRITES}commit;", "bigquery"),
        (f"begin tran;\n{WRITES}commit tran;", "tsql"),
        (f"begin try\nbegin tran;\n{WRITES}commit tran;\nend try\nbegin catch\nrollback;\nend catch", "tsql"),
        (f"begin name load;\n{WRITES}commit;", "snowflake"),
        (f"begin;\nsavepoint a;\n{WRITES}rollback to savepoint a;\ncommit;", "postgres"),
    ],
)
def test_both_commit_together(text: str, dialect: str) -> None:
    removed, added = _numbers(text, dialect)[:2]
    assert removed is not None and removed == added


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (WRITES, "postgres"),
        (WRITES, "tsql"),
        (f"begin;\n{WRITES}commit;", "trino"),
        (f"begin;\n{WRITES}commit;", "spark"),
        (f"set autocommit = 1;\n{WRITES}", "mysql"),
        (WRITES.replace(";\nins", ";\ncommit;\nins"), "oracle"),
        (WRITES.replace(";\nins", ";\nabort;\nins"), "oracle"),
        ("begin;\n" + WRITES.replace(";\nins", ";\ncommit;\nbegin;\nins"), "postgres"),
        ("begin;\n" + WRITES.replace(";\nins", ";\ncreate table x (a int);\nins"), "mysql"),
        ("begin;\n" + WRITES.replace(";\nins", ";\ntruncate table x;\nins"), "redshift"),
        ("begin;\n" + WRITES.replace(";\nins", ";\nbegin;\nins"), "mysql"),
    ],
)
def test_each_commits_by_itself(text: str, dialect: str) -> None:
    removed, added = _numbers(text, dialect)
    assert removed is None or removed != added


@pytest.mark.parametrize(
    ("between", "dialect"),
    [
        ("create table x (a int)", "postgres"),
        ("create temporary table x (a int)", "mysql"),
        ("truncate table x", "snowflake"),
        ("truncate table x", "postgres"),
        ("begin", "postgres"),
        ("set search_path = shop", "postgres"),
    ],
)
def test_what_stands_between_leaves_them_together(between: str, dialect: str) -> None:
    removed, added = _numbers("begin;\n" + WRITES.replace(";\nins", f";\n{between};\nins") + "commit;", dialect)
    assert removed is not None and removed == added


def test_whoever_runs_it_may_have_opened_a_transaction() -> None:
    assert _numbers(WRITES, "postgres", in_transaction=True) == [0, 0]
    first, second = _numbers(WRITES.replace(";\nins", ";\ncommit;\nins"), "postgres", in_transaction=True)
    assert first is not None and second is not None and first != second
