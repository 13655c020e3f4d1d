"""What history and show say of runs: which of them is meant, how they ended, and no more lines than there is news."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tests.unit.shop import AFTER, BEFORE, CONTRACT, DAYS, make_shop, rows

import reslice
from reslice.cli import main

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shop of two targets with tables of their own, as the folder that commands are given in."""
    folder = make_shop(tmp_path / "shop")
    second = CONTRACT.split("targets:\n")[1].replace("daily_orders", "other_orders")
    affected = "    affected: affected.sql\n"
    (folder / "reslice.yml").write_text(CONTRACT + affected + second + affected)
    (folder / "affected.sql").write_text("SELECT order_date FROM corrections WHERE corrected_at >= :since")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE other_orders AS FROM daily_orders")
        connection.execute("CREATE TABLE corrections (order_date DATE, corrected_at TIMESTAMPTZ)")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def said(shop: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def change(shop: Path, statement: str) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute(statement)


# Which run is meant


def test_every_run_that_a_beginning_matches_is_counted_and_a_few_are_named(said: Said, shop: Path) -> None:
    said("run", "daily_orders", DAYS)
    change(
        shop,
        "INSERT INTO reslice.runs SELECT runs.* REPLACE (printf('r-%04d', n) AS id, n AS number)"
        " FROM reslice.runs, range(2, 27) AS more (n)",
    )
    _, _, err = said("show", "r-00")
    named = ", ".join(f"r-000{number} of daily_orders" for number in range(1, 6))
    assert f"'r-00' matches 26 runs: {named} and 21 more\n" in err
    assert "'r-002' matches 7 runs: r-0020 of daily_orders, " in said("show", "r-002")[2]
    assert said("show", "r-0007")[1].startswith("published r-0007")


def test_the_only_run_that_a_beginning_matches_is_shown_whole(said: Said) -> None:
    said("run", "daily_orders", DAYS)
    found = reslice.open("reslice.yml").show("r-")
    assert (found.id, len(found.slice_rows), len(found.groups), bool(found.sql)) == ("r-0001", 2, 3, True)


def test_last_is_the_last_run_of_the_target_that_is_named(said: Said, shop: Path) -> None:
    said("run", "daily_orders", DAYS)
    said("run", "other_orders", "2026-01-02")
    assert json.loads(said("show", "last", "--json")[1])["run"]["id"] == "r-0002"
    assert said("plan", "daily_orders", "--again", "last")[1].startswith(f"planned: daily_orders for {DAYS}")
    assert said("run", "daily_orders", "--again", "last")[1].startswith("unchanged r-0003: daily_orders")
    assert said("plan", "other_orders", "--again", "last")[1].startswith("planned: other_orders for 2026-01-02")
    assert said("plan", "daily_orders", "--again", "last~1")[1].startswith(f"planned: daily_orders for {DAYS}")
    assert said("plan", "--again", "last")[1].startswith("planned: daily_orders")
    code, _, err = said("plan", "other_orders", "--again", "last~1")
    assert (code, "no run matches 'last~1'" in err) == (2, True)


def test_since_last_is_since_the_last_run_of_that_target(said: Said, shop: Path) -> None:
    said("run", "daily_orders", DAYS)
    change(shop, "INSERT INTO corrections VALUES (DATE '2026-01-01', now())")
    said("run", "other_orders", DAYS)
    code, out, _ = said("status", "daily_orders", "--since", "last")
    assert (code, out.splitlines()[0]) == (0, "status: daily_orders for 2026-01-01, 1 slice")
    code, out, _ = said("status", "other_orders", "--since", "last")
    assert "no correction since" in out


def test_approve_last_is_the_last_run_of_that_target(said: Said, shop: Path) -> None:
    assert said("run", "daily_orders", "2026-01-03")[0] == 3
    assert said("run", "other_orders", DAYS)[0] == 0
    assert said("run", "daily_orders", "--approve", "last")[0] == 0
    assert rows(shop) == BEFORE[:-1]


def test_a_restore_of_last_through_the_api_is_of_that_target(said: Said, shop: Path) -> None:
    said("run", "daily_orders", DAYS)
    said("run", "other_orders", DAYS)
    assert rows(shop) == AFTER
    assert reslice.open("reslice.yml").target("daily_orders").restore("last").restores == "r-0001"
    assert rows(shop) == BEFORE


# How it ended


@pytest.mark.parametrize(
    ("kind", "word"),
    [("interrupted", "interrupted"), ("partly_published", "partly published"), ("abandoned", "failed")],
)
def test_a_run_that_was_stopped_half_way_says_so(said: Said, shop: Path, kind: str, word: str) -> None:
    said("run", "daily_orders", DAYS)
    error = json.dumps({"kind": kind, "asked": "a", "found": ["b"], "unchanged": "c", "next": ""})
    change(shop, f"UPDATE reslice.runs SET state = 'failed', error = '{error}'")
    assert said("history")[1].splitlines()[1].split("  ")[3].strip() == word
    shown = said("show", "last")[1].splitlines()
    assert shown[0].startswith(f"{word} r-0001: daily_orders")
    assert shown[3] == f"{word}[{kind}]"
    assert json.loads(said("history", "--json")[1])["runs"][0]["state"] == "failed"
    change(shop, "UPDATE reslice.runs SET kind = 'restore'")
    assert said("show", "last")[1].startswith(f"restore {word} r-0001")


# No more lines than there is news


def test_slices_that_are_empty_are_counted(said: Said) -> None:
    assert said("run", "daily_orders", "2026-01", "--allow", "empty_slice=2026-01-03", "--reason", "late")[0] == 0
    _, out, _ = said("show", "last")
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("  2026-01-")] == [
        ["2026-01-01", "published"],
        ["2026-01-02", "published"],
        ["2026-01-03", "published"],
    ]
    assert "\n  28 slices are empty on both sides\n" in out
    assert "\n  28 slices are empty on both sides\n" in said("show", "last", "--diff")[1]


