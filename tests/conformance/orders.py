"""The base data of the suite, its contract, and the three ways a command may end, each held to everything it says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from reslice.errors import Refused, ResliceError, Stopped
from reslice.target_handle import TargetHandle
from reslice.values import Counts, Outcome, Run
from tests.conformance.databases import Database, Row

VERSION = "version_id"
"""The column that tells versions apart."""

D1, D2, D3, D4 = "2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"

FACTS: tuple[Row, ...] = (
    (1, D1, "web", 1000),
    (2, D1, "web", 2500),
    (3, D1, "store", 700),
    (4, D2, "web", 1200),
    (5, D2, "store", 300),
    (6, D2, "store", 450),
    (7, D3, "web", 5000),
    (8, D3, "phone", 999),
)

T0: tuple[Row, ...] = (
    (D1, "store", 1, 700),
    (D1, "web", 2, 3500),
    (D2, "store", 2, 750),
    (D2, "web", 1, 1200),
    (D3, "phone", 1, 999),
    (D3, "web", 1, 5000),
)

SOURCE = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders_fact
WHERE order_date BETWEEN :start AND :end
GROUP BY order_date, channel
"""

EVERY_METHOD = ("replace_slice", "merge", "append_version")
IN_PLACE = ("replace_slice", "merge")
"""The methods after which the table holds one version of a slice; of the other one the view does."""

ALLOWED = {"empty_slice": "allow", "total_change": "allow"}
"""Guards that a case does not test let everything through."""


def changed(*rows: Row) -> list[Row]:
    """Return T0 with these rows in place of those of the same key."""
    keys = {row[:2] for row in rows}
    return ordered([*(row for row in T0 if row[:2] not in keys), *rows])


