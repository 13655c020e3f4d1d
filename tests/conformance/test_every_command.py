"""What holds for a run holds for every command and every method: ranges, names, columns, numbers, dates and paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reslice import cli
from reslice.errors import PartlyPublished, Refused
from reslice.values import Outcome
from tests.conformance.databases import Database
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, SOURCE, T0, Orders, Target, changed, found, kinds
from tests.conformance.test_identifiers import NAMES, Named, corrected_twice, in_a_folder_of_its_own

METHODS = EVERY_METHOD
WHOLE = f"{D1}..{D3}"
LOOKS = ("plan", "verify", "status", "run")


def puts_back_alone(target: Target, run_id: str | None, after: list[Any]) -> None:
    """Restore a run, hold the rows and the status of the table to it, and restore again, which changes nothing."""
    run = target.restore(run_id)
    assert run.outcome is Outcome.RESTORED and target.rows() == after
    assert target.restore(run_id).outcome is Outcome.UNCHANGED and target.rows() == after
    status = target.status(run.scope.text)
    assert status.diff is not None and [str(each.state) for each in status.diff.slices] == ["differs"]


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["replace_slice"])
@pytest.mark.parametrize(
    ("range", "kind"),
    [
        (f"{D3}..{D1}", "range_reversed"),
        ("2024-03-02 12:00", "range_off_unit"),
        ("2024-03-01..2024-03-02T23:59:59", "range_off_unit"),
        (f"{D1}..", "range_open"),
    ],
)
def test_t14_2_and_t14_5_hold_for_every_command(orders: Orders, range: str, kind: str) -> None:
    orders.correct(4, 1300)
    run_id = orders.run(WHOLE).id
    versions, runs = orders.versions(), orders.database.rows("SELECT count(*) FROM reslice.runs")
    for command in LOOKS:
        assert kinds(orders.fails(command, Refused, range)) == [kind]
    for restore in (orders.plan_restore, orders.restore):
        with pytest.raises(Refused) as caught:
            restore(run_id, range)
        assert kinds(caught.value) == [kind] and caught.value.exit_code == 3
    assert orders.versions() == versions
    assert orders.database.rows("SELECT count(*) FROM reslice.runs") == runs


def test_t14_1_the_last_microsecond_is_told_and_put_back_with_its_day(orders: Orders) -> None:
    orders.database.execute(
        "CREATE TABLE orders_timed AS SELECT order_id, CAST(order_date AS TIMESTAMP) AS order_ts, channel, amount_cents"
        " FROM orders_fact"
    )
    orders.source(
        "SELECT CAST(order_ts AS DATE) AS order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_timed"
        " WHERE order_ts >= :start_instant AND order_ts < :end_instant GROUP BY 1, 2"
    )
    orders.database.insert(
        "orders_timed", [(13, "2024-03-03 23:59:59.999999", "web", 10), (14, "2024-03-04 00:00:00", "web", 20)]
    )
    status = orders.status(f"{D1}..2024-03-04")
    assert status.diff is not None
    assert {each.label: str(each.state) for each in status.diff.slices} == {
        D1: "equal",
        D2: "equal",
        D3: "differs",
        "2024-03-04": "missing",
    }
    run = orders.run(WHOLE)
    assert orders.rows() == changed((D3, "web", 2, 5010))
    puts_back_alone(orders, run.id, list(T0))


# --- columns and numbers ----------------------------------------------------------------------------------------------


def test_t18_1_columns_are_mapped_by_name_whatever_their_order(orders: Orders) -> None:
    orders.make_target("amount_cents bigint, order_count bigint, channel varchar, order_date date")
    orders.fill()
    orders.source(
        "SELECT channel, order_date, sum(amount_cents) AS amount_cents, count(*) AS order_count FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    orders.correct(4, 1300)
    before = sorted(orders.rows())
    run = orders.run(WHOLE)
    assert [row for row in orders.rows() if row not in before] == [(1300, 1, "web", D2)]
    assert len(orders.rows()) == 6
    orders.restore(run.id)
    assert sorted(orders.rows()) == before


@pytest.mark.parametrize("drift", ["gains", "loses"])
def test_t18_2_and_t18_4_are_refused_by_every_command(orders: Orders, drift: str) -> None:
    orders.source(
        SOURCE.replace("AS amount_cents", "AS amount_cents, 0 AS discount_cents")
        if drift == "gains"
        else SOURCE.replace("count(*) AS order_count, ", "")
    )
    column = "discount_cents" if drift == "gains" else "order_count"
    for command in LOOKS:
        error = orders.fails(command, Refused, WHOLE)
        assert kinds(error) == ["source_column"] and column in found(error)
    assert orders.rows() == list(T0)


def test_t19_1_a_sum_that_a_narrow_column_cannot_hold_is_refused_by_every_command(orders: Orders) -> None:
    orders.make_target("order_date date, channel varchar, order_count integer, amount_cents integer")
    orders.fill()
    orders.cancel("order_id IN (1, 2)")
    orders.order(1, D1, "web", 2_000_000_000)
    orders.order(2, D1, "web", 2_000_000_000)
    for command in LOOKS:
        error = orders.fails(command, Refused, WHOLE)
        assert kinds(error) == ["lossy_value"] and "4000000000" in found(error)
    assert orders.rows() == list(T0)


def test_t19_6_null_against_zero_is_a_change_both_ways_and_comes_back(orders: Orders) -> None:
    orders.order(9, D2, "app", None)
    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {"nulls": "allow"}})
    orders.run(D2)
    unknown = changed((D2, "app", 1, None))
    orders.source(SOURCE.replace("sum(amount_cents)", "coalesce(sum(amount_cents), 0)"))

    run = orders.publish(D2, changed=1, unchanged=2, after=changed((D2, "app", 1, 0)))

    puts_back_alone(orders, run.id, unknown)
    orders.source(SOURCE)
    orders.unchanged(D2)


def test_t19_3_a_float_of_another_order_is_no_change_by_any_method(orders: Orders) -> None:
    orders.make_target("order_date date, channel varchar, order_count bigint, amount_cents double precision")
    orders.declare(measures={"order_count": {}, "amount_cents": {"scale": 2}})
    orders.database.execute("CREATE TABLE floats (place integer, value double precision)")
    orders.database.insert("floats", [(1, 0.1), (2, 0.2), (3, 0.3)])
    orders.source(
        f"SELECT DATE '{D1}' AS order_date, 'web' AS channel, 1 AS order_count,"
        " sum(value ORDER BY place) AS amount_cents FROM floats WHERE :start <= :end"
    )
    orders.run(D1)
    first = orders.rows()
    orders.database.execute("UPDATE floats SET place = -place")
    orders.unchanged(D1)
    assert orders.status(D1).equals_source and orders.rows() == first


# --- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", ["0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"])
def test_t22_1_and_t22_4_an_odd_day_is_a_day_like_another(orders: Orders, day: str) -> None:
    orders.order(9, day, "web", 4)
    run = orders.publish(day, added=1, after=[*T0, (day, "web", 1, 4)])
    orders.correct(9, 5)
    second = orders.publish(day, changed=1, after=[*T0, (day, "web", 1, 5)])
    assert orders.status(day).equals_source
    orders.puts_back(second.id, after=[*T0, (day, "web", 1, 4)], slices=(day,), changed=1)
    orders.puts_back(run.id, after=T0, slices=(day,), removed=1)


def test_t21_2_an_order_that_moved_is_told_and_both_of_its_days_come_back(orders: Orders) -> None:
    orders.database.execute(f"UPDATE orders_fact SET order_date = '{D3}' WHERE order_id = 4")
    status = orders.status()
    assert status.diff is not None and [each.label for each in status.diff.differing] == [D2, D3]
    moved = [*(row for row in T0 if row[:2] not in ((D2, "web"), (D3, "web"))), (D3, "web", 2, 6200)]
    run = orders.publish(WHOLE, changed=1, removed=1, unchanged=4, after=moved)
    orders.puts_back(run.id, after=T0, slices=(D2, D3), added=1, changed=1, unchanged=2)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1, 5, 9, 12, 17], ids=lambda place: NAMES[place][:20])
def test_t23_2_names_of_any_kind_by_every_method_and_back(orders: Orders, method: str, first: int) -> None:
    names = (NAMES[(first + place) % len(NAMES)] for place in range(4))
    day, channel, count, cents = (name[: orders.database.longest_name] for name in names)
    target = Named(orders, '"odd; ""table"', (day, channel, count, cents), method=method)

    run_id = corrected_twice(orders, target)

    puts_back_alone(target, run_id, list(T0))
    assert orders.database.rows("SELECT count(*) FROM orders_fact") == [(8,)]


def test_t23_1_reserved_and_mixed_case_names_by_every_method_and_back(orders: Orders, method: str) -> None:
    target = Named(orders, '"Daily Orders"', ("Date", "Channel", "select", "Amount in cents"), method=method)
    puts_back_alone(target, corrected_twice(orders, target), list(T0))


@pytest.mark.parametrize("method", ["replace_slice", "append_version"])
def test_t23_5_every_command_in_a_folder_with_spaces_and_other_letters(
    engine: Database,
    tmp_path: Path,
    method: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "mes données" / "büro 日本"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    database = in_a_folder_of_its_own(engine, folder)
    database.execute('CREATE SCHEMA "mes tables é"')
    orders = Orders(database, folder=folder)
    database.execute('CREATE TABLE "mes tables é".ventes AS SELECT * FROM daily_orders')
    database.let_go()

    def says(*words: str, code: int = 0, config: str = "reslice café.yml") -> Any:
        assert cli.main(["-C", str(folder), "--config", config, *words, "--json"]) == code, capsys.readouterr()
        return json.loads(capsys.readouterr().out)

    table = ["--table", '"mes tables é".ventes', "--connection", database.url]
    says("init", "ventes", *table, config="brouillon été.yml")
    assert says("plan", "ventes", WHOLE, config="brouillon été.yml")["diff"]["unchanged"] == 6

    orders.file = folder / "reslice café.yml"
    orders.declare(table='"mes tables é".ventes', method=method)
    if method == "append_version":
        database.execute('ALTER TABLE "mes tables é".ventes ADD COLUMN version_id varchar')
        orders.declare(stamps={"version_id": "run_id"})
    database.execute("UPDATE orders_fact SET amount_cents = 1300 WHERE order_id = 4")
    database.let_go()
    assert says("doctor")["schema"] == "reslice/doctor/1"
    assert [each["state"] for each in says("status", "daily_orders", WHOLE, code=1)["slices"]][1] == "differs"
    says("plan", "daily_orders", WHOLE, "--out", "revue été.json")
    run = says("run", "revue été.json", "--report", "page été.html")
    assert run["outcome"] == "published" and "2024-03-02" in (folder / "page été.html").read_text()
    assert says("verify", "daily_orders", WHOLE)["equals_source"]
    assert says("restore", run["run"], "--yes")["outcome"] == "restored"
    assert [each["state"] for each in says("history")["runs"]] == ["restored", "published"]
    says("show", "last", "--report", "retour été.html")
    assert "restored" in (folder / "retour été.html").read_text()
    if method == "append_version":
        assert says("versions", "daily_orders")["schema"] == "reslice/versions/1"
    current = "ventes_current" if method == "append_version" else "ventes"
    columns = "order_date, channel, order_count, amount_cents"
    assert database.rows(f'SELECT {columns} FROM "mes tables é".{current} ORDER BY 1, 2') == list(T0)
    database.let_go()


# --- parts ------------------------------------------------------------------------------------------------------------


def test_t08_1_what_was_published_of_a_run_that_ended_part_way_comes_back_by_every_method(orders: Orders) -> None:
    orders.make_target(
        "order_date date, channel varchar, order_count bigint, amount_cents bigint,"
        f" CHECK (order_date <> DATE '{D2}' OR amount_cents <> 1300)"
    )
    orders.fill()
    for order_id, cents in ((3, 701), (4, 1300), (8, 1000)):
        orders.correct(order_id, cents)

    error = orders.fails("run", PartlyPublished, WHOLE, per_slice=True)

    assert error.exit_code == 6 and orders.slices(error.run.id) == [(D1, "published"), (D2, "open"), (D3, "open")]
    assert orders.rows() == changed((D1, "store", 1, 701))
    orders.correct(4, 1301)
    run = orders.run(WHOLE, per_slice=True)
    assert run.slices_done == (D2, D3)
    after = changed((D1, "store", 1, 701), (D2, "web", 1, 1301), (D3, "phone", 1, 1000))
    assert orders.rows() == after
    orders.puts_back(run.id, after=changed((D1, "store", 1, 701)), slices=(D2, D3), changed=2, unchanged=2)
    orders.puts_back(error.run.id, after=T0, slices=(D1,), changed=1, unchanged=1)
