"""The line of the example's crontab, run by a shell as cron runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.schedulers import shops

CRON = shops.EXAMPLES / "cron"
RESLICE = Path(sys.executable).parent
HOLDER = """import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def yesterday() -> str:
    return f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"


def crontab(shop: Path) -> tuple[dict[str, str], str]:
    """Return the variables and the command of the crontab, with the shop where this test has it."""
    text = (CRON / "crontab").read_text().replace("/srv/shop/.venv/bin", str(RESLICE)).replace("/srv/shop", str(shop))
    variables = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    (command,) = re.findall(r"^15 3 \* \* \* +(.+)$", text, re.MULTILINE)
    return {**variables, "HOME": str(shop), "LOGNAME": "shop", "SHELL": "/bin/sh"}, command


def start(shop: Path, *more: str, pauses: str = "0") -> subprocess.Popen[str]:
    shutil.copy(CRON / "nightly.sh", shop)
    variables, command = crontab(shop)
    line = " ".join([command, *more]).replace("%", "\n")
    return subprocess.Popen(
        ["/bin/sh", "-c", line],
        env={**variables, "PAUSES": pauses},
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code, and what cron would mail."""
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture
def two_days(shop: Path) -> Path:
    """Return a shop with two orders yesterday, in the first and the last second, and one today."""
    day, today = yesterday(), f"{datetime.now(UTC):%Y-%m-%d}"
    shops.execute(
        shop,
        f"INSERT INTO orders VALUES (91, '{day} 00:00:00+00', 'web', 10), (92, '{day} 23:59:59+00', 'web', 20),"
        f" (93, '{today} 00:00:00+00', 'web', 40)",
    )
    return shop


def test_two_lines_at_the_same_moment_are_one_result_and_no_mail(two_days: Path) -> None:
    day = yesterday()
    processes = [start(two_days), start(two_days)]
    assert [ended(process) for process in processes] == [(0, ""), (0, "")]
    assert shops.rows(two_days, "daily_orders") == [(day, "web", 2, 30)]
    assert shops.states(two_days) == [(day, "published"), (day, "unchanged")]


def test_a_range_by_hand(shop: Path) -> None:
    assert ended(start(shop, "2026-01-05..2026-01-06")) == (0, "")
    assert shops.rows(shop, "daily_orders") == [
        ("2026-01-05", "store", 1, 500),
        ("2026-01-05", "web", 2, 2700),
        ("2026-01-06", "web", 1, 300),
    ]


def test_a_stop_is_mailed_with_its_exit_code_and_not_tried_again(shop: Path) -> None:
    shops.execute(shop, "INSERT INTO daily_orders VALUES ('2026-01-07', 'web', 3, 4000)")
    code, mail = ended(start(shop, "2026-01-07", pauses="30 30"))
    assert code == 3
    assert "stopped[empty_slice, total_change]: daily_orders for 2026-01-07" in mail
    assert mail.endswith("\nexit 3 of: reslice run daily_orders 2026-01-07\n")
    assert shops.states(shop) == [("2026-01-07", "stopped")]


def test_a_busy_database_is_tried_again_and_mailed_when_it_stays_busy(shop: Path) -> None:
    shops.without_waiting(shop)
    database = str(shop / "shop.duckdb")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    code, mail = ended(start(shop, "2026-01-05", pauses="0 0"))
    assert (code, mail.count("failed[database_busy]")) == (4, 1)
    assert mail.endswith("\nexit 4 of: reslice run daily_orders 2026-01-05\n")

    patient = start(shop, "2026-01-05", pauses="0 " * 200)
    with pytest.raises(subprocess.TimeoutExpired):
        patient.wait(timeout=1)
    holder.communicate(timeout=10)
    assert ended(patient) == (0, "")
    assert shops.states(shop) == [("2026-01-05", "published")]
