"""The scenarios of PostgreSQL, made once for a module."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests import postgres
from tests.crash.postgres_scenario import Shelf

VERSIONS = [pytest.param(18, id="postgresql18"), pytest.param(16, id="postgresql16", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=VERSIONS)
def shelf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    try:
        server = postgres.shared(request.param)
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {reason}")
    shelf = Shelf(server, tmp_path_factory.mktemp("scenarios"))
    yield shelf
    shelf.close()
