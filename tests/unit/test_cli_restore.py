"""status and restore on the command line: what they ask, what they print, how they end; on a real file and terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.shop import AFTER, BEFORE, DAYS, RUN, make_shop, rows, until_it_works

from reslice.cli import main

SCOPE = f"reslice -C {{shop}} restore r-0001 {DAYS} --yes"


@pytest.fixture(scope="module")
def published_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop whose two days were published by r-0001, to be copied."""
    folder = make_shop(tmp_path_factory.mktemp("published") / "shop")
    assert main(["-C", str(folder), "run", "daily_orders", DAYS]) == 0
    assert rows(folder) == AFTER
    return folder


@pytest.fixture
def shop(published_shop: Path, tmp_path: Path) -> Path:
    """A shop of one's own, whose two days were published by r-0001."""
    return copytree(published_shop, tmp_path / "shop")


@pytest.fixture
def said(shop: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["-C", str(shop), *arguments])
        return code, *capsys.readouterr()

    return call


def ids(shop: Path) -> list[tuple[str, str, str]]:
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT id, kind, state FROM reslice.runs ORDER BY number").fetchall()


# On a terminal


def on_a_terminal(
    shop: Path,
    keys: bytes,
    *arguments: str,
    until: bytes = b"[y/N]: ",
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[int, str, str]:
    """Run in a terminal, press `keys` when it asks, and return the exit code, stdout, and what the terminal showed."""
    terminal, inside = pty.openpty()
    command = [sys.executable, "-c", RUN, "-C", str(shop), "restore", *arguments]
    process = subprocess.Popen(
        command, stdin=inside, stderr=inside, stdout=subprocess.PIPE, start_new_session=True, env=os.environ | TERMINAL
    )
    os.close(inside)
    seen, is_asked, deadline = b"", False, time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        if not is_asked and until in seen:
            is_asked = True
            meanwhile()
            if keys == b"\x03":
                os.kill(process.pid, signal.SIGINT)
            elif keys == b"TERM":
                os.kill(process.pid, signal.SIGTERM)
            else:
                os.write(terminal, keys)
    assert process.stdout is not None
    out = process.stdout.read().decode()
    process.stdout.close()
    process.wait(10)
    os.close(terminal)
    assert is_asked or until == b"", seen
    return process.returncode, out, seen.decode()


TERMINAL = {"TERM": "dumb", "COLUMNS": "200"}


def test_yes_puts_the_rows_back(shop: Path) -> None:
    code, out, shown = on_a_terminal(shop, b"y\n", "last")

    assert code == 0 and rows(shop) == BEFORE
    assert f"restore planned: daily_orders for {DAYS}, both days included, 2 slices" in shown
    assert "+ 2026-01-01 web     order_count 1       amount_cents 12000" in shown
    assert "daily_orders was not touched: asking writes nothing." in shown
    assert "Put these rows back? [y/N]: " in shown
    assert out.startswith("restored r-0002: daily_orders for 2026-01-01..2026-01-02")
    assert "2 slices put back in one commit as r-0001 found them, and read back." in out
    assert ids(shop)[1:] == [("r-0002", "restore", "restored")]


@pytest.mark.parametrize("keys", [b"n\n", b"\n", b"no\n"])
def test_no_writes_nothing(shop: Path, keys: bytes) -> None:
    code, out, shown = on_a_terminal(shop, keys, "r-0001")

    assert (code, out) == (3, "") and rows(shop) == AFTER
    assert "stopped[unconfirmed]: daily_orders, restore r-0001" in shown
    assert re.search(r"found: +no was answered", shown)
    assert SCOPE.format(shop=shop) in shown.replace("\r\n", " ")
    assert len(ids(shop)) == 1


@pytest.mark.parametrize(("keys", "code"), [(b"\x03", 130), (b"\x04", 130), (b"TERM", -15)])
def test_to_stop_at_the_question_writes_nothing(shop: Path, keys: bytes, code: int) -> None:
    ended, out, shown = on_a_terminal(shop, keys, "r-0001")

    assert (ended, out) == (code, "") and rows(shop) == AFTER and len(ids(shop)) == 1
    assert "Traceback" not in shown
    assert code < 0 or "no table is half written" in shown
    assert code < 0 or re.search(r"\[y/N\]: (\^C)?\r\ninterrupted\[interrupted\]: ", shown), "a line of its own"


def test_something_else_than_yes_or_no_is_asked_again(shop: Path) -> None:
    code, _, shown = on_a_terminal(shop, b"maybe\ny\n", "r-0001")
    assert code == 0 and "invalid input" in shown and rows(shop) == BEFORE


def test_what_was_shown_is_what_is_put_back_though_last_is_another_run_by_then(shop: Path) -> None:
    allowed = ["--allow", "empty_slice=2026-01-03", "--allow", "total_change", "--reason", "there were none"]

    def another_run() -> None:
        assert main(["-C", str(shop), "run", "daily_orders", "2026-01-03", *allowed]) == 0

    code, out, _ = on_a_terminal(shop, b"y\n", "last", meanwhile=another_run)

    assert code == 0 and "undoes        r-0001" in out
    assert rows(shop) == BEFORE[:-1]


def test_nothing_is_asked_where_nothing_would_change(shop: Path) -> None:
    assert main(["-C", str(shop), "restore", "r-0001", "--yes"]) == 0
    code, out, shown = on_a_terminal(shop, b"", "r-0001", until=b"")
    assert code == 0 and "Put these rows back" not in shown and out.startswith("restore unchanged r-0003: ")


# Without one


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--wait", "0s"]])
def test_without_a_terminal_nothing_is_done_unless_yes_is_given(shop: Path, said: Any, arguments: list[str]) -> None:
    code, out, err = said("restore", "r-0001", *arguments)
    assert code == 3 and rows(shop) == AFTER and len(ids(shop)) == 1
    found = "2 slices would be put back: 1 added, 2 changed, 0 removed, 1 unchanged; rows 3 → 4"
    if "--json" in arguments:
        value = json.loads(out)
        assert (value["error"]["kind"], value["exit_code"], value["outcome"]) == ("unconfirmed", 3, "stopped")
        assert value["error"]["found"] == ["there is no terminal to ask on, and no --yes", found]
        assert value["error"]["consent"] == SCOPE.format(shop=shop) and value["restores"] == "r-0001"
        assert value["diff"] == {"added": 1, "changed": 2, "removed": 0, "unchanged": 1}
    else:
        assert out == "" and found in err
        assert f"  if right:   {SCOPE.format(shop=shop)}" in err.splitlines()


def test_what_is_printed_under_if_right_works(shop: Path, said: Any) -> None:
    _, _, err = said("restore", "r-0001", "2026-01-02")
    words = shlex.split(err.splitlines()[-1].partition("if right:")[2])
    assert words == ["reslice", "-C", str(shop), "restore", "r-0001", "2026-01-02", "--yes"]
    code, out, _ = said(*words[3:])
    assert code == 0 and out.splitlines()[-1] == f"next: reslice -C {shop} status daily_orders 2026-01-02"
    assert said(*shlex.split(out.splitlines()[-1].partition("next:")[2])[3:])[0] == 1


def test_json_of_a_restore(shop: Path, said: Any) -> None:
    code, out, err = said("restore", "r-0001", "--yes", "--json", "--reason", "wrong rates")
    value = json.loads(out)
    assert (code, err, value["schema"], value["kind"]) == (0, "", "reslice/restore/1", "restore")
    assert (value["run"], value["restores"], value["outcome"]) == ("r-0002", "r-0001", "restored")
    assert value["slices_published"] == ["2026-01-01", "2026-01-02"] and value["target_changed"] is True
    assert [each["name"] for each in value["checks"]] == ["kept_columns", "kept_gone", "later_run", "changed_since_run"]
    again = json.loads(said("restore", "r-0001", "--yes", "--json")[1])
    assert (again["outcome"], again["target_changed"], again["exit_code"]) == ("unchanged", False, 0)


def test_a_page_of_a_restore(shop: Path, said: Any) -> None:
    code, _, _ = said("restore", "r-0001", "--yes", "--report", "undo.html")
    assert code == 0 and "r-0001" in (shop / "undo.html").read_text()
    code, _, err = said("restore", "r-0001", "--yes", "--report", "nowhere/undo.html")
    assert code == 2 and "--report: " in err


def test_the_log_of_a_restore_and_of_a_status(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["-C", str(shop), "--log-format", "json", "restore", "r-0001"]) == 3
    assert main(["-C", str(shop), "--log-format", "json", "restore", "r-0001", "--yes"]) == 0
    assert main(["-C", str(shop), "--log-format", "json", "status", "daily_orders"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    ends = [(line["event"], line["command"], line["exit_code"]) for line in lines if "exit_code" in line]
    assert ends == [("error", "restore", 3), ("finished", "restore", 0), ("finished", "status", 1)]


def test_status_on_the_command_line(shop: Path, said: Any) -> None:
    code, out, err = said("status", "daily_orders", "2026-01")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "status: daily_orders for 2026-01-01..2026-01-31, both days included, 31 slices",
        "2 equal, 0 differ, 0 missing, 1 extra; 28 slices without rows on either side",
        "",
        "  slice                a run would   target → source",
        "  2026-01-03   extra   remove 1      order_count 1 → none   amount_cents 3100 → none",
        "",
        "  rows          4 → 3",
        "  order_count   5 → 4 (-1)",
        "  amount_cents  32200 → 29100 (-3100)",
        "  control       not reconciled: no control declared",
        "",
        "daily_orders does not hold what its source gives; status only reads it.",
        f"next: reslice -C {shop} plan daily_orders 2026-01-03",
    ]
    code, out, _ = said("status", "daily_orders", DAYS)
    assert code == 0 and "daily_orders holds what its source gives; status only reads it." in out


def test_json_of_a_status(said: Any) -> None:
    code, out, _ = said("status", "daily_orders", "2026-01", "--json")
    value = json.loads(out)
    assert (code, value["schema"], value["equals_source"]) == (1, "reslice/status/1", False)
    assert [(each["slice"], each["state"], each["removed"]) for each in value["slices"]] == [
        ("2026-01-01", "equal", 0),
        ("2026-01-02", "equal", 0),
        ("2026-01-03", "extra", 1),
    ]
    assert value["slices"][2]["totals"]["amount_cents"] == {"before": 3100, "after": None}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["restore"], "Missing argument 'RUN'"),
        (["restore", ""], "RUN is empty"),
        (["restore", "r-0001", ""], "RANGE is empty"),
        (["restore", "r-9999"], "no run matches 'r-9999'"),
        (["restore", "r-9999", "--yes"], "no run matches 'r-9999'"),
        (["restore", "r-0001", "2026-13"], "no such month"),
        (["restore", "r-0001", "2026-02", "--yes"], "none of it lies in 2026-02-01..2026-02-28"),
        (["restore", "r-0001", "--yes", "--wait", "soon"], "--wait: expected"),
        (["restore", "r-0001", "more", "even more"], "Got unexpected extra argument"),
        (["restore", "--yes", "--allow", "restored"], "No such option"),
        (["status"], "TARGET is missing"),
        (["status", ""], "TARGET is empty"),
        (["status", "daily_orders", ""], "RANGE is empty"),
        (["status", "daily_order"], "did you mean daily_orders?"),
        (["status", "daily_orders", "2026-13"], "no such month"),
        (["status", "daily_orders", "2026", "--again", "last"], "RANGE and --again both"),
        (["status", "daily_orders", "--since", ""], "--since is empty"),
        (["status", "daily_orders", "--since", "soon"], "no run matches 'soon'"),
        (["status", "daily_orders", "--since", "2026-01-01"], "the contract has no affected query"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_misuse_exits_2_in_four_parts(shop: Path, said: Any, arguments: list[str], found: str, form: str) -> None:
    code, out, err = said(*arguments, *(["--json"] if form == "json" else []))
    assert code == 2 and rows(shop) == AFTER and len(ids(shop)) == 1
    if form == "json":
        value = json.loads(out)
        assert found in " ".join(value["error"]["found"]) and value["exit_code"] == 2 and err == ""
        return
    lines = err.splitlines()
    assert lines[0].startswith("misused[") and found in err and out == ""
    parts = [line.split(":")[0].strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert parts in (["asked", "found", "unchanged", "next"], ["asked", "found", "unchanged"])


def test_again_takes_target_and_range_of_a_run(said: Any) -> None:
    code, out, _ = said("status", "--again", "r-0001")
    assert code == 0 and out.startswith(f"status: daily_orders for {DAYS}")


def test_two_restores_in_two_processes(shop: Path) -> None:
    command = [sys.executable, "-c", RUN, "-C", str(shop), "restore", "r-0001", "--yes", "--wait", "60s"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert sorted(out.split()[0] for out, _ in answers) == ["restore", "restored"]
    assert rows(shop) == BEFORE


SLOW = " AND (SELECT sum(a.range * b.range) FROM range(3000000) AS a, range(3000000) AS b) IS NOT NULL"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_status_that_takes_long_is_stopped(shop: Path, number: signal.Signals, code: int) -> None:
    source = shop / "daily.sql"
    source.write_text(source.read_text().replace(" GROUP BY", f"{SLOW} GROUP BY"))
    command = [sys.executable, "-c", RUN, "-C", str(shop), "status", "daily_orders"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_it_works(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "") and err.startswith("interrupted[interrupted]: daily_orders for 2026")
    assert rows(shop) == AFTER and len(ids(shop)) == 1


def test_a_restore_that_waits_for_another_process_is_stopped(shop: Path) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")):
        command = [sys.executable, "-c", RUN, "-C", str(shop), "restore", "r-0001", "--yes", "--wait", "60s"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "") and "interrupted[interrupted]" in err
    assert rows(shop) == AFTER


def test_a_database_that_is_held_is_told_with_the_same_command(shop: Path) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")):
        command = [sys.executable, "-c", RUN, "-C", str(shop), "restore", "r-0001", "--yes", "--wait", "0s"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4 and "failed[database_busy]" in done.stderr
    assert f"next:       reslice -C {shop} restore r-0001 --yes --wait 0s" in done.stderr


KILLED = """
import os, sys
from reslice.engines.duckdb.session import DuckDBSession
execute, count = DuckDBSession.execute, 0
def killed(self, statement, parameters=None):
    if sys.argv[1] in statement: os.kill(os.getpid(), 9)
    return execute(self, statement, parameters)
DuckDBSession.execute = killed
from reslice.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    "statement", ["kept_", 'DELETE FROM "shop"', 'INSERT INTO "shop"."main"', 'reslice".runs SET', "COMMIT"]
)
def test_killed_midway_and_run_again(shop: Path, statement: str) -> None:
    command = [sys.executable, "-c", KILLED, statement, "-C", str(shop), "restore", "r-0001", "--yes"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    assert rows(shop) == AFTER
    assert main(["-C", str(shop), "restore", "r-0001", "--yes"]) == 0
    assert rows(shop) == BEFORE
    assert {state for _, _, state in ids(shop)} <= {"published", "restored", "failed"}


# Anything that can be typed


TYPED = """
    daily_orders reslice.yml last last~1 r-0001 r-0002 r- -- -C . 2026-01-01 2026-01-01..2026-01-02 2026-01 2026 0001
    --json --help --interval --again --since --yes --reason --wait 0s --report undo.html 2026-01-02T12:00 infinity
"""
words = st.one_of(
    st.sampled_from(TYPED.split()),
    st.text(max_size=12).filter(lambda text: "/" not in text and "\\" not in text),
)


@pytest.fixture(scope="module")
def fuzzed_shop(published_shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copytree(published_shop, tmp_path_factory.mktemp("fuzz") / "shop")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(["status", "restore"]),
    scope=st.sampled_from([[], ["daily_orders", DAYS], ["last"], ["r-0001", "--yes"], ["daily_orders", "--since"]]),
    rest=st.lists(words, max_size=5),
)
def test_whatever_is_typed_is_answered(
    fuzzed_shop: Path, capsys: pytest.CaptureFixture[str], command: str, scope: list[str], rest: list[str]
) -> None:
    code = main(["-C", str(fuzzed_shop), command, *scope, *rest])
    text = "".join(capsys.readouterr())
    assert code in (0, 1, 2, 3), text
    assert "Traceback" not in text and "bug in reslice" not in text and text
