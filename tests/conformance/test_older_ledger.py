"""A ledger made by an older version: columns are only ever added, and the next run adds them."""

from __future__ import annotations

import pytest

from reslice import ledger
from reslice.errors import Refused
from reslice.values import Outcome
from tests.conformance.databases import Database
from tests.conformance.test_ten_cases import JAN1, JAN3, Shop


def test_the_next_run_adds_what_an_older_ledger_lacks_and_keeps_its_rows(engine: Database) -> None:
    shop = Shop(engine)
    before = engine.rows("SELECT id, state, rows_after FROM reslice.runs")
    engine.execute("ALTER TABLE reslice.runs DROP COLUMN affected")
    engine.execute("ALTER TABLE reslice.run_slices DROP COLUMN groups_unchanged")
    engine.execute("DROP TABLE reslice.run_groups")
    assert shop.run(f"{JAN1}..{JAN3}").outcome is Outcome.UNCHANGED
    assert engine.rows("SELECT id, state, rows_after FROM reslice.runs ORDER BY number")[:1] == before
    for table in ledger.TABLES:
        found = engine.rows(
            "SELECT column_name FROM information_schema.columns"
            f" WHERE table_schema = 'reslice' AND table_name = '{table.name}'"
        )
        assert {name for (name,) in found} == {column.name for column in table.columns}


def test_a_users_own_table_in_the_ledgers_schema_is_refused_and_left_as_it_is(engine: Database) -> None:
    engine.execute("CREATE SCHEMA reslice")
    engine.execute("CREATE TABLE reslice.runs (id integer, distance_km double precision)")
    engine.insert("reslice.runs", [(1, 10.5)])
    with pytest.raises(Refused) as refused:
        Shop(engine)
    assert refused.value.kind == "ledger_foreign"
    assert engine.rows("SELECT * FROM reslice.runs") == [(1, 10.5)]
    assert engine.rows("SELECT count(*) FROM daily_orders") == [(0,)]
    assert engine.table_names("reslice") == ["runs"]
