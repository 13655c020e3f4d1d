"""The ledger of one database: runs are opened and closed, asked for, and counted in the order they staged.

What engines do in their own way is how a transaction is alone with the ledger, how a run shows that it is alive, and
how a staging gets its number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import reslice
from reslice import ledger
from reslice.contract import Contract, Method
from reslice.engines import old_versions, series, sql, versions
from reslice.engines.affected import FIRST_INSTANT, affected
from reslice.engines.base import Answer, LedgerMade, LedgerScript, Question
from reslice.engines.failures import unknown
from reslice.engines.refusals import (
    lacking_rights,
    refuse_foreign_tables,
    refuse_lacking_rights,
    refuse_second_ledger,
    refuse_unreadable_ledger,
)
from reslice.engines.replaced import kept_tables
from reslice.engines.session import SqlSession
from reslice.engines.sql import quote
from reslice.engines.view import make_view, with_versions
from reslice.errors import Failure
from reslice.ranges import Moment, Scope
from reslice.recorded import LedgerRun, RestoredSlice, SliceRows, SliceWrite, Version
from reslice.tables import Target
from reslice.values import Number, Opened, Published, Request, Run, Staged, State

TouchedSince = Callable[[Contract, Target, str], list[Moment]]


class Records(ABC):
    """The ledger in the database of one session."""

    engine_version: str
    """The database and its version, as the ledger keeps it."""

    def __init__(self, session: SqlSession, touched_since: TouchedSince, token: str) -> None:
        self._session = session
        self._touched_since = touched_since
        self._token = token
        self._staged_orders: dict[str, int] = {}
        self._parts: dict[str, dict[str, Any]] = {}

    @abstractmethod
    def _alone(self, contract: Contract) -> AbstractContextManager[None]:
        """Return a transaction beside which no other one opens or closes a run, or makes tables, in this ledger."""

    @abstractmethod
    def _claim(self) -> None:
        """Show from now on, until the session ends, that its runs are alive."""

    @abstractmethod
    def _alive(self, tokens: Collection[str]) -> set[str]:
        """Return those of the tokens whose sessions have not ended."""

    @abstractmethod
    def _pruning(self, schema: str) -> AbstractContextManager[bool]:
        """Return a context that says whether nobody else is pruning, and keeps everybody else from it."""

    @abstractmethod
    def close(self) -> None:
        """Let go: runs of this session are not alive any more."""

    def staged_order(self, staged: Staged) -> int:
        """Return the number of a staging of a run."""
        return self._staged_orders[staged.token]

    def add_part(self, opened: Opened, published: Published, kept: str) -> None:
        """Remember what the ledger is told of a run of many commits when it ends: its last order, its time in all."""
        before = self._parts.get(opened.id, {"lock_milliseconds": 0})
        self._parts[opened.id] = {
            "publish_order": published.order,
            "lock_milliseconds": before["lock_milliseconds"] + published.lock_milliseconds,
            "kept_table": kept,
        }

    def rights_failures(self, contract: Contract, target: Target) -> tuple[Failure, ...]:
        """Return what a run needs of the ledger, and this user may not do; nothing is raised or written."""
        with self._session.translated(contract, "the ledger"):
            return lacking_rights(contract, self._lacking(contract, target), self._session.role)

    def open_run(self, request: Request, target: Target) -> Opened:
        """Commit the request to the ledger, which is made when absent, and close runs whose process is gone."""
        where = ledger.place(target.catalog, request.contract.ledger.schema)
        about = {
            "process": self._token,
            "tool_version": reslice.__version__,
            "engine_version": self.engine_version,
        }
        schema = request.contract.ledger.schema
        with self._session.translated(request.contract, "the ledger"), self._alone(request.contract):
            present = self._columns_in(target.catalog, schema)
            refuse_foreign_tables(request.contract, ledger.foreign_tables(present))
            self._hold_guard(request.contract, target)
            refuse_second_ledger(self._session, request.contract, target)
            refuse_lacking_rights(request.contract, self._lacking(request.contract, target), self._session.role)
            new_schema = self._new_schema(target.catalog, schema)
            for statement in ledger.create_statements(where, present, new_schema):
                self._session.execute(statement)
            self._claim()
            alive = self._alive(ledger.open_processes(self._session, where))
            abandoned = ledger.abandon(self._session, where, sorted(alive))
            run_id = ledger.open_request(self._session, where, request, target, about)
            kept = ledger.kept_table(where, target)
            if target.kind == "table" and not any(f"{where}.{quote(table)}" == kept for table, _ in present):
                self._session.execute(self._create_kept(kept, target))
            pointers = f"{versions.current_pointers(where, target)} AND version <> '' LIMIT 1"
            target = replace(target, has_pointers=bool(self._session.execute(pointers)))
        return Opened(run_id, target, abandoned)

    def versioned(self, contract: Contract, target: Target, opened: Opened | None) -> Target:
        """Return the target with how its current versions are read, and for a run with the view that others read."""
        if contract.method is not Method.APPEND_VERSION or opened is None:
            return target
        versioned = with_versions(self._session, contract, target)
        if versioned.current:
            self._make_view(contract, versioned)
        return versioned

    def _make_view(self, contract: Contract, target: Target) -> None:
        """Make the view that others read, or bring it up to date."""
        with self._alone(contract):
            make_view(self._session, contract, target)

    def create(self, contract: Contract, target: Target | None) -> LedgerMade:
        """Make the ledger ahead of the first run, or bring it up to date; rows that are there stay."""
        session = self._session
        with session.translated(contract, "the ledger"), self._alone(contract):
            catalog = target.catalog if target else session.execute("SELECT current_database()")[0][0]
            present = self._columns_in(catalog, contract.ledger.schema)
            refuse_foreign_tables(contract, ledger.foreign_tables(present))
            if target is not None:
                refuse_second_ledger(session, contract, target)
            refuse_lacking_rights(contract, self._lacking(contract, target), self._session.role)
            new_schema = self._new_schema(catalog, contract.ledger.schema)
            where = ledger.place(catalog, contract.ledger.schema)
            statements = ledger.create_statements(where, present, new_schema)
            for statement in statements:
                session.execute(statement)
            names = [table.name for table in ledger.TABLES]
            made = [name for name in names if any(f".{sql.quote(name)} " in statement for statement in statements)]
            kept, views = ((), ()) if target is None else self._make_ahead(contract, target)
        present_names = [name for name in names if name not in made]
        if target is not None and target.kind == "table":
            own = ledger.kept_table("", target).rpartition(".")[2].strip('"')
            present_names += [own] if own in {table for table, _ in present} else []
        return LedgerMade(contract.ledger.schema, (*made, *kept), tuple(present_names), tuple(views))

    def script(self, contract: Contract, target: Target | None, role: str | None) -> LedgerScript:
        """Return the SQL that makes the ledger; who may write to the database may write to it."""
        return LedgerScript(tuple(ledger.create_statements(quote(contract.ledger.schema), ())))

    def _new_schema(self, catalog: str, schema: str) -> str | None:
        """Return the name by which the schema of a ledger is made; None where it is there."""
        return self._session.dialect.new_schema(catalog, schema)

    def _lacking(self, contract: Contract, target: Target | None) -> Sequence[str]:
        """Return what a run needs, and this user can neither use nor make."""
        return ()

    def _unreadable(self, schema: str, tables: Collection[str]) -> Sequence[str]:
        """Return what keeps this user from reading these tables of a ledger that is there."""
        return ()

    def _refuse_unreadable(self, schema: str, *tables: str) -> None:
        """Refuse where there is a ledger, and this user may not read it: it is not taken for none."""
        refuse_unreadable_ledger(self._session.shown, schema, self._unreadable(schema, tables), self._session.role)

    def _hold_guard(self, contract: Contract, target: Target) -> None:
        """Let no other ledger begin to guard the table until the transaction ends, which may begin to.

        Where one transaction at a time works on any ledger, nothing is to be done.
        """
        return

    def _create_kept(self, kept: str, target: Target) -> str:
        """Return the statement that makes the table which keeps replaced rows."""
        return ledger.create_kept(kept, sql.target_name(target), target)

    def _make_ahead(self, contract: Contract, target: Target) -> tuple[Sequence[str], Sequence[str]]:
        """Make what a run makes beside the ledger, where it may not; return the tables and views that were made."""
        return (), ()

    def close_run(
        self, staged: Staged | None, contract: Contract, target: Target, opened: Opened, run: Run, state: State
    ) -> None:
        """Commit how a run ended that publishes nothing more; the target is not touched."""
        where = ledger.place(target.catalog, contract.ledger.schema)
        order = self._staged_orders.get(staged.token) if staged else None
        more = {"staged_order": order, **self._parts.get(opened.id, {})}
        with self._session.ending(), self._session.translated(contract, "the ledger"):
            try:
                with self._closing(contract, target, staged, run, state):
                    self._refuse_to_claim(where, contract, opened, run)
                    if ledger.close(self._session, where, opened.id, run, state, more):
                        ledger.insert_rest(self._session, where, opened.id, run)
            except self._session.driver_error:  # the answer to the commit may have been lost
                self._session.roll_back()
                with self._settled(contract, target):
                    found = ledger.state_of(self._session, where, opened.id)
                if found is not state:
                    raise

    def _settled(self, contract: Contract, target: Target) -> AbstractContextManager[None]:
        """Return a context in which it is known how a commit ended whose answer was lost."""
        return nullcontext()

    def _closing(
        self, contract: Contract, target: Target, staged: Staged | None, run: Run, state: State
    ) -> AbstractContextManager[None]:
        """Return the transaction in which a run is closed; where nothing differed, that is still so in it."""
        return self._alone(contract)

    def _refuse_to_claim(self, where: str, contract: Contract, opened: Opened, run: Run) -> None:
        """Raise OutcomeUnknown when the ledger does not hold every slice that a run of many commits has published."""
        if not run.slices_done:
            return
        landed = ledger.count_published(self._session, where, opened.id)
        if landed != len(run.slices_done):
            found = f"{len(run.slices_done)} slices were committed, and the ledger holds {landed}"
            raise unknown(contract, run.scope, opened.id, found)

    def prune(self, contract: Contract, target: Target) -> tuple[str, ...]:
        """Let go of what is older than `ledger.keep_days`; whoever is at it already does it for everybody."""
        where = ledger.place(target.catalog, contract.ledger.schema)
        table, days = target.resolved, contract.ledger.keep_days
        schema = contract.ledger.schema
        with self._session.translated(contract, "what is too old in the ledger"):
            if not ledger.is_due(self._session, where, table, days):
                return ()
            with self._pruning(schema) as is_ours:
                if not is_ours:
                    return ()
                with self._session.transaction():
                    names = kept_tables(self._session, target.catalog, schema)
                    kept = [f"{where}.{quote(name)}" for name in names]
                    return ledger.prune(self._session, where, kept, table, days)

    def affected(self, contract: Contract, target: Target, scope: Scope) -> tuple[Moment, ...]:
        """Return the slices outside `scope` that corrections touch and no run has covered since."""

        def touched_since(since: str) -> list[Moment]:
            return self._touched_since(contract, target, since)

        with self._session.translated(contract, "which slices corrections touch"):
            if (target.catalog, contract.ledger.schema) not in self._session.ledgers():
                return tuple(moment for moment in touched_since(FIRST_INSTANT) if not scope.contains(moment))
            where = ledger.place(target.catalog, contract.ledger.schema)
            return affected(self._session, where, contract, target, scope, touched_since)

    def affected_since(self, contract: Contract, target: Target, instant: datetime) -> tuple[Moment, ...]:
        """Return the slices that corrections since an instant touch, in order."""
        since = instant.astimezone(UTC).isoformat(" ").removesuffix("+00:00")
        with self._session.translated(contract, "which slices corrections touch"):
            return tuple(sorted(self._touched_since(contract, target, since)))

    def restored(self, contract: Contract, target: Target, labels: tuple[str, ...]) -> Mapping[str, RestoredSlice]:
        """Return which of the slices were restored, and neither written nor found equal since."""
        with self._session.translated(contract, "the ledger"):
            where = ledger.place(target.catalog, contract.ledger.schema)
            if ("runs", "restores") not in self._columns_in(target.catalog, contract.ledger.schema):
                return {}  # there is no ledger, or one that is older than restores are
            return ledger.restored(self._session, where, target, labels)

    def versions(self, contract: Contract, target: Target, scope: Scope | None) -> tuple[Version, ...]:
        """Return the versions in the table, by slice and then by age; none where the ledger knows of none."""
        with self._session.translated(contract, "the versions in the table"):
            if ("versions", "version") not in self._columns_in(target.catalog, contract.ledger.schema):
                return ()
            return old_versions.listed(self._session, contract, target, scope)

    def prune_versions(
        self, contract: Contract, target: Target, scope: Scope, before: datetime, opened: Opened, run: Run
    ) -> tuple[Version, ...]:
        """Delete the versions that are not current and were replaced before an instant; return which they were."""
        where = ledger.place(target.catalog, contract.ledger.schema)
        session = self._session
        with session.ending(), session.translated(contract, "old versions of the table"):
            with self._turn(contract, target):
                order = old_versions.take_turn(session, contract, target, scope)
                listed = old_versions.listed(session, contract, target, scope)
                old = tuple(each for each in listed if each.is_replaced_before(before))
                rows = old_versions.prune(session, contract, target, scope, before)
                if rows != (counted := sum(each.rows for each in old)):
                    found = f"{counted} rows were counted and {rows} deleted: somebody writes to these versions"
                    raise old_versions.not_pruned(contract, scope, found)
                held = sum(each.rows for each in listed)
                more = {"publish_order": order, "rows_before": held, "rows_after": held - rows}
                done = replace(run, warnings=(*run.warnings, *old_versions.deleted_words(old, rows)))
                if ledger.close(session, where, opened.id, done, State.PUBLISHED, more) != 1:
                    raise old_versions.not_pruned(contract, scope, f"{opened.id} is no longer open in the ledger")
            if ledger.state_of(session, where, opened.id) is not State.PUBLISHED:
                raise unknown(contract, scope, opened.id, "its commit was sent, and the ledger does not hold it")
        return old

    def writes_since(
        self, contract: Contract, target: Target, run_id: str, labels: tuple[str, ...]
    ) -> tuple[SliceWrite, ...]:
        """Return each time that slices of a run were written, from that run on, the latest first."""
        with self._session.translated(contract, "the ledger"):
            where = ledger.place(target.catalog, contract.ledger.schema)
            knows = ("runs", "restores") in self._columns_in(target.catalog, contract.ledger.schema)
            return ledger.writes_since(self._session, where, target, run_id, labels, knows_restores=knows)

    def sums(
        self, contract: Contract, target: Target, run: LedgerRun, scope: Scope, measure: str
    ) -> Mapping[SliceRows, Number | None]:
        """Return what a measure adds up to in the rows of `scope` that a run found and left, while they are kept."""
        with self._session.translated(contract, f"the rows of {target.resolved}"):
            self._session.pin(contract)
            return series.sums(self._session, contract, target, run, scope, measure)

    def _columns_in(self, catalog: str, schema: str) -> set[tuple[str, str]]:
        """Return the tables and columns of a schema."""
        return {(table, column) for table, column, _ in self._session.columns_in(catalog, schema)}

    def _ledgers(self, schema: str) -> dict[str, set[str]]:
        """Return the databases that have a ledger, each with the columns of runs that it lacks: an older one does."""
        ours = {column.name for table in ledger.TABLES if table.name == "runs" for column in table.columns}
        found = {}
        for catalog, name in self._session.ledgers():
            if name == schema:
                columns = {column for table, column in self._columns_in(catalog, schema) if table == "runs"}
                found[catalog] = ours - columns
        return found

    def runs(self, ledger_schema: str, target: str | None, limit: int) -> tuple[LedgerRun, ...]:
        """Return the newest runs of the ledger, newest first; none when there is no ledger."""
        found: list[LedgerRun] = []
        with self._session.translated(None, "the ledger"):
            self._refuse_unreadable(ledger_schema, "runs")
            for catalog, absent in self._ledgers(ledger_schema).items():
                where = ledger.place(catalog, ledger_schema)
                found += ledger.runs(self._session, where, target, limit, absent=absent)
            found = self._seen(found)
        return tuple(sorted(found, key=lambda run: run.requested_at, reverse=True)[:limit])

    def find_runs(self, ledger_schema: str, reference: str, target: str | None = None) -> tuple[LedgerRun, ...]:
        """Return the runs a reference may mean; none when there is no ledger."""
        matches: list[LedgerRun] = []
        with self._session.translated(None, "the ledger"):
            self._refuse_unreadable(ledger_schema, "runs", "run_slices", "run_groups")
            for catalog, absent in self._ledgers(ledger_schema).items():
                where = ledger.place(catalog, ledger_schema)
                matches += ledger.find(self._session, where, reference, target, absent=absent)
            return tuple(self._seen(matches))

    def look(self, ledger_schema: str, question: Question[Answer]) -> tuple[Answer, ...]:
        """Return the answer of each ledger of that schema; none when there is none."""
        with self._session.translated(None, "the ledger"):
            self._refuse_unreadable(ledger_schema, "runs", "run_slices", "run_groups")
            ledgers = self._ledgers(ledger_schema).items()
            return tuple(
                question(self._session, ledger.place(catalog, ledger_schema), absent) for catalog, absent in ledgers
            )

    def seen(self, runs: Sequence[LedgerRun]) -> tuple[LedgerRun, ...]:
        """Return the runs with whether each is at work now."""
        with self._session.translated(None, "the ledger"):
            return tuple(self._seen(list(runs)))

    def _seen(self, runs: list[LedgerRun]) -> list[LedgerRun]:
        """Return runs with whether each is at work now."""
        requested = {run.process for run in runs if run.state == State.REQUESTED}
        alive = self._alive(requested) if requested else set()
        return [replace(run, alive=run.state == State.REQUESTED and run.process in alive) for run in runs]

    @abstractmethod
    def _turn(self, contract: Contract, target: Target) -> AbstractContextManager[None]:
        """Return a transaction beside which there is no publish of the table."""
