"""What the ledger lets go of, and what it never does: kept rows and groups by age, never the last run of a slice."""

from __future__ import annotations

from pathlib import Path

import pytest

from reslice.errors import Refused, Stopped
from reslice.values import Outcome, Run
from tests.conformance.databases import Database
from tests.conformance.orders import ALLOWED, D1, D2, D3, SOURCE, T0, Orders, Target, changed, found, kinds, ordered

LEDGER_PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
ONE_RUN = "pruned: kept rows and groups of 1 run older than 90 days (ledger: keep_days)"


class Kept(Orders):
    """The orders, whose ledger can be made to look older than it is."""

    def publish_again(self, range: str, amount_cents: int) -> Run:
        """Give an order of day 1 another amount and publish."""
        self.correct(1, amount_cents)
        run = self.run(range)
        assert run.outcome is Outcome.PUBLISHED
        return run

    def age(self, days: int, *runs: str) -> None:
        """Let runs, or all there are, have ended so many days earlier than they did."""
        by = f"INTERVAL '{days} days'"
        chosen = ", ".join(f"'{run}'" for run in runs)
        self.database.execute(
            f"UPDATE reslice.runs SET requested_at = requested_at - {by}, finished_at = finished_at - {by}"
            + (f" WHERE id IN ({chosen})" if runs else "")
        )
        self.database.execute(
            f"UPDATE reslice.run_slices SET published_at = published_at - {by}"
            + (f" WHERE run_id IN ({chosen})" if runs else "")
        )

    def let_a_day_pass(self) -> None:
        """Let the last look for what is too old have been a day and an hour ago."""
        self.database.execute("UPDATE reslice.prunings SET looked_at = looked_at - INTERVAL '25 hours'")

    def kept(self) -> dict[str, int]:
        """Return how many rows are kept of each run, in all kept tables there are."""
        names = [name for name in self.database.table_names("reslice") if len(name) == 17 and name[:5] == "kept_"]
        found = [
            row
            for name in names
            for row in self.database.rows(f'SELECT "reslice:run", count(*) FROM reslice.{name} GROUP BY 1')
        ]
        return dict(sorted(found))

    def groups_held(self) -> dict[str, int]:
        """Return how many groups the ledger holds of each run."""
        rows = self.database.rows("SELECT run_id, count(*) FROM reslice.run_groups GROUP BY run_id ORDER BY run_id")
        return dict(rows)

    def marked(self) -> list[str]:
        """Return the runs of which something was pruned."""
        rows = self.database.rows("SELECT id FROM reslice.runs WHERE pruned_at IS NOT NULL ORDER BY number")
        return [row[0] for row in rows]


@pytest.fixture
def orders(engine: Database) -> Kept:
    return Kept(engine)


@pytest.fixture
def old(orders: Kept) -> Kept:
    """Day 1 was published twice, a hundred days ago: of r-0001 everything may go, r-0002 is the last of its slice."""
    orders.publish_again(D1, 1100)
    orders.publish_again(D1, 1200)
    assert (orders.kept(), orders.groups_held()) == ({"r-0001": 2, "r-0002": 2}, {"r-0001": 1, "r-0002": 1})
    orders.age(100)
    return orders


def pruned(run: Run) -> tuple[str, ...]:
    """Return what a run says of pruning."""
    return tuple(note for note in run.notes if note.startswith("pruned"))


def assert_pruned(orders: Kept) -> None:
    """Nothing is left of r-0001 but that it was; r-0002 has what it had."""
    assert (orders.kept(), orders.groups_held()) == ({"r-0002": 2}, {"r-0002": 1})
    assert orders.marked() == ["r-0001"]


def assert_whole(orders: Kept) -> None:
    assert (orders.kept(), orders.groups_held()) == ({"r-0001": 2, "r-0002": 2}, {"r-0001": 1, "r-0002": 1})
    assert orders.marked() == []


def test_a_run_lets_go_of_what_is_too_old_and_says_so(old: Kept) -> None:
    runs, slices = (old.database.rows(f"SELECT count(*) FROM reslice.{name}") for name in ("runs", "run_slices"))
    run = old.run(D2)
    assert (run.outcome, pruned(run)) == (Outcome.UNCHANGED, (ONE_RUN,))
    assert_pruned(old)
    assert old.rows() == changed((D1, "web", 2, 3700))
    assert old.database.rows("SELECT count(*) - 1 FROM reslice.runs") == runs
    assert old.database.rows("SELECT count(*) - 1 FROM reslice.run_slices") == slices
    assert ONE_RUN.replace("1 run ", "12 runs ") in LEDGER_PAGE.read_text(encoding="utf-8")


