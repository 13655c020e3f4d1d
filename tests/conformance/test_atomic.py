"""A publish is seen whole or not at all: by readers, after a crash, after a failed check, slice by slice if asked."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reslice import cli
from reslice.errors import OutcomeUnknown, PartlyPublished, Refused, Retryable
from reslice.values import Outcome
from tests.conformance.orders import D1, D2, D3, EVERY_METHOD, IN_PLACE, INSERT, T0, Orders, changed, found, kinds

METHODS = EVERY_METHOD


def into_target(orders: Orders) -> str:
    """Return how the statement begins that inserts into the target."""
    return f"INSERT INTO {orders.database.quoted('daily_orders')}"


def killed_at(orders: Orders, words: str, range: str) -> None:
    """Run in a process of its own that is gone before a statement that begins with `words`."""
    orders.database.let_go()
    command = [sys.executable, "-m", "tests.conformance.killed", str(orders.file), orders.name, range, words]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("words", ["INSERT", "DELETE FROM", "COMMIT"])
def test_t07_1_a_process_killed_before_its_commit_leaves_the_old_rows(orders: Orders, words: str) -> None:
    if words == "INSERT":
        words = into_target(orders)
    elif orders.method == "append_version" and words == "DELETE FROM":
        words = f'INSERT INTO "{orders.database.catalog}"."reslice".pointers'
    orders.correct(4, 1300)
    killed_at(orders, words, f"{D1}..{D3}")
    assert orders.rows() == list(T0)

    run = orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=changed((D2, "web", 1, 1300)))

    if words != "COMMIT":  # the first commit of a run is its request: nothing of that one is left
        abandoned = orders.ledger("r-0001")
        assert abandoned["state"] == "failed" and "its process is gone" in abandoned["error"]
        assert any("r-0001" in note and "nothing of it was published" in note for note in run.notes)
    assert [name for name in orders.database.table_names() if name.startswith("reslice_")] == []


@pytest.mark.parametrize("times", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_t07_2_a_reader_sees_one_version_or_the_other(orders: Orders, times: int) -> None:
    seen: list[object] = []
    finished = threading.Event()
    orders.run(D2, rewrite=True)
    total = f"SELECT sum(amount_cents) FROM {orders.current} WHERE order_date = '{D2}'"
    with orders.database.session() as session:

        def read() -> None:
            while not finished.is_set():
                seen.append(session.execute(total).fetchall()[0][0])
                time.sleep(0.0005)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for turn in range(times):
                orders.correct(4, 1200 if turn % 2 else 1300)
                assert orders.run(D2).outcome is Outcome.PUBLISHED
        finally:
            finished.set()
            reader.join()

    assert len(seen) > times and set(seen) == {1950, 2050}


def test_t07_5_a_failed_check_leaves_every_row_in_its_place(orders: Orders) -> None:
    orders.source(
        "SELECT order_date, channel, 1 AS order_count, amount_cents FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end"
    )
    assert orders.refuses(f"{D1}..{D3}", "key_repeated").exit_code == 3


def test_t07_6_no_definition_is_changed_between_begin_and_commit(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    orders.database.follow_statements(monkeypatch, statements.append)
    orders.correct(4, 1300)

    orders.run(f"{D1}..{D3}")

    fence = next(place for place, text in enumerate(statements) if text.startswith("UPDATE") and "fences" in text)
    begin = max(place for place in range(fence) if statements[place].startswith("BEGIN"))
    commit = next(place for place in range(fence, len(statements)) if statements[place] == "COMMIT")
    published = statements[begin : commit + 1]
    assert any(text.startswith(into_target(orders)) for text in published)
    defining = re.compile(r"(?i)\s*(create|drop|alter|truncate|rename)\b")
    own = re.compile(r'CREATE (OR REPLACE )?TEMPORARY TABLE [a-z._]*"reslice_rows_')
    assert not [text for text in published if defining.match(text) and not own.match(text)]


@pytest.mark.parametrize("method", IN_PLACE)
def test_t08_1_a_run_that_publishes_per_slice_can_end_part_way_and_is_finished_by_running_it_again(
    orders: Orders,
) -> None:
    failing = f"CHECK (order_date <> DATE '{D2}' OR amount_cents <> 1300)"
    orders.make_target(
        f"order_date date, channel varchar, order_count bigint, amount_cents bigint, batch_id varchar, {failing}"
    )
    orders.fill()
    orders.declare(stamps={"batch_id": "run_id"})
    for order_id, cents in ((3, 701), (4, 1300), (8, 1000)):
        orders.correct(order_id, cents)

    error: PartlyPublished = orders.fails("run", PartlyPublished, f"{D1}..{D3}", per_slice=True)

    assert error.exit_code == 6 and kinds(error) == ["partly_published"] and error.run is not None
    assert f"1 slice is published whole: {D1}" in found(error)
    assert f"{D2} was not published" in found(error) and "1 slice after it was not started" in found(error)
    first = error.run.id
    assert orders.slices(first) == [(D1, "published"), (D2, "open"), (D3, "open")]
    assert orders.ledger(first)["state"] == "failed"
    batches = "SELECT order_date, max(batch_id) FROM daily_orders GROUP BY 1 ORDER BY 1"
    assert orders.database.rows(batches) == [(D1, first), (D2, None), (D3, None)]

    orders.correct(4, 1301)
    run = orders.run(f"{D1}..{D3}", per_slice=True)

    assert run.outcome is Outcome.PUBLISHED and run.slices_done == (D2, D3)
    assert orders.slices(run.id) == [(D1, "unchanged"), (D2, "published"), (D3, "published")]
    assert orders.database.rows(batches) == [(D1, first), (D2, run.id), (D3, run.id)]
    assert [row[:4] for row in orders.rows()] == changed(
        (D1, "store", 1, 701), (D2, "web", 1, 1301), (D3, "phone", 1, 1000)
    )
    orders.unchanged(f"{D1}..{D3}", per_slice=True)


def test_t08_1_without_per_slice_no_slice_is_published(orders: Orders) -> None:
    failing = f"CHECK (order_date <> DATE '{D2}' OR amount_cents <> 1300)"
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint, {failing}")
    orders.fill()
    for order_id, cents in ((3, 701), (4, 1300), (8, 1000)):
        orders.correct(order_id, cents)
    before = orders.versions()

    error = orders.fails("run", Retryable, f"{D1}..{D3}")

    assert kinds(error) == ["publish_failed"] and error.exit_code == 4 and "check constraint" in found(error).lower()
    assert orders.versions() == before
    assert orders.ledger(error.run.id)["state"] == "failed"
    assert orders.slices(error.run.id) == [(D1, "open"), (D2, "open"), (D3, "open")]


def test_a_per_slice_run_that_fails_at_its_first_slice_is_no_part_of_anything(orders: Orders) -> None:
    failing = f"CHECK (order_date <> DATE '{D1}' OR amount_cents <> 701)"
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint, {failing}")
    orders.fill()
    orders.correct(3, 701)
    orders.correct(4, 1300)

    error = orders.fails("run", Retryable, f"{D1}..{D3}", per_slice=True)

    assert kinds(error) == ["publish_failed"]
    assert orders.rows() == list(T0)
    assert orders.ledger(error.run.id)["state"] == "failed"


def test_a_slice_that_moves_while_others_are_published_ends_the_run_part_way(orders: Orders) -> None:
    for order_id, cents in ((3, 701), (4, 1300), (8, 1000)):
        orders.correct(order_id, cents)
    insert = orders.elsewhere(f"{INSERT} ('{D2}', 'phone', 1, 60)")

    error = orders.fails(
        "run",
        PartlyPublished,
        f"{D1}..{D3}",
        per_slice=True,
        on_step=orders.at_step(f"publishing {D2} (2 of 3)", insert),
    )

    assert error.exit_code == 6 and "held 2 rows when it was compared and now 3" in found(error)
    assert orders.slices(error.run.id) == [(D1, "published"), (D2, "open"), (D3, "open")]
    assert orders.rows() == changed((D1, "store", 1, 701), (D2, "phone", 1, 60))
    after = changed((D1, "store", 1, 701), (D2, "web", 1, 1300), (D3, "phone", 1, 1000))
    orders.publish(f"{D1}..{D3}", changed=2, removed=1, unchanged=4, after=after, per_slice=True)


def test_per_slice_gives_the_same_rows_and_one_ledger_row(empty_orders: Orders) -> None:
    run = empty_orders.publish(f"{D1}..{D3}", added=6, after=T0, per_slice=True, again={"per_slice": True})

    assert run.slices_done == (D1, D2, D3)
    assert empty_orders.slices(run.id) == [(D1, "published"), (D2, "published"), (D3, "published")]
    assert len(empty_orders.groups(run.id)) == 6


def test_t08_3_a_thousand_and_one_slices_are_published_once_each(empty_orders: Orders) -> None:
    empty_orders.cancel("true")
    empty_orders.database.execute(
        "INSERT INTO orders_fact SELECT n, DATE '2021-01-01' + n::integer, 'web', 100"
        " FROM generate_series(0, 1000) AS days (n)"
    )

    for _ in range(2):
        run = empty_orders.run("2021-01-01..2023-09-28")
        assert run.scope.count == 1001
        assert empty_orders.database.rows(
            "SELECT count(*), count(DISTINCT order_date), sum(amount_cents), max(order_count)"
            f" FROM {empty_orders.current}"
        ) == [(1001, 1001, 100100, 1)]
    assert run.outcome is Outcome.UNCHANGED
    assert run.diff is not None and run.diff.counts.unchanged == 1001


def test_t08_5_the_exit_code_and_the_last_line_name_the_slice_that_failed(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = f"CHECK (order_date <> DATE '{D2}' OR amount_cents <> 1300)"
    orders.make_target(f"order_date date, channel varchar, order_count bigint, amount_cents bigint, {failing}")
    orders.fill()
    for order_id, cents in ((3, 701), (4, 1300), (8, 1000)):
        orders.correct(order_id, cents)
    orders.database.let_go()
    command = ["--config", str(orders.file), "run", orders.name, f"{D1}..{D3}", "--per-slice"]

    assert cli.main(command) == 6
    *_, unchanged, last = capsys.readouterr().err.strip().splitlines()
    assert D2 in unchanged and D2 in last

    orders.correct(4, 1301)
    orders.database.let_go()
    assert cli.main(command) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("method", ["replace_slice", "append_version"])
def test_t10_3_rows_that_the_database_did_not_store_are_found_before_the_commit(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.correct(4, 1300)
    orders.correct(4, 1200)
    orders.database.execute("UPDATE daily_orders SET amount_cents = 1 WHERE order_date = '2024-03-02'")
    before = orders.versions()
    orders.database.follow_statements(
        monkeypatch, lambda text: f"{text} AND channel = 'web'" if text.startswith(into_target(orders)) else None
    )

    error = orders.fails("run", Refused, D2)

    assert kinds(error) == ["not_as_staged"]
    assert "1 row, order_count 1, amount_cents 1200" in found(error)
    assert "2 rows, order_count 3, amount_cents 1950" in found(error)
    assert orders.versions() == before
    assert orders.ledger(error.run.id)["state"] == "refused"


@pytest.mark.parametrize("landed", [True, False])
def test_t09_3_an_unknown_outcome_is_found_out_by_the_next_run(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    orders.correct(4, 1300)
    statements: list[str] = []
    into = into_target(orders)

    def lose_the_answer(text: str) -> str | None:
        statements.append(text)
        is_published = any(each.startswith(into) for each in statements)
        if text == "COMMIT" and is_published and not landed:
            return "ROLLBACK"
        if (
            is_published
            and "COMMIT" in statements[statements.index(next(s for s in statements if s.startswith(into))) :]
        ):
            return None if text == "COMMIT" else "SELECT CAST('the server cannot be reached' AS integer)"
        return None

    with monkeypatch.context() as patch:
        orders.database.follow_statements(patch, lose_the_answer)
        error = orders.fails("run", OutcomeUnknown, f"{D1}..{D3}")

    assert kinds(error) == ["outcome_unknown"] and error.exit_code == 5 and not error.retry
    assert error.run.outcome is Outcome.UNKNOWN
    assert orders.ledger(error.run.id)["state"] == ("published" if landed else "requested")
    after = changed((D2, "web", 1, 1300))
    assert orders.rows() == (after if landed else list(T0))

    if landed:
        run = orders.unchanged(f"{D1}..{D3}")
    else:
        run = orders.publish(f"{D1}..{D3}", changed=1, unchanged=5, after=after)
        assert orders.ledger(error.run.id)["state"] == "failed"
        assert any(error.run.id in note and "nothing of it was published" in note for note in run.notes)
    kept = [name for name in orders.database.table_names("reslice") if name.startswith("kept_")]
    assert orders.database.rows(f'SELECT count(*) FROM reslice."{kept[0]}"') == [(2 * (orders.method in IN_PLACE),)]
