"""One proof: what `reslice prove` says of one set-up in one case."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.proofs import databases
from examples.proofs.cases import RANGE, Case
from examples.proofs.databases import Database
from examples.proofs.setups import PROOFS, ROOT, SCRATCH, Setup

RESLICE = Path(sys.executable).with_name("reslice")
FAILED = "failed"
"""The verdict of a command that ended with an error, so that there is nothing to compare."""

Totals = tuple[int, int, int]


@dataclass(frozen=True)
class Result:
    """What came of one proof. `totals` are rows, orders and cents of the whole target before and after each run."""

    tool: str
    way: str
    engine: str
    case: str
    verdict: str
    repeatable: bool | None
    equals_source: bool | None
    totals: tuple[Totals, ...]
    counts: Mapping[str, Mapping[str, int]]
    exit_code: int | None
    """Of the command, when it failed."""

    @property
    def setup(self) -> tuple[str, str, str]:
        """The set-up that was proved."""
        return self.tool, self.way, self.engine


def proofs(setup: Setup, cases: Iterable[Case], folder: Path, server: str = "") -> Iterator[Result]:
    """Yield what came of each case; `server` is the URL of a PostgreSQL server with {} for the database.

    The target is filled once, and every case starts from a copy of it.
    """
    folder.mkdir(parents=True)
    with filled(setup, folder / "filled", server) as template:
        for case in cases:
            with copied(template, setup, folder / case.name, server) as database:
                databases.change(database, case)
                yield prove(setup, case, database, folder)


@contextmanager
def filled(setup: Setup, folder: Path, server: str) -> Iterator[Path | str]:
    """Give a database with a filled target: the folder of a DuckDB file, or the name of a PostgreSQL database."""
    if setup.engine == "duckdb":
        folder.mkdir()
        with databases.duckdb_file(folder) as database:
            databases.begin(database, setup)
            databases.fill(database, setup, folder)
        yield folder / databases.FILE
    else:
        name = _name()
        with databases.postgres_database(server, name) as database:
            databases.begin(database, setup)
            databases.fill(database, setup, folder)
            yield name


@contextmanager
def copied(template: Path | str, setup: Setup, folder: Path, server: str) -> Iterator[Database]:
    """Give a copy of a filled database."""
    if isinstance(template, Path):
        folder.mkdir()
        shutil.copy(template, folder / template.name)
        with databases.duckdb_file(folder) as database:
            yield database
    else:
        with databases.postgres_database(server, _name(), template) as database:
            yield database


def prove(setup: Setup, case: Case, database: Database, folder: Path) -> Result:
    """Return what `reslice prove` says of one command on one database."""
    given = [word.replace(SCRATCH, str(folder)) for word in setup.again(case)]
    words = given if given[0] == "--sql" else ["--", *given]
    contract = ("--config", f"{PROOFS}/project/reslice.yml")
    ended = subprocess.run(
        [RESLICE, *contract, "prove", "daily_orders", "--range", RANGE, "--json", *words],
        cwd=ROOT,
        env={**databases.quiet(folder), **database.environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    answer = json.loads(ended.stdout)
    about = (setup.tool, setup.way, setup.engine, case.name)
    if answer["error"] is not None:
        return Result(*about, FAILED, None, None, (), {}, _exit_code_of_the_command(answer["error"]))
    totals = tuple(_totals(each) for each in (answer["before"], *answer["runs"]))
    counts = {between: found for between, found in answer["counts"].items() if found}
    verdict = (answer["verdict"], answer["repeatable"], answer["equals_source"])
    return Result(*about, *verdict, totals, counts, None)


def _totals(state: Mapping[str, Any]) -> Totals:
    totals = state["totals"]
    return state["rows"], totals["order_count"], totals["amount_cents"]


def _exit_code_of_the_command(error: Mapping[str, Any]) -> int:
    """Return the exit code of a command that failed; any other error ends the proofs."""
    found = error["found"]
    if error["kind"] != "command_failed":
        raise NotProved(json.dumps(error, indent=2))
    return int(found[0].removeprefix("exit code "))


class NotProved(Exception):
    """What kept a proof from being made."""


def _name() -> str:
    return f"shop_{secrets.token_hex(4)}"
