"""What DuckDB says, as a kind of error that a scheduler can act on."""

from __future__ import annotations

import duckdb
import pytest

from reslice.engines.duckdb.errors import failed

NOTHING = "daily_orders is as it was"


def test_a_row_that_another_transaction_changes_is_a_conflict_and_no_fault_of_the_statement() -> None:
    one = duckdb.connect()
    one.execute("CREATE TABLE t AS SELECT 1 AS n")
    other = one.cursor()
    one.execute("BEGIN")
    one.execute("UPDATE t SET n = 2")
    other.execute("BEGIN")
    with pytest.raises(duckdb.TransactionException) as raised:
        other.execute("UPDATE t SET n = 3")
    error = failed("daily_orders", raised.value, "the ledger", unchanged=NOTHING)
    assert (error.kind, error.exit_code) == ("conflict", 4)


def test_a_name_that_another_transaction_makes_is_a_conflict() -> None:
    one = duckdb.connect()
    other = one.cursor()
    for connection in (one, other):
        connection.execute("BEGIN")
    one.execute("CREATE TABLE t (n INTEGER)")
    with pytest.raises(duckdb.TransactionException) as raised:
        other.execute("CREATE TABLE t (n INTEGER)")
    assert failed("daily_orders", raised.value, "the ledger", unchanged=NOTHING).kind == "conflict"


def test_a_transaction_that_was_broken_off_is_no_conflict() -> None:
    one = duckdb.connect()
    one.execute("BEGIN")
    with pytest.raises(duckdb.ConversionException) as first:
        one.execute("SELECT CAST('x' AS INTEGER)")
    with pytest.raises(duckdb.TransactionException) as raised:
        one.execute("SELECT 1")
    for each in (first, raised):
        assert failed("daily_orders", each.value, "the source", unchanged=NOTHING).kind == "source_failed"
