"""append_version: every version stays, one of each slice is current, and reslice and every reader read that one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import reslice
from reslice.errors import Misused, OutcomeUnknown, Refused, ResliceError, Retryable
from reslice.values import Outcome
from tests.conformance.databases import Database, DuckDBDatabase, Row, file_of, only
from tests.conformance.orders import (
    ALLOWED,
    D1,
    D2,
    D3,
    D4,
    INSERT,
    T0,
    VERSION,
    Orders,
    Target,
    changed,
    found,
    kinds,
    ordered,
    without,
)

METHODS = ("append_version",)
WHOLE = f"{D1}..{D3}"
POINTERS = "SELECT slice, version FROM reslice.pointers ORDER BY 1"
SHOP = "order_date, channel, order_count, amount_cents"


def all_rows(orders: Orders) -> list[Row]:
    """Return every row of the table with the version it is of."""
    return ordered(orders.database.rows(f"SELECT {SHOP}, {VERSION} FROM daily_orders"))


def of(run_id: str | None, *rows: Row) -> list[Row]:
    """Return rows as they are in the table, of one version."""
    return [(*row, run_id) for row in rows]


def test_a_version_is_added_and_the_rows_before_it_stay(orders: Orders) -> None:
    orders.correct(4, 1300)
    run = orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))

    new = of(run.id, (D2, "store", 2, 750), (D2, "web", 1, 1300))
    assert all_rows(orders) == ordered([*of(None, *T0), *new])
    assert orders.database.rows(POINTERS) == [(D2, run.id)]
    assert orders.database.rows("SELECT * FROM reslice.versions") == [
        (run.id, f"{orders.database.schema}.daily_orders", D2, run.id, "")
    ]
    assert orders.database.rows("SELECT count(*) FROM daily_orders_current") == [(6,)]

    orders.correct(4, 1400)
    again = orders.publish(D2, changed=1, unchanged=1, after=changed((D2, "web", 1, 1400)))
    assert set(all_rows(orders)) > set(new)
    assert orders.database.rows(POINTERS) == [(D2, again.id)]


def test_everything_reads_the_current_versions(orders: Orders) -> None:
    orders.source("SELECT order_date, count(*) AS n FROM orders_fact GROUP BY 1", "control")
    orders.source("SELECT order_date, sum(amount_cents) AS cents FROM daily_orders_current GROUP BY 1", "report")
    orders.declare(controls={"source": "control.sql", "match": {"n": "sum(order_count)"}})
    for cents in (1300, 1400, 1500):
        orders.correct(4, cents)
        orders.run(WHOLE)
    orders.declare(downstream={"report": {"query": "report.sql", "match": {"cents": "sum(amount_cents)"}}})

    plan = orders.plan(WHOLE)
    assert plan.diff is not None and plan.diff.counts.unchanged == 6 and not plan.diff.repeated
    assert all(line.ok for line in plan.controls)
    answer = orders.verify(WHOLE)
    assert answer.equals_source and answer.repeatable and all(line.ok for line in answer.downstream)
    status = orders.handle.status()
    assert status.equals_source and status.scope.hull.start.isoformat().startswith(D1)
    assert orders.database.rows("SELECT count(*) FROM daily_orders") == [(12,)]


def test_a_restore_points_back_and_adds_no_row(orders: Orders) -> None:
    runs = []
    for cents in (1300, 1400):
        orders.correct(4, cents)
        runs.append(orders.run(WHOLE).id)
    before = orders.versions()

    first = orders.handle.restore(runs[1] or "")
    assert orders.rows() == changed((D2, "web", 1, 1300)) and orders.database.rows(POINTERS) == [(D2, runs[0])]
    second = orders.handle.restore(runs[0] or "")
    assert orders.rows() == list(T0) and orders.database.rows(POINTERS) == [(D2, "")]
    orders.handle.restore(second.id or "")
    assert orders.rows() == changed((D2, "web", 1, 1300))
    orders.handle.restore(first.id or "")
    assert orders.rows() == changed((D2, "web", 1, 1400))
    assert orders.versions() == before


def test_an_empty_slice_is_a_version_without_rows(orders: Orders) -> None:
    orders.cancel(f"order_date = '{D2}'")
    run = orders.publish(WHOLE, removed=2, unchanged=4, after=without((D2, "store"), (D2, "web")))
    assert orders.database.rows(POINTERS) == [(D2, run.id)] and all_rows(orders) == of(None, *T0)
    assert [each.label for each in orders.handle.status(WHOLE).diff.slices] == [D1, D3]  # type: ignore[union-attr]
    orders.handle.restore(run.id or "")
    assert orders.rows() == list(T0)
    orders.declare(guards={**ALLOWED, "restored": "allow"})
    again = orders.run(WHOLE)
    orders.order(9, D2, "app", 77)
    orders.publish(D2, added=1, after=[*without((D2, "store"), (D2, "web")), (D2, "app", 1, 77)])
    assert again.outcome is Outcome.PUBLISHED


def test_a_first_load_of_days_that_nobody_filled(empty_orders: Orders) -> None:
    empty_orders.publish(f"{D1}..{D4}", added=6, after=T0)
    assert [row[0] for row in empty_orders.database.rows(POINTERS)] == [D1, D2, D3]


# --- readers ----------------------------------------------------------------------------------------------------------

NEW_YORK = "America/New_York"
CUTS = {
    "date by day": ("DATE", "day", "UTC", "CAST('{}' AS DATE)", "2024-03-01..2024-03-03"),
    "date by month": ("DATE", "month", "UTC", "CAST(date_trunc('month', CAST('{}' AS DATE)) AS DATE)", "2024-03"),
    "timestamp by week": ("TIMESTAMP", "week", "UTC", "date_trunc('week', TIMESTAMP '{}')", "2024-W09..2024-W10"),
    "instant by day": (
        "TIMESTAMP WITH TIME ZONE",
        "day",
        NEW_YORK,
        f"timezone('{NEW_YORK}', CAST('{{}}' AS TIMESTAMP))",
        "2024-03-01..2024-03-03",
    ),
    "instant by hour": ("TIMESTAMP WITH TIME ZONE", "hour", "UTC", "CAST('{} 23:00:00+00' AS TIMESTAMPTZ)", ""),
    "ISO text": ("VARCHAR", "day", "UTC", "'{}'", "2024-03-01..2024-03-03"),
    "yyyymmdd": ("INTEGER", "day", "UTC", "CAST(replace('{}', '-', '') AS INTEGER)", "2024-03-01..2024-03-03"),
}
ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Apia")


@pytest.mark.parametrize("cut", CUTS)
def test_a_reader_of_any_time_zone_reads_one_version_of_every_slice(engine: Database, cut: str) -> None:
    type_text, unit, zone, value, range = CUTS[cut]
    engine.execute("CREATE TABLE facts (period varchar, cents bigint)")
    engine.insert("facts", [(D1, 1), (D2, 2), (D3, 3)])
    engine.execute(f"CREATE TABLE periods (period {type_text}, cents bigint)")
    cases = " ".join(f"WHEN '{day}' THEN {value.format(day)}" for day in (D1, D2, D3))
    source = f"SELECT CASE period {cases} END AS period, sum(cents) AS cents FROM facts GROUP BY 1"
    declaration: dict[str, Any] = {
        "table": "periods",
        "source": "source.sql",
        "grain": ["period"],
        "slice": {"column": "period", "unit": unit, "timezone": zone},
        "measures": {"cents": {}},
        "guards": ALLOWED,
    }
    kept = "period BETWEEN :start AND :end"
    source = f"SELECT * FROM ({source}) AS all_periods WHERE {kept}"
    target = Target(engine, "periods", declaration, source, method="append_version")
    for cents in (1, 10, 100):
        engine.execute(f"UPDATE facts SET cents = {cents} * CAST(right(period, 1) AS bigint)")
        target.run(range or "2024-03-01T23:00..2024-03-03T23:00")
    slices = {"month": 1, "week": 1}.get(unit, 3)
    assert engine.rows("SELECT count(*) FROM periods") == [(3 * slices,)]

    for name in ZONES:
        with engine.session() as reader:
            reader.execute(f"SET TimeZone = '{name}'")
            rows = reader.execute("SELECT count(*), sum(cents) FROM periods_current").fetchall()
        assert rows == [(slices, 600)], name


def test_the_hour_that_a_clock_repeats_is_two_slices(engine: Database) -> None:
    """On 3 November 2024 New York has 01:00 twice; each has versions of its own."""
    engine.execute("CREATE TABLE facts (hour timestamptz, cents bigint)")
    engine.execute("INSERT INTO facts VALUES ('2024-11-03 05:00:00+00', 1), ('2024-11-03 06:00:00+00', 2)")
    engine.execute("CREATE TABLE hourly (hour timestamptz, cents bigint)")
    declaration: dict[str, Any] = {
        "table": "hourly",
        "source": "source.sql",
        "grain": ["hour"],
        "slice": {"column": "hour", "unit": "hour", "timezone": NEW_YORK},
        "measures": {"cents": {}},
        "guards": ALLOWED,
    }
    source = "SELECT hour, cents FROM facts WHERE hour >= :start_instant AND hour < :end_instant"
    target = Target(engine, "hourly", declaration, source, method="append_version")
    target.run("2024-11-03T00:00..2024-11-03T04:00")
    engine.execute("UPDATE facts SET cents = 5 WHERE cents = 1")
    run = target.run("2024-11-03T00:00..2024-11-03T04:00")
    assert len(run.slices_done) == 1
    current = "SELECT CAST(timezone('UTC', hour) AS VARCHAR), cents FROM hourly_current ORDER BY 1"
    assert engine.rows(current) == [("2024-11-03 05:00:00", 5), ("2024-11-03 06:00:00", 2)]


def twice_published(orders: Orders) -> list[Row]:
    """Publish two versions of a day; return what readers must read."""
    for cents in (1300, 1400):
        orders.correct(4, cents)
        orders.run(WHOLE)
    return changed((D2, "web", 1, 1400))


@only("duckdb", "a database is a file that can be attached, copied and renamed")
def test_a_file_that_is_attached_copied_or_renamed_reads_the_same_and_goes_on(orders: Orders) -> None:
    expected = twice_published(orders)
    orders.database.let_go()
    moved = orders.folder / "other name.duckdb"
    shutil.copyfile(file_of(orders.database), moved)
    with duckdb.connect() as reader:
        reader.execute(f"ATTACH '{moved}' AS somewhere (READ_ONLY)")
        assert len(reader.execute("SELECT * FROM somewhere.daily_orders_current").fetchall()) == 6

    text = orders.file.read_text().replace("warehouse.duckdb", "other name.duckdb")
    orders.file.write_text(text)
    handle = reslice.open(orders.file).target("daily_orders")
    plan = handle.plan(WHOLE)
    assert plan.diff is not None and plan.diff.counts.unchanged == 6
    assert handle.run(WHOLE).outcome is Outcome.UNCHANGED
    handle.run(D2, rewrite=True)
    with duckdb.connect(str(moved)) as reader:
        rows = reader.execute(f"SELECT {SHOP} FROM daily_orders_current").fetchall()
    assert ordered((str(day), *rest) for day, *rest in rows) == expected


def test_a_file_that_is_named_like_the_schema_of_the_ledger_needs_another_one(tmp_path: Path) -> None:
    """A view cannot say which of the two it means; DuckDB takes the catalog out of the names it is made with."""
    database = DuckDBDatabase(tmp_path, "reslice.duckdb")
    orders = Orders(database, method="append_version")
    orders.correct(4, 1300)
    error = orders.fails("run", Refused, WHOLE)
    assert kinds(error) == ["method_unsupported"]
    assert "give the file another name than reslice" in error.next and orders.rows() == list(T0)
    orders.database.execute("DROP SCHEMA reslice CASCADE")
    orders.declare(ledger={"schema": "other_ledger"})
    assert orders.handle.run(WHOLE).outcome is Outcome.PUBLISHED
    assert orders.rows() == changed((D2, "web", 1, 1300))
    database.close()


@only("postgresql", "a view keeps the names of the columns that it was made with")
def test_a_column_that_is_renamed_needs_the_view_made_again(orders: Orders) -> None:
    expected = twice_published(orders)
    orders.database.execute("ALTER TABLE daily_orders RENAME COLUMN amount_cents TO cents")
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) + 1 AS cents"
        " FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.declare(measures={"order_count": {"min": 1}, "cents": {}})
    error = orders.fails("run", Refused, WHOLE)
    assert kinds(error) == ["view_columns"] and orders.ledger(error.run.id)["state"] == "refused"
    assert "public.daily_orders_current" in found(error) and "amount_cents" in found(error)
    drop = error.next.partition("  ")[2]
    assert drop == 'DROP VIEW "public"."daily_orders_current"'
    orders.database.execute(drop)
    assert orders.handle.run(WHOLE).outcome is Outcome.PUBLISHED
    raised = [(*key, cents + 1) for *key, cents in expected]
    assert (
        orders.database.rows(f"SELECT {SHOP.replace('amount_', '')} FROM daily_orders_current ORDER BY 1, 2") == raised
    )


def test_a_file_that_is_named_like_the_schema_of_the_table(tmp_path: Path) -> None:
    database = DuckDBDatabase(tmp_path, "main.duckdb")
    orders = Orders(database, method="append_version")
    assert twice_published(orders) == orders.rows()
    assert orders.plan(WHOLE).diff.counts.unchanged == 6  # type: ignore[union-attr]
    database.close()


@only("duckdb", "a connection has several databases")
def test_a_target_of_another_attached_database_has_its_view_beside_it(orders: Orders) -> None:
    orders.database.execute(f"ATTACH '{orders.folder / 'other.duckdb'}' AS other")
    orders.database.execute("CREATE SCHEMA other.sales")
    orders.make_target(table="other.sales.daily_orders")
    orders.declare(table="other.sales.daily_orders")
    for cents in (1300, 1400):
        orders.correct(4, cents)
        assert orders.run(WHOLE).outcome is Outcome.PUBLISHED
    sums = "SELECT count(*), sum(amount_cents) FROM other.sales.daily_orders_current"
    assert orders.database.rows(sums) == [(6, 12149 + 200)]
    views = "SELECT database_name, schema_name FROM duckdb_views() WHERE view_name = 'daily_orders_current'"
    assert orders.database.rows(views) == [("other", "sales")]


def test_a_view_that_was_dropped_is_not_missed_and_made_again(orders: Orders) -> None:
    expected = twice_published(orders)
    orders.database.execute("DROP VIEW daily_orders_current")
    assert orders.plan(WHOLE).diff.counts.unchanged == 6  # type: ignore[union-attr]
    orders.unchanged(WHOLE)
    assert orders.current == "daily_orders_current" and orders.rows() == expected


def test_a_column_that_is_added_is_in_the_view_with_the_next_run(orders: Orders) -> None:
    expected = twice_published(orders)
    orders.database.execute("ALTER TABLE daily_orders ADD COLUMN gifts bigint")
    orders.source(
        "SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents, 0 AS gifts"
        " FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {}, "gifts": {}})
    assert orders.plan(WHOLE).diff.counts.changed == 6  # type: ignore[union-attr]
    orders.publish(WHOLE, changed=6, after=[(*row, 0) for row in expected])


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_a_thing_of_a_user_that_has_the_name_of_the_view_is_left_alone(orders: Orders, kind: str) -> None:
    orders.database.execute(f"CREATE {kind} Daily_Orders_Current AS SELECT 42 AS mine")
    orders.correct(4, 1300)
    error = orders.fails("plan", Refused, WHOLE)
    assert kinds(error) == ["view_foreign"] and f"is a {kind.lower()} that reslice did not make" in found(error)
    error = orders.fails("run", Refused, WHOLE)
    assert kinds(error) == ["view_foreign"] and error.exit_code == 3
    assert orders.database.rows("SELECT * FROM Daily_Orders_Current") == [(42,)] and all_rows(orders) == of(None, *T0)


# --- what keeps versions from being told apart ------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [{"unit": "month"}, {"unit": "day", "timezone": NEW_YORK}])
def test_another_unit_or_zone_is_refused_once_there_are_versions(orders: Orders, cut: dict[str, str]) -> None:
    expected = twice_published(orders)
    before = all_rows(orders)
    orders.declare(slice={"column": "order_date", **cut})
    if cut["unit"] == "month":
        orders.source(
            "SELECT date_trunc('month', order_date)::date AS order_date, channel, count(*) AS order_count,"
            " sum(amount_cents) AS amount_cents FROM orders_fact"
            " WHERE date_trunc('month', order_date) BETWEEN :start AND :end GROUP BY 1, 2"
        )
    error = orders.fails("run", Refused, "2024-03" if cut["unit"] == "month" else WHOLE)
    assert kinds(error) == ["contract_changed"] and "daily_orders, day by UTC" in found(error)
    assert orders.ledger(error.run.id)["state"] == "refused"
    assert all_rows(orders) == before and orders.rows() == expected


def test_another_zone_is_fine_while_there_are_no_versions(orders: Orders) -> None:
    orders.unchanged(WHOLE)
    orders.declare(slice={"column": "order_date", "unit": "day", "timezone": NEW_YORK})
    orders.correct(4, 1300)
    orders.publish(WHOLE, changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))


@pytest.mark.parametrize("key", ["PRIMARY KEY (order_date, channel)", "UNIQUE (channel, order_date)", "index"])
def test_a_key_that_allows_a_row_once_is_refused(orders: Orders, key: str) -> None:
    columns = "order_date date, channel varchar, order_count bigint, amount_cents bigint"
    orders.make_target(columns if key == "index" else f"{columns}, {key}")
    if key == "index":
        orders.database.execute("CREATE UNIQUE INDEX one ON daily_orders (order_date, channel)")
    orders.fill()
    orders.correct(4, 1300)
    error = orders.refuses(WHOLE, "target_key")
    assert "allows each (channel, order_date) once" in found(error) and VERSION in error.next


def test_a_key_with_the_version_in_it_is_fine(orders: Orders) -> None:
    orders.database.execute(f"DROP TABLE daily_orders; CREATE TABLE daily_orders ({KEYED_BY_VERSION})")
    orders.database.execute(f"INSERT INTO daily_orders SELECT *, 'load' FROM (VALUES {values(T0)})")
    assert twice_published(orders) == orders.rows()


KEYED_BY_VERSION = (
    "order_date date, channel varchar, order_count bigint, amount_cents bigint,"
    f" {VERSION} varchar, PRIMARY KEY (order_date, channel, {VERSION})"
)


def values(rows: tuple[Row, ...]) -> str:
    return ", ".join(f"(DATE '{day}', '{channel}', {count}, {cents})" for day, channel, count, cents in rows)


def test_a_contract_without_the_stamp_that_tells_versions_apart_is_a_mistake(orders: Orders) -> None:
    orders.declare(stamps=None)
    error = orders.fails("plan", Misused, WHOLE)
    line = next(n for n, text in enumerate(orders.file.read_text().splitlines(), start=1) if '"method"' in text)
    assert kinds(error) == ["contract"] and f"{orders.file.name}:{line}:" in found(error) and "run_id" in found(error)


def test_a_table_without_that_column_is_refused(orders: Orders) -> None:
    orders.database.execute(f"ALTER TABLE daily_orders DROP COLUMN {VERSION}")
    for command in ("plan", "run"):
        error = orders.fails(command, Refused, WHOLE)
        assert kinds(error) == ["target_column"] and VERSION in found(error)


# --- others who write to the table ------------------------------------------------------------------------------------


def test_rows_that_somebody_puts_beside_a_version_are_of_no_version(orders: Orders) -> None:
    """They stand in the table, and no reader of the versions, and no run, takes them for rows of the slice."""
    expected = twice_published(orders)
    orders.database.execute(f"{INSERT} ('{D2}', 'phone', 1, 60), ('{D3}', 'app', 1, 61)")
    assert orders.rows() == ordered([*expected, (D3, "app", 1, 61)])
    plan = orders.plan(WHOLE)
    assert plan.diff is not None and [dict(group.key) for group in plan.diff.groups] == [
        {"order_date": D3, "channel": "app"}
    ]
    orders.publish(WHOLE, removed=1, unchanged=6, after=expected)
    assert (D2, "phone", 1, 60, None) in all_rows(orders)


@pytest.mark.parametrize("command", ["run", "restore"])
@only("duckdb", "a writer that comes after the commit is told of a conflict; PostgreSQL lets it write")
def test_an_update_that_is_open_around_the_publish_is_a_conflict(orders: Orders, command: str) -> None:
    runs = []
    for cents in (1300, 1400):
        orders.correct(4, cents)
        runs.append(orders.run(WHOLE).id or "")
    orders.correct(4, 1500)
    orders.declare(timeouts={"lock": "50ms"})

    def act() -> Any:
        return orders.run(WHOLE) if command == "run" else orders.handle.restore(runs[1])

    update = f"UPDATE daily_orders SET amount_cents = 7 WHERE channel = 'store' AND {VERSION} = '{runs[1]}'"
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute(update)
        with pytest.raises(ResliceError) as caught:
            act()
        assert type(caught.value) is Retryable and kinds(caught.value) == ["conflict"]
        writer.execute("ROLLBACK")
    with orders.database.session() as writer:
        writer.execute("BEGIN")
        writer.execute("SELECT count(*) FROM daily_orders")
        act()
        with pytest.raises(Exception, match=r"(?i)conflict"):
            writer.execute(update)
    assert orders.rows() == changed((D2, "web", 1, 1500 if command == "run" else 1300))


LIVE = {
    "a row of no version": f"{INSERT} ('{D2}', 'phone', 1, 60)",
    "a row of the version": f"INSERT INTO daily_orders VALUES ('{D2}', 'phone', 1, 60, 'r-0001')",
    "a row goes": f"DELETE FROM daily_orders WHERE order_date = '{D2}' AND channel = 'store'",
}


@only("duckdb", "a live writer can commit around the commit of a publish; PostgreSQL locks the table")
@pytest.mark.parametrize(
    ("what", "version"),
    [("a row of no version", ""), ("a row of the version", "r-0001"), ("a row goes", ""), ("a row goes", "r-0001")],
)
def test_what_changes_the_version_before_around_the_commit_is_told(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, what: str, version: str
) -> None:
    """Whoever wrote it meant the slice, and nobody reads it there any more."""
    if version:
        orders.correct(4, 1250)
        assert orders.run(D2).id == version
    orders.correct(4, 1300)
    seen: list[str] = []

    def at_commit(text: str) -> None:
        seen.append(text)
        if text == "COMMIT" and any(each.startswith("INSERT") and '"daily_orders"' in each for each in seen):
            seen.clear()
            orders.elsewhere(LIVE[what])()

    with monkeypatch.context() as patch:
        orders.database.follow_statements(patch, at_commit)
        error = orders.fails("run", OutcomeUnknown, D2)
    assert kinds(error) == ["slipped_in"] and error.exit_code == 5
    assert orders.rows() == changed((D2, "web", 1, 1300))


# --- one method after another -----------------------------------------------------------------------------------------

CYCLES = [
    ("append_version", "replace_slice", "append_version", "merge", "append_version"),
    ("append_version", "merge", "replace_slice", "merge", "append_version"),
    ("replace_slice", "append_version", "append_version", "merge", "replace_slice"),
    ("merge", "append_version", "replace_slice", "append_version", "replace_slice"),
]


@pytest.mark.parametrize("per_slice", [False, True])
@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: "-".join(word[0] for word in cycle))
def test_one_method_after_another_never_doubles_or_hides_a_row(
    orders: Orders, cycle: tuple[str, ...], per_slice: bool
) -> None:
    """After each run its days are right in the view, and by a method in place in the table too; so after a restore."""
    orders.declare(guards={**ALLOWED, "restored": "allow"})
    orders.unchanged(WHOLE)  # makes the view
    expected = list(T0)
    for turn, method in enumerate(cycle):
        orders.declare(method=method)
        orders.correct(4, 1300 + turn)
        orders.correct(3, 700 + turn % 2)
        later = changed((D2, "web", 1, 1300 + turn), (D1, "store", 1, 700 + turn % 2))
        run = orders.run(WHOLE, per_slice=per_slice)
        in_place = () if method == "append_version" else run.slices_done
        reads(orders, later, *in_place)
        restored = orders.handle.restore(run.id or "")
        reads(orders, expected)
        orders.handle.restore(restored.id or "")
        reads(orders, later, *in_place)
        assert orders.handle.status(WHOLE).equals_source
        expected = later


def reads(orders: Orders, expected: list[Row], *days: str) -> None:
    """Hold the view to what readers must read, and the table as well where days were replaced in place."""
    assert orders.rows() == expected
    table = orders.database.rows(f"SELECT {SHOP} FROM daily_orders")
    assert ordered(row for row in table if row[0] in days) == [row for row in expected if row[0] in days]


@pytest.mark.parametrize("method", ["replace_slice", "merge"])
def test_the_days_that_were_not_run_again_keep_their_versions(engine: Database, method: str) -> None:
    orders = Orders(engine, method="append_version")
    orders.correct(3, 701)
    orders.correct(4, 1300)
    first = orders.run(WHOLE)
    orders.declare(method=method)
    orders.correct(4, 1400)
    orders.run(D2)
    expected = changed((D1, "store", 1, 701), (D2, "web", 1, 1400))
    reads(orders, expected, D2, D3)
    assert orders.database.rows(POINTERS) == [(D1, first.id), (D2, "")]

    healed = orders.run(WHOLE)

    assert healed.diff is not None and healed.diff.repeated == 2 and healed.slices_done == (D1,)
    reads(orders, expected, D1, D2, D3)


@only("duckdb", "the reason is DuckDB's own")
@pytest.mark.parametrize("command", ["plan", "run"])
def test_replace_partition_is_refused_with_the_reason(engine: Database, command: str) -> None:
    orders = Orders(engine)
    orders.declare(method="replace_partition")
    orders.correct(4, 1300)
    error = orders.fails(command, Refused, WHOLE)
    assert kinds(error) == ["method_unsupported"] and error.exit_code == 3
    assert found(error) == "duckdb: never: DuckDB tables have no partitions to replace; use replace_slice"
    assert error.next == "method: replace_slice" and orders.rows() == list(T0)
