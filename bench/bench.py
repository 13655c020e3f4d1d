"""Measure reslice beside SQL written by hand, side by side in one run, and write docs/performance.md.

    python -m bench.bench            10 million rows, every measurement
    python -m bench.bench --large    100 million rows under a memory limit of 2 GB, whole range only

Every round runs each contender once, one after the other, so that a slow minute of the machine meets all of them; the
figures are medians of five rounds. Before each round a surcharge flips, so that every group really changes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

import reslice
from bench import facts, handwritten, page

ROOT = Path(__file__).parent.parent
PYTHON = Path(sys.executable)
ONE_DAY = "2026-07-01"
FLIP = "UPDATE surcharge SET cents = 1 - cents"

Contenders = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Process:
    """What one command took from start to end."""

    seconds: float
    peak_kib: int


def alternate(contenders: Contenders, *, rounds: int, before_round: Callable[[], object]) -> dict[str, float]:
    """Run every contender once per round, one after the other; return the median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        before_round()
        for name, work in contenders.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def alternate_processes(commands: Mapping[str, list[str | Path]], *, rounds: int) -> dict[str, Process]:
    """Run every command once per round as a process of its own; return the medians of each."""
    ended: dict[str, list[Process]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, words in commands.items():
            ended[name].append(run_process(words))
    return {
        name: Process(
            statistics.median(each.seconds for each in processes),
            int(statistics.median(each.peak_kib for each in processes)),
        )
        for name, processes in ended.items()
    }


def run_process(words: list[str | Path]) -> Process:
    """Run one command to its end, measured by a small process in between."""
    measured = subprocess.run(
        [PYTHON, Path(__file__).parent / "measured.py", *words], check=True, capture_output=True, text=True
    )
    answer = json.loads(measured.stdout)
    if answer["exit"] != 0:
        sys.exit(f"bench: {' '.join(map(str, words))} ended with {answer['exit']}")
    return Process(answer["seconds"], answer["peak_kib"])


def measure_publishes(directory: Path, *, memory_limit: str, rounds: int, with_days: bool) -> dict[str, float]:
    """Return the median seconds of every way to publish, all on one open connection of one process."""
    with duckdb.connect(str(directory / facts.DATABASE), config={"memory_limit": memory_limit}) as connection:
        project = reslice.open(directory / "reslice.yml", connection=connection)
        target = project.target(facts.TARGET)
        bounds = (facts.FIRST_DAY, facts.LAST_DAY)
        whole: Contenders = {
            "whole plain": lambda: handwritten.publish_plain(connection, facts.TARGET_PLAIN, *bounds),
            "whole checked": lambda: handwritten.publish_checked(connection, facts.TARGET_CHECKED, *bounds),
            "whole reslice": lambda: target.run(facts.YEAR),
        }
        unchanged: Contenders = {
            "staging": lambda: handwritten.stage(connection, *bounds),
            "unchanged reslice": lambda: target.run(facts.YEAR),
            "rewrite reslice": lambda: target.run(facts.YEAR, rewrite=True),
        }

        def flip() -> None:
            connection.execute(FLIP)

        alternate(whole, rounds=1, before_round=flip)  # the first publish fills caches and empty tables
        seconds = alternate(whole, rounds=rounds, before_round=flip)
        seconds |= alternate(unchanged, rounds=rounds, before_round=lambda: None)
        if with_days:
            seconds |= alternate(one_day_publishes(connection, target), rounds=rounds, before_round=flip)
        expect_equal_targets(connection)
    return seconds


def one_day_publishes(connection: duckdb.DuckDBPyConnection, target: reslice.TargetHandle) -> Contenders:
    """Return the ways to publish the year as 365 commits."""
    days = handwritten.days(facts.FIRST_DAY, facts.LAST_DAY)

    def plain() -> None:
        for day in days:
            handwritten.publish_plain(connection, facts.TARGET_PLAIN, day, day)

    def checked() -> None:
        for day in days:
            handwritten.publish_checked(connection, facts.TARGET_CHECKED, day, day)

    return {
        "days plain": plain,
        "days checked": checked,
        "days reslice": lambda: target.run(facts.YEAR, per_slice=True),
    }


def expect_equal_targets(connection: duckdb.DuckDBPyConnection) -> None:
    """End the benchmark when the contenders have not all made the same table: their times would mean nothing."""
    for other in (facts.TARGET_PLAIN, facts.TARGET_CHECKED):
        for one, two in ((facts.TARGET, other), (other, facts.TARGET)):
            found = connection.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {two})").fetchone()
            if found != (0,):
                sys.exit(f"bench: {one} and {two} differ in {found} rows")


def measure_processes(directory: Path, *, rounds: int) -> dict[str, Process]:
    """Return the medians of whole processes, one day and the year, and of `--help`."""
    database = directory / facts.DATABASE
    script = Path(__file__).parent / "bare_script.py"
    command = PYTHON.with_name("reslice")
    return alternate_processes(
        {
            "day script": [PYTHON, script, database, ONE_DAY, ONE_DAY],
            "day reslice": [command, "-C", directory, "run", facts.TARGET, ONE_DAY, "--rewrite"],
            "year script": [PYTHON, script, database, facts.FIRST_DAY, facts.LAST_DAY],
            "year reslice": [command, "-C", directory, "run", facts.TARGET, facts.YEAR, "--rewrite"],
            "help": [command, "--help"],
        },
        rounds=rounds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="a trial with this many rows: the page stays as it is")
    parser.add_argument("--large", action="store_true", help="whole range only, with memory_limit=2GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "bench", help="where the DuckDB file is made")
    arguments = parser.parse_args()
    rows = arguments.rows or (100_000_000 if arguments.large else 10_000_000)
    memory_limit = "2GB" if arguments.large else "4GB"

    machine = page.machine()
    print(f"making {rows:,} facts in {arguments.into}", flush=True)
    facts.make(arguments.into, rows=rows, memory_limit=memory_limit)
    print("publishing on one connection", flush=True)
    seconds = measure_publishes(
        arguments.into, memory_limit=memory_limit, rounds=arguments.rounds, with_days=not arguments.large
    )
    processes = {} if arguments.large else measure_processes(arguments.into, rounds=arguments.rounds)
    result = page.Result(
        machine=machine,
        rows=rows,
        rounds=arguments.rounds,
        memory_limit=memory_limit,
        seconds=seconds | {f"process {name}": each.seconds for name, each in processes.items()},
        peak_mib={name: each.peak_kib / 1024 for name, each in processes.items()},
    )
    print(page.section(result) if arguments.rows else page.write(result))


if __name__ == "__main__":
    main()
