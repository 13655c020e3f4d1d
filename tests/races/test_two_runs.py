"""Two runs of one table at the same moment: at every statement of the one, the other begins and goes as far as it can.

The rows are never doubled, never older than what a finished run has published, and who did not publish says so.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest

from reslice.errors import Refused, ResliceError
from reslice.values import Run, State
from tests import orders_project as project
from tests.model import Call
from tests.model_rows import Order
from tests.races.conftest import D1, D2, D3, Shared
from tests.races.interleaving import Beside, Ended, Seen, before, is_fence, outcome, run

ALL = Call(project.FREE, D1, D3)
EACH = Call(project.FREE, D1, D3, per_slice=True)
EVERY = [pytest.param(19), pytest.param(1, marks=pytest.mark.slow)]
"""At which statements the other run begins: around the fence, each commit, and every n-th of the others; or at all."""

Make = Callable[..., Shared]


def places(make: Make, call: Call, every: int, *, filled: bool = True) -> list[int]:
    """Return the statements of a run to begin another at."""
    made = make(filled=filled)
    with pytest.MonkeyPatch.context() as patch:
        seen = before(patch, {}).mine
        assert outcome(run(made.project, call)) == "published"
    pairs = enumerate(itertools.pairwise(["", *seen]), start=1)
    return [place for place, (last, text) in pairs if place % every == 0 or is_turn(last) or is_turn(text)]


def is_turn(text: str) -> bool:
    """Whether what others see, or may do, changes with a statement."""
    return is_fence(text) or text == "COMMIT"


def beside(shared: Shared, call: Call, other: Call, place: int) -> tuple[Ended, Ended]:
    """Run, with the other run beginning before the n-th statement; return how both ended."""
    second = Beside(shared.project, other)
    with pytest.MonkeyPatch.context() as patch:
        seen = before(patch, {place: lambda: second.go(seen)})
        first = run(shared.project, call)
    return first, second.end()


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("filled", [True, False], ids=["filled", "empty"])
@pytest.mark.parametrize(("call", "other"), [(ALL, ALL), (EACH, ALL)], ids=["whole", "per slice"])
def test_the_same_slices(shared: Make, filled: bool, call: Call, other: Call, every: int) -> None:
    ends = set()
    for place in places(shared, call, every, filled=filled):
        made = shared(filled=filled)
        first, second = beside(made, call, other, place)
        ends.add((outcome(first), outcome(second)))
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).rows)
        states = Counter(each.state for each in project.runs_of(made.connection)[filled:])
        assert states["published"] == 1 or outcome(first) == "partly_published"
        assert states["requested"] == 0
    assert ends <= {
        *itertools.product(["published"], ["unchanged", "base_moved", "later_run"]),
        *itertools.product(["unchanged", "base_moved", "later_run"], ["published"]),
        ("partly_published", "published"),
    }
    assert len(ends) > 1, "the other run never got in between"


@pytest.mark.parametrize("every", EVERY)
def test_newer_facts_are_never_replaced_by_older_ones(shared: Make, every: int) -> None:
    """The other run stages a correction that the first has not seen; what stands at the end is never the older."""
    for place in places(shared, ALL, every):
        made = shared()
        second = Beside(made.project, ALL)

        with pytest.MonkeyPatch.context() as patch:
            seen = before(patch, {place: lambda: correct_and_go(made, second, seen)})  # noqa: B023 - called in here
            first = run(made.project, ALL)
        second_ended = second.end()
        newest = Counter(row.values for row in made.new(ALL).rows)
        if isinstance(second_ended, Run):
            assert rows_of(made) == newest, outcome(first)
        else:
            assert isinstance(second_ended, Refused)
            assert outcome(first) == "published"
            assert isinstance(run(made.project, ALL), Run)
            assert rows_of(made) == newest


def correct_and_go(shared: Shared, second: Beside, seen: Seen) -> None:
    shared.correct(0, Order(D1, "web", Decimal("77.00")))
    second.go(seen)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("filled", [True, False], ids=["filled", "first ever"])
def test_other_slices_are_in_nobodys_way(shared: Make, filled: bool, every: int) -> None:
    """Both publish, and neither loses a row; also when there was no ledger before either of them."""
    one, other = Call(project.FREE, D1, D2), Call(project.FREE, D3, D3)
    for place in places(shared, one, every, filled=filled):
        made = shared(filled=filled)
        first, second = beside(made, one, other, place)
        assert (outcome(first), outcome(second)) == ("published", "published")
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).rows)
        assert project.generation_of(made.connection) == 2 + filled


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_many_at_once(shared: Make, rounds: int) -> None:
    """Eight threads backfill ranges that overlap; whoever was refused runs again, until nobody is."""
    chance = random.Random(f"20240303 {rounds}")
    for _ in range(rounds):
        made = shared(filled=chance.random() < 0.5)
        threads = [threading.Thread(target=until_done, args=(made, some_call(chance))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        run(made.project, ALL)
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).rows)
        runs = project.runs_of(made.connection)
        assert {each.state for each in runs} <= {"published", "unchanged", "refused", "failed"}
        assert [each.number for each in runs] == [*range(1, len(runs) + 1)]
        published = [each.publish_order for each in runs if each.state == State.PUBLISHED]
        assert len(set(published)) == len(published)


def some_call(chance: random.Random) -> Call:
    first, last = sorted(chance.choices([D1, D2, D3], k=2))
    return Call(project.FREE, first, last, per_slice=chance.random() < 0.5)


def until_done(shared: Shared, call: Call) -> None:
    """Run until it is published or unchanged; every refusal says that another run was in front."""
    for _ in range(30):
        ended = run(shared.project, call)
        if not isinstance(ended, ResliceError):
            return
        assert ended.kind in ("base_moved", "later_run", "partly_published"), ended
    raise AssertionError(f"{call} is refused for ever")


def rows_of(shared: Shared) -> Counter[tuple[object, ...]]:
    return Counter(row.values for row in project.rows_of(shared.connection))
