"""Columns that move, appear, vanish or change their type; files that are typed by guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.databases import only
from tests.conformance.orders import D1, D2, D3, SOURCE, T0, Orders, changed, found

CASTS = """
SELECT order_date, channel, count(*) AS order_count, {0} AS amount_cents
FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""


def test_t18_1_columns_are_mapped_by_name(empty_orders: Orders) -> None:
    empty_orders.source(
        "SELECT channel, order_date, sum(amount_cents) AS amount_cents, count(*) AS order_count FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    empty_orders.publish(f"{D1}..{D3}", added=6, after=T0)


def test_the_order_of_the_targets_columns_does_not_matter(orders: Orders) -> None:
    orders.make_target("amount_cents bigint, order_count bigint, channel varchar, order_date date")
    orders.publish(f"{D1}..{D3}", added=6, after=[tuple(reversed(row)) for row in T0])


def test_t18_2_a_column_that_the_contract_does_not_name_is_refused(orders: Orders) -> None:
    orders.database.execute("ALTER TABLE orders_fact ADD COLUMN discount_cents bigint DEFAULT 5")
    orders.source(SOURCE.replace("AS amount_cents", "AS amount_cents, sum(discount_cents) AS discount_cents"))

    error = orders.refuses(f"{D1}..{D3}", "source_column")

    assert "returns discount_cents, which the contract does not name" in found(error)
    orders.database.execute("ALTER TABLE daily_orders ADD COLUMN discount_cents bigint")
    assert "discount_cents" in found(orders.refuses(f"{D1}..{D3}", "target_column"))

    orders.declare(measures={"order_count": None, "amount_cents": None, "discount_cents": None})
    orders.publish(D1, changed=2, after=[(*row, 5 * row[2] if row[0] == D1 else None) for row in T0])


@pytest.mark.parametrize("column", ["order_count", "amount_cents", "channel", "order_date"])
def test_t18_4_a_column_that_the_source_no_longer_returns_is_refused(orders: Orders, column: str) -> None:
    others = [name for name in ("order_date", "channel", "order_count", "amount_cents") if name != column]
    orders.source(f"SELECT {', '.join(others)} FROM ({SOURCE})")

    error = orders.refuses(f"{D1}..{D3}", "source_column")

    assert f"returns no column {column}" in found(error)
    assert orders.rows() == list(T0)


def test_every_column_that_is_wrong_is_told_at_once(orders: Orders) -> None:
    orders.source(
        "SELECT order_date, channel AS chanel, count(*)::varchar AS order_count, 1 AS extra FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.refuses(f"{D1}..{D3}", "source_column", "source_column", "source_column", "source_type", "source_column")


@pytest.mark.parametrize(
    ("cast", "type_text"),
    [
        ("sum(amount_cents)::varchar", "varchar"),
        ("max(DATE '2024-03-01')", "date"),
        ("bool_or(true)", "boolean"),
        ("array_agg(amount_cents)", "bigint[]"),
        ("max(INTERVAL '1 day')", "interval"),
    ],
)
def test_t18_7_a_measure_of_another_kind_of_type_is_refused_and_not_cast(
    orders: Orders, cast: str, type_text: str
) -> None:
    orders.source(CASTS.format(cast))

    error = orders.refuses(f"{D1}..{D3}", "source_type")

    source, target = (orders.database.type_name(each) for each in (type_text, "bigint"))
    assert f"amount_cents is {source} in the source and {target} in daily_orders" in found(error)
    assert orders.rows() == list(T0)


def test_t18_7_a_number_that_turns_into_text_in_the_source_table_is_refused(orders: Orders) -> None:
    orders.source(SOURCE.replace("sum(amount_cents)", "max(amount_cents)"))
    orders.run(f"{D1}..{D3}")
    orders.database.execute("ALTER TABLE orders_fact ALTER amount_cents TYPE varchar")

    error = orders.refuses(f"{D1}..{D3}", "source_type")

    assert any(f"amount_cents is {each} in the source" in found(error) for each in ("VARCHAR", "text"))


@pytest.mark.parametrize(
    ("slice_value", "kind"),
    [
        ("CAST(order_date AS VARCHAR)", "source_type"),
        ("CAST(replace(CAST(order_date AS VARCHAR), '-', '') AS INTEGER)", "source_type"),
        ("CAST(order_date AS TIMESTAMP) + INTERVAL '12 hours'", "lossy_value"),
    ],
    ids=["text", "integer", "with a time"],
)
def test_a_slice_value_of_another_type_is_refused_when_it_would_lose_something(
    orders: Orders, slice_value: str, kind: str
) -> None:
    orders.source(
        SOURCE.replace("SELECT order_date", f"SELECT {slice_value} AS order_date").replace(
            "GROUP BY order_date, channel", "GROUP BY 1, 2"
        )
    )
    orders.refuses(f"{D1}..{D3}", kind)


def test_a_timestamp_at_midnight_is_a_date(orders: Orders) -> None:
    orders.source(
        SOURCE.replace("SELECT order_date", "SELECT CAST(order_date AS TIMESTAMP) AS order_date").replace(
            "GROUP BY order_date, channel", "GROUP BY 1, 2"
        )
    )
    orders.unchanged(f"{D1}..{D3}")


@pytest.mark.parametrize("type_text", ["bigint", "varchar", "date", "boolean", "timestamptz"])
def test_a_source_that_knows_nothing_yet_returns_null_of_any_type(empty_orders: Orders, type_text: str) -> None:
    empty_orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents {type_text}")
    empty_orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {"nulls": "allow"}})
    empty_orders.source(CASTS.format("NULL"))
    taken_for, fits = empty_orders.database.untyped_null
    if taken_for and type_text != fits:
        assert f"amount_cents is {taken_for} in the source" in found(empty_orders.refuses(D1, "source_type"))
        empty_orders.source(CASTS.format(f"CAST(NULL AS {type_text})"))
    after = [(*row[:3], None) for row in T0]
    empty_orders.publish(f"{D1}..{D3}", added=6, after=after)


