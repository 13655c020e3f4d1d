"""The commands audit and rule: what they print and where, and how they end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.audit.sarif_shape import SHAPE

RESLICE = Path(sys.executable).with_name("reslice")
APPEND = "insert into daily_orders\nselect order_date, count(*) from orders group by order_date;\n"
RIGHT = "create table daily_orders as select order_date, count(*) as n from orders group by order_date;\n"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "nightly.sql").write_text(APPEND)
    (tmp_path / "jobs" / "whole.sql").write_text(RIGHT)
    return tmp_path


def reslice(folder: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [RESLICE, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )
    return ended.returncode, ended.stdout, ended.stderr


def answer(folder: Path, *words: str) -> dict[str, Any]:
    code, out, err = reslice(folder, *words, "--json")
    assert not err
    value: dict[str, Any] = json.loads(out)
    assert value["exit_code"] == code
    return value


def test_a_finding_ends_with_one_and_the_rest_with_nothing(jobs: Path) -> None:
    code, out, err = reslice(jobs, "audit", "jobs", "--dialect", "postgres")
    assert (code, err) == (1, "")
    assert out == (
        "jobs/nightly.sql:1:1: RS101 An aggregate is appended: "
        "each run adds its rows to daily_orders again, and removes none\n"
        "  1 | insert into daily_orders\n"
        "    | ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: remove the range that is computed in the same transaction, before the insert\n"
        "\n"
        "2 files: 1 finding\n"
        "way out: reslice init daily_orders --source jobs/nightly.sql\n"
        "next: reslice rule RS101\n"
    )
    assert reslice(jobs, "audit", "jobs/whole.sql", "--dialect", "postgres") == (
        0,
        "1 file: no finding\nnext: reslice rule\n",
        "",
    )


BROKEN = "insert into daily_orders selekt order_date from (;\n"


def test_an_audit_that_could_read_nothing_is_no_pass(jobs: Path) -> None:
    for name in ("a.sql", "b.sql"):
        (jobs / "broken" / name).parent.mkdir(exist_ok=True)
        (jobs / "broken" / name).write_text(BROKEN)
    code, out, err = reslice(jobs, "audit", "broken", "--dialect", "postgres")
    assert code == 2
    assert out.endswith(
        "\n2 files: nothing could be read\nnot counted as safe: 2 places that could not be read\nnext: reslice rule\n"
    )
    assert err == (
        "misused[nothing_read]: broken\n"
        "  asked:      files of which something can be read\n"
        "  found:      of 2 files nothing could be read\n"
        "              broken/a.sql:1:1: line 1: Invalid expression / Unexpected token, near selekt\n"
        "              broken/b.sql:1:1: line 1: Invalid expression / Unexpected token, near selekt\n"
        "  unchanged:  nothing was run or written\n"
        "  next:       name the dialect of the files with --dialect, or name other files, then"
        "  reslice audit broken --dialect postgres\n"
    )
    value = answer(jobs, "audit", "broken", "--dialect", "postgres")
    assert value["exit_code"] == 2 and value["error"]["kind"] == "nothing_read"
    assert [each["path"] for each in value["unparsed"]] == ["broken/a.sql", "broken/b.sql"]
    for form in ("sarif", "github"):
        code, out, _ = reslice(jobs, "audit", "broken", "--dialect", "postgres", "--format", form)
        assert code == 2 and out.count("not read") == 2
        if form == "sarif":
            (invocation,) = json.loads(out)["runs"][0]["invocations"]
            assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)


def test_one_file_that_is_read_is_an_answer(jobs: Path) -> None:
    (jobs / "jobs" / "nightly.sql").write_text(BROKEN)
    code, out, err = reslice(jobs, "audit", "jobs", "--dialect", "postgres")
    assert (code, err) == (0, "") and "2 files: no finding\nnot counted as safe: 1 place" in out


def test_paths_are_shown_from_the_folder_that_is_worked_in(jobs: Path) -> None:
    for words in (("-C", str(jobs), "audit", "jobs"), ("-C", str(jobs), "audit", str(jobs / "jobs"))):
        value = answer(jobs / "jobs", *words)
        assert [each["path"] for each in value["findings"]] == ["jobs/nightly.sql"]
    assert answer(jobs, "audit", ".")["findings"][0]["path"] == "jobs/nightly.sql"
    assert answer(jobs / "jobs", "audit", "../jobs")["findings"][0]["path"] == "../jobs/nightly.sql"
    _, out, _ = reslice(jobs / "jobs", "-C", str(jobs), "audit", "jobs")
    assert f"way out: reslice -C {jobs} init daily_orders --source jobs/nightly.sql" in out


@pytest.mark.parametrize("words", [("--json",), ("--format", "json"), ("--json", "--format", "json")])
def test_json_is_one_value(jobs: Path, words: tuple[str, ...]) -> None:
    code, out, _ = reslice(jobs, "audit", "jobs", *words)
    value = json.loads(out)
    assert (code, value["schema"], value["files"], value["error"]) == (1, "reslice/audit/1", 2, None)


def test_sarif_is_one_value_and_ends_alike(jobs: Path) -> None:
    code, out, _ = reslice(jobs, "audit", "jobs", "--format", "sarif")
    jsonschema.validate(json.loads(out), SHAPE)
    assert code == 1


def test_github_has_a_line_for_the_finding(jobs: Path) -> None:
    code, out, _ = reslice(jobs, "audit", "jobs", "--format", "github")
    assert out.startswith("::error file=jobs/nightly.sql,line=1,endLine=1,col=1,endColumn=24,title=RS101 ")
    assert code == 1


@pytest.mark.parametrize(
    ("words", "found", "way_on"),
    [
        (("nothing.sql",), "there is no nothing.sql", "reslice audit --help"),
        (("jobs/*.sqll",), "nothing matches jobs/*.sqll, in ", "reslice audit --help"),
        (("jobs/nightli.sql",), "there is no jobs/nightli.sql", "reslice audit jobs/nightly.sql"),
        (("empty",), "no file to read is there; looked for *.sql, ", "reslice audit --help"),
        (("jobs", "--dialect", "snowflak"), "did you mean snowflake?", "reslice audit jobs --dialect snowflake"),
        (("jobs", "--dialect", "cobol"), "cobol is not one of athena, ", "reslice audit --help"),
        (("jobs", "--json", "--format", "sarif"), "--json is --format json", "reslice audit --help"),
        (("jobs", "--format", "xml"), "'xml' is not one of", "reslice audit --help"),
        ((), "Missing argument 'PATH...'", "reslice audit --help"),
    ],
)
def test_what_is_not_understood_ends_with_two(jobs: Path, words: tuple[str, ...], found: str, way_on: str) -> None:
    (jobs / "empty").mkdir()
    (jobs / "empty" / "readme.md").write_text("nothing")
    code, out, err = reslice(jobs, "audit", *words)
    assert code == 2
    said = out + err
    assert found in said and way_on in said
    if "--json" not in words and words:
        value = answer(jobs, "audit", *words)
        assert value["error"]["kind"] == "usage" and value["next"] in (way_on, f"{way_on} --json")
        assert value["findings"] == [] and value["schema"] == "reslice/audit/1"


def test_what_cannot_be_read_is_told_and_not_counted_as_safe(jobs: Path) -> None:
    (jobs / "jobs" / "nightly.sql").write_text("insert into into a (;")
    code, out, _ = reslice(jobs, "audit", "jobs")
    assert code == 0
    assert "jobs/nightly.sql:1:1: not read: " in out
    assert "2 files: no finding\nnot counted as safe: 1 place that could not be read\n" in out


def test_the_dialect_of_the_folder_is_taken_from_sqlfluff(jobs: Path) -> None:
    assert answer(jobs, "audit", "jobs")["dialects_guessed"] == {"duckdb": 2}
    (jobs / ".sqlfluff").write_text("[sqlfluff]\ndialect = sparksql\n")
    assert answer(jobs, "audit", "jobs")["dialects_guessed"] == {}
    (jobs / "jobs" / ".sqlfluff").write_text("[sqlfluff]\ndialect = ansi\n")
    assert answer(jobs, "audit", "jobs")["dialects_guessed"] == {}
    (jobs / ".sqlfluff").write_text("no file of settings")
    assert answer(jobs, "audit", "jobs")["dialects_guessed"] == {"duckdb": 2}


def test_nothing_that_is_audited_is_imported(jobs: Path) -> None:
    """Files with the names of modules, where the command works and where it has many files and so starts workers."""
    for name in ("sqlglot", "pickle", "json", "multiprocessing", "reslice"):
        (jobs / f"{name}.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    for number in range(60):
        (jobs / "jobs" / f"{number}.sql").write_text(APPEND)
    code, out, err = reslice(jobs, "audit", "jobs")
    assert (code, err) == (1, "") and "62 files: 61 findings" in out
    assert not (jobs / "imported").exists()


# Terminals and signals.


def on_terminal(folder: Path, *words: str, **environment: str) -> str:
    """Return what a command writes to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [RESLICE, *words], cwd=folder, stdout=follower, stderr=subprocess.DEVNULL, env=os.environ | environment
    )
    os.close(follower)
    said = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    os.close(leader)
    process.wait(timeout=60)
    return said.decode()


