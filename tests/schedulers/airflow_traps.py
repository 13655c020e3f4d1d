"""What not to write, what the page says in passing, and every exit code: a DAG file beside those of the examples."""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from reslice_task import reslice_run

FROM = datetime(2026, 1, 1, tzinfo=UTC)

for code in (0, 1, 2, 3, 4, 5, 6, 130, 143):
    with DAG(f"exit_{code}", schedule=None, start_date=FROM):
        reslice_run("daily_orders").bash_command = f'(exit {code}); echo "exit $?"'

with DAG("only_triggers", schedule="@daily", start_date=FROM):
    reslice_run("daily_orders")

with DAG("weeks_from_sunday", schedule=CronDataIntervalTimetable("@weekly", timezone="UTC"), start_date=FROM):
    reslice_run("weekly_orders")

with DAG("days_from_six", schedule=CronDataIntervalTimetable("0 6 * * *", timezone="UTC"), start_date=FROM):
    reslice_run("daily_orders")

with DAG("no_such_target", schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), start_date=FROM):
    reslice_run("nightly_orders")

with DAG("ds_to_next_ds", schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), start_date=FROM):
    reslice_run("daily_orders").bash_command = 'reslice run daily_orders "{{ ds }}..{{ next_ds }}"; echo "exit $?"'

with DAG(
    "six_in_new_york", schedule=CronDataIntervalTimetable("0 6 * * *", timezone="America/New_York"), start_date=FROM
):
    reslice_run(
        "new_york_orders",
        start="{{ data_interval_start.in_timezone('America/New_York').start_of('day') }}",
        end="{{ data_interval_end.in_timezone('America/New_York').start_of('day') }}",
    )
