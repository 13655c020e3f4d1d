"""Correct eleven baskets of the grocery facts, and write down where each one stood.

`corrections.json` says what was wrong. Each basket is corrected in place and recorded in `basket_corrections` with the
instant before and after, in one transaction; a basket that is already right is left alone and not recorded again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import duckdb

HERE = Path(__file__).parent
DATABASE = "grocery.duckdb"

# A basket's lines share one instant, so any of them tells where the basket stands.
RECORD = """
INSERT INTO basket_corrections
SELECT
    basket_id,
    now(),
    $why,
    any_value(sold_at),
    coalesce(CAST($sold_at AS TIMESTAMP WITH TIME ZONE), any_value(sold_at))
FROM transaction_lines
WHERE basket_id = $basket_id
GROUP BY basket_id
"""

PENDING_TIME = """
SELECT count(*) FROM transaction_lines
WHERE basket_id = $basket_id AND sold_at <> CAST($sold_at AS TIMESTAMP WITH TIME ZONE)
"""
MOVE = """
UPDATE transaction_lines SET sold_at = CAST($sold_at AS TIMESTAMP WITH TIME ZONE)
WHERE basket_id = $basket_id
"""

PENDING_AMOUNT = """
SELECT count(*) FROM transaction_lines
WHERE basket_id = $basket_id AND product_id = $product_id AND sales_value <> $sales_value
"""
REPRICE = """
UPDATE transaction_lines SET sales_value = $sales_value
WHERE basket_id = $basket_id AND product_id = $product_id
"""


def correct_one(connection: duckdb.DuckDBPyConnection, correction: dict[str, Any]) -> bool:
    """Correct and record one basket; return False when it was right already."""
    moves = "sold_at" in correction
    keys = ("basket_id", "sold_at") if moves else ("basket_id", "product_id", "sales_value")
    values = {key: correction[key] for key in keys}
    pending = connection.execute(PENDING_TIME if moves else PENDING_AMOUNT, values).fetchone()
    if pending == (0,):
        return False
    record = {"basket_id": correction["basket_id"], "why": correction["why"], "sold_at": correction.get("sold_at")}
    connection.execute(RECORD, record)
    connection.execute(MOVE if moves else REPRICE, values)
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
        print(f"basket {correction['basket_id']}: {correction['why']}")
    print(f"{len(made)} baskets corrected")


if __name__ == "__main__":
    main()
