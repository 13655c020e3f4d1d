"""Somebody else writes to the slice while a run publishes it, at every statement, in every order of the commits.

What was written is never lost in silence: it stands in the table, or among the rows that the run says it replaced, or
the writer was told that it did not go through.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from reslice.errors import KINDS, OutcomeUnknown, Refused, ResliceError, Retryable
from tests import orders_project as project
from tests.model import Call
from tests.model_rows import Row, fingerprint
from tests.races.conftest import D1, D3, Shared
from tests.races.interleaving import Beside, Ended, Writer, before, is_fence, outcome, run

ALL = Call(project.FREE, D1, D3)
EVERY = [pytest.param(6), pytest.param(1, marks=pytest.mark.slow)]
"""At which statements somebody writes: every n-th from the begin of the publish on, and a fifth as many before it."""
LIVE = 4242
Make = Callable[..., Shared]
FOLLOWED: dict[tuple[str, str], list[str]] = {}
"""The statements of a run that nobody is in the way of, by the table's key and the method."""

STATEMENTS = {
    "update a measure": f"UPDATE daily_orders SET revenue = {LIVE} WHERE order_date = '{D1}' AND channel = 'store'",
    "update two measures": f"UPDATE daily_orders SET order_count = {LIVE}, revenue = {LIVE} WHERE order_date = '{D1}'",
    "update a key column": f"UPDATE daily_orders SET channel = 'live' WHERE order_date = '{D1}' AND channel = 'store'",
    "update a stamp": f"UPDATE daily_orders SET batch_id = 'live' WHERE order_date = '{D1}' AND channel = 'store'",
    "insert": f"INSERT INTO daily_orders VALUES ('{D1}', 'live', 1, {LIVE}, false, NULL, 'live')",
    "delete": f"DELETE FROM daily_orders WHERE order_date = '{D1}' AND channel = 'store'",
}
IN_PLACE = ["replace_slice", "merge"]
KEYED = [
    pytest.param(name, key, id=f"{name}, {'key' if key else 'no key'}", marks=() if is_sampled else pytest.mark.slow)
    for name in STATEMENTS
    for key, is_sampled in (("", True), (project.PRIMARY_KEY, name in ("insert", "update a key column")))
]
GUARDED = [name for name in STATEMENTS if name.startswith("update")]


@dataclass(frozen=True)
class Found:
    """Where the live write is to be seen, after everything has ended."""

    in_table: bool
    in_kept: bool


def found(shared: Shared, name: str) -> Found:
    """Look for what was written: the value, or for a delete its absence."""
    if name == "delete":
        rows = [(row.order_date, row.channel) for row in project.rows_of(shared.connection)]
        kept = [(row.order_date, row.channel) for _, row in project.kept_of(shared.connection)]
        return Found((D1, "store") not in rows, bool(kept) and (D1, "store") not in kept)
    return Found(
        any(is_live(row) for row in project.rows_of(shared.connection)),
        any(is_live(row) for _, row in project.kept_of(shared.connection)),
    )


def is_live(row: Row) -> bool:
    return row.revenue == LIVE or "live" in (row.channel, row.batch_id)


def statements_of(make: Make, key: str, method: str = "replace_slice") -> list[str]:
    """Return the statements of a run, which are followed once."""
    if (key, method) not in FOLLOWED:
        made = make(key=key, method=method)
        with pytest.MonkeyPatch.context() as patch:
            FOLLOWED[key, method] = before(patch, {}).mine
            assert outcome(run(made.project, ALL)) == "published"
    return ["", *FOLLOWED[key, method]]


def places(make: Make, key: str, every: int, method: str = "replace_slice") -> list[int]:
    """Return the statements to write at."""
    texts = statements_of(make, key, method)
    begins = fence_of(texts) - 1
    return [*range(1, begins, 1 if every == 1 else 5 * every), *range(begins, len(texts), every)]


def held_to(shared: Shared, name: str, ended: Ended, writer: Writer) -> None:
    """Hold what everybody was told to what is there."""
    where = found(shared, name)
    if isinstance(ended, Refused | Retryable):
        assert ended.kind in ("base_moved", "conflict"), ended
        assert writer.has_written
        assert where.in_table, "the run did nothing, and the write is gone"
        assert len(project.kept_of(shared.connection)) == 0, "the run wrote nothing, and kept something"
    elif isinstance(ended, OutcomeUnknown):
        assert ended.kind == "slipped_in"
        assert writer.has_written
        assert where.in_table
    else:
        assert not isinstance(ended, ResliceError), ended
        assert where.in_table or where.in_kept or not writer.has_written, "lost in silence"


