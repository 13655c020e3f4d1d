"""What others do to tables and ledger at the worst moment, and sources that do more than read: told in words."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest

from reslice.errors import Misused, Refused, Retryable, Stopped
from reslice.page import page_html
from reslice.report import run_text
from reslice.report_json import as_json, dumped
from reslice.values import Outcome
from tests.conformance.databases import only
from tests.conformance.orders import ALLOWED, D1, D2, D3, SOURCE, T0, VERSION, Orders, changed, found, kinds, ordered

pytestmark = only("postgresql", "functions that write, locks and limits are a server's")
POSTGRES16_SLOW = True

CALLED = SOURCE.replace("WHERE", "WHERE (SELECT told()) = 1 AND")
"""A source that calls a function once."""
WRITES = {
    "truncate": "TRUNCATE victim",
    "drop": "DROP TABLE victim",
    "alter": "ALTER TABLE daily_orders ADD COLUMN more integer",
    "create": "CREATE TABLE made (n integer)",
    "insert": "INSERT INTO victim VALUES (3)",
    "index": "CREATE INDEX ON victim (n)",
    "trigger off": "ALTER TABLE daily_orders DISABLE TRIGGER ALL",
}
ROWS_OF_VICTIM = [(1,), (2,)]


@pytest.fixture
def victim(orders: Orders) -> Orders:
    """The orders, and a table beside them that nothing may touch."""
    orders.database.execute("CREATE TABLE victim (n integer)")
    orders.database.execute("INSERT INTO victim VALUES (1), (2)")
    return orders


def told(orders: Orders, body: str) -> None:
    """Make the function that a source calls."""
    orders.database.execute(
        f"CREATE FUNCTION told() RETURNS integer LANGUAGE plpgsql AS $$BEGIN {body}; RETURN 1; END$$"
    )


def is_as_it_was(orders: Orders) -> bool:
    there = orders.database.rows("SELECT to_regclass('made') IS NULL, to_regclass('victim_n_idx') IS NULL")
    columns = orders.database.rows(
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 'daily_orders' AND column_name = 'more'"
    )
    rows = orders.database.rows("SELECT n FROM victim ORDER BY n")
    return there == [(True, True)] and columns == [(0,)] and rows == ROWS_OF_VICTIM


@pytest.mark.parametrize("what", WRITES)
def test_a_source_that_does_more_than_read_is_refused_and_rolled_back(victim: Orders, what: str) -> None:
    told(victim, WRITES[what])
    victim.source(CALLED)
    for command in ("plan", "run"):
        error: Misused = victim.fails(command, Misused, D2)
        assert kinds(error) == ["source_invalid"] and error.failures[0].asked == "a source reads, and writes nothing"
        named = {"alter": "daily_orders", "create": "made", "trigger off": "daily_orders"}.get(what, "victim")
        assert named in found(error)
        assert is_as_it_was(victim) and victim.rows() == list(T0)


@pytest.mark.parametrize("query", ["controls", "downstream", "affected"])
@pytest.mark.parametrize("what", ["truncate", "insert"])
def test_no_other_query_of_a_contract_writes_through_a_function(victim: Orders, query: str, what: str) -> None:
    told(victim, WRITES[what])
    figures = "SELECT order_date, count(*) AS orders FROM orders_fact WHERE (SELECT told()) = 1"
    victim.source(f"{figures} AND order_date BETWEEN :start AND :end GROUP BY 1", "other")
    match = {"orders": "sum(order_count)"}
    if query == "affected":
        text = "SELECT order_date FROM orders_fact WHERE (SELECT told()) = 1 AND :since IS NOT NULL"
        victim.source(text, "other")
        victim.declare(affected="other.sql")
    elif query == "controls":
        victim.declare(controls={"source": "other.sql", "match": match})
    else:
        victim.declare(downstream={"report": {"query": "other.sql", "match": match}})
    command = "verify" if query == "downstream" else "plan"
    error: Misused = victim.fails(command, Misused, D2)
    assert kinds(error) == ["source_invalid"] and "other.sql" in error.about
    assert is_as_it_was(victim)


def test_what_a_function_makes_for_itself_alone_is_no_matter(victim: Orders) -> None:
    told(victim, "CREATE TEMPORARY TABLE own (n integer); INSERT INTO own VALUES (1); DROP TABLE own")
    victim.database.execute("CREATE SEQUENCE counted")
    victim.source(CALLED.replace("told()) = 1", "told()) = 1 AND (SELECT nextval('counted')) > 0"))
    assert victim.run(D2).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("method", ["replace_slice", "merge"])
def test_a_total_that_is_not_finite_stops_a_run_until_a_person_consents(orders: Orders, value: str) -> None:
    orders.make_target("order_date date, channel varchar, order_count bigint, amount_cents numeric")
    orders.fill(T0)
    orders.declare(guards=None)
    assert orders.run(D2).outcome is Outcome.UNCHANGED
    orders.database.execute(f"UPDATE daily_orders SET amount_cents = '{value}' WHERE order_date = '{D2}'")
    before = ordered(orders.database.rows("SELECT channel, CAST(amount_cents AS text) FROM daily_orders"))
    assert [guard.name for guard in orders.plan(D2).guards if guard.stops] == ["total_change"]
    error: Stopped = orders.fails("run", Stopped, D2)
    assert f"amount_cents {value} → 1950" in found(error)
    assert ordered(orders.database.rows("SELECT channel, CAST(amount_cents AS text) FROM daily_orders")) == before
    assert (
        error.run is not None and error.run.id is not None and run_text(error.run) and dumped(as_json(error.run), None)
    )
    assert f"{value} → 1950" in page_html(orders.database.project(orders.file).show(error.run.id))
    run = orders.run(D2, allow=("total_change",), reason="it was never a number")
    assert run.outcome is Outcome.PUBLISHED and orders.rows() == list(T0)
    totals = orders.database.rows("SELECT totals FROM reslice.runs WHERE id = ?", [run.id])
    assert json.loads(totals[0][0])["amount_cents"] == {"before": value, "after": 1950}
    restored = orders.restore(run.id)
    assert restored.outcome is Outcome.RESTORED
    assert ordered(orders.database.rows("SELECT channel, CAST(amount_cents AS text) FROM daily_orders")) == before


def test_infinities_of_both_signs_add_up_to_no_number(orders: Orders) -> None:
    orders.make_target("order_date date, channel varchar, order_count bigint, amount_cents numeric")
    orders.fill(T0)
    orders.declare(guards=None)
    orders.database.execute(
        "UPDATE daily_orders SET amount_cents = CASE order_date WHEN DATE '2024-03-01' THEN numeric 'Infinity'"
        " ELSE '-Infinity' END"
    )
    error: Stopped = orders.fails("run", Stopped, f"{D1}..{D3}")
    assert "amount_cents NaN → 12149" in found(error)


GONE = {
    "fence": ("publishing", "DELETE FROM reslice.fences"),
    "run": ("publishing", "DELETE FROM reslice.runs WHERE state = 'requested'"),
    "run, before it staged": ("staging", "DELETE FROM reslice.runs WHERE state = 'requested'"),
    "run, said to have ended": ("publishing", "UPDATE reslice.runs SET state = 'failed' WHERE state = 'requested'"),
}


@pytest.mark.parametrize("what", GONE)
def test_what_somebody_took_from_the_ledger_meanwhile_is_told_in_words(orders: Orders, what: str) -> None:
    orders.run(D2)
    orders.correct(4, 1300)
    step, statement = GONE[what]
    follow = orders.at_step(step, orders.elsewhere(statement))
    error: Retryable = orders.fails("run", Retryable, D2, on_step=follow)
    assert kinds(error) == ["conflict"] and error.failures[0].asked and error.next
    assert "gone from the ledger" in found(error) or "no longer open in the ledger" in found(error)
    assert orders.rows() == list(T0)
    assert orders.run(D2).outcome is Outcome.PUBLISHED and orders.rows() == changed((D2, "web", 1, 1300))


@pytest.mark.parametrize("method", ["append_version"])
@pytest.mark.parametrize("what", ["rows", "fence", "run"])
def test_pruning_versions_that_others_write_to_is_rolled_back_in_words(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    orders.correct(4, 1300)
    orders.run(D2)
    orders.correct(4, 1400)
    second = orders.run(D2)
    statement = {
        "rows": f"DELETE FROM daily_orders WHERE {VERSION} = 'r-0001' AND channel = 'web'",
        "fence": "DELETE FROM reslice.fences",
        "run": "DELETE FROM reslice.runs WHERE state = 'requested'",
    }[what]
    at = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('reslice table" if what == "fence" else "DELETE"
    done: list[str] = []

    def meanwhile(text: str) -> None:
        if text.startswith(at) and not done:
            done.append(text)
            orders.elsewhere(statement)()

    orders.database.follow_statements(monkeypatch, meanwhile)
    with pytest.raises(Retryable) as caught:
        orders.handle.prune_versions(older_than=timedelta(0))
    assert kinds(caught.value) == ["conflict"] and "everything was rolled back" in caught.value.unchanged
    assert orders.rows() == changed((D2, "web", 1, 1400)) and second.outcome is Outcome.PUBLISHED
    left = orders.database.rows(f"SELECT count(*) FROM daily_orders WHERE {VERSION} = 'r-0001'")
    assert left == [(1 if what == "rows" else 2,)]


def test_more_measures_than_a_statement_may_have_are_refused(orders: Orders) -> None:
    names = [f"m{number}" for number in range(900)]
    orders.make_target(f"order_date date, channel varchar, {', '.join(f'{name} bigint' for name in names)}")
    each = ", ".join(f"count(*) AS {name}" for name in names)
    orders.source(SOURCE.replace("count(*) AS order_count, sum(amount_cents) AS amount_cents", each))
    orders.declare(measures={name: {} for name in names})
    error: Refused = orders.fails("run", Refused, D2)
    assert kinds(error) == ["method_unsupported"] and "1664" in found(error) and "fewer measures" in error.next
    assert orders.database.rows("SELECT count(*) FROM daily_orders") == [(0,)]


def test_a_source_beyond_a_limit_of_the_server_is_to_be_corrected(orders: Orders) -> None:
    many = ", ".join("1" for _ in range(1700))
    orders.source(SOURCE.replace("WHERE", f"WHERE (SELECT count(*) FROM (SELECT {many}) AS x) = 1 AND"))
    assert kinds(orders.fails("plan", Misused, D2)) == ["source_invalid"]


def test_a_row_without_a_partition_is_told_with_what_helps(orders: Orders) -> None:
    orders.database.execute("DROP TABLE daily_orders")
    orders.database.execute(
        "CREATE TABLE daily_orders (order_date date, channel varchar, order_count bigint, amount_cents bigint)"
        " PARTITION BY RANGE (order_date)"
    )
    made = "CREATE TABLE {} PARTITION OF daily_orders FOR VALUES FROM ('{}') TO ('{}')"
    orders.database.execute(made.format("first", D1, D2))
    error: Retryable = orders.fails("run", Retryable, f"{D1}..{D2}")
    assert kinds(error) == ["publish_failed"] and "make a partition for these rows first" in found(error)
    assert orders.rows() == []
    orders.database.execute(made.format("second", D2, D3))
    assert orders.run(f"{D1}..{D2}").outcome is Outcome.PUBLISHED


@pytest.mark.parametrize("method", ["merge"])
def test_a_deferred_foreign_key_that_a_commit_would_break_is_refused(orders: Orders) -> None:
    orders.run(D2)
    for statement in (
        "ALTER TABLE daily_orders ADD UNIQUE (order_date, channel)",
        "CREATE TABLE notes (day date, channel varchar, FOREIGN KEY (day, channel)"
        " REFERENCES daily_orders (order_date, channel) DEFERRABLE INITIALLY DEFERRED)",
        f"INSERT INTO notes VALUES ('{D2}', 'web')",
    ):
        orders.database.execute(statement)
    orders.cancel("order_id = 4")
    for options in ({}, {"per_slice": True}):
        error: Refused = orders.fails("run", Refused, D2, **options)
        assert kinds(error) == [
            "target_referenced"
        ] and "notes point at (order_date, channel)=(2024-03-02, web)" in found(error)
        assert orders.rows() == list(T0)


@pytest.mark.parametrize("mode", ["SHARE UPDATE EXCLUSIVE", "SHARE"])
def test_a_lock_of_one_that_writes_nothing_is_told_as_a_lock(orders: Orders, mode: str) -> None:
    orders.correct(4, 1300)
    orders.declare(timeouts={"lock": "200ms"})
    with orders.database.session() as other:
        other.execute("BEGIN")
        other.execute(f"LOCK TABLE daily_orders IN {mode} MODE")
        error: Retryable = orders.fails("run", Retryable, D2)
    assert kinds(error) == ["conflict"]
    assert "another transaction holds a lock on public.daily_orders and has not ended; process" in found(error)


@pytest.mark.slow
def test_a_restore_of_thousands_of_slices_takes_about_as_long_as_their_run(orders: Orders) -> None:
    days = "generate_series(0, 7999) AS n"
    orders.database.execute("DELETE FROM orders_fact; DELETE FROM daily_orders")
    orders.database.execute(f"INSERT INTO orders_fact SELECT n, DATE '1950-01-01' + n, 'web', n FROM {days}")
    orders.declare(guards={**ALLOWED, "max_slices": 10000})
    orders.run("1950-01-01..1971-11-26")
    orders.database.execute("UPDATE orders_fact SET amount_cents = amount_cents + 1")
    began = time.monotonic()
    run = orders.run("1950-01-01..1971-11-26")
    ran = time.monotonic()
    assert orders.restore(run.id).outcome is Outcome.RESTORED
    assert time.monotonic() - ran < 3 * (ran - began) + 1
    assert orders.database.rows("SELECT sum(amount_cents), count(*) FROM daily_orders") == [(8000 * 7999 // 2, 8000)]
