"""Compute daily_shipments again in plain Python, straight from the Parquet rows: no SQL, no DuckDB, no reslice.

Every price is a Decimal and every step exact: rounding anywhere would raise. Corrections are applied line by line while
the rows go by. This is what the target is compared with.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Context, Decimal, Inexact, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet  # type: ignore[import-untyped]

HERE = Path(__file__).parent
FILE = "lineitem.parquet"
LINES_AT_ONCE = 100_000
# 38 digits are more than any sum here has; a digit lost would raise Inexact.
EXACT = Context(prec=38, traps=[Inexact])


class Line(NamedTuple):
    """One order line, as far as it counts. The names are those of the file."""

    l_orderkey: int
    l_linenumber: int
    l_quantity: Decimal
    l_extendedprice: Decimal
    l_discount: Decimal
    l_tax: Decimal
    l_returnflag: str
    l_shipdate: date
    l_shipmode: str


class Shipments(NamedTuple):
    """The measures of one mode and return flag on one day."""

    lines: int
    quantity: Decimal
    base_price: Decimal
    disc_price: Decimal
    charge: Decimal

    def plus(self, other: Shipments) -> Shipments:
        """Return the sum of both, measure by measure."""
        return Shipments(
            self.lines + other.lines,
            self.quantity + other.quantity,
            self.base_price + other.base_price,
            self.disc_price + other.disc_price,
            self.charge + other.charge,
        )


Key = tuple[date, str, str]
HEADER = ("ship_date", "ship_mode", "return_flag", *Shipments._fields)


def parquet_lines(directory: Path) -> Iterator[Line]:
    """Yield every line of the file in `directory`."""
    file = pyarrow.parquet.ParquetFile(directory / FILE)
    for batch in file.iter_batches(LINES_AT_ONCE, columns=list(Line._fields)):
        yield from map(Line._make, zip(*(batch.column(name).to_pylist() for name in Line._fields), strict=True))


READ: dict[str, Callable[[Any], Any]] = {
    "l_shipdate": date.fromisoformat,
    "l_returnflag": str,
    "l_shipmode": str,
    "l_linenumber": int,
}
"""How a value of a correction is read; all others are decimals."""


def typed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a correction as a Line holds them; columns that do not count are left out."""
    types: dict[str, Callable[[Any], Any]] = {
        "l_shipdate": date.fromisoformat,
        "l_returnflag": str,
        "l_shipmode": str,
        "l_linenumber": int,
    }
    return {name: types.get(name, Decimal)(value) for name, value in values.items() if name in Line._fields}


def corrected_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines as they stand once `corrections.json` has been applied."""
    corrections: list[dict[str, Any]] = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    added = {tuple(each["like"]): each["set"] for each in corrections if "like" in each}
    changed = {tuple(each["line"]): each["set"] for each in corrections if "like" not in each}
    for line in lines:
        key = (line.l_orderkey, line.l_linenumber)
        if key in added:
            yield line._replace(**typed(added[key]))
        if key not in changed:
            yield line
        elif changed[key] is not None:
            yield line._replace(**typed(changed[key]))


def shipments(line: Line) -> Shipments:
    """Return what one line adds to its day."""
    disc_price = line.l_extendedprice * (1 - line.l_discount)
    return Shipments(1, line.l_quantity, line.l_extendedprice, disc_price, disc_price * (1 + line.l_tax))


def daily_shipments(directory: Path, *, corrected: bool) -> dict[Key, Shipments]:
    """Return the shipments by (day, mode, return flag)."""
    lines = corrected_lines(parquet_lines(directory)) if corrected else parquet_lines(directory)
    days: dict[Key, Shipments] = {}
    with localcontext(EXACT):
        for line in lines:
            key = (line.l_shipdate, line.l_shipmode, line.l_returnflag)
            days[key] = days[key].plus(shipments(line)) if key in days else shipments(line)
    return days


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--from", type=Path, required=True, metavar="DIR", dest="source", help="has lineitem.parquet")
    parser.add_argument("--corrected", action="store_true", help="after the corrections of corrections.json")
    arguments = parser.parse_args()
    days = daily_shipments(arguments.source, corrected=arguments.corrected)
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for (day, mode, flag), row in sorted(days.items()):
        writer.writerow([day.isoformat(), mode, flag, *row])


if __name__ == "__main__":
    main()
