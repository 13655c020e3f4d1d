"""What doctor asks of a PostgreSQL database. Nothing is written, and no source is evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reslice.engines.postgres.records import PostgresLedger

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession


class PostgresHealth:
    """Looks at one session's database."""

    def __init__(self, session: PostgresSession, ledger: PostgresLedger) -> None:
        self._session = session
        self._ledger = ledger
