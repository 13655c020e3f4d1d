"""What `init` prints and the JSON it writes, and the file it drafts, compared with files that are read in review."""

from __future__ import annotations

import pytest

from reslice.contract import GrainColumn, SliceColumn, Stamp, StampValue, Unit
from reslice.engines.base import LedgerMade
from reslice.init import Initiated
from reslice.init.draft import Draft, DraftMeasure, Proposal, Why
from reslice.init.text import new_file, source_text, target_lines
from reslice.report_init import (
    LEDGER_NOTES,
    by_schema,
    init_json,
    init_text,
    ledger_json,
    ledger_sql_text,
    ledger_text,
)
from reslice.report_json import dumped
from tests.golden.test_golden import agree

PROPOSAL = Proposal(
    grain=(GrainColumn("order_date"), GrainColumn("channel", nulls_allowed=True)),
    grain_why="a key of the table",
    slice=SliceColumn("order_date", Unit.DAY, "Europe/Amsterdam"),
    slice_why="3 values, 2026-01-01 to 2026-01-03",
    measures=(
        DraftMeasure("order_count", 0, reason="never below 0 in 5 rows"),
        DraftMeasure("net\namount", None, nulls_allowed=True, scale=2, reason="NULL in 1 row"),
    ),
    stamps=(Stamp("loaded_at", StampValue.RUN_TIME), Stamp("batch_id", StampValue.RUN_ID)),
    left_out=(Why("row_id", "the database fills it: identity"),),
)
UNSURE = (
    "source: which table daily_orders is computed from is not known; source_of_daily_orders stands in its place, and a"
    " plan stops there until you name the real one",
    "grain: channel is NULL in 1 row; NULL is kept as a key of its own",
)
SELECT = "SELECT\n    order_date\nFROM source_of_daily_orders\nWHERE order_date BETWEEN :start AND :end\n"
DRAFT = Draft(
    "daily_orders",
    "daily_orders",
    PROPOSAL,
    SELECT,
    "sql/daily_orders.sql",
    "2026-01-03",
    "drafted from job.sql",
    UNSURE,
)
FOUND = Initiated(
    "daily_orders",
    "shop.main.daily_orders",
    PROPOSAL,
    "\n".join(target_lines(DRAFT)) + "\n",
    source_text(SELECT, ["The SELECT that recomputes daily_orders."], UNSURE),
    ("reslice.yml", "sql/daily_orders.sql"),
    ("a note",),
    UNSURE,
    "reslice plan daily_orders 2026-01-03",
)
MADE = [LedgerMade("reslice", ("runs", "fences"), ()), LedgerMade("other", (), ("runs", "fences"))]
WITH_VIEWS = by_schema(
    [
        LedgerMade("reslice", ("runs", "kept_0123456789ab"), ("fences",), ("public.daily_orders_current",)),
        LedgerMade("reslice", ("kept_ba9876543210",), ("runs", "fences")),
    ]
)

TEXTS = {
    "init.txt": lambda: init_text(FOUND, place="-C shop"),
    "init_contract.yml": lambda: new_file("duckdb:///shop.duckdb", DRAFT),
    "init_source.sql": lambda: FOUND.source,
    "init_ledger.txt": lambda: ledger_text(MADE, way_on="reslice doctor", place="-C shop"),
    "init_ledger_views.txt": lambda: ledger_text(WITH_VIEWS, way_on="reslice doctor"),
    "init_ledger_postgresql.sql": lambda: ledger_sql_text(
        ['CREATE SCHEMA IF NOT EXISTS "reslice"', 'GRANT SELECT ON "orders" TO "loader"'],
        note=LEDGER_NOTES["postgresql"],
    ),
    "init_ledger_there.txt": lambda: ledger_text(MADE[1:], way_on="reslice doctor"),
    "init_ledger.sql": lambda: ledger_sql_text(["CREATE SCHEMA reslice", "CREATE TABLE reslice.runs (id VARCHAR)"]),
    "init.json": lambda: dumped(init_json(FOUND, place="-C shop"), "utf-8"),
    "init_ledger.json": lambda: dumped(ledger_json(MADE, (), way_on="reslice doctor"), "utf-8"),
    "init_ledger_sql.json": lambda: dumped(ledger_json((), ["SELECT 1"], way_on="reslice init --ledger"), "utf-8"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_init_says(name: str) -> None:
    agree(name, TEXTS[name]())
