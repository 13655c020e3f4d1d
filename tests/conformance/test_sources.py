"""Sources that move: an answer that is not stable, a row that changes meanwhile, corrections of old days."""

from __future__ import annotations

import hashlib

import pytest

from reslice.errors import Misused, Retryable
from reslice.values import Outcome
from tests.conformance.orders import D1, D2, D3, SOURCE, T0, Orders, changed, found, kinds

AFFECTED = "SELECT DISTINCT order_date FROM changes WHERE loaded_at > :since ORDER BY 1"


def fingerprint(*rows: tuple[object, ...]) -> str:
    """Return the fingerprint of rows (amount, channel, order_count, order_date) by its definition."""
    total = 0
    for row in rows:
        text = "|".join(f"V{value}" for value in row)
        total += int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:15], 16)
    return f"{len(rows)}:{total}"


@pytest.mark.parametrize(
    ("type_text", "clock"),
    [
        ("timestamptz", "now()"),
        ("timestamp", "timezone('UTC', now())"),
        ("double precision", "random()"),
        ("varchar", "CAST(gen_random_uuid() AS varchar)"),
    ],
)
def test_t20_1_a_source_that_looks_at_the_clock_is_not_stable_and_the_column_is_named(
    orders: Orders, type_text: str, clock: str
) -> None:
    orders.database.execute(f"ALTER TABLE daily_orders ADD COLUMN computed_at {type_text}")
    scale = {"scale": 6} if type_text == "double precision" else {}
    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {}, "computed_at": scale})
    orders.source(SOURCE.replace("AS amount_cents", f"AS amount_cents, {clock} AS computed_at"))
    orders.run(f"{D1}..{D3}")

    answer = orders.verify(f"{D1}..{D3}")

    assert answer.repeatable is False and answer.unstable_columns == ("computed_at",)
    assert answer.equals_source is False


def test_a_source_whose_keys_are_not_stable_is_named_by_its_grain(orders: Orders) -> None:
    orders.source(
        SOURCE.replace("SELECT order_date, channel", "SELECT order_date, channel || random() AS channel").replace(
            "GROUP BY order_date, channel", "GROUP BY 1, 2"
        )
    )
    answer = orders.verify(f"{D1}..{D3}")
    assert answer.repeatable is False and answer.unstable_columns == ("order_date", "channel")


def test_a_source_that_moves_between_two_evaluations_is_not_called_unstable(orders: Orders) -> None:
    move = orders.at_step("staging the second time", lambda: orders.correct(4, 1300))
    answer = orders.verify(f"{D1}..{D3}", on_step=move)
    assert answer.repeatable and answer.equals_source is False
    assert any("moved while it was read" in warning for warning in answer.warnings)


def test_t20_3_the_staged_rows_are_published_whatever_the_source_does_meanwhile(empty_orders: Orders) -> None:
    orders = empty_orders
    correct = orders.elsewhere("UPDATE orders_fact SET amount_cents = 1300 WHERE order_id = 4")

    run = orders.run(D2, on_step=orders.at_step("checking", correct))

    assert run.outcome is Outcome.PUBLISHED
    assert orders.rows() == [(D2, "store", 2, 750), (D2, "web", 1, 1200)]
    staged = fingerprint((750, "store", 2, D2), (1200, "web", 1, D2))
    row = orders.ledger(run.id)
    assert (row["fingerprint_base"], row["fingerprint_staged"], row["fingerprint_after"]) == ("0:0", staged, staged)
    plan = orders.plan(D2)
    assert plan.diff is not None and plan.diff.counts.changed == 1
    (group,) = plan.diff.groups
    assert (dict(group.before or {})["amount_cents"], dict(group.after or {})["amount_cents"]) == (1200, 1300)


def test_source_base_and_controls_are_read_in_one_snapshot(orders: Orders) -> None:
    """A correction between two of the statements that stage is seen by all of them or by none."""
    orders.source(
        "SELECT order_date, sum(amount_cents) AS cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date",
        "control",
    )
    orders.declare(controls={"source": "control.sql", "match": {"cents": "sum(amount_cents)"}})
    seen: list[str] = []

    def follow(statement: str) -> None:
        if "CREATE TEMPORARY TABLE" in statement and "reslice_control" in statement and not seen:
            seen.append(statement)
            orders.elsewhere("UPDATE orders_fact SET amount_cents = 1300 WHERE order_id = 4")()

    with pytest.MonkeyPatch.context() as patch:
        orders.database.follow_statements(patch, follow)
        run = orders.run(f"{D1}..{D3}")

    assert seen and run.outcome is Outcome.UNCHANGED
    orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))


@pytest.fixture
def watched(orders: Orders) -> Orders:
    """Orders whose corrections leave a trace: which days they touch, and when they were loaded."""
    orders.database.execute("CREATE TABLE changes (order_date date, loaded_at timestamptz)")
    orders.source(AFFECTED, "affected")
    orders.declare(affected="affected.sql")
    orders.run(f"{D1}..{D3}")
    return orders


def corrected(orders: Orders, *days: str) -> None:
    for day in days:
        orders.database.execute("INSERT INTO changes VALUES (?, now())", [day])


