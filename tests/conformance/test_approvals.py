"""Approvals, by run or on paper: exactly what was shown is published, or nothing; and the ledger tells every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reslice import plan_file
from reslice.errors import Misused, Refused, Stopped
from reslice.values import Outcome
from tests.conformance.orders import D1, D2, D3, D4, T0, Orders, changed, found, kinds, without

WHOLE = f"{D1}..{D3}"


def emptied(orders: Orders) -> list[Any]:
    orders.cancel(f"order_date = '{D2}'")
    return without((D2, "store"), (D2, "web"))


def plan_on_paper(orders: Orders, path: Path) -> plan_file.PlanFile:
    """Write a plan to a file and read it back."""
    plan_file.write(path, plan_file.of(orders.plan(WHOLE), orders.handle.contract))
    return plan_file.read(path)


def approval(orders: Orders, kind: str, path: Path) -> Any:
    """Approve what the source holds now: by a stopped run, or by a plan on paper."""
    if kind == "plan":
        return plan_on_paper(orders, path)
    error = orders.fails("run", Stopped, WHOLE)
    return error.run.id


KINDS = pytest.mark.parametrize("kind", ["run", "plan"])


@KINDS
def test_an_approval_publishes_exactly_what_it_showed(orders: Orders, tmp_path: Path, kind: str) -> None:
    orders.declare(guards={})
    after = emptied(orders)
    approved = approval(orders, kind, tmp_path / "plan.json")

    run = orders.run(approve=approved)

    assert run.outcome is Outcome.PUBLISHED and orders.rows() == after
    assert [guard.name for guard in run.guards if guard.consented and guard.action == "stop"] == ["empty_slice"]
    assert orders.run(approve=approved).outcome is Outcome.UNCHANGED


@KINDS
@pytest.mark.parametrize("what", ["measure", "source", "guard"])
def test_x01_an_approval_under_another_contract_is_refused(
    orders: Orders, tmp_path: Path, kind: str, what: str
) -> None:
    orders.declare(guards={})
    emptied(orders)
    approved = approval(orders, kind, tmp_path / "plan.json")
    if what == "measure":
        orders.database.execute("ALTER TABLE daily_orders RENAME amount_cents TO cents")
        orders.source((orders.folder / "source.sql").read_text().replace("AS amount_cents", "AS cents"))
        orders.declare(measures={"order_count": {"min": 1}, "cents": {}})
    elif what == "source":
        orders.source((orders.folder / "source.sql").read_text() + "-- changed")
    else:
        orders.declare(guards={"empty_slice": "allow"})

    error = orders.fails("run", Refused, approve=approved)

    assert kinds(error) == ["contract_changed"] and error.exit_code == 3
    assert orders.rows() == list(T0)
    assert orders.ledger(error.run.id)["state"] == "refused"


@KINDS
def test_an_approval_of_rows_that_the_source_no_longer_gives_is_refused(
    orders: Orders, tmp_path: Path, kind: str
) -> None:
    orders.declare(guards={})
    emptied(orders)
    approved = approval(orders, kind, tmp_path / "plan.json")
    orders.correct(1, 1001)

    error = orders.fails("run", Refused, approve=approved)

    assert kinds(error) == ["approval_stale"] and "the source now gives" in found(error)
    assert orders.rows() == list(T0)


@KINDS
def test_an_approval_over_a_target_that_moved_is_refused(orders: Orders, tmp_path: Path, kind: str) -> None:
    orders.declare(guards={})
    emptied(orders)
    approved = approval(orders, kind, tmp_path / "plan.json")
    orders.fill([(D2, "phone", 1, 60)])
    before = orders.rows()

    error = orders.fails("run", Refused, approve=approved)

    assert kinds(error) == ["approval_stale"] and "the target now holds" in found(error)
    assert orders.rows() == before


@KINDS
def test_an_approval_of_a_change_that_was_taken_back_is_not_said_to_be_done(
    orders: Orders, tmp_path: Path, kind: str
) -> None:
    """Nothing differs any more, and yet what was approved was never published: whoever waits for it must hear so."""
    orders.declare(guards={"empty_slice": "allow", "total_change": "10%"})
    orders.correct(7, 9000)
    approved = approval(orders, kind, tmp_path / "plan.json")
    orders.correct(7, 5000)
    error = orders.fails("run", Refused, approve=approved)
    assert kinds(error) == ["approval_stale"]
    assert orders.rows() == list(T0)


@KINDS
def test_an_approval_of_what_is_there_already_is_unchanged(orders: Orders, tmp_path: Path, kind: str) -> None:
    orders.declare(guards={})
    after = emptied(orders)
    approved = approval(orders, kind, tmp_path / "plan.json")
    orders.database.execute(f"DELETE FROM daily_orders WHERE order_date = '{D2}'")

    run = orders.run(approve=approved)

    assert run.outcome is Outcome.UNCHANGED and not run.target_changed
    assert orders.rows() == after
    assert orders.ledger(run.id)["state"] == "unchanged"


def test_the_same_totals_in_other_groups_are_not_what_was_approved(orders: Orders) -> None:
    orders.declare(guards={})
    emptied(orders)
    error = orders.fails("run", Stopped, WHOLE)
    orders.correct(1, 1700)
    orders.correct(3, 0)
    assert kinds(orders.fails("run", Refused, approve=error.run.id)) == ["approval_stale"]
    assert orders.rows() == list(T0)


@pytest.mark.parametrize("state", ["published", "unchanged", "refused"])
def test_only_a_stopped_run_can_be_approved(orders: Orders, state: str) -> None:
    if state == "published":
        orders.correct(4, 1300)
    elif state == "refused":
        orders.order(9, D2, None, 1)
        assert kinds(orders.fails("run", Refused, WHOLE)) == ["key_null"]
    if state != "refused":
        orders.run(WHOLE)
    error = orders.fails("run", Refused, approve="last")
    assert kinds(error) == ["approval_stale"] and state in found(error)


@pytest.mark.parametrize("reference", ["r-9999", "", "last~5", "nonsense"])
def test_an_approval_of_a_run_that_is_not_there_is_misused(orders: Orders, reference: str) -> None:
    orders.run(WHOLE)
    assert kinds(orders.fails("run", Misused, approve=reference)) == ["run_unknown"]


def test_an_approval_of_another_target_is_misused(orders: Orders, tmp_path: Path) -> None:
    orders.declare(guards={})
    emptied(orders)
    paper = plan_on_paper(orders, tmp_path / "plan.json")
    error = orders.fails("run", Stopped, WHOLE)
    orders.name = "other_orders"
    orders.declare()
    for approved in (paper, error.run.id):
        assert kinds(orders.fails("run", Misused, approve=approved)) == ["usage"]
    assert orders.rows() == list(T0)


def test_a_stopped_run_with_gaps_in_its_range_is_approved_whole(orders: Orders) -> None:
    orders.source(f"SELECT DATE '{D3}' AS order_date WHERE :since < now()", "affected")
    orders.declare(guards={}, affected="affected.sql")
    orders.cancel(f"order_date = '{D1}'")
    orders.correct(8, 1000)
    orders.correct(4, 7)
    error = orders.fails("run", Stopped, D1, with_affected=True)
    assert error.run.scope.text == f"{D1},{D3}"

    run = orders.run(approve=error.run.id)

    assert run.scope.text == f"{D1},{D3}" and run.slices_done == (D1, D3)
    assert orders.rows() == changed((D3, "phone", 1, 1000))[2:]


def test_again_runs_a_recorded_range(orders: Orders) -> None:
    first = orders.run(f"{D2}..{D4}")
    orders.run(D1)
    orders.correct(4, 1300)
    assert orders.plan(again="last~1").scope.text == f"{D2}..{D4}"

    run = orders.run(again=first.id)

    assert run.scope.text == f"{D2}..{D4}" and run.slices_done == (D2,)
    assert orders.rows() == changed((D2, "web", 1, 1300))
    assert orders.run(again="last").outcome is Outcome.UNCHANGED
    answer = orders.verify(again=first.id)
    assert answer.equals_source


@pytest.mark.parametrize("options", [{}, {"range": D1, "again": "last"}, {"range": D1, "interval": (D1, D2)}])
def test_exactly_one_of_the_ways_to_name_slices_is_given(orders: Orders, options: dict[str, Any]) -> None:
    orders.run(D1)
    error = orders.fails("run", Misused, **options)
    assert kinds(error) == ["usage"]


def test_history_and_show_tell_every_run_newest_first(orders: Orders) -> None:
    orders.correct(4, 1300)
    published = orders.run(WHOLE)
    unchanged = orders.run(WHOLE)
    orders.declare(guards={})
    emptied(orders)
    stopped = orders.fails("run", Stopped, WHOLE).run
    orders.order(9, D2, None, 1)
    refused = orders.fails("run", Refused, WHOLE).run
    project = orders.handle.project

    history = project.history("daily_orders")

    assert [(run.id, run.state) for run in history] == [
        (refused.id, "refused"),
        (stopped.id, "stopped"),
        (unchanged.id, "unchanged"),
        (published.id, "published"),
    ]
    assert [run.id for run in project.history(limit=2)] == [refused.id, stopped.id]
    shown = project.show(published.id or "")
    assert [(each.change.value, dict(each.key)) for each in shown.groups] == [
        ("changed", {"order_date": D2, "channel": "web"})
    ]
    assert [(each.slice, each.state) for each in shown.slice_rows] == [
        (D1, "unchanged"),
        (D2, "published"),
        (D3, "unchanged"),
    ]
    assert shown.totals["amount_cents"].after == 12249 and shown.counts is not None and shown.counts.changed == 1
    assert shown.sql and any("DELETE FROM" in statement for statement in shown.sql)
    assert project.show("last~1").id == stopped.id
    for nothing in (project.show(stopped.id), project.show(refused.id)):
        assert nothing.fingerprint_after is None and nothing.error is not None


def test_history_without_a_ledger_is_empty(orders: Orders) -> None:
    project = orders.handle.project
    assert project.history() == () == project.history("daily_orders")
    with pytest.raises(Misused):
        project.show("last")
