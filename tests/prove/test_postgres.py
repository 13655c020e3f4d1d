"""Proofs on PostgreSQL: the copy is a database, on 18 and on 16, and what is left of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

import reslice
from reslice.errors import Refused
from reslice.findings import Health
from reslice.prove.values import Subject, Verdict
from tests import postgres
from tests.prove.shops import (
    APPEND,
    BEFORE,
    DELETE,
    REPLACE,
    SELECT,
    Shop,
    databases,
    execute,
    kinds,
    rows,
)
from tests.prove.test_sandbox import RESLICE, wait_for

SORTED = sorted(BEFORE, key=repr)


def programs(version: int = 18) -> Path:
    """Return where the programs of a version are, or skip the test."""
    return postgres._programs(version)


def test_an_append_and_a_replace(server: Shop) -> None:
    appended = server.prove_sql(APPEND)
    assert (appended.verdict, appended.equals_source) == (Verdict.NOT_REPEATABLE, False)
    assert kinds(appended.between_runs) == {"doubled": 3}
    assert [each.state.totals for each in appended.runs] == [
        {"order_count": 8, "amount_cents": 57800},
        {"order_count": 12, "amount_cents": 86900},
    ]
    replaced = server.prove_sql(REPLACE)
    assert (replaced.verdict, replaced.equals_source, replaced.exit_code) == (Verdict.PROVEN, True, 0)
    assert rows(server) == SORTED
    assert databases(18) == [] and databases(16) == []


def test_a_program_finds_the_copy_by_the_variables_of_libpq(server18: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATABASE", "postgres")
    words = [
        str(programs() / "psql"),
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        "INSERT INTO daily_orders VALUES (NULL, NULL, 1, 1)",
    ]
    proof = server18.prove(words, server18.bare())
    assert kinds(proof.keys) == {"repeated key": 1, "NULL key": 1}
    assert kinds(proof.between_runs) == {"doubled": 1}
    (moved,) = proof.between_runs.groups
    assert (moved.key, moved.rows_before, moved.rows_after) == ({"order_date": None, "channel": None}, 1, 2)


def test_two_at_once_double_what_each_deletes_and_inserts(server18: Shop) -> None:
    """Under READ COMMITTED the second DELETE waits, and does not see what the first one has inserted."""
    job = f"BEGIN; {DELETE}; SELECT pg_sleep(0.6); INSERT INTO daily_orders {SELECT}; COMMIT;"
    proof = server18.prove_sql(job, at_once=True, tries=3)
    assert proof.verdict is Verdict.NOT_SAFE
    assert proof.at_once is not None and not proof.at_once.ok
    last = proof.at_once.pairs[-1]
    assert (last.codes, last.state.rows, last.state.totals) == (
        (0, 0), 7, {"order_count": 8, "amount_cents": 58200},
    )  # fmt: skip
    assert kinds(proof.at_once.keys) == {"repeated key": 3}


def test_a_delete_that_is_committed_alone_is_found_by_killing(server18: Shop) -> None:
    job = f"{DELETE}; SELECT pg_sleep(0.6); INSERT INTO daily_orders {SELECT};"
    proof = server18.prove_sql(job, crash=True, tries=3, seed=3)
    assert proof.crash is not None
    assert {each.rows for each in proof.crash.tries if each.table == "torn"} == {1}
    assert databases() == []


def test_a_role_that_may_make_no_database_is_refused_with_a_way_on(poor_server: Shop) -> None:
    with pytest.raises(Refused) as caught:
        poor_server.prove_sql(REPLACE)
    (failure,) = caught.value.failures
    assert (failure.kind, failure.found) == ("sandbox", ("the role prover_without may make no database",))
    assert failure.next == "ALTER ROLE prover_without CREATEDB, or use --in-place"
    proof = poor_server.prove_sql(APPEND, in_place=True)
    assert proof.verdict is Verdict.NOT_REPEATABLE
    assert rows(poor_server) == SORTED
    assert rows(poor_server, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'reslice%'") == []


def test_a_database_in_use_is_dumped_and_restored(server18: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{programs()}{os.pathsep}{os.environ['PATH']}")
    with psycopg.connect(server18.connection.url, autocommit=True) as other:
        other.execute("SELECT 1")
        proof = server18.prove_sql(REPLACE)
    assert proof.verdict is Verdict.PROVEN
    assert "copied by pg_dump: source database" in proof.notes[0]


def test_a_database_in_use_without_a_pg_dump_is_refused(server18: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reslice.engines.postgres.dump._programs", list)
    with psycopg.connect(server18.connection.url, autocommit=True), pytest.raises(Refused) as caught:
        server18.prove_sql(REPLACE)
    found = caught.value.failures[0].found
    assert "is being accessed by other users" in found[0] and found[1] == "there is no pg_dump here"
    assert databases() == []


def test_settings_of_the_database_go_with_its_copy(server18: Shop) -> None:
    name = server18.connection.url.split("///")[1].split("?")[0]
    execute(
        server18,
        "CREATE SCHEMA mart AUTHORIZATION CURRENT_USER",
        "ALTER TABLE daily_orders SET SCHEMA mart",
        f"ALTER DATABASE {name} SET search_path TO mart, public",
    )
    proof = server18.prove_sql(REPLACE)
    assert (proof.verdict, proof.resolved.split(".", 1)[1]) == (Verdict.PROVEN, "mart.daily_orders")


def test_a_write_to_the_database_itself_is_noticed(server18: Shop) -> None:
    url = server18.connection.url
    words = [str(programs() / "psql"), url, "-c", "INSERT INTO daily_orders VALUES ('2026-01-02', 'app', 1, 1)"]
    proof = server18.prove(words, server18.bare())
    assert (proof.verdict, proof.did_nothing) == (Verdict.NOT_PROVEN, True)
    assert "itself, not the copy, changed while the command ran: 5 rows before, 7 now" in proof.real_changed


def test_a_job_that_writes_the_same_rows_again_has_written(server18: Shop) -> None:
    execute(server18, *REPLACE.replace(":start", "'2026-01-01'").replace(":end", "'2026-01-02'").split(";")[:-1])
    proof = server18.prove_sql(REPLACE, server18.bare())
    assert (proof.verdict, proof.did_nothing) == (Verdict.PROVEN, False)
    assert server18.prove_sql("SELECT 1;", server18.bare()).verdict is Verdict.NOT_PROVEN


def test_a_kept_database_stays_until_it_is_dropped(server18: Shop) -> None:
    kept = server18.prove_sql(REPLACE, keep=True).kept
    name = kept.split("///")[1].split("?")[0] if "///" in kept else kept.split("/")[3].split("?")[0]
    assert databases() == [name]
    assert server18.prove_sql(REPLACE).notes == ()
    with psycopg.connect(kept, autocommit=True) as opened:
        assert opened.execute("SELECT count(*) FROM daily_orders").fetchone() == (4,)
    execute(server18, f"DROP DATABASE {name} WITH (FORCE)")


def test_a_killed_proof_leaves_a_database_that_the_next_one_drops(server18: Shop) -> None:
    mark = server18.folder / "begun"
    words = ["prove", "daily_orders", "--", "sh", "-c", f"touch {mark}; sleep 60"]
    process = subprocess.Popen([*RESLICE, *words], cwd=server18.folder, stderr=subprocess.PIPE)
    wait_for(lambda: mark.exists() or None)
    (left,) = databases()
    assert left_over(server18) == (Health.OK, "none is left of a proof that was killed", "")
    assert server18.prove(["true"], server18.bare()).notes == ()
    assert databases() == [left], "a proof that is at work keeps its sandbox, whoever proves something meanwhile"
    process.kill()
    process.communicate()
    said = f"{left}: left by a proof that was killed; the next one drops them as well"
    advice = (Health.ADVICE, said, f'DROP DATABASE "{left}" WITH (FORCE)')
    wait_for(lambda: left_over(server18) == advice or None)

    def swept() -> bool | None:  # the server needs a moment to notice that the client is gone
        notes = server18.prove(["true"], server18.bare()).notes
        return f"dropped the database {left}, which a proof that was killed had left" in notes or None

    wait_for(swept)
    assert databases() == []


def test_what_doctor_says_of_a_sandbox_removes_it(server18: Shop) -> None:
    execute(server18, "CREATE DATABASE reslice_prove_0123456789ab", "CREATE DATABASE reslice_prove_0123456789ab_1")
    state, _, after = left_over(server18)
    assert state is Health.ADVICE
    execute(server18, *after.split("; "))
    assert databases() == []


def left_over(server: Shop) -> tuple[Health, str, str]:
    """Return what doctor says of what proofs have left."""
    (found,) = (
        each for each in reslice.open(server.folder / "reslice.yml").doctor().checks if each.name == "sandboxes"
    )
    return found.state, found.found, found.next


def test_types_of_every_kind_are_compared(server18: Shop) -> None:
    execute(
        server18,
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE kinds (id INT GENERATED ALWAYS AS IDENTITY, at TIMESTAMPTZ, mood mood, rate NUMERIC,"
        " share FLOAT8, payload JSONB, tags TEXT[], ok BOOLEAN, key UUID, raw BYTEA)",
    )
    job = (
        "INSERT INTO kinds (at, mood, rate, share, payload, tags, ok, key, raw) VALUES ('2026-01-01 00:00+02', 'good',"
        " 1.50, 0.1, '{\"a\": 1}', '{a,b}', true, '6f5b1f5e-0000-4000-8000-000000000001', '\\x00ff'),"
        " (NULL, 'bad', 'NaN', 'Infinity', NULL, NULL, NULL, NULL, NULL);"
    )
    subject = Subject("kinds", "kinds", ("at", "mood"))
    assert server18.prove_sql(f"DELETE FROM kinds; {job}", subject).verdict is Verdict.PROVEN
    appended = server18.prove_sql(job, subject)
    assert kinds(appended.between_runs) == {"doubled": 2}


def test_rows_with_an_identity_are_put_back_as_they_were(server18: Shop) -> None:
    execute(
        server18,
        "CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, day DATE, n INT, payload JSON,"
        " twice INT GENERATED ALWAYS AS (n * 2) STORED)",
        "INSERT INTO t (day, n, payload) VALUES ('2026-01-01', 1, '{}'), ('2026-01-02', 2, NULL)",
    )
    before = rows(server18, "SELECT * FROM t")
    server18.prove_sql(
        "DELETE FROM t; INSERT INTO t (day, n) VALUES ('2026-01-05', 9);", Subject("t", "t", ("day",)), in_place=True
    )
    assert rows(server18, "SELECT * FROM t") == before
