"""Tell the grocery story with the real command line: a year's backfill, late corrections, and the year again.

Every step is a command that can be typed as well. Stops at the first one that does not end as it should.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = Path(sys.executable)
RESLICE = PYTHON.with_name("reslice")


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def shown(word: str | Path) -> str:
    """Return a word of a command as a person in the current directory would type it."""
    if isinstance(word, str):
        return word
    if word in (PYTHON, RESLICE):
        return word.name
    path = word.absolute()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def command(*words: str | Path, output: Path | None = None) -> None:
    """Show a command and run it; with `output`, its standard output becomes that file. A failure ends the story."""
    typed = shlex.join(map(shown, words))
    if output is None:
        print(f"$ {typed}", flush=True)
        ended = subprocess.run(words, check=False)
    else:
        print(f"$ {typed} > {shown(output)}", flush=True)
        with output.open("w", encoding="utf-8") as file:
            ended = subprocess.run(words, check=False, stdout=file)
    if ended.returncode != 0:
        sys.exit(f"grocery: that command ended with {ended.returncode}")


def tell(directory: Path) -> None:
    """Load, backfill, correct, backfill again, and compare both results with the independent computation."""
    reslice = (RESLICE, "-C", directory)

    say("A year of grocery sales, and an empty table of daily store sales.")
    command(PYTHON, HERE / "load.py", "--into", directory)
    say("The whole year in one publish.")
    command(*reslice, "run", "daily_store_sales", "2017")
    say("Is that right? The same figures in plain Python, from the same Parquet rows.")
    command(PYTHON, HERE / "independent.py", output=directory / "before.csv")
    command(PYTHON, HERE / "compare.py", "--into", directory, directory / "before.csv")

    say("Later: nine baskets were wrong. Some move across midnight, some to another day, two change their amount.")
    command(PYTHON, HERE / "correct.py", "--into", directory)
    say("What would running the year again do?")
    command(*reslice, "plan", "daily_store_sales", "2017")
    say("Run it: only the days that differ are written, all of them in one commit.")
    command(*reslice, "run", "daily_store_sales", "2017")
    say("And again: nothing is left to do.")
    command(*reslice, "run", "daily_store_sales", "2017")
    say("Is the table still what the facts say, and does the source say the same twice?")
    command(*reslice, "verify", "daily_store_sales", "2017")
    say("The plain Python again, with the corrections.")
    command(PYTHON, HERE / "independent.py", "--corrected", output=directory / "after.csv")
    command(PYTHON, HERE / "compare.py", "--into", directory, directory / "after.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=Path("grocery"), metavar="DIR", help="default: ./grocery")
    tell(parser.parse_args().into)


if __name__ == "__main__":
    main()
