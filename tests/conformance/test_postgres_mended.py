"""What others do to tables and ledger at the worst moment, and sources that do more than read: told in words."""

from __future__ import annotations

import pytest

from reslice.errors import Misused
from reslice.values import Outcome
from tests.conformance.databases import only
from tests.conformance.orders import D2, SOURCE, T0, Orders, found, kinds

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
