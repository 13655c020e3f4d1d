"""The demo, run for real: its figures against the oracle, its commands when pasted, and whose files it touches."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from reslice.errors import Misused
from reslice.retail import demo, oracle
from reslice.retail.demo_steps import Events, KeyViolation, Story, Table
from reslice.values import Outcome, Run

BIN = Path(sys.executable).parent
RESLICE = BIN / "reslice"
TABLE = "SELECT order_date, channel, order_count, amount_cents FROM daily_orders ORDER BY ALL"

NO_FIGURE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}:\d{2}|r-\d{4}|^== \d+\.", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w$])\d+\b")


@dataclass(frozen=True)
class Told:
    """One telling through the API, with everything it said."""

    story: Story
    text: str
    left_in_temporary_files: list[str]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    place, temporary = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("temporary")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        story = demo.run(place / "shop", said.append)
    yield Told(story, "\n".join(said) + "\n", os.listdir(temporary))


@pytest.fixture
def left(told: Told, tmp_path: Path) -> Path:
    """A directory as a demo has left it."""
    return Path(shutil.copytree(told.story.folder, tmp_path / "shop"))


def call(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RESLICE, *words],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def rows(folder: Path, sql: str = TABLE) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "retail.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def numbers(text: str) -> set[int]:
    return {int(number) for number in NUMBER.findall(NO_FIGURE.sub("", text))}


def ran(story: Story, name: str) -> Run:
    answer = story.step(name).answer
    assert isinstance(answer, Run)
    return answer


# --- the figures ----------------------------------------------------------------------------------------------------


def test_the_table_after_each_step_is_the_one_worked_out_by_hand(told: Told) -> None:
    before, two_days, current = Table(5, 5, 31800), Table(4, 5, 32200), Table(5, 6, 34700)
    assert [(step.name, step.table) for step in told.story.steps] == [
        ("first_load", before),
        ("follow_up", before),
        ("plan", before),
        ("run", two_days),
        ("run_again", two_days),
        ("rewrite", two_days),
        ("third_day", current),
        ("verify", current),
        ("append", current),
        ("unique_key", current),
    ]


def test_each_run_ends_as_its_step_says(told: Told) -> None:
    outcomes = {
        step.name: (step.answer.outcome, step.answer.target_changed)
        for step in told.story.steps
        if isinstance(step.answer, Run)
    }
    assert outcomes["first_load"] == outcomes["run"] == outcomes["third_day"] == (Outcome.PUBLISHED, True)
    assert outcomes["plan"] == (Outcome.PLANNED, False)
    assert outcomes["run_again"] == (Outcome.UNCHANGED, False)
    assert outcomes["rewrite"] == (Outcome.PUBLISHED, False)
    assert ran(told.story, "rewrite").rewritten
    verified = ran(told.story, "verify")
    assert (verified.repeatable, verified.equals_source) == (True, True)


def test_the_plan_is_the_oracles_and_names_the_third_day(told: Told) -> None:
    expected = oracle.plan_figures(oracle.Start.BEFORE_FOLLOW_UP, oracle.RANGES[0])
    plan = ran(told.story, "plan")
    assert plan.diff is not None
    counts = {name: getattr(plan.diff.counts, name) for name in ("added", "changed", "removed", "unchanged")}
    assert counts == {name: expected[name] for name in counts}
    assert (plan.diff.base.rows, plan.diff.staged.rows) == (4, 3)
    assert expected["differing_days_left"] == ["2026-01-03"]
    assert any("also touch 2026-01-03" in warning for warning in plan.warnings)


def test_the_events_are_counted_and_rejected_as_the_oracle_does(told: Told) -> None:
    events, expected = told.story.step("follow_up").answer, oracle.figures()["events"]["all"]
    assert isinstance(events, Events)
    assert (events.arrived, events.repeats, events.accepted) == (15, 3, 9)
    assert (len(events.rejected), events.superseded, events.current) == (3, 3, 6)
    assert {each.event_id: each.reasons for each in events.rejected} == {
        event_id: "; ".join(reasons) for event_id, reasons in expected["reasons"].items()
    }


def test_the_append_doubles_and_triples_without_an_error(told: Told) -> None:
    states = told.story.step("append").answer
    assert isinstance(states, tuple)
    assert [(state.times, state.orders, state.cents) for state in states] == [
        (0, 2, 19000),
        (1, 4, 38000),
        (2, 6, 57000),
    ]
    assert [state.table for state in states] == [Table(5, 6, 34700), Table(8, 10, 63800), Table(11, 14, 92900)]


def test_a_unique_key_makes_the_append_fail_with_the_databases_own_words(told: Told) -> None:
    answer = told.story.step("unique_key").answer
    assert isinstance(answer, KeyViolation)
    assert answer.message.startswith("Constraint Error: Duplicate key")
    assert answer.message in told.text


def test_every_figure_that_is_printed_is_the_oracles(told: Told) -> None:
    figures = oracle.figures()
    known = numbers(json.dumps(figures))
    known |= {abs(plan["range_after"]["cents"] - plan["range_before"]["cents"]) for plan in figures["plans"]}
    printed = numbers(told.text.replace(str(told.story.folder), "DIR"))
    assert {31800, 34700, 19000, 38000, 57000} <= printed
    assert printed <= known


def test_the_data_are_called_synthetic(told: Told) -> None:
    assert "Synthetic orders" in told.text
    assert "accounting revenue" in told.text


# --- what is printed, and what is left ------------------------------------------------------------------------------


def test_the_project_is_left_with_the_current_table_and_no_copy_stays(told: Told) -> None:
    assert rows(told.story.folder) == [tuple(row) for row in oracle.target_at(oracle.Start.CURRENT)]
    assert told.left_in_temporary_files == []


def test_the_command_line_tells_the_same_story_in_plain_text(told: Told, tmp_path: Path) -> None:
    done = call("demo", "--into", "told-here", cwd=tmp_path, PATH=f"{BIN}:/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout

    def settled(text: str, folder: object) -> list[str]:
        text = re.sub(r"since [-\d]+ [:\d]+ UTC", "since then", text.replace(str(folder), "DIR"))
        text = re.sub(r"(?m)^Constraint Error: .*$", "Constraint Error", text)
        return [line for line in text.splitlines() if not line.startswith("  export PATH=")]

    assert settled(done.stdout, "told-here") == settled(told.text, told.story.folder)


def test_answers_are_what_the_command_line_prints(told: Told, left: Path) -> None:
    said = re.sub(r"r-\d+", "r-N", re.sub(r"(?m)^warning: .*\n\n", "", told.text))  # the third day is published since
    for words in (
        "run daily_orders 2026-01-01..2026-01-02",
        "run daily_orders 2026-01-01..2026-01-02 --rewrite",
        "verify daily_orders 2026-01-01..2026-01-03",
    ):
        done = call(*words.split(), cwd=left)
        assert (done.returncode, done.stderr) == (0, "")
        answer = re.sub(r"r-\d+", "r-N", done.stdout)
        assert f"$ reslice {words}\n{answer}" in said


def pasted(text: str) -> list[str]:
    """The commands at the end of the story, as a person would copy them; `make` needs a checkout."""
    _, end = text.split("To go on from here:")
    return [line.strip() for line in end.splitlines() if line.startswith("  ") and not line.startswith("  make ")]


def test_every_command_at_the_end_works_when_it_is_pasted(tmp_path: Path) -> None:
    without = f"{tmp_path}:/usr/bin:/bin"
    text = call("demo", "--into", "my shop", cwd=tmp_path, PATH=without).stdout
    commands = pasted(text)
    assert commands[:2] == [f"export PATH={BIN}:$PATH", "cd 'my shop'"]
    assert len(commands) == 9
    for command in commands[2:]:
        if command.startswith("reslice restore "):
            assert rows(tmp_path / "my shop") == [tuple(row) for row in oracle.target_at(oracle.Start.CURRENT)]
        script = "\n".join(["set -e", *commands[:2], command])
        done = subprocess.run(
            ["/bin/sh", "-c", script], cwd=tmp_path, env={"PATH": without}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.strip(), command
    assert rows(tmp_path / "my shop") == undone()
    assert text.endswith("  make grocery\n")


def undone() -> list[tuple[Any, ...]]:
    """The table when the correction of the two days is undone, and the third day stays as it was published."""
    before, now = (oracle.target_at(start) for start in (oracle.Start.BEFORE_FOLLOW_UP, oracle.Start.CURRENT))
    first_days = [tuple(row) for row in before if str(row[0]) < "2026-01-03"]
    return sorted(first_days + [tuple(row) for row in now if str(row[0]) == "2026-01-03"])


def test_the_run_to_show_is_the_one_that_published_the_correction(told: Told, left: Path) -> None:
    show = next(command for command in pasted(told.text) if command.startswith("reslice show"))
    shown = call(*show.split()[1:], cwd=left).stdout
    assert "7000 → 19000" in shown


def test_the_directory_is_named_from_where_the_command_was_given(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    text = call("-C", "below", "demo", "--into", "shop", cwd=tmp_path).stdout
    assert f"\n  cd {tmp_path / 'below' / 'shop'}\n" in text
    assert (tmp_path / "below" / "shop" / "retail.duckdb").is_file()


def test_json_holds_the_figures_of_each_step(tmp_path: Path) -> None:
    done = call("demo", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["error"], answer["exit_code"]) == ("reslice/demo/1", None, 0)
    assert answer["directory"] == "reslice-demo"
    steps = {step["step"]: step for step in answer["steps"]}
    assert steps["first_load"]["table"] == {"rows": 5, "orders": 5, "cents": 31800}
    assert steps["plan"]["answer"]["diff"] == {"added": 0, "changed": 2, "removed": 1, "unchanged": 1}
    run_it = "reslice -C reslice-demo run daily_orders 2026-01-01..2026-01-02"
    assert steps["plan"]["answer"]["next"] == run_it
    assert steps["run_again"]["answer"]["outcome"] == "unchanged"
    assert [state["group"]["cents"] for state in steps["append"]["appends"]] == [19000, 38000, 57000]
    assert steps["unique_key"]["database_error"].startswith("Constraint Error")
    assert call(*answer["next"].split()[1:], cwd=tmp_path).returncode == 0


# --- whose files they are -------------------------------------------------------------------------------------------


def test_a_directory_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "reslice.yml").write_text("mine\n")
    done = call("demo", "--into", "shop", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    parts = [line.split()[0] for line in done.stderr.splitlines()]
    assert parts == ["misused[usage]:", "asked:", "found:", "unchanged:", "next:"]
    assert contents(shop) == {"reslice.yml": b"mine\n"}
    after = done.stderr.splitlines()[-1].split("next:")[1].split()
    assert call(*after[1:], cwd=tmp_path).returncode == 0
    assert contents(shop) == {"reslice.yml": b"mine\n"}


def test_a_note_that_the_demo_did_not_write_opens_no_door(tmp_path: Path) -> None:
    for note in ("[]", '{"files": 1}', "not json"):
        (tmp_path / ".reslice-demo.json").write_text(note)
        with pytest.raises(Misused):
            demo.run(tmp_path)
    assert list(contents(tmp_path)) == [".reslice-demo.json"]


def test_an_empty_directory_is_used_and_a_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert demo.run(tmp_path / "empty").is_again is False
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Misused, match="is a file"):
        demo.run(tmp_path / "file")


def test_told_again_it_replaces_its_own_files_and_no_other(left: Path) -> None:
    (left / "sql" / "mine.sql").write_text("SELECT 1")
    (left / "plan.json").write_text("{}")
    with duckdb.connect(str(left / "retail.duckdb")) as connection:
        connection.execute("DELETE FROM daily_orders")
    said: list[str] = []
    assert demo.run(left, said.append).is_again is True
    assert "made anew" in said[0]
    assert rows(left) == [tuple(row) for row in oracle.target_at(oracle.Start.CURRENT)]
    assert rows(left, "SELECT max(number) FROM reslice.runs") == [(5,)]
    assert (left / "sql" / "mine.sql").read_text() == "SELECT 1"
    assert (left / "plan.json").read_text() == "{}"


def test_a_file_that_was_edited_is_not_overwritten(left: Path) -> None:
    (left / "sql" / "daily_orders.sql").write_text("SELECT 42")
    before = contents(left)
    with pytest.raises(Misused, match=r"edited since, and yours now: sql/daily_orders\.sql"):
        demo.run(left)
    assert contents(left) == before


def test_a_link_out_of_the_directory_is_not_followed(left: Path, tmp_path: Path) -> None:
    (left / "sql").rename(tmp_path / "elsewhere")
    (left / "sql").symlink_to(tmp_path / "elsewhere")
    (left / "retail.duckdb").rename(tmp_path / "other.duckdb")
    (left / "retail.duckdb").symlink_to(tmp_path / "other.duckdb")
    before = contents(tmp_path)
    with pytest.raises(Misused, match=r"retail\.duckdb"):
        demo.run(left)
    assert contents(tmp_path) == before


def test_a_demo_that_was_cut_short_can_be_told_again(tmp_path: Path) -> None:
    def cut_short(text: str) -> None:
        if "== 3." in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo.run(tmp_path / "shop", cut_short)
    assert demo.run(tmp_path / "shop").step("verify").table == Table(5, 6, 34700)


def test_a_database_in_use_is_not_replaced(left: Path) -> None:
    before = contents(left)
    with duckdb.connect(str(left / "retail.duckdb")):
        done = call("demo", "--into", "shop", cwd=left.parent)
    assert done.returncode == 4
    assert done.stderr.startswith("failed[database_busy]: demo --into shop\n")
    assert "has the file open" in done.stderr
    assert contents(left) == before


def test_a_directory_that_cannot_be_made_is_said_in_four_parts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = call("demo", "--into", "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert 'next:       reslice demo --into "$(mktemp -d)"' in done.stderr
