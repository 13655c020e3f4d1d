"""Placeholders and templates of a job become words that any dialect reads, and no other text does."""

from __future__ import annotations

import pytest

from reslice.reading.marks import MARK, marked, word_for

PLACEHOLDERS = {
    "a = :start": [":start"],
    "a = '{{ ds }}'": ["{{ ds }}"],
    "a = {{ds}} AND b = '{{   ds }}'": ["{{ ds }}"],
    "a = :'start' AND :\"col\" = 1": [":'start'", ':"col"'],
    "a:\"b\", {'k':'v', \"k\" :'v'}, '12':'x'": [],
    "a = %(start)s AND b = %(start)s": ["%(start)s"],
    "a > %s AND a < %s": ["%s", "%s"],
    "a > ? AND a < ?": ["?", "?"],
    "a = $1 OR a = $day": ["$1", "$day"],
    "a = @day": ["@day"],
    "a = '${hiveconf:day}' AND b = ${x}": ["${hiveconf:day}", "${x}"],
    "a = '{start_date}'": ["{start_date}"],
    "a::date = b": [],
    "x:y:z FROM t": [],
    "a[1:2]": [],
    "'12:30' || ':no :where'": [],
    "\"a:b\" = 'c'": [],
    "$$ :a ? $1 $$": [],
    "-- :a {{ b }} ?\n1": [],
    "/* :a ${b} */ 1": [],
    "a % b, a @> b, c ?| d": [],
    "{'a': 1}": [],
    "'it''s :x' = :y": [":y"],
}


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_each_placeholder_has_a_mark_and_nothing_else_has(text: str) -> None:
    found = marked(text, "duckdb")
    assert [*found.marks.values()] == PLACEHOLDERS[text]
    assert set(MARK.findall(found.text)) == set(found.marks)
    if not found.marks:
        assert found.text == text


def test_a_backslash_escapes_where_the_dialect_says_so() -> None:
    text = r"a = 'it\'s :x' AND b = :y"
    assert [*marked(text, "mysql").marks.values()] == [":y"]
    assert [*marked(r"a = 'c:\' AND b = :y", "postgres").marks.values()] == [":y"]


def test_references_are_tables_and_config_is_read() -> None:
    found = marked(
        "{{ config(alias='daily', unique_key=['a', \"b\"]) }} select * from {{ ref('x') }}, {{ source('s', 'y z') }}"
        " {% if is_incremental() %} where a {% else %} where b {% endif %} {# gone #} {{ this }}",
        "duckdb",
    )
    assert found.text.split() == ["select", "*", "from", "x,", '"y', 'z"', "where", "a", "reslice_this_table"]
    assert found.config == {"alias": ("daily",), "unique_key": ("a", "b")}
    assert found.unsure == [
        "{{ ref('x') }} was read as the table x",
        "{{ source('s', 'y z') }} was read as the table y z",
    ]


def test_conditions_and_loops_are_told() -> None:
    found = marked(
        "{% if target.name == 'x' %}a{% elif y %}b{% else %}c{% endif %}{% for z in zs %}d{% endfor %}", "duckdb"
    )
    assert found.text == "ad"
    assert ["branch" in found.unsure[0], "loop" in found.unsure[1]] == [True, True]


def test_a_placeholder_is_named_after_what_it_says() -> None:
    marks = {"reslice_mark_0_": "{{ params.region }}", "reslice_mark_1_": "?"}
    assert word_for("reslice_mark_0_", marks) == "replace_params_region"
    assert word_for("reslice_mark_1_", marks) == "replace_placeholder"
