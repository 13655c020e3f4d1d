"""The ledger of a DuckDB database: a file is open in one process, so no run of any other one is alive.

A lock of this process orders the ledger's own transactions, and numbers of stagings with their snapshots.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb

from reslice import ledger
from reslice.contract import Contract
from reslice.engines.records import Records, TouchedSince
from reslice.engines.session import SqlSession
from reslice.tables import Target
from reslice.values import Opened

_ALIVE: set[str] = set()
"""Engines of this process that are open."""

LEDGER_LOCK = threading.Lock()
_PRUNING = threading.Lock()
_last_order = 0


class DuckDBLedger(Records):
    """The ledger in the database of one session."""

    engine_version = f"duckdb {duckdb.__version__}"

    def __init__(self, session: SqlSession, touched_since: TouchedSince) -> None:
        super().__init__(session, touched_since, f"{os.getpid()}-{secrets.token_hex(8)}")

    def close(self) -> None:
        """Let go: runs of this session are not alive any more."""
        _ALIVE.discard(self._token)

    @contextmanager
    def _alone(self, contract: Contract) -> Iterator[None]:
        """Let one transaction of this process at a time work on ledgers."""
        with LEDGER_LOCK, self._session.transaction():
            yield

    def _turn(self, contract: Contract, target: Target) -> AbstractContextManager[None]:
        """Return a transaction; the fence, which is taken first in it, keeps publishes out."""
        return self._alone(contract)

    def _claim(self) -> None:
        _ALIVE.add(self._token)

    def _alive(self, tokens: Collection[str]) -> set[str]:
        return set(_ALIVE)

    @contextmanager
    def _pruning(self, schema: str) -> Iterator[bool]:
        """Say whether no thread of this process is pruning."""
        is_ours = _PRUNING.acquire(blocking=False)
        try:
            yield is_ours
        finally:
            if is_ours:
                _PRUNING.release()

    def take_order(self, contract: Contract, target: Target, token: str, opened: Opened | None) -> None:
        """Give a staging the next number, in the transaction that stages; a plan has none."""
        global _last_order
        if opened is None:
            return
        where = ledger.place(target.catalog, contract.ledger.schema)
        stored = int(self._session.execute(f"SELECT coalesce(max(staged_order), 0) FROM {where}.runs")[0][0])
        _last_order = max(_last_order, stored) + 1
        self._staged_orders[token] = _last_order
