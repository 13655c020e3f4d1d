"""A long run shows where it is on a terminal, and stops when it is asked to: the table is as it was."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from tests.unit.shop import BEFORE, DAYS, PATIENCE_SECONDS, RUN, make_shop, rows, until_it_works

from reslice.cli_session import Session
from reslice.progress import Worker

SLOW = """\
SELECT order_date, channel, count(*) AS order_count, sum(amount_cents) AS amount_cents
FROM orders, range(100000000000) WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel
"""


@pytest.fixture
def slow_shop(tmp_path: Path) -> Path:
    """A shop whose source never ends."""
    shop = make_shop(tmp_path / "shop")
    (shop / "daily.sql").write_text(SLOW)
    return shop


@contextmanager
def on_a_terminal(shop: Path, *arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the command line with its stderr on a terminal; yield the process and what reads the terminal."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", RUN, "-C", str(shop), *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=writer, env=os.environ | {"TERM": "xterm-256color", **environment}
    )
    os.close(writer)
    try:
        yield process, reader
    finally:
        process.kill()
        process.communicate()
        os.close(reader)


def read_until(reader: int, words: str) -> str:
    """Return what the terminal was sent, as soon as it holds the words."""
    seen = b""
    end = time.monotonic() + PATIENCE_SECONDS
    while words.encode() not in seen:
        assert time.monotonic() < end, f"{words!r} was not shown: {seen!r}"
        if select.select([reader], [], [], 0.1)[0]:
            seen += os.read(reader, 4096)
    return seen.decode()


def read_to_the_end(reader: int) -> str:
    seen = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # Linux says EIO when the other side has closed the terminal.
            part = b""
        if not part:
            return seen.decode()
        seen += part


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_rolls_back_and_says_so(slow_shop: Path, number: signal.Signals, code: int) -> None:
    with on_a_terminal(slow_shop, "run", "daily_orders", DAYS) as (process, reader):
        read_until(reader, "staging")
        process.send_signal(number)
        process.send_signal(number)
        said = read_to_the_end(reader)
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert out == b""
    assert "interrupted[interrupted]: " in said
    assert "unchanged:" in said
    assert "Traceback" not in said
    assert rows(slow_shop) == BEFORE


def test_a_terminal_that_goes_away_rolls_back(slow_shop: Path) -> None:
    """As when a connection to the machine drops: SIGHUP, and nobody to tell."""
    child, reader = pty.fork()
    if child == 0:  # the session's leader, whose terminal closes
        os.execv(sys.executable, [sys.executable, "-c", RUN, "-C", str(slow_shop), "run", "daily_orders", DAYS])
    read_until(reader, "staging")
    os.close(reader)
    assert ended(child) == 129
    assert rows(slow_shop) == BEFORE
    with duckdb.connect(str(slow_shop / "shop.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT state, error ->> 'kind' FROM reslice.runs").fetchall()
    assert found == [("failed", "interrupted")]


def ended(child: int) -> int:
    """Return the exit code of a child, which ends in time."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("it did not end")


def test_under_nohup_the_work_goes_on(slow_shop: Path) -> None:
    deaf = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {RUN}"
    command = [sys.executable, "-c", deaf, "-C", str(slow_shop), "plan", "daily_orders", DAYS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_it_works(process)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err.splitlines()[0]) == (
        143,
        f"interrupted[interrupted]: daily_orders for {DAYS}, both days included, 2 slices",
    )


