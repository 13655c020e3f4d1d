"""Contracts to damage, the SQL files they name, and what loading them says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reslice.contract import Contract, ProjectFile
from reslice.contract_file import load
from reslice.errors import Misused

SMALL = """\
version: 1
connection: duckdb:///retail.duckdb
targets:
  daily:
    table: daily_orders
    source: sql/daily.sql
    grain: [order_date, channel]
    slice: {column: order_date, unit: day}
    measures:
      orders: {min: 1}
      cents: {min: 0}
"""

FULL = """\
# Everything a contract may say.
version: 1
connection: duckdb:///retail.duckdb
targets:
  daily:
    table: main."daily orders"
    source: sql/daily.sql
    grain: [order_date, {column: channel, nulls: allow}]
    slice: {column: order_date, unit: week, timezone: Europe/Amsterdam}
    measures:
      orders: {min: 1}
      cents: {min: -0.10, nulls: allow, scale: 2}
      no:
    stamps: {loaded_at: run_time, batch_id: run_id}
    controls: {source: sql/control.sql, match: {orders: sum(orders), rows: COUNT( * )}}
    method: merge
    guards:
      empty_slice: allow
      total_change: 12.5%
      removed_groups: stop
      restored: allow
      closed_through: 2 days ago
      max_slices: 12
    affected: sql/affected.sql
    downstream:
      report: {query: sql/control.sql, match: {cents: sum(cents)}}
    ledger: {schema: books, keep_days: 7}
    timeouts: {wait: 1h, lock: 500ms, statement: 2m, idle: 1s}
"""

SQL = {
    "sql/daily.sql": "SELECT * FROM facts WHERE d BETWEEN :start AND :end -- all\n",
    "sql/control.sql": "SELECT order_date, 1 AS orders FROM facts;\n",
    "sql/affected.sql": "SELECT d FROM facts WHERE updated_at > :since",
    "sql/instants.sql": "FROM facts WHERE at >= :start_instant AND at < :end_instant",
    "sql/unbound.sql": "SELECT 1 WHERE ':start' < '1'",
    "sql/two.sql": "SELECT :start, :end; DELETE FROM facts",
    "sql/empty.sql": "-- nothing\n",
    "sql/delete.sql": "DELETE FROM facts WHERE d BETWEEN :start AND :end",
    "sql/with.sql": "WITH a AS (SELECT :start, :end) INSERT INTO facts FROM a",
    "sql/spill.sql": "SELECT :start, :end) AS a, (SELECT 1",
    "sql/misspelt.sql": "SELECT :start,\n :edn, :end",
}


def write_sql(folder: Path) -> None:
    (folder / "sql").mkdir()
    for name, text in SQL.items():
        (folder / name).write_text(text)
    (folder / "sql" / "latin.sql").write_bytes(b"SELECT '\xe9'")


def loaded(text: str, environ: Mapping[str, str] | None = None) -> ProjectFile:
    Path("reslice.yml").write_text(text, encoding="utf-8")
    return load("reslice.yml", environ=environ or {})


def contract(text: str) -> Contract:
    return loaded(text).targets["daily"]


def mistakes(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(Misused) as caught:
        loaded(text, environ)
    assert [failure.kind for failure in caught.value.failures] == ["contract"]
    return list(caught.value.failures[0].found)


def changed(old: str, new: str, text: str = SMALL) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)
