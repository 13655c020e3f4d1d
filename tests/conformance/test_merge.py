"""merge: rows that are equal keep their place, identity and stamps, and a row that others point at is not removed."""

from __future__ import annotations

import pytest

from reslice.errors import PartlyPublished, Refused
from reslice.values import Outcome
from tests.conformance.databases import Database, Row, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, EVERY_METHOD, T0, Orders, Target, changed, found, kinds

METHODS = ("merge",)
WHOLE = f"{D1}..{D3}"
KEYED = "order_date date, channel varchar, order_count bigint, amount_cents bigint, PRIMARY KEY (order_date, channel)"
STAMPED = (
    "order_date date, channel varchar, order_count bigint, amount_cents bigint,"
    " doubled bigint {}, batch_id varchar, loaded_at timestamptz, id bigint DEFAULT nextval('numbers')"
)


@pytest.fixture
def stamped(orders: Orders) -> Orders:
    """The orders, with an identity, a generated column and both stamps; rows 1 to 6 were written by nobody we know."""
    orders.database.execute("CREATE SEQUENCE numbers")
    orders.make_target(STAMPED.format(orders.database.generated("amount_cents * 2")))
    orders.fill()
    orders.database.execute("UPDATE daily_orders SET batch_id = 'old', loaded_at = '2020-01-01 00:00:00+00'")
    orders.declare(stamps={"batch_id": "run_id", "loaded_at": "run_time"})
    return orders


def by_key(orders: Orders) -> dict[Row, Row]:
    """Return each row's place, identity, stamp and generated value, by its key."""
    rows = orders.database.rows(
        f"SELECT order_date, channel, {orders.database.place}, id, batch_id, doubled, loaded_at > '2020-01-02'"
        " FROM daily_orders"
    )
    return {row[:2]: row[2:] for row in rows}


def test_only_the_rows_that_differ_are_touched(stamped: Orders) -> None:
    before = by_key(stamped)
    stamped.correct(4, 1300)
    stamped.cancel("order_id IN (5, 6)")
    stamped.order(9, D2, "app", 77)

    run = stamped.run(WHOLE)

    assert run.diff is not None
    counts = run.diff.counts
    assert (counts.added, counts.changed, counts.removed, counts.unchanged) == (1, 1, 1, 4)
    after = by_key(stamped)
    assert set(before) - set(after) == {(D2, "store")} and set(after) - set(before) == {(D2, "app")}
    place, identity, *_ = before[D2, "web"]
    assert after[D2, "web"][1:] == (identity, run.id, 2600, True)
    assert (after[D2, "web"][0] == place) is stamped.database.updates_in_place
    assert after[D2, "app"][1:] == (7, run.id, 154, True)
    assert {key: after[key] for key in before if key[0] != D2} == {key: before[key] for key in before if key[0] != D2}


def test_equal_rows_of_a_slice_that_differs_keep_their_stamps(stamped: Orders) -> None:
    before = by_key(stamped)[D2, "store"]
    stamped.correct(4, 1300)
    stamped.run(D2)
    assert by_key(stamped)[D2, "store"] == before


def test_a_rewrite_writes_every_row_where_it_stands(stamped: Orders) -> None:
    before = by_key(stamped)
    run = stamped.run(WHOLE, rewrite=True)
    assert run.rewritten and not run.target_changed
    after = by_key(stamped)
    lasting = slice(0 if stamped.database.updates_in_place else 1, 2)
    assert {key: row[lasting] for key, row in after.items()} == {key: row[lasting] for key, row in before.items()}
    assert {row[2] for row in after.values()} == {run.id}


@pytest.mark.parametrize("index", ["batch_id", "amount_cents", "channel", "order_count, batch_id", "order_date"])
def test_an_index_on_any_column_leaves_the_rows_right_and_stamped(stamped: Orders, index: str) -> None:
    stamped.database.execute(f"CREATE INDEX by_that ON daily_orders ({index})")
    before = by_key(stamped)
    for cents in (1300, 1400, 1200):
        stamped.correct(4, cents)
        run = stamped.run(D2)
        rows = stamped.database.rows(
            "SELECT channel, amount_cents, batch_id, id FROM daily_orders WHERE batch_id = ?", [run.id]
        )
        assert rows == [("web", cents, run.id, before[D2, "web"][1])]
    assert {key: row[1] for key, row in by_key(stamped).items()} == {key: row[1] for key, row in before.items()}
    assert by_key(stamped)[D2, "store"] == before[D2, "store"]


