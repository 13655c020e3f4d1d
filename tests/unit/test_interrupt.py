"""Asking to stop is heard by a statement that is just about to begin, on every engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest
from tests import postgres

from reslice.engines.duckdb.session import DuckDBSession
from reslice.engines.postgres.session import PostgresSession
from reslice.engines.session import SqlSession
from reslice.errors import Interrupted

FOR_EVER = {
    "duckdb": "SELECT count(*) FROM range(100000000000) a, range(100000000000) b",
    "postgresql18": "SELECT pg_sleep(100000)",
}


@pytest.fixture(params=FOR_EVER)
def session(request: pytest.FixtureRequest) -> Iterator[SqlSession]:
    found: SqlSession
    if request.param == "duckdb":
        found = _DuckDB(duckdb.connect(), "shop")
    else:
        try:
            server = postgres.shared(18)
        except postgres.NotRunnable as reason:
            pytest.skip(f"no PostgreSQL here: {reason}")

        def opened() -> psycopg.Connection[Any]:
            return psycopg.connect(server.url("postgres", "postgres"), autocommit=True)

        found = _Postgres(opened(), "shop", opened)
    yield found
    found.close()


class _TooEarly(SqlSession):
    """A session that is asked to stop after a statement has looked, and before the database has it."""

    is_asked = False

    def stop_if_asked(self) -> None:
        super().stop_if_asked()
        if self.is_asked:
            self.is_asked = False
            self.interrupt()


class _DuckDB(_TooEarly, DuckDBSession):
    pass


class _Postgres(_TooEarly, PostgresSession):
    pass


def test_a_statement_that_was_about_to_begin_is_stopped(session: SqlSession, request: pytest.FixtureRequest) -> None:
    assert isinstance(session, _TooEarly)
    session.is_asked = True
    began = time.monotonic()
    with pytest.raises(Interrupted):
        session.execute(FOR_EVER[request.node.callspec.params["session"]])
    assert time.monotonic() - began < 20


def test_once_it_was_heard_nobody_is_asked_again(session: SqlSession) -> None:
    session.interrupt()
    with pytest.raises(Interrupted):
        session.execute("SELECT 1")
    with session.ending():
        for _ in range(3):
            assert session.execute("SELECT 1") == [(1,)]
            time.sleep(0.3)


def test_what_ends_a_run_is_not_stopped(session: SqlSession) -> None:
    with session.ending():
        session.interrupt()
        time.sleep(0.6)
        assert session.execute("SELECT 1") == [(1,)]
