"""Compare a table with a CSV of an independent computation, row by row and as exact text.

The CSV's header names the columns. An empty field is NULL, and instants are written in UTC. Exit 0 when every row is
equal and stands there once, 1 when one does not.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path

import duckdb

EXAMPLES_SHOWN = 5

Row = tuple[str, ...]


def table_rows(database: Path, table: str, columns: list[str]) -> list[Row]:
    """Return every row of a table as text."""
    texts = ", ".join(f"coalesce(CAST({column} AS VARCHAR), '')" for column in columns)
    with duckdb.connect(str(database), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(f"SELECT {texts} FROM {table}").fetchall()


def csv_rows(file: Path) -> tuple[list[str], list[Row]]:
    """Return the header and every row of a CSV."""
    with file.open(encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    return header, [tuple(row) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("database", type=Path, metavar="DATABASE", help="the DuckDB file")
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("csv", type=Path, metavar="CSV", help="what the independent computation printed")
    arguments = parser.parse_args()
    columns, independent = csv_rows(arguments.csv)
    target = table_rows(arguments.database, arguments.table, columns)
    alone = (
        (arguments.table, Counter(target) - Counter(independent)),
        (arguments.csv.name, Counter(independent) - Counter(target)),
    )
    print(f"{arguments.table}: {len(target):,} rows; {arguments.csv.name}: {len(independent):,} rows")
    if not any(rows for _, rows in alone):
        print("every row is equal")
        return
    for name, rows in alone:
        print(f"only in {name}: {rows.total():,} rows; e.g. {sorted(rows)[:EXAMPLES_SHOWN]}")
    sys.exit("the rows differ")


if __name__ == "__main__":
    main()
