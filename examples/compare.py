"""Compare the target with a CSV of independent.py, row by row, and say what is different.

Exit 0 when every row and figure is equal, 1 when one is not.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import duckdb

DATABASE = "grocery.duckdb"
COLUMNS = "sale_date, store_id, baskets, lines, sales_cents"
EXAMPLES_SHOWN = 5

Row = tuple[str, int, int, int, int]


def target_rows(directory: Path) -> list[Row]:
    """Return every row of the target, in grain order."""
    with duckdb.connect(str(directory / DATABASE), read_only=True) as connection:
        rows = connection.execute(f"SELECT {COLUMNS} FROM daily_store_sales ORDER BY ALL").fetchall()
    return [(day.isoformat(), store, baskets, lines, cents) for day, store, baskets, lines, cents in rows]


def independent_rows(file: Path) -> list[Row]:
    """Return every row of the CSV, in grain order."""
    with file.open(encoding="utf-8", newline="") as text:
        records = list(csv.reader(text))[1:]
    return sorted(
        (day, int(store), int(baskets), int(lines), int(cents)) for day, store, baskets, lines, cents in records
    )


def show_totals(name: str, rows: list[Row]) -> None:
    """Print how many rows there are and what their measures add up to."""
    baskets, lines, cents = sum(row[2] for row in rows), sum(row[3] for row in rows), sum(row[4] for row in rows)
    print(f"{name:<12} {len(rows):>7,} rows {baskets:>9,} baskets {lines:>11,} lines {cents / 100:>15,.2f} dollars")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory of the project")
    parser.add_argument("csv", type=Path, metavar="CSV", help="what independent.py printed")
    arguments = parser.parse_args()
    target, independent = target_rows(arguments.into), independent_rows(arguments.csv)
    show_totals("target", target)
    show_totals("independent", independent)
    if target == independent:
        print("every row is equal")
        return
    for name, alone in (("target", set(target) - set(independent)), ("independent", set(independent) - set(target))):
        print(f"only in {name}: {len(alone)} rows; e.g. {sorted(alone)[:EXAMPLES_SHOWN]}")
    sys.exit("the rows differ")


if __name__ == "__main__":
    main()
