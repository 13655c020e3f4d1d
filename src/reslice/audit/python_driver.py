"""What a Python file says of its database by what it imports: the dialect, and whether its driver opens a transaction.

Drivers of the DB-API open one at the first statement, and commit when they are told to (PEP 249); the exceptions are
those of the drivers' own manuals.
"""

from __future__ import annotations

import ast
import re

_DIALECTS = {
    "psycopg": "postgres",
    "psycopg2": "postgres",
    "asyncpg": "postgres",
    "pg8000": "postgres",
    "duckdb": "duckdb",
    "sqlite3": "sqlite",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "mysql": "mysql",
    "snowflake": "snowflake",
    "pyspark": "spark",
    "databricks": "databricks",
    "pyodbc": "tsql",
    "pymssql": "tsql",
    "oracledb": "oracle",
    "cx_Oracle": "oracle",
    "redshift_connector": "redshift",
    "trino": "trino",
    "clickhouse_driver": "clickhouse",
    "clickhouse_connect": "clickhouse",
}
_WORDS = (
    ("bigquery", "bigquery"),
    ("snowflake", "snowflake"),
    ("databricks", "databricks"),
    ("spark", "spark"),
    ("redshift", "redshift"),
    ("postgres", "postgres"),
    ("mysql", "mysql"),
    ("mssql", "tsql"),
    ("oracle", "oracle"),
    ("trino", "trino"),
    ("clickhouse", "clickhouse"),
    ("duckdb", "duckdb"),
    ("hive", "hive"),
)
_COMMITS_ITSELF = frozenset(
    {"duckdb", "asyncpg", "snowflake", "pyspark", "databricks", "trino", "clickhouse_driver", "clickhouse_connect"}
)
"""Modules whose connections commit after each statement unless they are told not to."""
_AUTOCOMMIT = re.compile(
    r"(?i)\bautocommit\s*[=(]\s*True|\bisolation_level\s*=\s*(?:None|['\"]AUTOCOMMIT['\"])|ISOLATION_LEVEL_AUTOCOMMIT"
)


def modules_of(tree: ast.Module) -> frozenset[str]:
    """Return the dotted names of the modules that a file imports, with what it imports from them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
    return frozenset(found)


def dialect_of(modules: frozenset[str], source: str) -> str | None:
    """Return the dialect of the one database that a file is about; None where it names none, or several."""
    roots = {each.partition(".")[0] for each in modules}
    found = {_DIALECTS[each] for each in roots if each in _DIALECTS}
    if any("bigquery" in each for each in modules):
        found.add("bigquery")
    if not found:
        names = " ".join(sorted(modules)).lower() + " ".join(re.findall(r"(?i)\b(\w+)(?:\+\w+)?://", source)).lower()
        found = {dialect for word, dialect in _WORDS if word in names}
    return next(iter(found)) if len(found) == 1 else None


def opens_transaction(modules: frozenset[str], source: str) -> bool:
    """Whether statements that a file runs one after another commit together, without a word of its own."""
    roots = {each.partition(".")[0] for each in modules}
    if _AUTOCOMMIT.search(source) or roots & _COMMITS_ITSELF or any("bigquery" in each for each in modules):
        return False
    return "SnowflakeOperator" not in source
