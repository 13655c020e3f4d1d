"""Keys: NULL, case, spaces, Unicode and collations neither merge nor split groups, and no key stands twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.databases import only
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, SOURCE, T0, Orders, changed, found, ordered

METHODS = EVERY_METHOD
NULLS_ALLOWED = ["order_date", {"column": "channel", "nulls": "allow"}]
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def collations(*names: str) -> list[Any]:
    """Return the collations by which nearly equal texts are equal, as a column is declared with them."""
    return [pytest.param(f" COLLATE {name}", marks=only("duckdb", "a collation of its own")) for name in names]


def test_t02_1_a_null_key_is_refused_and_nothing_is_written(orders: Orders) -> None:
    orders.order(9, D2, None, 250)

    error = orders.refuses(D2, "key_null")

    assert "1 row has no channel" in found(error) and f"({D2}, NULL)" in found(error)
    assert orders.rows() == list(T0)


def test_t02_2_null_keys_that_are_allowed_are_one_group(orders: Orders) -> None:
    orders.order(9, D2, None, 250)
    orders.declare(grain=NULLS_ALLOWED)

    orders.publish(D2, added=1, unchanged=2, after=changed((D2, None, 1, 250)))

    assert orders.database.rows(
        f"SELECT count(*), sum(order_count), sum(amount_cents) FROM {orders.current} WHERE order_date = '{D2}'"
    ) == [(3, 4, 2200)]
    orders.order(10, D2, None, 50)
    orders.publish(D2, changed=1, unchanged=2, after=changed((D2, None, 2, 300)))
    orders.cancel("channel IS NULL")
    orders.publish(D2, removed=1, unchanged=2, after=T0)


@pytest.mark.parametrize("rewrite", [False, True])
def test_t02_4_a_row_without_a_date_belongs_to_no_range(orders: Orders, rewrite: bool) -> None:
    orders.order(10, None, "web", 400)
    orders.database.execute("INSERT INTO daily_orders (channel, order_count, amount_cents) VALUES ('web', 1, 111)")

    run = orders.run(f"{D1}..{D3}", rewrite=rewrite)

    assert run.diff is not None and run.diff.totals["amount_cents"].after == 12149
    assert orders.rows() == ordered([*T0, (None, "web", 1, 111)])
    orders.unchanged(f"{D1}..{D3}")


def test_a_staged_row_without_a_date_is_refused(orders: Orders) -> None:
    orders.order(10, None, "web", 400)
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end OR order_date IS NULL GROUP BY order_date, channel"
    )

    error = orders.refuses(f"{D1}..{D3}", "slice_null")

    assert "1 row" in found(error) and "400" in found(error)


def test_t02_6_null_and_empty_text_are_two_groups(orders: Orders) -> None:
    orders.order(9, D2, None, 250)
    orders.order(10, D2, "", 40)
    orders.declare(grain=NULLS_ALLOWED)

    orders.publish(D2, added=2, unchanged=2, after=changed((D2, None, 1, 250), (D2, "", 1, 40)))

    assert orders.database.rows(
        f"SELECT count(*), sum(amount_cents) FROM {orders.current} WHERE order_date = '{D2}'"
    ) == [(4, 2240)]


@pytest.mark.parametrize("collation", ["", *collations("NOCASE", "NFC")])
def test_t03_1_keys_that_are_nearly_equal_are_groups_of_their_own(orders: Orders, collation: str) -> None:
    orders.make_target(f"order_date date, channel varchar{collation}, order_count bigint, amount_cents bigint")
    orders.fill()
    orders.order(11, D2, "Web", 100)
    orders.order(12, D2, "web ", 50)

    run = orders.publish(
        D2, added=2, unchanged=2, after=changed((D2, "web", 1, 1200), (D2, "Web", 1, 100), (D2, "web ", 1, 50))
    )

    assert any(warning.startswith("3 keys of channel are equal but for case") for warning in run.warnings)
    assert orders.database.rows(
        f"SELECT count(*), sum(order_count), sum(amount_cents) FROM {orders.current} WHERE order_date = '{D2}'"
    ) == [(4, 5, 2100)]
    orders.cancel("order_id = 12")
    orders.publish(D2, removed=1, unchanged=3, after=changed((D2, "web", 1, 1200), (D2, "Web", 1, 100)))


@pytest.mark.parametrize("collation", ["", *collations("NFC", "NOACCENT")])
def test_t03_3_the_two_unicode_forms_of_one_word_are_two_groups(orders: Orders, collation: str) -> None:
    orders.make_target(f"order_date date, channel varchar{collation}, order_count bigint, amount_cents bigint")
    orders.fill()
    orders.order(11, D2, COMPOSED, 100)
    orders.order(12, D2, DECOMPOSED, 50)

    run = orders.publish(D2, added=2, unchanged=2, after=changed((D2, COMPOSED, 1, 100), (D2, DECOMPOSED, 1, 50)))

    assert any("2 keys of channel" in warning for warning in run.warnings)
    orders.correct(12, 60)
    run = orders.publish(D2, changed=1, unchanged=3, after=changed((D2, COMPOSED, 1, 100), (D2, DECOMPOSED, 1, 60)))
    assert orders.groups(run.id) == [("changed", (D2, DECOMPOSED), (1, 50), (1, 60))]


@only("postgresql", "a fixed-width text that is padded with spaces")
def test_t03_4_padding_of_a_fixed_width_key_is_no_change(orders: Orders) -> None:
    """The source gives the same channel with its padding and without: it is one group, however it is written."""
    orders.make_target("order_date date, channel character(10), order_count bigint, amount_cents bigint")
    orders.fill()
    orders.correct(4, 1300)
    padded = [(day, channel.ljust(10), *rest) for day, channel, *rest in changed((D2, "web", 1, 1300))]
    run = orders.publish(D2, changed=1, unchanged=1, after=padded)
    assert orders.groups(run.id) == [("changed", (D2, "web"), (1, 1200), (1, 1300))]
    with_spaces = SOURCE.replace("SELECT order_date, channel,", "SELECT order_date, rpad(channel, 10) AS channel,")
    for source in (with_spaces, with_spaces.replace("10)", "length(channel) + 2)"), SOURCE):
        orders.source(source)
        orders.unchanged(f"{D1}..{D3}")
        assert orders.rows() == sorted(padded, key=repr) and orders.status(f"{D1}..{D3}").equals_source
    orders.order(11, D2, "web".ljust(10), 100)
    error = orders.refuses(D2, "key_repeated")
    assert "web" in found(error)
    orders.source(
        SOURCE.replace("channel", "rtrim(channel) AS channel", 1).replace("BY order_date, channel", "BY 1, 2")
    )
    one = [row if row[:2] != (D2, "web".ljust(10)) else (*row[:2], 2, 1400) for row in padded]
    orders.publish(D2, changed=1, unchanged=1, after=one)


@pytest.mark.parametrize(
    "key", ["a|b", "a\\pb", "a\\", "N", "VN", "'; DROP TABLE daily_orders; --", "\t\n", "🧾", 'a"b']
)
def test_keys_of_any_text_are_kept_as_they_are(orders: Orders, key: str) -> None:
    orders.order(11, D2, key, 100)
    orders.publish(D2, added=1, unchanged=2, after=changed((D2, key, 1, 100)))


def test_two_rows_whose_joined_texts_would_be_the_same_are_told_apart(orders: Orders) -> None:
    orders.make_target("order_date date, channel varchar, region varchar, order_count bigint, amount_cents bigint")
    orders.database.execute("CREATE TABLE regional (order_date date, channel varchar, region varchar)")
    orders.database.execute(f"INSERT INTO regional VALUES ('{D2}', 'a|Vb', 'c')")
    orders.source(
        "SELECT *, 1 AS order_count, 5 AS amount_cents FROM regional WHERE order_date BETWEEN :start AND :end"
    )
    orders.declare(grain=["order_date", "channel", "region"])
    orders.publish(D2, added=1, after=[(D2, "a|Vb", "c", 1, 5)])

    orders.database.execute("UPDATE regional SET channel = 'a', region = 'b|Vc'")

    orders.publish(D2, added=1, removed=1, after=[(D2, "a", "b|Vc", 1, 5)])


def test_t04_1_a_repeated_key_is_refused_with_its_rows_counted(orders: Orders) -> None:
    orders.source(
        "SELECT order_date, channel, 1 AS order_count, amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end AND NOT (order_date = DATE '2024-03-01' AND channel = 'web')"
    )

    error = orders.refuses(f"{D1}..{D3}", "key_repeated")

    assert "1 key is repeated; 2 rows" in found(error) and f"({D2}, store)" in found(error)
    assert orders.rows() == list(T0)


def test_a_repeated_null_key_is_a_repeated_key(orders: Orders) -> None:
    orders.order(9, D2, None, 1)
    orders.order(10, D2, None, 2)
    orders.source(
        "SELECT order_date, channel, 1 AS order_count, amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end AND channel IS NULL"
    )
    orders.declare(grain=NULLS_ALLOWED)

    error = orders.refuses(D2, "key_repeated")

    assert f"({D2}, NULL) has 2 rows" in found(error)


def test_a_null_key_that_the_base_repeats_is_healed(orders: Orders) -> None:
    orders.order(9, D2, None, 250)
    orders.declare(grain=NULLS_ALLOWED)
    orders.fill([(D2, None, 1, 250), (D2, None, 1, 250)])
    run = orders.publish(D2, changed=1, unchanged=2, after=changed((D2, None, 1, 250)))
    assert run.diff is not None and run.diff.repeated == 1


def test_a_null_key_of_the_base_is_shown_and_removed(orders: Orders) -> None:
    orders.fill([(D2, None, 1, 250)])
    run = orders.publish(D2, removed=1, unchanged=2, after=T0)
    assert orders.groups(run.id) == [("removed", (D2, None), (1, 250), None)]


def test_every_broken_rule_is_told_at_once(orders: Orders) -> None:
    orders.source(
        "SELECT * FROM (VALUES"
        " (DATE '2024-03-01', 'web', 0, 1), (DATE '2024-03-02', NULL, 1, 1), (DATE '2024-03-02', 'web', NULL, 1),"
        " (DATE '2024-03-09', 'web', 1, 1), (DATE '2024-03-02', 'shop', 1, 1), (DATE '2024-03-02', 'shop', 1, 2)"
        ") AS rows (order_date, channel, order_count, amount_cents) WHERE :start <= :end"
    )
    orders.refuses(f"{D1}..{D3}", "outside_range", "key_null", "measure_null", "measure_minimum", "key_repeated")
