"""A project whose days are to be published again: a DuckDB connection that threads share, or a PostgreSQL server."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import reslice
from tests import orders_project as project
from tests import postgres
from tests.model import Call, Model
from tests.model_rows import Order
from tests.races.shop_postgres import Shop, opened

D1, D2, D3 = (date(2024, 3, day) for day in (1, 2, 3))
VERSIONS = [pytest.param(18, id="postgresql18"), pytest.param(16, id="postgresql16", marks=pytest.mark.slow)]


@dataclass
class Shared:
    """One database in one process. `new` is the model after a run of all that is corrected."""

    contract: Path
    connection: duckdb.DuckDBPyConnection
    model: Model

    @property
    def project(self) -> reslice.Project:
        """The project on a cursor of its own, for one thread."""
        return reslice.open(self.contract, connection=self.connection)

    def new(self, call: Call) -> Model:
        """Return the model after an undisturbed run."""
        after = copy.deepcopy(self.model)
        after.run(call)
        return after

    def correct(self, order_id: int, order: Order) -> None:
        project.load(self.connection, self.model, {order_id: order})


@pytest.fixture(scope="module", params=VERSIONS)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Open the shop on a PostgreSQL server of its own; a test says on which version, or runs on both."""
    version = request.param
    try:
        with opened(version, tmp_path_factory.mktemp("races")) as found:
            yield found
    except postgres.NotRunnable as reason:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL {version} here: {reason}")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Callable[..., Shared]]:
    """Make databases, one at a time: `filled` ones were published and then corrected on every day, others never."""
    made: list[Shared] = []

    def make(
        *, filled: bool = True, method: str = "replace_slice", key: str = "", wait: str = "10s", lock: str = "100ms"
    ) -> Shared:
        for each in made:
            each.connection.close()
        folder = tmp_path / f"{len(made)}"
        contract = project.create(folder, method=method, key=key, wait=wait, lock=lock)
        found = Shared(contract, project.connect(folder), Model(method=method))
        made.append(found)
        orders = [Order(day, channel, Decimal(price)) for day, channel, price in ORDERS]
        project.load_many(found.connection, found.model, dict(enumerate(orders)))
        if filled:
            call = Call(project.FREE, D1, D3)
            found.project.target(call.target).run(f"{D1}..{D3}")
            found.model.run(call)
            for order_id in (0, 3, 6):
                found.correct(order_id, Order(orders[order_id].day, "web", Decimal("99.00")))
        return found

    yield make
    for each in made:
        each.connection.close()


ORDERS = [
    (D1, "web", 10),
    (D1, "web", 25),
    (D1, "store", 7),
    (D2, "web", 12),
    (D2, "store", 3),
    (D2, "store", 4),
    (D3, "web", 50),
    (D3, "phone", 9),
]
