"""Tell the grocery story with the real command line: a year by hour, day and month, late corrections, the year again.

Every step is a command that can be typed as well. Stops at the first one that does not end as it should.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from examples.story import RESLICE, command, module, say

TARGETS = ("hourly_store_sales", "daily_store_sales", "monthly_store_sales")
# The one sale of an hour that corrections leave without any: the first 01:00 of the day on which clocks went back.
HOUR_EMPTIED = "2017-11-05T01:00-04:00"


def compare(directory: Path, name: str, *options: str) -> None:
    """Compute every target again in plain Python, and compare each row."""
    module("grocery.independent", "--into", directory / name, *options)
    for target in TARGETS:
        module("compare", directory / "grocery.duckdb", target, directory / name / f"{target}.csv")


def tell(directory: Path) -> None:
    """Load, backfill, correct, backfill again, and compare both results with the independent computation."""
    reslice = (RESLICE, "-C", directory)
    say("A year of grocery sales, and three empty tables: by hour, by day, by month.")
    module("grocery.load", "--into", directory)
    say("The whole year, each table in one publish.")
    for target in TARGETS:
        command(*reslice, "run", target, "2017")
    say("Is that right? The same figures in plain Python, from the same Parquet rows.")
    compare(directory, "before")

    say("Later: eleven baskets were wrong. Nine move in time, also across both clock changes; two change amount.")
    module("grocery.correct", "--into", directory)
    say("Which slices are not what the facts say? Exit code 1 says that there are some.")
    for target in TARGETS:
        command(*reslice, "status", target, "2017", code=1)
    say("What would running the year again do?")
    command(*reslice, "plan", "daily_store_sales", "2017")
    say("Run it: only the slices that differ are written. An hour loses its only sale, and that needs consent.")
    reason = ("--reason", "its only basket was sold an hour later")
    command(*reslice, "run", "hourly_store_sales", "2017", "--allow", f"empty_slice={HOUR_EMPTIED}", *reason)
    command(*reslice, "run", "daily_store_sales", "2017")
    command(*reslice, "run", "monthly_store_sales", "2017")
    say("And again: nothing is left to do.")
    for target in TARGETS:
        command(*reslice, "run", target, "2017")
    say("Are the tables still what the facts say, and does the source say the same twice?")
    for target in TARGETS:
        command(*reslice, "verify", target, "2017")
    say("The plain Python again, with the corrections.")
    compare(directory, "after", "--corrected")
    say("And back, for the hours: the rows that their last publish, r-0004, replaced.")
    command(*reslice, "restore", "r-0004", "--yes", "--reason", "to see that it can be done")
    hours = directory / "before" / "hourly_store_sales.csv"
    module("compare", directory / "grocery.duckdb", "hourly_store_sales", hours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=Path("grocery"), metavar="DIR", help="default: ./grocery")
    tell(parser.parse_args().into)


if __name__ == "__main__":
    main()
