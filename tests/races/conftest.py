"""A project whose days are to be published again: a DuckDB connection that threads share, or a PostgreSQL server."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Wanted:
    """A database to start from: a `filled` one was published and then corrected on every day, another never."""

    filled: bool = True
    method: str = "replace_slice"
    key: str = ""
    wait: str = "10s"
    lock: str = "100ms"


@dataclass
class Shelf:
    """The databases to start from, each made once and never opened again: what is run is a copy."""

    folder: Path
    made: dict[Wanted, tuple[Path, Model]] = field(default_factory=dict)

    def copied(self, wanted: Wanted, folder: Path) -> Shared:
        """Copy a database into a new folder, and open it."""
        if wanted not in self.made:
            self.made[wanted] = self._make(wanted)
        start, model = self.made[wanted]
        shutil.copytree(start, folder)
        return Shared(folder / "reslice.yml", project.connect(folder), copy.deepcopy(model))

    def _make(self, wanted: Wanted) -> tuple[Path, Model]:
        folder = self.folder / f"{len(self.made)}"
        contract = project.create(folder, method=wanted.method, key=wanted.key, wait=wanted.wait, lock=wanted.lock)
        model = Model(method=wanted.method)
        orders = [Order(day, channel, Decimal(price)) for day, channel, price in ORDERS]
        with project.connect(folder) as connection:
            project.load_many(connection, model, dict(enumerate(orders)))
            if wanted.filled:
                call = Call(project.FREE, D1, D3)
                reslice.open(contract, connection=connection).target(call.target).run(f"{D1}..{D3}")
                model.run(call)
                corrected = {each: Order(orders[each].day, "web", Decimal("99.00")) for each in (0, 3, 6)}
                project.load(connection, model, corrected)
        return folder, model


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("starts"))


@pytest.fixture
def shared(shelf: Shelf, tmp_path: Path) -> Iterator[Callable[..., Shared]]:
    """Give databases as they are `Wanted`, one at a time."""
    made: list[Shared] = []

    def make(**wanted: Any) -> Shared:
        for each in made:
            each.connection.close()
        found = shelf.copied(Wanted(**wanted), tmp_path / f"{len(made)}")
        made.append(found)
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
