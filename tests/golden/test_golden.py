"""What is printed and what JSON is written, compared with files that are read in review like code.

`RESLICE_GOLDEN=write pytest tests/golden` writes the files anew; the difference is then for a person to judge.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reslice.errors import ResliceError
from reslice.layout import fitted
from reslice.next_command import next_command
from reslice.report import run_text, sql_text
from reslice.report_error import error_text
from reslice.report_json import as_json, dumped, error_json, history_json, show_json
from reslice.report_ledger import history_text, ledger_sql_text, show_text
from reslice.values import Run
from tests.golden import samples

HERE = Path(__file__).parent


def agree(name: str, found: str) -> None:
    path = HERE / name
    if os.environ.get("RESLICE_GOLDEN") == "write":
        path.write_text(found + "\n", encoding="utf-8")
    assert found + "\n" == path.read_text(encoding="utf-8")


ANSWERS = {
    "plan": samples.PLAN,
    "plan_of_nothing": samples.PLAN_OF_NOTHING,
    "plan_with_guards": samples.PLAN_WITH_GUARDS,
    "plan_with_affected": samples.WITH_AFFECTED,
    "plan_hostile_keys": samples.HOSTILE,
    "run_published": samples.PUBLISHED,
    "run_unchanged": samples.UNCHANGED,
    "run_rewritten": samples.REWRITTEN,
    "run_per_slice": samples.PER_SLICE,
    "run_heals": samples.HEALING,
    "run_many_groups": samples.MANY,
    "verify_yes": samples.VERIFIED,
    "verify_moved": samples.MOVED,
    "verify_unstable": samples.UNSTABLE,
}
ERRORS: dict[str, tuple[str, ResliceError]] = {
    "stopped": ("run", samples.STOPPED),
    "refused": ("run", samples.REFUSED),
    "busy": ("verify", samples.BUSY),
    "unknown": ("run", samples.UNKNOWN),
    "partly": ("run", samples.PARTLY),
    "interrupted": ("run", samples.STOPPED_BY_USER),
}
LEDGER: dict[str, Callable[[], str]] = {
    "history": lambda: history_text(
        [samples.LEDGER_GONE, samples.LEDGER_RUNNING, samples.LEDGER_RUN, samples.LEDGER_STOPPED]
    ),
    "history_empty": lambda: history_text([], place="-C shop"),
    "show_published": lambda: show_text(samples.LEDGER_RUN),
    "show_stopped": lambda: show_text(samples.LEDGER_STOPPED),
    "show_running": lambda: show_text(samples.LEDGER_RUNNING),
    "show_gone": lambda: show_text(samples.LEDGER_GONE),
    "show_many": lambda: show_text(samples.LEDGER_MANY),
    "show_sql": lambda: ledger_sql_text(samples.LEDGER_RUN),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_text_of_an_answer(name: str) -> None:
    run = ANSWERS[name]
    way_on = next_command(run)
    agree(f"{name}.txt", run_text(run, place="-C shop", way_on=way_on))


@pytest.mark.parametrize("name", ANSWERS)
def test_json_of_an_answer(name: str) -> None:
    agree(f"{name}.json", dumped(as_json(ANSWERS[name], place="-C shop"), "utf-8"))


@pytest.mark.parametrize("name", ERRORS)
def test_text_of_an_error(name: str) -> None:
    agree(f"error_{name}.txt", error_text(ERRORS[name][1]))


@pytest.mark.parametrize("name", ERRORS)
def test_json_of_an_error(name: str) -> None:
    command, error = ERRORS[name]
    agree(f"error_{name}.json", dumped(error_json(command, error), "utf-8"))


@pytest.mark.parametrize("name", LEDGER)
def test_text_of_the_ledger(name: str) -> None:
    agree(f"{name}.txt", LEDGER[name]())


def test_json_of_the_ledger() -> None:
    agree("history.json", dumped(history_json([samples.LEDGER_RUNNING, samples.LEDGER_RUN]), "utf-8"))
    agree("show.json", dumped(show_json(samples.LEDGER_STOPPED), "utf-8"))


def test_sql_of_a_plan() -> None:
    agree("plan_sql.txt", sql_text(samples.PLAN))


def test_a_terminal_without_our_signs_gets_plain_ones() -> None:
    text = fitted(run_text(samples.HOSTILE), "ascii")
    assert text.isascii()
    assert "price 0.10 -> NULL" in text
    assert "\\u6771\\u4eac" in text, "a key the encoding lacks is escaped, not dropped"
    assert json.loads(dumped(as_json(samples.HOSTILE), "ascii"))["groups"][4]["key"]["channel"] == "東京"


def test_text_that_a_terminal_can_show_is_left_alone() -> None:
    text = run_text(samples.HOSTILE)
    assert fitted(text, "utf-8") == text


def test_no_key_moves_the_cursor_or_begins_a_line() -> None:
    lines = run_text(samples.HOSTILE).split("\n")
    assert not [line for line in lines if not line.isprintable()]
    assert [line for line in lines if line.startswith("next:")] == [lines[-1]]


def keys_of(value: Any) -> Any:
    return {name: keys_of(each) for name, each in value.items()} if isinstance(value, dict) else None


def test_every_answer_of_run_has_the_same_fields_in_the_same_order() -> None:
    """An error before anything was known has them too, so that nobody has to ask whether a field is there."""
    orders = [list(as_json(each)) for each in ANSWERS.values() if each.command == "run"]
    orders += [list(error_json("run", error)) for command, error in ERRORS.values() if command == "run"]
    assert orders == [orders[0]] * len(orders)


def test_a_number_keeps_every_digit_in_json() -> None:
    assert samples.HOSTILE.diff is not None
    value = json.loads(dumped(as_json(samples.HOSTILE), "utf-8"))
    assert value["groups"][1]["after"] == {"price": "1000"}
    assert value["totals"]["price"] == {"before": None, "after": "1000.10"}
    huge: Run = replace(samples.PUBLISHED, rows_after=2**63)
    assert json.loads(dumped(as_json(huge), "utf-8"))["rows"]["after"] == 9223372036854775808
