"""The ledger of a PostgreSQL database: many processes share it, and find out about each other by locks.

A run holds a session lock for as long as its connection lives. Whoever gets that lock knows that the run is gone,
whether or not it could still say so.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reslice import ledger
from reslice.contract import Contract
from reslice.engines.base import LedgerScript
from reslice.engines.postgres import ahead, locks, rights
from reslice.engines.postgres.current_view import ATTEMPTS, BETWEEN_SECONDS, Held, held, make_soon
from reslice.engines.postgres.session import milliseconds
from reslice.engines.postgres.statements import TURN
from reslice.engines.postgres.waiting import guard_of, ledger_of, turn_of, waited
from reslice.engines.records import Records, TouchedSince
from reslice.engines.sql import text_literal
from reslice.engines.view import is_up_to_date
from reslice.errors import SAME_AGAIN, Failure, Retryable
from reslice.tables import Target
from reslice.values import Opened, Run, Staged, State

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession


class PostgresLedger(Records):
    """The ledger in the database of one session."""

    def __init__(
        self,
        session: PostgresSession,
        touched_since: TouchedSince,
        version: str,
        still_as_compared: Callable[[Staged, Run], None],
    ) -> None:
        super().__init__(session, touched_since, f"{os.getpid()}-{secrets.token_hex(8)}")
        self._postgres = session
        self._still_as_compared = still_as_compared
        self.engine_version = f"postgresql {version}"

    def close(self) -> None:
        """Let go: the locks of runs end with the session."""

    @contextmanager
    def _alone(self, contract: Contract) -> Iterator[None]:
        """Hold the lock of the ledger; statements after it see everything that was committed before it was got.

        Nothing in here is waited for beyond `timeouts.wait`: whoever else needs the ledger would wait as well.
        A run that ends says so on a new connection, where its own was lost. One that is under way does not go on: its
        lock, by which others know that it is alive, went with the connection.
        """
        if self._postgres.is_lost and self._postgres.is_ending:
            self._postgres.reopen()
        schema, limit = contract.ledger.schema, {"wait": milliseconds(contract.timeouts.wait)}
        with self._session.transaction():
            self._session.execute("SELECT set_config('lock_timeout', $wait, true)", limit)
            with waited(self._postgres, contract, ledger_of(contract)):
                self._session.execute(f"SELECT pg_advisory_xact_lock({locks.key(locks.LEDGER, text_literal(schema))})")
            yield

    @contextmanager
    def _turn(self, contract: Contract, target: Target) -> Iterator[None]:
        """Hold the turn of the table, which every publish of it takes first."""
        with self._session.transaction():
            take_turn(self._postgres, contract, target)
            yield

    @contextmanager
    def _settled(self, contract: Contract, target: Target) -> Iterator[None]:
        """Hold both locks that a run is closed under: a transaction that still commits holds one of them."""
        if self._postgres.is_lost:
            self._postgres.reopen()
        with self._turn(contract, target):
            key = locks.key(locks.LEDGER, text_literal(contract.ledger.schema))
            with waited(self._postgres, contract, ledger_of(contract)):
                self._session.execute(f"SELECT pg_advisory_xact_lock({key})")
            yield

    def script(self, contract: Contract, target: Target | None, role: str | None) -> LedgerScript:
        """Return the SQL by which an owner makes what is missing, and lets a role run."""
        with self._session.translated(contract, "the ledger"):
            return ahead.script(self._postgres, contract, target, role)

    def _new_schema(self, catalog: str, schema: str) -> str | None:
        is_there = rights.place_of(self._postgres, schema).is_there
        return None if is_there else super()._new_schema(catalog, schema)

    def _lacking(self, contract: Contract, target: Target | None) -> Sequence[str]:
        needs_view = target is not None and ahead.needs_view(self._postgres, contract, target)
        return rights.lacking(self._postgres, contract.ledger.schema, target, needs_view=needs_view)

    def _unreadable(self, schema: str, tables: Collection[str]) -> Sequence[str]:
        return rights.unreadable(self._postgres, schema, tables)

    def _hold_guard(self, contract: Contract, target: Target) -> None:
        key = locks.key(locks.GUARD, text_literal(target.resolved))
        with waited(self._postgres, contract, guard_of(contract, target)):
            self._session.execute(f"SELECT pg_advisory_xact_lock({key})")

    def _create_kept(self, kept: str, target: Target) -> str:
        return ledger.create_kept_of_types(kept, target)

    def _make_view(self, contract: Contract, target: Target) -> None:
        """Make the view, a few times where somebody reads it; no lock is asked for where there is nothing to do."""
        if is_up_to_date(self._session, contract, target):
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._alone(contract):
                    make_soon(self._session, contract, target)
            except Held as error:
                if attempt == ATTEMPTS:
                    raise held(self._session, contract, target) from error
                time.sleep(BETWEEN_SECONDS)
            else:
                return

    def _make_ahead(self, contract: Contract, target: Target) -> tuple[Sequence[str], Sequence[str]]:
        return ahead.make(self._postgres, contract, target)

    @contextmanager
    def _closing(
        self, contract: Contract, target: Target, staged: Staged | None, run: Run, state: State
    ) -> Iterator[None]:
        """Close a run in the turn of its table where it found slices equal, and only while that is still so.

        A publish that staged before it would otherwise commit beside it, and put older rows over those it found right.
        """
        if staged is None or state not in (State.UNCHANGED, State.PUBLISHED):
            with self._alone(contract):
                yield
            return
        if self._postgres.is_lost and run.slices_done:  # what it compared is known by fingerprints
            self._postgres.reopen()
        with self._turn(contract, target):
            self._still_as_compared(staged, run)
            yield

    def _claim(self) -> None:
        self._session.execute(f"SELECT pg_advisory_lock({locks.key(locks.RUN, '$token')})", {"token": self._token})

    def _alive(self, tokens: Collection[str]) -> set[str]:
        """Return the tokens whose locks are held: one that can be got is nobody's."""
        rows = self._session.execute(
            f"SELECT token FROM (SELECT token, {locks.key(locks.RUN, 'token')} AS number"
            " FROM unnest(CAST($tokens AS text[])) AS token) AS runs"
            f" WHERE EXISTS (SELECT 1 FROM pg_catalog.pg_locks AS l WHERE l.granted AND {locks.is_lock('number')}"
            " AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))",
            {"tokens": sorted(tokens)},
        )
        return {row[0] for row in rows}

    @contextmanager
    def _pruning(self, schema: str) -> Iterator[bool]:
        """Say whether no other session is pruning."""
        key = locks.key(locks.PRUNING, text_literal(schema))
        is_ours = bool(self._session.execute(f"SELECT pg_try_advisory_lock({key})")[0][0])
        try:
            yield is_ours
        finally:
            if is_ours and not self._postgres.is_lost:
                self._session.roll_back()
                self._session.execute(f"SELECT pg_advisory_unlock({key})")

    def take_order(self, contract: Contract, target: Target, token: str, opened: Opened | None) -> None:
        """Give a staging of a run the next number, and commit it; the caller holds the lock of stagings."""
        if opened is None:
            return
        where = ledger.place(target.catalog, contract.ledger.schema)
        rows = self._session.execute(
            f"UPDATE {where}.runs SET staged_order = (SELECT coalesce(max(staged_order), 0) + 1 FROM {where}.runs)"
            " WHERE id = $id RETURNING staged_order",
            {"id": opened.id},
        )
        if not rows:
            failure = Failure(
                "conflict", "the run staged in its order", (f"{opened.id} is gone from the ledger",), SAME_AGAIN
            )
            raise Retryable(contract.name, [failure], unchanged=f"{contract.table} is as it was; nothing was written")
        self._staged_orders[token] = int(rows[0][0])


def take_turn(session: PostgresSession, contract: Contract, target: Target, about: str = "") -> None:
    """Wait up to `timeouts.wait` for the turn of a table; it ends with the transaction.

    From here on the server ends a transaction whose client is silent for `timeouts.idle`. Retryable[database_busy],
    rolled back, when the turn does not come.
    """
    timeouts = contract.timeouts
    session.execute(
        "SELECT set_config('idle_in_transaction_session_timeout', $idle, true),"
        " set_config('lock_timeout', $wait, true)",
        {"idle": milliseconds(timeouts.idle), "wait": milliseconds(timeouts.wait)},
    )
    with waited(session, contract, turn_of(contract, target), about):
        session.execute(TURN, {"table_name": target.resolved})
