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
def method() -> str:
    """How slices are replaced. A module that says METHODS has its tests run over these."""
    return "replace_slice"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    methods = getattr(metafunc.module, "METHODS", None)
    chosen = any("method" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if methods and "method" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("method", methods)


@pytest.fixture
def orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method)


@pytest.fixture
def empty_orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method, filled=False)
