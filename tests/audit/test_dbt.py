"""What is read of a dbt project: who goes before whom, which database it is for, and nothing beyond its folder."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from reslice.audit.dbt import answer
from reslice.audit.dbt_adapter import adapter_of, strategy_of, way_of
from reslice.audit.dbt_keys import meant
from reslice.audit.dbt_model import Model, columns_in
from reslice.audit.dbt_models import models_of
from reslice.audit.dbt_project import read_project
from reslice.audit.files import Kind, Source
from reslice.audit.runner import audit
from reslice.audit.write import Way
from reslice.reading.jinja import UNKNOWN

PROJECT = "name: shop\nversion: '1.0'\nprofile: shop\n"
GROUPS = "select order_date, channel, count(*) as n from {{ ref('orders') }} group by order_date, channel\n"
APPENDED = "{{ config(materialized='incremental') }}\n" + GROUPS


def _project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"dbt_project.yml": PROJECT, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _models(folder: Path, files: dict[str, str]) -> dict[str, Model]:
    project = read_project(_project(folder, files), None)
    return {model.name: model for model in models_of(project).models}


def test_the_model_goes_before_its_properties_and_these_before_the_innermost_folder(tmp_path: Path) -> None:
    settings = """models:
  +tags: all
  shop:
    +incremental_strategy: append
    materialized: view
    marts:
      +materialized: table
      +unique_key: from_folder
      daily:
        +materialized: incremental
