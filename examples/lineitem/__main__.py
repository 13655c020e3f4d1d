"""Tell the lineitem story with the real command line: seven years of shipments, late corrections, all of it again.

Every step is a command that can be typed as well. Stops at the first one that does not end as it should.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from examples.story import RESLICE, command, module, say

GENERATOR = Path(__file__).parents[2] / ".venv-tpch" / "bin" / "python"
READY = GENERATOR.parents[1] / ".ready"
YEARS = "1992..1998"


def compare(directory: Path, name: str, *options: str) -> None:
    """Compute the target again in plain Python, and compare each row."""
    module("lineitem.independent", "--from", directory, *options, output=directory / name)
    module("compare", directory / "lineitem.duckdb", "daily_shipments", directory / name)


def tell(directory: Path, scale: str) -> None:
    """Generate, load, backfill, run again, correct, backfill again, and compare with the independent computation."""
    reslice = (RESLICE, "-C", directory)
    say("The order lines of TPC-H, and an empty table of daily shipments.")
    command(GENERATOR, "-m", "examples.lineitem.generate", "--into", directory, "--scale", scale)
    module("lineitem.load", "--into", directory)
    say("Seven years in one publish, and once more.")
    command(*reslice, "run", "daily_shipments", YEARS)
    command(*reslice, "run", "daily_shipments", YEARS)
    say("Is that right? The same figures in plain Python, from the same Parquet rows.")
    compare(directory, "before.csv")

    say("Later: ten lines were wrong. Two left in another month, one was never ordered, one arrived late.")
    module("lineitem.correct", "--into", directory)
    say("Which days are not what the facts say? Exit code 1 says that there are some.")
    command(*reslice, "status", "daily_shipments", YEARS, code=1)
    say("What would running it again do?")
    command(*reslice, "plan", "daily_shipments", YEARS)
    say("Run it: only the days that differ are written, all of them in one commit.")
    command(*reslice, "run", "daily_shipments", YEARS)
    say("Is the table still what the facts say, and does the source say the same twice?")
    command(*reslice, "verify", "daily_shipments", YEARS)
    say("The plain Python again, with the corrections.")
    compare(directory, "after.csv", "--corrected")
    say("And back: the rows that the last publish, r-0003, replaced.")
    command(*reslice, "restore", "r-0003", "--yes", "--reason", "to see that it can be done")
    module("compare", directory / "lineitem.duckdb", "daily_shipments", directory / "before.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=Path("lineitem"), metavar="DIR", help="default: ./lineitem")
    parser.add_argument("--scale", default="1", metavar="SF", help="scale factor of TPC-H, 1 unless said")
    arguments = parser.parse_args()
    tell(arguments.into, arguments.scale)


if __name__ == "__main__":
    main()
