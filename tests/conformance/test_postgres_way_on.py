"""What is said on PostgreSQL when a run could not go through: whose fault it was, and the command to type again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from reslice.cli import main
from reslice.engines.postgres.errors import failed
from reslice.errors import SAME_AGAIN, Retryable
from tests.conformance.databases import Database, PostgresDatabase, only
from tests.conformance.orders import D1, D2, SOURCE, T0, Orders, kinds

pytestmark = only("postgresql", "DuckDB has no connection to lose")

ENDS = "WITH ended AS MATERIALIZED (SELECT pg_terminate_backend(pg_backend_pid()) AS it)\n"
LOCKED = "CREATE FUNCTION locked() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN {does}; RETURN 1; END $$"


def where(condition: str, head: str = "") -> str:
    """Return the source of the suite with one condition more."""
    return head + SOURCE.replace("GROUP BY", f"AND {condition}\nGROUP BY")


# --- the command as it was typed --------------------------------------------------------------------------------------


@contextmanager
def in_the_way(database: Database) -> Iterator[None]:
    """Hold a lock on the target that lets everybody read."""
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE daily_orders IN SHARE ROW EXCLUSIVE MODE")
        yield


OPTIONS = {
    "--per-slice": ["--per-slice"],
    "--rewrite --wait 9s": ["--rewrite", "--wait", "9s"],
    "--allow total_change --reason 'it was wrong'": ["--allow", "total_change", "--reason", "it was wrong"],
}


def test_after_a_conflict_the_command_is_told_as_it_was_typed(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    orders.correct(1, 1100)
    orders.declare(timeouts={"lock": "200ms", "wait": "1s"})
    before = orders.versions()
    place = f"-C {orders.folder} --config {orders.file.name}"
    with in_the_way(orders.database):
        for typed, words in OPTIONS.items():
            code = main([*place.split(" "), "run", "daily_orders", f"{D1}..{D2}", *words])
            said = capsys.readouterr().err
            assert code == 4 and "failed[conflict]" in said, said
            assert f"\n  next:       reslice {place} run daily_orders {D1}..{D2} {typed}\n" in said
    assert orders.versions() == before


def test_what_calls_the_library_is_told_to_call_again(orders: Orders) -> None:
    orders.correct(1, 1100)
    orders.declare(timeouts={"lock": "200ms", "wait": "1s"})
    with in_the_way(orders.database):
        error = orders.fails("run", Retryable, D1)
    assert (kinds(error), error.next, error.retry) == (["conflict"], SAME_AGAIN, True)


# --- a connection that is lost ----------------------------------------------------------------------------------------


def test_a_connection_that_is_lost_in_the_source_is_no_failure_of_the_source(orders: Orders) -> None:
    orders.run(D1)
    orders.source(where("(SELECT it FROM ended)", ENDS))
    for command in ("run", "plan", "verify", "status"):
        error = orders.fails(command, Retryable, D1)
        assert (kinds(error), error.exit_code, error.next) == (["database_unavailable"], 4, SAME_AGAIN), command
        assert "terminating connection" in error.failures[0].found[0]
        assert error.about.startswith("daily_orders") and orders.rows() == list(T0)


def test_a_lock_that_the_source_does_not_get_is_told_as_one(orders: Orders) -> None:
    does = "PERFORM set_config('lock_timeout', '100ms', true); PERFORM 1 FROM orders_fact WHERE order_id = 1 FOR UPDATE"
    orders.database.execute(LOCKED.format(does=does))
    orders.source(where("locked() = 1"))
    with psycopg.connect(orders.database.url) as other:
        other.execute("SELECT 1 FROM orders_fact WHERE order_id = 1 FOR UPDATE")
        error = orders.fails("plan", Retryable, D1)
    assert (kinds(error), error.next) == (["database_busy"], SAME_AGAIN)
    assert "lock timeout" in error.failures[0].found[0]


def test_a_disk_that_is_full_is_a_failure_of_the_source(orders: Orders) -> None:
    """The connection lives: class 53 is about a statement."""
    does = "RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'"
    orders.database.execute(LOCKED.format(does=does))
    orders.source(where("locked() = 1"))
    error = orders.fails("plan", Retryable, D1)
    assert kinds(error) == ["source_failed"] and error.failures[0].found[0] == "the disk is full"


def test_a_new_connection_that_a_time_limit_ends_is_no_failure_of_a_source(
    engine: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Orders(engine)

    def slow(statement: str) -> str | None:
        is_first = statement.startswith("SELECT pg_catalog.current_schemas")
        return "SELECT pg_sleep(5)" if is_first else None

    engine.as_admin(f"ALTER DATABASE {engine.catalog} SET statement_timeout = '100ms'")
    engine.follow_statements(monkeypatch, slow)
    error = orders.fails("plan", Retryable, D1)
    assert (kinds(error), error.next) == (["database_unavailable"], SAME_AGAIN)
    assert "statement timeout" in error.failures[0].found[0]


def test_libpq_is_told_by_its_first_line() -> None:
    """The lines after it begin with a tab, and guess."""
    lost = psycopg.OperationalError(
        "consuming input failed: server closed the connection unexpectedly\n"
        "\tThis probably means the server terminated abnormally\n\tbefore or while processing the request.\n"
    )
    error = failed("daily_orders", lost, "the ledger", unchanged="nothing was written")
    assert error.failures[0].found == ("consuming input failed: server closed the connection unexpectedly",)
