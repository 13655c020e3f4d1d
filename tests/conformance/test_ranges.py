"""Ranges: both ends included, in the order and the unit of the slices, and neither half a day nor the wrong table."""

from __future__ import annotations

import pytest

from reslice.errors import Misused, Refused, ResliceError, Stopped
from reslice.values import Outcome
from tests.conformance.orders import D1, D2, D3, D4, SOURCE, T0, Orders, changed, found, kinds

BY_INSTANT = """
SELECT CAST(order_ts AS DATE) AS order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_timed WHERE order_ts >= :start_instant AND order_ts < :end_instant GROUP BY 1, 2
"""
BY_DATE = """
SELECT CAST(order_ts AS DATE) AS order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_timed WHERE CAST(order_ts AS DATE) BETWEEN :start AND :end GROUP BY 1, 2
"""


@pytest.mark.parametrize("source", [BY_INSTANT, BY_DATE], ids=["instants", "dates"])
def test_t14_1_the_last_microsecond_of_the_range_belongs_to_it_and_the_next_midnight_does_not(
    orders: Orders, source: str
) -> None:
    orders.database.execute(
        "CREATE TABLE orders_timed AS SELECT order_id, CAST(order_date AS TIMESTAMP) AS order_ts, channel, amount_cents"
        " FROM orders_fact"
    )
    orders.database.insert(
        "orders_timed",
        [(13, "2024-03-03 23:59:59.999999", "web", 10), (14, "2024-03-04 00:00:00", "web", 20)],
    )
    orders.fill([("2024-03-04", "shop", 7, 70)])
    orders.source(source)

    after = [*changed((D3, "web", 2, 5010)), ("2024-03-04", "shop", 7, 70)]
    orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=after)


def test_t14_2_a_reversed_range_is_refused(orders: Orders) -> None:
    versions = orders.versions()
    for command in ("plan", "run", "verify"):
        error = orders.fails(command, Refused, f"{D3}..{D1}")
        assert kinds(error) == ["range_reversed"] and error.exit_code == 3
    assert orders.versions() == versions
    assert orders.database.table_names("reslice") == []


def test_t14_3_a_range_of_one_day_replaces_exactly_its_rows(orders: Orders) -> None:
    before = orders.versions()

    run = orders.run(f"{D2}..{D2}", rewrite=True)

    assert run.scope.count == 1 and run.slices_done == (D2,)
    assert orders.rows() == list(T0)
    assert [row for row in orders.versions() if row[1] != D2] == [row for row in before if row[1] != D2]
    assert not {row[0] for row in before if row[1] == D2} & {row[0] for row in orders.versions()}
    orders.unchanged(f"{D2}..{D2}")


@pytest.mark.parametrize(
    "range", ["2024-03-02 12:00", "2024-03-02T12:00..2024-03-03", "2024-03-01..2024-03-02T23:59:59"]
)
def test_t14_5_a_bound_with_a_time_of_day_is_refused_where_slices_are_days(orders: Orders, range: str) -> None:
    error = orders.fails("run", Refused, range)
    assert kinds(error) == ["range_off_unit"] and error.exit_code == 3
    assert orders.rows() == list(T0)


@pytest.mark.parametrize(
    ("range", "count"),
    [("2024-02-28..2024-03-01", 3), ("2023-02-28..2023-03-01", 2), ("2024", 366), ("2024-Q1", 91), ("2024-02", 29)],
)
def test_t14_6_leap_days_are_counted(orders: Orders, range: str, count: int) -> None:
    plan = orders.plan(range)
    assert plan.scope.count == count
    assert orders.ledger(orders.run(range).id)["slices"] == count


def test_t14_7_the_whole_calendar_waits_for_consent_and_stays_small(orders: Orders) -> None:
    whole = "0001-01-01..9999-12-31"
    orders.correct(4, 1300)

    error: Stopped = orders.stops(whole, "max_slices")

    assert "3652059" in found(error)
    run = orders.run(whole, allow=["max_slices"], reason="the table is small")
    assert run.outcome is Outcome.PUBLISHED and run.slices_done == (D2,)
    assert orders.rows() == changed((D2, "web", 1, 1300))
    assert orders.ledger(run.id)["slices"] == 3652059
    assert orders.slices(run.id) == [(D1, "unchanged"), (D2, "published"), (D3, "unchanged")]
    orders.unchanged(whole, allow=["max_slices"], reason="the table is small")


def test_a_list_of_ranges_leaves_what_lies_between(orders: Orders) -> None:
    orders.database.execute("UPDATE daily_orders SET amount_cents = amount_cents + 1")
    between = [row for row in orders.versions() if row[1] == D2]
    after = [row if row[0] != D2 else (*row[:3], row[3] + 1) for row in T0]

    run = orders.publish(f"{D1},{D3}..{D4}", changed=4, after=after)

    assert run.scope.count == 3 and run.slices_done == (D1, D3)
    assert [row for row in orders.versions() if row[1] == D2] == between


