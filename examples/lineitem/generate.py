"""Generate TPC-H `lineitem` as a Parquet file, with DuckDB's own generator.

Runs in an environment of its own (`make .venv-tpch/.ready`): the generator comes as a DuckDB extension in the wheel
`duckdb-extension-tpch`, which loads into exactly the DuckDB it was built for. Nothing else of the examples is imported.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import duckdb

FILE = "lineitem.parquet"


def extension() -> Path:
    """Return the extension file that the installed wheel holds for this DuckDB."""
    package = find_spec("duckdb_extension_tpch")
    assert package is not None and package.submodule_search_locations, "pip install duckdb-extension-tpch"
    folder = Path(package.submodule_search_locations[0])
    return folder / "extensions" / f"v{duckdb.__version__}" / "tpch.duckdb_extension"


def generate(directory: Path, scale: float) -> int:
    """Write the lines of a scale factor (1 is some six million lines) into `directory`; return how many there are."""
    directory.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{extension()}'")
        connection.execute(f"CALL dbgen(sf = {scale})")
        written = connection.execute(f"COPY lineitem TO '{directory / FILE}' (FORMAT parquet)").fetchone()
    assert written is not None
    lines: int = written[0]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="directory of the project")
    parser.add_argument("--scale", type=float, default=1.0, metavar="SF", help="scale factor, 1 unless said")
    arguments = parser.parse_args()
    print(f"{arguments.into / FILE}: {generate(arguments.into, arguments.scale):,} lines")


if __name__ == "__main__":
    main()
