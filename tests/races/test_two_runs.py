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
from tests.model_rows import Order, Row
from tests.races.conftest import D1, D2, D3, Shared
from tests.races.interleaving import Beside, Ended, Seen, before, is_fence, outcome, run

ALL = Call(project.FREE, D1, D3)
EACH = Call(project.FREE, D1, D3, per_slice=True)
UNDO = Call(project.FREE, D1, D3, restores="r-0002")
EVERY = [pytest.param(19), pytest.param(1, marks=pytest.mark.slow)]
"""At which statements the other run begins: after the fence, after each commit, and at every n-th; or at all."""
METHODS = [
    pytest.param("replace_slice", 19),
    pytest.param("merge", 60),
    pytest.param("append_version", 60),
    *(pytest.param(method, 1, marks=pytest.mark.slow) for method in project.METHODS),
]
"""By which method, and at which statements."""

Make = Callable[..., Shared]
FOLLOWED: dict[tuple[str, bool, str], list[str]] = {}
"""The statements of a run that nobody is in the way of, by its call, what it starts from, and the method."""


def places(make: Make, call: Call, every: int, *, filled: bool = True, method: str = "replace_slice") -> list[int]:
    """Return the statements of a run to begin another at."""
    followed = (repr(call), filled, method)
    if followed not in FOLLOWED:
        made = make(filled=filled, method=method)
        if call.restores is not None:
            publish(made)
        with pytest.MonkeyPatch.context() as patch:
            FOLLOWED[followed] = before(patch, {}).mine
            assert outcome(run(made.project, call)) == ("published" if call.restores is None else "restored")
    pairs = enumerate(itertools.pairwise(["", *FOLLOWED[followed]]), start=1)
    return [place for place, (last, _) in pairs if place % every == 0 or is_turn(last)]


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


@pytest.mark.parametrize(
    ("method", "every", "filled", "call"),
    [
        ("replace_slice", 41, True, ALL),
        ("replace_slice", 41, False, EACH),
        ("merge", 60, True, EACH),
        ("append_version", 60, True, ALL),
        ("append_version", 60, False, ALL),
        *(
            pytest.param(method, 1, filled, call, marks=pytest.mark.slow)
            for method in project.METHODS
            for filled in (True, False)
            for call in (ALL, EACH)
        ),
    ],
)
def test_the_same_slices(shared: Make, method: str, every: int, filled: bool, call: Call) -> None:
    ends = set()
    for place in places(shared, call, every, filled=filled, method=method):
        made = shared(filled=filled, method=method)
        first, second = beside(made, call, ALL, place)
        ends.add((outcome(first), outcome(second)))
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).current)
        states = Counter(each.state for each in project.runs_of(made.connection)[filled:])
        assert states["published"] == 1 or outcome(first) == "partly_published"
        assert states["requested"] == 0
    assert ends <= {
        *itertools.product(["published"], ["unchanged", "base_moved", "later_run"]),
        *itertools.product(["unchanged", "base_moved", "later_run"], ["published"]),
        ("partly_published", "published"),
    }
    assert len(ends) > 1, "the other run never got in between"


def publish(made: Shared) -> None:
    """Let the run be published that is to be undone."""
    assert outcome(run(made.project, ALL)) == "published"
    made.model.run(ALL)


@pytest.mark.parametrize(
    ("call", "other", "method", "every"),
    [
        pytest.param(UNDO, ALL, "replace_slice", 38, id="undo"),
        pytest.param(ALL, UNDO, "merge", 120, id="run"),
        pytest.param(UNDO, UNDO, "append_version", 120, id="both undo"),
        *(
            pytest.param(call, other, method, 1, marks=pytest.mark.slow)
            for method in project.METHODS
            for call, other in ((UNDO, ALL), (ALL, UNDO), (UNDO, UNDO))
        ),
    ],
)
def test_a_restore_beside_a_run_or_another(shared: Make, call: Call, other: Call, method: str, every: int) -> None:
    """Who publishes last has the last word, whole; who does not publish says so, and nothing is put back twice."""
    for place in places(shared, call, every, method=method):
        made = shared(method=method)
        old = Counter(row.values for row in made.model.current)
        publish(made)
        new = Counter(row.values for row in made.model.current)
        if call.restores is None:
            made.correct(7, Order(D3, "phone", Decimal("1.00")))
        newest = Counter(row.values for row in made.new(ALL).current)
        first, second = beside(made, call, other, place)
        assert {outcome(first), outcome(second)} <= {
            *("restored", "unchanged", "published", "base_moved", "later_run", "changed_since_run"),
        }
        ended = project.runs_of(made.connection)
        assert not any(each.state == "requested" for each in ended)
        last = max((each for each in ended if each.publish_order), key=lambda each: each.publish_order or 0)
        assert (last.id == "r-0002") == {outcome(first), outcome(second)}.isdisjoint({"restored", "published"})
        expected = old if last.state == "restored" else new if last.id == "r-0002" else newest
        assert rows_of(made) == expected, (outcome(first), outcome(second))


@pytest.mark.parametrize(("method", "every"), METHODS)
def test_newer_facts_are_never_replaced_by_older_ones(shared: Make, method: str, every: int) -> None:
    """The other run stages a correction that the first has not seen; what stands at the end is never the older."""
    for place in places(shared, ALL, every, method=method):
        made = shared(method=method)
        second = Beside(made.project, ALL)

        with pytest.MonkeyPatch.context() as patch:
            seen = before(patch, {place: lambda: correct_and_go(made, second, seen)})  # noqa: B023 - called in here
            first = run(made.project, ALL)
        second_ended = second.end()
        newest = Counter(row.values for row in made.new(ALL).current)
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


def test_another_first_run_of_a_table_with_rows_is_published_meanwhile(shared: Make) -> None:
    """Its rows bear a run that the ledger, when it was looked at, did not know yet: no version is unknown."""
    first, other = Call(project.FREE, D1, D1), Call(project.FREE, D3, D3)
    by_hand = [Row(day, "web", 1, Decimal("1.50"), False, "by hand") for day in (D1, D3)]
    for place in range(5, 13):  # the two looks are among these
        made = shared(filled=False, method="append_version")
        project.insert_rows(made.connection, by_hand)
        ended = beside(made, first, other, place)
        assert tuple(map(outcome, ended)) == ("published", "published"), place
        day_rows = Counter(row.values for row in made.new(ALL).current if row.order_date in (D1, D3))
        assert rows_of(made) == day_rows


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_many_at_once(shared: Make, rounds: int) -> None:
    """Eight threads backfill ranges that overlap; whoever was refused runs again, until nobody is."""
    chance = random.Random(f"20240303 {rounds}")
    for _ in range(rounds):
        made = shared(filled=chance.random() < 0.5, method=chance.choice(project.METHODS))
        threads = [threading.Thread(target=until_done, args=(made, some_call(chance))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        run(made.project, ALL)
        assert rows_of(made) == Counter(row.values for row in made.new(ALL).current)
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
    """Return what readers read."""
    current = project.current_of(shared.connection)
    return Counter(row.values for row in (project.rows_of(shared.connection) if current is None else current))
