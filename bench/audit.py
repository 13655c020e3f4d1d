"""Measure how long `reslice audit` reads a thousand files, and twice as many, and write docs/performance.md.

    python -m bench.audit            1,000 and 2,000 SQL files, 1,000 dbt models

Whole processes, from start to exit, taking turns; figures are medians. A folder is made anew before the first round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree

from bench import audit_files, audit_page, page

ROOT = Path(__file__).parent.parent
RESLICE = Path(sys.executable).with_name("reslice")
AS_INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed package is compiled once, and not by each process."""


def measured(folder: Path) -> tuple[float, float]:
    """Return the seconds that an audit of a folder takes, and those of processors that it uses."""
    started = time.perf_counter()
    child = subprocess.Popen(
        [RESLICE, "audit", ".", "--json"],
        cwd=folder,
        env=AS_INSTALLED,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 1:
        sys.exit(f"bench: the audit of {folder} ended with {child.returncode}, and has findings")
    return seconds, usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=audit_page.FILES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "bench-audit", help="where the files are made")
    arguments = parser.parse_args()
    machine = page.machine()
    rmtree(arguments.into, ignore_errors=True)
    folders = {name: arguments.into / name for name in audit_page.JOBS}
    lines = {
        "sql": audit_files.make_sql(folders["sql"], arguments.files),
        "twice": audit_files.make_sql(folders["twice"], 2 * arguments.files),
        "dbt": audit_files.make_dbt(folders["dbt"], arguments.files),
    }
    rounds = [{name: measured(folder) for name, folder in folders.items()} for _ in range(arguments.rounds)]
    result = audit_page.Result(
        asdict(machine),
        arguments.files,
        arguments.rounds,
        lines,
        {name: statistics.median(each[name][0] for each in rounds) for name in folders},
        {name: statistics.median(each[name][1] for each in rounds) for name in folders},
    )
    if arguments.files == audit_page.FILES:
        audit_page.keep(result)
        page.write_page()
    print(audit_page.section(result))


if __name__ == "__main__":
    main()