def test_each_check_that_did_not_hold_has_a_line(said: Said, shop: Path) -> None:
    (shop / "daily.sql").write_text(
        "SELECT order_date, channel, 1 AS order_count, -1 AS amount_cents FROM orders"
        " WHERE order_date BETWEEN :start AND :end"
    )
    assert said("run", "daily_orders", DAYS)[0] == 3
    lines = said("show", "last")[1].splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  checks "))
    assert lines[place].split()[1] == "measure_minimum:"
    assert lines[place + 1].split()[0] == "key_repeated:"
    assert lines[place + 1].index("key_repeated") == lines[place].index("measure_minimum")


def test_a_pruning_says_what_is_gone(said: Said, shop: Path) -> None:
    text = (shop / "reslice.yml").read_text().replace("affected: affected.sql", "stamps: {batch_id: run_id}")
    (shop / "reslice.yml").write_text(text.replace("    stamps", "    method: append_version\n    stamps"))
    change(shop, "ALTER TABLE daily_orders ADD COLUMN batch_id VARCHAR")
    said("run", "daily_orders", DAYS)  # 3 rows beside the 4 that were there, which are of no version and stay
    said("run", "daily_orders", DAYS, "--rewrite")  # and the same 3 once more
    assert said("versions", "daily_orders", "--prune", "--older-than", "0", "--yes")[0] == 0
    shown = said("show", "last")[1]
    assert "\n  rows       10 → 7\n" in shown
    assert "\nwarning: 2 versions with 3 rows were deleted, from 2026-01-01 to 2026-01-02\n" in shown
    assert "10 → 7" in said("history")[1].splitlines()[1]
    answer = json.loads(said("show", "last", "--json")[1])["run"]
    assert answer["rows"] == {"before": 10, "staged": None, "after": 7}
