"""Fixtures that suites share: a real database of each engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.databases import Database, DuckDBDatabase
from tests.conformance.orders import Orders


@pytest.fixture(params=["duckdb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = {"duckdb": DuckDBDatabase}[request.param](tmp_path)
    yield database
    database.close()


@pytest.fixture
def orders(engine: Database) -> Orders:
    return Orders(engine)


@pytest.fixture
def empty_orders(engine: Database) -> Orders:
    return Orders(engine, filled=False)
