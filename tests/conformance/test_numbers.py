"""Numbers: what fits is published exactly, what does not is refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from reslice.errors import Retryable
from reslice.values import Outcome
from tests.conformance.databases import only
from tests.conformance.orders import D1, D2, D3, SOURCE, T0, Orders, changed, found


def of_duckdb(*values: str) -> Any:
    """Return a case that is about a type of DuckDB's own."""
    return pytest.param(*values, marks=only("duckdb", "its own type"))


ONE = """
SELECT DATE '2024-03-01' AS order_date, 'web' AS channel, 1 AS order_count, {0} AS amount_cents
WHERE :start <= :end
"""


def typed(orders: Orders, type_text: str, **measure: object) -> Orders:
    """Give the measure another type; the target is empty."""
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents {type_text}")
    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": measure})
    return orders


def test_t19_1_a_sum_beyond_32_bits_fits_a_wide_column_and_is_refused_by_a_narrow_one(orders: Orders) -> None:
    orders.cancel("order_id IN (1, 2)")
    orders.order(1, D1, "web", 2_000_000_000)
    orders.order(2, D1, "web", 2_000_000_000)
    orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D1, "web", 2, 4_000_000_000)))

    orders.make_target("order_date date, channel varchar, order_count integer, amount_cents integer")
    orders.fill()
    error = orders.refuses(f"{D1}..{D3}", "lossy_value")

    assert "1 value would change" in found(error) and "4000000000" in found(error)
    assert orders.rows() == list(T0)


@pytest.mark.parametrize(
    "columns", ["bigint", "integer", of_duckdb("hugeint"), of_duckdb("ubigint"), "decimal(18,0)", "decimal(38,10)"]
)
def test_t19_2_a_wide_sum_that_fits_is_no_drift(orders: Orders, columns: str) -> None:
    orders.make_target(f"order_date date, channel varchar, order_count {columns}, amount_cents {columns}")
    orders.source(SOURCE)
    orders.publish(
        f"{D1}..{D3}",
        added=6,
        after=list(
            orders.database.rows(
                f"SELECT order_date, channel, n::{columns}, c::{columns} FROM (VALUES "
                + ", ".join(f"(DATE '{day}', '{channel}', {count}, {cents})" for day, channel, count, cents in T0)
                + ") AS t (order_date, channel, n, c)"
            )
        ),
    )


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        of_duckdb("tinyint", "127"),
        of_duckdb("tinyint", "-128"),
        of_duckdb("smallint", "32767::hugeint"),
        ("smallint", "32767::decimal(38,0)"),
        ("integer", "-2147483648"),
        of_duckdb("bigint", "9223372036854775807::hugeint"),
        ("bigint", "9223372036854775807::decimal(38,0)"),
        ("bigint", "-9223372036854775808"),
        of_duckdb("hugeint", "170141183460469231731687303715884105727"),
        of_duckdb("hugeint", "-170141183460469231731687303715884105728"),
        of_duckdb("utinyint", "255"),
        of_duckdb("usmallint", "65535"),
        of_duckdb("uinteger", "4294967295"),
        of_duckdb("ubigint", "18446744073709551615"),
        ("decimal(12,2)", "1.50"),
        ("decimal(12,2)", "1.5000::decimal(20,4)"),
        ("decimal(12,2)", "3"),
        ("decimal(4,2)", "-99.99"),
        ("decimal(38,37)", "9.9999999999999999999999999999999999999"),
        ("bigint", "3.000::decimal(10,3)"),
        ("bigint", "3::double precision"),
        ("decimal(12,2)", "1.5::double precision"),
    ],
)
def test_a_value_that_fits_is_published_exactly(orders: Orders, type_text: str, value: str) -> None:
    typed(orders, type_text).source(ONE.format(value))

    run = orders.run(D1)

    assert run.outcome is Outcome.PUBLISHED
    assert orders.database.rows(f"SELECT amount_cents = ({value})::{type_text} FROM daily_orders") == [(True,)]
    orders.unchanged(D1)


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        of_duckdb("tinyint", "128"),
        ("smallint", "-32769"),
        ("integer", "2147483648"),
        of_duckdb("bigint", "9223372036854775808::hugeint"),
        ("bigint", "9223372036854775808::decimal(38,0)"),
        ("bigint", "170141183460469231731687303715884105727"),
        of_duckdb("ubigint", "-1"),
        ("bigint", "1.5"),
        ("bigint", "0.0001::decimal(20,4)"),
        ("decimal(12,2)", "10.005"),
        ("decimal(12,2)", "0.001::double precision"),
        ("decimal(4,2)", "100.00"),
        ("integer", "1e30::double precision"),
        ("bigint", "0.5::double precision"),
    ],
)
def test_a_value_that_would_change_is_refused(orders: Orders, type_text: str, value: str) -> None:
    typed(orders, type_text).source(ONE.format(value))

    error = orders.refuses(D1, "lossy_value")

    assert "1 value would change" in found(error)
    assert orders.rows() == []


