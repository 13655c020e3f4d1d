"""Hours, days, weeks, months and quarters begin at the same instants on PostgreSQL, on DuckDB and in Python.

Instants are drawn around the clock changes of zones that have odd ones: half an hour, at midnight, a day left out.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reslice.contract import SliceColumn, Unit
from reslice.engines.dialect import Dialect
from reslice.engines.duckdb.dialect import DuckDBDialect
from reslice.engines.postgres.dialect import PostgresDialect
from reslice.moments import Moment, day_starts, hour_of, moment_from_column, slice_of
from reslice.tables import Column, Family
from tests.conformance.databases import Database, DuckDBDatabase, only

POSTGRES16_SLOW = True
TURNS = {
    "UTC": ["2024-02-29T00:00", "2024-12-31T23:59"],
    "Europe/Berlin": ["2024-03-31T01:00", "2024-10-27T01:00"],
    "America/New_York": ["2024-03-10T07:00", "2024-11-03T06:00"],
    "America/Havana": ["2024-03-10T05:00", "2024-11-03T05:00"],
    "America/Sao_Paulo": ["2018-11-04T03:00", "2018-02-18T02:00"],
    "Australia/Lord_Howe": ["2024-04-06T15:00", "2024-10-05T15:30"],
    "Asia/Kathmandu": ["1985-12-31T18:30", "2024-01-31T18:15"],
    "Pacific/Apia": ["2011-12-30T10:00", "2011-09-24T14:00"],
    "Africa/Cairo": ["2014-05-15T22:00", "2014-09-25T21:00"],
    "Atlantic/Azores": ["2024-03-31T01:00", "2024-10-27T01:00"],
    "America/St_Johns": ["2006-04-02T03:31", "2006-10-29T02:31"],
}
"""Instants in UTC at which a clock is set, or a day begins as it does nowhere else."""

AROUND = st.integers(-4 * 3600, 4 * 3600).map(lambda seconds: timedelta(seconds=seconds)) | st.sampled_from(
    [timedelta(0), timedelta(microseconds=-1), timedelta(microseconds=1), timedelta(hours=1), timedelta(hours=-1)]
)
FAR = st.datetimes(datetime(1990, 1, 1), datetime(2025, 12, 31))  # later, their tables of zones differ
ANY = st.sampled_from(sorted(TURNS)).flatmap(
    lambda zone: st.tuples(
        st.just(zone),
        st.lists(
            st.tuples(st.sampled_from(TURNS[zone]).map(datetime.fromisoformat), AROUND).map(lambda at: at[0] + at[1])
            | FAR,
            min_size=1,
            max_size=20,
        ),
    )
)


def expected(instant: datetime, unit: Unit, zone: str) -> Moment:
    """The slice that an instant lies in, by the clock on the wall."""
    if unit is Unit.HOUR:
        return hour_of(instant, zone)
    return slice_of(instant.astimezone(ZoneInfo(zone)).date(), unit)


def moments(
    database: Database, dialect: Dialect, column: Column, instants: list[str], cut: SliceColumn
) -> list[Moment]:
    """What an engine says of the slices of values of a column."""
    start = dialect.slice_text(dialect.slice_start("value", column, cut), column)
    values = ", ".join(f"({place}, CAST('{instant}' AS {column.type}))" for place, instant in enumerate(instants))
    rows = database.rows(f"SELECT {start} FROM (VALUES {values}) AS instants (place, value) ORDER BY place")
    return [moment_from_column(row[0], column.family.value, cut.unit, cut.timezone) for row in rows]


@only("postgresql", "what PostgreSQL says of slices is held to the others")
@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_slices_begin_at_the_same_instants_everywhere(engine: Database, tmp_path: Path, examples: int) -> None:
    (tmp_path / "duck").mkdir()
    duck = DuckDBDatabase(tmp_path / "duck")
    engines: list[tuple[Database, Dialect]] = [(engine, PostgresDialect()), (duck, DuckDBDialect())]
    column = Column("value", "timestamp with time zone", Family.TIMESTAMPTZ)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(drawn=ANY)
    def check(drawn: tuple[str, list[datetime]]) -> None:
        zone, walls = drawn
        instants = [wall.replace(tzinfo=UTC) for wall in walls]
        for unit in Unit:
            cut = SliceColumn("value", unit, zone)
            told = [expected(instant, unit, zone) for instant in instants]
            for database, dialect in engines:
                database.execute(f"SET TimeZone = '{zone}'")
                found = moments(database, dialect, column, [f"{wall}+00" for wall in walls], cut)
                assert found == told, (database.name, zone, unit)

    check()
    duck.close()


@only("postgresql", "what PostgreSQL says of days is held to the others")
@pytest.mark.parametrize("type_text", ["date", "timestamp", "integer", "text"])
def test_units_of_days_begin_at_the_same_days_everywhere(engine: Database, tmp_path: Path, type_text: str) -> None:
    (tmp_path / "duck").mkdir()
    duck = DuckDBDatabase(tmp_path / "duck")
    family = {"date": Family.DATE, "timestamp": Family.TIMESTAMP, "integer": Family.INTEGER, "text": Family.TEXT}
    postgres_types = {"timestamp": "timestamp without time zone"}
    duckdb_types = {"date": "DATE", "timestamp": "TIMESTAMP", "integer": "INTEGER", "text": "VARCHAR"}
    days = [
        date(year, month, day) for year in (1, 4, 1582, 1900, 2024, 9998) for month in (1, 2, 6, 12) for day in (1, 28)
    ]
    days += [date(9999, 12, 31), date(2024, 2, 29), date(2020, 12, 31), date(2021, 1, 3), date(1, 1, 7)]
    written = [f"{day:%Y%m%d}".rjust(8, "0") if type_text == "integer" else day.isoformat() for day in days]
    units = [unit for unit in Unit if unit is not Unit.HOUR]
    for unit in units:
        cut = SliceColumn("value", unit, "UTC")
        told: list[Moment] = [slice_of(day, unit) for day in days]
        column = Column("value", postgres_types.get(type_text, type_text), family[type_text])
        assert moments(engine, PostgresDialect(), column, written, cut) == told, unit
        column = Column("value", duckdb_types[type_text], family[type_text])
        assert moments(duck, DuckDBDialect(), column, written, cut) == told, unit
    duck.close()


@only("postgresql", "what PostgreSQL says of days is held to the others")
@pytest.mark.parametrize("zone", sorted(TURNS))
def test_a_day_begins_and_ends_where_its_clock_says(engine: Database, zone: str) -> None:
    """`bound` is where a range begins: at a midnight that is shown twice, at the first of the two."""
    dialect, column = PostgresDialect(), Column("value", "timestamp with time zone", Family.TIMESTAMPTZ)
    engine.execute(f"SET TimeZone = '{zone}'")
    for turn in TURNS[zone]:
        around = datetime.fromisoformat(turn).replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).date()
        for day in (around + timedelta(days=number) for number in (-1, 0, 1)):
            bound = dialect.bound(f"{day} 00:00:00", column, zone, local=True)
            (row,) = engine.rows(f"SELECT CAST(timezone('UTC', {bound}) AS text)")
            assert datetime.fromisoformat(row[0]).replace(tzinfo=UTC) == day_starts(day, zone)[0], day