@pytest.mark.parametrize(
    ("method", "every"),
    [("replace_slice", 7), ("merge", 13), *(pytest.param(each, 1, marks=pytest.mark.slow) for each in IN_PLACE)],
)
@pytest.mark.parametrize(("name", "key"), KEYED)
def test_a_write_at_every_statement(shared: Make, name: str, key: str, method: str, every: int) -> None:
    kinds = set()
    for place in places(shared, key, every, method):
        made = shared(key=key, method=method)
        writer = Writer(made.connection.cursor())
        with pytest.MonkeyPatch.context() as patch:
            before(patch, {place: partial(writer.write, STATEMENTS[name])})
            ended = run(made.project, ALL)
        held_to(made, name, ended, writer)
        kinds.add("writer failed" if not writer.has_written else outcome(ended))
    assert "base_moved" in kinds or name == "update a stamp"
    assert kinds <= {"published", "base_moved", "writer failed", "slipped_in", "conflict"}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("name", GUARDED)
def test_a_transaction_that_is_open_meanwhile(shared: Make, name: str, word: str, every: int) -> None:
    """The write comes before one statement, and its commit or roll-back before a later one, or after the run."""
    chosen = places(shared, "", every)
    ends = itertools.cycle([chosen[-1], 10_000, *chosen[::2]])
    pairs = zip(chosen, ends, strict=False) if every > 1 else itertools.product(chosen[::2], [*chosen[1::6], 10_000])
    for place, end in ((place, end) for place, end in pairs if place < end):
        made = shared()
        writer = Writer(made.connection.cursor())
        with pytest.MonkeyPatch.context() as patch:
            before(patch, {end: partial(writer.end, word), place: partial(writer.begin, STATEMENTS[name])})
            ended = run(made.project, ALL)
        writer.end(word)
        if word == "COMMIT":
            held_to(made, name, ended, writer)
        else:
            assert outcome(ended) in ("published", "conflict")
            assert not found(made, name).in_table
            assert not found(made, name).in_kept


# --- versions ---------------------------------------------------------------------------------------------------------

ON_VERSIONS = {
    "update a measure": STATEMENTS["update a measure"],
    "update a key column": STATEMENTS["update a key column"],
    "insert": f"INSERT INTO daily_orders VALUES ('{D1}', 'live', 1, {LIVE}, false, NULL, 'r-0001')",
    "delete": STATEMENTS["delete"],
}


def is_honest(made: Shared, ended: Ended, writer: Writer) -> str:
    """Hold a run by append_version to what was written to the version before it; return how both ended.

    What the run says it has compared is what that version holds, or the run, or the writer, was told otherwise.
    """
    if isinstance(ended, OutcomeUnknown):
        assert ended.kind == "slipped_in"
    elif isinstance(ended, ResliceError):
        assert ended.kind in ("base_moved", "conflict"), ended
        assert writer.has_written
        _, moves = project.versions_of(made.connection)
        assert [move for move in moves if move[0] != "r-0001"] == [], "the run did nothing, and moved a pointer"
    else:
        before_it = [
            row for row in project.rows_of(made.connection) if (row.order_date, row.batch_id) == (D1, "r-0001")
        ]
        recorded = project.slices_of(made.connection)[str(ended.id), str(D1)][1]
        assert str(fingerprint(before_it)) == recorded, "what became of the version was told to nobody"
    return "writer failed" if not writer.has_written else outcome(ended)


