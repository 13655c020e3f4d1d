"""Run every set-up of every tool through every case, and write what came of it to docs/proofs.md.

    python -m examples.proofs                                  everything: half an hour
    python -m examples.proofs --only dbt-duckdb,SQLMesh        these tools; what is known of the others stays
    python -m examples.proofs --only SQL --cases C1,C2

`make proofs` makes the environments of the tools before. Results are kept in examples/proofs/results.json, and the page
is made from them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from examples.proofs import page, results
from examples.proofs.cases import CASES, Case
from examples.proofs.proof import proofs
from examples.proofs.results import Results
from examples.proofs.setups import Setup, setups
from tests import postgres

SERVER = 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TOOLS", help="tools, with commas between")
    parser.add_argument("--cases", metavar="CASES", help="cases, with commas between")
    parser.add_argument("--into", type=Path, metavar="DIR", help="where to write results.json and the page instead")
    arguments = parser.parse_args()
    chosen = _chosen(arguments.only, [each.tool for each in setups()])
    cases = [each for each in CASES if each.name in _chosen(arguments.cases, [each.name for each in CASES])]
    wanted = [each for each in setups() if each.tool in chosen]
    for lack in sorted({str(each.ready) for each in wanted if each.ready is not None and not each.ready.exists()}):
        sys.exit(f"proofs: there is no {lack}; make {Path(lack).parent.name.removeprefix('.venv-')} says why")

    file, about = results.FILE, page.PAGE
    if arguments.into is not None:
        arguments.into.mkdir(parents=True, exist_ok=True)
        file, about = arguments.into / results.FILE.name, arguments.into / page.PAGE.name
    found = run(wanted, cases, file)
    print(page.summary(found))
    about.write_text(page.text(found), encoding="utf-8")


def _chosen(text: str | None, known: list[str]) -> list[str]:
    """Return the names that are asked for, all of them unless said."""
    if text is None:
        return known
    names = text.split(",")
    if unknown := sorted(set(names) - set(known)):
        sys.exit(f"proofs: nothing is called {', '.join(unknown)}; there are {', '.join(dict.fromkeys(known))}")
    return names


def run(wanted: list[Setup], cases: list[Case], file: Path) -> Results:
    """Prove the set-ups one after the other, and keep each result as soon as it is known."""
    server = postgres.shared(SERVER).url("{}", user=postgres.ADMIN)
    with psycopg.connect(server.format("postgres")) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None, "a server has a version"
    known = results.read(file)
    environments = dict.fromkeys(["", *(each.environment for each in wanted)])  # ours is that of the judge
    versions = {**known.versions, **results.versions(environments, row[0])}
    known = replace(known, day=datetime.now(UTC).strftime("%Y-%m-%d"), versions=versions)
    folder = Path(tempfile.mkdtemp(prefix="reslice-proofs-"))
    try:
        for number, setup in enumerate(wanted, start=1):
            began = time.monotonic()
            print(f"{number} of {len(wanted)}: {setup.name}", flush=True)
            for result in proofs(setup, cases, folder / str(number), server):
                known = known.with_proof(result)
                results.write(known, file)
                print(f"  {result.case} {page.in_words(result)}", flush=True)
            print(f"  {time.monotonic() - began:.0f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return known


if __name__ == "__main__":
    main()
