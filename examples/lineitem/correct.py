"""Correct ten of the lines.

`corrections.json` names each by order and line number. A line is corrected in place, struck out, or added as a copy of
another one with other values; all of them in one transaction, and a line that is already right is left alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import duckdb

HERE = Path(__file__).parent
DATABASE = "lineitem.duckdb"

KEY = "l_orderkey = $order AND l_linenumber = $number"


def changed(connection: duckdb.DuckDBPyConnection, statement: str, values: dict[str, Any]) -> bool:
    """Run one statement; return whether it touched a row."""
    return connection.execute(statement, values).fetchone() != (0,)


def correct_one(connection: duckdb.DuckDBPyConnection, correction: dict[str, Any]) -> bool:
    """Correct one line; return False when nothing was left to correct."""
    line = dict(zip(("order", "number"), correction["line"], strict=True))
    values: dict[str, Any] | None = correction["set"]
    if values is None:
        return changed(connection, f"DELETE FROM lineitem WHERE {KEY}", line)
    if "like" in correction:
        like = dict(zip(("like_order", "like_number"), correction["like"], strict=True))
        replaced = ", ".join(f"CAST(${column} AS {kind(connection, column)}) AS {column}" for column in values)
        added = (
            f"INSERT INTO lineitem SELECT * REPLACE ({replaced}) FROM lineitem"
            " WHERE l_orderkey = $like_order AND l_linenumber = $like_number"
            f" AND NOT EXISTS (SELECT 1 FROM lineitem WHERE {KEY})"
        )
        return changed(connection, added, line | like | values)
    settings = ", ".join(f"{column} = ${column}" for column in values)
    differs = " OR ".join(f"{column} <> ${column}" for column in values)
    return changed(connection, f"UPDATE lineitem SET {settings} WHERE {KEY} AND ({differs})", line | values)


def kind(connection: duckdb.DuckDBPyConnection, column: str) -> str:
    """Return the type of a column of lineitem."""
    found = connection.execute(
        "SELECT data_type FROM duckdb_columns() WHERE table_name = 'lineitem' AND column_name = $column",
        {"column": column},
    ).fetchone()
    assert found is not None, f"lineitem has no column {column}"
    text: str = found[0]
    return text


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
        order, number = correction["line"]
        print(f"order {order} line {number}: {correction['why']}")
    print(f"{len(made)} lines corrected")


if __name__ == "__main__":
    main()
