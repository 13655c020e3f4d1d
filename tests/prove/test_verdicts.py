"""What two runs of a job show: does it repeat, is it equal to the source, and which groups are wrong; counted by hand.

The table holds BEFORE, the source gives, for 2026-01-01 and 2026-01-02: store 1/4500; store 1/5600, web 2/19000.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from reslice.prove.values import Between, Group, Moved, Subject, Verdict
from reslice.report_prove import next_step, proof_text
from tests.prove.shops import (
    APPEND,
    BEFORE,
    DELETE,
    REPLACE,
    SELECT,
    Shop,
    execute,
    kinds,
    rows,
)

UPSERT = (
    f"INSERT INTO daily_orders {SELECT} ON CONFLICT (order_date, channel) DO UPDATE SET"
    " order_count = excluded.order_count, amount_cents = excluded.amount_cents;"
)
INSERT_MISSING = (
    f"INSERT INTO daily_orders SELECT n.* FROM ({SELECT}) AS n WHERE NOT EXISTS (SELECT 1 FROM daily_orders AS d"
    " WHERE d.order_date = n.order_date AND d.channel = n.channel);"
)
ACCUMULATE = (
    f"INSERT INTO daily_orders {SELECT} ON CONFLICT (order_date, channel) DO UPDATE SET order_count ="
    " daily_orders.order_count + excluded.order_count, amount_cents = daily_orders.amount_cents + excluded.amount_cents"
)
WRITTEN = REPLACE.replace(":start", "'2026-01-01'").replace(":end", "'2026-01-02'")
KEY = "CREATE UNIQUE INDEX grain ON daily_orders (order_date, channel)"


def test_an_append_doubles_what_it_wrote(shop: Shop) -> None:
    execute(shop, "DELETE FROM daily_orders")
    proof = shop.prove_sql(APPEND)

    assert (proof.verdict, proof.repeatable, proof.equals_source, proof.exit_code) == (
        Verdict.NOT_REPEATABLE, False, False, 1,
    )  # fmt: skip
    assert kinds(proof.between_runs) == {"doubled": 3}
    web = {"order_date": "2026-01-02", "channel": "web"}
    assert proof.between_runs.groups[0] == Moved(
        Group.DOUBLED, Between.RUNS, web, {"order_count": 2, "amount_cents": 19000},
        {"order_count": 4, "amount_cents": 38000}, 1, 2,
    )  # fmt: skip
    states = [proof.before, *(each.state for each in proof.runs)]
    assert [(each.rows, each.totals) for each in states] == [
        (0, {"order_count": None, "amount_cents": None}),
        (3, {"order_count": 4, "amount_cents": 29100}),
        (6, {"order_count": 8, "amount_cents": 58200}),
    ]
    assert proof.source is not None and proof.source.comparison is not None
    assert kinds(proof.source.comparison) == {"doubled": 3}
    assert kinds(proof.keys) == {"repeated key": 3}
    assert rows(shop) == []


def test_delete_and_insert_in_one_transaction_is_proven(shop: Shop) -> None:
    proof = shop.prove_sql(REPLACE)
    assert (proof.verdict, proof.repeatable, proof.equals_source, proof.exit_code) == (Verdict.PROVEN, True, True, 0)
    assert [each.state.rows for each in proof.runs] == [4, 4]
    assert proof.runs[1].state.totals == {"order_count": 4, "amount_cents": 29100}
    assert (proof.between_runs.count, proof.outside.count, proof.keys.count) == (0, 0, 0)
    assert rows(shop) == sorted(BEFORE, key=repr)


def test_an_upsert_repeats_and_leaves_a_stale_group(shop: Shop) -> None:
    execute(shop, KEY)
    proof = shop.prove_sql(UPSERT)
    assert (proof.verdict, proof.repeatable, proof.equals_source, proof.exit_code) == (
        Verdict.STILL_WRONG, True, False, 1,
    )  # fmt: skip
    assert proof.source is not None and proof.source.comparison is not None
    assert kinds(proof.source.comparison) == {"stale": 1}
    (stale,) = proof.source.comparison.groups
    assert stale.key == {"order_date": "2026-01-01", "channel": "web"}
    assert (stale.before, stale.after) == (None, {"order_count": 1, "amount_cents": 12000})


def test_insert_missing_repeats_and_keeps_what_is_old(shop: Shop) -> None:
    execute(shop, "DELETE FROM daily_orders WHERE order_date = '2026-01-01' AND channel = 'store'")
    proof = shop.prove_sql(INSERT_MISSING)
    assert (proof.verdict, proof.repeatable) == (Verdict.STILL_WRONG, True)
    assert proof.source is not None and proof.source.comparison is not None
    assert kinds(proof.source.comparison) == {"stale": 3}
    old = {tuple(each.key.values()): (each.before, each.after) for each in proof.source.comparison.groups}
    assert old[("2026-01-02", "store")] == (
        {"order_count": 1, "amount_cents": 5600},
        {"order_count": 1, "amount_cents": 5200},
    )


def test_a_group_that_the_job_forgets_is_missing(shop: Shop) -> None:
    proof = shop.prove_sql(f"{DELETE}; INSERT INTO daily_orders SELECT * FROM ({SELECT}) AS n WHERE channel = 'web';")
    assert (proof.verdict, proof.repeatable) == (Verdict.STILL_WRONG, True)
    assert proof.source is not None and proof.source.comparison is not None
    assert kinds(proof.source.comparison) == {"missing": 2}


def test_values_that_neither_the_source_nor_the_table_had_differ(shop: Shop) -> None:
    proof = shop.prove_sql(
        f"{DELETE}; INSERT INTO daily_orders SELECT * REPLACE (amount_cents + 1 AS amount_cents) FROM ({SELECT}) AS n;"
    )
    assert proof.source is not None and proof.source.comparison is not None
    assert kinds(proof.source.comparison) == {"differs": 3}


def test_an_accumulating_upsert_doubles_without_a_second_row(shop: Shop) -> None:
    execute(shop, "DELETE FROM daily_orders", KEY)
    proof = shop.prove_sql(ACCUMULATE)
    assert proof.verdict is Verdict.NOT_REPEATABLE
    assert kinds(proof.between_runs) == {"doubled": 3}
    assert proof.between_runs.groups[0].after == {"order_count": 4, "amount_cents": 38000}
    assert [(each.rows_before, each.rows_after) for each in proof.between_runs.groups] == [(1, 1)] * 3
    assert proof.keys.count == 0


def test_a_third_time_is_still_doubled(shop: Shop) -> None:
    """What was added once more to a sum that holds it already is doubled as well: 19000, 38000, 57000."""
    execute(shop, KEY, "DELETE FROM daily_orders", WRITTEN.split(";")[2])
    proof = shop.prove_sql(ACCUMULATE)
    assert kinds(proof.between_runs) == {"doubled": 3}
    assert (proof.between_runs.groups[0].before, proof.between_runs.groups[0].after) == (
        {"order_count": 4, "amount_cents": 38000},
        {"order_count": 6, "amount_cents": 57000},
    )


def test_a_null_key_doubles_behind_a_unique_index(shop: Shop) -> None:
    execute(shop, KEY, "INSERT INTO orders VALUES (104, '2026-01-02', NULL, 3000)")
    proof = shop.prove_sql(UPSERT, shop.bare())
    assert (proof.verdict, proof.equals_source) == (Verdict.NOT_REPEATABLE, None)
    (moved,) = proof.between_runs.groups
    assert (moved.kind, moved.key) == (Group.DOUBLED, {"order_date": "2026-01-02", "channel": None})
    assert (moved.before, moved.after) == (
        {"order_count": 1, "amount_cents": 3000},
        {"order_count": 2, "amount_cents": 6000},
    )
    assert kinds(proof.keys) == {"repeated key": 1, "NULL key": 1}


def test_a_source_that_breaks_the_contract_is_not_compared(shop: Shop) -> None:
    execute(shop, "INSERT INTO orders VALUES (104, '2026-01-02', NULL, 3000)")
    proof = shop.prove_sql(REPLACE)
    assert (proof.verdict, proof.repeatable, proof.equals_source) == (Verdict.STILL_WRONG, True, None)
    assert proof.source is not None and "key_null" in proof.source.error
    assert kinds(proof.keys) == {"NULL key": 1}


def test_a_source_that_cannot_be_read_is_looked_at_by_a_plan(shop: Shop) -> None:
    execute(shop, "DROP TABLE orders")
    proof = shop.prove_sql(f"{DELETE}; INSERT INTO daily_orders VALUES ('2026-01-02', 'web', 1, 1);")
    assert (proof.verdict, proof.repeatable, proof.equals_source) == (Verdict.NOT_PROVEN, True, None)
    assert next_step(proof) == "reslice plan daily_orders 2026-01-01..2026-01-02"


def test_what_is_written_outside_the_range_is_found(shop: Shop) -> None:
    proof = shop.prove_sql(f"{REPLACE} UPDATE daily_orders SET amount_cents = 999 WHERE order_date = '2026-01-03';")
    assert (proof.verdict, proof.repeatable, proof.equals_source) == (Verdict.STILL_WRONG, True, True)
    (moved,) = proof.outside.groups
    assert moved.key == {"order_date": "2026-01-03", "channel": "app"}
    assert (moved.before, moved.after) == (
        {"order_count": 1, "amount_cents": 3100},
        {"order_count": 1, "amount_cents": 999},
    )


def test_a_range_without_a_contract_tells_outside_from_inside(shop: Shop) -> None:
    job = "DELETE FROM daily_orders WHERE order_date >= '2026-01-01';" + f"INSERT INTO daily_orders {SELECT};"
    proof = shop.prove_sql(job, shop.bare(range="2026-01-01..2026-01-02"))
    assert (proof.verdict, proof.repeatable) == (Verdict.STILL_WRONG, True)
    assert [each.key["order_date"] for each in proof.outside.groups] == ["2026-01-03"]
    assert proof.outside.groups[0].after is None


def test_a_job_that_writes_nothing_proves_nothing(shop: Shop) -> None:
    proof = shop.prove_sql("SELECT 1;", shop.bare())
    assert (proof.verdict, proof.repeatable, proof.did_nothing, proof.exit_code) == (
        Verdict.NOT_PROVEN, None, True, 1,
    )  # fmt: skip


def test_a_script_that_does_not_commit_is_told_so(shop: Shop) -> None:
    proof = shop.prove_sql(f"BEGIN; {APPEND}", shop.bare())
    assert (proof.verdict, proof.did_nothing) == (Verdict.NOT_PROVEN, True)
    assert "COMMIT what it begins?" in proof_text(proof)
    assert "RESLICE_URL" not in proof_text(proof)


def test_a_table_that_is_right_already_is_fine_with_a_job_that_writes_nothing(shop: Shop) -> None:
    execute(shop, *WRITTEN.split(";")[:-1])
    proof = shop.prove_sql("SELECT 1;")
    assert (proof.verdict, proof.repeatable, proof.equals_source) == (Verdict.PROVEN, True, True)
    assert proof.did_nothing


def test_a_job_that_writes_the_same_rows_again_is_proven_without_a_source(shop: Shop) -> None:
    execute(shop, *WRITTEN.split(";")[:-1])
    proof = shop.prove_sql(REPLACE, shop.bare())
    assert (proof.verdict, proof.repeatable, proof.did_nothing) == (Verdict.PROVEN, True, False)


# Columns.


STAMPED = f"{DELETE}; INSERT INTO daily_orders SELECT n.*, now() FROM ({SELECT}) AS n;"


def test_a_stamp_is_told_apart_and_can_be_ignored(shop: Shop) -> None:
    execute(shop, "ALTER TABLE daily_orders ADD COLUMN loaded_at TIMESTAMPTZ")
    proof = shop.prove_sql(STAMPED, shop.bare())
    assert (proof.verdict, proof.stamps_moved) == (Verdict.NOT_REPEATABLE, ("loaded_at",))
    assert kinds(proof.between_runs) == {"changed": 3}

    ignored = shop.prove_sql(STAMPED, shop.bare(ignored=("loaded_at",)))
    assert (ignored.verdict, ignored.ignored, ignored.columns) == (
        Verdict.PROVEN, ("loaded_at",), ("order_count", "amount_cents"),
    )  # fmt: skip


def test_a_stamp_of_the_contract_is_ignored(shop: Shop) -> None:
    execute(shop, "ALTER TABLE daily_orders ADD COLUMN loaded_at TIMESTAMPTZ")
    contract = shop.folder / "reslice.yml"
    contract.write_text(contract.read_text() + "    stamps: {loaded_at: run_time}\n")
    assert shop.prove_sql(STAMPED).verdict is Verdict.PROVEN


def test_decimals_floats_and_other_types_are_compared_exactly(shop: Shop) -> None:
    execute(
        shop,
        "CREATE TABLE rates (day DATE, rate DECIMAL(18, 6), share DOUBLE, tags VARCHAR[], note VARCHAR)",
    )
    job = (
        "INSERT INTO rates VALUES ('2026-01-01', 0.000001, 0.1, ['a', 'b'], 'x|y'),"
        " ('2026-01-02', 12.5, 1e40, [], NULL);"
    )
    proof = shop.prove_sql(job, Subject("rates", "rates", ("day",)))
    assert proof.verdict is Verdict.NOT_REPEATABLE
    assert [each.state.totals["rate"] for each in proof.runs] == [Decimal("12.500001"), Decimal("25.000002")]
    again = shop.prove_sql(f"DELETE FROM rates; {job}", Subject("rates", "rates", ("day",)))
    assert (again.verdict, again.columns) == (Verdict.PROVEN, ("rate", "share", "tags", "note"))


def test_a_number_that_the_database_gives_is_not_compared(shop: Shop) -> None:
    execute(shop, "CREATE SEQUENCE ids", "CREATE TABLE t (id BIGINT DEFAULT nextval('ids'), day DATE, n INTEGER)")
    subject = Subject("t", "t", ("day",))
    proof = shop.prove_sql("DELETE FROM t; INSERT INTO t (day, n) VALUES ('2026-01-01', 1);", subject)
    assert (proof.verdict, proof.columns) == (Verdict.PROVEN, ("n",))
    assert proof.notes == ("not compared, because the database fills it: id",)


@pytest.mark.parametrize("times", [2, 4])
def test_every_later_run_is_compared_with_the_first(shop: Shop, times: int) -> None:
    """A job that goes wrong only from the third time on is caught by a third time."""
    execute(shop, "CREATE TABLE log (n INTEGER)")
    job = (
        f"{REPLACE} INSERT INTO log VALUES (1); INSERT INTO daily_orders SELECT '2026-01-02', 'late', 1, 1"
        " WHERE (SELECT count(*) FROM log) = 3;"
    )
    proof = shop.prove_sql(job, times=times)
    assert (proof.verdict is Verdict.PROVEN) == (times == 2)
    assert ("  run 1 → run 3\n" in proof_text(proof)) == (times == 4)
