"""What the audit says of two ranges is what DuckDB does with them, on a table that was right before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from reslice.audit.finding import Finding
from reslice.audit.runner import audit

DAYS = [f"2026-01-{day:02d}" for day in range(1, 13)]
FULL = """
create table orders (order_date date, order_ts timestamp, amount int);
insert into orders
select day, day + moment, 1
from unnest(generate_series(date '2026-01-01', date '2026-01-12', interval 1 day)) as t(day),
  unnest([interval 0 second, interval 12 hour, interval 86399500 millisecond]) as m(moment);
create table complete as select order_date, count(*) as n, sum(amount) as total from orders group by 1;
create table daily_orders as select * from complete;
"""
Row = tuple[object, ...]


@dataclass(frozen=True)
class Job:
    """A delete and an insert, and their text in DuckDB's dialect."""

    removed: str
    written: str
    column: str

    @property
    def text(self) -> str:
        return (
            f"begin;\ndelete from daily_orders where {self.removed};\n"
            f"insert into daily_orders\nselect {self.column} as order_date, count(*) as n, sum(amount) as total\n"
            f"from orders where {self.written} group by 1;\ncommit;\n"
        )


def _bounds(side: str, low: int, high: int, chance: random.Random) -> str:
    """Return a condition that keeps a side within days, both by number and included, in one of many forms."""
    first, last, next_day, before = DAYS[low], DAYS[high], DAYS[high + 1], DAYS[low - 1]
    listed = ", ".join(f"'{DAYS[day]}'" for day in range(low, high + 1))
    forms = [
        f"{side} between '{first}' and '{last}'",
        f"{side} >= '{first}' and {side} <= '{last}'",
        f"{side} >= '{first}' and {side} < '{next_day}'",
        f"'{first}' <= {side} and '{next_day}' > {side}",
        f"{side} > '{before}' and {side} <= date '{last}'",
        f"{side} >= cast('{first}' as date) and {side} < cast('{last}' as date) + interval 1 day",
        f"{side} >= '{first}'::date and {side} < '{last}'::date + 1",
        f"{side} in ({listed})",
        "(" + " or ".join(f"{side} = '{DAYS[day]}'" for day in range(low, high + 1)) + ")",
        f"{side} between date '{next_day}' - {high - low + 1} and '{next_day}'::date - interval 1 day",
    ]
    return chance.choice(forms)


def _times(low: int, high: int, chance: random.Random) -> str:
    """Return a condition that keeps the time of an order within days, in one of the forms that times have."""
    first, last, next_day = DAYS[low], DAYS[high], DAYS[high + 1]
    forms = [
        f"order_ts >= '{first}' and order_ts < '{next_day}'",
        f"order_ts >= timestamp '{first} 00:00:00' and order_ts < date '{last}' + interval 1 day",
        f"order_ts >= '{first}' and order_ts < '{last}'::timestamp + interval 24 hour",
        f"order_ts between '{first}' and '{last}'",
        f"order_ts >= '{first}' and order_ts < '{last}'",
    ]
    return chance.choice(forms)


def _jobs(seed: int) -> Iterator[Job]:
    chance = random.Random(seed)
    for _ in range(40):
        low = chance.randint(1, 8)
        high = chance.randint(low, 9)
        other_low = max(1, min(9, low + chance.choice([0, 0, 0, 0, 1, -1])))
        other_high = max(other_low, min(9, high + chance.choice([0, 0, 0, 0, 1, -1])))
        removed = _bounds("order_date", low, high, chance)
        kind = chance.choice(["day", "cut", "time"])
        if kind == "day":
            yield Job(removed, _bounds("order_date", other_low, other_high, chance), "order_date")
        elif kind == "cut":
            side = chance.choice(["cast(order_ts as date)", "order_ts::date", "date_trunc('day', order_ts)::date"])
            yield Job(removed, _bounds(side, other_low, other_high, chance), "order_ts::date")
        else:
            yield Job(removed, _times(other_low, other_high, chance), "order_ts::date")


@pytest.mark.parametrize("seed", range(6))
def test_what_is_said_of_ranges_is_what_duckdb_does(tmp_path: Path, seed: int) -> None:
    jobs = dict(enumerate(_jobs(seed)))
    for number, job in jobs.items():
        declared = "create table orders (order_date date, order_ts timestamp, amount int);\n"
        (tmp_path / f"job{number}.sql").write_text(declared + job.text)
    audited = audit([tmp_path], "duckdb")
    assert not audited.unknown and not audited.unparsed
    with duckdb.connect() as connection:
        connection.execute(FULL)
        right = connection.execute("select * from daily_orders order by all").fetchall()
        for number, job in jobs.items():
            connection.execute("begin; create or replace table daily_orders as select * from complete; commit")
            connection.execute(job.text)
            after = connection.execute("select * from daily_orders order by all").fetchall()
            name = f"job{number}.sql"
            _compare(job, [each for each in audited.findings if Path(each.place.path).name == name], right, after)


def _compare(job: Job, found: list[Finding], right: list[Row], after: list[Row]) -> None:
    said = {each.code for each in found}
    assert said <= {"RS201", "RS404"}, job.text
    assert bool(said) is (after != right), f"{said} of\n{job.text}"
    if "RS404" in said:
        return
    details = " ".join(each.detail for each in found)
    days = [row[0] for row in after]
    assert ("once more" in details) is (len(days) > len(set(days))), f"{details}\n{job.text}"
    assert ("are lost" in details) is (len(set(days)) < len(right)), f"{details}\n{job.text}"
