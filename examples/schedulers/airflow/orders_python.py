"""Orders at night with the Python API: Airflow 3, TaskFlow."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import CronDataIntervalTimetable, dag, task
from airflow.sdk.exceptions import AirflowFailException


@task(retries=3, retry_delay=timedelta(minutes=5))
def run_daily_orders(data_interval_start: datetime, data_interval_end: datetime) -> dict[str, str]:
    """Recompute the data interval; what it returns is shown as the task's XCom."""
    import reslice

    contract = Path(os.environ.get("SHOP", "/srv/shop")) / "reslice.yml"
    try:
        orders = reslice.open(contract).target("daily_orders")
        run = orders.run(interval=(str(data_interval_start), str(data_interval_end)))
    except reslice.ResliceError as error:
        if error.retry:
            raise  # an error like any other: Airflow tries again
        raise AirflowFailException(f"{error}; {error.unchanged}; next: {error.next}") from error
    return {"run": str(run.id), "outcome": str(run.outcome), "fingerprint": str(run.after)}


@dag(schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), start_date=datetime(2026, 1, 1, tzinfo=UTC))
def daily_orders_python() -> None:
    """Each night the day that ended."""
    run_daily_orders()  # type: ignore[call-arg]  # Airflow passes the interval


daily_orders_python()
