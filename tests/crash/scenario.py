"""One corrected project, the run that is going to be cut short, and what must be true afterwards."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import reslice
from reslice.values import Run, State
from tests import orders_project as project
from tests.agreement import abandoned, differences, left_by_crash
from tests.crash.statements import watched
from tests.model import Answer, Call, Model
from tests.model_rows import Order, Row

D1, D2, D3, D4 = (date(2024, 3, day) for day in (1, 2, 3, 4))

CALLS = {
    "whole": Call(project.FREE, D1, D3),
    "per slice": Call(project.FREE, D1, D3, per_slice=True),
    "rewrite": Call(project.FREE, D1, D4, rewrite=True),
    "unchanged": Call(project.FREE, D4, D4),
    "restore": Call(project.FREE, D1, D4, restores="r-0001"),
}
"""What is cut short: all days in one commit, a commit for each, a day that did not change as well, nothing to write,
and putting back what the first run replaced."""


@dataclass(frozen=True)
class Scenario:
    """A project on disk and the model of it. It is never run itself; `copied` makes the one that is."""

    folder: Path
    model: Model

    def copied(self, folder: Path) -> Scenario:
        """Return a copy of the whole project in another folder."""
        shutil.copytree(self.folder, folder)
        return Scenario(folder, copy.deepcopy(self.model))

    def options(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a run, or of a restore, as the API takes them."""
        if call.restores is not None:
            return {"run": call.restores, "range": f"{call.first}..{call.last}"}
        return {"range": f"{call.first}..{call.last}", "rewrite": call.rewrite, "per_slice": call.per_slice}


def make(folder: Path, *, method: str = project.METHODS[0], groups: int = 3, is_first: bool = False) -> Scenario:
    """Make the project: four days that were published, then corrections on three of them, and a row put in twice.

    With `is_first` nothing was ever published, and there is no ledger. `groups` is how many channels a day has.
    """
    contract = project.create(folder, method=method)
    model = Model(method=method)
    with project.connect(folder) as connection:
        days = [D1, D2, D4]
        orders = [Order(day, f"channel {place}", Decimal(place)) for day in days for place in range(groups)]
        project.load_many(connection, model, dict(enumerate(orders)))
        if not is_first:
            call = Call(project.FREE, D1, D4)
            reslice.open(contract, connection=connection).target(call.target).run(f"{D1}..{D4}")
            assert model.run(call).outcome == "published"
        # Of day 1 an order moves to day 3, which had none; a channel of day 2 goes; a row of day 1 stands twice.
        project.load(connection, model, {0: Order(D3, "channel 0", Decimal("7.50"))})
        del model.orders[groups]
        project.cancel_order(connection, groups)
        version = None if is_first or method != "append_version" else "r-0001"
        repeated = Row(D1, "channel 1", 1, Decimal("1.00"), False, version)
        project.insert_rows(connection, [repeated])
        model.rows.append(repeated)
        assert differences(model, connection) == []
    return Scenario(folder, model)


@dataclass
class Shelf:
    """The scenarios of a folder, each made once: what a call is done to, by a method."""

    folder: Path
    made: dict[str, Scenario] = field(default_factory=dict)

    def scenario(self, method: str, name: str) -> Scenario:
        key = f"{method} restore" if name == "restore" else method
        if key not in self.made:
            folder = self.folder / key
            self.made[key] = make_published(folder, method) if name == "restore" else make(folder, method=method)
        return self.made[key]


def copies(scenario: Scenario, call: Call, folder: Path, every: int) -> Iterator[tuple[int, str, Scenario]]:
    """Yield the number and text of a statement of the run, and a fresh copy of the project to stop there.

    Every commit is among them, what follows the last one, and every n-th. Another run is first followed to its end, to
    know the statements.
    """
    with pytest.MonkeyPatch.context() as patch:
        statements = watched(patch)
        run(scenario.copied(folder / "undisturbed"), call)
    numbered = list(enumerate(statements.seen, start=1))
    last = max(number for number, text in numbered if text == "COMMIT")
    offset = sum(map(ord, folder.name)) % every
    for number, text in numbered:
        if text == "COMMIT" or number == last + 1 or number % every == offset:
            yield number, text, scenario.copied(folder / f"{number}")


def make_published(folder: Path, method: str) -> Scenario:
    """Make the project whose first run has replaced what was there, part of it put in by hand, and can be restored."""
    scenario = make(folder, method=method, is_first=True)
    call = Call(project.FREE, D1, D4)
    run(scenario, call)
    assert scenario.model.run(call).outcome == "published"
    return scenario


def run(scenario: Scenario, call: Call) -> Run:
    """Run, or restore, on a connection of its own, as the command line does."""
    target = reslice.open(scenario.folder / "reslice.yml").target(call.target)
    options = scenario.options(call)
    return target.run(**options) if call.restores is None else target.restore(**options)


def sane_after(scenario: Scenario, call: Call) -> State | None:
    """Hold a project whose run was cut short to all that is promised; return what the ledger said of that run.

    The file is old or new, or some of its slices are, each whole; a plan can be read from it and changes no byte of it;
    the same command ends right, says that it found the run, and leaves nothing behind.
    """
    before = _bytes(scenario.folder)
    plan = _plan(scenario, call)
    assert _bytes(scenario.folder) == before, "a plan wrote to the file"
    with project.connect(scenario.folder, read_only=True) as connection:
        left = left_by_crash(scenario.model, call, connection)
    assert plan.diff is not None
    assert {each.label for each in plan.diff.differing} == _open_days(left, call)
    state = left.runs[-1].state if len(left.runs) > len(scenario.model.runs) else None
    again(scenario, left, call)
    return state


def again(scenario: Scenario, left: Model, call: Call) -> Answer:
    """Run the same command on what is left, and hold all of the file to the model."""
    expected = left.run(call)
    done = run(scenario, call)
    assert (done.outcome.value, abandoned(done)) == (expected.outcome, expected.abandoned)
    with project.connect(scenario.folder) as connection:
        assert differences(left, connection) == []
    assert {path.name for path in scenario.folder.iterdir()} == {"reslice.yml", "sql", "orders.duckdb"}
    return expected


def _plan(scenario: Scenario, call: Call) -> Run:
    handle, span = _handle(scenario, call), f"{call.first}..{call.last}"
    return handle.plan(span) if call.restores is None else handle.plan_restore(call.restores, span)


def _handle(scenario: Scenario, call: Call) -> reslice.TargetHandle:
    return reslice.open(scenario.folder / "reslice.yml").target(call.target)


def _open_days(model: Model, call: Call) -> set[str]:
    """Return the days that a run would write, by asking a copy of the model."""
    imagined = copy.deepcopy(model)
    imagined.run(Call(call.target, call.first, call.last, restores=call.restores))
    diff = imagined.runs[-1].diff
    assert diff is not None
    return {str(day) for day in diff.differing}


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
