"""A machine that corrects facts, runs, approves, gets in the way and crashes, and compares all of it with the model."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import reslice
from reslice.errors import ResliceError
from reslice.values import State
from tests import orders_project as project
from tests.agreement import abandoned, differences, left_by_crash
from tests.crash.statements import Killed, kill_at
from tests.model import Answer, Call, Model
from tests.model_rows import Order, Row, days_between

Span = tuple[date, date]

DAYS = [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 2)]
CHANNELS = ["web", "store", "a|b", "c\\d", "Vé N", "", None]

days = st.sampled_from(DAYS)
channels = st.sampled_from(CHANNELS)
prices = st.none() | st.decimals(min_value=-50, max_value=900, places=2, allow_nan=False, allow_infinity=False)
orders = st.builds(Order, days, channels, prices)
ranges = st.tuples(days, days).map(lambda pair: (min(pair), max(pair)))
names = st.sampled_from([project.FREE, project.FREE, project.GUARDED])
rows = st.builds(Row, days | st.none(), channels, st.integers(1, 9) | st.none(), prices, st.booleans() | st.none())


@dataclass(frozen=True)
class Write:
    """One change of the target by somebody who knows nothing of reslice, in SQL and in the model."""

    what: str
    day: date
    channel: str | None
    row: Row
    revenue: Decimal | None

    def on_database(self, connection: duckdb.DuckDBPyConnection) -> None:
        match self.what:
            case "insert":
                project.insert_rows(connection, [self.row])
            case "update":
                project.update_revenue(connection, self.day, self.channel, self.revenue)
            case "delete":
                project.delete_group(connection, self.day, self.channel)

    def on_model(self, model: Model) -> None:
        here = [row for row in model.rows if (row.order_date, row.channel) == (self.day, self.channel)]
        match self.what:
            case "insert":
                model.rows.append(self.row)
            case "update":
                model.rows = [self._updated(row) if row in here else row for row in model.rows]
            case "delete":
                model.rows = [row for row in model.rows if row not in here]

    def _updated(self, row: Row) -> Row:
        return Row(row.order_date, row.channel, row.order_count, self.revenue, row.has_gift, row.batch_id)


writes = st.builds(Write, st.sampled_from(["insert", "update", "delete"]), days, channels, rows, prices)


class Orders(RuleBasedStateMachine):
    """Orders and their daily sums in a DuckDB file, beside the model, published by one method."""

    method = project.METHODS[0]
    looks_again = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="orders-"))
        self.contract = self.created()
        self.model = Model(guarded=[project.GUARDED], method=self.method, looks_again=self.looks_again)
        self.connection = self.connected()
        self.next_order = 1

    def teardown(self) -> None:
        self.connection.close()
        shutil.rmtree(self.folder)

    # --- what another engine does otherwise ---------------------------------------------------------------------------

    def created(self) -> Path:
        """Make the project and its database; return the path of the contract."""
        return project.create(self.folder, method=self.method)

    def connected(self) -> Any:
        """Return a connection of the test's own."""
        return project.connect(self.folder)

    @property
    def shared(self) -> Any:
        """What the project is opened with: the connection, where a database is one process's own."""
        return self.connection

    def kill_at(self, patch: pytest.MonkeyPatch, statement: int) -> None:
        """Let the process die before its n-th statement."""
        kill_at(patch, statement)

    def settle(self) -> None:
        """Wait until nobody but the test is in the database."""

    def reconnect(self) -> None:
        """Let go of the connection, and with it of all that a run which was killed has left open."""
        self.connection.close()
        self.connection = self.connected()

    @invariant()
    def everything_agrees(self) -> None:
        self.settle()
        assert differences(self.model, self.connection) == []

    # --- facts, and rows put in by hand -------------------------------------------------------------------------------

    @initialize(first=st.lists(orders, max_size=8), filled=st.booleans())
    def begin(self, first: list[Order], filled: bool) -> None:
        for order in first:
            self.insert_order(order)
        if filled:
            self.run_through(Call(project.FREE, DAYS[0], DAYS[-1]))

    @rule(order=orders)
    def insert_order(self, order: Order) -> None:
        project.load(self.connection, self.model, {self.next_order: order})
        self.next_order += 1

    @precondition(lambda self: self.model.orders)
    @rule(data=st.data(), order=orders)
    def correct_order(self, data: st.DataObject, order: Order) -> None:
        project.load(self.connection, self.model, {self._some_order(data): order})

    @precondition(lambda self: self.model.orders)
    @rule(data=st.data())
    def cancel_order(self, data: st.DataObject) -> None:
        order_id = self._some_order(data)
        project.cancel_order(self.connection, order_id)
        del self.model.orders[order_id]

    def _some_order(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.model.orders)))

    @rule(write=writes)
    def write_by_hand(self, write: Write) -> None:
        write.on_database(self.connection)
        write.on_model(self.model)

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data())
    def repeat_a_row_by_hand(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.model.rows))
        project.insert_rows(self.connection, [row])
        self.model.rows.append(row)

    # --- runs ---------------------------------------------------------------------------------------------------------

    @rule(span=ranges, name=names)
    def plan(self, span: Span, name: str) -> None:
        """A plan tells what a run would do, and leaves no trace."""
        imagined = copy.deepcopy(self.model)
        expected = imagined.run(Call(name, *span))
        try:
            plan = self._target(name).plan(f"{span[0]}..{span[1]}")
        except ResliceError as error:
            assert error.kind == expected.outcome == "key_null"
            return
        diff = imagined.runs[-1].diff
        assert diff is not None
        assert plan.diff is not None
        assert [each.label for each in plan.diff.differing] == [str(day) for day in diff.differing]
        stops = {guard.name for guard in plan.guards if guard.stops}
        assert (expected.outcome in stops) == (expected.outcome in ("empty_slice", "total_change", "restored"))
        assert bool(stops) == (imagined.runs[-1].state is State.STOPPED)

    @rule(span=ranges, name=names, rewrite=st.booleans(), per_slice=st.booleans())
    def run(self, span: Span, name: str, rewrite: bool, per_slice: bool) -> None:
        self.run_through(Call(name, *span, rewrite=rewrite, per_slice=per_slice))

    @rule(span=ranges, per_slice=st.booleans())
    def run_on_its_own_connection(self, span: Span, per_slice: bool) -> None:
        """The project opens the file itself, as the command line does."""
        self.connection.close()
        self.run_through(Call(project.FREE, *span, per_slice=per_slice), connection=None)
        self.connection = self.connected()

    @precondition(lambda self: any(run.state is State.STOPPED for run in self.model.runs))
    @rule(data=st.data())
    def approve(self, data: st.DataObject) -> None:
        stopped = [run for run in self.model.runs if run.state is State.STOPPED]
        run = data.draw(st.sampled_from(stopped))
        self.run_through(Call(run.target, run.first, run.last, approves=run.id))

    @rule(span=ranges)
    def status(self, span: Span) -> None:
        """Each day is equal to its source, differs from it, is missing, or is there without a source."""
        run = self._target(project.FREE).status(f"{span[0]}..{span[1]}")
        assert run.diff is not None
        found = {each.label: each.state.value for each in run.diff.slices}
        expected = {}
        for day in days_between(*span):
            base, staged = self.model.of_day(day), self.model.recompute(day)
            if base or staged:
                is_equal = sorted(map(repr, values_of(base))) == sorted(map(repr, values_of(staged)))
                expected[str(day)] = (
                    "equal" if is_equal else "missing" if not base else "extra" if not staged else "differs"
                )
        assert found == expected
        assert run.equals_source == (set(expected.values()) <= {"equal"})

    @precondition(lambda self: any(run.slices for run in self.model.runs))
    @rule(data=st.data(), span=ranges, is_whole=st.booleans())
    def restore(self, data: st.DataObject, span: Span, is_whole: bool) -> None:
        """Put back what any earlier run replaced, of all its days or of some."""
        self.run_through(self._some_restore(data, (DAYS[0], DAYS[-1]) if is_whole else span))

    @precondition(lambda self: any(run.slices for run in self.model.runs))
    @rule(data=st.data(), place=st.integers(0, 4), write=writes)
    def restore_beside_a_writer(self, data: st.DataObject, place: int, write: Write) -> None:
        call = replace(self._some_restore(data, (DAYS[0], DAYS[-1])), hooks={place: write.on_model})
        self.run_through(call, {place: lambda: write.on_database(self.connection)})

    @precondition(lambda self: any(run.slices for run in self.model.runs))
    @rule(data=st.data(), statement=st.integers(1, 60))
    def crash_a_restore(self, data: st.DataObject, statement: int) -> None:
        call = self._some_restore(data, (DAYS[0], DAYS[-1]))
        with pytest.MonkeyPatch.context() as patch:
            self.kill_at(patch, statement)
            with suppress(Killed, ResliceError):
                self._target(call.target).restore(call.restores or "")
        self.reconnect()
        self.model = left_by_crash(self.model, call, self.connection)

    def _some_restore(self, data: st.DataObject, span: Span) -> Call:
        """Return the restore of some run; of one that has published nothing at times as well."""
        runs = [run for run in self.model.runs if run.slices]
        published = [run for run in runs if any(self.model.is_published(run.id, day) for day in run.days)]
        run = data.draw(st.sampled_from([*runs, *published, *published]))
        return Call(run.target, *span, restores=run.id)

    @rule(span=ranges, rewrite=st.booleans())
    def run_again(self, span: Span, rewrite: bool) -> None:
        """The second of two runs finds nothing to change."""
        self.run_through(Call(project.FREE, *span, rewrite=rewrite))
        answer = self.run_through(Call(project.FREE, *span))
        assert answer.outcome == "unchanged"

    @rule(span=ranges, place=st.integers(0, 6), write=writes, per_slice=st.booleans(), rewrite=st.booleans())
    def run_beside_a_writer(self, span: Span, place: int, write: Write, per_slice: bool, rewrite: bool) -> None:
        """Somebody writes to the target, and commits, while the run is at one of its steps."""
        call = Call(project.FREE, *span, rewrite, per_slice, hooks={place: write.on_model})
        self.run_through(call, {place: lambda: write.on_database(self.connection)})

    @rule(
        span=ranges, place=st.integers(0, 5), other=ranges, order=orders, per_slice=st.booleans(), rewrite=st.booleans()
    )
    def run_beside_a_run(
        self, span: Span, place: int, other: Span, order: Order, per_slice: bool, rewrite: bool
    ) -> None:
        """A correction arrives while a run is at one of its steps, and another run publishes it first."""
        number = self.next_order
        self.next_order += 1
        inner = Call(project.FREE, *other, rewrite=rewrite)
        answers: list[Answer] = []

        def on_model(model: Model) -> None:
            model.orders[number] = order
            answers.append(model.run(inner))

        def on_database() -> None:
            project.put_order(self.connection, number, order)
            found.append(self._outcome(inner, self.shared, {}))

        found: list[tuple[str, tuple[str, ...], int]] = []
        self.run_through(Call(project.FREE, *span, per_slice=per_slice, hooks={place: on_model}), {place: on_database})
        assert found == [(answer.outcome, answer.steps, answer.abandoned) for answer in answers]

    @rule(span=ranges, statement=st.integers(1, 70), per_slice=st.booleans(), rewrite=st.booleans())
    def crash(self, span: Span, statement: int, per_slice: bool, rewrite: bool) -> None:
        """A run ends before its n-th statement; the file is as before or as after, and every part of it says so."""
        call = Call(project.FREE, *span, rewrite, per_slice)
        with pytest.MonkeyPatch.context() as patch:
            self.kill_at(patch, statement)
            with suppress(Killed):
                self._target(call.target).run(f"{span[0]}..{span[1]}", rewrite=rewrite, per_slice=per_slice)
        self.reconnect()
        self.model = left_by_crash(self.model, call, self.connection)
        if self.model.runs and self.model.runs[-1].state is State.REQUESTED:
            self.run_through(call)

    # --- running ------------------------------------------------------------------------------------------------------

    def run_through(
        self, call: Call, hooks: Mapping[int, Callable[[], None]] | None = None, connection: Any = ...
    ) -> Answer:
        """Run for real and in the model; both must end the same way, by the same steps."""
        found = self._outcome(call, self.shared if connection is ... else connection, hooks or {})
        expected = self.model.run(call)
        assert found == (expected.outcome, expected.steps, expected.abandoned)
        return expected

    def _outcome(
        self, call: Call, connection: Any, hooks: Mapping[int, Callable[[], None]]
    ) -> tuple[str, tuple[str, ...], int]:
        """Run, with `hooks` at their steps; return how it ended, the steps, and how many abandoned runs were named."""
        steps: list[str] = []

        def on_step(step: str) -> None:
            steps.append(step)
            hooks.get(len(steps) - 1, lambda: None)()

        target = reslice.open(self.contract, connection=connection).target(call.target)
        span = None if call.approves else f"{call.first}..{call.last}"
        try:
            if call.restores is not None:
                run = target.restore(call.restores, span, on_step=on_step)
            else:
                run = target.run(
                    span, approve=call.approves, rewrite=call.rewrite, per_slice=call.per_slice, on_step=on_step
                )
        except ResliceError as error:
            assert error.run is None or error.run.error is error
            return error.kind, tuple(steps), abandoned(error.run)
        return run.outcome.value, tuple(steps), abandoned(run)

    def _target(self, name: str) -> reslice.TargetHandle:
        return reslice.open(self.contract, connection=self.shared).target(name)


def values_of(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [row.values for row in rows]


class MergedOrders(Orders):
    method = "merge"


class VersionedOrders(Orders):
    method = "append_version"


MACHINES = {machine.method: machine for machine in (Orders, MergedOrders, VersionedOrders)}


def explore(machine: type[Orders], *, examples: int, steps: int, derandomize: bool) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate] if derandomize else [Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
        ),
    )


@pytest.mark.parametrize("method", project.METHODS)
def test_sample(method: str) -> None:
    explore(MACHINES[method], examples=5, steps=12, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", project.METHODS)
def test_many(method: str) -> None:
    explore(MACHINES[method], examples=400, steps=25, derandomize=False)
