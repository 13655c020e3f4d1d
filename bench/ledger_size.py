"""How much a ledger of 100,000 runs slows a run, `history` and the rest: each beside a ledger of one run.

    python -m bench.ledger_size                     both ledgers, every command as a process, and its table of the page
    python -m bench.ledger_size --runs 1000         a trial with so many runs: the page stays as it is

Two projects with the same facts: in one the ledger holds the first run alone, in the other 100,000 more that are made
in bulk from it, with slices, groups, kept rows and JSON texts of real length. Commands take turns; figures are medians.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import duckdb

import reslice
from bench import facts, ledger_page, page
from bench.bench import PYTHON, ROOT, alternate, alternate_processes

RUNS = 100_000
ROWS = 365_000
DAY, RANGE = "2026-07-01", "2026-07-05..2026-07-13"
AFFECTED_CONFIG = ["--config", "affected.yml"]
COMMANDS = {
    "run": ["run", facts.TARGET, DAY, "--rewrite"],
    "unchanged": ["run", facts.TARGET, DAY],
    "affected": [*AFFECTED_CONFIG, "run", facts.TARGET, DAY, "--rewrite"],
    "affected range": [*AFFECTED_CONFIG, "plan", facts.TARGET, RANGE],
    "plan": ["plan", facts.TARGET, DAY],
    "history": ["history"],
    "history target": ["history", facts.TARGET],
    "show last": ["show", "last"],
    "show": ["show", "r-0001"],
}

AFFECTED = """\
-- Corrections that arrived since an instant, each with the day it touches.
SELECT order_date FROM corrections WHERE arrived_at >= CAST(:since AS TIMESTAMP WITH TIME ZONE)
"""
CORRECTIONS = """
CREATE TABLE corrections AS
SELECT CAST(DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS DATE) AS order_date,
    now() - to_minutes(CAST(30 + i * 5000 AS BIGINT)) AS arrived_at
