"""After a restore: a run that would undo it waits for a person, and everything else goes on as before."""

from __future__ import annotations

import pytest

from reslice.errors import Refused, Stopped
from reslice.next_command import next_command
from reslice.values import Guard, Outcome, Run
from tests.conformance.databases import DuckDBDatabase
from tests.conformance.orders import D1, D2, D3, T0, Orders, changed, found, kinds, without
from tests.conformance.test_restore import D2_2050, D2_2150, published


@pytest.fixture
def restored(orders: Orders) -> Orders:
    """Order 4 corrected, published by r-0001, and that run restored by r-0002: D2 is 1950, its source says 2050."""
    orders.correct(4, 1300)
    published(orders, D2)
    assert orders.restore("r-0001").id == "r-0002" and orders.rows() == list(T0)
    return orders


def guard_of(run: Run) -> Guard:
    (guard,) = [guard for guard in run.guards if guard.name == "restored"]
    return guard


@pytest.mark.parametrize("range", [D2, f"{D1}..{D3}", "2024"])
def test_a_run_that_would_undo_a_restore_is_stopped(restored: Orders, range: str) -> None:
    error = restored.stops(range, "restored")

    words = f"r-0002 put {D2} back as it was before r-0001; this run would write the rows that r-0001 had put there"
    assert found(error) == words and error.exit_code == 3
    assert error.failures[0].asked.startswith("a run may not undo a restore")
    assert error.consent == f"reslice run --approve {error.run.id if error.run else ''}"


def test_other_rows_than_those_of_the_run_are_told_apart(restored: Orders) -> None:
    restored.correct(4, 1400)
    assert found(restored.stops(D2, "restored")).endswith("this run would write other rows")


def test_a_plan_shows_it_and_names_the_consent(restored: Orders) -> None:
    plan = restored.plan(D2)
    assert guard_of(plan).stops and guard_of(plan).slices == (D2,)
    assert next_command(plan) == f'reslice run daily_orders {D2} --allow restored --reason "say why"'


@pytest.mark.parametrize("allowed", ["restored", f"restored={D2}"])
def test_a_consent_with_a_reason_lets_it_through_once_and_for_all(restored: Orders, allowed: str) -> None:
    run = restored.publish(
        D2, changed=1, unchanged=1, after=D2_2050, allow=[allowed], reason="the correction was right"
    )
    assert guard_of(run).consented and restored.ledger(run.id)["reason"] == "the correction was right"

    restored.correct(4, 1400)
    restored.publish(D2, changed=1, unchanged=1, after=D2_2150)


def test_a_consent_for_another_slice_does_not_help(restored: Orders) -> None:
    with pytest.raises(Stopped) as caught:
        restored.run(f"{D1}..{D3}", allow=[f"restored={D1}"], reason="it is the wrong one")
    assert kinds(caught.value) == ["restored"] and restored.rows() == list(T0)


def test_a_stopped_run_is_approved(restored: Orders) -> None:
    with pytest.raises(Stopped) as caught:
        restored.run(D2)
    assert caught.value.run is not None
    run = restored.run(approve=caught.value.run.id)
    assert run.outcome is Outcome.PUBLISHED and restored.rows() == D2_2050
    assert not guard_of(restored.plan(D2)).fired


def test_a_contract_may_let_restores_be_undone(restored: Orders) -> None:
    restored.declare(guards={"restored": "allow"})
    run = restored.publish(D2, changed=1, unchanged=1, after=D2_2050)
    assert guard_of(run).fired and not guard_of(run).stops


def test_it_is_quiet_after_a_run_that_found_the_slice_equal(restored: Orders) -> None:
    restored.correct(4, 1200)
    restored.unchanged(f"{D1}..{D3}")
    restored.correct(4, 1400)
    restored.publish(D2, changed=1, unchanged=1, after=D2_2150)


def test_it_is_quiet_after_a_run_that_rewrote_the_slice(restored: Orders) -> None:
    restored.correct(4, 1200)
    assert restored.run(D2, rewrite=True).outcome is Outcome.PUBLISHED
    restored.correct(4, 1400)
    restored.publish(D2, changed=1, unchanged=1, after=D2_2150)


def test_it_is_not_quiet_after_a_run_over_other_slices_or_one_that_failed(restored: Orders) -> None:
    restored.correct(1, 1100)
    published(restored, D1)
    restored.source(
        "SELECT order_date, channel, 0 AS order_count, 0 AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end"
    )
    with pytest.raises(Refused):
        restored.run(D2)
    restored.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    restored.stops(D2, "restored")


def test_a_run_that_looked_before_the_restore_does_not_make_it_quiet(orders: Orders) -> None:
    orders.correct(4, 1300)
    published(orders, D2)

    # It has compared D2 with its source and found it equal; then the restore comes, and then it ends.
    run = orders.run(D2, on_step=orders.at_step("comparing", lambda: None))
    assert run.outcome is Outcome.UNCHANGED
    orders.restore("r-0001")
    with orders.database.session() as session:
        session.execute("UPDATE reslice.runs SET finished_at = now() + INTERVAL '1 minute' WHERE id = ?", [run.id])

    orders.stops(D2, "restored")


