"""A run that staged earlier and publishes later never puts its older rows over those that a newer run found right.

Two runs of one slice on PostgreSQL: the older one is held at a statement of its publish while the newer one, which
finds that the slice already is as its source, comes to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from reslice.engines.postgres.session import PostgresSession
from reslice.errors import PartlyPublished, ResliceError
from reslice.values import Outcome
from tests.conformance.databases import Row, only
from tests.conformance.orders import D1, D2, D3, T0, Orders, changed, found, kinds, ordered

pytestmark = only("postgresql", "on DuckDB one process publishes, and its fence is the first statement")

OLDER = changed((D2, "web", 1, 1300))
PATIENCE = 20.0
TURN = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('reslice table"


@contextmanager
def older_held_at(monkeypatch: pytest.MonkeyPatch, beginning: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Hold the thread called `older` before a statement of that beginning: when it is there, and when it may go."""
    there, go = threading.Event(), threading.Event()
    execute = PostgresSession.execute

    def held(self: PostgresSession, statement: str, parameters: object = None) -> list[Row]:
        if threading.current_thread().name == "older" and statement.startswith(beginning):
            there.set()
            assert go.wait(PATIENCE)
        return execute(self, statement, parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresSession, "execute", held)
    yield there, go


def ended(work: Callable[[], object], into: list[str]) -> None:
    try:
        into.append(str(work().outcome))  # type: ignore[attr-defined]
    except ResliceError as error:
        into.extend(kinds(error))


def beside(orders: Orders, monkeypatch: pytest.MonkeyPatch, beginning: str, *, newer_first: bool) -> tuple[str, str]:
    """Let the older run stage 1300 cents, the newer one 1200, which is what the table holds; return how both ended."""
    older: list[str] = []
    newer: list[str] = []
    orders.correct(4, 1300)
    with older_held_at(monkeypatch, beginning) as (there, go):
        first = threading.Thread(target=ended, args=(lambda: orders.run(D2), older), name="older")
        first.start()
        assert there.wait(PATIENCE)
        orders.correct(4, 1200)
        second = threading.Thread(target=ended, args=(lambda: orders.run(D2), newer), name="newer")
        second.start()
        second.join(PATIENCE if newer_first else 1.0)
        assert second.is_alive() is not newer_first, "the newer run waits while the older one has the turn"
        go.set()
        first.join(PATIENCE)
        second.join(PATIENCE)
    (one,), (two,) = older, newer
    return one, two


def test_a_run_that_finds_nothing_to_do_is_not_overtaken(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = beside(orders, monkeypatch, "LOCK TABLE", newer_first=False)
    assert ends == (Outcome.PUBLISHED, "base_moved")  # the newer one does not say that it is right
    assert orders.rows() == ordered(OLDER)
    assert orders.run(D2).outcome is Outcome.PUBLISHED
    assert orders.rows() == ordered(T0)


def test_a_run_that_was_overtaken_is_refused(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = TURN
    ends = beside(orders, monkeypatch, turn, newer_first=True)
    assert ends == ("later_run", Outcome.UNCHANGED)
    assert orders.rows() == ordered(T0)


def test_a_run_of_many_commits_does_not_claim_slices_that_an_older_one_has_overwritten(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    older: list[str] = []
    orders.correct(4, 1300)
    with older_held_at(monkeypatch, TURN) as (there, go):
        first = threading.Thread(target=ended, args=(lambda: orders.run(D2), older), name="older")
        first.start()
        assert there.wait(PATIENCE)
        orders.correct(4, 1200)
        orders.correct(7, 5001)

        def overwrite() -> None:
            go.set()
            first.join(PATIENCE)

        follow = orders.at_step(f"publishing {D3} (1 of 1)", overwrite)
        error: PartlyPublished = orders.fails("run", PartlyPublished, f"{D1}..{D3}", per_slice=True, on_step=follow)
    assert older == [Outcome.PUBLISHED] and kinds(error) == ["partly_published"] and error.exit_code == 6
    assert f"1 slice is published whole: {D3}" in found(error) and f"{D2} was equal" in found(error)
    assert D1 not in found(error)
    assert error.run is not None and error.run.slices_done == (D3,)
    assert orders.ledger(error.run.id)["state"] == "failed"
    assert orders.rows() == ordered(changed((D2, "web", 1, 1300), (D3, "web", 1, 5001)))
    again = orders.run(f"{D1}..{D3}", per_slice=True)
    assert again.outcome is Outcome.PUBLISHED and again.slices_done == (D2,)
    assert orders.rows() == ordered(changed((D3, "web", 1, 5001)))
    assert orders.run(f"{D1}..{D3}").outcome is Outcome.UNCHANGED


def test_other_slices_are_in_nobodys_way(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.correct(7, 5001)
    assert orders.run(D3).outcome is Outcome.PUBLISHED
    assert orders.run(D2).outcome is Outcome.UNCHANGED