def test_a_terminal_has_colors_unless_nobody_wants_them(jobs: Path) -> None:
    colored = on_terminal(jobs, "audit", "jobs", TERM="xterm", NO_COLOR="")
    assert "\x1b[1;31mRS101\x1b[0m" in colored
    assert "\x1b" not in on_terminal(jobs, "audit", "jobs", TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in on_terminal(jobs, "audit", "jobs", TERM="dumb", NO_COLOR="")


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Path]:
    for number in range(1000):
        (tmp_path / f"{number}.sql").write_text(APPEND * 8)
    yield tmp_path


def children(process: int) -> list[int]:
    """Return the processes that the threads of a process have started."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(each) for file in found for each in file.read_text().split()]


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or os.cpu_count() == 1, reason="no workers, or no /proc to find them in"
)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_signal_ends_it_and_its_workers(many: Path, number: int, code: int) -> None:
    process = subprocess.Popen(
        [RESLICE, "audit", "."], cwd=many, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    workers: list[int] = []
    until = time.monotonic() + 60
    while len(workers) < 2 and time.monotonic() < until and process.poll() is None:
        workers = children(process.pid)
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code and "Traceback" not in err
    until = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert workers
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


# Rules.


def test_a_rule_has_a_page_and_all_of_them_a_list(tmp_path: Path) -> None:
    code, out, _ = reslice(tmp_path, "rule", "rs101")
    assert code == 0 and out.startswith("RS101: An aggregate is appended\n\n") and "Bad (postgres):" in out
    code, out, _ = reslice(tmp_path, "rule")
    assert code == 0 and "RS101  An aggregate is appended\n" in out and out.endswith("next: reslice rule RS101\n")


def test_rules_as_json(tmp_path: Path) -> None:
    one, every = answer(tmp_path, "rule", "RS101"), answer(tmp_path, "rule")
    assert one["schema"] == "reslice/rule/1" and len(one["rules"]) == 1
    (rule,) = one["rules"]
    assert set(rule) == {"code", "title", "why", "examples", "help"}
    assert [each["bad"] for each in rule["examples"]] == [True, False]
    assert rule in every["rules"] and len(every["rules"]) > 5


def test_a_rule_that_does_not_exist_is_put_right(tmp_path: Path) -> None:
    code, _, err = reslice(tmp_path, "rule", "RS1O1")
    assert code == 2 and "no rule is called RS1O1" in err and "next:       reslice rule RS101\n" in err
    value = answer(tmp_path, "rule", "append")
    assert value["exit_code"] == 2 and value["rules"] == [] and value["next"] == "reslice rule"
