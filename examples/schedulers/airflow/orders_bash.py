"""Orders at night with the command line: one DAG for each kind of timetable."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from reslice_task import reslice_run

FROM = datetime(2026, 1, 1, tzinfo=UTC)

# Each night the day that ended. Not schedule="@daily": that only triggers, and its data interval is empty.
with DAG("daily_orders", schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), start_date=FROM):
    reslice_run("daily_orders")

# Weeks begin on Monday. "@weekly" begins on Sunday, and slices that are weeks refuse it.
with DAG("weekly_orders", schedule=CronDataIntervalTimetable("0 0 * * 1", timezone="UTC"), start_date=FROM):
    reslice_run("weekly_orders")

with DAG("monthly_orders", schedule=CronDataIntervalTimetable("0 0 1 * *", timezone="UTC"), start_date=FROM):
    reslice_run("monthly_orders")

# Days that a clock change makes shorter or longer: the timetable and the contract name the same zone.
with DAG(
    "new_york_orders", schedule=CronDataIntervalTimetable("0 0 * * *", timezone="America/New_York"), start_date=FROM
):
    reslice_run("new_york_orders")

# At six, and still whole days: both ends go back to midnight. In another zone than UTC, in_timezone(…) comes first.
with DAG("orders_at_six", schedule=CronDataIntervalTimetable("0 6 * * *", timezone="UTC"), start_date=FROM):
    reslice_run(
        "daily_orders",
        start="{{ data_interval_start.start_of('day') }}",
        end="{{ data_interval_end.start_of('day') }}",
    )