@pytest.mark.parametrize("every", [pytest.param(6), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ON_VERSIONS)
def test_a_write_to_the_version_before_is_found_or_fails(shared: Make, name: str, every: int) -> None:
    texts = statements_of(shared, "", "append_version")
    last_look = last_look_of(texts)
    begins = fence_of(texts) - 1
    kinds = set()
    for place in [*range(1, begins, 3 * every), *range(begins, last_look + 1, every)]:
        made = shared(method="append_version")
        writer = Writer(made.connection.cursor())
        with pytest.MonkeyPatch.context() as patch:
            before(patch, {place: partial(writer.write, ON_VERSIONS[name])})
            ended = run(made.project, ALL)
        kinds.add(is_honest(made, ended, writer))
    assert "base_moved" in kinds
    assert kinds & {"slipped_in", "writer failed"}


@pytest.mark.parametrize("every", [pytest.param(5), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["update a measure", "update a key column"])
def test_an_update_of_a_version_that_is_open_meanwhile_is_a_conflict(shared: Make, name: str, every: int) -> None:
    last_look = last_look_of(statements_of(shared, "", "append_version"))
    chosen = [place for place in places(shared, "", every, "append_version") if place <= last_look]
    kinds = set()
    for place, end in zip(chosen, itertools.cycle([10_000, chosen[-1], *chosen[1::2]]), strict=False):
        if end <= place:
            continue
        made = shared(method="append_version")
        writer = Writer(made.connection.cursor())
        with pytest.MonkeyPatch.context() as patch:
            before(patch, {end: partial(writer.end, "COMMIT"), place: partial(writer.begin, ON_VERSIONS[name])})
            ended = run(made.project, ALL)
        writer.end("COMMIT")
        kinds.add(is_honest(made, ended, writer))
    assert {"conflict", "writer failed"} <= kinds


def last_look_of(texts: list[str]) -> int:
    """Return the statement that reads the version before, after the commit."""
    return max(place for place, text in enumerate(texts) if "AS version_before" in text)


@pytest.mark.parametrize("every", EVERY)
def test_an_insert_around_the_commit_is_told(shared: Make, every: int) -> None:
    """Before the snapshot of the publish it is a moved base; from there to the last look it has slipped in."""
    texts = statements_of(shared, "")
    begins = fence_of(texts)
    told = {}
    for place in range(begins - 1, len(texts), every):
        made = shared()
        writer = Writer(made.connection.cursor())
        with pytest.MonkeyPatch.context() as patch:
            before(patch, {place: partial(writer.write, STATEMENTS["insert"])})
            ended = run(made.project, ALL)
        assert writer.has_written
        told[place] = outcome(ended)
        assert isinstance(ended, ResliceError)
        assert ended.exit_code == {"base_moved": 3, "slipped_in": 5}[ended.kind]
        assert ended.kind in KINDS
        assert found(made, "insert").in_table
        assert isinstance(run(made.project, ALL), ResliceError) is False
        assert not found(made, "insert").in_table, "the next run puts the slice right"
        assert found(made, "insert").in_kept
    assert list(dict.fromkeys(told.values())) == ["base_moved", "slipped_in"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_writer_that_stays_is_waited_for_as_long_as_the_contract_says(shared: Make, count: int) -> None:
    made = shared(lock="300ms")
    writers = [Writer(made.connection.cursor()) for _ in range(count)]
    for writer, channel in zip(writers, ["store", "web"], strict=False):
        writer.begin(f"UPDATE daily_orders SET revenue = {LIVE} WHERE order_date = '{D1}' AND channel = '{channel}'")
    ended = run(made.project, ALL)
    assert isinstance(ended, Retryable)
    assert (ended.kind, ended.exit_code, ended.retry) == ("conflict", 4, True)
    assert ended.run is not None
    assert 0.3 <= ended.run.seconds < 5
    assert Counter(project.rows_of(made.connection)) == Counter(made.model.rows)
    *_, recorded = project.runs_of(made.connection)
    assert (recorded.state, recorded.error_kind) == ("failed", "conflict")
    for writer in writers:
        writer.end("ROLLBACK")
    assert outcome(run(made.project, ALL)) == "published"


def test_a_publish_that_stays_is_waited_for_as_long_as_the_contract_says(shared: Make) -> None:
    """The first run stands still after its fence; the second gives up, and the first still publishes."""
    after_fence = 1 + fence_of(statements_of(shared, ""))
    made = shared(wait="300ms")
    second = Beside(made.project, ALL)
    with pytest.MonkeyPatch.context() as patch:
        before(patch, {after_fence: lambda: second.finish()})
        first = run(made.project, ALL)
    ended = second.end()
    assert outcome(first) == "published"
    assert isinstance(ended, Retryable)
    assert (ended.kind, ended.exit_code, ended.retry) == ("database_busy", 4, True)
    assert ended.run is not None
    assert 0.3 <= ended.run.seconds < 5
    states = {each.id: (each.state, each.error_kind) for each in project.runs_of(made.connection)}
    assert states[str(ended.run.id)] == ("failed", "database_busy")
    assert outcome(run(made.project, ALL)) == "unchanged"


@pytest.mark.parametrize("key", ["", project.PRIMARY_KEY], ids=["no key", "key"])
def test_a_key_that_is_taken_at_the_commit_rolls_everything_back(shared: Make, key: str) -> None:
    """A row of a group that the run adds arrives, and commits, between the run's insert and its commit."""
    insert = next(place for place, text in enumerate(statements_of(shared, key)) if is_insert_of_target(text))
    made = shared(key=key)
    made.connection.execute("DELETE FROM daily_orders WHERE channel = 'store'")
    writer = Writer(made.connection.cursor())
    taken = f"INSERT INTO daily_orders (order_date, channel) VALUES ('{D1}', 'store')"
    with pytest.MonkeyPatch.context() as patch:
        before(patch, {insert + 1: lambda: writer.write(taken)})
        ended = run(made.project, ALL)
    assert writer.has_written
    assert isinstance(ended, ResliceError)
    assert ended.kind == ("conflict" if key else "slipped_in")
    stores = [row for row in project.rows_of(made.connection) if (row.order_date, row.channel) == (D1, "store")]
    assert len(stores) == (1 if key else 2)
    *_, recorded = project.runs_of(made.connection)
    assert recorded.state == ("failed" if key else "published")
    assert outcome(run(made.project, ALL)) == "published"


def is_insert_of_target(text: str) -> bool:
    return text.startswith("INSERT") and '."main"."daily_orders"' in text.splitlines()[0]


def fence_of(texts: list[str]) -> int:
    return next(place for place, text in enumerate(texts) if is_fence(text))
