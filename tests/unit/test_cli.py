"""The command line: what it parses, where it prints, how it ends. Commands run on a real DuckDB file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.shop import AFTER, BEFORE, DAYS, RUN, SOURCE, make_shop, rows

from reslice import cli_bug
from reslice.cli import main
from reslice.cli_session import Session


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def next(self) -> str:
        """The command of the last line."""
        last = (self.out or self.err).rstrip("\n").split("\n")[-1]
        assert last.lstrip().startswith("next:"), last
        return last.split("next:", 1)[1].strip()


Reslice = Callable[..., Answer]


@pytest.fixture
def reslice(shop: Path, capsys: pytest.CaptureFixture[str]) -> Reslice:
    """Run the command line within this process, in the shop."""

    def call(*arguments: str) -> Answer:
        code = main(["-C", str(shop), *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


# Help


COMMANDS = [
    "plan",
    "run",
    "verify",
    "status",
    "history",
    "show",
    "restore",
    "versions",
    "init",
    "doctor",
    "audit",
    "prove",
    "rule",
    "demo",
    "lab",
    "studio",
]
HEAVY = ("duckdb", "pydantic", "ruamel", "rich", "starlette", "uvicorn", "jinja2")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], [], ["nonsense"], *([each, "--help"] for each in COMMANDS)]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys; from reslice.cli import main; main(sys.argv[1:]);"
        f"print([name for name in sys.modules if name.split('.')[0] in {HEAVY}], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["--help"], *([each, "--help"] for each in COMMANDS)])
def test_help_begins_with_examples_and_prints_to_stdout(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Examples:\n  reslice ")
    assert captured.err == ""


def test_no_command_is_a_question_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    sections = ["Every day:", "Set up:", "Others' code:", "Learn, look:"]
    assert [line for line in out.splitlines() if line in sections] == sections
    assert re.findall(r"^  ([a-z]+)  +[A-Z]", out.split("Every day:\n")[1], re.MULTILINE) == COMMANDS


# Misuse


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "TARGET is missing"),
        (["plan"], "TARGET is missing"),
        (["verify"], "TARGET is missing"),
        (["show"], "Missing argument 'RUN'"),
        (["run", "daily_orders"], "RANGE is missing"),
        (["plan", "daily_orders"], "RANGE is missing"),
        (["run", "daily_orders", ""], "RANGE is empty"),
        (["run", "", DAYS], "TARGET is empty"),
        (["run", "daily_orders", DAYS, "--approve", ""], "--approve is empty"),
        (["run", "daily_orders", DAYS, "--again", "last"], "RANGE and --again both say which slices"),
        (["run", "daily_orders", DAYS, "--approve", "last"], "RANGE and --approve both say which slices"),
        (["run", "--again", "last", "--approve", "last"], "--again and --approve both say which slices"),
        (["plan", "daily_orders", DAYS, "--interval", "2026-01-01", "2026-01-03"], "RANGE and --interval both"),
        (["run", "daily_orders", DAYS, "--allow", "total_change"], "--allow needs --reason"),
        (["run", "daily_orders", DAYS, "--allow", "total_change", "--reason", " "], "--allow needs --reason"),
        (["run", "daily_orders", DAYS, "--wait", "soon"], "--wait: expected"),
        (["run", "daily_orders", DAYS, "--wait", "-5s"], "--wait: expected"),
        (["plan", "daily_orders", DAYS, "--jsn"], "No such option '--jsn'"),
        (["plan", "daily_orders", DAYS, "more"], "Got unexpected extra argument"),
        (["history", "--limit", "0"], "Invalid value for '--limit'"),
        (["plan", "daily_order", DAYS], "did you mean daily_orders?"),
        (["plan", "daily_orders", "2026-13"], "no such month"),
        (["run", "--approve", "r-9999"], "r-9999"),
        (["show", "last"], "no run"),
    ],
)
def test_misuse_exits_2_in_four_parts(reslice: Reslice, shop: Path, arguments: list[str], found: str) -> None:
    answer = reslice(*arguments)
    assert (answer.code, answer.out) == (2, "")
    lines = answer.err.splitlines()
    assert lines[0].startswith("misused[")
    assert found in answer.err
    parts = [line.split(":")[0].strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert parts in (["asked", "found", "unchanged", "next"], ["asked", "found", "unchanged"])
    assert rows(shop) == BEFORE


def test_misuse_as_json_is_one_value_on_stdout(reslice: Reslice) -> None:
    answer = reslice("run", "daily_orders", "--json")
    assert (answer.code, answer.err) == (2, "")
    assert answer.json["schema"] == "reslice/run/1"
    assert answer.json["error"]["kind"] == "usage"
    assert answer.json["exit_code"] == 2
    assert answer.json["target_changed"] is False


def test_an_unknown_command_has_a_schema_of_its_own(reslice: Reslice) -> None:
    answer = reslice("rnu", "--json")
    assert answer.code == 2
    assert list(answer.json) == ["schema", "error", "next", "exit_code"]
    assert answer.json["schema"] == "reslice/error/1"


def test_a_project_that_is_not_there_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(tmp_path), "plan", "daily_orders", DAYS]) == 2
    assert "reslice.yml" in capsys.readouterr().err
    assert main(["-C", str(tmp_path / "nowhere"), "plan", "daily_orders", DAYS]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_folder_it_was_started_in_is_left_as_it_was(reslice: Reslice) -> None:
    before = os.getcwd()
    reslice("plan", "daily_orders", DAYS)
    assert os.getcwd() == before


# The commands


def test_plan_shows_and_writes_nothing(reslice: Reslice, shop: Path) -> None:
    answer = reslice("plan", "daily_orders", DAYS)
    assert (answer.code, answer.err) == (0, "")
    assert f"daily_orders for {DAYS}, both days included, 2 slices" in answer.out
    assert "0 added, 2 changed, 1 removed, 1 unchanged; 2 of 2 slices differ" in answer.out
    assert "  ~ 2026-01-02 web     order_count 1 → 2   amount_cents 7000 → 19000" in answer.out.splitlines()
    assert rows(shop) == BEFORE


def test_plan_exit_code_tells_whether_anything_would_change(reslice: Reslice) -> None:
    assert reslice("plan", "daily_orders", DAYS, "--exit-code").code == 1
    assert reslice("plan", "daily_orders", DAYS, "--exit-code", "--json").json["exit_code"] == 1
    assert reslice("run", "daily_orders", DAYS).code == 0
    assert reslice("plan", "daily_orders", DAYS, "--exit-code").code == 0


def test_run_and_run_again(reslice: Reslice, shop: Path) -> None:
    first = reslice("run", "daily_orders", DAYS, "--json")
    assert (first.code, first.err) == (0, "")
    assert first.json["outcome"] == "published"
    assert first.json["target_changed"] is True
    assert first.json["diff"] == {"added": 0, "changed": 2, "removed": 1, "unchanged": 1}
    assert first.json["rows"] == {"before": 4, "staged": 3, "after": 3}
    assert first.json["totals"]["amount_cents"] == {"before": 28700, "after": 29100}
    assert rows(shop) == AFTER
    again = reslice("run", "daily_orders", DAYS, "--json")
    assert (again.json["outcome"], again.json["target_changed"]) == ("unchanged", False)
    assert rows(shop) == AFTER


def test_text_says_in_how_many_commits(reslice: Reslice) -> None:
    assert "2 slices replaced, each in its own commit" in reslice("run", "daily_orders", DAYS, "--per-slice").out
    assert (
        "the same rows as before: 2 slices written again in one"
        in reslice("run", "daily_orders", DAYS, "--rewrite").out
    )


def test_interval_is_half_open(reslice: Reslice) -> None:
    answer = reslice("plan", "daily_orders", "--interval", "2026-01-01", "2026-01-03", "--json")
    assert answer.json["slice"] == {
        "start": "2026-01-01",
        "end": "2026-01-02",
        "unit": "day",
        "count": 2,
        "range": DAYS,
    }


def test_again_takes_target_and_range_of_a_run(reslice: Reslice) -> None:
    reslice("run", "daily_orders", DAYS)
    for arguments in (["plan"], ["run"], ["verify"], ["verify", "daily_orders"]):
        answer = reslice(*arguments, "--again", "r-0001", "--json")
        assert (answer.code, answer.json["slice"]["range"]) == (0, DAYS)


def test_a_stop_is_approved_with_the_command_it_prints(reslice: Reslice, shop: Path) -> None:
    stop = reslice("run", "daily_orders", "2026-01-03")
    assert (stop.code, stop.out) == (3, "")
    assert stop.err.startswith("stopped[empty_slice")
    assert rows(shop) == BEFORE
    look, consent = stop.err.splitlines()[-2:]
    assert look == f"  next:       reslice -C {shop} show r-0001 --diff"
    assert consent == f"  if right:   reslice -C {shop} run --approve r-0001"
    assert reslice("show", "r-0001", "--diff").code == 0
    answer = reslice("run", "--approve", "r-0001")
    assert answer.code == 0
    assert rows(shop) == BEFORE[:-1]


def test_a_plan_shows_the_stop_and_the_consent_that_works(reslice: Reslice, shop: Path) -> None:
    plan = reslice("plan", "daily_orders", "2026-01-03")
    assert plan.code == 0
    assert "guard         empty_slice would stop a run" in plan.out
    words = plan.next.replace('"say why"', "checked").split()
    assert words[:3] == ["reslice", "-C", str(shop)]
    assert reslice(*words[3:]).code == 0
    assert rows(shop) == BEFORE[:-1]


def test_a_plan_file_is_run_once_and_then_unchanged(reslice: Reslice, shop: Path) -> None:
    answer = reslice("plan", "daily_orders", DAYS, "--out", "review.json")
    assert (answer.code, answer.next) == (0, f"reslice -C {shop} run review.json")
    assert answer.err == "note: wrote review.json\n"
    assert reslice("run", "review.json").code == 0
    assert rows(shop) == AFTER
    again = reslice("run", "review.json", "--json")
    assert (again.code, again.json["outcome"]) == (0, "unchanged")


def test_a_plan_file_by_any_name_is_known_by_what_it_says(reslice: Reslice, shop: Path) -> None:
    reslice("plan", "daily_orders", DAYS, "--out", "reviewed")
    assert reslice("run", "reviewed").code == 0
    assert rows(shop) == AFTER


def test_out_is_a_file(reslice: Reslice, shop: Path) -> None:
    answer = reslice("plan", "daily_orders", DAYS, "--out", "-")
    assert answer.code == 2
    assert "--out: - is no file; the answer itself goes to stdout." in answer.err
    assert not (shop / "-").exists()


def test_out_overwrites_no_other_file(reslice: Reslice, shop: Path) -> None:
    answer = reslice("plan", "daily_orders", DAYS, "--out", "daily.sql")
    assert answer.code == 2
    assert (shop / "daily.sql").read_text() == SOURCE


def test_sql_is_printed_alone(reslice: Reslice, shop: Path) -> None:
    answer = reslice("plan", "daily_orders", DAYS, "--sql")
    assert answer.out.startswith(f"-- daily_orders for {DAYS}, both days included, 2 slices: what would be executed\n")
    assert "DELETE FROM" in answer.out
    assert "BEGIN" in answer.out
    assert rows(shop) == BEFORE
    assert any("DELETE FROM" in each for each in reslice("plan", "daily_orders", DAYS, "--sql", "--json").json["sql"])


def test_verify_answers_with_its_exit_code(reslice: Reslice) -> None:
    moved = reslice("verify", "daily_orders", DAYS, "--json")
    assert (moved.code, moved.json["repeatable"], moved.json["equals_source"]) == (1, True, False)
    reslice("run", "daily_orders", DAYS)
    answer = reslice("verify", "daily_orders", DAYS)
    assert answer.code == 0
    assert answer.out.startswith("verified: ")


def test_history_and_show(reslice: Reslice) -> None:
    assert reslice("history").code == 0
    reslice("run", "daily_orders", DAYS)
    reslice("run", "daily_orders", DAYS)
    history = reslice("history", "daily_orders", "--limit", "1", "--json")
    assert [run["id"] for run in history.json["runs"]] == ["r-0002"]
    assert "r-0001" in reslice("history").out
    show = reslice("show", "last~1", "--json")
    assert (show.json["run"]["id"], show.json["run"]["state"], len(show.json["groups"])) == ("r-0001", "published", 3)
    assert "fingerprint" in reslice("show", "r-0001", "--diff").out
    assert "DELETE FROM" in reslice("show", "r-0001", "--sql").out


def test_a_refusal_says_everything_and_exits_3(reslice: Reslice, shop: Path) -> None:
    (shop / "daily.sql").write_text(
        "SELECT order_date, channel, 1 AS order_count, -1 AS amount_cents FROM orders"
        " WHERE order_date BETWEEN :start AND :end"
    )
    for command in ("plan", "run"):
        answer = reslice(command, "daily_orders", DAYS)
        assert answer.code == 3
        assert answer.err.startswith("refused[measure_minimum, key_repeated]: ")
    answer = reslice("run", "daily_orders", DAYS, "--json")
    assert [each["kind"] for each in answer.json["error"]["failures"]] == ["measure_minimum", "key_repeated"]
    assert (answer.json["outcome"], answer.json["exit_code"]) == ("refused", 3)
    assert rows(shop) == BEFORE


# When things break around it


def run_process(shop: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", RUN, "-C", str(shop), *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, **options)


def test_a_reader_that_goes_away_does_not_change_the_end(shop: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_process(shop, "run", "daily_orders", DAYS, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rows(shop) == AFTER


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written_is_said(shop: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = run_process(shop, "run", "daily_orders", DAYS, stdout=full)
    assert done.returncode == 0
    assert done.stderr == b"warning: the answer could not be written: No space left on device\n"
    assert rows(shop) == AFTER


LOOKS = [
    ["plan", "daily_orders", DAYS],
    ["plan", "daily_orders", DAYS, "--json"],
    ["status", "daily_orders"],
    ["verify", "daily_orders", DAYS],
    ["history"],
    ["doctor"],
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", LOOKS)
def test_a_command_that_only_looks_has_failed_when_its_answer_is_lost(shop: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = run_process(shop, *arguments, stdout=full)
    assert done.returncode == 4
    assert done.stderr == b"warning: the answer could not be written: No space left on device\n"
    assert rows(shop) == BEFORE


def test_a_reader_that_goes_away_has_seen_what_it_wanted(shop: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_process(shop, "plan", "daily_orders", DAYS, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_are_no_trouble(shop: Path) -> None:
    close = "import os, sys; os.close(0); os.close(1); os.close(2)"
    script = f"{close}; os.execv(sys.executable, [sys.executable, '-c', {RUN!r}, *sys.argv[1:]])"
    command = [sys.executable, "-c", script, "-C", str(shop)]
    assert subprocess.run([*command, "run", "daily_orders", DAYS], check=False).returncode == 0
    assert subprocess.run([*command, "run", "daily_orders"], check=False).returncode == 2
    assert rows(shop) == AFTER


def test_a_terminal_that_only_knows_ascii_is_served(shop: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = run_process(shop, "run", "daily_orders", DAYS, stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"amount_cents 7000 -> 19000" in done.stdout


def test_a_bug_is_called_one(reslice: Reslice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_session: Session) -> None:
        raise RuntimeError("cannot use postgresql://anna:hunter2@db/shop with fox-and-hound")

    monkeypatch.setattr(Session, "open", broken)
    monkeypatch.setenv("SHOP_PASSWORD", "fox-and-hound")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answer = reslice("history")
    assert (answer.code, answer.out) == (5, "")
    assert "a bug in reslice: RuntimeError in test_cli.py" in answer.err
    assert "not known: look with  reslice history" in answer.err
    assert "Traceback" not in answer.err
    (details,) = tmp_path.glob("reslice-bug-*.txt")
    assert str(details) in answer.err
    text = details.read_text()
    assert "Traceback" in text
    assert "postgresql://***@db/shop with ***" in text
    assert details.stat().st_mode & 0o077 == 0
    assert reslice("history", "--json").json["error"]["kind"] == "internal"


def test_a_bug_without_a_place_for_details_is_still_told(
    reslice: Reslice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_session: Session) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(Session, "open", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    answer = reslice("history")
    assert answer.code == 5
    assert "details: none, they could not be written: No such file or directory" in answer.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://anna:p@ss:word@db:5432/x", "postgresql://***@db:5432/x"),
        ("host=db password=abc user=anna", "host=db password=*** user=anna"),
        ("host=db password='a b c' user=anna", "host=db password=*** user=anna"),
        ("{'s3_secret_access_key': 'abc', 'region': 'eu'}", "{'s3_secret_access_key': ***, 'region': 'eu'}"),
        ("token: abc", "token: ***"),
        ("value is fox-and-hound.", "value is ***."),
        ("duckdb:///shop.duckdb, 3 rows", "duckdb:///shop.duckdb, 3 rows"),
        ("key_repeated: 3 keys", "key_repeated: 3 keys"),
    ],
)
def test_details_hold_no_secret(text: str, expected: str) -> None:
    assert cli_bug.masked(text, {"SHOP_PASSWORD": "fox-and-hound", "SHOP_TOKEN": "eu", "HOME": "rows"}) == expected


# Anything that can be typed


TYPED = """
    plan run verify history show daily_orders reslice.yml daily.sql shop.duckdb plan.json last last~1 r-0001 r- -- -C .
    2026-01-01 2026-01-01..2026-01-02 2026-01 2026-Q1 2026 2026-01-02..2026-01-01 0001-01-01..9999-12-31 total_change
    --json --help --interval --again --approve --allow --reason --rewrite --per-slice --with-affected --wait 0s --sql
    --out --exit-code --record --diff --limit 5 empty_slice=2026-01-03
"""
words = st.one_of(
    st.sampled_from(TYPED.split()),
    st.text(max_size=12).filter(lambda text: "/" not in text and "\\" not in text),
)


@pytest.fixture(scope="module")
def fuzzed_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("fuzz") / "shop")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(["plan", "run", "verify", "history", "show", "rnu"]),
    scope=st.sampled_from([[], [], ["daily_orders", DAYS], ["daily_orders", "2026"], ["last"], ["--again", "last"]]),
    rest=st.lists(words, max_size=6),
)
def test_whatever_is_typed_is_answered(
    fuzzed_shop: Path, capsys: pytest.CaptureFixture[str], command: str, scope: list[str], rest: list[str]
) -> None:
    code = main(["-C", str(fuzzed_shop), command, *scope, *rest])
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert code in (0, 1, 2, 3), text
    assert "Traceback" not in text
    assert "bug in reslice" not in text
    assert text, "something is always said"