def test_per_slice_commits_are_merges_too(stamped: Orders) -> None:
    before = by_key(stamped)
    stamped.correct(3, 701)
    stamped.correct(8, 1000)
    run = stamped.run(WHOLE, per_slice=True)
    assert run.slices_done == (D1, D3)
    moved = {key for key, row in by_key(stamped).items() if row != before[key]}
    assert moved == {(D1, "store"), (D3, "phone")}


def test_a_repeated_key_is_healed_and_its_neighbour_is_left_alone(stamped: Orders) -> None:
    before = by_key(stamped)[D2, "store"]
    stamped.database.execute(f"INSERT INTO daily_orders (order_date, channel) VALUES ('{D2}', 'web'), ('{D2}', 'web')")
    run = stamped.run(WHOLE)
    assert run.diff is not None and run.diff.repeated == 2
    assert stamped.database.rows(f"SELECT count(*) FROM daily_orders WHERE order_date = '{D2}'") == [(2,)]
    assert by_key(stamped)[D2, "store"] == before
    stamped.unchanged(WHOLE)


def test_few_changes_in_a_wide_month_touch_few_rows(engine: Database) -> None:
    engine.execute(
        "CREATE TABLE facts AS SELECT 'c' || n AS channel, n AS cents FROM generate_series(0, 2999) AS numbers (n)"
    )
    engine.execute("CREATE TABLE months (month date, channel varchar, cents bigint)")
    source = "SELECT CAST(:start AS DATE) AS month, channel, cents FROM facts WHERE CAST(:end AS DATE) IS NOT NULL"
    declaration = {
        "table": "months",
        "source": "source.sql",
        "grain": ["month", "channel"],
        "slice": {"column": "month", "unit": "month"},
        "measures": {"cents": {}},
        "guards": ALLOWED,
    }
    target = Target(engine, "months", declaration, source, method="merge")
    target.run("2024-03")
    before = {row[2]: row for row in target.versions()}
    engine.execute("UPDATE facts SET cents = -1 WHERE channel IN ('c7', 'c2999')")
    engine.execute("DELETE FROM facts WHERE channel = 'c8'")
    engine.execute("INSERT INTO facts VALUES ('new', 5)")

    target.run("2024-03")

    after = {row[2]: row for row in target.versions()}
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == {
        "c7",
        "c2999",
        "c8",
        "new",
    }
    assert all((after[name][0] == before[name][0]) is engine.updates_in_place for name in ("c7", "c2999"))


def test_floats_that_are_equal_at_their_scale_are_not_touched(orders: Orders) -> None:
    orders.make_target("order_date date, channel varchar, order_count bigint, amount_cents double precision")
    orders.fill()
    orders.database.execute(
        "UPDATE daily_orders SET amount_cents = 0.1::double precision + 0.2::double precision"
        f" WHERE order_date = '{D2}'"
    )
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count,"
        " CASE WHEN channel = 'web' THEN 7.5 ELSE 0.3 END::double precision AS amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.declare(measures={"order_count": {}, "amount_cents": {"scale": 2}})

    run = orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "store", 2, 0.1 + 0.2), (D2, "web", 1, 7.5)))

    assert orders.groups(run.id) == [("changed", (D2, "web"), (1, "0.30"), (1, "7.50"))]


CHECKS = {
    "amount_cents >= 0": True,
    "order_count BETWEEN 1 AND 2": True,
    "order_count IS NOT NULL AND order_count BETWEEN 1 AND 2": False,
    "amount_cents IS NOT NULL AND order_count IS NOT NULL AND channel IN ('web', 'store', 'phone')"
    " AND amount_cents < 5001 AND order_count < 3": False,
}


@only("duckdb", "rows are touched before they are replaced; PostgreSQL locks the table")
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_a_check_of_the_target_is_never_in_the_way(orders: Orders, check: str) -> None:
    """What a touch puts into the rows would break the check; then another value is taken, or none and that is said."""
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint, CHECK ({check})")
    orders.fill()
    orders.correct(5, 301)
    run = orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "store", 2, 751)))
    assert any("hid concurrent updates" in warning for warning in run.warnings) is not CHECKS[check]


# --- foreign keys that point at the target ----------------------------------------------------------------------------


