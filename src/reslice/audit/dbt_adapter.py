"""Which database a dbt project is for, and what dbt's adapters for it do by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from reslice.audit.dbt_yaml import loaded, mapping, settled
from reslice.audit.dialects import dialect_for
from reslice.audit.files import text_of
from reslice.audit.text import Text
from reslice.audit.write import Way

DIALECTS = {
    "postgres": "postgres",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "duckdb": "duckdb",
    "spark": "spark",
    "databricks": "databricks",
    "trino": "trino",
    "starburst": "trino",
    "athena": "athena",
    "clickhouse": "clickhouse",
    "sqlserver": "tsql",
    "synapse": "tsql",
    "fabric": "tsql",
    "mysql": "mysql",
    "oracle": "oracle",
    "teradata": "teradata",
    "materialize": "materialize",
    "risingwave": "risingwave",
    "alloydb": "postgres",
    "vertica": "postgres",
    "greenplum": "postgres",
    "singlestore": "singlestore",
    "doris": "doris",
    "starrocks": "starrocks",
    "dremio": "dremio",
    "exasol": "exasol",
    "hive": "hive",
}
"""Of each adapter, the dialect of its database as sqlglot calls it."""

_BY_DIALECT = {"tsql": "sqlserver", "athena": "athena"}
_PACKAGE = re.compile(r"(?im)^[\s\"']*dbt[-_]([a-z]+)(?![a-z-])")
_PACKAGE_FILES = ("pyproject.toml", "setup.py", "Pipfile")

KEYED_OR_APPEND = frozenset({"postgres", "redshift", "materialize", "risingwave", "alloydb", "greenplum", "duckdb"})
"""Adapters that delete by the unique key and insert where no strategy is named, and append where there is no key.

https://github.com/dbt-labs/dbt-adapters, of each adapter the macro get_incremental_default_sql; for DuckDB
https://github.com/duckdb/dbt-duckdb, dbt/include/duckdb/macros/adapters.sql.
"""
_APPEND = frozenset({"spark", "trino", "starburst", "hive", "dremio"})
_OVERWRITE = frozenset({"athena"})

MICROBATCH: Mapping[str, Way] = {
    "duckdb": Way.RANGED,
    "redshift": Way.RANGED,
    "snowflake": Way.RANGED,
    "clickhouse": Way.RANGED,
    "postgres": Way.UPSERT,
    "alloydb": Way.UPSERT,
    "bigquery": Way.OVERWRITE,
    "spark": Way.OVERWRITE,
    "databricks": Way.OVERWRITE,
}
"""What the strategy `microbatch` does on an adapter (the macro get_incremental_microbatch_sql of each)."""


def strategy_of(adapter: str | None, strategy: str | None, *, has_key: bool) -> str:
    """Return the strategy that is used: the one that is named, else the adapter's own; unknown adapters do as most."""
    if strategy not in (None, "", "default"):
        return str(strategy).lower().replace("_insert", "+insert") if strategy == "delete_insert" else str(strategy)
    if adapter in _APPEND:
        return "append"
    if adapter in _OVERWRITE:
        return "insert_overwrite"
    if adapter in KEYED_OR_APPEND:
        return "delete+insert" if has_key else "append"
    return "merge" if has_key else "append"


def way_of(adapter: str | None, strategy: str, *, has_key: bool) -> Way | None:
    """Return how a strategy writes; None where nobody but its author knows."""
    if strategy == "append":
        return Way.APPEND
    if strategy in ("merge", "delete+insert"):
        return (Way.UPSERT if strategy == "merge" else Way.KEYED) if has_key else Way.APPEND
    if strategy in ("insert_overwrite", "replace_where"):
        return Way.OVERWRITE
    if strategy == "microbatch":
        found = MICROBATCH.get(adapter or "")
        return None if found is Way.UPSERT and not has_key else found  # every run fails without the key
    return None


def adapter_of(folder: Path, project: Mapping[str, object], dialect: str | None) -> str | None:
    """Return the adapter that the files of a project name; None where they name none, or several.

    A dialect that was named on the command line goes before everything else.
    """
    if dialect is not None:
        return _BY_DIALECT.get(dialect, dialect)
    found = _of_profile(folder, str(project.get("profile", project.get("name", ""))))
    if found is None:
        found = _of_packages(folder)
    if found is None:
        named = dialect_for(folder / "dbt_project.yml")
        found = _BY_DIALECT.get(named, named) if named is not None else None
    return found


def _of_profile(folder: Path, profile: str) -> str | None:
    path = folder / "profiles.yml"
    if not path.is_file():
        return None
    _, profiles, _ = loaded(path)
    said = mapping(profiles.get(profile) or (next(iter(profiles.values())) if len(profiles) == 1 else None))
    outputs = mapping(settled(said.get("outputs"), {}))
    types = {name: str(mapping(each).get("type", "")).lower() for name, each in outputs.items()}
    target = settled(said.get("target"), {})
    if isinstance(target, str) and types.get(target) in DIALECTS:
        return types[target]
    named = {each for each in types.values() if each in DIALECTS}
    return named.pop() if len(named) == 1 else None


def _of_packages(folder: Path) -> str | None:
    """Return the adapter that the project's Python requirements name."""
    named: set[str] = set()
    for path in [*sorted(folder.glob("*requirements*.txt")), *(folder / each for each in _PACKAGE_FILES)]:
        text = text_of(path) if path.is_file() else None
        if isinstance(text, Text):
            named |= {each.lower() for each in _PACKAGE.findall(text.text)} & DIALECTS.keys()
    return named.pop() if len(named) == 1 else None


_HINTS = {
    "bigquery": frozenset({"require_partition_filter", "partition_expiration_days", "hours_to_expiration"}),
    "snowflake": frozenset({"snowflake_warehouse", "query_tag", "copy_grants", "automatic_clustering"}),
    "redshift": frozenset({"dist", "sort_type"}),
    "databricks": frozenset({"liquid_clustered_by", "auto_liquid_cluster", "databricks_tags", "databricks_compute"}),
}


def hinted(configs: Iterable[Mapping[str, object]]) -> str | None:
    """Return the one adapter whose own settings the configs of a project have; None where there is none."""
    found: set[str] = set()
    for config in configs:
        found |= {adapter for adapter, own in _HINTS.items() if own & config.keys()}
        partition = config.get("partition_by")
        if isinstance(partition, dict) and "field" in partition:
            found.add("bigquery")
    return found.pop() if len(found) == 1 else None
