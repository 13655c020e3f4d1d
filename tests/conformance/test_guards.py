"""Guards: what is suspicious waits for a person, who looks, and consents to exactly that."""

from __future__ import annotations

from typing import Any

import pytest

from reslice.errors import Misused, Stopped
from reslice.values import Outcome
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, T0, Orders, changed, found, kinds, without

WHOLE = f"{D1}..{D3}"


def emptied(orders: Orders) -> list[Any]:
    orders.cancel(f"order_date = '{D2}'")
    return without((D2, "store"), (D2, "web"))


def doubled(orders: Orders) -> list[Any]:
    orders.correct(7, 20000)
    return changed((D3, "web", 1, 20000))


def vanished(orders: Orders) -> list[Any]:
    orders.cancel("order_id = 8")
    return without((D3, "phone"))


def open_slice(orders: Orders) -> list[Any]:
    orders.correct(4, 1300)
    return changed((D2, "web", 1, 1300))


GUARDS = {
    "empty_slice": ({}, emptied, f"empty_slice={D2}"),
    "total_change": ({}, doubled, "total_change"),
    "removed_groups": ({"removed_groups": "stop"}, vanished, "removed_groups"),
    "closed_through": ({"closed_through": D1}, open_slice, "closed_through"),
    "max_slices": ({"max_slices": 2}, open_slice, "max_slices"),
}
PARAMETERS = pytest.mark.parametrize("guard", list(GUARDS))


def guarded(orders: Orders, guard: str) -> tuple[list[Any], str]:
    """Declare the guard, change the source so that it fires; return the rows a run would give, and the consent."""
    guards, change, consent = GUARDS[guard]
    orders.declare(guards=guards)
    return change(orders), consent


@PARAMETERS
def test_a_guard_stops_until_it_is_allowed_with_a_reason(orders: Orders, guard: str) -> None:
    after, consent = guarded(orders, guard)
    orders.stops(WHOLE, guard)

    for reason in ("", "  "):
        error = orders.fails("run", Misused, WHOLE, allow=[consent], reason=reason)
        assert kinds(error) == ["usage"] and error.exit_code == 2
    run = orders.run(WHOLE, allow=[consent], reason="the shop said so")

    assert run.outcome is Outcome.PUBLISHED and orders.rows() == after
    assert [each.consented for each in run.guards if each.name == guard] == [True]
    row = orders.ledger(run.id)
    assert (row["state"], row["reason"]) == ("published", "the shop said so")
    shown = orders.handle.project.show(run.id or "")
    assert [each.guard for each in shown.consents] == [guard]
    if guard != "max_slices" and guard != "closed_through":
        orders.unchanged(WHOLE)


@pytest.mark.parametrize("method", EVERY_METHOD)
@PARAMETERS
def test_a_stopped_run_is_approved_by_its_id_and_publishes_exactly_that(orders: Orders, guard: str) -> None:
    after, _ = guarded(orders, guard)
    error = orders.stops(WHOLE, guard)
    assert error.run is not None and error.next == f"reslice show {error.run.id} --diff"
    assert error.consent == f"reslice run --approve {error.run.id}"

    run = orders.run(approve=error.run.id)

    assert run.outcome is Outcome.PUBLISHED and run.scope.text == WHOLE and orders.rows() == after
    assert orders.ledger(run.id)["approves"] == error.run.id
    again = orders.run(approve=error.run.id)
    assert again.outcome is Outcome.UNCHANGED and orders.rows() == after


@PARAMETERS
def test_a_consent_to_one_guard_is_no_consent_to_another(orders: Orders, guard: str) -> None:
    guarded(orders, guard)
    for other, (_, _, consent) in GUARDS.items():
        if other != guard:
            error = orders.fails("run", Stopped, WHOLE, allow=[consent], reason="whatever")
            assert kinds(error) == [guard]
    assert orders.rows() == list(T0)


def test_several_guards_stop_at_once_and_each_wants_its_consent(orders: Orders) -> None:
    orders.declare(guards={"removed_groups": "stop", "max_slices": 2, "closed_through": D1, "total_change": "5%"})
    after = emptied(orders)
    orders.stops(WHOLE, "empty_slice", "total_change", "removed_groups", "closed_through", "max_slices")

    consents = [f"empty_slice={D2}", "total_change", f"removed_groups={D2}", "closed_through", "max_slices"]
    for missing in range(len(consents)):
        some = [each for place, each in enumerate(consents) if place != missing]
        assert orders.fails("run", Stopped, WHOLE, allow=some, reason="nearly all").exit_code == 3
    orders.run(WHOLE, allow=consents, reason="all of it")
    assert orders.rows() == after