def without(*keys: tuple[str, str]) -> list[Row]:
    """Return T0 without the rows of these keys."""
    return [row for row in T0 if row[:2] not in keys]


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows in an order that also knows NULL."""
    return sorted(rows, key=repr)


def kinds(error: ResliceError) -> list[str]:
    """Return the kinds of all failures of an error."""
    return [failure.kind for failure in error.failures]


def found(error: ResliceError) -> str:
    """Return everything that an error says was found."""
    return "\n".join(line for failure in error.failures for line in failure.found)


class Target:
    """One target of a contract file: plan, run and verify it, and hold each answer to table and ledger."""

    def __init__(
        self,
        database: Database,
        name: str,
        declaration: dict[str, Any],
        source: str,
        folder: Path | None = None,
        method: str = "replace_slice",
    ) -> None:
        self.database = database
        self.name = name
        self.method = method
        self.folder = folder or database.folder
        self.table: str = declaration["table"]
        self.declaration = declaration
        if method != "replace_slice":
            declaration["method"] = method
        if method == "append_version":
            declaration["stamps"] = {VERSION: "run_id", **declaration.get("stamps", {})}
            self.add_version_column(self.table)
        self.file = self.folder / f"{name}.yml"
        self.source(source)
        self.declare()

    def source(self, text: str, name: str = "source") -> None:
        """Write a SQL file that the contract names."""
        (self.folder / f"{name}.sql").write_text(text, encoding="utf-8")

    def declare(self, **keys: Any) -> None:
        """Change keys of the target and write the contract file; None takes a key out."""
        merged = {**self.declaration, **keys}
        self.declaration = {key: value for key, value in merged.items() if value is not None}
        contract = {"version": 1, "connection": self.database.url, "targets": {self.name: self.declaration}}
        self.file.write_text(json.dumps(contract, indent=1, ensure_ascii=False), encoding="utf-8")

    @property
    def handle(self) -> TargetHandle:
        """The target as the API gives it, from the contract file as it is now."""
        return self.database.project(self.file).target(self.name)

    def plan(self, range: str | None = None, **options: Any) -> Run:
        """Plan."""
        return self.handle.plan(range, **options)

    def run(self, range: str | None = None, **options: Any) -> Run:
        """Run."""
        return self.handle.run(range, **options)

    def verify(self, range: str | None = None, **options: Any) -> Run:
        """Verify."""
        return self.handle.verify(range, **options)

    def fails(self, command: str, error: type[ResliceError], range: str | None = None, **options: Any) -> Any:
        """Return the error a command ends with, which is of this very class."""
        with pytest.raises(ResliceError) as caught:
            getattr(self, command)(range, **options)
        assert type(caught.value) is error, caught.value
        return caught.value

    def status(self, range: str | None = None, **options: Any) -> Run:
        """Tell how the slices stand."""
        return self.handle.status(range, **options)

    def restore(self, run: str | None, range: str | None = None, **options: Any) -> Run:
        """Restore."""
        assert run is not None, "a run is restored"
        return self.handle.restore(run, range, **options)

    def plan_restore(self, run: str | None, range: str | None = None) -> Run:
        """Show what a restore would do."""
        assert run is not None, "a run is restored"
        return self.handle.plan_restore(run, range)

    def puts_back(
        self,
        run_id: str | None,
        range: str | None = None,
        *,
        after: Iterable[Row],
        slices: tuple[str, ...],
        added: int = 0,
        changed: int = 0,
        removed: int = 0,
        unchanged: int = 0,
    ) -> Run:
        """Restore, hold it to what was shown before, table and ledger; then once more, which changes nothing."""
        counts = Counts(added, changed, removed, unchanged)
        plan = self.plan_restore(run_id, range)
        assert plan.diff is not None and plan.diff.counts == counts and plan.outcome is Outcome.PLANNED
        run = self.restore(run_id, range)
        assert run.outcome is Outcome.RESTORED and run.target_changed and run.restores == run_id
        assert run.diff is not None and run.diff.counts == counts and run.slices_done == slices
        assert self.rows() == ordered(after)
        self._holds(run, "restored", counts, kind="restore")
        versions = self.versions()
        again = self.restore(run_id, range)
        assert again.outcome is Outcome.UNCHANGED and not again.target_changed and not again.slices_done
        assert self.versions() == versions
        return run

    def refuses_restore(self, run_id: str | None, *wanted: str, range: str | None = None) -> Refused:
        """Ask for a restore that is refused, before it is asked for and when it is: not one row moves."""
        versions = self.versions()
        with pytest.raises(Refused) as asked:
            self.plan_restore(run_id, range)
        with pytest.raises(Refused) as done:
            self.restore(run_id, range)
        planned, error = asked.value, done.value
        assert kinds(planned) == kinds(error) == list(wanted) and error.exit_code == 3
        assert found(planned) == found(error)
        assert self.versions() == versions
        assert error.run is None or not error.run.target_changed
        return error

    def add_version_column(self, table: str) -> None:
        """Give a table the column that tells versions apart; a test need not know of it."""
        self.database.execute(f"ALTER TABLE {table} ADD COLUMN {VERSION} VARCHAR")

    @property
    def current(self) -> str:
        """What a reader reads: the table, or the view of the current versions once there is one."""
        view = f"{self.table}_current"
        is_there = self.method == "append_version" and self.database.has_view(view.rpartition(".")[2])
        return view if is_there else self.table

    @property
    def columns(self) -> str:
        """What a test selects of a row: every column but the one it need not know of."""
        return self.database.every_column(self.table, but=VERSION) if self.method == "append_version" else "*"

    def rows(self) -> list[Row]:
        """Return the rows of the target, as a reader has them."""
        return ordered(self.database.rows(f"SELECT {self.columns} FROM {self.current}"))

    def versions(self) -> list[Row]:
        """Return the rows of the target with their physical place."""
        return self.database.versions(self.table)

    def ledger(self, run_id: str | None) -> dict[str, Any]:
        """Return what the ledger holds of a run, read as anybody would read it."""
        groups = [f"groups_{word}" for word in ("added", "changed", "removed", "unchanged")]
        sides = [f"{kind}_{side}" for kind in ("rows", "fingerprint") for side in ("base", "staged", "after")]
        sides[0] = "rows_before"
        names = ["kind", "state", "range_text", "slices", "reason", "approves", "error", *groups, *sides]
        found = self.database.rows(f"SELECT {', '.join(names)} FROM reslice.runs WHERE id = ?", [run_id])
        assert len(found) == 1, f"the ledger has {len(found)} rows of {run_id}"
        return dict(zip(names, found[0], strict=True))

    def slices(self, run_id: str | None) -> list[Row]:
        """Return the slices of a run and what became of each."""
        return self.database.rows(
            "SELECT slice, state FROM reslice.run_slices WHERE run_id = ? ORDER BY slice", [run_id]
        )

    def groups(self, run_id: str | None) -> list[Row]:
        """Return the groups of a run: what changed, and its key, before and after as values."""
        rows = self.database.rows(
            'SELECT change, "key", "before", "after" FROM reslice.run_groups WHERE run_id = ? ORDER BY "position"',
            [run_id],
        )
        return [
            (change, *(None if text is None else tuple(json.loads(text).values()) for text in texts))
            for change, *texts in rows
        ]

    def publish(
        self,
        range: str,
        *,
        after: Iterable[Row],
        added: int = 0,
        changed: int = 0,
        removed: int = 0,
        unchanged: int = 0,
        again: dict[str, Any] | None = None,
        **options: Any,
    ) -> Run:
        """Run, hold it to its plan, the table and the ledger; then run it again, which finds nothing to do."""
        counts = Counts(added, changed, removed, unchanged)
        widened = {key: value for key, value in options.items() if key in ("with_affected", "interval", "rewrite")}
        plan = self.plan(range, **widened)
        assert plan.diff is not None and plan.diff.counts == counts
        before = self.versions()
        run = self.run(range, **options)
        assert run.outcome is Outcome.PUBLISHED and run.target_changed and run.error is None
        assert run.diff is not None and run.diff.counts == counts
        assert self.rows() == ordered(after)
        self._leaves_alone(before)
        self._holds(run, "published", counts)
        assert run.after == run.diff.staged
        self.unchanged(range, **(again or {}))
        assert self.rows() == ordered(after)
        return run

    def _leaves_alone(self, before: list[Row]) -> None:
        """Hold a publish to the rows it need not touch: by merge those of equal groups, by append_version all."""
        if self.method == "replace_slice":
            return
        after = self.versions()
        lasting, seen = {row[1:] for row in after}, Counter(row[1:] for row in before)
        for row in before:
            stays = self.method == "append_version" or (row[1:] in lasting and seen[row[1:]] == 1)
            assert row in after or not stays, f"{row} was there, and is not any more"

    def unchanged(self, range: str, **options: Any) -> Run:
        """Run where nothing differs: no row moves, and the ledger says so."""
        versions = self.versions()
        run = self.run(range, **options)
        assert run.outcome is Outcome.UNCHANGED and not run.target_changed and not run.rewritten
        assert run.diff is not None and not run.diff.counts.any and not run.diff.differing
        assert self.versions() == versions
        self._holds(run, "unchanged", Counts(unchanged=run.diff.staged.rows))
        return run

    def _holds(self, run: Run, state: str, counts: Counts, kind: str = "run") -> None:
        """Hold the ledger's row of a run to the run."""
        assert run.diff is not None
        row = self.ledger(run.id)
        assert (row["kind"], row["state"], row["range_text"]) == (kind, state, run.scope.text)
        assert row["slices"] == run.scope.count
        groups = tuple(row[f"groups_{word}"] for word in ("added", "changed", "removed", "unchanged"))
        assert groups == (counts.added, counts.changed, counts.removed, counts.unchanged)
        rows = (row["rows_before"], row["rows_staged"], row["rows_after"])
        assert rows == (run.diff.base.rows, run.diff.staged.rows, run.rows_after)
        prints = (row["fingerprint_base"], row["fingerprint_staged"], row["fingerprint_after"])
        assert prints == (str(run.diff.base), str(run.diff.staged), str(run.diff.staged))

    def refuses(self, range: str, *wanted: str, is_planned: bool = True, **options: Any) -> Refused:
        """Run what breaks the contract, twice: not one row moves, and the ledger has it."""
        versions = self.versions()
        if is_planned:
            assert kinds(self.fails("plan", Refused, range)) == list(wanted)
        first: Refused = self.fails("run", Refused, range, **options)
        second: Refused = self.fails("run", Refused, range, **options)
        for error in (first, second):
            assert kinds(error) == list(wanted) and error.exit_code == 3
            assert error.run is not None and error.run.outcome is Outcome.REFUSED and not error.run.target_changed
            row = self.ledger(error.run.id)
            assert row["state"] == "refused" and json.loads(row["error"])["kind"] == wanted[0]
        assert self.versions() == versions
        return first

    def stops(self, range: str, *wanted: str, **options: Any) -> Stopped:
        """Run into guards, twice: the plan shows them, not one row moves, and the ledger has it."""
        versions = self.versions()
        plan = self.plan(range)
        assert [guard.name for guard in plan.guards if guard.stops] == list(wanted)
        first: Stopped = self.fails("run", Stopped, range, **options)
        second: Stopped = self.fails("run", Stopped, range, **options)
        for error in (first, second):
            assert kinds(error) == list(wanted) and error.exit_code == 3
            assert error.run is not None and error.run.outcome is Outcome.STOPPED and not error.run.target_changed
            assert self.ledger(error.run.id)["state"] == "stopped"
        assert self.versions() == versions
        return first


