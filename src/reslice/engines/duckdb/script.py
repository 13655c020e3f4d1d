"""A program that runs the SQL statements of a file, one by one, in the DuckDB file that the environment names.

It is run by its path and imports nothing of reslice, so that it starts as fast as the driver does. Each statement is
committed by itself, unless they say BEGIN and COMMIT. It ends with 1 at the first one that fails.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import duckdb


def main(file: str) -> int:
    """Run the statements of a JSON file; say which one failed, and why."""
    number = 0
    try:
        with duckdb.connect(os.environ["RESLICE_PATH"]) as connection:
            for number, statement in enumerate(json.loads(Path(file).read_text(encoding="utf-8")), start=1):  # noqa: B007
                connection.execute(statement).fetchall()
    except duckdb.Error as error:
        sys.stderr.write(f"statement {number}: {error}\n" if number else f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