def test_a_slice_that_may_become_empty_is_named(orders: Orders) -> None:
    orders.declare(guards={"total_change": "allow"})
    orders.cancel(f"order_date IN ('{D2}', '{D3}')")

    error = orders.fails("run", Misused, WHOLE, allow=["empty_slice"], reason="closed")
    assert "no slice is named" in found(error)
    error = orders.fails("run", Stopped, WHOLE, allow=[f"empty_slice={D2}"], reason="closed")
    assert D3 in found(error) and D2 not in found(error)
    assert orders.rows() == list(T0)
    after = [row for row in T0 if row[0] == D1]
    orders.publish(WHOLE, removed=4, unchanged=2, after=after, allow=[f"empty_slice={D2}..{D3}"], reason="closed")


@pytest.mark.parametrize("allow", ["no_such_guard", "restores", "empty_slice=soon", "=x", "", "total_change="])
def test_a_consent_that_cannot_be_understood_is_refused(orders: Orders, allow: str) -> None:
    emptied(orders)
    orders.declare(guards={})
    error = orders.fails("run", Misused, WHOLE, allow=[allow], reason="why not")
    assert error.exit_code == 2
    assert orders.rows() == list(T0) and orders.database.table_names("reslice") == []


@pytest.mark.parametrize("action", ["report", "allow"])
def test_a_guard_that_only_reports_lets_through(orders: Orders, action: str) -> None:
    orders.declare(guards={"empty_slice": action, "removed_groups": action, "total_change": "allow"})
    run = orders.publish(WHOLE, removed=2, unchanged=4, after=emptied(orders))
    assert {guard.name: guard.fired for guard in run.guards}["empty_slice"]


@pytest.mark.parametrize(
    ("limit", "cents", "is_held"),
    [("50%", 11074, False), ("50%", 11075, True), ("10%", 6214, False), ("10%", 6215, True), ("0%", 5001, True)],
)
def test_a_total_may_move_by_its_limit_and_no_more(orders: Orders, limit: str, cents: int, is_held: bool) -> None:
    """The base is 12149: 50% is 6074.5 and 10% is 1214.9."""
    orders.declare(guards={"total_change": limit})
    orders.correct(7, cents)
    if is_held:
        assert "amount_cents 12149" in found(orders.stops(WHOLE, "total_change"))
    else:
        assert orders.run(WHOLE).outcome is Outcome.PUBLISHED


def test_a_total_is_of_the_whole_range_and_not_of_one_slice(orders: Orders) -> None:
    orders.declare(guards={})
    orders.correct(4, 1200 + 4000)
    orders.correct(7, 5000 - 4000)
    assert orders.plan(D2).guards[1].stops
    orders.publish(WHOLE, changed=2, unchanged=4, after=changed((D2, "web", 1, 5200), (D3, "web", 1, 1000)))


def test_a_base_of_nothing_never_stops(empty_orders: Orders) -> None:
    empty_orders.declare(guards={})
    empty_orders.publish(WHOLE, added=6, after=T0)


@pytest.mark.parametrize("closed", ["2024-03-03", "yesterday", "400 days ago"])
def test_closed_slices_are_nobodys_business(orders: Orders, closed: str) -> None:
    orders.declare(guards={"closed_through": closed})
    orders.correct(4, 1300)
    orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))


@pytest.mark.parametrize("closed", ["2999-12-31", "yesterday"])
def test_a_slice_of_tomorrow_is_still_filling_whatever_the_contract_says(orders: Orders, closed: str) -> None:
    day = orders.database.rows("SELECT CAST(CAST(timezone('UTC', now()) AS DATE) + 1 AS VARCHAR)")[0][0]
    orders.declare(guards={"closed_through": closed})
    orders.order(9, day, "web", 1)

    error = orders.fails("run", Stopped, day)

    assert kinds(error) == ["closed_through"] and day in found(error)
    assert orders.rows() == list(T0)


def test_a_plan_shows_a_guard_and_ends_well(orders: Orders) -> None:
    orders.declare(guards={})
    emptied(orders)
    plan = orders.plan(WHOLE)
    assert plan.outcome is Outcome.PLANNED and plan.error is None
    assert [guard.name for guard in plan.guards if guard.stops] == ["empty_slice"]


def test_an_unchanged_run_is_not_held(orders: Orders) -> None:
    orders.declare(guards={"max_slices": 1, "closed_through": D1})
    orders.unchanged(WHOLE)
