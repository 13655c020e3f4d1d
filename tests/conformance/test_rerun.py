"""Running again: nothing is added twice, vanished groups go, others stay, and an emptied slice waits for a person."""

from __future__ import annotations

import pytest

from reslice.values import Change, Outcome
from tests.conformance.orders import D1, D2, D3, D4, EVERY_METHOD, IN_PLACE, T0, Orders, changed, found, without

METHODS = EVERY_METHOD


def test_t01_1_a_range_published_twice_holds_every_order_once(empty_orders: Orders) -> None:
    run = empty_orders.publish(f"{D1}..{D3}", added=6, after=T0)

    assert run.diff is not None
    assert (run.diff.totals["order_count"].before, run.diff.totals["order_count"].after) == (None, 8)
    assert (run.diff.totals["amount_cents"].before, run.diff.totals["amount_cents"].after) == (None, 12149)
    assert empty_orders.database.rows(
        f"SELECT count(*), sum(order_count), sum(amount_cents) FROM {empty_orders.current}"
    ) == [(6, 8, 12149)]
    proof = empty_orders.verify(f"{D1}..{D3}")
    assert proof.repeatable and proof.equals_source and proof.unstable_columns == ()


def test_verify_writes_nothing_and_records_its_answer_when_asked(orders: Orders) -> None:
    orders.verify(f"{D1}..{D3}")
    assert orders.database.table_names("reslice") == []

    orders.correct(4, 1300)
    answer = orders.verify(f"{D1}..{D3}", record=True)

    assert answer.repeatable and answer.equals_source is False
    row = orders.ledger(answer.id)
    assert (row["kind"], row["state"], row["groups_changed"]) == ("verify", "failed", 1)
    assert orders.rows() == list(T0)


def test_t05_1_a_group_without_a_source_row_is_removed(orders: Orders) -> None:
    orders.cancel("order_id = 8")

    run = orders.publish(D3, removed=1, unchanged=1, after=without((D3, "phone")))

    assert run.diff is not None
    (group,) = run.diff.groups
    assert (group.change, dict(group.key)) == (Change.REMOVED, {"order_date": D3, "channel": "phone"})
    assert dict(group.before or {}) == {"order_count": 1, "amount_cents": 999} and group.after is None
    assert orders.groups(run.id) == [("removed", (D3, "phone"), (1, 999), None)]
    assert orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM {orders.current}") == [(5, 11150)]


def test_t05_3_a_row_outside_the_range_stays_though_no_source_row_is_behind_it(orders: Orders) -> None:
    orders.fill([("2024-02-29", "web", 9, 900)])
    before = orders.versions()

    run = orders.run(f"{D1}..{D3}", rewrite=True)

    assert run.outcome is Outcome.PUBLISHED and run.rewritten and not run.target_changed
    assert [row for row in before if row[1] == "2024-02-29"] == [r for r in orders.versions() if r[1] == "2024-02-29"]
    assert orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM {orders.current}") == [(7, 13049)]
    orders.unchanged(f"{D1}..{D3}")


def test_t05_4_a_channel_that_disappears_over_the_range_is_listed_group_by_group(orders: Orders) -> None:
    orders.cancel("channel = 'store'")
    orders.declare(guards={"empty_slice": "allow", "total_change": "50%"})

    run = orders.publish(f"{D1}..{D3}", removed=2, unchanged=4, after=without((D1, "store"), (D2, "store")))

    assert orders.groups(run.id) == [
        ("removed", (D1, "store"), (1, 700), None),
        ("removed", (D2, "store"), (2, 750), None),
    ]
    assert run.diff is not None and run.diff.totals["amount_cents"].after == 10699


def test_t06_1_a_slice_that_would_become_empty_is_held(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D2}'")
    orders.declare(guards={"total_change": "allow"})

    error = orders.stops(f"{D1}..{D3}", "empty_slice")

    assert f"{D2} would go from 2 groups to 0" in found(error) and "1950" in found(error)
    assert orders.rows() == list(T0)


def test_t06_2_a_slice_may_become_empty_with_consent(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D2}'")
    orders.declare(guards={"total_change": "allow"})

    run = orders.publish(
        f"{D1}..{D3}",
        removed=2,
        unchanged=4,
        after=without((D2, "store"), (D2, "web")),
        allow=[f"empty_slice={D2}"],
        reason="the shop was closed",
    )

    assert orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM {orders.current}") == [(4, 10199)]
    row = orders.ledger(run.id)
    assert (row["groups_removed"], row["reason"]) == (2, "the shop was closed")
    assert orders.slices(run.id) == [(D1, "unchanged"), (D2, "published"), (D3, "unchanged")]


def test_t06_4_a_slice_that_is_empty_on_both_sides_is_no_alarm_and_is_recorded(orders: Orders) -> None:
    orders.declare(guards={})

    run = orders.unchanged(f"{D3}..{D4}")

    assert not any(guard.fired for guard in run.guards)
    assert orders.slices(run.id) == [(D3, "unchanged"), (D4, "empty")]


def test_t06_6_a_slice_that_shrinks_is_held_by_its_total_and_not_as_empty(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D1}' AND order_id <> 1")
    orders.declare(guards={})

    error = orders.stops(D1, "total_change")

    assert "4200" in found(error) and "1000" in found(error)
    assert orders.rows() == list(T0)


