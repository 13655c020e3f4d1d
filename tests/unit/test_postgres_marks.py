"""Named parameters of our statements become PostgreSQL's numbers, or their values; texts and names stay."""

from __future__ import annotations

import pytest

from reslice.engines.postgres.marks import numbered, written_out

CASES = {
    "plain": ("SELECT $a", "SELECT $1", ["x"], "SELECT 'x'"),
    "twice": ("SELECT $a, $b, $a", "SELECT $1, $2, $1", ["x", "y'z"], "SELECT 'x', 'y''z', 'x'"),
    "in a text": ("SELECT '$a', $b", "SELECT '$a', $1", ["y'z"], "SELECT '$a', 'y''z'"),
    "in a name": ('SELECT "$a", $b', 'SELECT "$a", $1', ["y'z"], "SELECT \"$a\", 'y''z'"),
    "in a comment": ("SELECT $b -- $a", "SELECT $1 -- $a", ["y'z"], "SELECT 'y''z' -- $a"),
    "in dollars": ("SELECT $q$ $a $q$, $b", "SELECT $q$ $a $q$, $1", ["y'z"], "SELECT $q$ $a $q$, 'y''z'"),
    "of another name": ("SELECT $ab, $c", "SELECT $ab, $c", [], "SELECT $ab, $c"),
}
VALUES = {"a": "x", "b": "y'z"}


@pytest.mark.parametrize("case", CASES)
def test_a_name_is_replaced_where_it_is_one(case: str) -> None:
    statement, text, values, written = CASES[case]
    assert numbered(statement, VALUES) == (text, values)
    assert written_out(statement, VALUES) == written