FROM range(100) AS numbers(i)
"""

# Every shape is a function of the run's number: its day, how many slices, how it ended, how many groups moved. Runs are
# five minutes apart, so that 100,000 of them reach back for most of a year.
SHAPES = """
CREATE OR REPLACE TEMP TABLE shapes AS
SELECT
    number,
    format('r-{:04d}', number) AS id,
    1 + number % 4 AS slices,
    CASE WHEN number % 10 < 6 THEN 'published' WHEN number % 10 < 9 THEN 'unchanged'
        ELSE ['stopped', 'refused', 'failed'][1 + number // 10 % 3] END AS state,
    CAST(DATE '2026-01-01' + CAST(number * 7919 % 362 AS INTEGER) AS DATE) AS first_day,
    CAST(first_day + CAST(slices - 1 AS INTEGER) AS DATE) AS last_day,
    now() - to_minutes(CAST(5 * ($runs + 2 - number) AS BIGINT)) AS requested_at
FROM range(2, $runs + 2) AS numbers(number)
"""
RUN_ROWS = """
INSERT INTO reslice.runs BY NAME
SELECT
    model.* REPLACE (
        shape.id AS id,
        shape.number AS number,
        shape.state AS state,
        CASE WHEN shape.slices = 1 THEN CAST(first_day AS VARCHAR) ELSE first_day || '..' || last_day END AS range_text,
        first_day || ' 00:00:00' AS range_first,
        last_day || ' 23:59:59.999999' AS range_last,
        shape.slices AS slices,
        shape.requested_at AS requested_at,
        shape.requested_at + INTERVAL 1 SECOND AS finished_at,
        shape.number AS staged_order,
        CASE WHEN shape.state = 'published' THEN shape.number END AS publish_order,
        CASE WHEN shape.state = 'published' THEN model.kept_table END AS kept_table,
        '50:' || hash(shape.number) AS fingerprint_after,
        replace(model.checks, '18250', CAST(shape.number AS VARCHAR)) AS checks,
        replace(replace(model.sql, '2026-01-01', CAST(first_day AS VARCHAR)), '2026-12-31', CAST(last_day AS VARCHAR))
            AS sql
    )
FROM shapes AS shape, (SELECT * FROM reslice.runs WHERE number = 1) AS model
"""
SLICE_ROWS = """
INSERT INTO reslice.run_slices BY NAME
SELECT
    model.* REPLACE (
        shape.id AS run_id,
        CAST(CAST(first_day + CAST(place AS INTEGER) AS DATE) AS VARCHAR) AS slice,
        CASE shape.state WHEN 'published' THEN 'published' WHEN 'unchanged' THEN 'unchanged' ELSE 'open' END AS state,
        CASE WHEN shape.state = 'published' THEN shape.requested_at END AS published_at,
        '50:' || hash(shape.number, place) AS fingerprint_staged
    )
FROM shapes AS shape, range(shape.slices) AS places(place),
    (SELECT * FROM reslice.run_slices WHERE run_id = 'r-0001' ORDER BY slice LIMIT 1) AS model
"""
GROUP_ROWS = """
INSERT INTO reslice.run_groups BY NAME
SELECT
    model.* REPLACE (
        shape.id AS run_id,
        place AS position,
        CAST(first_day AS VARCHAR) AS slice,
        '{"order_date": "' || first_day || '", "channel": "channel_0' || place || '"}' AS key,
        '{"order_count": 20, "amount_cents": ' || shape.number || '}' AS before
    )
FROM shapes AS shape, range(1, 2 + shape.number % 3) AS places(place),
    (SELECT * FROM reslice.run_groups WHERE run_id = 'r-0001' AND position = 1) AS model
WHERE shape.state <> 'unchanged' AND $recent
"""
KEPT_ROWS = """
INSERT INTO $kept BY NAME
SELECT shape.id AS "reslice:run", live.*
FROM shapes AS shape JOIN daily_orders AS live ON live.order_date = shape.first_day AND live.channel < 'channel_03'
WHERE shape.state = 'published' AND $recent
"""
FIRST_RUN = """
UPDATE reslice.runs SET requested_at = requested_at - to_minutes(CAST(5 * $runs + 60 AS BIGINT)),
    finished_at = finished_at - to_minutes(CAST(5 * $runs + 60 AS BIGINT))
WHERE number = 1
"""
RECENT = "shape.requested_at > now() - INTERVAL 90 DAY"
PRUNED = """
UPDATE reslice.runs SET pruned_at = now()
WHERE number > 1 AND state <> 'unchanged' AND requested_at <= now() - INTERVAL 90 DAY
"""
LOOKED = "INSERT INTO reslice.prunings SELECT DISTINCT table_name, now() FROM reslice.runs"
FORGOTTEN = "DELETE FROM reslice.prunings"


def make(directory: Path, *, runs: int) -> None:
    """Make a project whose table holds the year, and whose ledger holds that first run and `runs` more."""
    facts.make(directory, rows=ROWS, memory_limit="2GB")
    declared = (directory / "reslice.yml").read_text(encoding="utf-8")
    (directory / "affected.yml").write_text(f"{declared}    affected: affected.sql\n", encoding="utf-8")
    (directory / "affected.sql").write_text(AFFECTED, encoding="utf-8")
    with duckdb.connect(str(directory / facts.DATABASE)) as connection:
        connection.execute(CORRECTIONS)
        reslice.open(directory / "reslice.yml", connection=connection).target(facts.TARGET).run(facts.YEAR)
        if runs:
            fill(connection, runs=runs)
    with duckdb.connect(str(directory / facts.DATABASE)) as connection:
        connection.execute("CHECKPOINT")


def fill(connection: duckdb.DuckDBPyConnection, *, runs: int) -> None:
    """Add `runs` runs to the ledger in the state that nightly pruning leaves: rows of the last 90 days are kept."""
    found = connection.execute("SELECT kept_table FROM reslice.runs WHERE number = 1").fetchone()
    assert found is not None
    connection.execute(SHAPES, {"runs": runs})
    connection.execute(FIRST_RUN, {"runs": runs})
    connection.execute(RUN_ROWS)
    connection.execute(SLICE_ROWS)
    connection.execute(GROUP_ROWS.replace("$recent", RECENT))
    connection.execute(KEPT_ROWS.replace("$kept", found[0]).replace("$recent", RECENT))
    connection.execute(PRUNED)
    connection.execute(LOOKED)


def measure(small: Path, large: Path, *, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each command, as whole processes: with the small ledger, and with the large one."""
    reslice_command = PYTHON.with_name("reslice")
    places = {"small": small, "large": large}
    commands: dict[str, list[str | Path]] = {
        f"{name} {size}": [reslice_command, "-C", directory, *words]
        for name, words in COMMANDS.items()
        for size, directory in places.items()
    }
    ended = alternate_processes(commands, rounds=rounds)
    return {name: (ended[f"{name} small"].seconds, ended[f"{name} large"].seconds) for name in COMMANDS}


def measure_look(directory: Path, *, rounds: int) -> float:
    """Return the median seconds of looking for what is too old, which the first run of a day does at its end."""
    with duckdb.connect(str(directory / facts.DATABASE)) as connection:
        project = reslice.open(directory / "reslice.yml", connection=connection)
        contract = project.target(facts.TARGET).contract
        with project.engine(read_only=False) as engine:
            target = engine.target(contract)

            def forget() -> None:
                connection.execute(FORGOTTEN)

            look = {"look": lambda: engine.ledger.prune(contract, target)}
            return alternate(look, rounds=rounds, before_round=forget)["look"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "bench-ledger", help="where the files are made")
    arguments = parser.parse_args()
    machine = page.machine()
    small, large = arguments.into / "small", arguments.into / "large"
    print(f"making ledgers of 1 and {arguments.runs + 1:,} runs in {arguments.into}", flush=True)
    make(small, runs=0)
    make(large, runs=arguments.runs)
    mebibytes = (large / facts.DATABASE).stat().st_size / 2**20
    print("running every command with each", flush=True)
    seconds = measure(small, large, rounds=arguments.rounds)
    look_seconds = measure_look(large, rounds=arguments.rounds)
    result = ledger_page.Result(asdict(machine), arguments.runs, arguments.rounds, mebibytes, seconds, look_seconds)
    if arguments.runs == RUNS:
        ledger_page.keep(result)
        page.write_page()
    print(ledger_page.section(result))


if __name__ == "__main__":
    main()