def test_what_is_shown_of_a_pruned_run_says_that_it_was(old: Kept) -> None:
    assert old.handle.project.show("r-0001").pruned_at is None
    old.run(D2)
    shown = old.handle.project.show("r-0001")
    assert shown.pruned_at is not None and shown.pruned_at >= old.handle.project.show("last").requested_at
    assert (shown.groups, shown.counts and shown.counts.changed) == ((), 1)
    assert old.handle.project.show("r-0002").pruned_at is None


@pytest.mark.parametrize(
    ("keep_days", "age", "is_pruned"),
    [
        (1, 2, True),
        (1, 0, False),
        (90, 89, False),
        (90, 91, True),
        (7, 8, True),
        (36500, 36499, False),
        (36500, 36501, True),
    ],
)
def test_the_limit_is_keep_days_after_the_end_of_a_run(orders: Kept, keep_days: int, age: int, is_pruned: bool) -> None:
    orders.publish_again(D1, 1100)
    orders.publish_again(D1, 1200)
    orders.age(age)
    orders.declare(ledger={"schema": "reslice", "keep_days": keep_days})
    notes = pruned(orders.run(D2))
    if is_pruned:
        old = "1 day" if keep_days == 1 else f"{keep_days} days"
        assert notes == (f"pruned: kept rows and groups of 1 run older than {old} (ledger: keep_days)",)
        assert_pruned(orders)
    else:
        assert notes == ()
        assert_whole(orders)


def test_the_last_published_run_of_any_slice_is_spared_whole(orders: Kept) -> None:
    orders.correct(4, 1300)
    orders.publish_again(f"{D1}..{D2}", 1100)
    orders.publish_again(D1, 1200)
    orders.age(1000)
    assert pruned(orders.run(D3)) == ()
    assert orders.kept() == {"r-0001": 4, "r-0002": 2}
    orders.correct(4, 1400)
    assert pruned(orders.run(D2)) == ()  # one look a day
    orders.let_a_day_pass()
    assert pruned(orders.run(D3)) == (ONE_RUN,)  # day 2 has a later run now
    assert orders.kept() == {"r-0002": 2, "r-0004": 2}


def test_every_slice_of_a_per_slice_run_counts(orders: Kept) -> None:
    orders.correct(1, 1100)
    orders.correct(4, 1300)
    assert orders.run(f"{D1}..{D2}", per_slice=True).outcome is Outcome.PUBLISHED
    orders.publish_again(D1, 1200)
    orders.age(1000)
    orders.run(D3)
    assert orders.kept() == {"r-0001": 4, "r-0002": 2}


def test_a_run_that_ended_part_way_is_pruned_by_its_slices(orders: Kept) -> None:
    orders.publish_again(D1, 1100)
    orders.publish_again(D1, 1200)
    # As a per-slice run leaves it whose process was killed: slices that are published, and no end.
    orders.database.execute(
        "UPDATE reslice.runs SET state = 'requested', finished_at = NULL, kept_table = NULL, groups_added = NULL,"
        " groups_changed = NULL, groups_removed = NULL, publish_order = NULL WHERE id = 'r-0001'"
    )
    orders.age(100)
    assert "r-0001" in orders.run(D2).notes[0]  # abandoned: it ends now, and is young
    assert orders.kept() == {"r-0001": 2, "r-0002": 2}
    orders.age(100)
    orders.let_a_day_pass()
    assert pruned(orders.run(D2)) == (ONE_RUN,)
    assert_pruned(orders)


def test_groups_of_runs_that_published_nothing_go_as_well(orders: Kept) -> None:
    orders.declare(guards=ALLOWED | {"removed_groups": "stop"})
    orders.cancel("order_id = 4")
    assert isinstance(orders.fails("run", Stopped, D2), Stopped)
    assert orders.groups_held() == {"r-0001": 1}
    orders.age(91)
    assert pruned(orders.run(D1)) == (ONE_RUN,)
    assert (orders.groups_held(), orders.marked()) == ({}, ["r-0001"])


def test_a_run_that_does_not_go_through_prunes_nothing(old: Kept) -> None:
    old.correct(4, -1)
    old.declare(measures={"order_count": {"min": 1}, "amount_cents": {"min": 0}})
    assert pruned(old.fails("run", Refused, D2).run) == ()
    old.cancel("order_id = 4")
    old.declare(guards=ALLOWED | {"removed_groups": "stop"})
    assert pruned(old.fails("run", Stopped, D2).run) == ()
    old.plan(D1)
    old.verify(D1)
    assert (old.kept(), old.marked()) == ({"r-0001": 2, "r-0002": 2}, [])
    assert old.groups_held() == {"r-0001": 1, "r-0002": 1, "r-0004": 1}
    assert old.database.rows("SELECT * FROM reslice.prunings") == []