def test_t06_6_a_fan_out_is_held_by_its_total(orders: Orders) -> None:
    orders.database.execute("CREATE TABLE channels (name varchar)")
    orders.database.execute("INSERT INTO channels VALUES ('web'), ('web'), ('store'), ('phone')")
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents"
        " FROM orders_fact JOIN channels ON name = channel"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.declare(guards={})

    error = orders.stops(f"{D1}..{D3}", "total_change")

    assert "amount_cents 12149 → 21849 (+80%)" in found(error)
    assert orders.rows() == list(T0)


@pytest.mark.parametrize("method", IN_PLACE)
def test_only_the_slices_that_differ_are_rewritten(orders: Orders) -> None:
    orders.correct(4, 1300)
    outside = [row for row in orders.versions() if row[1] != D2]

    run = orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))

    assert run.slices_done == (D2,)
    assert [row for row in orders.versions() if row[1] != D2] == outside
    (kept,) = (name for name in orders.database.table_names("reslice") if name.startswith("kept_"))
    rows = orders.database.rows(f'SELECT * FROM reslice."{kept}"')
    assert sorted(rows) == [(run.id, D2, "store", 2, 750), (run.id, D2, "web", 1, 1200)]


def test_rewrite_writes_every_slice_that_has_rows_and_the_result_does_not_move(orders: Orders) -> None:
    versions = {row[0] for row in orders.versions()}
    for turn in range(1, 3):
        run = orders.run(f"{D1}..{D4}", rewrite=True)
        assert run.outcome is Outcome.PUBLISHED and run.rewritten and not run.target_changed
        assert run.slices_done == (D1, D2, D3)
        assert orders.ledger(run.id)["state"] == "published"
        assert orders.rows() == list(T0)
        places = {row[0] for row in orders.versions()}
        if orders.method == "append_version":
            assert versions < places and len(places) == 6 * (turn + 1)
        else:
            stay = orders.method == "merge" and orders.database.updates_in_place
            assert versions == places if stay else versions.isdisjoint(places)


def test_rewrite_of_a_range_that_is_empty_on_both_sides_is_unchanged(orders: Orders) -> None:
    run = orders.run(f"{D4}..2024-03-10", rewrite=True)

    assert run.outcome is Outcome.UNCHANGED
    assert orders.ledger(run.id)["state"] == "unchanged"
    assert orders.rows() == list(T0)


def test_keys_that_the_base_repeats_count_as_changed_and_are_healed(orders: Orders) -> None:
    orders.fill([(D2, "web", 1, 1200), (D2, "web", 1, 1200)])

    run = orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=T0)

    assert run.diff is not None and run.diff.repeated == 2
    (group,) = run.diff.groups
    assert (group.rows_before, dict(group.before or {})) == (3, {"order_count": 3, "amount_cents": 3600})


def test_rows_swapped_between_two_groups_of_one_slice_are_seen(orders: Orders) -> None:
    orders.database.execute(
        "UPDATE daily_orders SET channel = CASE channel WHEN 'web' THEN 'store' ELSE 'web' END"
        f" WHERE order_date = '{D2}'"
    )
    orders.publish(f"{D1}..{D3}", changed=2, unchanged=4, after=T0)


def test_a_doubled_pair_of_rows_does_not_cancel_out(orders: Orders) -> None:
    orders.fill([row for row in T0 if row[0] == D2])

    run = orders.publish(f"{D1}..{D3}", changed=2, unchanged=4, after=T0)

    assert run.diff is not None and run.diff.repeated == 2


def test_more_groups_than_are_listed_are_counted_and_the_largest_are_listed(empty_orders: Orders) -> None:
    empty_orders.cancel("true")
    empty_orders.database.execute(
        f"INSERT INTO orders_fact SELECT n, DATE '{D2}', 'c' || n, n FROM generate_series(1, 1200) AS numbers (n)"
    )
    run = empty_orders.run(D2)
    assert run.diff is not None and run.diff.counts.added == 1200
    assert len(run.diff.groups) == 500 and run.diff.groups_left_out == 700
    listed = {group.after["amount_cents"] for group in run.diff.groups if group.after is not None}
    assert listed == set(range(701, 1201))
    left_out = "SELECT groups_left_out FROM reslice.runs WHERE id = ?"
    assert empty_orders.database.rows(left_out, [run.id]) == [(700,)]
    assert len(empty_orders.groups(run.id)) == 500
    empty_orders.unchanged(D2)


def test_t10_1_the_same_rows_published_a_second_time_are_not_dropped(orders: Orders) -> None:
    corrected = changed((D2, "web", 1, 1300))
    for amount, after in ((1300, corrected), (1200, list(T0)), (1300, corrected)):
        orders.correct(4, amount)
        run = orders.publish(D2, changed=1, unchanged=1, after=after)
        assert run.after is not None and run.after.rows == 2


def test_t17_6_rows_outside_the_range_are_the_same_before_and_after(orders: Orders) -> None:
    orders.correct(4, 1300)
    outside = "SELECT count(*), sum(amount_cents), string_agg(x::varchar, ';' ORDER BY x) FROM {} AS x WHERE "
    outside += f"order_date <> '{D2}'"
    before = orders.database.rows(outside.format(orders.current))
    places = [row for row in orders.versions() if row[1] != D2]

    orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1300)))

    assert before[0][:2] == (4, 10199)
    assert orders.database.rows(outside.format(orders.current)) == before
    assert [row for row in orders.versions() if row[1] != D2] == places