def test_digits_that_are_declared_to_count_are_not_dropped(orders: Orders) -> None:
    typed(orders, "decimal(12,2)", scale=3).source(ONE.format("0.125::double precision"))
    orders.refuses(D1, "lossy_value")


@only("duckdb", "a type of integers whose sum is a float")
def test_a_type_whose_sum_would_not_be_exact_is_refused(orders: Orders) -> None:
    typed(orders, "uhugeint").source(ONE.format("1"))
    assert "amount_cents is UHUGEINT" in found(orders.refuses(D1, "target_type"))


@only("duckdb", "integers and decimals end at 38 digits")
def test_a_total_that_no_number_of_the_database_holds_is_said_and_nothing_is_written(orders: Orders) -> None:
    typed(orders, "hugeint")
    largest = 2**127 - 1
    orders.source(
        "SELECT DATE '2024-03-01' AS order_date, 'c' || n AS channel, 1 AS order_count,"
        f" {largest}::hugeint AS amount_cents FROM range(2) AS numbers (n) WHERE :start <= :end"
    )
    error = orders.fails("run", Retryable, D1)
    assert "Overflow in HUGEINT addition" in found(error)
    assert orders.rows() == [] and orders.ledger(error.run.id)["state"] == "failed"


def test_half_a_cent_is_refused_and_not_rounded(orders: Orders) -> None:
    """Both engines cast 10.005 to 10.01 at two decimals."""
    typed(orders, "decimal(12,2)").source(ONE.format("10.005"))
    assert "10.005" in found(orders.refuses(D1, "lossy_value"))


FLOATS = """
SELECT DATE '2024-03-01' AS order_date, 'web' AS channel, 1 AS order_count, sum(value ORDER BY place) AS amount_cents
FROM floats WHERE :start <= :end
"""


@pytest.mark.parametrize("type_text", ["double precision", "decimal(12,2)"])
def test_t19_3_the_order_of_a_float_sum_is_no_change_at_its_declared_scale(orders: Orders, type_text: str) -> None:
    typed(orders, type_text, scale=2)
    orders.database.execute("CREATE TABLE floats (place integer, value double precision)")
    orders.database.insert("floats", [(1, 0.1), (2, 0.2), (3, 0.3)])
    orders.source(FLOATS)
    sums = [orders.database.rows("SELECT sum(value ORDER BY place) FROM floats")[0][0]]

    assert orders.run(D1).outcome is Outcome.PUBLISHED
    orders.database.execute("UPDATE floats SET place = -place")
    sums.append(orders.database.rows("SELECT sum(value ORDER BY place) FROM floats")[0][0])
    orders.unchanged(D1)

    assert sorted(sums) == [0.6, 0.6000000000000001], "the two orders do give two sums"
    orders.database.execute("UPDATE floats SET value = value + 0.01 WHERE place = -1")
    assert orders.run(D1).outcome is Outcome.PUBLISHED


def test_t19_3_exact_decimals_need_no_tolerance(orders: Orders) -> None:
    typed(orders, "decimal(12,2)")
    orders.database.execute("CREATE TABLE floats (place integer, value decimal(12,2))")
    orders.database.insert("floats", [(1, "0.1"), (2, "0.2"), (3, "0.3")])
    orders.source(FLOATS)
    orders.run(D1)
    orders.database.execute("UPDATE floats SET place = -place")
    orders.unchanged(D1)
    assert orders.database.rows("SELECT amount_cents = 0.6 FROM daily_orders") == [(True,)]


def test_a_float_without_a_scale_is_refused(orders: Orders) -> None:
    typed(orders, "double precision").source(ONE.format("0.5::double precision"))
    named = orders.database.type_name("double precision")
    assert f"amount_cents is {named}" in found(orders.refuses(D1, "target_type"))


