"""What the Python API is given: times, dates and intervals in the forms there are, and a clear no to every other."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.shop import AFTER, BEFORE, DAYS, make_shop, rows

import reslice


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop")


@pytest.fixture
def project(shop: Path) -> reslice.Project:
    return reslice.open(shop / "reslice.yml")


def misused(call: Callable[[], Any]) -> reslice.Misused:
    """Return the error, with all four parts."""
    with pytest.raises(reslice.Misused) as caught:
        call()
    error = caught.value
    assert error.kind == "usage"
    assert error.failures[0].asked and error.failures[0].found and error.unchanged and error.next
    return error


# How long to wait


@pytest.mark.parametrize("wait", [timedelta(seconds=5), timedelta(0), "5s", "500ms", "1m", "1 h", None])
def test_a_wait_is_a_timedelta_or_the_text_of_the_contract(project: reslice.Project, shop: Path, wait: Any) -> None:
    assert project.target("daily_orders").run(DAYS, wait=wait).outcome == "published"
    assert project.show("last", wait=wait).id == "r-0001"
    assert project.run(again="last", wait=wait).outcome == "unchanged"
    assert project.restore("r-0001", wait=wait).outcome == "restored"
    if wait is not None:
        own = duckdb.connect(str(shop / "shop.duckdb"))
        with own as connection, reslice.writer_lock(connection, "daily_orders", wait=wait):
            connection.execute("UPDATE daily_orders SET amount_cents = 1 WHERE channel = 'app'")
        assert ("2026-01-03", "app", 1, 1) in rows(shop)


@pytest.mark.parametrize(
    ("wait", "found"),
    [
        (5, "found 5; did you mean 5s?"),
        (0.5, "found 0.5"),
        ("5", "found 5"),
        ("soon", "found soon"),
        (True, "found true"),
        (timedelta(seconds=-1), "found -1000ms"),
        (timedelta(days=25), "found 2160000000ms"),
    ],
)
def test_anything_else_is_no_wait(project: reslice.Project, shop: Path, wait: Any, found: str) -> None:
    target = project.target("daily_orders")
    for call in (
        lambda: target.run(DAYS, wait=wait),
        lambda: target.restore("last", wait=wait),
        lambda: project.run(again="last", wait=wait),
        lambda: project.restore("last", wait=wait),
        lambda: project.show("last", wait=wait),
    ):
        assert found in str(misused(call))
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        assert found in str(misused(lambda: reslice.writer_lock(connection, "daily_orders", wait=wait).__enter__()))
    assert rows(shop) == BEFORE


@pytest.mark.parametrize("age", [90, "90", timedelta(days=-1), None])
def test_an_age_is_a_timedelta(project: reslice.Project, age: Any) -> None:
    misused(lambda: project.target("daily_orders").prune_versions(older_than=age))
    misused(lambda: project.target("daily_orders").old_versions(older_than=age))


# Which slices


def test_a_date_is_the_slice_of_its_text(project: reslice.Project) -> None:
    target = project.target("daily_orders")
    assert target.plan(date(2026, 1, 2)).scope.text == "2026-01-02"
    assert target.run(date(2026, 1, 2), allow="total_change", reason="late").scope.text == "2026-01-02"
    assert target.status(date(2026, 1, 2)).equals_source
    assert target.verify(date(2026, 1, 2)).equals_source
    assert project.restore("last", date(2026, 1, 2)).outcome == "restored"


@pytest.mark.parametrize(
    "interval",
    [
        ("2026-01-01", "2026-01-03"),
        [date(2026, 1, 1), date(2026, 1, 3)],
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),
        (date(2026, 1, 1), "2026-01-03"),
    ],
)
def test_an_interval_is_two_texts_dates_or_datetimes(project: reslice.Project, interval: Any) -> None:
    assert project.target("daily_orders").plan(interval=interval).scope.text == DAYS


@pytest.mark.parametrize("range", [datetime(2026, 1, 1), 20260101, (date(2026, 1, 1), date(2026, 1, 2)), b"2026"])
def test_anything_else_is_no_range(project: reslice.Project, range: Any) -> None:
    target = project.target("daily_orders")
    for verb in (target.plan, target.run, target.status, target.verify, target.versions):
        assert type(range).__name__ in str(misused(lambda verb=verb: verb(range)))  # type: ignore[misc]


@pytest.mark.parametrize("interval", ["2026-01-01", ("2026-01-01",), (1, 2), 5, ("a", None)])
def test_anything_else_is_no_interval(project: reslice.Project, interval: Any) -> None:
    misused(lambda: project.target("daily_orders").plan(interval=interval))


def test_a_call_that_says_no_slices_is_told_what_says_them(project: reslice.Project) -> None:
    target = project.target("daily_orders")
    found = "daily_orders: which slices is not said: none of range, interval, again is given"
    assert found in str(misused(target.plan))
    assert found in str(misused(target.verify))
    assert "none of range, interval, again, approve is given" in str(misused(target.run))
    assert "range and again are given" in str(misused(lambda: target.plan(DAYS, again="last")))
    assert "neither approve nor again is given" in str(misused(project.run))


def test_a_single_guard_may_stand_alone(project: reslice.Project, shop: Path) -> None:
    target = project.target("daily_orders")
    target.run("2026-01", allow="empty_slice=2026-01-03", reason="late")
    assert rows(shop) == AFTER[:-1]


def test_an_unknown_target_has_a_way_on(project: reslice.Project) -> None:
    error = misused(lambda: project.target("daily_order"))
    assert error.next == "reslice status daily_orders"
    assert misused(lambda: project.target("sales")).next == "reslice doctor"


# A connection of this process


@pytest.mark.parametrize("seconds", [None, 0.2])
def test_a_connection_of_this_process_is_to_be_passed(
    project: reslice.Project, shop: Path, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    """The contract says to wait for ten minutes; the time itself is tried once, and every call with a shorter one."""
    if seconds is not None:
        monkeypatch.setattr("reslice.engines.duckdb.OWN_WAIT_SECONDS", seconds)
    target = project.target("daily_orders")
    path = shop / "shop.duckdb"
    with duckdb.connect(str(path)) as own:
        calls: list[Callable[[], Any]] = [
            lambda: target.plan(DAYS),
            lambda: target.status(DAYS),
            lambda: target.verify(DAYS),
            project.history,
        ]
        for call in calls[:1] if seconds is None else calls:
            began = time.monotonic()
            with pytest.raises(reslice.Retryable) as caught:
                call()
            assert time.monotonic() - began < 9
            assert caught.value.kind == "database_busy"
            assert "this process has the file open" in str(caught.value)
            assert caught.value.next == "pass that connection: reslice.open(path, connection=…)"
        passed = reslice.open(shop / "reslice.yml", connection=own)
        assert passed.target("daily_orders").plan(DAYS).outcome == "planned"
        assert passed.target("daily_orders").run(DAYS).outcome == "published"
    assert rows(shop) == AFTER


def test_a_connection_that_another_thread_closes_in_a_moment_is_waited_for(
    project: reslice.Project, shop: Path
) -> None:
    import threading

    own = duckdb.connect(str(shop / "shop.duckdb"))
    timer = threading.Timer(0.5, own.close)
    timer.start()
    assert project.target("daily_orders").plan(DAYS).outcome == "planned"
    timer.join()