def test_only_the_table_of_the_run_is_pruned(old: Kept, tmp_path: Path) -> None:
    other = Orders.__new__(Orders)
    old.make_target(table="other_orders")
    declaration = {**old.declaration, "table": "other_orders"}
    Target.__init__(other, old.database, "other_orders", declaration, SOURCE, tmp_path)
    assert pruned(other.run(D1)) == ()
    assert_whole_but_for_new(old, "r-0003")


def assert_whole_but_for_new(old: Kept, new: str) -> None:
    assert {run: count for run, count in old.kept().items() if run != new} == {"r-0001": 2, "r-0002": 2}
    assert old.marked() == []


def test_a_look_is_taken_once_a_day_and_a_clock_that_was_set_back_does_not_end_it(old: Kept) -> None:
    assert pruned(old.run(D2)) == (ONE_RUN,)
    old.publish_again(D1, 1300)
    old.age(100)
    assert pruned(old.run(D2)) == ()
    old.let_a_day_pass()
    assert pruned(old.run(D2)) == (ONE_RUN,)
    assert old.kept() == {"r-0004": 2}
    old.publish_again(D1, 1400)
    old.age(100)
    old.database.execute("UPDATE reslice.prunings SET looked_at = now() + INTERVAL '1000 days'")
    assert pruned(old.run(D2)) == (ONE_RUN,)
    assert old.kept() == {"r-0007": 2}


def test_a_run_that_ended_while_the_clock_was_behind_is_as_young_as_the_one_before_it(orders: Kept) -> None:
    for amount in (1100, 1200, 1300):
        orders.publish_again(D1, amount)
    orders.age(10_000, "r-0002")
    assert pruned(orders.run(D2)) == ()
    assert orders.kept() == {"r-0001": 2, "r-0002": 2, "r-0003": 2}


def test_a_run_that_ended_in_the_future_ages_nothing_and_spares_nothing(orders: Kept) -> None:
    for amount in (1100, 1200, 1300):
        orders.publish_again(D1, amount)
    orders.age(100)
    orders.age(-5000, "r-0001")
    assert pruned(orders.run(D2)) == (ONE_RUN,)
    # r-0001 seems to have published last, and r-0003 has: both stay.
    assert orders.kept() == {"r-0001": 2, "r-0003": 2}


def test_a_slice_of_another_unit_is_another_slice(old: Kept) -> None:
    old.database.execute("UPDATE reslice.runs SET unit = 'week' WHERE id = 'r-0001'")
    assert pruned(old.run(D2)) == ()
    assert_whole(old)


def test_every_set_of_columns_is_pruned_and_no_table_of_a_user_is_touched(orders: Kept) -> None:
    orders.publish_again(D1, 1100)
    orders.database.execute("ALTER TABLE daily_orders ADD COLUMN note varchar")
    orders.declare(measures={"order_count": {"min": 1}, "amount_cents": {}, "note": {"nulls": "allow"}})
    orders.source(SOURCE.replace("AS order_count,", "AS order_count, CAST(NULL AS varchar) AS note,"))
    orders.publish_again(D1, 1200)
    orders.publish_again(D1, 1300)
    assert orders.kept() == {"r-0001": 2, "r-0002": 2, "r-0003": 2}
    orders.age(100)
    tables = orders.database.table_names("reslice")
    mine = {"kept_0123456789ab": "id", "kept_by_me": '"reslice:run"'}
    for name, column in mine.items():
        orders.database.execute(f"CREATE TABLE reslice.{name} AS SELECT 'r-0001' AS {column}")
    assert pruned(orders.run(D2)) == (ONE_RUN.replace("1 run ", "2 runs "),)
    for name, column in mine.items():
        assert orders.database.rows(f"SELECT {column} FROM reslice.{name}") == [("r-0001",)]
        orders.database.execute(f"DROP TABLE reslice.{name}")
    assert orders.kept() == {"r-0003": 2}
    assert orders.database.table_names("reslice") == tables, "an empty kept table stays"


def test_a_ledger_of_an_older_version_is_read_as_it_is_and_pruned_by_the_next_run(old: Kept) -> None:
    old.database.execute("DROP TABLE reslice.prunings")
    old.database.execute("ALTER TABLE reslice.runs DROP COLUMN pruned_at")
    assert [run.id for run in old.handle.project.history()] == ["r-0002", "r-0001"]
    assert old.handle.project.show("r-0001").pruned_at is None
    assert pruned(old.run(D2)) == (ONE_RUN,)
    assert_pruned(old)


