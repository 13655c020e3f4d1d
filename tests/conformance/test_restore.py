"""Restore: what a run replaced comes back, alone, as a run of its own; done twice it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from reslice.errors import Misused, Refused
from reslice.values import Outcome, Run, SliceDiff
from tests.conformance.databases import Database
from tests.conformance.orders import (
    ALLOWED,
    D1,
    D2,
    D3,
    D4,
    IN_PLACE,
    T0,
    Orders,
    Target,
    changed,
    found,
    kinds,
    ordered,
    without,
)
from tests.conformance.test_identifiers import Named
from tests.conformance.test_zones import NEW_YORK

METHODS = IN_PLACE

D2_2050 = changed((D2, "web", 1, 1300))
D2_2150 = changed((D2, "web", 1, 1400))


def published(orders: Target, range: str, **options: Any) -> str:
    """Run, and return the id of a run that has published."""
    run = orders.run(range, **options)
    assert run.outcome is Outcome.PUBLISHED and run.id is not None
    return run.id


def test_t25_1_the_rows_before_the_run_come_back_and_a_second_restore_does_nothing(orders: Orders) -> None:
    orders.correct(4, 1300)
    run_id = published(orders, f"{D1}..{D3}")
    assert orders.rows() == ordered(D2_2050)
    outside = [row for row in orders.versions() if row[1] != D2]

    run = orders.puts_back(run_id, after=T0, slices=(D2,), changed=1, unchanged=1)

    assert run.scope.text == D2 and [row for row in orders.versions() if row[1] != D2] == outside
    assert orders.slices(run.id) == [(D2, "published")]
    assert orders.groups(run.id) == [("changed", (D2, "web"), (1, 1300), (1, 1200))]


def test_t25_5_a_group_that_the_run_removed_is_there_again(orders: Orders) -> None:
    orders.cancel("order_id = 8")
    run_id = published(orders, D3)
    assert orders.rows() == without((D3, "phone"))

    orders.puts_back(run_id, after=T0, slices=(D3,), added=1, unchanged=1)

    assert orders.database.rows("SELECT count(*), sum(amount_cents) FROM daily_orders") == [(6, 12149)]


def test_a_slice_that_the_run_emptied_is_filled_again(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D2}'")
    run_id = published(orders, f"{D1}..{D3}")

    orders.puts_back(run_id, after=T0, slices=(D2,), added=2)


def test_the_first_run_ever_is_undone_to_an_empty_table(empty_orders: Orders) -> None:
    run_id = published(empty_orders, f"{D1}..{D3}")

    run = empty_orders.puts_back(run_id, after=[], slices=(D1, D2, D3), removed=6)

    assert run.rows_after == 0 and str(run.after) == "0:0"
    empty_orders.puts_back(run.id, after=T0, slices=(D1, D2, D3), added=6)


def test_a_restore_is_undone_like_any_run_and_says_whose_rows_return(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    undo = orders.restore(first)
    redo = orders.puts_back(undo.id, after=D2_2050, slices=(D2,), changed=1, unchanged=1)

    assert f"{undo.id} is a restore itself: this puts back what {first} had written" in redo.notes
    orders.puts_back(first, after=T0, slices=(D2,), changed=1, unchanged=1)


def test_t10_1_the_same_rows_published_after_a_restore_are_not_dropped(orders: Orders) -> None:
    orders.correct(4, 1300)
    first = published(orders, D2)
    orders.puts_back(first, after=T0, slices=(D2,), changed=1, unchanged=1)

    orders.publish(D2, changed=1, unchanged=1, after=D2_2050, allow=["restored"], reason="it was right after all")

    assert orders.database.rows(f"SELECT count(*), sum(amount_cents) FROM daily_orders WHERE order_date = '{D2}'") == [
        (2, 2050)
    ]


@pytest.mark.parametrize("method", ["replace_slice"])
def test_t10_3_kept_rows_that_the_database_did_not_store_are_found_before_the_commit(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.correct(4, 1300)
    run_id = published(orders, D2)
    before = orders.versions()
    into = f"INSERT INTO {orders.database.quoted('daily_orders')}"
    orders.database.follow_statements(
        monkeypatch, lambda text: f"{text} AND channel = 'web'" if text.startswith(into) else None
    )

    error = orders.fails("restore", Refused, run_id)

    assert kinds(error) == ["not_as_staged"]
    assert "1 row, order_count 1, amount_cents 1200" in found(error)
    assert "2 rows, order_count 3, amount_cents 1950" in found(error)
    assert orders.versions() == before
    assert error.failures[0].next == f"reslice restore {run_id} {D2}"
    assert orders.ledger(error.run.id)["state"] == "refused"


# Parts


def test_one_slice_of_a_run_and_then_the_others(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    orders.correct(7, 5100)
    run_id = published(orders, f"{D1}..{D3}")
    new = {(D1, "web", 2, 3600), (D2, "web", 1, 1300), (D3, "web", 1, 5100)}

    orders.puts_back(run_id, D2, after=changed(*(new - {(D2, "web", 1, 1300)})), slices=(D2,), changed=1, unchanged=1)
    orders.puts_back(run_id, f"{D2}..{D3}", after=changed((D1, "web", 2, 3600)), slices=(D3,), changed=1, unchanged=3)
    orders.puts_back(run_id, "2024-03", after=T0, slices=(D1,), changed=1, unchanged=5)


def test_a_range_the_run_did_not_write_is_nothing_to_restore(orders: Orders) -> None:
    orders.correct(4, 1300)
    run_id = published(orders, f"{D1}..{D3}")
    before = orders.versions()

    error = _misused(orders, run_id, D1)

    assert error.kind == "nothing_to_restore" and error.exit_code == 2
    assert found(error) == f"{run_id} replaced {D2}, and none of it lies in {D1}"
    assert error.next == "reslice history daily_orders" and orders.versions() == before


def _misused(orders: Orders, run_id: str | None, range: str | None = None) -> Misused:
    with pytest.raises(Misused) as caught:
        orders.restore(run_id, range)
    return caught.value


def test_a_run_that_replaced_nothing_is_nothing_to_restore(orders: Orders) -> None:
    unchanged = orders.run(f"{D1}..{D3}")
    error = _misused(orders, unchanged.id)
    assert error.kind == "nothing_to_restore"
    assert found(error) == f"{unchanged.id} is unchanged and replaced no slice"


def test_a_run_per_slice_that_ended_part_way_is_undone_as_far_as_it_got(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    orders.make_target(
        "order_date date, channel varchar, order_count bigint, amount_cents bigint CHECK (amount_cents <> 1300)"
    )
    orders.fill()
    with pytest.raises(Exception, match="partly published") as caught:
        orders.run(f"{D1}..{D3}", per_slice=True)
    part: Any = caught.value
    assert part.exit_code == 6 and orders.rows() == changed((D1, "web", 2, 3600))

    orders.puts_back(part.run.id, after=T0, slices=(D1,), changed=1, unchanged=1)


def test_a_run_whose_process_is_gone_is_undone_as_far_as_it_got(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    run_id = published(orders, f"{D1}..{D3}", per_slice=True)
    unclosed = ("publish_order", "kept_table", "fingerprint_columns", "fingerprint_base", "finished_at", "rows_before")
    emptied = ", ".join(f"{name} = NULL" for name in unclosed)
    orders.database.execute(f"UPDATE reslice.runs SET state = 'requested', process = 'gone', {emptied}")

    run = orders.puts_back(run_id, after=T0, slices=(D1, D2), changed=2, unchanged=2)

    assert any(f"{run_id} over {D1}..{D3} was abandoned" in note for note in run.notes)
    assert orders.ledger(run_id)["state"] == "failed"


# What comes back


def test_rows_of_a_repeated_key_come_back_and_it_is_said(orders: Orders) -> None:
    orders.fill([(D2, "web", 1, 1200), (D2, "web", 1, 1200)])
    before = orders.rows()
    run_id = published(orders, D2)
    assert orders.rows() == list(T0)

    run = orders.puts_back(run_id, after=before, slices=(D2,), changed=1, unchanged=1)

    assert run.warnings == (f"2 rows with a repeated key come back, which {run_id} had healed",)
    assert len(orders.rows()) == 8


def test_t02_4_a_row_without_a_date_is_never_touched(orders: Orders) -> None:
    orders.order(10, None, "web", 400)
    orders.fill([(None, "web", 1, 111)])
    orders.correct(4, 1300)
    run_id = published(orders, f"{D1}..{D3}")
    undated = [row for row in orders.versions() if row[1] is None]

    orders.puts_back(run_id, after=[*T0, (None, "web", 1, 111)], slices=(D2,), changed=1, unchanged=1)

    assert [row for row in orders.versions() if row[1] is None] == undated


def test_null_keys_come_back_as_null_keys(orders: Orders) -> None:
    orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    orders.fill([(D2, None, 1, 250), (D2, "", 1, 40)])
    before = orders.rows()
    run_id = published(orders, D2)
    orders.puts_back(run_id, after=before, slices=(D2,), added=2, unchanged=2)


def test_identity_generated_and_stamp_columns_come_back_as_they_were(orders: Orders) -> None:
    orders.database.execute("CREATE SEQUENCE ids START 100")
    average = orders.database.generated("CAST(amount_cents AS double precision) / order_count")
    orders.make_target(
        "row_id bigint DEFAULT nextval('ids'), order_date date, channel varchar, order_count bigint,"
        f" amount_cents bigint, avg_cents double precision {average}, loaded_at timestamptz, batch varchar"
    )
    orders.declare(stamps={"loaded_at": "run_time", "batch": "run_id"})
    first = published(orders, f"{D1}..{D3}")
    before = orders.rows()
    assert {row[0] for row in before} == set(range(100, 106)) and {row[-1] for row in before} == {first}
    assert [row[5] for row in before if row[1:3] == (D1, "web")] == [1750.0]
    orders.correct(2, 2600)
    second = published(orders, f"{D1}..{D3}")
    assert [row[5] for row in orders.rows() if row[1:3] == (D1, "web")] == [1800.0]
    assert {row[-1] for row in orders.rows()} == {first, second}

    orders.puts_back(second, after=before, slices=(D1,), changed=1, unchanged=1)

    # The two rows of D1 were inserted by the correction; merge inserts none, and a restore takes no number.
    orders.database.execute(f"INSERT INTO daily_orders (order_date, channel) VALUES ('{D4}', 'next')")
    taken = 106 if orders.method == "merge" else 108
    assert orders.database.rows("SELECT row_id FROM daily_orders WHERE channel = 'next'") == [(taken,)]


OF_EVERY_KIND = {
    "ratio": "double precision",
    "price": "decimal(18, 3)",
    "mood": "mood",
    "seen_at": "timestamptz",
    "day_part": "time",
    "code": "uuid",
    "ok": "boolean",
    "big": "decimal(38, 0)",
}


def test_values_of_every_kind_come_back_bit_by_bit(orders: Orders) -> None:
    orders.database.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
    orders.make_target(
        "order_date date, channel varchar, order_count bigint, amount_cents bigint,"
        f" {', '.join(f'{name} {type_text}' for name, type_text in OF_EVERY_KIND.items())}"
    )
    measures = {name: {"nulls": "allow"} for name in OF_EVERY_KIND} | {"ratio": {"nulls": "allow", "scale": 2}}
    orders.declare(measures={"order_count": {}, "amount_cents": {}, **measures})
    orders.database.execute(
        f"INSERT INTO daily_orders VALUES ('{D2}', 'web', 1, 1200, 0.1 + 0.2, 10.005, 'high',"
        " '2024-03-02 03:30:00.000001+05', '23:59:59.999999', '00000000-0000-0000-0000-00000000000a', true,"
        f" 99999999999999999999999999999999999999), ('{D2}', 'b|c\\d', 0, -1, 'nan', NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL)"
    )
    exact = "SELECT CAST(x AS varchar) FROM daily_orders AS x ORDER BY 1"
    before = orders.database.rows(exact)
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents,"
        + ", ".join(f" CAST(NULL AS {type_text}) AS {name}" for name, type_text in OF_EVERY_KIND.items())
        + " FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    run_id = published(orders, D2)
    assert orders.database.rows(exact) != before

    run = orders.restore(run_id)

    assert run.outcome is Outcome.RESTORED and orders.database.rows(exact) == before


def test_t23_1_quoted_mixed_case_and_reserved_names(orders: Orders) -> None:
    target = Named(orders, '"Daily Orders"', ("Date", "Channel", "select", "Amount in cents"), stamp="When")
    published(target, f"{D1}..{D3}")
    before = target.rows()
    orders.correct(4, 1300)
    run_id = published(target, f"{D1}..{D3}")
    target.puts_back(run_id, after=before, slices=(D2,), changed=1, unchanged=1)


@pytest.mark.parametrize("name", ['a"b; DROP TABLE orders_fact; --', "reslice_run", "row_id", "_slice", "ﬀ 東京"])
def test_t23_2_hostile_names(orders: Orders, name: str) -> None:
    target = Named(orders, "named", ("Date", name, "n", "cents"))
    published(target, f"{D1}..{D3}")
    orders.correct(4, 1300)
    run_id = published(target, f"{D1}..{D3}")
    target.puts_back(run_id, after=T0, slices=(D2,), changed=1, unchanged=1)
    assert orders.database.rows("SELECT count(*) FROM orders_fact") == [(8,)]


def test_t13_4_tables_with_names_like_ours_are_left_alone(orders: Orders) -> None:
    database = orders.database
    orders.correct(4, 1300)
    run_id = published(orders, D2)
    public = database.schema
    ours = (f"{public}.reslice_staged_0", f"{public}.kept_0123456789ab")
    names = (*ours, "reslice.kept_0123456789ab", "reslice.kept_mine")
    for name in names:
        database.execute(f"CREATE TABLE {name} AS SELECT 42 AS answer, '{run_id}' AS \"reslice:run\"")

    orders.puts_back(run_id, after=T0, slices=(D2,), changed=1, unchanged=1)

    for name in names:
        assert database.rows(f"SELECT * FROM {name}") == [(42, run_id)]


def test_t22_1_days_on_both_sides_of_the_epoch(empty_orders: Orders) -> None:
    old, new = "1969-12-31", "1970-01-01"
    empty_orders.order(20, old, "web", 5)
    empty_orders.order(21, new, "web", 7)
    empty_orders.run(f"{old}..{new}")
    empty_orders.correct(20, 6)
    run_id = published(empty_orders, old)
    assert empty_orders.rows() == [(old, "web", 1, 6), (new, "web", 1, 7)]
    after = [(old, "web", 1, 5), (new, "web", 1, 7)]
    empty_orders.puts_back(run_id, after=after, slices=(old,), changed=1)


UNITS = [
    ("hour", "timestamptz", "2024-01-10 05:00:00+00", "2024-01-10 06:00:00+00", NEW_YORK, "2024-01-10T00:00-05:00"),
    ("week", "date", "2024-01-01", "2024-01-08", "UTC", "2024-W01"),
    ("month", "timestamp", "2024-01-01 00:00:00", "2024-02-01 00:00:00", "UTC", "2024-01"),
    ("quarter", "date", "2024-01-01", "2024-04-01", "UTC", "2024-Q1"),
    ("day", "integer", "20240101", "20240102", "UTC", "2024-01-01"),
    ("day", "varchar", "2024-01-01", "2024-01-02", "UTC", "2024-01-01"),
    ("month", "varchar", "2024-01-01", "2024-02-01", "UTC", "2024-01"),
]


@pytest.mark.parametrize(("unit", "kind", "first", "second", "zone", "label"), UNITS)
def test_units_types_and_zones(
    engine: Database, unit: str, kind: str, first: str, second: str, zone: str, label: str
) -> None:
    engine.execute(f"CREATE TABLE facts (moment {kind}, n bigint)")
    engine.execute(f"CREATE TABLE totals (moment {kind}, n bigint)")
    engine.execute(f"INSERT INTO facts VALUES ('{first}', 1), ('{second}', 2)")
    declaration = {
        "table": "totals",
        "source": "source.sql",
        "grain": ["moment"],
        "slice": {"column": "moment", "unit": unit, "timezone": zone},
        "measures": {"n": {}},
        "guards": ALLOWED,
    }
    between = "moment BETWEEN :start AND :end"
    if unit == "hour":
        between = "moment >= :start_instant AND moment < :end_instant"
    target = Target(
        engine, "totals", declaration, f"SELECT moment, sum(n) AS n FROM facts WHERE {between} GROUP BY moment"
    )
    year = {"hour": "2024-01", "week": "2024-W01..2024-W50"}.get(unit, "2024")
    target.run(year)
    before = target.rows()
    assert sorted(row[1] for row in before) == [1, 2]
    engine.execute(f"UPDATE facts SET n = 5 WHERE moment = '{first}'")
    run_id = published(target, year)
    assert [each.state for each in _slices(target.status(year))] == ["equal", "equal"]

    run = target.puts_back(run_id, after=before, slices=(label,), changed=1)

    assert run.scope.text == label
    differing = [each.label for each in _slices(target.status(year)) if each.differs]
    assert differing == [label]
    assert [guard.name for guard in target.plan(year).guards if guard.stops] == ["restored"]


def _slices(run: Run) -> tuple[SliceDiff, ...]:
    assert run.diff is not None
    return run.diff.slices


@pytest.mark.parametrize(
    ("day", "hours"),
    [("2024-03-10", ["05", "06", "07"]), ("2024-11-03", ["04", "05", "06", "07"])],
    ids=["spring", "autumn"],
)
def test_hours_across_a_clock_change(engine: Database, day: str, hours: list[str]) -> None:
    engine.execute("CREATE TABLE facts (moment timestamptz, n bigint)")
    engine.execute("CREATE TABLE hourly (moment timestamptz, n bigint)")
    for n, hour in enumerate(hours):
        engine.execute(f"INSERT INTO facts VALUES ('{day} {hour}:30:00+00', {n})")
    declaration = {
        "table": "hourly",
        "source": "source.sql",
        "grain": ["moment"],
        "slice": {"column": "moment", "unit": "hour", "timezone": NEW_YORK},
        "measures": {"n": {}},
        "guards": ALLOWED,
    }
    source = (
        "SELECT timezone('UTC', date_trunc('hour', timezone('UTC', facts.moment))) AS moment, sum(n) AS n FROM facts"
        " WHERE facts.moment >= :start_instant AND facts.moment < :end_instant GROUP BY 1"
    )
    target = Target(engine, "hourly", declaration, source)
    first = published(target, day)
    before = target.rows()
    for place in range(len(hours)):
        engine.execute(
            "UPDATE facts SET n = n + 10 WHERE extract(hour FROM timezone('UTC', moment)) = ?", [int(hours[place])]
        )
        run_id = published(target, day, allow=["restored"], reason="it is what is tested")
        run = target.restore(run_id)
        assert target.rows() == before and len(run.slices_done) == 1
        assert [each.label for each in _slices(target.status(run.scope.text))] == [run.scope.text]
        engine.execute(
            "UPDATE facts SET n = n - 10 WHERE extract(hour FROM timezone('UTC', moment)) = ?", [int(hours[place])]
        )
    whole = target.restore(first)
    assert whole.slices_done and target.rows() == []


def test_a_day_of_23_hours_in_the_contracts_zone(orders: Orders) -> None:
    orders.declare(slice={"column": "order_date", "unit": "day", "timezone": NEW_YORK})
    orders.order(30, "2024-03-10", "web", 10)
    run_id = published(orders, "2024-03-10")
    orders.puts_back(run_id, after=T0, slices=("2024-03-10",), removed=1)


def test_ten_years_of_days_come_back_in_one_commit(empty_orders: Orders) -> None:
    days = "DATE '2014-01-01' + CAST(n AS integer)"
    empty_orders.cancel("true")
    empty_orders.database.execute(
        f"INSERT INTO orders_fact SELECT 1, {days}, 'web', 100 FROM generate_series(0, 3651) AS numbers (n)"
    )
    first = published(empty_orders, "2014..2023")
    empty_orders.database.execute("UPDATE orders_fact SET amount_cents = 200 WHERE extract(month FROM order_date) = 12")
    second = published(empty_orders, "2014..2023")
    sums = "SELECT count(*), sum(amount_cents) FROM daily_orders"
    assert empty_orders.database.rows(sums) == [(3652, 365200 + 31000)]

    run = empty_orders.restore(second)

    assert len(run.slices_done) == 310 and len(run.scope.ranges) == 10
    assert empty_orders.database.rows(sums) == [(3652, 365200)]
    assert empty_orders.restore(first).rows_after == 0


def test_a_reason_and_who_it_was_stand_in_the_ledger(orders: Orders) -> None:
    orders.correct(4, 1300)
    run_id = published(orders, D2)
    run = orders.restore(run_id, reason="the rates file was wrong")
    rows = orders.database.rows(
        "SELECT kind, state, restores, reason, actor <> '' FROM reslice.runs WHERE id = ?", [run.id]
    )
    assert rows == [("restore", "restored", run_id, "the rates file was wrong", True)]


def test_the_source_is_not_needed(orders: Orders) -> None:
    orders.correct(4, 1300)
    run_id = published(orders, D2)
    orders.database.execute("DROP TABLE orders_fact")
    orders.puts_back(run_id, after=T0, slices=(D2,), changed=1, unchanged=1)
