"""What every test of lineage stands on: a machine that configures nothing, and a server that is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lineage.server import Server, serving


@pytest.fixture(autouse=True)
def _no_other_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let nothing of this machine configure OpenLineage, and put back what its client writes into the environment."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("OPENLINEAGE"):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home")
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE") and name not in before]:
        del os.environ[name]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        yield server
