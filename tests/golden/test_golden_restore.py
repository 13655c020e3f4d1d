"""What status and restore print and write as JSON, compared with files that are read in review like code."""

from __future__ import annotations

import pytest

from reslice.report import run_text
from reslice.report_error import error_text
from reslice.report_json import as_json, dumped, error_json
from reslice.report_ledger import history_text, show_text
from reslice.report_status import status_text
from reslice.values import Run
from tests.golden import samples, samples_restore
from tests.golden.test_golden import agree

STATUSES = {
    "status": samples_restore.STATUS,
    "status_equal": samples_restore.STATUS_EQUAL,
    "status_since": samples_restore.STATUS_SINCE,
    "status_untouched": samples_restore.STATUS_UNTOUCHED,
}
RESTORES = {
    "restore_planned": samples_restore.RESTORE_PLANNED,
    "restore_done": samples_restore.RESTORED,
    "restore_of_a_restore": samples_restore.RESTORED_HEALED,
    "restore_unchanged": samples_restore.RESTORE_UNCHANGED,
}
ERRORS = {
    "restore_unconfirmed": samples_restore.UNCONFIRMED,
    "restore_in_the_way": samples_restore.IN_THE_WAY,
}


@pytest.mark.parametrize("name", STATUSES)
def test_text_of_a_status(name: str) -> None:
    agree(f"{name}.txt", status_text(STATUSES[name], place="-C shop"))


@pytest.mark.parametrize("name", RESTORES)
def test_text_of_a_restore(name: str) -> None:
    agree(f"{name}.txt", run_text(RESTORES[name], place="-C shop"))


@pytest.mark.parametrize("name", [*STATUSES, *RESTORES])
def test_json(name: str) -> None:
    agree(f"{name}.json", dumped(as_json((STATUSES | RESTORES)[name], place="-C shop"), "utf-8"))


@pytest.mark.parametrize("name", ERRORS)
def test_an_error(name: str) -> None:
    agree(f"error_{name}.txt", error_text(ERRORS[name]))
    agree(f"error_{name}.json", dumped(error_json("restore", ERRORS[name]), "utf-8"))


def test_a_restore_in_the_ledger() -> None:
    agree("show_restored.txt", show_text(samples_restore.LEDGER_RESTORED))
    agree("history_restored.txt", history_text([samples_restore.LEDGER_RESTORED, samples.LEDGER_RUN]))


@pytest.mark.parametrize(("command", "answers"), [("status", [*STATUSES.values()]), ("restore", [*RESTORES.values()])])
def test_every_answer_has_the_same_fields_in_the_same_order(command: str, answers: list[Run]) -> None:
    orders = [list(as_json(each)) for each in answers]
    orders.append(list(error_json(command, samples.STOPPED_BY_USER)))
    assert orders == [orders[0]] * len(orders)
