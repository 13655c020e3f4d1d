"""Correct nine of the flights, and write down which days that touches.

`corrections.json` says what was wrong, by the day, carrier, number and origin under which a flight was published. Each
flight is corrected in place, or struck out, and recorded, in one transaction for all; a flight that is already right is
left alone and not recorded again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import duckdb

HERE = Path(__file__).parent
DATABASE = "flights.duckdb"

FIND = """
SELECT rowid FROM flights
WHERE make_date(year, month, day) = CAST($day AS DATE) AND carrier = $carrier AND flight = $flight AND origin = $origin
"""
RECORD = """
INSERT INTO flight_corrections
VALUES (
    $carrier, $flight, $origin, now(), $why, CAST($day AS DATE),
    (SELECT make_date(year, month, day) FROM flights WHERE rowid = $row)
)
"""


def change(connection: duckdb.DuckDBPyConnection, row: int, values: dict[str, Any] | None) -> bool:
    """Bring a flight to these values, or strike it out; return False when it had them already."""
    if values is None:
        connection.execute("DELETE FROM flights WHERE rowid = $row", {"row": row})
        return True
    differs = " OR ".join(f"{column} IS DISTINCT FROM ${column}" for column in values)
    settings = ", ".join(f"{column} = ${column}" for column in values)
    update = f"UPDATE flights SET {settings} WHERE rowid = $row AND ({differs}) RETURNING flight"
    return connection.execute(update, values | {"row": row}).fetchone() is not None


def correct_one(connection: duckdb.DuckDBPyConnection, correction: dict[str, Any]) -> bool:
    """Correct and record one flight; return False when nothing was left to correct."""
    key = dict(zip(("day", "carrier", "flight", "origin"), correction["flight"], strict=True))
    found = connection.execute(FIND, key).fetchone()
    if found is None or not change(connection, found[0], correction["set"]):
        return False
    connection.execute(RECORD, key | {"why": correction["why"], "row": found[0]})
    return True


def correct(directory: Path) -> list[dict[str, Any]]:
    """Bring every correction into the facts of `directory`, all or none; return those that were still pending."""
    corrections: list[dict[str, Any]] = json.loads((HERE / "corrections.json").read_text(encoding="utf-8"))
    with duckdb.connect(str(directory / DATABASE)) as connection:
        connection.begin()
        made = [correction for correction in corrections if correct_one(connection, correction)]
        connection.commit()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory of the project")
    made = correct(parser.parse_args().into)
    for correction in made:
        print(" ".join(map(str, correction["flight"])) + f": {correction['why']}")
    print(f"{len(made)} flights corrected")


if __name__ == "__main__":
    main()
