"""Status: how each slice of the target stands to its source; nothing is written, and nothing has to be there for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import reslice
from reslice.errors import Misused, Refused, ResliceError, Retryable
from reslice.report_json import as_json, exit_code
from reslice.report_status import status_text
from reslice.values import Outcome, Run, SliceDiff, Total
from tests.conformance.databases import Database, file_of, only
from tests.conformance.orders import ALLOWED, D1, D2, D3, D4, SOURCE, Orders, Target, found, kinds
from tests.conformance.test_ten_cases import JAN1, JAN2, Shop
from tests.conformance.test_zones import BY_SESSION_DAY, NEW_YORK, Z, zoned


def states(run: Run) -> dict[str, str]:
    """Return the state of each slice that has rows on either side."""
    return {each.label: str(each.state) for each in slices(run)}


def slices(run: Run) -> tuple[SliceDiff, ...]:
    assert run.diff is not None and run.command == "status" and run.outcome is Outcome.UNCHANGED
    return run.diff.slices


def test_every_state_with_its_groups_and_totals(orders: Orders) -> None:
    orders.correct(4, 1300)  # D2 differs
    orders.cancel(f"order_date = '{D3}'")  # D3 is extra
    orders.order(9, D4, "web", 80)  # D4 is missing

    run = orders.status(f"2024-02-29..{D4}")

    assert states(run) == {D1: "equal", D2: "differs", D3: "extra", D4: "missing"}
    assert [(each.added, each.changed, each.removed, each.unchanged) for each in slices(run)] == [
        (0, 0, 0, 2),
        (0, 1, 0, 1),
        (0, 0, 2, 0),
        (1, 0, 0, 0),
    ]
    assert [(each.totals["order_count"], each.totals["amount_cents"]) for each in slices(run)] == [
        (Total(3, 3), Total(4200, 4200)),
        (Total(3, 3), Total(1950, 2050)),
        (Total(2, None), Total(5999, None)),
        (Total(None, 1), Total(None, 80)),
    ]
    assert run.diff is not None and run.diff.totals["amount_cents"] == Total(12149, 6330)
    assert run.equals_source is False and exit_code(run) == 1 and run.id is None
    assert [each["state"] for each in as_json(run)["slices"]] == ["equal", "differs", "extra", "missing"]


@only("duckdb", "a database is a file")
def test_an_equal_table_is_exit_0_and_not_one_byte_is_written(orders: Orders) -> None:
    orders.database.let_go()
    before = file_of(orders.database).read_bytes()
    run = reslice.open(orders.file).target("daily_orders").status(f"{D1}..{D3}")
    assert run.equals_source and exit_code(run) == 0 and not run.target_changed
    assert file_of(orders.database).read_bytes() == before
    assert {each.name for each in orders.folder.iterdir()} == {"daily_orders.yml", "source.sql", "warehouse.duckdb"}


def test_an_equal_table_is_exit_0_and_no_ledger_is_made(orders: Orders) -> None:
    versions = orders.versions()
    run = orders.status(f"{D1}..{D3}")
    assert run.equals_source and exit_code(run) == 0 and not run.target_changed
    assert orders.versions() == versions and orders.database.table_names("reslice") == []


def test_c3_the_slice_that_an_order_left_is_named(engine: Database) -> None:
    shop = Shop(engine, "replace_slice")
    shop.database.execute(f"UPDATE orders_fact SET order_date = '{JAN2}' WHERE order_id = 'o100'")
    run = shop.run(JAN2)
    assert shop.sums() == (8, 11, 61500)
    assert "slices outside this range are not looked at: reslice status daily_orders compares them" in run.notes

    status = shop.status("2026-01")

    assert states(status) == {JAN1: "differs", JAN2: "equal", "2026-01-03": "equal"}
    assert slices(status)[0].totals["amount_cents"] == Total(15000, 10000)
    shop.run(JAN1)
    assert shop.sums() == (8, 10, 56500) and shop.status("2026-01").equals_source


def test_repeated_keys_are_told(orders: Orders) -> None:
    orders.fill([(D2, "web", 1, 1200), (D2, "web", 1, 1200)])
    run = orders.status(D2)
    assert states(run) == {D2: "differs"} and (slices(run)[0].changed, slices(run)[0].repeated) == (1, 2)
    assert "change 1, heal 2 repeated rows" in status_text(run)
    (value,) = as_json(run)["slices"]
    assert (value["changed"], value["totals"]["amount_cents"]) == (1, {"before": 4350, "after": 1950})


def test_rows_without_a_slice_are_not_looked_at(orders: Orders) -> None:
    orders.fill([(None, "web", 1, 111)])
    assert orders.status().equals_source


# The default range


def test_from_the_first_slice_of_the_target_to_yesterday(orders: Orders) -> None:
    orders.order(9, "2024-02-28", "web", 1)  # before the first slice of the target: nobody knows of it
    now = "SELECT (timezone('UTC', now())::date - 1)::varchar"
    yesterday = orders.database.rows(now)[0][0]

    run = orders.status()

    hull = run.scope.hull
    assert (hull.label(hull.start), hull.label(hull.end)) in ((D1, yesterday), (D1, orders.database.rows(now)[0][0]))
    assert states(run) == dict.fromkeys((D1, D2, D3), "equal") and run.scope.count > 600


def test_a_target_that_is_ahead_of_the_clock_is_compared_to_its_end(orders: Orders) -> None:
    orders.fill([("2999-01-01", "web", 1, 5)])
    run = orders.status()
    assert run.scope.hull.text == f"{D1}..2999-01-01"
    assert states(run) == {D1: "equal", D2: "equal", D3: "equal", "2999-01-01": "extra"}


def test_t21_5_an_order_of_the_year_2999_hides_nothing(orders: Orders) -> None:
    orders.order(99, "2999-01-01", "web", 5)
    orders.run("2999-01-01")
    orders.correct(2, 2600)
    assert states(orders.status())[D1] == "differs"

    orders.database.execute("CREATE TABLE corrections (order_date date, loaded_at timestamptz)")
    orders.source("SELECT order_date FROM corrections WHERE loaded_at > :since", "affected")
    orders.declare(affected="affected.sql")
    orders.database.execute(f"INSERT INTO corrections VALUES ('{D1}', now()), ('2999-01-01', now())")
    assert orders.run(D2).affected == (D1, "2999-01-01")
    assert states(orders.status(since="last")) == {}
    assert states(orders.status(since="2024-03-10")) == {D1: "differs", "2999-01-01": "equal"}


def test_t21_6_a_late_order_is_found_by_comparison(orders: Orders) -> None:
    orders.run(f"{D1}..{D3}")
    orders.order(9, D1, "web", 50)
    assert states(orders.status()) == {D1: "differs", D2: "equal", D3: "equal"}


@pytest.mark.parametrize("rows", [[], [(None, "web", 1, 111)]], ids=["empty", "undated"])
def test_a_target_without_a_first_slice_wants_a_range(empty_orders: Orders, rows: list[Any]) -> None:
    if rows:
        empty_orders.fill(rows)
    error: Misused = empty_orders.fails("status", Misused)
    assert error.kind == "usage"
    assert "daily_orders holds no row with a value in order_date" in found(error)
    assert states(empty_orders.status(f"{D1}..{D3}")) == dict.fromkeys((D1, D2, D3), "missing")


def test_the_first_and_last_days_of_the_calendar(orders: Orders) -> None:
    orders.fill([("0001-01-01", "web", 1, 4), ("9999-12-31", "web", 1, 4)])
    run = orders.status()
    assert run.scope.count == 3652059 and states(run)["0001-01-01"] == states(run)["9999-12-31"] == "extra"
    assert len(status_text(run)) < 2000 and len(as_json(run)["slices"]) == 5


def test_t22_1_days_on_both_sides_of_the_epoch(empty_orders: Orders) -> None:
    empty_orders.cancel("true")
    empty_orders.order(20, "1969-12-31", "web", 5)
    empty_orders.order(21, "1970-01-01", "web", 7)
    empty_orders.run("1969-12-31..1970-01-01")
    empty_orders.correct(20, 6)
    assert states(empty_orders.status()) == {"1969-12-31": "differs", "1970-01-01": "equal"}


@pytest.mark.parametrize("value", ["infinity", "-infinity", "10000-01-01", "0001-01-01 BC"])
def test_dates_beyond_the_calendar_are_no_slices(orders: Orders, value: str) -> None:
    if value.endswith(" BC"):
        value = orders.database.before_christ(value.removesuffix(" BC"))
    orders.fill([(value, "web", 1, 4)])
    assert states(orders.status()) == dict.fromkeys((D1, D2, D3), "equal")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", ("20240301", "20240302"), "20240299"),
        ("varchar", (D1, D2), "'someday'"),
        ("varchar", (D1, D2), "''"),
    ],
)
def test_values_that_are_no_days_are_no_slices(engine: Database, kind: str, good: tuple[str, str], bad: str) -> None:
    engine.execute(f"CREATE TABLE facts (moment {kind}, n bigint)")
    engine.execute(f"CREATE TABLE totals (moment {kind}, n bigint)")
    engine.execute(f"INSERT INTO facts VALUES ('{good[0]}', 1), ('{good[1]}', 2)")
    engine.execute("INSERT INTO totals SELECT * FROM facts")
    engine.execute(f"INSERT INTO totals VALUES ({bad}, 5)")
    target = Target(engine, "totals", daily("moment"), "SELECT * FROM facts WHERE moment BETWEEN :start AND :end")
    assert states(target.status()) == {D1: "equal", D2: "equal"}


def daily(column: str, **cut: str) -> dict[str, Any]:
    return {
        "table": "totals",
        "source": "source.sql",
        "grain": [column],
        "slice": {"column": column, "unit": "day", **cut},
        "measures": {"n": {}},
        "guards": ALLOWED,
    }


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK])
def test_days_are_days_of_the_contracts_zone(empty_orders: Orders, zone: str) -> None:
    orders = zoned(empty_orders, zone, Z, BY_SESSION_DAY)
    orders.run(f"{D1}..{D3}")
    days = [D1, D2, D3] if zone == NEW_YORK else [D2, D3]
    assert states(orders.status()) == dict.fromkeys(days, "equal")
    orders.database.insert("instants", [("2024-03-03 04:59:59+00", 1)])
    late = D2 if zone == NEW_YORK else D3
    assert states(orders.status()) == dict.fromkeys(days, "equal") | {late: "differs"}


def test_today_by_the_contracts_zone(engine: Database) -> None:
    """The day that is over last is another one in Kiritimati and in Pago Pago, at most hours of a day."""
    engine.execute("CREATE TABLE facts (moment date, n bigint)")
    engine.execute("CREATE TABLE totals AS SELECT DATE '2024-03-01' AS moment, 1::bigint AS n")
    ends = []
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        target = Target(
            engine, "totals", daily("moment", timezone=zone), "SELECT * FROM facts WHERE moment BETWEEN :start AND :end"
        )
        ends.append(target.status().scope.hull.end)
    assert 0 < (ends[0] - ends[1]).days <= 2  # type: ignore[operator]


# --since


@pytest.fixture
def watched(orders: Orders) -> Orders:
    """A contract that knows which slices corrections touch; D1 is corrected on the 10th, D3 on the 12th, at noon."""
    orders.database.execute("CREATE TABLE corrections (order_date date, loaded_at timestamptz)")
    orders.database.execute(
        f"INSERT INTO corrections VALUES ('{D1}', '2024-03-10 12:00:00+00'), ('{D3}', '2024-03-12 12:00:00+00')"
    )
    orders.source("SELECT order_date FROM corrections WHERE loaded_at > :since", "affected")
    orders.declare(affected="affected.sql")
    orders.correct(2, 2600)
    orders.correct(7, 5001)
    return orders


@pytest.mark.parametrize(
    ("since", "named"),
    [
        ("2024-03-01", (D1, D3)),
        ("2024-03-10T12:00:00", (D3,)),
        ("2024-03-10 11:59:59.999999", (D1, D3)),
        ("2024-03-10T07:00:00-05:00", (D3,)),
        ("2024-03-10T12:00:00Z", (D3,)),
        ("2024-03-10T06:59:59-05:00", (D1, D3)),
        ("20240311", (D3,)),
        ("2024-W11", (D3,)),
        ("0001-01-01", (D1, D3)),
        ("9999-12-31T23:59:59", ()),
        (datetime(2024, 3, 10, 12, tzinfo=UTC), (D3,)),
        (datetime(2024, 3, 10, 12), (D3,)),
    ],
)
def test_since_a_time(watched: Orders, since: Any, named: tuple[str, ...]) -> None:
    run = watched.status(since=since)
    assert states(run) == dict.fromkeys(named, "differs")
    assert run.equals_source is (not named) and exit_code(run) == (1 if named else 0)


@pytest.mark.parametrize(("zone", "named"), [(NEW_YORK, (D1, D3)), ("Asia/Kolkata", (D1, D3)), ("UTC", (D3,))])
@pytest.mark.parametrize("kind", [str, datetime.fromisoformat])
def test_a_time_without_an_offset_is_of_the_contracts_zone(
    watched: Orders, zone: str, named: tuple[str, ...], kind: Any
) -> None:
    watched.declare(slice={"column": "order_date", "unit": "day", "timezone": zone})
    since = {NEW_YORK: "2024-03-10 07:59:59", "Asia/Kolkata": "2024-03-10 17:29:59", "UTC": "2024-03-10 12:00:00"}[zone]
    # Noon in UTC is 08:00 in New York, where the clock went forward that morning, and 17:30 in Kolkata.
    assert tuple(states(watched.status(since=kind(since)))) == named


@pytest.mark.parametrize("since", ["0001-01-01", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("zone", ["Asia/Kolkata", NEW_YORK])
def test_the_ends_of_time_in_zones_where_utc_has_none(watched: Orders, zone: str, since: str) -> None:
    watched.declare(slice={"column": "order_date", "unit": "day", "timezone": zone})
    assert len(states(watched.status(since=since))) == (2 if since.startswith("0001") else 0)


def test_since_a_run(watched: Orders) -> None:
    run_id = watched.run(D2).id
    assert run_id is not None
    assert states(watched.status(since=run_id)) == {}
    watched.database.execute(f"INSERT INTO corrections VALUES ('{D1}', now())")
    for reference in (run_id, "r-", "last"):
        assert states(watched.status(since=reference)) == {D1: "differs"}


def test_touched_slices_outside_the_range_are_named(watched: Orders) -> None:
    run = watched.status(f"{D2}..{D3}", since="2024-03-01")
    assert states(run) == {D3: "differs"} and run.affected == (D1,)
    assert f"corrections also touch {D1}, outside this range, which was not compared" in run.warnings
    assert f"warning: corrections also touch {D1}" in status_text(run)
    assert as_json(run)["affected"] == [D1]
    assert "only the slices that corrections since 2024-03-01 00:00:00 UTC touch are compared" in run.notes


def test_where_corrections_touch_nothing_the_source_is_not_evaluated(watched: Orders) -> None:
    watched.source("SELECT CAST('no answer' || :start || :end AS bigint)")
    run = watched.status(D2, since="2024-03-01")
    assert (states(run), run.affected, run.equals_source, exit_code(run)) == ({}, (D1, D3), True, 0)
    text = status_text(run)
    assert "the source was not evaluated" in text and "daily_orders was not compared" in text
    assert "equal" not in text


def test_very_many_touched_slices_are_a_short_answer(watched: Orders) -> None:
    watched.database.execute(
        "INSERT INTO corrections SELECT DATE '2014-01-01' + CAST(2 * n AS integer), now()"
        " FROM generate_series(0, 1825) AS numbers (n)"
    )
    run = watched.status(since="2024-03-01")
    assert run.scope.count == 1826 + 2
    text = status_text(run)
    assert "1828 ranges in 2014-01-01.." in text and max(map(len, text.splitlines())) < 200
    outside = watched.status(D1, since="2024-03-01")
    assert "and 1822 more, outside this range" in status_text(outside) and len(outside.affected) == 1827


@pytest.mark.parametrize("since", ["yesterday", "2024", "2024-13-01", "r-0099", "last", "last~3", "\ud800"])
def test_a_since_that_is_neither_a_run_nor_a_time(watched: Orders, since: str) -> None:
    error: Misused = watched.fails("status", Misused, since=since)
    assert error.kind == "run_unknown" and error.exit_code == 2
    assert error.failures[0].asked.startswith("--since RUN|TIME: a run, or a time such as 2026-01-02")
    assert error.next == "reslice history daily_orders"


def test_since_needs_affected_in_the_contract(orders: Orders) -> None:
    error: Misused = orders.fails("status", Misused, since="2024-03-01")
    assert error.kind == "usage" and "the contract has no affected query" in found(error)
    assert error.next == "reslice status daily_orders"


def test_with_affected_a_plan_and_a_run_name_the_slices_and_do_not_point_elsewhere(watched: Orders) -> None:
    for run in (watched.plan(D1), watched.run(D1)):
        assert run.affected == (D3,) and any(f"also touch {D3}, outside" in text for text in run.warnings)
        assert not any("reslice status" in note for note in run.notes)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_without_affected_a_plan_and_a_run_point_to_status(orders: Orders, command: str) -> None:
    orders.correct(4, 1300)
    note = "slices outside this range are not looked at: reslice status daily_orders compares them"
    assert note in getattr(orders, command)(D2).notes


# What keeps it from answering


def test_a_check_that_fails_is_exit_3(orders: Orders) -> None:
    orders.source(SOURCE.replace("GROUP BY order_date, channel", "GROUP BY order_date, channel, order_id"))
    error: Refused = orders.fails("status", Refused, f"{D1}..{D3}")
    assert kinds(error) == ["key_repeated"] and error.run is not None and error.run.command == "status"
    assert as_json(error.run)["error"]["kind"] == "key_repeated"


def test_a_source_that_cannot_be_understood_and_one_that_fails(orders: Orders) -> None:
    orders.source("SELECT nothing FROM nowhere WHERE :start < :end")
    assert orders.fails("status", Misused, D1).kind == "source_invalid"
    orders.source(SOURCE.replace("sum(amount_cents)", "sum(CAST('no luck' || channel AS bigint))"))
    assert orders.fails("status", Retryable, D1).kind == "source_failed"


def test_a_broken_affected_query(watched: Orders) -> None:
    watched.source("SELECT 'someday' WHERE :since IS NOT NULL", "affected")
    assert watched.fails("status", Misused, since="2024-03-01").kind == "source_invalid"
    watched.source("SELECT nothing WHERE :since IS NOT NULL", "affected")
    assert watched.fails("status", Misused, since="2024-03-01").kind == "source_invalid"


@pytest.mark.parametrize("options", [{}, {"range": D1}, {"since": "2024-03-01"}])
def test_a_target_that_cannot_be_compared(watched: Orders, options: dict[str, Any]) -> None:
    def refused() -> ResliceError:
        with pytest.raises(ResliceError) as caught:
            watched.handle.status(**options)
        return caught.value

    watched.database.execute("ALTER TABLE daily_orders RENAME order_date TO day")
    assert kinds(refused())[0] == "target_column"
    watched.database.execute("ALTER TABLE daily_orders RENAME TO daily")
    assert kinds(refused()) == ["target_missing"]
    watched.database.execute("CREATE VIEW daily_orders AS SELECT * FROM daily")
    assert kinds(refused()) == ["target_not_table"]


@only("duckdb", "a database can be attached to be read alone")
def test_who_may_not_write_may_look(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.correct(4, 1300)
    path = str(file_of(orders.database))
    orders.database.let_go()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS warehouse (READ_ONLY)")
        orders.declare(table="warehouse.main.daily_orders")
        orders.source(SOURCE.replace("FROM orders_fact", "FROM warehouse.orders_fact"))
        target = reslice.open(orders.file, connection=connection).target("daily_orders")
        assert states(target.status()) == {D1: "equal", D2: "differs", D3: "equal"}


def test_it_is_followed_step_by_step(orders: Orders) -> None:
    steps: list[str] = []
    orders.status(f"{D1}..{D3}", on_step=steps.append)
    assert steps == ["staging", "checking", "comparing"]


def test_a_control_is_shown_and_a_difference_is_refused(orders: Orders) -> None:
    orders.source(
        "SELECT order_date, sum(amount_cents) AS cents FROM orders_fact WHERE order_date BETWEEN :start AND :end"
        " GROUP BY order_date",
        "control",
    )
    orders.declare(controls={"source": "control.sql", "match": {"cents": "sum(amount_cents)"}})
    run = orders.status(f"{D1}..{D3}")
    assert "reconciled: cents 12149 = 12149, 3 slices" in status_text(run)


def test_ten_years_of_days_are_a_short_answer(empty_orders: Orders) -> None:
    empty_orders.database.execute(
        "INSERT INTO daily_orders SELECT DATE '2014-01-01' + CAST(n AS integer), 'web', 1, 100"
        " FROM generate_series(0, 3651) AS numbers (n)"
    )
    run = empty_orders.status("2014..2023")
    text = status_text(run)
    assert "0 equal, 0 differ, 0 missing, 3652 extra" in text
    assert len(text.splitlines()) < 60 and "… and 3612 more: --json lists every slice" in text
    assert len(as_json(run)["slices"]) == 3652


@pytest.mark.parametrize("name", ["Daily Orders", "my'orders", "select", "日 別"])
def test_names_that_want_quotes(orders: Orders, name: str, tmp_path: Path) -> None:
    quoted = '"' + name + '"'
    orders.database.execute(f"CREATE TABLE {quoted} AS SELECT * FROM daily_orders")
    orders.declare(table=quoted)
    orders.correct(4, 1300)
    assert states(orders.status()) == {D1: "equal", D2: "differs", D3: "equal"}
