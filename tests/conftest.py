"""Fixtures that suites share: a real database of each engine."""

from __future__ import annotations

import os
import re
import signal
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.conformance.databases import ENGINES, Database, PostgresDatabase, opened
from tests.conformance.orders import Orders


def pytest_configure(config: pytest.Config) -> None:
    _hear_signals()
    if not hasattr(config, "workerinput"):
        postgres.begin()


def _hear_signals() -> None:
    """Let the commands that tests start hear the signals that tests send, also where this process was started deaf.

    A shell starts what runs behind it with Ctrl-C ignored, and nohup with SIGHUP ignored; children take that over.
    """
    for number, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, heard)


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


SAMPLED = {"duckdb": 24, "postgresql18": 80, "postgresql16": 240}
"""Of the cases of a test beyond its first, one of so many runs on an engine by default; all do in `make test-slow`."""
LONG_SECONDS = 7200
"""The longest time that one of the long tests may take; the others have `timeout` of pyproject.toml."""
NUMBERED_16, OTHERS_16 = 3, 24
"""Of the tests with a number, and of the others, one of so many runs its first case on PostgreSQL 16 by default."""
PROMISED = frozenset(re.findall(r"\btest_\w+", (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")))
"""The tests that the page names for its promises: they run on DuckDB and on PostgreSQL."""
NUMBERED = re.compile(r"test_[ct]\d")
"""How the name begins of a test that has a number: its first case, by replace_slice, runs on both engines."""


def _is_sampled(engine: str, place: int, test: str, name: str, others: set[str]) -> bool:
    """Whether a case runs by default, of which `place` counts from 0; the same cases every time.

    The first case of a test runs on DuckDB and on PostgreSQL 18 when the test has a number or a promise rests on it;
    else, of one test in two, on one of them, as its name falls.
    """
    if place:
        return zlib.crc32(name.encode()) % SAMPLED[engine] == 0
    seed, function = zlib.crc32(test.encode()), test.rpartition("::")[2]
    if engine == "postgresql16":
        return seed % (NUMBERED_16 if NUMBERED.match(function) else OTHERS_16) == 0
    is_everywhere = bool(NUMBERED.match(function)) or function in PROMISED
    if is_everywhere or not {"duckdb", "postgresql18"} <= others:
        return True
    return seed % 2 == 0 and (engine == "duckdb") is (seed % 4 == 0)


def _sample(items: list[pytest.Item]) -> None:
    """Mark the cases as slow that are beyond the sample of their engine."""
    cases = [(item, str(item.callspec.params.get("engine"))) for item in items if hasattr(item, "callspec")]
    cases = [(item, engine) for item, engine in cases if engine in SAMPLED]
    engines: dict[str, set[str]] = {}
    for item, engine in cases:
        engines.setdefault(item.nodeid.partition("[")[0], set()).add(engine)
    places: Counter[tuple[str, str]] = Counter()
    for item, engine in cases:
        test = item.nodeid.partition("[")[0]
        if not _is_sampled(engine, places[test, engine], test, item.nodeid, engines[test]):
            item.add_marker(pytest.mark.slow)
        places[test, engine] += 1


def _give_time(items: list[pytest.Item]) -> None:
    """Let the full counts take their time, and what first sets up another program."""
    for item in items:
        if item.get_closest_marker("slow") or "tests/schedulers/" in item.nodeid:
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a test, or one case of it, is not for, and take a sample."""
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        engine = str(item.callspec.params.get("engine", "")) if hasattr(item, "callspec") else ""
        only = (marker.args[0] for marker in item.iter_markers("only"))
        (kept if not engine or all(engine.startswith(each) for each in only) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    _sample(items)
    _give_time(items)


@pytest.fixture
def orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method)


@pytest.fixture
def empty_orders(engine: Database, method: str) -> Orders:
    return Orders(engine, method=method, filled=False)
