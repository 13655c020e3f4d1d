"""What a restore is refused for: later work, other writers, other columns, another contract, rows that are gone."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

import reslice
from reslice.errors import Misused, Refused, ResliceError
from reslice.values import Outcome
from tests.conformance.databases import Database, file_of, only
from tests.conformance.orders import D1, D2, D3, T0, Orders, Target, changed, found, kinds
from tests.conformance.test_restore import D2_2050, D2_2150, published


@pytest.fixture
def corrected(orders: Orders) -> Orders:
    """Order 4 corrected, and published by r-0001: D2 is 2050."""
    orders.correct(4, 1300)
    assert published(orders, D2) == "r-0001"
    return orders


# Later work


def test_t25_2_a_later_run_is_named_and_its_rows_stay(corrected: Orders) -> None:
    corrected.correct(4, 1400)
    second = published(corrected, f"{D1}..{D3}")

    error = corrected.refuses_restore("r-0001", "later_run")

    assert found(error) == f"{second} wrote {D2} after r-0001 did; it can be restored first"
    assert error.next == f"reslice restore {second}" and corrected.rows() == D2_2150


def test_runs_are_unwound_one_after_the_other(corrected: Orders) -> None:
    corrected.correct(4, 1400)
    second = published(corrected, D2)
    corrected.correct(4, 1500)
    third = published(corrected, D2)

    assert third in found(corrected.refuses_restore("r-0001", "later_run"))
    assert third in found(corrected.refuses_restore(second, "later_run"))
    corrected.puts_back(third, after=D2_2150, slices=(D2,), changed=1, unchanged=1)
    assert second in found(corrected.refuses_restore("r-0001", "later_run"))
    corrected.puts_back(second, after=D2_2050, slices=(D2,), changed=1, unchanged=1)
    corrected.puts_back("r-0001", after=T0, slices=(D2,), changed=1, unchanged=1)


def test_what_was_undone_and_done_again_is_unwound_in_its_own_order(corrected: Orders) -> None:
    corrected.correct(4, 1400)
    second = published(corrected, D2)
    undo = corrected.restore(second).id  # 2050
    redo = corrected.restore(undo).id  # 2150
    assert found(corrected.refuses_restore("r-0001", "later_run")).startswith(f"{second} wrote {D2}")
    corrected.restore(redo)  # 2050
    corrected.puts_back("r-0001", after=T0, slices=(D2,), changed=1, unchanged=1)
    last = corrected.database.rows("SELECT max(id) FROM reslice.runs WHERE state = 'restored'")[0][0]

    error = corrected.refuses_restore(second, "later_run")

    assert found(error).startswith(f"{last} wrote {D2} after {second} did")
    assert corrected.rows() == list(T0)


def test_a_later_run_over_other_slices_is_not_in_the_way(corrected: Orders) -> None:
    corrected.correct(1, 1100)
    published(corrected, f"{D1}..{D3}")
    after = changed((D1, "web", 2, 3600))
    corrected.puts_back("r-0001", after=after, slices=(D2,), changed=1, unchanged=1)


def test_only_the_slices_that_a_later_run_wrote_are_in_the_way(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    first = published(orders, f"{D1}..{D3}")
    orders.correct(4, 1400)
    second = published(orders, f"{D1}..{D3}")

    assert found(orders.refuses_restore(first, "later_run")).startswith(f"{second} wrote {D2} after")
    after = changed((D2, "web", 1, 1400))
    orders.puts_back(first, D1, after=after, slices=(D1,), changed=1, unchanged=1)


@pytest.mark.parametrize("ends", ["unchanged", "stopped", "refused", "rewritten"])
def test_a_later_run_that_changed_nothing_is_not_in_the_way(corrected: Orders, ends: str) -> None:
    if ends == "unchanged":
        corrected.unchanged(f"{D1}..{D3}")
    elif ends == "rewritten":
        run = corrected.run(f"{D1}..{D3}", rewrite=True)
        assert run.outcome is Outcome.PUBLISHED and run.rewritten
    else:
        corrected.correct(4, 900000 if ends == "stopped" else -1)
        corrected.declare(guards={}, measures={"order_count": {}, "amount_cents": {"min": 0}})
        with pytest.raises(ResliceError, match=ends):
            corrected.run(D2)
    corrected.puts_back("r-0001", after=T0, slices=(D2,), changed=1, unchanged=1)


def test_a_run_that_wrote_the_old_rows_back_leaves_nothing_to_do(corrected: Orders) -> None:
    corrected.correct(4, 1200)
    published(corrected, D2)
    versions = corrected.versions()
    run = corrected.restore("r-0001")
    assert run.outcome is Outcome.UNCHANGED and corrected.versions() == versions
    assert corrected.ledger(run.id)["state"] == "unchanged"


LIVE = {
    "changed": (f"UPDATE daily_orders SET amount_cents = 1301 WHERE order_date = '{D2}' AND channel = 'web'", 2),
    "added": (f"INSERT INTO daily_orders VALUES ('{D2}', 'phone', 1, 60)", 3),
    "removed": (f"DELETE FROM daily_orders WHERE order_date = '{D2}' AND channel = 'store'", 1),
    "swapped": (f"UPDATE daily_orders SET amount_cents = 2050 - amount_cents WHERE order_date = '{D2}'", 2),
}


@pytest.mark.parametrize("live", LIVE)
def test_t25_7_what_a_live_writer_did_since_stays(corrected: Orders, live: str) -> None:
    statement, rows = LIVE[live]
    corrected.database.execute(statement)

    error = corrected.refuses_restore("r-0001", "changed_since_run")

    words = f"had 2 rows when r-0001 left it, and has {rows} row{'s' if rows > 1 else ''} now"
    if rows == 2:
        words = "has 2 rows as r-0001 left it, with other values"
    assert found(error) == f"{D2} changed since r-0001\n{D2} {words}"
    assert error.next == f"reslice status daily_orders {D2}"


def test_a_live_writer_elsewhere_is_not_in_the_way_and_is_kept(corrected: Orders) -> None:
    corrected.database.execute(f"UPDATE daily_orders SET amount_cents = 1 WHERE order_date = '{D1}'")
    before = [row for row in corrected.versions() if row[1] != D2]
    assert corrected.restore("r-0001").outcome is Outcome.RESTORED
    assert [row for row in corrected.versions() if row[1] != D2] == before


def test_a_later_run_and_a_live_writer_are_both_named(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    first = published(orders, f"{D1}..{D3}")
    orders.correct(4, 1400)
    second = published(orders, D2)
    orders.database.execute(f"DELETE FROM daily_orders WHERE order_date = '{D1}'")

    error = orders.refuses_restore(first, "later_run", "changed_since_run")

    assert f"{second} wrote {D2}" in found(error) and f"{D1} had 2 rows when" in found(error)
    row = orders.ledger(error.run.id if error.run else None)
    assert (row["kind"], row["state"]) == ("restore", "refused")


def test_a_writer_between_the_comparison_and_the_commit_is_seen(corrected: Orders) -> None:
    insert = corrected.elsewhere(f"INSERT INTO daily_orders VALUES ('{D2}', 'phone', 1, 60)")
    with pytest.raises(Refused) as caught:
        corrected.restore("r-0001", on_step=corrected.at_step("publishing", insert))
    assert kinds(caught.value) == ["base_moved"]
    assert caught.value.next == f"reslice restore r-0001 {D2}"
    assert corrected.database.rows("SELECT count(*) FROM daily_orders") == [(7,)]


# The table


def test_t25_6_a_column_that_the_table_gained_is_named(corrected: Orders) -> None:
    corrected.database.execute("ALTER TABLE daily_orders ADD COLUMN discount_cents bigint DEFAULT 7")
    error = corrected.refuses_restore("r-0001", "kept_columns")
    assert f"discount_cents {corrected.database.type_name('bigint')} is new" in found(error)
    assert re.search(r"the rows are in reslice\.kept_[0-9a-f]{12}, under r-0001", found(error))

    corrected.declare(stamps={"discount_cents": "run_id"})
    corrected.database.execute("ALTER TABLE daily_orders ALTER discount_cents TYPE varchar")
    named = corrected.database.type_name("varchar")
    assert f"discount_cents {named} is new" in found(corrected.refuses_restore("r-0001", "kept_columns"))

    corrected.declare(stamps=None)
    corrected.database.execute("ALTER TABLE daily_orders DROP COLUMN discount_cents")
    corrected.puts_back("r-0001", after=T0, slices=(D2,), changed=1, unchanged=1)


ALTERED = {
    "DROP COLUMN amount_cents": "amount_cents {bigint} is gone",
    "ALTER amount_cents TYPE decimal(38,0)": "amount_cents was {bigint} and is {decimal}",
    "ALTER channel TYPE varchar[] USING ARRAY[channel]": "channel was {varchar} and is {varchar}[]",
    "RENAME COLUMN amount_cents TO cents": "amount_cents {bigint} is gone\ncents {bigint} is new",
}


@pytest.mark.parametrize("change", ALTERED)
@pytest.mark.parametrize("is_abandoned", [False, True], ids=["ended", "abandoned"])
def test_columns_that_changed_are_named(corrected: Orders, change: str, is_abandoned: bool) -> None:
    if is_abandoned:
        corrected.database.execute("UPDATE reslice.runs SET kept_table = NULL, fingerprint_columns = NULL")
    corrected.database.execute(f"ALTER TABLE daily_orders {change}")
    names = {each: corrected.database.type_name(each) for each in ("bigint", "varchar")}
    words = ALTERED[change].format(**names, decimal=corrected.database.type_name("decimal(38,0)"))
    assert words in found(corrected.refuses_restore("r-0001", "kept_columns"))


def test_columns_in_another_order_are_told(corrected: Orders) -> None:
    rows = corrected.database.rows("SELECT channel, order_date, order_count, amount_cents FROM daily_orders")
    corrected.make_target("channel varchar, order_date date, order_count bigint, amount_cents bigint")
    corrected.database.insert("daily_orders", rows)
    error = corrected.refuses_restore("r-0001", "kept_columns")
    assert "they stood in another order: order_date, channel, order_count, amount_cents" in found(error)


def test_a_table_that_is_a_view_by_now(corrected: Orders) -> None:
    corrected.database.execute("ALTER TABLE daily_orders RENAME TO daily")
    corrected.database.execute("CREATE VIEW daily_orders AS SELECT * FROM daily")
    for call in (corrected.plan_restore, corrected.restore):
        with pytest.raises(Refused) as caught:
            call("r-0001")
        assert kinds(caught.value) == ["target_not_table"]
    assert corrected.database.rows("SELECT count(*), sum(amount_cents) FROM daily") == [(6, 12249)]


def test_a_table_that_is_gone(corrected: Orders) -> None:
    corrected.database.execute("DROP TABLE daily_orders")
    with pytest.raises(Refused) as caught:
        corrected.restore("r-0001")
    assert kinds(caught.value) == ["target_missing"]


def test_rows_of_another_table_are_not_put_into_this_one(corrected: Orders) -> None:
    corrected.database.execute("CREATE TABLE other_orders AS SELECT * FROM daily_orders")
    corrected.declare(table="other_orders")
    error = corrected.refuses_restore("r-0001", "contract_changed")
    wrote, other = (corrected.database.full_name(table) for table in ("daily_orders", "other_orders"))
    words = f"r-0001 wrote {wrote}, and other_orders is now {other}"
    assert found(error) == words


# The contract


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"measures": {"order_count": {}}, "stamps": {"amount_cents": "run_id"}},
            "r-0001 compared amount_cents, channel",
        ),
        ({"slice": {"column": "order_date", "unit": "month"}}, f"r-0001 replaced {D2}, which is no month"),
        ({"slice": {"column": "order_date", "unit": "week"}}, f"r-0001 replaced {D2}, which is no week"),
        ({"slice": {"column": "order_date", "unit": "quarter"}}, f"r-0001 replaced {D2}, which is no quarter"),
    ],
)
def test_a_contract_that_means_other_rows_is_refused(corrected: Orders, keys: dict[str, Any], words: str) -> None:
    if "stamps" in keys:
        corrected.database.execute("ALTER TABLE daily_orders ALTER amount_cents TYPE varchar")
    corrected.declare(**keys)
    assert words in found(corrected.refuses_restore("r-0001", "contract_changed"))


def test_months_by_now_days_are_refused(orders: Orders) -> None:
    orders.declare(slice={"column": "order_date", "unit": "month"})
    orders.source(
        "SELECT date_trunc('month', order_date)::date AS order_date, channel, count(*) AS order_count,"
        " sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date BETWEEN :start AND :end GROUP BY 1, 2"
    )
    run_id = published(orders, "2024-03")
    orders.declare(slice={"column": "order_date", "unit": "day"})
    words = f"{run_id} replaced 2024-03, which is no day of the contract as it is now"
    assert words in found(orders.refuses_restore(run_id, "contract_changed"))


def test_hours_of_another_zone_are_refused(engine: Database) -> None:
    engine.execute("CREATE TABLE facts AS SELECT timestamptz '2024-01-10 05:00:00+00' AS moment, 1 AS n")
    engine.execute("CREATE TABLE hourly (moment timestamptz, n integer)")

    def cut(zone: str) -> dict[str, Any]:
        return {"column": "moment", "unit": "hour", "timezone": zone}

    declaration = {
        "table": "hourly",
        "source": "source.sql",
        "grain": ["moment"],
        "slice": cut("America/New_York"),
        "measures": {"n": {}},
    }
    source = "SELECT moment, n FROM facts WHERE moment >= :start_instant AND moment < :end_instant"
    target = Target(engine, "hourly", declaration, source)
    run_id = published(target, "2024-01-10")
    target.declare(slice=cut("Asia/Kolkata"))
    assert f"{run_id} replaced 2024-01-10T00:00-05:00" in found(target.refuses_restore(run_id, "contract_changed"))
    target.declare(slice=cut("America/Toronto"))
    assert target.restore(run_id).rows_after == 0


def test_what_may_change_without_harm(corrected: Orders) -> None:
    corrected.source("SELECT CAST('no answer' || :start || :end AS bigint)")
    corrected.declare(
        grain=["order_date", {"column": "channel", "nulls": "allow"}],
        measures={"amount_cents": {"min": 1_000_000}, "order_count": {"min": 99}},
        guards={"closed_through": "2 days ago", "restored": "stop"},
    )
    corrected.puts_back("r-0001", after=T0, slices=(D2,), changed=1, unchanged=1)


# The kept rows


def test_rows_that_somebody_deleted_are_missed(corrected: Orders) -> None:
    kept = corrected.database.rows("SELECT kept_table FROM reslice.runs")[0][0]
    corrected.database.execute(f"DELETE FROM {kept} WHERE channel = 'web'")
    error = corrected.refuses_restore("r-0001", "kept_gone")
    assert found(error) == f"what r-0001 replaced in {D2} is not kept any more"
    assert error.next == f"reslice plan daily_orders {D2}"


def test_rows_that_somebody_altered_are_not_put_back(corrected: Orders) -> None:
    kept = corrected.database.rows("SELECT kept_table FROM reslice.runs")[0][0]
    corrected.database.execute(f"UPDATE {kept} SET amount_cents = 1201 WHERE channel = 'web'")
    corrected.refuses_restore("r-0001", "kept_gone")


def test_a_kept_table_that_was_dropped(corrected: Orders) -> None:
    kept = corrected.database.rows("SELECT kept_table FROM reslice.runs")[0][0]
    corrected.database.execute(f"DROP TABLE {kept}")
    corrected.refuses_restore("r-0001", "kept_gone")


def test_the_first_run_needs_no_kept_rows(empty_orders: Orders) -> None:
    run_id = published(empty_orders, f"{D1}..{D3}")
    kept = empty_orders.database.rows("SELECT kept_table FROM reslice.runs")[0][0]
    empty_orders.database.execute(f"DROP TABLE {kept}")
    empty_orders.puts_back(run_id, after=[], slices=(D1, D2, D3), removed=6)


def test_rows_that_were_pruned_are_told_as_that(corrected: Orders) -> None:
    corrected.correct(4, 1400)
    second = published(corrected, D2)
    corrected.database.execute("DELETE FROM reslice.prunings")
    corrected.database.execute(
        "UPDATE reslice.runs SET requested_at = requested_at - INTERVAL '200 days',"
        " finished_at = finished_at - INTERVAL '200 days' WHERE id = 'r-0001'"
    )
    corrected.database.execute(
        "UPDATE reslice.run_slices SET published_at = published_at - INTERVAL '200 days' WHERE run_id = 'r-0001'"
    )
    assert any("pruned" in note for note in corrected.run(D1).notes)
    corrected.restore(second)

    error = corrected.refuses_restore("r-0001", "kept_gone")

    assert "it was pruned on 20" in found(error) and "older than 90 days" in found(error)


# Which run


def test_without_a_ledger_no_run_is_known(orders: Orders) -> None:
    with pytest.raises(Misused) as caught:
        orders.restore("r-0001")
    assert caught.value.kind == "run_unknown" and found(caught.value) == "no run matches 'r-0001'"
    assert orders.database.table_names("reslice") == []


@pytest.mark.parametrize(
    "reference", ["", "r-9", "last~9", "last~x", "LAST", "'; DROP TABLE daily_orders; --", "\ud800"]
)
def test_a_reference_that_names_no_run(corrected: Orders, reference: str) -> None:
    with pytest.raises(Misused) as caught:
        corrected.restore(reference)
    assert caught.value.kind == "run_unknown" and caught.value.exit_code == 2
    assert corrected.rows() == D2_2050


def test_the_ways_to_name_a_run(corrected: Orders) -> None:
    project = corrected.database.project(corrected.file)
    corrected.run(D1)
    for reference in ("last~1", "r-0001"):
        assert project.plan_restore(reference).restores == "r-0001"
    with pytest.raises(Misused) as caught:
        project.plan_restore("r-000")
    assert found(caught.value) == "'r-000' matches 2 runs: r-0001 of daily_orders, r-0002 of daily_orders"
    with pytest.raises(Misused) as caught:
        project.plan_restore("last")
    assert caught.value.kind == "nothing_to_restore"
    assert project.restore("r-0001").outcome is Outcome.RESTORED and corrected.rows() == list(T0)


def test_a_run_of_another_target_is_restored_by_the_project_alone(corrected: Orders) -> None:
    contract = json.loads(corrected.file.read_text())
    contract["targets"]["second"] = contract["targets"]["daily_orders"] | {"table": "second"}
    corrected.database.execute("CREATE TABLE second AS SELECT * FROM daily_orders LIMIT 0")
    corrected.file.write_text(json.dumps(contract))
    project = corrected.database.project(corrected.file)
    other = project.target("second").run(D2)
    assert other.id is not None
    with pytest.raises(Misused) as caught:
        project.target("daily_orders").restore(other.id)
    assert caught.value.kind == "usage" and found(caught.value) == f"{other.id} is a run of second"
    assert project.restore(other.id).target == "second"
    assert corrected.database.rows("SELECT count(*) FROM second") == [(0,)]


def test_two_ledgers_have_ids_of_their_own(corrected: Orders) -> None:
    contract = json.loads(corrected.file.read_text())
    contract["targets"]["second"] = contract["targets"]["daily_orders"] | {
        "table": "second",
        "ledger": {"schema": "other"},
    }
    corrected.database.execute("CREATE TABLE second AS SELECT * FROM daily_orders LIMIT 0")
    corrected.file.write_text(json.dumps(contract))
    project = corrected.database.project(corrected.file)
    assert project.target("second").run(D2).id == "r-0001"

    with pytest.raises(Misused) as caught:
        project.restore("r-0001")
    assert found(caught.value) == "'r-0001' matches 2 runs: r-0001 of daily_orders, r-0001 of second"
    assert project.restore("last").target == "second"
    assert project.target("daily_orders").restore("r-0001").outcome is Outcome.RESTORED
    assert corrected.rows() == list(T0) and corrected.database.rows("SELECT count(*) FROM second") == [(0,)]


@only("duckdb", "a database is a file")
def test_a_file_that_may_not_be_written(corrected: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    corrected.database.let_go()
    before, may, path = file_of(corrected.database).read_bytes(), os.access, file_of(corrected.database)
    monkeypatch.setattr(os, "access", lambda place, mode: may(place, mode) and (place != path or mode != os.W_OK))
    with pytest.raises(Refused) as caught:
        corrected.restore("r-0001")
    assert kinds(caught.value) == ["target_rights"] and file_of(corrected.database).read_bytes() == before


@only("duckdb", "a database is a file")
def test_asking_leaves_every_byte_of_the_file(corrected: Orders) -> None:
    corrected.database.let_go()
    before = file_of(corrected.database).read_bytes()
    planned = reslice.open(corrected.file).plan_restore("r-0001")
    assert planned.outcome is Outcome.PLANNED and planned.sql[-1] == "COMMIT"
    assert file_of(corrected.database).read_bytes() == before


def test_two_restores_at_once_put_the_rows_back_once(corrected: Orders) -> None:
    ends: list[str] = []

    def second() -> None:
        ends.append(str(corrected.restore("r-0001").outcome))

    with pytest.raises(Refused) as caught:
        corrected.restore("r-0001", on_step=corrected.at_step("publishing", second))
    assert ends == ["restored"] and kinds(caught.value) == ["base_moved"]
    assert corrected.rows() == list(T0)
    assert corrected.restore("r-0001").outcome is Outcome.UNCHANGED


def test_the_last_run_is_not_undone_twice_by_the_same_command(corrected: Orders) -> None:
    """`restore last` again would mean the restore itself, and put the rows back that it had taken away."""
    corrected.handle.restore("last")
    error = corrected.fails("restore", Misused, "last")
    assert found(error) == "last is r-0002, a restore itself; the same command twice would undo it"
    assert error.next == "reslice restore r-0002"
    assert corrected.rows() == list(T0)
