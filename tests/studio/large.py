"""A ledger of very many runs, made by SQL of one that ran: on any engine, in seconds."""

from __future__ import annotations

from reslice.ledger.tables import RUN_SLICES, RUNS
from tests.conformance.databases import Database

FIRST_DAY = "2016-01-01"

# Every shape is a function of the run's number: its first day, how many slices it has, how it ended. One in ten did
# not publish. Runs are five minutes apart, and the last is of now.
_SHAPES = """
CREATE TABLE shapes AS
SELECT number, 'r-' || CASE WHEN number < 10000 THEN lpad(CAST(number AS VARCHAR), 4, '0')
    ELSE CAST(number AS VARCHAR) END AS id,
    1 + number % 4 AS slices,
    CASE WHEN number % 10 < 6 THEN 'published' WHEN number % 10 < 9 THEN 'unchanged'
        WHEN number % 30 < 10 THEN 'stopped'
        WHEN number % 30 < 20 THEN 'refused' ELSE 'failed' END AS state,
    CAST(DATE '{first}' + CAST(number * 7919 % {days} AS INTEGER) AS DATE) AS first_day,
    now() - ({runs} + 1 - number) * INTERVAL '5 minutes' AS requested_at
FROM generate_series(2, {runs} + 1) AS numbers(number)
"""
_RUN = {
    "id": "shapes.id",
    "number": "shapes.number",
    "state": "shapes.state",
    "range_text": "CAST(first_day AS VARCHAR) || CASE shapes.slices WHEN 1 THEN ''"
    " ELSE '..' || CAST(CAST(first_day + CAST(shapes.slices - 1 AS INTEGER) AS DATE) AS VARCHAR) END",
    "range_first": "CAST(first_day AS VARCHAR) || ' 00:00:00'",
    "range_last": "CAST(CAST(first_day + CAST(shapes.slices - 1 AS INTEGER) AS DATE) AS VARCHAR) || ' 23:59:59.999999'",
    "slices": "shapes.slices",
    "requested_at": "shapes.requested_at",
    "finished_at": "shapes.requested_at + INTERVAL '1 second'",
}
_SLICE = {
    "run_id": "shapes.id",
    "slice": "CAST(CAST(first_day + CAST(place AS INTEGER) AS DATE) AS VARCHAR)",
    "state": "CASE shapes.state WHEN 'published' THEN 'published' WHEN 'unchanged' THEN 'unchanged' ELSE 'open' END",
    "published_at": "CASE WHEN shapes.state = 'published' THEN shapes.requested_at END",
    "fingerprint_staged": "'3:' || CAST(shapes.number AS VARCHAR)",
}


def fill(database: Database, *, runs: int, days: int) -> None:
    """Add runs to the ledger of a target that has run once, over the days from 2016-01-01 on."""
    # A run covers up to four days, and the last of them is the last of all.
    database.execute(_SHAPES.format(first=FIRST_DAY, runs=runs, days=days - 3))
    for table, own, more in (
        (RUNS, _RUN, "(SELECT * FROM reslice.runs WHERE number = 1) AS model"),
        (
            RUN_SLICES,
            _SLICE,
            "generate_series(0, 3) AS places(place),"
            " (SELECT * FROM reslice.run_slices WHERE run_id = 'r-0001' LIMIT 1) AS model",
        ),
    ):
        columns = ", ".join(own.get(column.name, f'model."{column.name}"') for column in table.columns)
        where = "WHERE place < shapes.slices" if table is RUN_SLICES else ""
        database.execute(f"INSERT INTO reslice.{table.name} SELECT {columns} FROM shapes, {more} {where}")
    database.execute("DROP TABLE shapes")
