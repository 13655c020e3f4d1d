"""A shop of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schedulers import shops


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return shops.make_shop(tmp_path / "shop")
