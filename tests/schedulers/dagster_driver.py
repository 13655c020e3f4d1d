"""Drives a real Dagster, in its own environment: `python dagster_driver.py EXAMPLES WORK` answers with JSON in WORK.

WORK/NAME is a shop for each case; what a case leaves in it is for the caller to read. `answers.json` has how each
materialisation ended.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

HOLDER = """import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""
START, END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def materialise(asset, **options):
    """Materialise once in an instance of its own, and say how it ended."""
    with dg.DagsterInstance.ephemeral() as instance:
        ended = dg.materialize([asset], instance=instance, raise_on_error=False, **options)
    failures = [event.step_failure_data.user_failure_data for event in ended.all_events if event.is_step_failure]
    return {
        "success": ended.success,
        "retries": sum(event.is_step_up_for_retry for event in ended.all_events),
        "partitions": [event.partition for event in ended.get_asset_materialization_events()],
        "metadata": [
            values(event.step_materialization_data.materialization.metadata)
            for event in ended.get_asset_materialization_events()
        ],
        "failures": [values(failure.metadata) for failure in failures if failure],
    }


def values(metadata):
    """Return metadata as plain values."""
    return {name: value.value for name, value in metadata.items()}


class Impatient:
    """Stands in for RetryRequested: does something before the next try, and does not wait for it."""

    def __init__(self, before_next_try):
        self.kind = dg.RetryRequested
        self.before_next_try = before_next_try

    def __call__(self, max_retries, seconds_to_wait):
        """Make the request that the example makes, without its pause."""
        self.before_next_try()
        return self.kind(max_retries=max_retries, seconds_to_wait=0)


def materialise_while_held(asset, shop, *, let_go):
    """Materialise while another process has the database file open; with `let_go`, until the first try has failed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(shop / "shop.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    kind = dg.RetryRequested
    dg.RetryRequested = Impatient(lambda: holder.communicate() if let_go else None)
    try:
        return materialise(asset, partition_key="2026-01-05")
    finally:
        dg.RetryRequested = kind
        holder.kill()


def main(examples, work):
    """Run every case and write the answers."""
    sys.path.insert(0, examples)
    import orders

    def at(case):
        orders.SHOP = work / case
        os.environ["SHOP_DATABASE"] = f"duckdb:///{work / case / 'shop.duckdb'}"
        return work / case

    days, answers = orders.daily_orders, {}
    at("day")
    answers["day"] = [materialise(days, partition_key="2026-01-05") for _ in range(2)]
    at("backfill")
    answers["backfill"] = [materialise(days, tags={START: "2026-01-05", END: "2026-01-12"})]
    at("zone")
    keys = ["2026-03-08", "2026-11-01"]
    answers["zone"] = [materialise(orders.new_york_orders, partition_key=key) for key in keys]
    at("stopped")
    answers["stopped"] = [materialise(days, partition_key="2026-01-07")]
    answers["busy"] = [materialise_while_held(days, at("busy"), let_go=True)]
    answers["held"] = [materialise_while_held(days, at("held"), let_go=False)]
    schedule = orders.definitions.get_schedule_def("nightly_schedule")
    with dg.DagsterInstance.ephemeral() as instance:
        night = dg.build_schedule_context(instance, scheduled_execution_time=at_three())
        (request,) = schedule.evaluate_tick(night).run_requests
    answers["nightly"] = request.partition_key
    (work / "answers.json").write_text(json.dumps(answers, indent=1))


def at_three():
    """Return three in the morning, some day."""
    from datetime import UTC, datetime

    return datetime(2026, 1, 6, 3, tzinfo=UTC)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
