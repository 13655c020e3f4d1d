"""The flights example, with the real command line, against its independent computation in plain Python: the whole year.

The target has no key and no stamps; which days a run wrote is told by where DuckDB keeps their rows.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path

import duckdb
import pytest
from examples.flights import correct, independent, load
from examples.flights.independent import Flights, Key

from tests.docs.example_project import moved, not_equal, places, query, reslice

TARGET = "daily_flights"

# Read off corrections.json by hand: the days a flight left and went to, where a figure moves.
DAYS_THAT_DIFFER = {
    date(2013, 1, 1), date(2013, 1, 3), date(2013, 1, 13), date(2013, 1, 31), date(2013, 2, 1),
    date(2013, 2, 5), date(2013, 2, 9), date(2013, 5, 23), date(2013, 9, 2),
}  # fmt: skip
DAY_CORRECTED_WITHOUT_EFFECT = date(2013, 1, 8)

# Read off the published flights by hand: carriers of few flights, before and after.
BEFORE = {
    (date(2013, 1, 13), "YV", "LGA"): Flights(1, 1, 229, None, None, None),
    (date(2013, 2, 5), "HA", "JFK"): Flights(1, 0, 4983, 0, 15, 15.0),
    (date(2013, 5, 23), "YV", "LGA"): Flights(2, 2, 773, None, None, None),
    (date(2013, 9, 2), "OO", "LGA"): Flights(1, 1, 419, None, None, None),
}
AFTER = {
    (date(2013, 1, 13), "YV", "LGA"): None,
    (date(2013, 2, 5), "HA", "JFK"): Flights(1, 1, 4983, None, None, None),
    (date(2013, 5, 23), "YV", "LGA"): Flights(2, 1, 773, 64, 71, 71.0),
    (date(2013, 9, 2), "OO", "LGA"): None,
}


@cache
def expected(*, corrected: bool) -> dict[Key, Flights]:
    return independent.daily_flights(corrected=corrected)


def flights_of(project: Path) -> dict[Key, Flights]:
    columns = ", ".join(independent.HEADER)
    rows = query(project / load.DATABASE, f"SELECT {columns} FROM {TARGET}")
    flights = {(day, carrier, origin): Flights(*measures) for day, carrier, origin, *measures in rows}
    assert len(flights) == len(rows), "a day, carrier and origin stands twice in the target"
    return flights


def places_of(project: Path) -> dict[date, set[int]]:
    return places(project / load.DATABASE, TARGET, "flight_date")


@pytest.mark.slow
def test_the_independent_computation_is_what_can_be_read_off_the_flights() -> None:
    before, after = expected(corrected=False), expected(corrected=True)
    assert sum(row.flights for row in before.values()) == 336_776
    assert sum(row.flights for row in after.values()) == 336_775
    assert sum(row.arr_delay is None for row in before.values()) == 15
    assert {key: before[key] for key in BEFORE} == BEFORE
    assert {key: after.get(key) for key in AFTER} == AFTER


def test_the_target_follows_the_corrections_and_only_differing_days_are_written(tmp_path: Path) -> None:
    before, after = expected(corrected=False), expected(corrected=True)
    differing = {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert differing == DAYS_THAT_DIFFER
    assert load.load(tmp_path) == 336_776

    loaded = reslice(tmp_path, "run", TARGET, "2013")
    assert (loaded["outcome"], loaded["diff"]["added"], loaded["slice"]["count"]) == ("published", len(before), 365)
    assert flights_of(tmp_path) == before
    first_places = places_of(tmp_path)
    assert reslice(tmp_path, "run", TARGET, "2013")["outcome"] == "unchanged"
    assert places_of(tmp_path) == first_places

    assert len(correct.correct(tmp_path)) == 9
    diff = {
        "added": len(after.keys() - before.keys()),
        "changed": sum(after[key] != before[key] for key in after.keys() & before.keys()),
        "removed": len(before.keys() - after.keys()),
        "unchanged": sum(after[key] == before[key] for key in after.keys() & before.keys()),
    }
    assert not_equal(tmp_path, TARGET, "2013") == {day.isoformat() for day in differing}
    assert reslice(tmp_path, "plan", TARGET, "2013")["diff"] == diff
    assert flights_of(tmp_path) == before
    healed = reslice(tmp_path, "run", TARGET, "2013")
    assert (healed["outcome"], healed["diff"]) == ("published", diff)
    assert flights_of(tmp_path) == after
    assert moved(first_places, places_of(tmp_path)) == differing
    verified = reslice(tmp_path, "verify", TARGET, "2013")
    assert (verified["repeatable"], verified["equals_source"]) == (True, True)

    restored = reslice(tmp_path, "restore", healed["run"], "--yes")
    assert (restored["outcome"], restored["slice"]["count"]) == ("restored", len(differing))
    assert flights_of(tmp_path) == before
    stopped = reslice(tmp_path, "run", TARGET, "2013", code=3)
    assert stopped["error"]["kind"] == "restored"
    assert flights_of(tmp_path) == before
    reslice(tmp_path, "run", TARGET, "2013", "--allow", "restored", "--reason", "seen")
    assert flights_of(tmp_path) == after
    assert reslice(tmp_path, "status", TARGET, "2013")["equals_source"] is True


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with its first two months, corrected after they were run."""
    project = tmp_path_factory.mktemp("january")
    load.load(project)
    reslice(project, "run", TARGET, "2013-01..2013-02")
    correct.correct(project)
    return project


def test_a_day_names_the_others_that_the_same_corrections_touch(january: Path) -> None:
    plan = reslice(january, "plan", TARGET, "2013-01-01", "--with-affected")
    assert plan["slice"]["count"] == len(DAYS_THAT_DIFFER | {DAY_CORRECTED_WITHOUT_EFFECT})


def test_a_flight_corrected_by_half_is_found_by_the_control(january: Path) -> None:
    """The source takes the day from the date, the control from the instant: both have to be corrected."""
    with duckdb.connect(str(january / load.DATABASE)) as connection:
        connection.execute(
            "UPDATE flights SET time_hour = time_hour - INTERVAL 1 DAY"
            " WHERE month = 2 AND day = 1 AND carrier = 'B6' AND flight = 608 AND origin = 'JFK'"
        )
    refused = reslice(january, "run", TARGET, "2013-01..2013-02", code=3)
    assert refused["error"]["kind"] == "control_differs"
    assert "2013-01-31, 2013-02-01" in str(refused["error"]["found"])


def test_a_delay_of_nothing_is_refused_where_null_is_not_allowed(january: Path) -> None:
    text = (january / "reslice.yml").read_text(encoding="utf-8")
    (january / "strict.yml").write_text(text.replace("dep_delay: {nulls: allow}", "dep_delay: {}"), encoding="utf-8")
    refused = reslice(january, "--config", "strict.yml", "run", TARGET, "2013-02-09", code=3)
    assert refused["error"]["kind"] == "measure_null"


def test_a_correction_is_recorded_once(tmp_path: Path) -> None:
    load.load(tmp_path)
    correct.correct(tmp_path)
    assert correct.correct(tmp_path) == []
    found = query(tmp_path / load.DATABASE, "SELECT count(*), count(day_after) FROM flight_corrections")
    assert found == [(9, 8)]
