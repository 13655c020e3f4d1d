"""`--log-format json`: every word beside the result is one JSON object on a line of stderr, and stdout is as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.shop import AFTER, BEFORE, CONTRACT, DAYS, RUN, SOURCE, make_shop, rows

from reslice.cli import main
from reslice.cli_log import Log, is_json_asked

FIELDS = ["time", "level", "event", "message", "command", "target", "range", "run"]
SECRET = "fox-and-hound"
PATIENCE_SECONDS = 30
SLOW = SOURCE.replace("FROM orders", "FROM orders, range(100000000000)")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shop = make_shop(tmp_path / "shop")
    monkeypatch.chdir(shop)
    monkeypatch.delenv("RESLICE_LOG_FORMAT", raising=False)
    return shop


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the lines of a log, each of which has the same fields first."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert list(line)[: len(FIELDS)] == FIELDS
        assert line["level"] in ("info", "warning", "error")
        assert line["event"] in ("step", "warning", "note", "waiting", "error", "finished")
        moment = datetime.fromisoformat(line["time"])
        assert line["time"].endswith("Z") and abs((datetime.now(UTC) - moment).total_seconds()) < 600
    return lines


def logged(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, list[dict[str, Any]]]:
    code = main(["--log-format", "json", *words])
    captured = capsys.readouterr()
    return code, captured.out, lines_of(captured.err)


# What is logged


def test_a_run_is_its_steps_and_its_end(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, lines = logged(capsys, "run", "daily_orders", DAYS)
    assert code == 0
    steps = ["staging", "checking", "comparing", "publishing", "reading back"]
    assert [line["message"] for line in lines if line["event"] == "step"] == steps
    assert {line["event"] for line in lines} <= {"step", "note", "finished"}
    assert (lines[-1]["event"], lines[-1]["message"]) == ("finished", f"published: daily_orders for {DAYS}")
    about = {(line["level"], line["command"], line["target"], line["range"], line["run"]) for line in lines}
    assert about == {("info", "run", "daily_orders", DAYS, "r-0001")}
    assert {name: lines[-1][name] for name in ("exit_code", "outcome", "target_changed")} == {
        "exit_code": 0,
        "outcome": "published",
        "target_changed": True,
    }
    assert out.startswith("published r-0001: ")
    assert rows(shop) == AFTER


def test_stdout_is_the_same_with_and_without_a_log(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["plan", "daily_orders", DAYS], ["verify", "daily_orders", DAYS], ["history"]):
        code, out, lines = logged(capsys, *words)
        assert main(words) == code
        assert capsys.readouterr().out == out
        assert (lines[-1]["event"], lines[-1]["command"], lines[-1]["exit_code"]) == ("finished", words[0], code)
        assert lines[-1]["level"] == ("warning" if code else "info")


def test_the_variable_does_as_the_option_and_the_option_wins(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESLICE_LOG_FORMAT", "json")
    assert main(["history"]) == 0
    assert [line["event"] for line in lines_of(capsys.readouterr().err)] == ["finished"]
    assert main(["--log-format", "text", "history"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("RESLICE_LOG_FORMAT", "xml")
    assert main(["history"]) == 2
    assert "'xml' is not one of 'text', 'json'" in capsys.readouterr().err


def test_warnings_and_notes_of_a_run_are_lines(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "report.sql").write_text("SELECT order_date, order_count AS orders FROM daily_orders")
    reader = "    downstream: {sales: {query: report.sql, match: {orders: sum(order_count)}}}\n"
    (shop / "reslice.yml").write_text(CONTRACT + reader)
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS reslice")
    code, out, lines = logged(capsys, "run", "daily_orders", DAYS, "--json")
    warnings = [line["message"] for line in lines if line["event"] == "warning"]
    assert code == 0
    assert warnings == json.loads(out)["warnings"] and len(warnings) == 1
    assert [line["level"] for line in lines if line["event"] == "warning"] == ["warning"]
    kill = "UPDATE reslice.runs SET state = 'requested', finished_at = NULL, process = 'gone' WHERE id = 'r-0001'"
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute(kill)
    code, out, lines = logged(capsys, "run", "daily_orders", DAYS, "--json")
    notes = [line["message"] for line in lines if line["event"] == "note"]
    assert notes == json.loads(out)["notes"]
    assert [note for note in notes if note.startswith("r-0001 over") and "abandoned" in note]


def test_an_error_is_a_line_with_its_four_parts(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, lines = logged(capsys, "run", "daily_orders", "2026-01-03")
    assert (code, out) == (3, "")
    error = lines[-1]
    assert (error["level"], error["event"], error["kind"], error["exit_code"]) == ("error", "error", "empty_slice", 3)
    assert error["message"].startswith("stopped[empty_slice]: daily_orders for 2026-01-03")
    assert (error["command"], error["run"]) == ("run", "r-0001")
    assert error["error"]["next"] == "reslice show r-0001 --diff"
    assert error["error"]["consent"] == "reslice run --approve r-0001"
    assert all(error["error"][part] for part in ("asked", "found", "unchanged"))
    assert rows(shop) == BEFORE


def test_with_json_an_error_is_on_both_streams(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, lines = logged(capsys, "run", "daily_orders", "2026-01-03", "--json")
    answer = json.loads(out)
    assert code == answer["exit_code"] == lines[-1]["exit_code"] == 3
    assert answer["error"] == lines[-1]["error"]


@pytest.mark.parametrize(
    ("words", "command", "found"),
    [
        (["run", "daily_orders"], "run", "RANGE is missing"),
        (["rnu"], None, "No such command 'rnu'"),
        (["run", "daily_orders", "2026-13"], "run", "no such month"),
        (["--config", "nowhere.yml", "history"], "history", "nowhere.yml"),
    ],
)
def test_what_cannot_be_understood_is_a_line(
    shop: Path, capsys: pytest.CaptureFixture[str], words: list[str], command: str | None, found: str
) -> None:
    code, out, lines = logged(capsys, *words)
    assert (code, out) == (2, "")
    assert [(line["event"], line["command"], line["exit_code"]) for line in lines] == [("error", command, 2)]
    assert found in lines[0]["message"]


def test_a_mistake_in_the_options_before_the_command_is_a_line(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log-format=json", "--nope"]) == 2
    assert lines_of(capsys.readouterr().err)[0]["kind"] == "usage"


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (["--log-format", "json", "run"], {}, True),
        (["--log-format=json"], {}, True),
        (["--log-format", "text"], {"RESLICE_LOG_FORMAT": "json"}, False),
        (["--log-format"], {"RESLICE_LOG_FORMAT": "json"}, False),
        ([], {"RESLICE_LOG_FORMAT": "json"}, True),
        (["run", "json"], {}, False),
    ],
)
def test_a_log_is_known_before_the_line_is_parsed(
    given: list[str], environment: dict[str, str], expected: bool
) -> None:
    assert is_json_asked(given, environment) is expected


def test_help_and_version_are_no_event(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["--version"], ["run", "--help"]):
        assert main(["--log-format", "json", *words]) == 0
        assert capsys.readouterr().err == ""


def test_a_bug_is_a_line(shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from reslice.cli_session import Session

    def broken(_session: Session) -> None:
        raise RuntimeError(f"cannot use postgresql://anna:{SECRET}@db/shop")

    monkeypatch.setattr(Session, "open", broken)
    monkeypatch.setattr("tempfile.tempdir", str(shop))
    code, out, lines = logged(capsys, "history")
    assert (code, out, lines[-1]["kind"], lines[-1]["exit_code"]) == (5, "", "internal", 5)
    assert SECRET not in json.dumps(lines)


def test_a_page_that_fails_is_a_line(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reslice import page

    def broken(*_arguments: object, **_options: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page, "page_html", broken)
    code, _, lines = logged(capsys, "run", "daily_orders", DAYS, "--report", "page.html")
    warnings = [line["message"] for line in lines if line["event"] == "warning"]
    assert (code, warnings) == (0, ["page.html was not written: No space left on device"])


def test_no_secret_is_logged(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    for url in ('"postgresql://anna:${env:SHOP_PASSWORD}@db/shop"', '"duckdb:///${env:SHOP_PASSWORD}/shop.duckdb"'):
        (shop / "reslice.yml").write_text(CONTRACT.replace("duckdb:///shop.duckdb", url))
        code, _, lines = logged(capsys, "run", "daily_orders", DAYS)
        assert code in (2, 4)
        assert SECRET not in json.dumps(lines) and lines[-1]["event"] == "error"
    (tmp_path / SECRET).mkdir()
    (shop / "shop.duckdb").rename(tmp_path / SECRET / "shop.duckdb")
    url = '"duckdb:///../${env:SHOP_PASSWORD}/shop.duckdb"'
    (shop / "reslice.yml").write_text(CONTRACT.replace("duckdb:///shop.duckdb", url))
    assert logged(capsys, "run", "daily_orders", "2026-01-03")[0] == 3
    code, _, lines = logged(capsys, "run", "daily_orders", DAYS)
    assert code == 0
    assert SECRET not in json.dumps(lines)


def test_what_would_break_a_line_is_escaped(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, lines = logged(capsys, "run", "da\nily\u2028\u202e東", "2026-01-03")
    assert (code, len(lines)) == (2, 1)
    assert lines[0]["target"] == "da\nily\u2028\u202e東"
    assert main(["--log-format", "json", "run", "東\u202e", DAYS]) == 2
    assert capsys.readouterr().err.isascii()


# Waiting, signals, and streams that are not there


def start(shop: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    script = "import sys; from reslice.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "--log-format", "json", "-C", str(shop), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stderr is not None
    line: dict[str, Any] = json.loads(process.stderr.readline())
    return line


def test_who_is_waited_for_is_a_line(shop: Path) -> None:
    hold = "import duckdb, sys; c = duckdb.connect('shop.duckdb'); print('held', flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", hold], cwd=shop, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        process = start(shop, "run", "daily_orders", DAYS)
        line = first_line(process)
        assert (line["event"], line["level"], line["run"]) == ("waiting", "info", None)
        assert (line["target"], line["range"]) == ("daily_orders", DAYS)
        assert f"process {holder.pid}" in line["message"]
        holder.communicate(timeout=PATIENCE_SECONDS)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert [each["event"] for each in lines_of(err.decode())][-1] == "finished"
    assert "waiting" not in {each["event"] for each in lines_of(err.decode())}, "it is told once"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_is_two_lines(shop: Path, number: signal.Signals, code: int) -> None:
    (shop / "daily.sql").write_text(SLOW)
    process = start(shop, "run", "daily_orders", DAYS)
    assert first_line(process)["message"] == "staging"
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (code, b"")
    stopping, error = lines_of(err.decode())
    assert (stopping["event"], stopping["level"], stopping["message"]) == ("step", "warning", "stopping, rolling back")
    assert (error["event"], error["kind"], error["exit_code"], error["run"]) == ("error", "interrupted", code, "r-0001")
    assert rows(shop) == BEFORE


def test_a_signal_before_the_work_is_a_line(shop: Path) -> None:
    """A contract that cannot be read to its end holds the command where nothing has begun."""
    os.mkfifo(shop / "slow.yml")
    process = start(shop, "--config", "slow.yml", "history")
    with open(shop / "slow.yml", "wb"):
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == -signal.SIGTERM
    (line,) = lines_of(err.decode())
    assert (line["event"], line["kind"], line["exit_code"]) == ("error", "interrupted", 143)


def test_a_terminal_shows_lines_and_nothing_that_moves(shop: Path) -> None:
    import pty

    (shop / "daily.sql").write_text(SLOW)
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", RUN, "--log-format", "json", "-C", str(shop), "plan", "daily_orders", DAYS]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    said = os.read(reader, 4096)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_SECONDS)
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # Linux says EIO when the other side has closed the terminal.
            break
        if not part:
            break
        said += part
    os.close(reader)
    assert b"\x1b" not in said
    assert [line["event"] for line in lines_of(said.decode().replace("\r\n", "\n"))] == ["step", "step", "error"]


def test_a_stream_that_is_closed_or_gone_is_no_trouble(shop: Path) -> None:
    close = "import os, sys; os.close(2)"
    script = f"{close}; os.execv(sys.executable, [sys.executable, '-c', {RUN!r}, *sys.argv[1:]])"
    words = ["--log-format", "json", "-C", str(shop), "run", "daily_orders", DAYS]
    assert subprocess.run([sys.executable, "-c", script, *words], check=False, capture_output=True).returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", RUN, *words], check=False, stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    assert done.returncode == 0
    assert done.stdout.startswith(b"unchanged r-0002: ")
    Log(None).write("note", "nobody reads this")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written_is_a_line(shop: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", RUN, "--log-format", "json", "-C", str(shop), "history"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    warning, finished = lines_of(done.stderr.decode())
    assert (done.returncode, warning["level"]) == (4, "warning")
    assert warning["message"] == "the answer could not be written: No space left on device"
    assert (finished["event"], finished["exit_code"]) == ("finished", 4)


def test_lines_of_two_threads_stay_whole(tmp_path: Path) -> None:
    import threading

    with open(tmp_path / "log", "w", encoding="ascii") as stream:
        log = Log(stream)

        def write_many() -> None:
            for _ in range(50):
                log.write("step", "x" * 5000)

        threads = [threading.Thread(target=write_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(lines_of((tmp_path / "log").read_text())) == 200
