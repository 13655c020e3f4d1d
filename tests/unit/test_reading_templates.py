"""What a dbt template writes, read without running it, and where in the file each part of it stands."""

from __future__ import annotations

import pytest

from reslice.reading.marks import THIS, marked
from reslice.reading.rendered import rendered

WRITTEN = {
    "{% set cs = ['a', 'b'] %}select {% for c in cs %}sum({{ c }}){% if not loop.last %}, {% endif %}{% endfor %}": (
        "select sum(a), sum(b)"
    ),
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }} {% endfor %}": "a=1 b=2 ",
    "{% for n in range(1, 4) %}{{ n }}{% endfor %}": "123",
    "{% set x = 'a' ~ '_' ~ 1 %}{{ x | upper }}": "A_1",
    "{% set part %}where a > 1{% endset %}select 1 {{ part }}": "select 1 where a > 1",
    "{% set q %}drop{% endset %}{% do run_query(q) %}x": "x",
    "{% raw %}{% a %}{% endraw %}b": "{% a %}b",
    "{% macro m(a) %}select {{ a }}{% endmacro %}b": "b",
    "{% call statement('s') %}select 1{% endcall %}b": "b",
    "{{ log('x') }}{{ config(a=1) }}b{# c #}": "b",
    "{% if execute %}a{% else %}b{% endif %}": "a",
    "{% if target.name == 'dev' %}a{% else %}b{% endif %}": "b",
    "{% if target.name != 'dev' %}a{% else %}b{% endif %}": "a",
    "{% if target.name in ['ci', 'dev'] %}a{% endif %}b": "b",
    "{% if var('small', false) %}a{% else %}b{% endif %}": "b",
    "{% if is_incremental() and var('all', false) %}a{% elif is_incremental() %}b{% else %}c{% endif %}": "b",
    "{% if not is_incremental() %}a{% else %}b{% endif %}": "b",
    "{% if flags.FULL_REFRESH or not is_incremental() %}a{% else %}b{% endif %}": "b",
    "{% if '%}' == '%}' %}a{% endif %}": "a",
    "{{ dbt_utils.group_by(n=3) }}": "group by 1, 2, 3",
    "{{ dbt_utils.group_by(2) }}": "group by 1, 2",
    "{% if (1, 2)|length == 2 %}a{% endif %}": "a",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_known_is_written(text: str) -> None:
    assert marked(text, "duckdb").text == WRITTEN[text]


def test_the_first_run_takes_the_other_branches() -> None:
    text = "{% if is_incremental() %}a{% else %}b{% endif %}{% if not is_incremental() %}c{% endif %}"
    assert [marked(text, "duckdb", is_incremental=each).text for each in (True, False)] == ["a", "bc"]


def test_what_only_a_run_knows_is_marked() -> None:
    found = marked("a = {{ var('x', 1) }} and {{ asked(1) }} = '{{ env_var('E') }}'", "duckdb")
    assert list(found.marks.values()) == ["{{ var('x', 1) }}", "{{ asked(1) }}", "{{ env_var('E') }}"]


def test_tables_that_a_model_names() -> None:
    found = rendered(
        "{{ ref('a') }} {{ source('s', 'b') }} {{ ref('p', 'c') }} {{ ref(asked()) }} {{ ref('d').render() }}"
    )
    assert [(each.kind, each.names) for _, each in found.references] == [
        ("ref", ("a",)),
        ("source", ("s", "b")),
        ("ref", ("p", "c")),
        ("ref", ("d",)),
    ]


def test_a_config_is_read_with_values_of_every_kind() -> None:
    found = rendered(
        "{{ config(materialized='incremental', unique_key=['a', 'b'], partition_by={'field': 'd', 'range': {'end': 9}},"
        " full_refresh=false, **more) }}"
    )
    (configured,) = found.configured
    assert configured.values == {
        "materialized": "incremental",
        "unique_key": ["a", "b"],
        "partition_by": {"field": "d", "range": {"end": 9}},
        "full_refresh": False,
    }
    assert configured.is_hidden


@pytest.mark.parametrize("dialect", ["duckdb", "bigquery", "snowflake"])
def test_every_character_of_the_file_that_is_kept_knows_its_place(dialect: str) -> None:
    text = (
        "{{ config(a=1) }}\n-- a {{ b }} :c\nselect 'it''s {{ d }}', \"e\", /* {{ f }} */ g\n"
        "{% for h in [1, 2] %}, {{ h }} as i{% endfor %}\nfrom {{ ref('orders') }} where {{ asked() }}\n"
        "{% if is_incremental() %} and x > (select max(x) from {{ this }}){% endif %}\n;"
    )
    found = marked(text, dialect, has_placeholders=False)
    for word in ("select", "it''s", "g\n", "as i", "from", "where", "and x >", "max(x)"):
        assert text.startswith(word, found.origin(found.text.index(word))), word
    assert text.startswith("{{ ref('orders')", found.origin(found.text.index("orders")))
    assert text.startswith("{{ this }}", found.origin(found.text.index(THIS)))
    assert all(0 <= found.origin(at) < len(text) for at in range(len(found.text)))


def test_a_path_is_no_placeholder_where_there_are_none() -> None:
    text = "select data :id :: int, {x}, $1, '%s' from t"
    assert marked(text, "snowflake", has_placeholders=False).text == text