"""
    properties = "models:\n  - name: a\n    config: {unique_key: from_properties, batch_size: day}\n"
    model = "{{ config(unique_key='from_model') }} select 1 as x"
    found = _models(
        tmp_path,
        {
            "dbt_project.yml": PROJECT + settings,
            "models/marts/daily/a.sql": model,
            "models/marts/daily/b.sql": "select 1 as x",
            "models/marts/c.sql": "select 1 as x",
            "models/d.sql": "select 1 as x",
            "models/marts/properties.yml": properties,
        },
    )
    told = {
        name: [each.get(key) for key in ("materialized", "unique_key", "batch_size", "incremental_strategy", "tags")]
        for name, each in found.items()
    }
    assert told == {
        "a": ["incremental", "from_model", "day", "append", "all"],
        "b": ["incremental", "from_folder", None, "append", "all"],
        "c": ["table", "from_folder", None, "append", "all"],
        "d": ["view", None, None, "append", "all"],
    }


def test_values_come_from_vars_and_are_unknown_where_only_a_run_knows_them(tmp_path: Path) -> None:
    text = """{% set own = ['a'] + ['b'] %}
{{ config(materialized=var('kept', 'table'), unique_key=own, event_time=var('at'), begin=env_var('BEGIN', '2026-01-01'),
          batch_size=asked(), lookback=var('days')) }} select 1 as x"""
    project = PROJECT + "vars: {kept: incremental, shop: {at: created_at}}\n"
    model = _models(tmp_path, {"dbt_project.yml": project, "models/a.sql": text})["a"]
    keys = ("materialized", "unique_key", "event_time", "begin", "batch_size", "lookback")
    assert [model.get(key) for key in keys] == [
        "incremental",
        ["a", "b"],
        "created_at",
        "2026-01-01",
        UNKNOWN,
        UNKNOWN,
    ]


def test_a_key_stands_where_it_is_written(tmp_path: Path) -> None:
    text = (
        "-- materialized='table'\n{{ config(\n  materialized='incremental',\n  unique_key = 'id'\n) }}\nselect 1 as id"
    )
    model = _models(tmp_path, {"models/a.sql": text})["a"]
    start, end = model.spot("unique_key")
    assert text[start:end] == "unique_key = 'id'"
    assert text[slice(*model.spot("materialized"))] == "materialized='incremental'"
    assert text[slice(*model.spot("partition_by"))] == "config"


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        ("order_id", ("order_id",)),
        (["Order_Date", '"channel"'], ("order_date", "channel")),
        ("order_date, channel", ("order_date", "channel")),
        ("order_date || '-' || channel", ("order_date", "channel")),
        ("concat(order_date, channel)", ("order_date", "channel")),
        ([], ()),
        (None, ()),
        (UNKNOWN, None),
        ([UNKNOWN], None),
    ],
)
def test_a_unique_key_names_columns(value: object, columns: tuple[str, ...] | None) -> None:
    assert columns_in(value) == columns


@pytest.mark.parametrize(
    ("adapter", "strategy", "has_key", "way"),
    [
        ("postgres", None, True, Way.KEYED),
        ("postgres", None, False, Way.APPEND),
        ("redshift", None, True, Way.KEYED),
        ("duckdb", None, True, Way.KEYED),
        ("snowflake", None, True, Way.UPSERT),
        ("snowflake", None, False, Way.APPEND),
        ("bigquery", None, True, Way.UPSERT),
        ("databricks", None, False, Way.APPEND),
        ("spark", None, True, Way.APPEND),
        ("trino", None, True, Way.APPEND),
        ("athena", None, False, Way.OVERWRITE),
        (None, None, True, Way.UPSERT),
        (None, None, False, Way.APPEND),
        ("snowflake", "delete_insert", True, Way.KEYED),
        ("duckdb", "microbatch", False, Way.RANGED),
        ("snowflake", "microbatch", False, Way.RANGED),
        ("postgres", "microbatch", True, Way.UPSERT),
        ("postgres", "microbatch", False, None),
        ("bigquery", "microbatch", False, Way.OVERWRITE),
        ("snowflake", "of_our_own", True, None),
    ],
)
def test_how_rows_are_written_is_decided_by_strategy_and_adapter(
    adapter: str | None, strategy: str | None, has_key: bool, way: Way | None
) -> None:
    assert way_of(adapter, strategy_of(adapter, strategy, has_key=has_key), has_key=has_key) is way


@pytest.mark.parametrize(
    ("files", "adapter"),
    [
        ({}, None),
        (
            {"profiles.yml": "shop: {target: prod, outputs: {dev: {type: duckdb}, prod: {type: snowflake}}}"},
            "snowflake",
        ),
        (
            {
                "profiles.yml": "shop:\n  target: \"{{ env_var('T') }}\"\n"
                "  outputs: {a: {type: redshift}, b: {type: redshift}}"
            },
            "redshift",
        ),
        ({"profiles.yml": "shop:\n  outputs: {a: {type: redshift}, b: {type: duckdb}}"}, None),
        ({"profiles.yml": "other: {target: dev, outputs: {dev: {type: bigquery}}}"}, "bigquery"),
        ({"profiles.yml": "shop: [not, a, profile]"}, None),
        ({"requirements.txt": "dbt-core==1.11\ndbt-databricks>=1.9\n"}, "databricks"),
        ({"pyproject.toml": '[project]\ndependencies = [\n  "dbt-core",\n  "dbt-bigquery~=1.9",\n]\n'}, "bigquery"),
        ({"requirements.txt": "dbt-postgres\ndbt-duckdb\n"}, None),
        ({".sqlfluff": "[sqlfluff]\ndialect = tsql\n"}, "sqlserver"),
    ],
)
def test_the_database_is_read_from_the_project(tmp_path: Path, files: dict[str, str], adapter: str | None) -> None:
    folder = _project(tmp_path, files)
    assert adapter_of(folder, {"name": "shop", "profile": "shop"}, None) == adapter


def test_a_dialect_that_is_named_goes_before_the_profile(tmp_path: Path) -> None:
    profile = "shop: {target: dev, outputs: {dev: {type: postgres}}}"
    model = "{{ config(materialized='incremental', unique_key=['order_date', 'channel']) }}\n" + GROUPS
    folder = _project(tmp_path, {"profiles.yml": profile, "models/a.sql": model})
    assert {each.code for each in audit([folder]).findings} == {"RS301"}
    assert {each.code for each in audit([folder], "spark").findings} == {"RS501"}


@pytest.mark.parametrize(
    ("key", "adapter", "intended"),
    [
        ("unique_keys", None, "unique_key"),
        ("uniqe_key", None, "unique_key"),
        ("Unique_Key", None, "unique_key"),
        ("unique-key", None, "unique_key"),
        ("incremental_stratgy", None, "incremental_strategy"),
        ("materialised", None, "materialized"),
        ("partitioned_by", "bigquery", "partition_by"),
        ("partitioned_by", "duckdb", ""),
        ("partition_by", "athena", "partitioned_by"),
        ("look_back", None, "lookback"),
        ("unique_key", None, ""),
        ("primary_key", None, ""),
        ("partitions", "bigquery", ""),
        ("incremental_key", None, ""),
        ("owner", None, ""),
        ("tag", None, ""),
        ("pre-hook", None, ""),
    ],
)
def test_a_key_that_nobody_knows_is_near_to_one_or_to_none(key: str, adapter: str | None, intended: str) -> None:
    assert meant(key, adapter) == intended


def test_only_the_files_that_were_asked_for_are_answered(tmp_path: Path) -> None:
    folder = _project(tmp_path, {"models/a.sql": APPENDED, "models/b/c.sql": APPENDED, "models/b/d.sql": APPENDED})

    def named(*only: str) -> list[str]:
        found = answer(Source(folder, Kind.DBT, tuple(folder / each for each in only)), None, {})
        return sorted(Path(each.place.path).name for each in found.findings)

    assert named() == ["a.sql", "c.sql", "d.sql"]
    assert named("models/b") == ["c.sql", "d.sql"]
    assert named("models/b/d.sql", "models/a.sql") == ["a.sql", "d.sql"]


def test_nothing_outside_the_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.sql").write_text(APPENDED)
    paths = 'model-paths: ["models", "../outside", "/"]\n'
    folder = _project(tmp_path / "shop", {"dbt_project.yml": PROJECT + paths, "models/a.sql": APPENDED})
    found = answer(Source(folder, Kind.DBT), None, {})
    assert [Path(each.place.path).name for each in found.findings] == ["a.sql"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join(['*' + before] * 9)}]\n"
    for before, after in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB + "models:\n  - name: a\n    config: {materialized: incremental, meta: *q}\n",
        "models:\n  - name: a\n    config: {unique_key: [*nothing]}\n",
        "models: " + "[" * 5000,
        "models:\n  - name: a\n\tconfig: {}\n",
        "models: 3\nversion: config\n",
        "models: [1, null, {name: [a]}]\nversion: config\n",
    ],
    ids=["bomb", "no anchor", "deep", "tab", "no list", "odd values"],
)
def test_odd_properties_take_no_time_and_do_no_harm(tmp_path: Path, text: str) -> None:
    begin = time.perf_counter()
    folder = _project(tmp_path, {"models/schema.yml": text, "models/a.sql": APPENDED})
    found = answer(Source(folder, Kind.DBT), None, {})
    assert [each.code for each in found.findings] == ["RS501"]
    assert time.perf_counter() - begin < 10


@pytest.mark.parametrize(
    "text",
    [
        "{% if a %}" * 500 + APPENDED,
        "{% for x in range(100000) %}{% for y in range(100000) %}x{% endfor %}{% endfor %}",
        "{% set x = 'ab' %}" + "{% set x = x ~ x %}" * 60 + APPENDED,
        "{% set x = [1] %}" + "{% set x = x + x %}" * 60 + APPENDED,
        "{% set x %}ab{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60 + APPENDED,
        "{{ " + "(" * 3000 + " }}",
        "{{ config(materialized='incremental'",
        "{% endif %}{% else %}{% endfor %}{% endset %}" + APPENDED,
        "{{ config(materialized='incremental', unique_key=" + "[" * 300 + "]" * 300 + ") }} select 1 as x",
        "{% macro x() %}" + APPENDED,
        "{{ '" + '{{ "' * 2000,
    ],
    ids=["ifs", "loops", "text", "list", "captured", "brackets", "no end", "ends", "lists", "macro", "quotes"],
)
def test_hostile_templates_take_no_time(tmp_path: Path, text: str) -> None:
    begin = time.perf_counter()
    folder = _project(tmp_path, {"models/a.sql": text})
    answer(Source(folder, Kind.DBT), None, {})
    assert time.perf_counter() - begin < 15


def test_a_manifest_that_is_no_manifest_is_passed_over(tmp_path: Path) -> None:
    for text in ("", "[]", "{", '{"nodes": [1], "sources": 2, "metadata": null}', '{"nodes": {"a": 1}}'):
        folder = _project(tmp_path, {"target/manifest.json": text, "models/a.sql": APPENDED})
        assert [each.code for each in answer(Source(folder, Kind.DBT), None, {}).findings] == ["RS501"]
