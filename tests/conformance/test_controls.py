"""Controls: an independent figure of the source, per slice, that the staged rows must match exactly."""

from __future__ import annotations

import pytest

from reslice.errors import Misused, Refused
from tests.conformance.orders import D1, D2, D3, T0, Orders, changed, found, kinds

CONTROL = (
    "SELECT order_date, count(*) AS orders, sum(amount_cents) AS cents FROM orders_fact"
    " WHERE order_date BETWEEN :start AND :end GROUP BY order_date"
)
MATCH = {"orders": "sum(order_count)", "cents": "sum(amount_cents)"}


@pytest.fixture
def controlled(orders: Orders) -> Orders:
    orders.source(CONTROL, "control")
    orders.declare(controls={"source": "control.sql", "match": MATCH})
    return orders


def test_a_control_that_matches_lets_the_run_through_and_is_recorded(controlled: Orders) -> None:
    controlled.correct(4, 1300)

    run = controlled.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))

    assert run.controls_declared
    assert [(line.figure, line.control, line.target, line.ok) for line in run.controls] == [
        ("orders", 8, 8, True),
        ("cents", 12249, 12249, True),
    ]
    assert "12249" in controlled.database.rows("SELECT controls FROM reslice.runs WHERE id = ?", [run.id])[0][0]


def test_a_run_without_controls_says_so(orders: Orders) -> None:
    run = orders.run(f"{D1}..{D3}")
    assert not run.controls_declared and run.controls == ()


def test_t04_2_a_join_that_multiplies_a_measure_is_refused_with_both_pairs(controlled: Orders) -> None:
    controlled.database.execute("CREATE TABLE channels (name varchar)")
    controlled.database.execute("INSERT INTO channels VALUES ('web'), ('web'), ('store'), ('phone')")
    controlled.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents"
        " FROM orders_fact JOIN channels ON name = channel"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )

    error = controlled.refuses(f"{D1}..{D3}", "control_differs", "control_differs")

    assert "the control says orders 8, the staged rows 12" in found(error)
    assert "the control says cents 12149, the staged rows 21849" in found(error)
    assert D1 in found(error) and D2 in found(error) and D3 in found(error)


def test_two_errors_that_cancel_over_the_range_are_still_a_difference(controlled: Orders) -> None:
    controlled.source(
        f"SELECT CASE order_id WHEN 4 THEN DATE '{D3}' WHEN 7 THEN DATE '{D2}' ELSE order_date END AS order_date,"
        " channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY 1, 2"
    )

    error = controlled.refuses(f"{D1}..{D3}", "control_differs")

    assert f"cents 12149, the staged rows 12149; it differs in {D2}, {D3}" in found(error)


def test_a_slice_that_the_control_lacks_is_zero(controlled: Orders) -> None:
    controlled.source(CONTROL.replace("GROUP BY", f"AND order_date <> DATE '{D2}' GROUP BY"), "control")

    error = controlled.refuses(f"{D1}..{D3}", "control_differs", "control_differs")

    assert f"the control says orders 5, the staged rows 8; it differs in {D2}" in found(error)


def test_a_slice_that_the_source_lacks_is_zero(controlled: Orders) -> None:
    controlled.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        f" WHERE order_date BETWEEN :start AND :end AND order_date <> DATE '{D2}' GROUP BY order_date, channel"
    )

    error = controlled.refuses(f"{D1}..{D3}", "control_differs", "control_differs")

    assert f"the control says cents 12149, the staged rows 10199; it differs in {D2}" in found(error)


def test_a_figure_that_is_null_is_zero(controlled: Orders) -> None:
    controlled.database.execute("DELETE FROM orders_fact")
    controlled.source(
        f"SELECT DATE '{D2}' AS order_date, 0 AS orders, NULL::bigint AS cents WHERE :start <= :end", "control"
    )
    controlled.publish(f"{D1}..{D3}", removed=6, after=[])


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (CONTROL.replace("GROUP BY order_date", "GROUP BY order_date, channel"), "repeat a slice"),
        (
            CONTROL.replace(" WHERE order_date BETWEEN :start AND :end", " WHERE :start <= :end"),
            "lie outside the range",
        ),
        (
            "SELECT NULL::date AS order_date, 1 AS orders, 1 AS cents WHERE :start <= :end",
            "have no slice",
        ),
        (CONTROL.replace("AS cents", "AS money"), "returns no column cents; it returns order_date, orders, money"),
        (CONTROL.replace("sum(amount_cents)", "sum(amount_cents)::double precision"), "an exact number"),
        (CONTROL.replace("count(*)", "count(*)::varchar"), "an exact number"),
    ],
    ids=["repeated slice", "outside", "no slice", "no figure", "float", "text"],
)
def test_a_control_that_is_not_one_exact_row_per_slice_is_refused(controlled: Orders, control: str, words: str) -> None:
    controlled.source(control, "control")

    error = controlled.refuses(D2, "control_rows")

    assert words in found(error)


def test_a_control_that_the_database_does_not_understand_is_the_contracts_fault(controlled: Orders) -> None:
    controlled.source(CONTROL.replace("orders_fact", "no_such_table"), "control")

    for command in ("plan", "run"):
        error = controlled.fails(command, Misused, D2)
        assert kinds(error) == ["source_invalid"] and "control.sql" in str(error)
    assert controlled.rows() == list(T0)


def test_a_control_counts_rows_of_the_target(controlled: Orders) -> None:
    controlled.source(
        "SELECT order_date, count(DISTINCT channel) AS channels FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date",
        "control",
    )
    controlled.declare(controls={"source": "control.sql", "match": {"channels": "count(*)"}})
    run = controlled.unchanged(f"{D1}..{D3}")
    assert [(line.control, line.target) for line in run.controls] == [(6, 6)]


def test_a_decimal_figure_is_compared_exactly(controlled: Orders) -> None:
    controlled.source(CONTROL.replace("sum(amount_cents)", "sum(amount_cents) + 0.01"), "control")

    error = controlled.fails("run", Refused, D2)

    assert "cents 1950.01, the staged rows 1950" in found(error)


def test_verify_asks_a_reader_of_the_target_and_run_names_it(orders: Orders) -> None:
    orders.source(
        "SELECT order_date, sum(order_count) AS orders FROM daily_orders WHERE order_date BETWEEN :start AND :end"
        f" AND order_date <> DATE '{D2}' GROUP BY order_date",
        "report",
    )
    orders.declare(downstream={"report": {"query": "report.sql", "match": {"orders": "sum(order_count)"}}})

    answer = orders.verify(f"{D1}..{D3}")

    assert answer.repeatable and answer.equals_source
    assert [(line.name, line.control, line.target, line.slices_differing) for line in answer.downstream] == [
        ("report", 5, 8, (D2,))
    ]
    run = orders.run(f"{D1}..{D3}")
    assert any(warning.startswith("report reads this target") for warning in run.warnings)
