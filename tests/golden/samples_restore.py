"""Answers of status and restore, built by hand from the retail example."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from reslice.errors import Failure, Refused, Stopped
from reslice.values import Change, Check, Diff, Fingerprint, GroupDiff, Kind, Outcome, SliceDiff, Total
from tests.golden.samples import CONTROLS, DIFF, FIRST, LEDGER_RUN, PLAN, SAME, SCOPE, SECOND, days

WEEK = days(FIRST, date(2026, 1, 7))
STATUS = replace(
    PLAN,
    command="status",
    outcome=Outcome.UNCHANGED,
    scope=WEEK,
    diff=Diff(
        scope=WEEK,
        slices=(
            SliceDiff(
                FIRST,
                "2026-01-01",
                Fingerprint(2, 700),
                Fingerprint(1, 300),
                removed=1,
                unchanged=1,
                totals={"order_count": Total(2, 1), "amount_cents": Total(16500, 4500)},
            ),
            SliceDiff(
                SECOND,
                "2026-01-02",
                Fingerprint(4, 500),
                Fingerprint(2, 900),
                changed=2,
                repeated=2,
                totals={"order_count": Total(2, 3), "amount_cents": Total(12200, 24600)},
            ),
            SliceDiff(
                date(2026, 1, 3),
                "2026-01-03",
                Fingerprint(1, 40),
                Fingerprint(),
                removed=1,
                totals={"order_count": Total(1, None), "amount_cents": Total(3100, None)},
            ),
            SliceDiff(
                date(2026, 1, 4),
                "2026-01-04",
                Fingerprint(1, 41),
                Fingerprint(1, 41),
                unchanged=1,
                totals={"order_count": Total(1, 1), "amount_cents": Total(100, 100)},
            ),
            SliceDiff(
                date(2026, 1, 5),
                "2026-01-05",
                Fingerprint(),
                Fingerprint(1, 42),
                added=1,
                totals={"order_count": Total(None, 1), "amount_cents": Total(None, 2500)},
            ),
        ),
        groups=(),
        groups_left_out=0,
        totals={"order_count": Total(6, 6), "amount_cents": Total(31900, 31700)},
        columns=DIFF.columns,
    ),
    guards=(),
    controls=(),
    controls_declared=False,
    rows_after=8,
    after=Fingerprint(8, 1281),
    equals_source=False,
    sql=(),
)
STATUS_EQUAL = replace(
    STATUS,
    scope=SCOPE,
    diff=SAME,
    controls=CONTROLS,
    controls_declared=True,
    rows_after=3,
    after=Fingerprint(3, 1200),
    equals_source=True,
)
STATUS_SINCE = replace(
    STATUS_EQUAL,
    affected=("2025-12-31",),
    warnings=("corrections also touch 2025-12-31, outside this range, which was not compared",),
    notes=("only the slices that corrections since 2026-01-04 06:00:00 UTC touch are compared",),
)
UNTOUCHED_SCOPE = days(date(2026, 2, 1), date(2026, 2, 28))
STATUS_UNTOUCHED = replace(
    STATUS_EQUAL,
    scope=UNTOUCHED_SCOPE,
    diff=Diff(UNTOUCHED_SCOPE, (), (), 0, {}, DIFF.columns),
    checks=(),
    controls=(),
    rows_after=0,
    after=Fingerprint(),
    notes=("no correction since 2026-01-04 06:00:00 UTC touches a slice of this range; the source was not evaluated",),
)

BACK = Diff(
    scope=SCOPE,
    slices=(
        SliceDiff(FIRST, "2026-01-01", Fingerprint(1, 300), Fingerprint(2, 700), added=1, unchanged=1),
        SliceDiff(SECOND, "2026-01-02", Fingerprint(2, 900), Fingerprint(2, 500), changed=2),
    ),
    groups=(
        GroupDiff(
            Change.ADDED,
            "2026-01-01",
            {"order_date": "2026-01-01", "channel": "web"},
            None,
            {"order_count": 1, "amount_cents": 12000},
            rows_before=0,
        ),
        GroupDiff(
            Change.CHANGED,
            "2026-01-02",
            {"order_date": "2026-01-02", "channel": "store"},
            {"order_count": 1, "amount_cents": 5600},
            {"order_count": 1, "amount_cents": 5200},
        ),
        GroupDiff(
            Change.CHANGED,
            "2026-01-02",
            {"order_date": "2026-01-02", "channel": "web"},
            {"order_count": 2, "amount_cents": 19000},
            {"order_count": 1, "amount_cents": 7000},
        ),
    ),
    groups_left_out=0,
    totals={"order_count": Total(4, 4), "amount_cents": Total(29100, 28700)},
    columns=DIFF.columns,
)
HELD = (
    Check("kept_columns", True, "the table has the columns of the rows that were kept"),
    Check("kept_gone", True, "the rows are those that r-0002 found, by their fingerprints"),
    Check("later_run", True, "no later run has written these slices after r-0002"),
    Check("changed_since_run", True, "every slice that is written holds what r-0002 left"),
)
RESTORE_PLANNED = replace(
    PLAN,
    command="restore",
    kind=Kind.RESTORE,
    restores="r-0002",
    diff=BACK,
    checks=HELD,
    guards=(),
    controls=(),
)
RESTORED = replace(
    RESTORE_PLANNED,
    id="r-0003",
    outcome=Outcome.RESTORED,
    target_changed=True,
    rows_after=4,
    after=Fingerprint(4, 1200),
    slices_done=("2026-01-01", "2026-01-02"),
)
RESTORED_HEALED = replace(
    RESTORED,
    scope=days(SECOND, SECOND),
    diff=replace(BACK, scope=days(SECOND, SECOND), slices=BACK.slices[1:], groups=BACK.groups[1:]),
    slices_done=("2026-01-02",),
    restores="r-0004",
    warnings=("2 rows with a repeated key come back, which r-0004 had healed",),
    notes=("r-0004 is a restore itself: this puts back what r-0002 had written",),
)
RESTORE_UNCHANGED = replace(
    RESTORED, id="r-0005", outcome=Outcome.UNCHANGED, target_changed=False, diff=SAME, rows_after=3, slices_done=()
)

AS_IT_WAS = "daily_orders is as it was; nothing was written"
UNCONFIRMED = Stopped(
    "daily_orders, restore r-0002",
    [
        Failure(
            "unconfirmed",
            "a person who has looked and says yes",
            (
                "there is no terminal to ask on, and no --yes",
                "2 slices would be put back: 1 added, 2 changed, 0 removed, 1 unchanged; rows 3 → 4",
            ),
            "reslice show r-0002 --diff",
        )
    ],
    unchanged=AS_IT_WAS,
    run=RESTORE_PLANNED,
)
UNCONFIRMED.consent = "reslice restore r-0002 2026-01-01..2026-01-02 --yes"
ASKED = "the slices put back as r-0002 found them, and nothing later undone with it"
IN_THE_WAY = Refused(
    "daily_orders, restore r-0002",
    [
        Failure(
            "later_run",
            ASKED,
            ("r-0007 wrote 2026-01-02 after r-0002 did; it can be restored first",),
            "reslice restore r-0007",
        ),
        Failure(
            "changed_since_run",
            ASKED,
            ("2026-01-01 changed since r-0002", "2026-01-01 had 1 row when r-0002 left it, and has 2 rows now"),
            "reslice status daily_orders 2026-01-01..2026-01-02",
        ),
    ],
    unchanged=AS_IT_WAS,
    run=replace(RESTORE_PLANNED, id="r-0008", outcome=Outcome.REFUSED, checks=()),
)
LEDGER_RESTORED = replace(
    LEDGER_RUN,
    id="r-0003",
    number=3,
    kind="restore",
    state="restored",
    restores="r-0002",
    approves="",
    consents=(),
    reason="the correction of o100 was wrong",
    checks=HELD,
    controls=(),
    groups=BACK.groups,
    totals=BACK.totals,
)
