"""The command line of prove: what it refuses to understand, its text, its JSON, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reslice
from reslice.cli import main
from reslice.report_prove_json import FIELDS
from tests.golden.test_golden import agree
from tests.prove.shops import APPEND, DATES, REPLACE, Shop, execute

RANGE = ("--range", "2026-01-01..2026-01-02")
PARAMS = ("--param", "start=2026-01-01", "--param", "end=2026-01-02")


@pytest.fixture
def here(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(shop.folder)
    return shop


def prove(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["prove", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--", "true"], "TARGET of the contract file, or --table with --grain"),
        (["daily_orders"], "COMMAND behind --, or --sql FILE"),
        (["daily_orders", "--sql", "job.sql", "--", "true"], "COMMAND behind --, or --sql FILE"),
        (["daily_orders", "--table", "t", "--", "true"], "TARGET of the contract file, or --table"),
        (["--table", "t", "--", "true"], "--table needs --grain"),
        (["--table", "t", "--grain", " , ", "--", "true"], "--table needs --grain"),
        (["daily_orders", "--grain", "a", "--", "true"], "--grain and --slice-column are for --table"),
        (
            ["--table", "t", "--grain", "a", "--range", "2026-01-01", "--", "true"],
            "--range and --slice-column go together",
        ),
        (["daily_orders", "--param", "a=1", "--", "true"], "--param is for --sql"),
        (["daily_orders", "--sql", "job.sql", "--param", "a"], "--param is NAME=VALUE"),
        (["daily_orders", "--sql", "job.sql", "--param", "a=1", "--param", "a=2"], "--param a is given twice"),
        (["daily_orders", "--sql", "job.sql", "--param", "a=1"], "job.sql has no :a; it names no value"),
        (["daily_orders", "--seed", "7", "--", "true"], "--seed is for --crash"),
        (["daily_orders", "--at-once", "--seed", "7", "--", "true"], "--seed is for --crash"),
        (["daily_orders", "--tries", "5", "--", "true"], "--tries is for --crash and --at-once"),
        (["daily_orders", "--yes", "--", "true"], "--yes is for --in-place"),
        (["daily_orders", "--in-place", "--crash", "--", "true"], "need a sandbox"),
        (["daily_orders", "--times", "1", "--", "true"], "--times"),
        (["daily_orders", "--timeout", "soon", "--", "true"], "--timeout"),
        (["daily_order", "--", "true"], "did you mean daily_orders?"),
        (["daily_orders", "--range", "2026-13", "--", "true"], "2026-13"),
        (["daily_orders", "--", "no-such-program"], "there is no program no-such-program"),
        (["--table", "daily_orders", "--grain", "order_date,chanel", "--", "true"], "did you mean channel?"),
        (["--table", "daily_order", "--grain", "order_date", "--", "true"], "did you mean daily_orders?"),
        (["--connection", "mysql://x/y", "--table", "t", "--grain", "a", "--", "true"], "this reslice knows"),
    ],
)
def test_what_cannot_be_understood_exits_2(
    here: Shop, capsys: pytest.CaptureFixture[str], words: list[str], found: str
) -> None:
    here.script("SELECT 1;")
    code, out, err = prove(capsys, *words)
    assert (code, out) == (2, "")
    assert found in err
    assert [line.split(":")[0].strip() for line in err.splitlines() if line.startswith("  ") and line[2] != " "] == [
        "asked", "found", "unchanged", "next",
    ]  # fmt: skip


def test_a_misspelt_name_of_a_value_leads_to_the_command_that_is_right(
    here: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    here.script(REPLACE)
    words = ["daily_orders", "--sql", "job.sql", "--param", "strat=2026-01-01", "--param", "end=2026-01-02"]
    code, out, err = prove(capsys, *words)
    assert (code, out) == (2, "")
    assert "job.sql names :start, of which no value is given" in err
    assert "job.sql has no :strat; did you mean :start?" in err
    right = "reslice prove daily_orders --sql job.sql --param start=2026-01-01 --param end=2026-01-02"
    assert err.rstrip("\n").endswith(f"next:       {right}")
    assert prove(capsys, *right.split()[2:])[0] in (0, 1)


def test_options_of_the_command_are_not_ours(here: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = prove(capsys, "daily_orders", "--", "true", "--json", "--", "--times", "9")
    assert code == 1
    assert out.startswith("not proven: daily_orders\n")


def test_a_password_on_the_command_line_is_shown_nowhere(here: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://me:hush@127.0.0.1:1/x"
    code, out, err = prove(capsys, "--connection", url, "--table", "t", "--grain", "a", "--", "true")
    assert code == 4
    assert "hush" not in out + err
    assert "postgresql://me:***@127.0.0.1:1/x" in err


def test_a_failing_command_exits_4(here: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = prove(capsys, "daily_orders", "--", "sh", "-c", "echo broken; exit 9")
    assert code == 4
    agree("prove_failed.txt", err.rstrip("\n"))


def test_what_a_command_says_is_shown_when_asked_for(here: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("daily_orders", "--", "sh", "-c", "echo hello")
    assert "hello" not in "".join(prove(capsys, *words)[1:])
    assert prove(capsys, "-v", *words)[2].count("hello\n") == 2


ANSWERS = {
    "append": (APPEND, ("daily_orders", *RANGE), "DELETE FROM daily_orders", 1),
    "proven": (REPLACE, ("daily_orders", *RANGE), "SELECT 1", 0),
    "upsert": (
        APPEND.replace(";", " ON CONFLICT (order_date, channel) DO UPDATE SET order_count = excluded.order_count,"
                       " amount_cents = excluded.amount_cents; UPDATE daily_orders SET order_count = 2"
                       " WHERE channel = 'app';"),
        ("daily_orders", *RANGE),
        "CREATE UNIQUE INDEX grain ON daily_orders (order_date, channel)",
        1,
    ),
    "nothing": ("SELECT 1;", ("--table", "daily_orders", "--grain", "order_date,channel"), "SELECT 1", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_the_text_and_the_json_of_the_main_answers(here: Shop, capsys: pytest.CaptureFixture[str], name: str) -> None:
    job, words, before, code = ANSWERS[name]
    execute(here, before)
    here.script(job)
    given = PARAMS if ":start" in job else ()
    found, out, err = prove(capsys, *words, "--sql", "job.sql", *given)
    assert (found, err) == (code, "")
    agree(f"prove_{name}.txt", out.rstrip("\n"))
    if name == "upsert":
        found, out, _ = prove(capsys, *words, "--sql", "job.sql", *given, "--json")
        agree("prove_upsert.json", without_times(out))


def without_times(text: str) -> str:
    answer = json.loads(text)
    answer["seconds"] = 0.5
    for each in answer["runs"]:
        each["seconds"] = 0.2
    return json.dumps(answer, indent=2, ensure_ascii=False)


def test_json_has_one_set_of_fields_whatever_happens(here: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(*words: str) -> dict[str, Any]:
        code, out, _ = prove(capsys, *words)
        found: dict[str, Any] = json.loads(out)
        assert (found["schema"], found["exit_code"]) == ("reslice/prove/1", code)
        return found

    fine = answer("daily_orders", "--json", "--crash", "--at-once", "--tries", "1", "--seed", "5", "--", "true")
    failed = answer("daily_orders", "--json", "--", "false")
    wrong = answer("daily_orders", "--json")
    assert set(fine) == set(failed) == set(wrong) == {*FIELDS, "error", "next", "exit_code"}
    assert fine["crash"] == {"ok": True, "seed": 5, "tries": fine["crash"]["tries"]}
    assert [each["exit_codes"] for each in fine["at_once"]["pairs"]] == [[0, 0]]
    assert failed["error"]["kind"] == "command_failed"
    assert wrong["error"]["kind"] == "usage"


def test_a_target_of_a_project_elsewhere(shop: Shop, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["-C", str(shop.folder), "prove", "daily_orders", "--", "true"])
    out = capsys.readouterr().out
    assert code == 1
    assert "next: let the command write to the sandbox" in out


def test_the_same_as_an_api(shop: Shop) -> None:
    orders = reslice.open(shop.folder / "reslice.yml").target("daily_orders")
    options: dict[str, Any] = {"sql": shop.script(REPLACE), "parameters": DATES}
    proof = orders.prove(range="2026-01-01..2026-01-02", timeout="1m", **options)
    assert (proof.ok, proof.equals_source) == (True, True)
    with pytest.raises(reslice.Misused, match="python job"):
        orders.prove("python job.py")

    url = f"duckdb:///{shop.connection.path}"
    grain = ("order_date", "channel")
    bare = reslice.prove_table(url, "daily_orders", grain, slice_column="order_date", range="2026-01", **options)
    assert (bare.verdict, bare.equals_source, bare.runs[0].state.inside) == ("proven", None, 4)
    with pytest.raises(reslice.Misused):
        reslice.prove_table(url, "daily_orders", (), ["true"])