def test_t21_1_a_correction_names_its_day_and_only_that_day_is_rewritten(watched: Orders) -> None:
    watched.correct(2, 2600)
    corrected(watched, D1)
    others = [row for row in watched.versions() if row[1] != D1]

    plan = watched.plan(D3)
    assert plan.affected == (D1,) and any(
        f"also touch {D1}, outside this range" in warning for warning in plan.warnings
    )
    run = watched.publish(D3, changed=1, unchanged=3, after=changed((D1, "web", 2, 3600)), with_affected=True)

    assert run.scope.text == f"{D1},{D3}" and run.slices_done == (D1,)
    assert watched.database.rows("SELECT sum(amount_cents) FROM daily_orders") == [(12249,)]
    assert [row for row in watched.versions() if row[1] != D1] == others
    assert watched.plan(D3).affected == ()


def test_t21_2_an_order_that_moves_touches_its_old_and_its_new_day(watched: Orders) -> None:
    watched.database.execute(f"UPDATE orders_fact SET order_date = '{D3}' WHERE order_id = 4")
    corrected(watched, D2, D3)

    alone = watched.plan(D3)
    assert alone.affected == (D2,)
    after = [*(row for row in T0 if row[:2] not in ((D2, "web"), (D3, "web"))), (D3, "web", 2, 6200)]
    run = watched.publish(D3, changed=1, removed=1, unchanged=2, after=after, with_affected=True)

    assert run.slices_done == (D2, D3)
    assert watched.database.rows("SELECT order_date, sum(amount_cents) FROM daily_orders GROUP BY 1 ORDER BY 1") == [
        (D1, 4200),
        (D2, 750),
        (D3, 7199),
    ]


def test_t21_2_the_new_day_alone_counts_the_order_twice_and_says_which_day_is_left(watched: Orders) -> None:
    watched.database.execute(f"UPDATE orders_fact SET order_date = '{D3}' WHERE order_id = 4")
    corrected(watched, D2, D3)

    run = watched.run(D3)

    assert watched.database.rows("SELECT sum(amount_cents) FROM daily_orders") == [(13349,)]
    assert run.affected == (D2,)
    assert any(f"also touch {D2}, outside this range; --with-affected" in warning for warning in run.warnings)


def test_t21_5_an_order_of_the_far_future_hides_no_correction(watched: Orders) -> None:
    watched.order(9, "2999-01-01", "web", 1)
    corrected(watched, "2999-01-01")
    watched.run("2999-01-01")
    watched.correct(2, 2600)
    corrected(watched, D1)

    plan = watched.plan(D3)

    assert plan.affected == (D1,)
    watched.run(D3, with_affected=True)
    assert watched.database.rows(f"SELECT sum(amount_cents) FROM daily_orders WHERE order_date = '{D1}'") == [(4300,)]


def test_t21_6_a_late_order_with_an_old_event_time_is_found_by_its_load_time(watched: Orders) -> None:
    watched.run(f"{D1}..2024-03-31")
    watched.order(9, D1, "web", 11)
    corrected(watched, D1)

    run = watched.run("2024-03-31", with_affected=True)

    assert run.scope.text == f"{D1},2024-03-31" and run.slices_done == (D1,)
    assert watched.rows() == changed((D1, "web", 3, 3511))


def test_t21_6_a_late_order_is_found_by_comparison_without_any_load_time(orders: Orders) -> None:
    orders.run(f"{D1}..{D3}")
    orders.order(9, D1, "web", 11)
    run = orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D1, "web", 3, 3511)))
    assert run.slices_done == (D1,)


def test_slices_that_an_older_contract_left_do_not_stop_a_contract_of_another_unit(watched: Orders) -> None:
    watched.correct(2, 2600)
    corrected(watched, D2)
    assert watched.run(D3).affected == (D2,)
    month = "CAST(date_trunc('month', order_date) AS DATE)"
    watched.source(
        SOURCE.replace("order_date, channel, count", f"{month} AS order_date, channel, count")
        .replace("WHERE order_date BETWEEN", f"WHERE {month} BETWEEN")
        .replace("GROUP BY order_date, channel", "GROUP BY 1, 2")
    )
    watched.declare(slice={"column": "order_date", "unit": "month"})

    assert watched.plan("2024-02").affected == ("2024-03",)
    run = watched.run("2024-02", with_affected=True)
    assert run.scope.text == "2024-02..2024-03" and run.outcome is Outcome.PUBLISHED
    assert watched.rows() == [(D1, "phone", 1, 999), (D1, "store", 3, 1450), (D1, "web", 4, 9800)]


def test_affected_slices_need_a_query_that_tells_them(orders: Orders) -> None:
    error = orders.fails("run", Misused, D1, with_affected=True)
    assert kinds(error) == ["usage"] and "no affected query" in found(error)


def test_a_source_that_fails_is_retried_and_leaves_everything(orders: Orders) -> None:
    orders.source(
        SOURCE.replace(
            "sum(amount_cents)",
            f"sum(CASE WHEN order_date = DATE '{D2}' THEN CAST('no disk' || channel AS bigint) ELSE amount_cents END)",
        )
    )
    before = orders.versions()
    for _ in range(2):
        error = orders.fails("run", Retryable, f"{D1}..{D3}")
        assert kinds(error) == ["source_failed"] and error.exit_code == 4 and "no disk" in found(error)
        assert orders.ledger(error.run.id)["state"] == "failed"
    assert orders.versions() == before


def test_a_statement_that_takes_too_long_is_stopped(orders: Orders) -> None:
    orders.declare(timeouts={"statement": "50ms"})
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents"
        " FROM orders_fact, generate_series(1, 3000000000) AS slow (n)"
        " WHERE order_date BETWEEN :start AND :end GROUP BY 1, 2"
    )
    error = orders.fails("run", Retryable, D2)
    assert "timeouts.statement" in found(error)
    assert orders.rows() == list(T0)
