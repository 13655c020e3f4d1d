"""Columns are followed to what makes them: through a WITH named like the table it reads, and in little time."""

from __future__ import annotations

import time

import pytest
import sqlglot
from sqlglot import exp

from reslice.reading.outputs import JobQuery


def _query(text: str) -> JobQuery:
    tree = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    return JobQuery(tree, "duckdb")


def _origins(text: str) -> dict[str, str]:
    return {each.name: each.origin.sql() if each.origin is not None else "" for each in _query(text).outputs()}


def test_a_with_named_like_its_table_reads_the_table() -> None:
    assert _origins("with orders as (select cast(at as date) as day from orders) select day from orders") == {
        "day": "CAST(at AS DATE)"
    }


def test_a_with_does_not_see_those_after_it() -> None:
    text = "with a as (select x from b), b as (select y + 1 as x from t) select a.x, b.x as z from a join b on true"
    assert _origins(text) == {"x": "x", "z": "y + 1"}


def test_a_star_brings_the_columns_of_what_it_reads() -> None:
    text = "with a as (select y + 1 as x from t), b as (select * from a), c as (select * from b) select x from c"
    assert _origins(text) == {"x": "y + 1"}


@pytest.mark.parametrize("wide", ["select {columns} from {before}", "select * from {before} union all select * from t"])
def test_a_long_chain_of_wide_queries_takes_no_time(wide: str) -> None:
    columns = ", ".join(f"c{number}" for number in range(40))
    steps = ["q0 as (select " + ", ".join(f"a{number} + 1 as c{number}" for number in range(40)) + " from t)"]
    steps += [f"q{step} as ({wide.format(columns=columns, before=f'q{step - 1}')})" for step in range(1, 20)]
    query = _query(f"with {', '.join(steps)} select {columns} from q19")
    begin = time.perf_counter()
    outputs = query.outputs()
    assert [each.origin.sql() if each.origin else "" for each in outputs] == [f"a{n} + 1" for n in range(40)]
    assert time.perf_counter() - begin < 5