def test_pruning_that_fails_is_a_warning_of_a_run_that_stands(old: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    old.database.follow_statements(
        monkeypatch,
        lambda text: (
            "SELECT CAST('no room: ' || $ids AS bigint)" if "DELETE FROM" in text and "run_groups" in text else None
        ),
    )
    run = old.publish_again(D1, 1300)
    assert (run.error, pruned(run)) == (None, ())
    assert run.warnings[-1].startswith("the ledger still holds what is older than keep_days: pruning it failed,")
    assert "no room" in run.warnings[-1]
    assert_whole_but_for_new(old, "r-0003")
    monkeypatch.undo()
    assert pruned(old.run(D2)) == (ONE_RUN.replace("1 run ", "2 runs "),), "day 1 has a later run now"


def test_an_interrupt_while_pruning_leaves_it_to_the_next_run(old: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = old.handle

    def interrupted(text: str) -> None:
        if "DELETE FROM" in text and "run_groups" in text:
            handle.project.interrupt()

    old.database.follow_statements(monkeypatch, interrupted)
    run = handle.run(D2)
    assert (run.outcome, pruned(run)) == (Outcome.UNCHANGED, ())
    assert not any("pruning" in text for text in run.warnings)
    assert_whole(old)
    monkeypatch.undo()
    assert pruned(old.run(D2)) == (ONE_RUN,)


def test_a_publish_of_the_same_table_while_it_is_pruned_waits_for_nothing(
    old: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.declare(timeouts={"wait": "0s"})
    inner: list[Run] = []

    def publish_meanwhile(text: str) -> None:
        if "UPDATE" in text and "prunings" in text and not inner:
            inner.append(old.run(D1, rewrite=True))

    old.database.follow_statements(monkeypatch, publish_meanwhile)
    outer = old.run(D2)
    assert (inner[0].outcome, pruned(inner[0])) == (Outcome.PUBLISHED, ()), "it looks for nothing: that is being done"
    assert pruned(outer) == (ONE_RUN,)
    assert old.kept() == {"r-0002": 2, "r-0004": 2}
    assert old.rows() == changed((D1, "web", 2, 3700))


def undone(orders: Kept, run: str) -> Run:
    """Restore, and hold it to having put rows back."""
    restored = orders.handle.restore(run)
    assert (restored.outcome, restored.target_changed) == (Outcome.RESTORED, True)
    return restored


def test_a_restore_is_the_last_word_on_a_slice_and_spares_the_run_that_it_undid(old: Kept) -> None:
    assert pruned(undone(old, "r-0002")) == (ONE_RUN,)
    assert (old.kept(), old.marked()) == ({"r-0002": 2, "r-0003": 2}, ["r-0001"])
    old.age(100)
    old.let_a_day_pass()
    assert pruned(old.run(D2)) == ()
    assert old.handle.restore("r-0002").outcome is Outcome.UNCHANGED, "restoring twice changes nothing"
    assert old.rows() == changed((D1, "web", 2, 3600))
    undone(old, "r-0003")
    assert old.rows() == changed((D1, "web", 2, 3700))
    old.let_a_day_pass()
    assert pruned(old.run(D2)) == (ONE_RUN,)
    assert (old.kept(), old.marked()) == ({"r-0003": 2, "r-0006": 2}, ["r-0001", "r-0002"])


def test_what_was_pruned_is_not_restored_and_that_is_said(orders: Kept) -> None:
    orders.publish_again(D1, 1100)
    orders.publish_again(D1, 1200)
    undone(orders, "r-0002")
    orders.age(100)
    assert pruned(orders.run(D2)) == (ONE_RUN,)
    with pytest.raises(Refused) as refused:
        orders.handle.restore("r-0001")
    assert kinds(refused.value) == ["kept_gone"]
    assert "it was pruned on 20" in found(refused.value)
    assert orders.rows() == changed((D1, "web", 2, 3600))


def test_a_restore_that_has_staged_loses_nothing_to_a_run_that_prunes(orders: Kept) -> None:
    orders.publish_again(D1, 1100)
    orders.publish_again(D1, 1200)
    undone(orders, "r-0002")
    orders.age(100)
    meanwhile: list[Run] = []
    follow = orders.at_step("comparing", lambda: meanwhile.append(orders.run(D2)))
    restored = orders.handle.restore("r-0001", on_step=follow)
    assert pruned(meanwhile[0]) == (ONE_RUN,)
    assert "r-0001" not in orders.kept()
    assert (restored.outcome, orders.rows()) == (Outcome.RESTORED, ordered(T0))


def test_a_first_load_has_nothing_to_let_go_of(engine: Database) -> None:
    orders = Kept(engine, filled=False)
    assert pruned(orders.run(f"{D1}..{D3}")) == ()
    orders.age(1000)
    assert pruned(orders.run(f"{D1}..{D3}")) == ()
    assert orders.groups_held() == {"r-0001": len(T0)}
