"""What a PostgreSQL database says about tables that no contract names yet. Nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reslice.engines.postgres.session import PostgresSession


class PostgresSurvey:
    """Describes and profiles tables of one session's database."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session
