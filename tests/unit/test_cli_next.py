"""The last line of a refusal leads on: what was typed, with the word that was meant, or without what does not fit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tests.unit.shop import BEFORE, CONTRACT, DAYS, make_shop, rows

from reslice.cli import main

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shop with a second target, as the folder that commands are given in."""
    folder = make_shop(tmp_path / "shop")
    second = CONTRACT.split("targets:\n")[1].replace("daily_orders", "weekly_temp", 1)
    (folder / "reslice.yml").write_text(CONTRACT + second)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def said(shop: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def next_of(text: str) -> str:
    return text.rstrip("\n").split("\n")[-1].split("next:", 1)[1].strip()


NEAR = [
    (["plan", "daily_order", DAYS, "--exit-code"], f"reslice plan daily_orders {DAYS} --exit-code"),
    (["run", "daily_order", DAYS, "--per-slice"], f"reslice run daily_orders {DAYS} --per-slice"),
    (["verify", "daily_order", DAYS], f"reslice verify daily_orders {DAYS}"),
    (["status", "daily_order"], "reslice status daily_orders"),
    (["doctor", "daily_order"], "reslice doctor daily_orders"),
    (["versions", "daily_order"], "reslice versions daily_orders"),
    (["history", "daily_order", "--limit", "5"], "reslice history daily_orders --limit 5"),
    (["-C", "daily_order", "plan", "daily_order", DAYS], f"reslice -C daily_order plan daily_orders {DAYS}"),
    (["plan", "weekly_tmp", "2026-01-01"], "reslice plan weekly_temp 2026-01-01"),
]


@pytest.mark.parametrize(("arguments", "expected"), NEAR)
def test_a_name_that_is_nearly_right_is_put_right_in_what_was_typed(
    said: Said, shop: Path, arguments: list[str], expected: str
) -> None:
    make_shop(shop / "daily_order") if "-C" in arguments else None
    code, _, err = said(*arguments)
    assert (code, next_of(err)) == (2, expected)
    code, out, _ = said(*arguments, "--json")
    answer = json.loads(out)
    assert (code, answer["next"], answer["error"]["next"]) == (2, f"{expected} --json", f"{expected} --json")


def test_the_names_there_are_stand_before_the_question(said: Said) -> None:
    found = "reslice.yml has no target weekly_tmp; it has daily_orders, weekly_temp; did you mean weekly_temp?\n"
    assert found in said("plan", "weekly_tmp", DAYS)[2]


def test_a_name_that_is_like_no_other_leads_to_a_command_that_works(said: Said) -> None:
    code, _, err = said("plan", "sales", DAYS)
    assert (code, next_of(err)) == (2, "reslice doctor")
    assert said("doctor")[0] == 0


@pytest.mark.parametrize(
    ("option", "right"),
    [
        (["--allow", "total_chang"], "--allow total_change"),
        (["--allow=total_chang"], "--allow=total_change"),
        (["--allow", "empty_slic=2026-01-03"], "--allow empty_slice=2026-01-03"),
    ],
)
def test_a_guard_that_is_nearly_right_is_put_right_and_the_rest_is_kept(
    said: Said, shop: Path, option: list[str], right: str
) -> None:
    code, _, err = said("run", "daily_orders", DAYS, *option, "--reason", "the rates were wrong", "--per-slice")
    expected = f"reslice run daily_orders {DAYS} {right} --reason 'the rates were wrong' --per-slice"
    assert (code, next_of(err)) == (2, expected)
    assert "did you mean" in err
    assert rows(shop) == BEFORE


def test_a_guard_like_no_other_keeps_the_rest_as_well(said: Said) -> None:
    code, _, err = said("run", "daily_orders", DAYS, "--allow", "everything", "--reason", "late")
    typed = f"reslice run daily_orders {DAYS} --allow everything --reason late"
    assert (code, next_of(err)) == (2, f"name a guard instead of everything, then  {typed}")


@pytest.mark.parametrize("scope", [["2026-01-01"], ["--interval", "2026-01-01", "2026-01-02"], ["--again", "last"]])
def test_a_plan_file_takes_no_other_word_on_which_slices(said: Said, shop: Path, scope: list[str]) -> None:
    assert said("plan", "daily_orders", DAYS, "--out", "plan.json")[0] == 0
    code, _, err = said("run", "plan.json", *scope)
    assert (code, next_of(err)) == (2, "reslice run plan.json")
    assert "plan.json is a plan file" in err
    assert rows(shop) == BEFORE
    assert said("run", "plan.json")[0] == 0


def test_a_table_that_is_gone_is_told_with_the_one_that_is_like_it(said: Said, shop: Path) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute("ALTER TABLE daily_orders RENAME TO daily_orders_2026")
        connection.execute("CREATE SCHEMA archive")
        connection.execute("CREATE TABLE archive.daily_order_lines (line INTEGER)")
    _, _, err = said("plan", "daily_orders", DAYS)
    assert "the database has no table daily_orders; did you mean daily_orders_2026?" in err


def test_a_table_that_moved_to_another_schema_is_found_there(said: Said, shop: Path) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute("CREATE SCHEMA warehouse_of_finance")
        connection.execute("CREATE TABLE warehouse_of_finance.daily_orders AS FROM daily_orders")
        connection.execute("DROP TABLE daily_orders")
    _, _, err = said("plan", "daily_orders", DAYS)
    assert "the database has no table daily_orders; did you mean warehouse_of_finance.daily_orders?" in err


# The contract file


def test_a_contract_file_that_is_not_there_is_told_with_the_one_that_is(said: Said) -> None:
    code, _, err = said("--config", "reslic.yml", "plan", "daily_orders", DAYS)
    assert (code, next_of(err)) == (2, f"reslice --config reslice.yml plan daily_orders {DAYS}")
    code, _, err = said("--config=x.yml", "plan", "daily_orders", DAYS)
    assert (code, next_of(err)) == (2, f"reslice --config=reslice.yml plan daily_orders {DAYS}")
    assert "x.yml: no such file; did you mean reslice.yml?" in err


def test_a_contract_file_that_is_nowhere_is_not_asked_for_again(said: Said, shop: Path) -> None:
    (shop / "reslice.yml").unlink()
    code, _, err = said("--config", "x.yml", "plan", "daily_orders", DAYS)
    assert (code, next_of(err)) == (2, f"reslice --config FILE plan daily_orders {DAYS}")
    code, _, err = said("plan", "daily_orders", DAYS)
    typed = f"reslice plan daily_orders {DAYS}"
    assert (code, next_of(err)) == (
        2,
        f"go to the folder that holds reslice.yml, or name it with --config, then  {typed}",
    )


def test_a_contract_file_in_another_encoding_is_to_be_saved_in_ours(said: Said, shop: Path) -> None:
    (shop / "reslice.yml").write_bytes(CONTRACT.replace("version: 1", "version: 1 # caf\u00e9").encode("latin-1"))
    code, _, err = said("plan", "daily_orders", DAYS)
    assert (code, next_of(err)) == (2, f"save reslice.yml as UTF-8, then  reslice plan daily_orders {DAYS}")
    assert "reslice.yml: not UTF-8 text, at line 1" in err


def test_a_contract_that_is_a_folder_or_too_large_has_a_way_on_of_its_own(said: Said, shop: Path) -> None:
    (shop / "reslice.yml").write_text("#" * (1024 * 1024 + 1))
    assert next_of(said("plan", "daily_orders", DAYS)[2]).startswith("name the contract file with --config, then  ")
    (shop / "reslice.yml").unlink()
    (shop / "reslice.yml").mkdir()
    assert next_of(said("plan", "daily_orders", DAYS)[2]).startswith("name the contract file with --config, then  ")


# What is unchanged


@pytest.mark.parametrize(
    "arguments",
    [
        ["restore", "r-0001"],
        ["run", "weekly_temp", "2026-01-03"],
        ["run", "--approve", "r-0001"],
        ["status", "weekly_temp", "--since", "last"],
    ],
)
def test_what_is_unchanged_is_told_by_the_table_of_the_contract(said: Said, arguments: list[str]) -> None:
    """The target weekly_temp has the table daily_orders."""
    assert said("run", "weekly_temp", DAYS)[0] == 0
    assert "  unchanged:  daily_orders is as it was" in said(*arguments)[2]


# --- a run of many commits that ended part-way ----------------------------------------------------------------------

OPTIONS = ["--per-slice", "--wait", "5s", "--allow", "total_change", "--reason", "late orders"]
KEPT = "--per-slice --wait 5s --allow total_change --reason 'late orders'"
LEFT = [
    (["run", "daily_orders", DAYS, *OPTIONS], f"reslice run daily_orders 2026-01-02 {KEPT}"),
    (["run", "daily_orders", "2026-01", *OPTIONS], f"reslice run daily_orders 2026-01-02..2026-01-31 {KEPT}"),
    (["run", *OPTIONS, "daily_orders", DAYS, "--rewrite"], f"reslice run {KEPT} daily_orders 2026-01-02 --rewrite"),
    (
        ["run", "daily_orders", "--interval", "2026-01-01", "2026-01-03", *OPTIONS],
        f"reslice run daily_orders --interval 2026-01-01 2026-01-03 {KEPT}",
    ),
    (["run", "--again", "r-0001", *OPTIONS], f"reslice run --again r-0001 {KEPT}"),
    (["run", "--again=r-0001", *OPTIONS], f"reslice run --again=r-0001 {KEPT}"),
    (["run", "plan.json", "--per-slice"], "reslice run daily_orders 2026-01-02 --per-slice"),
]


@pytest.mark.parametrize(("arguments", "expected"), LEFT)
@pytest.mark.parametrize("place", [[], ["-C", ".", "--config", "reslice.yml"]], ids=["here", "there"])
def test_what_is_left_of_a_run_is_a_command_with_what_was_typed(
    said: Said, shop: Path, arguments: list[str], expected: str, place: list[str]
) -> None:
    contract = (shop / "reslice.yml").read_text()
    (shop / "reslice.yml").write_text(
        contract.replace("    measures:", "    guards: {total_change: allow}\n    measures:")
    )
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute("INSERT INTO orders VALUES (104, DATE '2026-01-03', 'app', 3100)")
        connection.execute(
            "CREATE OR REPLACE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT,"
            " amount_cents BIGINT, CHECK (order_date <> DATE '2026-01-02' OR amount_cents <> 5600))"
        )
        connection.executemany("INSERT INTO daily_orders VALUES (?, ?, ?, ?)", BEFORE)
    if "r-0001" in "".join(arguments):
        assert said("run", "daily_orders", DAYS)[0] == 4
    assert said("plan", "daily_orders", DAYS, "--out", "plan.json")[0] == 0
    code, _, err = said(*place, *arguments)
    assert (code, err.partition(":")[0]) == (6, "partly published[partly_published]")
    command = expected.replace("reslice ", f"reslice {' '.join(place)} ", 1) if place else expected
    assert next_of(err) == command
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute("UPDATE orders SET amount_cents = 5700 WHERE order_id = 103")
    assert said(*shlex.split(command)[1:])[0] == 0
    assert [row for row in rows(shop) if row[0] < "2026-01-03"] == [
        ("2026-01-01", "store", 1, 4500),
        ("2026-01-02", "store", 1, 5700),
        ("2026-01-02", "web", 2, 19000),
    ]
