"""Tell the flights story with the real command line: a year of flights, late corrections, and the year again.

Every step is a command that can be typed as well. Stops at the first one that does not end as it should.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from examples.story import RESLICE, command, module, say


def compare(directory: Path, name: str, *options: str) -> None:
    """Compute the target again in plain Python, and compare each row."""
    module("flights.independent", *options, output=directory / name)
    module("compare", directory / "flights.duckdb", "daily_flights", directory / name)


def tell(directory: Path) -> None:
    """Load, backfill, run again, correct, backfill again, and compare with the independent computation."""
    reslice = (RESLICE, "-C", directory)
    say("The flights that left New York in 2013, and an empty table of daily flights, which has no key.")
    module("flights.load", "--into", directory)
    say("The whole year in one publish, and once more.")
    command(*reslice, "run", "daily_flights", "2013")
    command(*reslice, "run", "daily_flights", "2013")
    say("Is that right? The same figures in plain Python, from the same CSV.")
    compare(directory, "before.csv")

    say("Later: nine flights were wrong. A day, a carrier, an airport; one was cancelled, one never planned.")
    module("flights.correct", "--into", directory)
    say("Which days are not what the facts say? Exit code 1 says that there are some.")
    command(*reslice, "status", "daily_flights", "2013", code=1)
    say("What would running the year again do?")
    command(*reslice, "plan", "daily_flights", "2013")
    say("Run it: only the days that differ are written, all of them in one commit.")
    command(*reslice, "run", "daily_flights", "2013")
    say("Is the table still what the facts say, and does the source say the same twice?")
    command(*reslice, "verify", "daily_flights", "2013")
    say("The plain Python again, with the corrections.")
    compare(directory, "after.csv", "--corrected")

    say("And back: the rows that the last publish, r-0003, replaced.")
    command(*reslice, "restore", "r-0003", "--yes", "--reason", "to see that it can be done")
    module("compare", directory / "flights.duckdb", "daily_flights", directory / "before.csv")
    say("A run that would undo a restore wants consent. With it, the corrections are in the table again.")
    command(*reslice, "run", "daily_flights", "2013", code=3)
    command(*reslice, "run", "daily_flights", "2013", "--allow", "restored", "--reason", "seen")
    module("compare", directory / "flights.duckdb", "daily_flights", directory / "after.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=Path("flights"), metavar="DIR", help="default: ./flights")
    tell(parser.parse_args().into)


if __name__ == "__main__":
    main()