def test_each_slice_counts_for_itself(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    orders.correct(7, 5100)
    first = published(orders, f"{D1}..{D3}", per_slice=True)
    orders.restore(first, f"{D1}..{D2}")
    published(orders, D1, allow=["restored"], reason="D1 was right")

    error = orders.stops(f"{D1}..{D3}", "restored")
    assert D2 in found(error) and D1 not in found(error)
    assert "so too for" not in found(error)
    orders.restore(first, D3)
    assert "; so too for 1 more slice" in found(orders.stops(f"{D1}..{D3}", "restored"))

    with pytest.raises(Stopped):
        orders.run(f"{D1}..{D3}", per_slice=True)
    run = orders.run(f"{D1}..{D3}", per_slice=True, allow=["restored"], reason="all of it was right")
    assert run.slices_done == (D2, D3)


def test_a_slice_that_was_restored_to_empty(empty_orders: Orders) -> None:
    first = published(empty_orders, f"{D1}..{D3}")
    empty_orders.restore(first)
    assert empty_orders.rows() == []
    error = empty_orders.stops(f"{D1}..{D3}", "restored")
    assert f"put {D1} back as it was before {first}" in found(error) and "so too for 2 more slices" in found(error)


def test_a_slice_that_was_filled_again_and_would_be_emptied(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D2}'")
    first = published(orders, D2)
    assert orders.rows() == without((D2, "store"), (D2, "web"))
    orders.restore(first)
    orders.declare(guards={"total_change": "allow"})
    orders.stops(D2, "empty_slice", "restored")


def test_a_restore_that_was_itself_undone_is_no_reason_to_stop_over_the_same_rows(restored: Orders) -> None:
    restored.restore("r-0002")
    assert restored.rows() == D2_2050
    restored.unchanged(D2)
    restored.correct(4, 1400)
    restored.publish(D2, changed=1, unchanged=1, after=D2_2150)


def test_a_restore_is_never_stopped_by_a_guard(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    orders.declare(guards={"removed_groups": "stop", "closed_through": "2024-02-01", "max_slices": 1})
    orders.puts_back(first, after=T0, slices=(D2,), changed=1, unchanged=1)


# What else a restore means for later runs


def declare_affected(orders: Orders) -> None:
    orders.database.execute("CREATE TABLE corrections (order_date date, loaded_at timestamptz)")
    orders.source("SELECT order_date FROM corrections WHERE loaded_at > :since", "affected")
    orders.declare(affected="affected.sql")


def test_what_corrections_touch_is_told_as_before_the_restore(orders: Orders) -> None:
    declare_affected(orders)
    orders.correct(4, 1300)
    orders.database.execute(f"INSERT INTO corrections VALUES ('{D2}', now())")
    assert orders.run(D1).affected == (D2,)
    first = published(orders, D2)
    assert orders.run(D1).affected == ()
    orders.restore(first)

    assert orders.run(D1).affected == ()  # a person put D2 back; that is no correction
    orders.database.execute(f"INSERT INTO corrections VALUES ('{D2}', now())")
    assert orders.run(D1).affected == (D2,)
    with pytest.raises(Stopped) as caught:
        orders.run(D1, with_affected=True)
    assert kinds(caught.value) == ["restored"]


def test_a_run_that_staged_before_a_restore_does_not_overwrite_it(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    orders.correct(4, 1400)

    def undo() -> None:
        orders.restore(first)

    with pytest.raises(Refused) as caught:
        orders.run(D2, on_step=orders.at_step("publishing", undo))
    assert kinds(caught.value) == ["base_moved"] and orders.rows() == list(T0)


def test_a_restore_does_not_undo_a_run_that_finished_meanwhile(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    orders.correct(4, 1400)

    def publish() -> None:
        published(orders, D2)

    with pytest.raises(Refused) as caught:
        orders.restore(first, on_step=orders.at_step("publishing", publish))
    assert kinds(caught.value) == ["later_run"] and orders.rows() == D2_2150
    assert found(caught.value).startswith("r-0003 ")


def everything(orders: Orders) -> object:
    """Return what nobody may have written to: the bytes of the file, or every row of the target and the ledger."""
    if isinstance(orders.database, DuckDBDatabase):
        return orders.database.path.read_bytes()
    tables = [f"reslice.{name}" for name in orders.database.table_names("reslice")]
    return {name: orders.database.versions(name) for name in (*tables, orders.table)}


def test_a_ledger_that_is_older_than_restores(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    for table in ("prunings", "pointers", "versions"):
        orders.database.execute(f"DROP TABLE reslice.{table}")
    for column in ("restores", "pruned_at"):
        orders.database.execute(f"ALTER TABLE reslice.runs DROP COLUMN {column}")
    orders.database.let_go()
    before = everything(orders)
    project = orders.database.project(orders.file)

    assert not guard_of(orders.plan(f"{D1}..{D3}")).fired
    assert orders.status().equals_source
    assert [run.id for run in project.history()] == [first] and project.show(first).slice_rows
    plan = orders.plan_restore(first)
    assert plan.diff is not None and plan.diff.counts.changed == 1
    orders.database.let_go()
    assert everything(orders) == before

    orders.puts_back(first, after=T0, slices=(D2,), changed=1, unchanged=1)
    orders.stops(D2, "restored")


def test_two_days_of_work_in_one_history(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    orders.restore(first)
    orders.run(D1)
    project = orders.database.project(orders.file)
    said = [(run.id, run.kind, run.state, run.restores) for run in project.history()]
    assert said == [
        ("r-0003", "run", "unchanged", ""),
        ("r-0002", "restore", "restored", "r-0001"),
        ("r-0001", "run", "published", ""),
    ]
    assert orders.rows() == list(T0) != changed((D2, "web", 1, 1300))