def test_a_schedulers_interval_does_not_include_its_end(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.correct(8, 1000)

    run = orders.handle.run(interval=(f"{D1}T00:00:00+00:00", f"{D3}T00:00:00+00:00"))

    assert run.scope.text == f"{D1}..{D2}" and run.slices_done == (D2,)
    assert orders.rows() == changed((D2, "web", 1, 1300))


@pytest.mark.parametrize("range", ["..", f"{D1}..", f"..{D3}", f"{D1}..infinity", "-infinity..infinity"])
def test_an_open_range_is_refused(orders: Orders, range: str) -> None:
    error = orders.fails("run", Refused, range)
    assert kinds(error) == ["range_open"]
    assert orders.rows() == list(T0)


@pytest.mark.parametrize("range", ["", " ", "2024-02-30", "yesterday", "*", "2024-03-01,", "1=1", "2024-13"])
def test_t17_5_a_range_that_says_nothing_never_means_everything(orders: Orders, range: str) -> None:
    error = orders.fails("run", Misused, range)
    assert kinds(error) == ["range_unreadable"] and error.exit_code == 2
    assert orders.rows() == list(T0)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"slice": None}, "slice: this key is required"),
        ({"slice": {"column": "order_dat", "unit": "day"}}, "did you mean order_date?"),
        ({"slice": {"unit": "day"}}, "this key is required"),
        ({"slice": {"column": "", "unit": "day"}}, "expected text that is not empty"),
    ],
    ids=["none", "misspelt", "no column", "empty"],
)
def test_t17_5_a_contract_without_its_slice_column_is_no_contract(
    orders: Orders, keys: dict[str, object], words: str
) -> None:
    orders.declare(**keys)
    orders.declaration.setdefault("slice", {"column": "order_date", "unit": "day"})
    error = orders.fails("run", Misused, f"{D1}..{D3}")
    assert kinds(error) == ["contract"] and error.exit_code == 2 and words in found(error)
    assert orders.rows() == list(T0)


def test_t17_5_a_source_without_bounds_is_no_source(orders: Orders) -> None:
    orders.source(SOURCE.replace("WHERE order_date BETWEEN :start AND :end", "WHERE true"))
    error = orders.fails("run", Misused, f"{D1}..{D3}")
    assert kinds(error) == ["contract"] and ":start" in found(error)
    assert orders.rows() == list(T0)


def test_t16_1_rows_outside_the_range_are_refused_and_summed(orders: Orders) -> None:
    orders.source(SOURCE.replace("order_date BETWEEN :start AND :end", ":start <= :end"))

    error = orders.refuses(D2, "outside_range")

    assert "4 rows lie outside it" in found(error) and "amount_cents 10199" in found(error)
    assert orders.rows() == list(T0)


def test_t16_2_a_strict_lower_bound_is_held_as_an_emptied_slice(orders: Orders) -> None:
    orders.source(SOURCE.replace("order_date BETWEEN :start AND :end", "order_date > :start AND order_date <= :end"))
    orders.declare(guards={"total_change": "allow"})

    error = orders.stops(f"{D1}..{D2}", "empty_slice")

    assert f"{D1} would go from 2 groups to 0" in found(error) and "4200" in found(error)


@pytest.mark.parametrize("day", ["2024-02-29", "2024-03-04"])
def test_one_row_of_the_day_before_or_after_is_refused(orders: Orders, day: str) -> None:
    orders.order(20, day, "web", 1)
    orders.source(SOURCE.replace(":start AND :end", "CAST(:start AS DATE) - 1 AND CAST(:end AS DATE) + 1"))

    error = orders.refuses(f"{D1}..{D3}", "outside_range")

    assert "1 row lies outside it" in found(error) and day in found(error)


def test_placeholders_in_strings_and_comments_are_not_placeholders(orders: Orders) -> None:
    orders.order(20, D2, ":start", 5)
    orders.source(
        "-- from :start to :end\nSELECT order_date, channel, count(*)::bigint AS order_count, /* :end */"
        " sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date BETWEEN :start AND :end"
        " AND channel <> ':end' AND channel <> $$:start :end$$ GROUP BY order_date, channel;\n-- the end: :x"
    )
    orders.publish(D2, added=1, unchanged=2, after=changed((D2, ":start", 1, 5)))


@pytest.mark.parametrize(
    "source",
    [
        SOURCE + "; DELETE FROM daily_orders",
        "DELETE FROM daily_orders WHERE order_date BETWEEN :start AND :end",
        "WITH x AS (SELECT :start, :end) INSERT INTO daily_orders SELECT NULL, NULL, NULL, NULL",
        SOURCE.replace("FROM orders_fact", "FROM orders_fact) ; DELETE FROM daily_orders; SELECT * FROM (SELECT 1"),
    ],
    ids=["two", "delete", "with insert", "broken out"],
)
def test_a_source_that_is_not_one_select_is_never_run(orders: Orders, source: str) -> None:
    orders.source(source)
    error = orders.fails("run", Misused, f"{D1}..{D3}")
    assert error.exit_code == 2
    assert orders.rows() == list(T0)


def test_an_error_of_the_database_in_the_source_leaves_everything(orders: Orders) -> None:
    orders.source(SOURCE.replace("count(*)", "count(no_such_column)"))
    for command in ("plan", "run", "verify"):
        error: ResliceError = orders.fails(command, Misused, f"{D1}..{D3}")
        assert kinds(error) == ["source_invalid"] and "no_such_column" in found(error)
    assert orders.rows() == list(T0)
