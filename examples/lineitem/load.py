"""Make the lineitem project in a directory that holds `lineitem.parquet`: contract, SQL, facts and an empty target."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
DATABASE = "lineitem.duckdb"
FILE = "lineitem.parquet"

FACTS = "CREATE TABLE lineitem AS SELECT * FROM read_parquet($parquet)"

TARGET = """
CREATE TABLE daily_shipments (
    ship_date DATE NOT NULL,
    ship_mode VARCHAR NOT NULL,
    return_flag VARCHAR NOT NULL,
    lines BIGINT NOT NULL,
    quantity DECIMAL(18, 2) NOT NULL,
    base_price DECIMAL(18, 2) NOT NULL,
    disc_price DECIMAL(20, 4) NOT NULL,
    charge DECIMAL(22, 6) NOT NULL,
    written_by VARCHAR,
    PRIMARY KEY (ship_date, ship_mode, return_flag)
)
"""


def load(directory: Path) -> int:
    """Make the project in `directory`, in place of one that is there; return how many lines there are."""
    shutil.copy(HERE / "reslice.yml", directory / "reslice.yml")
    shutil.copytree(HERE / "sql", directory / "sql", dirs_exist_ok=True)
    for stale in (directory / DATABASE, directory / f"{DATABASE}.wal"):
        stale.unlink(missing_ok=True)
    with duckdb.connect(str(directory / DATABASE)) as connection:
        connection.execute(FACTS, {"parquet": str(directory / FILE)})
        connection.execute(TARGET)
        counted = connection.execute("SELECT count(*) FROM lineitem").fetchone()
    assert counted is not None
    lines: int = counted[0]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory with lineitem.parquet")
    arguments = parser.parse_args()
    print(f"{arguments.into / DATABASE}: {load(arguments.into):,} lines; daily_shipments is empty")


if __name__ == "__main__":
    main()
