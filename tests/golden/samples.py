"""Answers built by hand from the retail example: the numbers are those of its two fixture arrays, not of a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from reslice.contract import Action, Unit
from reslice.errors import (
    Failure,
    Interrupted,
    OutcomeUnknown,
    PartlyPublished,
    Refused,
    Retryable,
    Stopped,
)
from reslice.ranges import Range, Scope
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.values import (
    Change,
    Check,
    Consent,
    ControlLine,
    Counts,
    Diff,
    Fingerprint,
    GroupDiff,
    Guard,
    Kind,
    Outcome,
    Run,
    SliceDiff,
    Total,
)

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
ABOUT = "daily_orders for 2026-01-01..2026-01-02, both days included, 2 slices"


def days(first: date, last: date) -> Scope:
    return Scope.of(Range(Unit.DAY, "UTC", first, last))


SCOPE = days(FIRST, SECOND)

GROUPS = (
    GroupDiff(
        Change.CHANGED,
        "2026-01-02",
        {"order_date": "2026-01-02", "channel": "web"},
        {"order_count": 1, "amount_cents": 7000},
        {"order_count": 2, "amount_cents": 19000},
    ),
    GroupDiff(
        Change.REMOVED,
        "2026-01-01",
        {"order_date": "2026-01-01", "channel": "web"},
        {"order_count": 1, "amount_cents": 12000},
        None,
    ),
    GroupDiff(
        Change.CHANGED,
        "2026-01-02",
        {"order_date": "2026-01-02", "channel": "store"},
        {"order_count": 1, "amount_cents": 5200},
        {"order_count": 1, "amount_cents": 5600},
    ),
)
DIFF = Diff(
    scope=SCOPE,
    slices=(
        SliceDiff(FIRST, "2026-01-01", Fingerprint(2, 700), Fingerprint(1, 300), removed=1, unchanged=1),
        SliceDiff(SECOND, "2026-01-02", Fingerprint(2, 500), Fingerprint(2, 900), changed=2),
    ),
    groups=GROUPS,
    groups_left_out=0,
    totals={"order_count": Total(4, 4), "amount_cents": Total(28700, 29100)},
    columns=("amount_cents", "channel", "order_count", "order_date"),
)
SAME = Diff(
    scope=SCOPE,
    slices=(
        SliceDiff(FIRST, "2026-01-01", Fingerprint(1, 300), Fingerprint(1, 300), unchanged=1),
        SliceDiff(SECOND, "2026-01-02", Fingerprint(2, 900), Fingerprint(2, 900), unchanged=2),
    ),
    groups=(),
    groups_left_out=0,
    totals={"order_count": Total(4, 4), "amount_cents": Total(29100, 29100)},
    columns=DIFF.columns,
)
CONTROLS = (
    ControlLine("controls", "orders", "sum(order_count)", 4, 4),
    ControlLine("controls", "cents", "sum(amount_cents)", 29100, 29100),
)
CHECKS = (
    Check("key_repeated", True, "no key is repeated in 3 staged rows"),
    Check("outside_range", True, "every staged row lies in the range"),
)
QUIET_GUARD = Guard("total_change", Action.STOP, False, "amount_cents moves by 1.4%", "total_change: 50%")
PLAN = Run(
    command="plan",
    target="daily_orders",
    table="retail.main.daily_orders",
    scope=SCOPE,
    outcome=Outcome.PLANNED,
    diff=DIFF,
    checks=CHECKS,
    guards=(QUIET_GUARD,),
    controls=CONTROLS,
    controls_declared=True,
    sql=(
        'DELETE FROM "daily_orders" WHERE "order_date" >= $start AND "order_date" < $next',
        'INSERT INTO "daily_orders" SELECT * FROM staged;',
        "-- the run's row in the ledger",
        "COMMIT",
    ),
)
PUBLISHED = replace(
    PLAN,
    command="run",
    id="r-0002",
    outcome=Outcome.PUBLISHED,
    target_changed=True,
    rows_after=3,
    after=Fingerprint(3, 1200),
    slices_done=("2026-01-01", "2026-01-02"),
)
UNCHANGED = replace(PUBLISHED, id="r-0003", outcome=Outcome.UNCHANGED, target_changed=False, diff=SAME, slices_done=())
REWRITTEN = replace(
    PUBLISHED, id="r-0004", target_changed=False, rewritten=True, diff=SAME, slices_done=("2026-01-01", "2026-01-02")
)
PER_SLICE = replace(PUBLISHED, per_slice=True)
PLAN_OF_NOTHING = replace(PLAN, diff=SAME)
PLAN_WITH_GUARDS = replace(
    PLAN,
    controls=(),
    controls_declared=False,
    guards=(
        Guard(
            "empty_slice",
            Action.STOP,
            True,
            "2026-01-01 would go from 2 groups to 0",
            "empty_slice: stop",
            ("2026-01-01",),
        ),
        Guard("removed_groups", Action.REPORT, True, "1 group would be removed", "removed_groups: report"),
        Guard("total_change", Action.STOP, True, "amount_cents moves by 57.5%", "total_change: 50%"),
    ),
    warnings=("the report daily_revenue reads daily_orders and was not compared",),
    notes=("r-0001 did not finish: its process is gone, and it published nothing",),
)
DOUBLED_GROUP = GroupDiff(
    Change.CHANGED,
    "2026-01-02",
    {"order_date": "2026-01-02", "channel": "web"},
    {"order_count": 4, "amount_cents": 38000},
    {"order_count": 2, "amount_cents": 19000},
    rows_before=2,
)
DOUBLED_STORE = GroupDiff(
    Change.CHANGED,
    "2026-01-02",
    {"order_date": "2026-01-02", "channel": "store"},
    {"order_count": 2, "amount_cents": 11200},
    {"order_count": 1, "amount_cents": 5600},
    rows_before=2,
)
HEALING = replace(
    PUBLISHED,
    id="r-0009",
    scope=days(SECOND, SECOND),
    diff=Diff(
        scope=days(SECOND, SECOND),
        slices=(SliceDiff(SECOND, "2026-01-02", Fingerprint(4, 1800), Fingerprint(2, 900), changed=2, repeated=2),),
        groups=(DOUBLED_GROUP, DOUBLED_STORE),
        groups_left_out=0,
        totals={"order_count": Total(6, 3), "amount_cents": Total(49200, 24600)},
        columns=DIFF.columns,
    ),
    rows_after=2,
    after=Fingerprint(2, 900),
    slices_done=("2026-01-02",),
    controls=(),
    controls_declared=False,
)
HOSTILE = replace(
    PLAN,
    target="daily_orders",
    diff=replace(
        DIFF,
        groups=(
            GroupDiff(
                Change.ADDED, "2026-01-01", {"day": "2026-01-01", "channel": None}, None, {"price": None}, rows_before=0
            ),
            GroupDiff(
                Change.ADDED, "2026-01-01", {"day": "2026-01-01", "channel": ""}, None, {"price": Decimal("1E+3")}
            ),
            GroupDiff(
                Change.CHANGED,
                "2026-01-01",
                {"day": "2026-01-01", "channel": "\x1b[2Jweb\nnext: rm"},
                {"price": Decimal("0.10")},
                {"price": None},
            ),
            GroupDiff(Change.REMOVED, "2026-01-01", {"day": "2026-01-01", "channel": "web "}, {"price": True}, None),
            GroupDiff(Change.REMOVED, "2026-01-01", {"day": "2026-01-01", "channel": "東京"}, {"price": 1}, None),
        ),
        totals={"price": Total(None, Decimal("1000.10"))},
    ),
    controls=(),
)
MANY = replace(
    PUBLISHED,
    diff=replace(
        DIFF,
        groups=tuple(
            GroupDiff(
                Change.ADDED,
                "2026-01-01",
                {"order_date": "2026-01-01", "channel": f"shop {number}"},
                None,
                dict.fromkeys(("a", "b", "c", "d", "e"), number),
            )
            for number in range(24)
        ),
        groups_left_out=1000,
    ),
)
VERIFIED = replace(
    PLAN,
    command="verify",
    kind=Kind.VERIFY,
    outcome=Outcome.UNCHANGED,
    rows_after=3,
    after=Fingerprint(3, 1200),
    diff=SAME,
    repeatable=True,
    equals_source=True,
    downstream=(
        ControlLine("daily_revenue", "orders", "sum(order_count)", 4, 4),
        ControlLine("daily_revenue", "cents", "sum(amount_cents)", 29100, 29100),
    ),
)
MOVED = replace(VERIFIED, diff=DIFF, rows_after=4, after=Fingerprint(4, 1200), equals_source=False)
UNSTABLE = replace(
    VERIFIED,
    repeatable=False,
    unstable_columns=("loaded_at",),
    downstream=(ControlLine("daily_revenue", "orders", "sum(order_count)", 5, 4, ("2026-01-02",)),),
)
GAPS = Scope((*SCOPE.ranges, *days(date(2026, 1, 5), date(2026, 1, 5)).ranges))
WITH_AFFECTED = replace(PLAN, scope=GAPS, diff=replace(DIFF, scope=GAPS))

UNTOUCHED = "daily_orders is as run r-0001 left it; nothing was written"
STOPPED = Stopped(
    ABOUT,
    [
        Failure(
            "empty_slice",
            "a slice that has rows may not become empty  (default; the contract has no line for it)",
            ("2026-01-01 would go from 2 groups to 0", "e.g. (2026-01-01, web) order_count 1, amount_cents 12000"),
            "reslice show r-0002 --diff",
        )
    ],
    unchanged=UNTOUCHED,
    run=replace(
        PLAN_WITH_GUARDS, command="run", id="r-0002", outcome=Outcome.STOPPED, rows_after=None, after=None, notes=()
    ),
)
STOPPED.consent = "reslice run --approve r-0002"
REFUSED = Refused(
    ABOUT,
    [
        Failure(
            "key_repeated",
            "one staged row per order_date, channel",
            ("1 key is repeated, in 2 rows", "e.g. (2026-01-02, store) is there 2 times"),
            "",
        ),
        Failure(
            "measure_minimum",
            "amount_cents: {min: 0}  (reslice.yml, line 11)",
            ("1 row is below it", "e.g. (2026-01-02, web\x1b[31m) has -500"),
            "correct sql/daily_orders.sql, then  reslice plan daily_orders 2026-01-01..2026-01-02",
        ),
    ],
    unchanged=UNTOUCHED,
)
BUSY = Retryable(
    ABOUT,
    [
        Failure(
            "database_busy",
            "the database file for writing",
            ("retail.duckdb is held by process 4711 (python)",),
            "reslice run daily_orders 2026-01-01..2026-01-02",
        )
    ],
    unchanged="daily_orders was not opened",
)
UNKNOWN = OutcomeUnknown(
    ABOUT,
    [Failure("outcome_unknown", "an answer to COMMIT", ("the database went away",), "reslice show r-0002")],
    unchanged="not known: daily_orders holds the old rows or the new rows, nothing between",
    run=replace(PUBLISHED, outcome=Outcome.UNKNOWN, target_changed=False, slices_done=(), rows_after=None, after=None),
)
PARTLY = PartlyPublished(
    ABOUT,
    [
        Failure(
            "partly_published",
            "2 slices, each in its own commit",
            ("published: 2026-01-01", "failed: 2026-01-02, another transaction changed the same rows"),
            "reslice run daily_orders 2026-01-01..2026-01-02",
        )
    ],
    unchanged="2026-01-02 of daily_orders is as it was",
    run=replace(
        PUBLISHED, outcome=Outcome.FAILED, slices_done=("2026-01-01",), per_slice=True, rows_after=None, after=None
    ),
)
STOPPED_BY_USER = Interrupted(
    ABOUT,
    [Failure("interrupted", "a run to its end", ("Ctrl-C while staging",), "")],
    unchanged=UNTOUCHED,
)

LEDGER_RUN = LedgerRun(
    id="r-0002",
    number=2,
    target="daily_orders",
    table="retail.main.daily_orders",
    kind="run",
    state="published",
    method="replace_slice",
    range_text="2026-01-01..2026-01-02",
    unit="day",
    slices=2,
    actor="anna@laptop",
    requested_at=datetime(2026, 1, 5, 6, 0, 0, 120_000, tzinfo=UTC),
    finished_at=datetime(2026, 1, 5, 6, 0, 1, 250_000, tzinfo=UTC),
    rows_before=4,
    rows_staged=3,
    rows_after=3,
    counts=Counts(0, 2, 1, 1),
    totals=DIFF.totals,
    fingerprint_base="4:1200",
    fingerprint_staged="3:1200",
    fingerprint_after="3:1200",
    columns=DIFF.columns,
    contract_digest="9f3c2a51",
    publish_order=1,
    lock_milliseconds=7,
    tool_version="0.1.0",
    engine_version="DuckDB 2.0.1",
    reason="the correction of o100 moved it to another day",
    consents=(Consent("removed_groups"),),
    approves="r-0001",
    restores="",
    kept_table="reslice.kept_5f1c2a9b3d07",
    groups_left_out=0,
    checks=CHECKS,
    controls=CONTROLS,
    warnings=(),
    error=None,
    sql=PLAN.sql,
    slice_rows=(
        LedgerSlice(
            "2026-01-01",
            "published",
            "2:700",
            "1:300",
            "1:300",
            0,
            0,
            1,
            1,
            datetime(2026, 1, 5, 6, 0, 1, 250_000, tzinfo=UTC),
        ),
        LedgerSlice("2026-01-02", "published", "2:500", "2:900", "2:900", 0, 2, 0, 0),
    ),
    groups=GROUPS,
)
LEDGER_STOPPED = replace(
    LEDGER_RUN,
    id="r-0001",
    number=1,
    state="stopped",
    rows_after=None,
    fingerprint_after=None,
    publish_order=None,
    lock_milliseconds=None,
    reason="",
    consents=(),
    approves="",
    controls=(),
    slice_rows=(),
    sql=(),
    error={
        "kind": "removed_groups",
        "asked": "removed_groups: stop  (reslice.yml, line 14)",
        "found": ["1 group would be removed", "e.g. (2026-01-01, web) order_count 1, amount_cents 12000"],
        "unchanged": "nothing was written",
        "next": "reslice run --approve r-0001",
    },
)
LEDGER_RUNNING = replace(
    LEDGER_STOPPED,
    id="r-0003",
    number=3,
    state="requested",
    alive=True,
    finished_at=None,
    rows_before=None,
    rows_staged=None,
    counts=None,
    totals={},
    fingerprint_base=None,
    fingerprint_staged=None,
    checks=(),
    groups=(),
    error=None,
)
LEDGER_GONE = replace(LEDGER_RUNNING, id="r-0004", number=4, alive=False)
LEDGER_MANY = replace(LEDGER_RUN, groups=MANY.diff.groups if MANY.diff else (), groups_left_out=1000)