INSERT = "INSERT INTO daily_orders (order_date, channel, order_count, amount_cents) VALUES"
"""How somebody else puts a row into the target."""

COLUMNS = "order_date date, channel varchar, order_count bigint, amount_cents bigint"


class Orders(Target):
    """orders_fact and daily_orders, filled with T0."""

    def __init__(
        self, database: Database, *, filled: bool = True, folder: Path | None = None, method: str = "replace_slice"
    ) -> None:
        database.execute(
            "CREATE TABLE orders_fact (order_id bigint, order_date date, channel varchar, amount_cents bigint)"
        )
        self.database = database
        database.insert("orders_fact", FACTS)
        self._create_target("daily_orders", COLUMNS)
        declaration = {
            "table": "daily_orders",
            "source": "source.sql",
            "grain": ["order_date", "channel"],
            "slice": {"column": "order_date", "unit": "day"},
            "measures": {"order_count": {"min": 1}, "amount_cents": {}},
            "guards": ALLOWED,
        }
        super().__init__(database, "daily_orders", declaration, SOURCE, folder=folder, method=method)
        if filled:
            self.fill()

    def make_target(self, columns: str = "", table: str = "daily_orders") -> None:
        """Create the target anew, empty; `columns` replaces its columns."""
        self._create_target(table, columns or COLUMNS)
        if self.method == "append_version":
            self.add_version_column(table)

    def _create_target(self, table: str, columns: str) -> None:
        self.database.execute(f"DROP TABLE IF EXISTS {table}")
        self.database.execute(f"CREATE TABLE {table} ({columns})")

    def fill(self, rows: Iterable[Row] = T0) -> None:
        """Put rows into the target."""
        self.database.insert(f"{self.table} (order_date, channel, order_count, amount_cents)", rows)

    def order(self, order_id: int, order_date: str | None, channel: str | None, amount_cents: int | None) -> None:
        """Put one order into the source."""
        self.database.insert("orders_fact", [(order_id, order_date, channel, amount_cents)])

    def correct(self, order_id: int, amount_cents: int) -> None:
        """Give an order another amount."""
        self.database.execute("UPDATE orders_fact SET amount_cents = ? WHERE order_id = ?", (amount_cents, order_id))

    def cancel(self, condition: str) -> None:
        """Take orders out of the source."""
        self.database.execute(f"DELETE FROM orders_fact WHERE {condition}")

    def at_step(self, step: str, act: Callable[[], None]) -> Callable[[str], None]:
        """Return a follower of steps that acts once, when the run comes to `step`."""
        done: list[str] = []

        def follow(word: str) -> None:
            if word == step and not done:
                done.append(word)
                act()

        return follow

    def elsewhere(self, sql: str) -> Callable[[], None]:
        """Return an action: another session runs one statement and commits it."""

        def act() -> None:
            with self.database.session() as session:
                session.execute(sql)

        return act
