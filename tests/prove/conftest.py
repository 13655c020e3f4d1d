"""Fixtures of these tests: shops, and a folder of their own for sandboxes, which has to be empty afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests import postgres
from tests.prove.shops import Shop, duckdb_shop, postgres_shop


@pytest.fixture(autouse=True)
def sandboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let sandboxes be made in a folder of the test, and nothing be left in it."""
    folder = tmp_path / "sandboxes"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert [*folder.iterdir()] == []


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return duckdb_shop(tmp_path / "shop")


@pytest.fixture(params=[18, 16], ids=["postgresql18", "postgresql16"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with _postgres(tmp_path, request.param) as found:
        yield found


@pytest.fixture
def server18(tmp_path: Path) -> Iterator[Shop]:
    with _postgres(tmp_path, 18) as found:
        yield found


def _postgres(folder: Path, version: int, *, may_create: bool = True) -> AbstractContextManager[Shop]:
    try:
        postgres.shared(version)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL {version} here: {reason}")
    return postgres_shop(folder / "server", version, may_create=may_create)


@pytest.fixture
def poor_server(tmp_path: Path) -> Iterator[Shop]:
    """Give a shop whose role may not make a database."""
    with _postgres(tmp_path, 18, may_create=False) as found:
        yield found