@pytest.mark.parametrize(
    "value", ["'nan'::double precision", "'inf'::double precision", "'-inf'::double precision", "'nan'::real"]
)
@pytest.mark.parametrize("target", ["double precision", "bigint", "decimal(9, 2)"])
def test_a_float_that_is_no_number_is_never_published_and_no_cast_is_advised(
    orders: Orders, target: str, value: str
) -> None:
    typed(orders, target, **({"scale": 2} if target == "double precision" else {})).source(ONE.format(value))
    error = orders.refuses(D1, "lossy_value")
    assert "1 value is NaN or infinite" in found(error)
    assert orders.rows() == []
    assert error.next == "filter NaN and infinity out in source.sql, or replace them"


@only("duckdb", "decimals end at 38 digits")
def test_a_float_beyond_its_scale_is_never_published_unseen(orders: Orders) -> None:
    typed(orders, "double precision", scale=2).source(ONE.format("1e40::double precision"))
    error = orders.refuses(D1, "lossy_value")
    assert "1 value would change" in found(error)
    assert "or widen the column" in error.next


@only("duckdb", "decimals end at 38 digits")
def test_floats_that_are_no_numbers_and_those_beyond_the_scale_are_counted_apart(orders: Orders) -> None:
    three = " UNION ALL ".join(
        ONE.format(value).replace("'web'", f"'{channel}'")
        for value, channel in (
            ("'nan'::double precision", "a"),
            ("'inf'::double precision", "b"),
            ("1e40::double precision", "c"),
        )
    )
    typed(orders, "double precision", scale=2).source(three)
    error = orders.refuses(D1, "lossy_value", "lossy_value")
    assert [failure.found[0].partition(";")[0] for failure in error.failures] == [
        "2 values are NaN or infinite",
        "1 value would change",
    ]


def test_zero_and_minus_zero_are_one_number(orders: Orders) -> None:
    typed(orders, "double precision", scale=2).source(ONE.format("0.0::double precision"))
    orders.run(D1)
    orders.source(ONE.format("'-0.0'::double precision"))
    orders.unchanged(D1)


def test_a_decimal_of_another_scale_is_no_change(orders: Orders) -> None:
    typed(orders, "decimal(12,4)").source(ONE.format("1.5::decimal(10,1)"))
    orders.run(D1)
    orders.source(ONE.format("1.500::decimal(10,3)"))
    orders.unchanged(D1)


def test_t19_6_a_sum_of_nothing_stays_what_was_declared(orders: Orders) -> None:
    orders.order(9, D2, "app", None)

    error = orders.refuses(D2, "measure_null")
    assert "1 row has no amount_cents" in found(error)

    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {"nulls": "allow"}})
    orders.publish(D2, added=1, unchanged=2, after=changed((D2, "app", 1, None)))

    orders.source(SOURCE.replace("sum(amount_cents)", "coalesce(sum(amount_cents), 0)"))
    run = orders.publish(D2, changed=1, unchanged=2, after=changed((D2, "app", 1, 0)))
    assert orders.groups(run.id) == [("changed", (D2, "app"), (1, None), (1, 0))]
    orders.source(SOURCE)
    orders.publish(D2, changed=1, unchanged=2, after=changed((D2, "app", 1, None)))


@pytest.mark.parametrize(
    ("minimum", "value", "is_refused"),
    [
        (1, "1", False),
        (1, "0", True),
        (0, "-1", True),
        (-5, "-5", False),
        (1.5, "1.4", True),
        (1.5, "1.5", False),
    ],
)
def test_a_minimum_is_included(orders: Orders, minimum: float, value: str, is_refused: bool) -> None:
    typed(orders, "decimal(12,2)", min=minimum).source(ONE.format(value))
    if is_refused:
        assert "1 row has a amount_cents below" in found(orders.refuses(D1, "measure_minimum")).replace(" an ", " a ")
    else:
        assert orders.run(D1).outcome is Outcome.PUBLISHED


def test_totals_beyond_64_bits_are_exact(orders: Orders) -> None:
    typed(orders, "bigint")
    largest = 2**63 - 1
    orders.source(
        "SELECT DATE '2024-03-01' AS order_date, 'c' || n AS channel, 1 AS order_count,"
        f" {largest} AS amount_cents FROM generate_series(1, 4) AS numbers (n) WHERE :start <= :end"
    )
    run = orders.run(D1)
    assert run.diff is not None and run.diff.totals["amount_cents"].after == 4 * largest
    orders.unchanged(D1)