@pytest.mark.parametrize("command", ["plan", "status", "verify"])
def test_a_command_that_writes_nothing_says_so_when_it_is_stopped(slow_shop: Path, command: str) -> None:
    words = [sys.executable, "-c", RUN, "-C", str(slow_shop), command, "daily_orders", DAYS]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_it_works(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    lines = err.splitlines()
    assert lines[0] == f"interrupted[interrupted]: daily_orders for {DAYS}, both days included, 2 slices"
    assert lines[3] == "  unchanged:  nothing was written"


def test_a_run_that_waits_for_the_file_says_what_it_was_for(tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")
    with duckdb.connect(str(shop / "shop.duckdb")):
        words = [sys.executable, "-c", RUN, "-C", str(shop), "run", "daily_orders", DAYS]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None and process.stderr.readline().startswith("waiting: ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    found = f"interrupted[interrupted]: daily_orders for {DAYS}, both days included, 2 slices"
    assert (process.returncode, err.splitlines()[0]) == (130, found)


def test_a_signal_without_a_terminal_says_no_more_than_the_error(slow_shop: Path) -> None:
    command = [sys.executable, "-c", RUN, "-C", str(slow_shop), "verify", "daily_orders", DAYS, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until_it_works(process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (143, b"")
    assert b'"exit_code": 143' in out
    assert b'"kind": "interrupted"' in out


def test_the_line_has_a_step_and_the_time_and_goes_away(slow_shop: Path) -> None:
    with on_a_terminal(slow_shop, "plan", "daily_orders", DAYS) as (process, reader):
        said = read_until(reader, "staging")
        said += read_until(reader, "0:02")
        process.send_signal(signal.SIGINT)
        end = read_to_the_end(reader)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert re.search(r"staging  (\d+%  )?0:0\d", said)
    assert "\x1b[2K" in end, "the line is erased before the error is written"
    assert end.index("\x1b[2K") < end.index("interrupted[")


def test_no_colour_and_no_style_is_used(slow_shop: Path) -> None:
    with on_a_terminal(slow_shop, "plan", "daily_orders", DAYS, NO_COLOR="1") as (process, reader):
        said = read_until(reader, "staging")
        process.send_signal(signal.SIGINT)
        said += read_to_the_end(reader)
    assert not re.search(r"\x1b\[[0-9;]*m", said)


def test_a_dumb_terminal_is_left_in_peace(slow_shop: Path) -> None:
    with on_a_terminal(slow_shop, "plan", "daily_orders", DAYS, TERM="dumb") as (process, reader):
        until_it_works(process)
        process.send_signal(signal.SIGINT)
        said = read_to_the_end(reader)
    assert said.startswith("interrupted[interrupted]: ")


class Steps:
    """Work that waits until it is interrupted or told to end."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.may_end = threading.Event()

    def interrupt(self) -> None:
        self.interrupts += 1
        self.may_end.set()

    def progress(self) -> float | None:
        return None


def test_work_returns_its_value_and_raises_its_error() -> None:
    worker = Worker(Steps(), None)
    assert worker.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 // 0)


def test_a_signal_is_passed_on_once_and_the_work_is_waited_for() -> None:
    steps = Steps()
    worker = Worker(steps, None)

    def work() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert steps.may_end.wait(PATIENCE_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        return "ended by itself"

    assert worker.call(work) == "ended by itself"
    assert (steps.interrupts, worker.signal_number) == (1, signal.SIGINT)


def test_handlers_are_as_they_were_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    Worker(Steps(), None).call(lambda: None)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_it_works_outside_the_main_thread() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(Worker(Steps(), None).call(lambda: 7)))
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert found == [7]


WAITS = [
    "publishing",
    "waiting: run r-0001 has the turn",
    "waiting: run r-0001 has the turn",
    "going on",
    "publishing 2026-01-02",
    "waiting: run r-0001 has the turn",
    "going on",
    "waiting: process 7, role o\x1b[31mops\n",
    "going on",
]
TOLD = "waiting: run r-0001 has the turn\nwaiting: process 7, role o\\x1b[31mops\\n\n"


def test_whom_it_waits_for_is_told_once_and_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    worker = Worker(Steps(), stream)
    for step in WAITS:
        worker.on_step(step)
    assert stream.getvalue() == TOLD


def test_a_command_without_a_progress_line_tells_whom_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session()
    for step in ["staging", *WAITS[1:4], *WAITS[7:]]:
        session.hear(step)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", TOLD)


@pytest.mark.parametrize("words", [("init", "--ledger"), ("versions", "daily_orders", "--prune", "--yes")])
def test_whatever_writes_says_whose_file_it_waits_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    shop = make_shop(tmp_path / "shop")
    hold = "import duckdb, sys; c = duckdb.connect('shop.duckdb'); print('held', flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    if words[0] == "versions":
        text = (shop / "reslice.yml").read_text()
        keys = "    method: append_version\n    stamps: {run: run_id}\n    guards: {total_change: allow}\n"
        (shop / "reslice.yml").write_text(text.replace("    measures:", f"{keys}    measures:"))
        with duckdb.connect(str(shop / "shop.duckdb")) as connection:
            connection.execute("ALTER TABLE daily_orders ADD COLUMN run VARCHAR")
        for cents in (100, 200):
            with duckdb.connect(str(shop / "shop.duckdb")) as connection:
                connection.execute(f"UPDATE orders SET amount_cents = {cents}")
            subprocess.run([sys.executable, "-c", RUN, "-C", shop, "run", "daily_orders", DAYS], check=True)
        words = (*words, "--older-than", "0")
    with subprocess.Popen([sys.executable, "-c", hold], cwd=shop, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        process = subprocess.Popen([sys.executable, "-c", RUN, "-C", shop, *words], stderr=pipe, stdout=pipe, text=True)
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], PATIENCE_SECONDS)[0], "it says nothing"
        holder.communicate(timeout=PATIENCE_SECONDS)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err.count("\n")) == (0, 1), out
    assert err.startswith(f"waiting: process {holder.pid} (") and err.endswith(" has the file open\n")
