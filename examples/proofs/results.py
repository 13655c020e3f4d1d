"""The results of proofs as they are kept in results.json, with the versions of the tools that were proved."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from examples.proofs.cases import CASES
from examples.proofs.proof import Result
from examples.proofs.setups import ROOT, setups

FILE = Path(__file__).parent / "results.json"

TOOLS = {
    "": ("reslice", "duckdb", "psycopg"),
    "dbt": ("dbt-core", "dbt-duckdb", "dbt-postgres", "duckdb"),
    "sqlmesh": ("sqlmesh", "duckdb"),
    "dlt": ("dlt", "duckdb"),
}
"""What is of interest of each environment; the empty one is this project's own."""

_VERSIONS = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


@dataclass(frozen=True)
class Results:
    """Every result so far, and with which versions: the day, and per environment."""

    day: str
    versions: Mapping[str, Mapping[str, str]]
    proofs: tuple[Result, ...] = ()

    def with_proof(self, result: Result) -> Results:
        """Return the results with one more, in place of an earlier one of the same set-up and case."""
        others = (each for each in self.proofs if (each.setup, each.case) != (result.setup, result.case))
        return replace(self, proofs=in_order([*others, result]))


def in_order(found: Iterable[Result]) -> tuple[Result, ...]:
    """Return results in the order of set-ups and cases; those of set-ups that are no more are left out."""
    by_place = {(each.setup, each.case): each for each in found}
    places = [((each.tool, each.way, each.engine), case.name) for each in setups() for case in CASES]
    return tuple(by_place[place] for place in places if place in by_place)


def versions(environments: Iterable[str], postgres: str) -> dict[str, dict[str, str]]:
    """Return the versions in each environment; `postgres` is that of the server."""
    found = {}
    for name in environments:
        if name:
            words = [f".venv-{name}/bin/python", "-c", _VERSIONS, *TOOLS[name]]
            ended = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
            found[name] = json.loads(ended.stdout)
        else:
            found["own"] = {each: version(each) for each in TOOLS[name]} | {"PostgreSQL": postgres}
    return found


def read(file: Path = FILE) -> Results:
    """Return the results of a file; none when it is not there."""
    if not file.exists():
        return Results("", {})
    told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    proofs = [_result(each) for each in told["proofs"]]
    return Results(told["day"], told["versions"], tuple(proofs))


def write(results: Results, file: Path = FILE) -> None:
    """Keep the results, one proof a line."""
    proofs = ",\n".join(f"    {json.dumps(asdict(each))}" for each in results.proofs)
    text = (
        f'{{\n  "day": {json.dumps(results.day)},\n  "versions": {json.dumps(results.versions)},\n'
        f'  "proofs": [\n{proofs}\n  ]\n}}\n'
    )
    file.write_text(text, encoding="utf-8")


def _result(told: dict[str, Any]) -> Result:
    return Result(**told | {"totals": tuple(tuple(each) for each in told["totals"])})