@pytest.fixture
def noted(orders: Orders) -> Orders:
    """The orders under a primary key, with notes that point at two of its rows."""
    orders.make_target(KEYED)
    orders.fill()
    orders.database.execute(
        "CREATE TABLE notes (order_date date, channel varchar, note varchar,"
        " FOREIGN KEY (order_date, channel) REFERENCES daily_orders (order_date, channel))"
    )
    orders.database.execute(f"INSERT INTO notes VALUES ('{D2}', 'web', 'a'), ('{D1}', 'store', 'b')")
    return orders


def test_rows_that_others_point_at_are_changed_and_their_neighbours_come_and_go(noted: Orders) -> None:
    noted.correct(4, 1300)
    noted.correct(3, 701)
    noted.order(9, D2, "app", 77)
    noted.cancel("order_id IN (5, 6)")
    after = changed((D2, "web", 1, 1300), (D1, "store", 1, 701), (D2, "app", 1, 77))
    after.remove((D2, "store", 2, 750))
    noted.publish(WHOLE, added=1, changed=2, removed=1, unchanged=3, after=after)
    noted.run(WHOLE, rewrite=True)
    assert noted.database.rows("SELECT note FROM notes JOIN daily_orders USING (order_date, channel) ORDER BY 1") == [
        ("a",),
        ("b",),
    ]


def test_a_row_that_another_points_at_is_not_removed_and_a_person_decides(noted: Orders) -> None:
    noted.cancel("order_id = 4")
    noted.correct(3, 701)

    error = noted.refuses(WHOLE, "target_referenced", is_planned=False)

    notes = f"{noted.database.schema}.notes"
    assert found(error).startswith(f"rows of {notes} point at (order_date") and "which would be removed" in found(error)
    assert all(word in found(error) for word in ("channel", D2, "web"))
    assert noted.rows() == list(T0)
    noted.database.execute("DELETE FROM notes WHERE note = 'a'")
    after = [row for row in changed((D1, "store", 1, 701)) if row != (D2, "web", 1, 1200)]
    noted.publish(WHOLE, changed=1, removed=1, unchanged=4, after=after)


def test_the_slices_before_the_one_with_a_row_that_must_stay_are_published(noted: Orders) -> None:
    noted.cancel("order_id = 4")
    noted.correct(3, 701)
    error = noted.fails("run", PartlyPublished, WHOLE, per_slice=True)
    assert "1 slice is published whole" in found(error) and f"rows of {noted.database.schema}.notes point at" in found(
        error
    )
    assert noted.rows() == changed((D1, "store", 1, 701))


@only("duckdb", "a row whose indexed value is updated is deleted and inserted")
def test_an_index_on_a_measure_makes_a_change_a_removal(noted: Orders) -> None:
    """DuckDB deletes and inserts a row whose indexed value is updated; that is told and not done by another way."""
    noted.database.execute("CREATE INDEX by_cents ON daily_orders (amount_cents)")
    noted.correct(4, 1300)
    error = noted.refuses(WHOLE, "target_referenced", is_planned=False)
    assert f"(order_date: {D2}, channel: web)" in found(error)
    noted.correct(4, 1200)
    noted.correct(7, 5001)
    noted.publish(WHOLE, changed=1, unchanged=5, after=changed((D3, "web", 1, 5001)))


@only("duckdb", "a foreign key is checked at once, whatever the transaction holds")
def test_replace_slice_refuses_a_table_that_others_point_at_and_names_merge(noted: Orders) -> None:
    noted.declare(method="replace_slice")
    noted.correct(4, 1300)
    error = noted.refuses(WHOLE, "target_referenced")
    assert "foreign keys of main.notes point at" in found(error) and "method: merge" in error.next
    noted.declare(method="merge")
    assert noted.run(WHOLE).outcome is Outcome.PUBLISHED


def test_a_restore_does_not_remove_a_row_that_another_points_at(noted: Orders) -> None:
    noted.order(9, D2, "app", 77)
    noted.correct(4, 1300)
    run = noted.run(WHOLE)
    noted.database.execute(f"INSERT INTO notes VALUES ('{D2}', 'app', 'c')")
    with pytest.raises(Refused) as caught:
        noted.handle.restore(run.id or "")
    assert kinds(caught.value) == ["target_referenced"]
    assert noted.rows() == changed((D2, "web", 1, 1300), (D2, "app", 1, 77))
    noted.database.execute("DELETE FROM notes WHERE note = 'c'")
    assert noted.handle.restore(run.id or "").outcome is Outcome.RESTORED
    assert noted.rows() == list(T0)
