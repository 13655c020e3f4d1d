"""Commands: how they find the sandbox, how they fail, what they say, and what a script may hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import psycopg.conninfo
import pytest

from reslice.engines.postgres.sandbox_way import url_of
from reslice.engines.sandbox import Way
from reslice.errors import Misused, Retryable
from reslice.prove import command, script
from reslice.prove.values import Script, Verdict
from tests.prove.shops import APPEND, BEFORE, DELETE, REPLACE, SELECT, Shop, execute, rows


def program(shop: Shop, body: str) -> list[str]:
    """Return the words of a program in Python."""
    path = shop.folder / "job.py"
    path.write_text(textwrap.dedent(body))
    return [sys.executable, str(path)]


def test_a_program_finds_the_sandbox_by_the_environment_and_in_its_words(shop: Shop) -> None:
    words = program(
        shop,
        """
        import json, os, sys, duckdb
        with duckdb.connect(sys.argv[1]) as connection:
            connection.execute("UPDATE daily_orders SET amount_cents = 1")
        found = {"argv": sys.argv[1:], "stdin": sys.stdin.read(), "url": os.environ["RESLICE_URL"],
                 "path": os.environ["RESLICE_PATH"]}
        print(json.dumps(found))
        """,
    )
    proof = shop.prove([*words, "{path}", "at={url}", "{other}"], shop.bare())
    assert proof.verdict is Verdict.PROVEN
    said = json.loads(proof.runs[0].output)
    path = Path(said["path"])
    assert path.name == "shop.duckdb" and path != shop.connection.path
    assert said["url"] == f"duckdb:///{path}"
    assert said["argv"] == [str(path), f"at={said['url']}", "{other}"]
    assert said["stdin"] == ""
    assert rows(shop) == sorted(BEFORE, key=repr)


def test_a_failing_command_is_a_failure_with_the_end_of_its_words(shop: Shop) -> None:
    with pytest.raises(Retryable) as caught:
        shop.prove(["sh", "-c", "echo begin; echo no such column >&2; exit 3"])
    (failure,) = caught.value.failures
    assert (failure.kind, failure.found) == ("command_failed", ("exit code 3", "begin", "no such column"))
    assert failure.asked.startswith("run 1 of 2 of:  sh -c")
    assert caught.value.exit_code == 4


def test_a_second_run_that_fails_is_a_failure(shop: Shop) -> None:
    """A plain insert behind a primary key works once."""
    execute(shop, "CREATE TABLE once (day DATE PRIMARY KEY, n INTEGER)")
    subject = type(shop.bare())("once", "once", ("day",))
    with pytest.raises(Retryable) as caught:
        shop.prove_sql("INSERT INTO once VALUES ('2026-01-01', 1);", subject)
    assert caught.value.failures[0].asked.startswith("run 2 of 2")
    assert "Constraint" in caught.value.failures[0].found[1]


def test_a_command_that_drops_the_table_is_a_failure(shop: Shop) -> None:
    with pytest.raises(Retryable) as caught:
        shop.prove_sql("DROP TABLE daily_orders;")
    assert caught.value.failures[0].found[0] == "exit code 0, and then"
    assert "no table daily_orders" in caught.value.failures[0].found[1]


def test_a_table_that_is_made_anew_and_renamed_is_the_table(shop: Shop) -> None:
    job = (
        f"CREATE TABLE next AS SELECT * FROM daily_orders WHERE order_date > '2026-01-02'; INSERT INTO next {SELECT};"
        " DROP TABLE daily_orders; ALTER TABLE next RENAME TO daily_orders;"
    )
    assert shop.prove_sql(job).verdict is Verdict.PROVEN


def test_a_column_that_is_added_meanwhile_is_not_compared(shop: Shop) -> None:
    more = "ALTER TABLE daily_orders ADD COLUMN IF NOT EXISTS more INTEGER"
    job = f"{more}; {DELETE}; INSERT INTO daily_orders BY NAME {SELECT};"
    assert shop.prove_sql(job, shop.bare()).columns == ("order_count", "amount_cents")


@pytest.mark.parametrize(
    ("words", "found"),
    [(["no-such-program-here"], "there is no program no-such-program-here"), (["echo a && b"], "sh -c")],
)
def test_a_command_that_is_not_there_is_misuse(shop: Shop, words: list[str], found: str) -> None:
    with pytest.raises(Misused) as caught:
        shop.prove(words)
    assert caught.value.kind == "usage" and found in caught.value.failures[0].found[0]


def test_a_script_that_may_not_be_executed_is_told_from_one_that_is_not_there(shop: Shop) -> None:
    script = shop.script("SELECT 1;")
    with pytest.raises(Misused) as caught:
        shop.prove([str(script)])
    assert caught.value.failures[0].found[0].startswith(f"{script} may not be executed")


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(shop: Shop) -> None:
    mark = shop.folder / "late"
    began = time.monotonic()
    with pytest.raises(Retryable) as caught:
        shop.prove(["sh", "-c", f"(sleep 4; touch {mark}) & sleep 60"], timeout=timedelta(seconds=0.3))
    assert "not over after 0:00:00.300000" in caught.value.failures[0].found[0]
    assert time.monotonic() - began < 30
    assert not mark.exists()


def test_what_a_command_leaves_running_is_ended(shop: Shop) -> None:
    """The second process would hold the sandbox, or write to it, while the table is looked at."""
    mark = shop.folder / "pid"
    shop.prove(["sh", "-c", f"sleep 60 & echo $! > {mark}"], shop.bare())
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_command_ends_with_the_proof_that_is_killed(tmp_path: Path) -> None:
    """Nothing of ours is left to end it: kill -9 asks nobody."""
    mark = tmp_path / "pid"
    body = f"""
        import threading
        from reslice.engines.sandbox import Way
        from reslice.prove.command import Running
        words = ["sh", "-c", "sleep 60 & echo $! > {mark}; trap '' TERM; wait; sleep 60"]
        Running(words, Way("", "", {{}}), "daily_orders").wait(None, threading.Event())
    """
    proof = subprocess.Popen([sys.executable, "-c", textwrap.dedent(body)])
    until = time.monotonic() + 30
    while not (mark.exists() and mark.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.02)
    sleeping = int(mark.read_text())
    group = os.getpgid(sleeping)
    os.kill(group, 0)
    proof.kill()
    proof.wait()
    while time.monotonic() < until and _is_running(sleeping, group):
        time.sleep(0.02)
    assert not _is_running(sleeping, group)


def _is_running(*numbers: int) -> bool:
    """Whether one of these processes is there, and not only its number, which nobody has asked for yet."""
    for number in numbers:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            return True
    return False


def test_secrets_are_not_repeated() -> None:
    assert command.masked("postgresql://a:p%40ss@h and p@ss", ("p@ss", "p%40ss")) == "postgresql://a:***@h and ***"


def test_variables_that_lead_elsewhere_are_taken_away() -> None:
    way = Way("u", "", {"PGDATABASE": "copy"}, frozenset({"PGSERVICE", "PGDATABASE"}))
    found = command.environment(way, {"PGSERVICE": "live", "PGDATABASE": "live", "PATH": "/bin"})
    assert found == {"PGDATABASE": "copy", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("parameters", "url"),
    [
        (
            {"host": "db", "port": "5433", "user": "a b", "password": "p/@:", "dbname": "x", "sslmode": "require"},
            "postgresql://a%20b:p%2F%40%3A@db:5433/x?sslmode=require",
        ),
        (
            {"host": "/run/pg", "port": "5432", "user": "me", "dbname": "x"},
            "postgresql://me@/x?host=%2Frun%2Fpg&port=5432",
        ),
        ({"host": "::1", "port": "5432", "user": "me", "dbname": "x"}, "postgresql://me@[::1]:5432/x"),
    ],
)
def test_the_url_of_a_postgresql_sandbox_is_one_that_libpq_reads_back(parameters: dict[str, str], url: str) -> None:
    assert url_of(parameters) == url
    assert psycopg.conninfo.conninfo_to_dict(url) == parameters


# Scripts.


def test_a_script_keeps_to_its_own_transactions(shop: Shop) -> None:
    """The statements before BEGIN are committed by themselves; what is rolled back, or not committed, is not there."""
    job = (
        f"{DELETE}; BEGIN; DELETE FROM daily_orders; ROLLBACK; BEGIN; {APPEND} COMMIT; BEGIN; DELETE FROM daily_orders;"
    )
    proof = shop.prove_sql(job)
    assert proof.verdict is Verdict.PROVEN


def test_a_statement_that_fails_ends_the_script_and_what_was_committed_stays(shop: Shop) -> None:
    with pytest.raises(Retryable) as caught:
        shop.prove_sql(f"{DELETE}; SELECT no_such_column; {APPEND}")
    assert caught.value.failures[0].found[1].startswith("statement 2: Binder Error")


def test_values_stand_in_a_script_as_sql_writes_them() -> None:
    text = "SELECT :day, :'day', :\"name\", :n, ':day', x::date -- :day\n"
    values = {"day": "2026-01-01", "name": "a b", "n": "5"}
    assert script.filled(text, values) == ("SELECT '2026-01-01', '2026-01-01', \"a b\", 5, ':day', x::date -- :day\n")
    assert script.named(text) == {"day", "name", "n"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT :start, :other;", ":other, of which no value is given"),
        ("\\set x 1\nSELECT 1;", "line 1 is a command of psql"),
        ("-- nothing\n", "holds no statement"),
        (None, "cannot be read"),
    ],
)
def test_a_script_that_cannot_be_run_is_misuse(tmp_path: Path, text: str | None, found: str) -> None:
    path = tmp_path / "job.sql"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Misused) as caught:
        script.check(Script(path, {"start": "1"}))
    assert found in caught.value.failures[0].found[0]


def test_values_for_no_script_are_misuse(shop: Shop) -> None:
    with pytest.raises(Misused, match="no sql=, and start"):
        shop.prove(["true"], parameters={"start": "1"})


@pytest.mark.parametrize(
    ("text", "found", "after"),
    [
        (
            "SELECT :begin;",
            ("{} names :begin, of which no value is given", "{} has no :start; it names :begin"),
            "--param begin=…",
        ),
        (
            "SELECT :strat, :end;",
            ("{} names :end, :strat, of which no value is given", "{} has no :start; did you mean :strat?"),
            "--param end=… --param strat=…",
        ),
        ("SELECT ':start';", ("{} has no :start; it names no value",), "name :start in {}, or give no value"),
    ],
)
def test_a_value_that_no_script_asks_for_is_misuse(
    tmp_path: Path, text: str, found: tuple[str, ...], after: str
) -> None:
    path = tmp_path / "job.sql"
    path.write_text(text)
    with pytest.raises(Misused) as caught:
        script.check(Script(path, {"start": "1"}))
    (failure,) = caught.value.failures
    assert failure.found == tuple(each.format(path) for each in found)
    assert failure.next == after.format(path)


def test_a_name_that_is_not_there_is_misuse_before_anything_runs(shop: Shop) -> None:
    mark = shop.folder / "ran"
    subject = shop.bare()
    for wrong in (
        type(subject)("daily_order", "daily_order", ("order_date",)),
        type(subject)("daily_orders", "daily_orders", ("order_day", "channel")),
        shop.bare(ignored=("loaded",)),
    ):
        with pytest.raises(Misused) as caught:
            shop.prove(["touch", str(mark)], wrong)
        assert caught.value.exit_code == 2
    assert not mark.exists()
    with pytest.raises(Misused, match="did you mean daily_orders"):
        shop.prove(["true"], type(subject)("daily_order", "daily_order", ("order_date",)))


def test_names_are_found_whatever_case_they_are_written_in(shop: Shop) -> None:
    subject = type(shop.bare())("DAILY_ORDERS", "DAILY_ORDERS", ("ORDER_DATE", "Channel"))
    assert shop.prove_sql(REPLACE, subject).verdict is Verdict.PROVEN
