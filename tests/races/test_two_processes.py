"""Two processes that want one file: one waits or says who holds it, and neither publishes twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import orders_project as project
from tests.model import Call
from tests.races.conftest import D1, D3, Shared

COMMAND = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main())"]
HOLDER = """import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""
ALL = Call(project.FREE, D1, D3)
Make = Callable[..., Shared]


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    words = ["run", project.FREE, f"{D1}..{D3}", *options]
    return subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output + errors


def test_who_holds_the_file_is_named_and_waited_for(shared: Make) -> None:
    made = shared()
    folder = made.contract.parent
    made.connection.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / "orders.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    code, said = ended(start(folder, "--wait", "200ms"))
    assert code == 4
    assert said.startswith(f"waiting: process {holder.pid} (") and "\nfailed[database_busy]: " in said
    assert f"process {holder.pid} " in said

    patient = start(folder, "--wait", "60s")
    with pytest.raises(subprocess.TimeoutExpired):
        patient.wait(timeout=1.5)
    holder.communicate(timeout=10)
    code, said = ended(patient)
    assert code == 0, said
    with project.connect(folder, read_only=True) as connection:
        assert Counter(row.values for row in project.rows_of(connection)) == Counter(
            row.values for row in made.new(ALL).rows
        )
        assert [run.state for run in project.runs_of(connection)] == ["published", "published"]


@pytest.mark.parametrize("options", [(), ("--per-slice",)], ids=["whole", "per slice"])
def test_two_commands_at_the_same_moment(shared: Make, options: tuple[str, ...]) -> None:
    made = shared()
    folder = made.contract.parent
    made.connection.close()
    processes = [start(folder, "--wait", "60s", *options) for _ in range(2)]
    assert [ended(process)[0] for process in processes] == [0, 0]
    with project.connect(folder, read_only=True) as connection:
        assert Counter(row.values for row in project.rows_of(connection)) == Counter(
            row.values for row in made.new(ALL).rows
        )
        assert [run.state for run in project.runs_of(connection)] == ["published", "published", "unchanged"]
