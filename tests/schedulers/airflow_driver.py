"""Drives a real Airflow, in its own environment: `python airflow_driver.py DAGS WORK` answers with JSON in WORK.

DAGS is the folder of the DAG files. WORK/NAME is a shop for each case; what a case leaves in it is for the caller to
read. `answers.json` has how each DAG run ended, and the intervals that Airflow schedules.
"""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.serialization.serialized_objects import DagSerialization

HOLDER = """import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""
RUNS = {
    # case: the DAG and the logical dates of its runs, one after the other
    "bash": ("daily_orders", ["2026-01-06T00:00", "2026-01-06T00:00"]),
    "python": ("daily_orders_python", ["2026-01-06T00:00", "2026-01-06T00:00"]),
    "weekly": ("weekly_orders", ["2026-01-12T00:00"]),
    "monthly": ("monthly_orders", ["2026-02-01T00:00"]),
    "spring": ("new_york_orders", ["2026-03-09T04:00"]),
    "autumn": ("new_york_orders", ["2026-11-02T05:00"]),
    "at_six": ("orders_at_six", ["2026-01-06T06:00"]),
    "six_in_new_york": ("six_in_new_york", ["2026-03-09T10:00"]),
    "bash_stopped": ("daily_orders", ["2026-01-08T00:00"]),
    "python_stopped": ("daily_orders_python", ["2026-01-08T00:00"]),
    "only_triggers": ("only_triggers", ["2026-01-06T00:00"]),
    "weeks_from_sunday": ("weeks_from_sunday", ["2026-01-11T00:00"]),
    "days_from_six": ("days_from_six", ["2026-01-06T06:00"]),
    "ds_to_next_ds": ("ds_to_next_ds", ["2026-01-06T00:00"]),
    "by_hand": ("daily_orders", [None]),
    "no_such_target": ("no_such_target", ["2026-01-06T00:00"]),
}
BUSY = {"bash_busy": "daily_orders", "python_busy": "daily_orders_python"}
EXITS = (0, 1, 2, 3, 4, 5, 6, 130, 143)
SCHEDULED = ("daily_orders", "weekly_orders", "monthly_orders", "new_york_orders", "orders_at_six", "only_triggers")


def run(dag, shop, logical_date, on_retry=None):
    """Run a DAG once, without pauses between its tries, and say how it ended."""
    os.environ["SHOP"] = str(shop)
    os.environ["SHOP_DATABASE"] = f"duckdb:///{shop / 'shop.duckdb'}"
    (task,) = dag.tasks
    task.retry_delay = timedelta(0)
    task.on_retry_callback = [on_retry] if on_retry else []
    if hasattr(task, "bash_command"):
        task.cwd = str(shop)
    ended = dag.test(logical_date=logical_date and pendulum.parse(logical_date))
    (instance,) = ended.get_task_instances()
    interval = [str(each) for each in (ended.data_interval_start, ended.data_interval_end)]
    return {"state": instance.state, "tries": instance.try_number, "interval": interval}


def run_while_held(dag, shop):
    """Run a DAG while another process has the database file open, until the first try has failed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(shop / "shop.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    try:
        return run(dag, shop, "2026-01-06T00:00", on_retry=lambda context: holder.communicate())
    finally:
        holder.kill()


def scheduled(dag, first, last):
    """Return the data intervals of the runs that Airflow itself would make."""
    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    infos = dag.iter_dagrun_infos_between(pendulum.parse(first), pendulum.parse(last))
    return [[str(info.data_interval.start), str(info.data_interval.end)] for info in infos]


def main(dags_folder, work):
    """Run every case and write the answers."""
    bag = BundleDagBag(dags_folder, bundle_path=Path(dags_folder), bundle_name="dags-folder")
    assert not bag.import_errors, bag.import_errors
    answers = {"scheduled": {}, "runs": {}}
    for name in SCHEDULED:
        answers["scheduled"][name] = scheduled(bag.dags[name], "2026-01-01", "2026-02-28")
    answers["scheduled"]["spring"] = scheduled(bag.dags["new_york_orders"], "2026-03-07T05:00", "2026-03-10T04:00")
    for case, (name, dates) in RUNS.items():
        answers["runs"][case] = [run(bag.dags[name], work / case, date) for date in dates]
    for case, name in BUSY.items():
        answers["runs"][case] = [run_while_held(bag.dags[name], work / case)]
    for code in EXITS:
        answers["runs"][f"exit_{code}"] = [run(bag.dags[f"exit_{code}"], work, "2026-01-06T00:00")]
    (work / "answers.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
