"""The view of the current versions on PostgreSQL: its readers have settings of their own, and transactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.databases import Row, only
from tests.conformance.orders import D1, D2, D3, Orders, changed

METHODS = ("append_version",)
POSTGRES16_SLOW = True
pytestmark = only("postgresql", "a view of PostgreSQL, and those who read it")

WHOLE = f"{D1}..{D3}"
WEB_1300 = changed((D2, "web", 1, 1300))
SHOP = "order_count, amount_cents, channel"


# --- whatever settings a reader has -----------------------------------------------------------------------------------

STYLES = ("ISO, DMY", "German", "SQL, MDY", "SQL, DMY", "Postgres, MDY", "Postgres, DMY")
SETTINGS: dict[str, tuple[str, ...]] = {
    "DateStyle": STYLES,
    "IntervalStyle": ("sql_standard", "iso_8601", "postgres_verbose"),
    "extra_float_digits": ("-15", "0"),
    "TimeZone": ("Asia/Kolkata", "America/Sao_Paulo", "Pacific/Kiritimati"),
}


def as_read(orders: Orders, select: str) -> list[list[Row]]:
    """Return the rows of a query in sessions of every setting, one after the other; the first has what the server has.

    A setting is the reader's own, and then that of the database for whoever connects.
    """
    answers = [orders.database.rows(select)]
    for name, values in SETTINGS.items():
        for value in values:
            with orders.database.session() as reader:
                reader.execute(f"SET {name} = '{value}'")
                answers.append(reader.execute(select).fetchall())
    for name, (*_, value) in SETTINGS.items():
        orders.database.execute(f"ALTER DATABASE {orders.database.catalog} SET {name} = '{value}'")
    with orders.database.session() as reader:
        answers.append(reader.execute(select).fetchall())
    return answers


VIEW = "SELECT to_char(order_date, 'YYYY-MM-DD'), channel, order_count, amount_cents FROM daily_orders_current"


def test_a_reader_of_any_settings_reads_each_group_once(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.run(WHOLE)
    for rows in as_read(orders, f"{VIEW} ORDER BY 1, 2"):
        assert rows == WEB_1300
    orders.unchanged(WHOLE)
    orders.correct(4, 1400)
    orders.run(WHOLE)
    assert orders.database.rows(f"{VIEW} ORDER BY 1, 2") == changed((D2, "web", 1, 1400))


CUTS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a day of dates": ("date", {"unit": "day"}, "2024-03-02", "2024-03-02"),
    "a month of dates": ("date", {"unit": "month"}, "2024-03-01", "2024-03"),
    "a week of days": ("date", {"unit": "week"}, "2024-02-26", "2024-W09"),
    "an hour of wall time": ("timestamp", {"unit": "hour"}, "2024-03-02 07:00:00", "2024-03-02T07"),
    "a day of wall time": ("timestamp", {"unit": "day"}, "2024-03-02 00:00:00", "2024-03-02"),
    "an hour of instants": (
        "timestamptz",
        {"unit": "hour", "timezone": "America/New_York"},
        "2024-03-02 07:00:00+00",
        "2024-03-02T02",
    ),
    "a month of instants": (
        "timestamptz",
        {"unit": "month", "timezone": "America/New_York"},
        "2024-03-01 05:00:00+00",
        "2024-03",
    ),
    "a day of text": ("text", {"unit": "day"}, "2024-03-02", "2024-03-02"),
    "a month of text": ("text", {"unit": "month"}, "2024-03-01", "2024-03"),
    "a month of numbers": ("integer", {"unit": "month"}, "20240301", "2024-03"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_slices_of_every_kind_are_the_same_to_every_reader(empty_orders: Orders, cut: str) -> None:
    orders = empty_orders
    type_text, slice_keys, first, range = CUTS[cut]
    orders.make_target(f"order_date {type_text}, channel varchar, order_count bigint, amount_cents bigint")
    orders.source(
        f"SELECT * FROM (SELECT CAST('{first}' AS {type_text}) AS order_date, channel, count(*) AS order_count,"
        f" sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date = '{D2}' GROUP BY channel) AS day"
        " WHERE order_date BETWEEN :start AND :end"
    )
    orders.declare(slice={"column": "order_date", **slice_keys})
    orders.database.execute(f"INSERT INTO daily_orders VALUES ('{first}', 'web', 7, 7)")
    orders.run(range)
    orders.correct(4, 1300)
    orders.run(range)
    for rows in as_read(orders, f"SELECT {SHOP} FROM daily_orders_current ORDER BY channel"):
        assert rows == [(2, 750, "store"), (1, 1300, "web")]


FAR = ("0044-03-15 BC", "infinity", "-infinity", "10000-01-01", "12024-03-02", "0001-01-01 BC")


@pytest.mark.parametrize("type_text", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("unit", ["day", "month"])
def test_days_beyond_the_calendar_are_of_no_version_to_every_reader(
    empty_orders: Orders, type_text: str, unit: str
) -> None:
    """The 15th of March is in the year 44 of both eras; only one of the two has a version."""
    orders = empty_orders
    orders.make_target(f"order_date {type_text}, channel varchar, order_count bigint, amount_cents bigint")
    far = [*FAR, "5874897-12-31"] if (type_text, unit) == ("date", "day") else FAR
    for place, text in enumerate(far):
        orders.database.execute(f"INSERT INTO daily_orders VALUES ('{text}', 'far', {place}, 1)")
    day = "0044-03-15" if unit == "day" else "0044-03-01"
    orders.database.execute(f"INSERT INTO daily_orders VALUES ('{day} 00:00:00+00', 'web', 7, 7)")
    orders.source(
        f"SELECT * FROM (SELECT CAST('{day} 00:00:00+00' AS {type_text}) AS order_date, 'web' AS channel,"
        " CAST(8 AS bigint) AS order_count, CAST(8 AS bigint) AS amount_cents) AS day"
        " WHERE order_date BETWEEN :start AND :end"
    )
    orders.declare(slice={"column": "order_date", "unit": unit})
    orders.run(day if unit == "day" else day[:7])
    expected: list[Any] = [(place, 1, "far") for place in range(len(far))] + [(8, 8, "web")]
    for rows in as_read(orders, f"SELECT {SHOP} FROM daily_orders_current ORDER BY channel, order_count"):
        assert rows == expected
