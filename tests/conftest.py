"""Fixtures that suites share: a real database of each engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.conformance.databases import ENGINES, Database, PostgresDatabase, opened
from tests.conformance.orders import Orders


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    PostgresDatabase.let_servers_go()
    if not hasattr(config, "workerinput"):
        postgres.end()


@pytest.fixture
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    try:
        database = opened(request.param, tmp_path)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {request.param} here: {reason}")
    yield database
    database.close()


@pytest.fixture
def method() -> str:
    """How slices are replaced. A module that says METHODS has its tests run over these."""
    return "replace_slice"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        slow = {"postgresql16"} if getattr(metafunc.module, "POSTGRES16_SLOW", False) else set()
        engines = [pytest.param(each, marks=pytest.mark.slow if each in slow else ()) for each in ENGINES]
        metafunc.parametrize("engine", engines, indirect=True)
    methods = getattr(metafunc.module, "METHODS", None)
    chosen = any("method" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if methods and "method" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("method", methods)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a test, or one case of it, is not for, and mark what it does not pass yet."""
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        engine = str(item.callspec.params.get("engine", "")) if hasattr(item, "callspec") else ""
        only = (marker.args[0] for marker in item.iter_markers("only"))
        (kept if not engine or all(engine.startswith(each) for each in only) else left_out).append(item)
        for marker in item.iter_markers("not_yet"):
            if engine.startswith(marker.args[0]):
                item.add_marker(pytest.mark.xfail(strict=True, reason=marker.args[1]))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.fixture
def orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method)


@pytest.fixture
def empty_orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method, filled=False)
