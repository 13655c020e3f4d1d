"""Orders at night with Dagster: one partition is one closed slice."""

import os
from pathlib import Path

import dagster as dg

import reslice

SHOP = Path(os.environ.get("SHOP", "/srv/shop"))  # the folder of reslice.yml


def run_window(context: dg.AssetExecutionContext, target: str) -> dg.MaterializeResult:
    """Recompute the partitions of this step: a window of time whose end is not included."""
    window = context.partition_time_window
    try:
        handle = reslice.open(SHOP / "reslice.yml").target(target)
        run = handle.run(interval=(window.start.isoformat(), window.end.isoformat()))
    except reslice.ResliceError as error:
        if error.retry:
            raise dg.RetryRequested(max_retries=3, seconds_to_wait=300) from error
        found = {"error": error.kind, "unchanged": error.unchanged, "next": error.next}
        raise dg.Failure(str(error), metadata=found, allow_retries=False) from error
    counts = run.diff.counts
    return dg.MaterializeResult(
        metadata={
            "run": run.id,
            "outcome": str(run.outcome),
            "range": run.scope.text,
            "rows": run.rows_after,
            "added": counts.added,
            "changed": counts.changed,
            "removed": counts.removed,
            "fingerprint": str(run.after),
        }
    )


# A backfill is one step over all its partitions: one closed range, in one commit.
@dg.asset(
    partitions_def=dg.DailyPartitionsDefinition(start_date="2026-01-01"),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def daily_orders(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Orders per day and channel."""
    return run_window(context, "daily_orders")


# Without that line each partition is a run of its own. The zone is that of the contract.
@dg.asset(partitions_def=dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="America/New_York"))
def new_york_orders(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Orders per day and channel, by the clock in New York."""
    return run_window(context, "new_york_orders")


nightly = dg.build_schedule_from_partitioned_job(
    dg.define_asset_job("nightly", selection=[daily_orders]), hour_of_day=3
)
definitions = dg.Definitions(assets=[daily_orders, new_york_orders], schedules=[nightly])
