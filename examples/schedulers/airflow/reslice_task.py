"""One task that runs reslice from a BashOperator, for the DAG files beside it.

A run's data interval is half-open, and so is `--interval`. The exit code decides whether Airflow tries again.
"""

from __future__ import annotations

import os
from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

SHOP = os.environ.get("SHOP", "/srv/shop")  # the folder of reslice.yml
RUN = 'reslice run {target} --interval "{start}" "{end}"; echo "exit $?"'


def judge(last_line: str) -> str:
    """Let a task succeed, be tried again, or fail at once, by the exit code on its last line."""
    if last_line == "exit 0":
        return last_line
    if last_line in ("exit 4", "exit 6"):  # busy, or part-way with --per-slice: the same command again
        raise AirflowException(f"reslice: {last_line}, trying again may help")
    raise AirflowFailException(f"reslice: {last_line}, a person decides; the log says what was found")


def reslice_run(
    target: str, start: str = "{{ data_interval_start }}", end: str = "{{ data_interval_end }}"
) -> BashOperator:
    """Make the task that recomputes the data interval of a target."""
    return BashOperator(
        task_id=f"run_{target}",
        bash_command=RUN.format(target=target, start=start, end=end),
        output_processor=judge,
        cwd=SHOP,
        retries=3,
        retry_delay=timedelta(minutes=5),
    )