@pytest.mark.parametrize(("word", "is_refused"), [("web", False), ("kiosk", True)])
def test_text_for_an_enum_is_a_value_of_it_or_refused(empty_orders: Orders, word: str, is_refused: bool) -> None:
    empty_orders.database.execute("CREATE TYPE channels AS ENUM ('web', 'store', 'phone')")
    empty_orders.make_target("order_date date, channel channels, order_count bigint, amount_cents bigint")
    empty_orders.order(9, D2, word, 1)
    if is_refused:
        assert "kiosk" in found(empty_orders.refuses(f"{D1}..{D3}", "lossy_value"))
    else:
        empty_orders.publish(f"{D1}..{D3}", added=6, after=changed((D2, "web", 2, 1201)))


CSV_SOURCE = """
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM read_csv([{0}], union_by_name = true)
WHERE order_date BETWEEN :start AND :end {1} GROUP BY order_date, channel
"""


@only("duckdb", "it reads files, and guesses the types in them")
@pytest.mark.parametrize("order", [("blank", "good"), ("good", "blank")], ids=["blank first", "good first"])
def test_t18_6_a_blank_date_in_one_file_does_not_change_the_type_of_the_other(
    empty_orders: Orders, tmp_path: Path, order: tuple[str, str]
) -> None:
    good = "".join(
        f"{order_id},{day},{channel},{cents}\n"
        for order_id, day, channel, cents in ((1, D1, "web", 1000), (2, D1, "web", 2500), (3, D1, "store", 700))
    )
    header = "order_id,order_date,channel,amount_cents\n"
    (tmp_path / "good.csv").write_text(header + good)
    (tmp_path / "blank.csv").write_text(header + "9,,web,5\n")
    files = ", ".join(f"'{tmp_path / name}.csv'" for name in order)

    empty_orders.source(CSV_SOURCE.format(files, ""))
    empty_orders.publish(f"{D1}..{D3}", added=2, after=T0[:2])

    empty_orders.source(CSV_SOURCE.format(files, "OR order_date IS NULL"))
    error = empty_orders.refuses(f"{D1}..{D3}", "slice_null")
    assert "1 row has none" in found(error)


@only("duckdb", "it reads files, and guesses the types in them")
def test_a_file_that_is_typed_as_text_is_refused(orders: Orders, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(f"order_date,channel,order_count,amount_cents\n{D1},web,1,12 EUR\n{D1},app,1,5\n")
    orders.source(f"SELECT * FROM read_csv('{tmp_path / 'odd.csv'}') WHERE order_date BETWEEN :start AND :end")
    error = orders.refuses(D1, "source_type")
    assert "amount_cents is VARCHAR" in found(error)


@only("duckdb", "quoted names that differ in capitals alone are the same name")
def test_names_in_other_capitals_are_the_same_columns_where_the_database_says_so(orders: Orders) -> None:
    orders.source(
        SOURCE.replace(
            "order_date, channel, count(*) AS order_count",
            'order_date AS "Order_Date", channel AS CHANNEL, count(*) AS ORDER_COUNT',
        )
    )
    orders.correct(4, 1300)
    orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))
