"""The view of the current versions on PostgreSQL: its readers have settings of their own, and transactions."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import psycopg
import pytest

import reslice
from reslice.engines.postgres import locks
from reslice.errors import Refused, Retryable
from reslice.values import Outcome
from tests.conformance.databases import Row, only
from tests.conformance.orders import ALLOWED, COLUMNS, D1, D2, D3, SOURCE, T0, Orders, Target, changed, found, kinds

METHODS = ("append_version",)
POSTGRES16_SLOW = True
pytestmark = only("postgresql", "a view of PostgreSQL, and those who read it")

WHOLE = f"{D1}..{D3}"
WEB_1300 = changed((D2, "web", 1, 1300))
SHOP = "order_count, amount_cents, channel"


# --- whatever settings a reader has -----------------------------------------------------------------------------------

STYLES = ("ISO, DMY", "German", "SQL, MDY", "SQL, DMY", "Postgres, MDY", "Postgres, DMY")
SETTINGS: dict[str, tuple[str, ...]] = {
    "DateStyle": STYLES,
    "IntervalStyle": ("sql_standard", "iso_8601", "postgres_verbose"),
    "extra_float_digits": ("-15", "0"),
    "TimeZone": ("Asia/Kolkata", "America/Sao_Paulo", "Pacific/Kiritimati"),
}


def as_read(orders: Orders, select: str) -> list[list[Row]]:
    """Return the rows of a query in sessions of every setting, one after the other; the first has what the server has.

    A setting is the reader's own, and then that of the database for whoever connects.
    """
    answers = [orders.database.rows(select)]
    for name, values in SETTINGS.items():
        for value in values:
            with orders.database.session() as reader:
                reader.execute(f"SET {name} = '{value}'")
                answers.append(reader.execute(select).fetchall())
    for name, (*_, value) in SETTINGS.items():
        orders.database.execute(f"ALTER DATABASE {orders.database.catalog} SET {name} = '{value}'")
    with orders.database.session() as reader:
        answers.append(reader.execute(select).fetchall())
    return answers


VIEW = "SELECT to_char(order_date, 'YYYY-MM-DD'), channel, order_count, amount_cents FROM daily_orders_current"


def test_a_reader_of_any_settings_reads_each_group_once(orders: Orders) -> None:
    orders.correct(4, 1300)
    orders.run(WHOLE)
    for rows in as_read(orders, f"{VIEW} ORDER BY 1, 2"):
        assert rows == WEB_1300
    orders.unchanged(WHOLE)
    orders.correct(4, 1400)
    orders.run(WHOLE)
    assert orders.database.rows(f"{VIEW} ORDER BY 1, 2") == changed((D2, "web", 1, 1400))


CUTS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a day of dates": ("date", {"unit": "day"}, "2024-03-02", "2024-03-02"),
    "a month of dates": ("date", {"unit": "month"}, "2024-03-01", "2024-03"),
    "a week of days": ("date", {"unit": "week"}, "2024-02-26", "2024-W09"),
    "an hour of wall time": ("timestamp", {"unit": "hour"}, "2024-03-02 07:00:00", "2024-03-02T07"),
    "a day of wall time": ("timestamp", {"unit": "day"}, "2024-03-02 00:00:00", "2024-03-02"),
    "an hour of instants": (
        "timestamptz",
        {"unit": "hour", "timezone": "America/New_York"},
        "2024-03-02 07:00:00+00",
        "2024-03-02T02",
    ),
    "a month of instants": (
        "timestamptz",
        {"unit": "month", "timezone": "America/New_York"},
        "2024-03-01 05:00:00+00",
        "2024-03",
    ),
    "a day of text": ("text", {"unit": "day"}, "2024-03-02", "2024-03-02"),
    "a month of text": ("text", {"unit": "month"}, "2024-03-01", "2024-03"),
    "a month of numbers": ("integer", {"unit": "month"}, "20240301", "2024-03"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_slices_of_every_kind_are_the_same_to_every_reader(empty_orders: Orders, cut: str) -> None:
    orders = empty_orders
    type_text, slice_keys, first, range = CUTS[cut]
    orders.make_target(f"order_date {type_text}, channel varchar, order_count bigint, amount_cents bigint")
    orders.source(
        f"SELECT * FROM (SELECT CAST('{first}' AS {type_text}) AS order_date, channel, count(*) AS order_count,"
        f" sum(amount_cents) AS amount_cents FROM orders_fact WHERE order_date = '{D2}' GROUP BY channel) AS day"
        " WHERE order_date BETWEEN :start AND :end"
    )
    orders.declare(slice={"column": "order_date", **slice_keys})
    orders.database.execute(f"INSERT INTO daily_orders VALUES ('{first}', 'web', 7, 7)")
    orders.run(range)
    orders.correct(4, 1300)
    orders.run(range)
    for rows in as_read(orders, f"SELECT {SHOP} FROM daily_orders_current ORDER BY channel"):
        assert rows == [(2, 750, "store"), (1, 1300, "web")]


FAR = ("0044-03-15 BC", "infinity", "-infinity", "10000-01-01", "12024-03-02", "0001-01-01 BC")


@pytest.mark.parametrize("type_text", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("unit", ["day", "month"])
def test_days_beyond_the_calendar_are_of_no_version_to_every_reader(
    empty_orders: Orders, type_text: str, unit: str
) -> None:
    """The 15th of March is in the year 44 of both eras; only one of the two has a version."""
    orders = empty_orders
    orders.make_target(f"order_date {type_text}, channel varchar, order_count bigint, amount_cents bigint")
    far = [*FAR, "5874897-12-31"] if (type_text, unit) == ("date", "day") else FAR
    for place, text in enumerate(far):
        orders.database.execute(f"INSERT INTO daily_orders VALUES ('{text}', 'far', {place}, 1)")
    day = "0044-03-15" if unit == "day" else "0044-03-01"
    orders.database.execute(f"INSERT INTO daily_orders VALUES ('{day} 00:00:00+00', 'web', 7, 7)")
    orders.source(
        f"SELECT * FROM (SELECT CAST('{day} 00:00:00+00' AS {type_text}) AS order_date, 'web' AS channel,"
        " CAST(8 AS bigint) AS order_count, CAST(8 AS bigint) AS amount_cents) AS day"
        " WHERE order_date BETWEEN :start AND :end"
    )
    orders.declare(slice={"column": "order_date", "unit": unit})
    orders.run(day if unit == "day" else day[:7])
    expected: list[Any] = [(place, 1, "far") for place in range(len(far))] + [(8, 8, "web")]
    for rows in as_read(orders, f"SELECT {SHOP} FROM daily_orders_current ORDER BY channel, order_count"):
        assert rows == expected


# --- others who hold the view, the table or the ledger ----------------------------------------------------------------

SHORT = {"wait": "400ms", "lock": "100ms"}
A_WHILE = 8.0
"""Seconds in which a run ends that gives up in time; one that waits for a transaction of a test never ends."""


def another(orders: Orders) -> Target:
    """Return another target of the same ledger, which has something to publish."""
    orders.database.execute(f"CREATE TABLE other_orders ({COLUMNS})")
    declaration = {**orders.declaration, "table": "other_orders", "guards": ALLOWED, "timeouts": SHORT}
    declaration = {key: value for key, value in declaration.items() if key not in ("method", "stamps")}
    return Target(orders.database, "other_orders", declaration, SOURCE)


TWICE = f"SELECT twice FROM daily_orders_current WHERE order_date = '{D2}' ORDER BY 1"


def with_another_view(orders: Orders) -> None:
    """Publish, and change the table so that the next run has to make the view anew."""
    orders.correct(4, 1300)
    orders.run(WHOLE)
    orders.correct(4, 1400)
    orders.database.execute(
        "ALTER TABLE daily_orders ADD COLUMN twice bigint GENERATED ALWAYS AS (amount_cents * 2) STORED"
    )
    orders.declare(timeouts=SHORT)


def test_a_view_that_somebody_reads_is_not_waited_for_without_end(orders: Orders) -> None:
    other = another(orders)
    with_another_view(orders)
    rows = orders.versions()
    waits = list[float]()

    def read_and_run() -> None:
        """While the run tries to replace the view, read it and run another target."""
        began = time.monotonic()
        with orders.database.session() as second:
            second.execute("SELECT count(*) FROM daily_orders_current")
        waits.append(time.monotonic() - began)
        assert other.run(WHOLE).outcome is Outcome.PUBLISHED
        waits.append(time.monotonic() - began)

    with orders.database.session() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM daily_orders_current")
        ((process,),) = reader.execute("SELECT pg_backend_pid()").fetchall()
        beside = threading.Thread(target=read_and_run)
        began = time.monotonic()
        beside.start()
        error = orders.fails("run", Retryable, WHOLE)
        took = time.monotonic() - began
        beside.join()
        reader.execute("COMMIT")

    assert kinds(error) == ["database_busy"] and error.exit_code == 4 and error.retry
    assert "public.daily_orders_current" in found(error) and f"process {process}," in found(error)
    assert took < A_WHILE and len(waits) == 2 and max(waits) < A_WHILE
    assert orders.ledger(error.run.id)["state"] == "failed"
    assert orders.versions() == rows
    assert orders.run(WHOLE).outcome is Outcome.PUBLISHED
    assert [row[:4] for row in orders.rows()] == changed((D2, "web", 1, 1400))
    assert orders.database.rows(TWICE) == [(1500,), (2800,)]


def test_a_view_is_made_anew_once_its_reader_is_gone(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    with_another_view(orders)
    tries = list[str]()
    with orders.database.session() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM daily_orders_current")

        def follow(statement: str) -> None:
            if statement.startswith("CREATE OR REPLACE VIEW"):
                tries.append(statement)
                if len(tries) == 2:
                    reader.execute("COMMIT")

        orders.database.follow_statements(monkeypatch, follow)
        assert orders.run(WHOLE).outcome is Outcome.PUBLISHED
    assert len(tries) == 2
    assert orders.database.rows(TWICE) == [(1500,), (2800,)]


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_ledger_that_somebody_holds_is_not_waited_for_without_end(orders: Orders) -> None:
    orders.run(D1)
    orders.declare(timeouts=SHORT)
    with orders.database.session() as holder:
        holder.execute("BEGIN")
        holder.execute(f"SELECT pg_advisory_xact_lock({locks.key(locks.LEDGER, repr('reslice'))})")
        error = orders.fails("run", Retryable, D2)
        holder.execute("COMMIT")
    assert kinds(error) == ["database_busy"] and error.exit_code == 4
    assert "ledger" in found(error) and "400ms" in error.failures[0].asked
    assert orders.rows() == list(T0)
    orders.unchanged(D2)


@pytest.mark.parametrize("method", ["replace_slice"])
def test_a_table_that_somebody_holds_keeps_no_other_run_from_the_ledger(orders: Orders) -> None:
    """A first run makes what it needs beside the table without touching it."""
    other = another(orders)
    other.run(WHOLE)
    orders.correct(4, 1300)
    orders.declare(timeouts={"lock": "60s", "statement": "300ms"})
    with orders.database.session() as holder:
        holder.execute("BEGIN")
        holder.execute("LOCK TABLE daily_orders IN ACCESS EXCLUSIVE MODE")
        seconds = list[float]()

        def run() -> None:
            began = time.monotonic()
            assert other.run(WHOLE).outcome is Outcome.PUBLISHED
            seconds.append(time.monotonic() - began)

        def run_first() -> None:
            with suppress(Retryable):
                orders.run(WHOLE)

        first = threading.Thread(target=run_first)
        beside = threading.Thread(target=run)
        first.start()
        time.sleep(0.3)
        beside.start()
        beside.join(A_WHILE)
        assert seconds, "the other target waits for a table that is not its own"
        holder.execute("COMMIT")
        first.join()
        beside.join()
    orders.run(WHOLE)
    assert orders.rows() == changed((D2, "web", 1, 1300))


# --- one ledger of a table --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["replace_slice"])
@pytest.mark.parametrize("who", ["run", "writer"])
def test_of_two_first_ledgers_of_a_table_one_is_made(orders: Orders, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins when the first has seen that there is no other, and has made nothing yet."""
    orders.correct(4, 1300)
    other = Target(orders.database, "other", {**orders.declaration, "ledger": {"schema": "second"}}, SOURCE)
    errors = list[Refused]()

    def begin() -> None:
        with psycopg.connect(orders.database.url, autocommit=True) as connection, pytest.raises(Refused) as caught:
            if who == "run":
                other.run(WHOLE)
            with reslice.writer_lock(connection, "daily_orders", schema="second"):
                pass
        errors.append(caught.value)

    beside = threading.Thread(target=begin)

    def follow(statement: str) -> None:
        if statement.startswith("CREATE SCHEMA") and not beside.ident:
            beside.start()
            beside.join(0.5)

    orders.database.follow_statements(monkeypatch, follow)
    first = orders.run(WHOLE)
    beside.join()

    assert first.outcome is Outcome.PUBLISHED
    (error,) = errors
    assert kinds(error) == ["ledger_foreign"] and "the ledger in schema reslice already guards" in found(error)
    assert orders.database.rows("SELECT nspname FROM pg_namespace WHERE nspname IN ('reslice', 'second')") == [
        ("reslice",)
    ]
    orders.unchanged(WHOLE)
    assert orders.rows() == changed((D2, "web", 1, 1300))
