"""append_version keeps what it replaces in the table: versions are listed, and old ones let go of on request."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reslice import cli
from reslice.errors import Misused, Refused
from tests.conformance.orders import ALLOWED, D1, D2, D3, T0, Orders, kinds

COLUMNS = "order_date DATE, channel VARCHAR, order_count BIGINT, amount_cents BIGINT, batch_id VARCHAR"
ALL = f"{D1}..{D3}"
NOW = timedelta(0)


@pytest.fixture
def versioned(orders: Orders) -> Orders:
    """The orders, whose target keeps every version and is empty."""
    orders.make_target(COLUMNS)
    orders.declare(method="append_version", stamps={"batch_id": "run_id"}, guards=ALLOWED)
    return orders


def told(orders: Orders, range: str | None = None) -> list[tuple[str, str, int, bool]]:
    return [(each.slice, each.run, each.rows, each.is_current) for each in orders.handle.versions(range)]


def current(orders: Orders) -> list[tuple[object, ...]]:
    select = "SELECT order_date, channel, order_count, amount_cents FROM daily_orders_current ORDER BY 1, 2, 3, 4"
    return orders.database.rows(select)


def test_every_version_of_a_slice_is_listed_with_who_wrote_it(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(ALL)
    assert told(versioned) == [
        (D1, "r-0001", 2, True),
        (D2, "r-0001", 2, False),
        (D2, "r-0002", 2, True),
        (D3, "r-0001", 2, True),
    ]
    assert told(versioned, D1) == [(D1, "r-0001", 2, True)]


def test_rows_that_were_there_first_are_the_version_of_no_run(versioned: Orders) -> None:
    versioned.database.execute(f"INSERT INTO daily_orders VALUES ('{D2}', 'web', 9, 9, NULL)")
    versioned.run(D2)
    assert told(versioned) == [(D2, "", 1, False), (D2, "r-0001", 2, True)]


def test_a_slice_that_became_empty_has_a_current_version_without_rows(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.cancel(f"order_date = '{D2}'")
    versioned.run(ALL)
    assert told(versioned, D2) == [(D2, "r-0001", 2, False), (D2, "r-0002", 0, True)]


def test_pruning_deletes_what_is_not_current_and_readers_see_no_difference(versioned: Orders) -> None:
    versioned.run(ALL)
    for amount in (1300, 1400):
        versioned.correct(4, amount)
        versioned.run(D2)
    before = current(versioned)
    assert before[3] == (D2, "web", 1, 1400)
    pruned = versioned.handle.prune_versions(older_than=NOW)
    assert (pruned.run, pruned.rows) == ("r-0004", 4)
    assert [(each.slice, each.run) for each in pruned.versions] == [(D2, "r-0001"), (D2, "r-0002")]
    assert current(versioned) == before
    assert len(versioned.rows()) == 6
    assert told(versioned) == [(D1, "r-0001", 2, True), (D2, "r-0003", 2, True), (D3, "r-0001", 2, True)]
    row = versioned.ledger("r-0004")
    assert (row["kind"], row["state"], row["range_text"]) == ("prune", "published", D2)


def test_rows_of_no_version_are_never_pruned(versioned: Orders) -> None:
    versioned.fill(T0)
    versioned.correct(4, 1300)
    versioned.run(D2)
    versioned.fill([(D2, "kiosk", 1, 42)])
    assert (D2, "", 3, False) in told(versioned)
    pruned = versioned.handle.prune_versions(older_than=NOW)
    assert (pruned.run, pruned.versions) == (None, ())
    versioned.correct(4, 1400)
    versioned.run(D2)
    pruned = versioned.handle.prune_versions(older_than=NOW)
    assert [(each.slice, each.run, each.rows) for each in pruned.versions] == [(D2, "r-0001", 2)]
    assert told(versioned, D2) == [(D2, "", 3, False), (D2, "r-0002", 2, True)]


def test_pruning_again_deletes_nothing_and_leaves_no_run(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(D2)
    versioned.handle.prune_versions(older_than=NOW)
    runs = len(versioned.database.rows("SELECT id FROM reslice.runs"))
    assert versioned.handle.prune_versions(older_than=NOW).run is None
    assert len(versioned.database.rows("SELECT id FROM reslice.runs")) == runs


def test_what_was_replaced_lately_stays(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(D2)
    assert versioned.handle.prune_versions(older_than=timedelta(days=1)).versions == ()
    versioned.database.execute(
        "UPDATE reslice.runs SET finished_at = finished_at - INTERVAL '2 days' WHERE id = 'r-0002'"
    )
    assert versioned.handle.prune_versions(older_than=timedelta(days=1)).rows == 2


def test_only_the_range_that_is_named_is_pruned(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.correct(7, 5100)
    versioned.run(ALL)
    assert versioned.handle.prune_versions(D3, older_than=NOW).rows == 2
    assert told(versioned, D2) == [(D2, "r-0001", 2, False), (D2, "r-0002", 2, True)]


def test_a_version_that_is_gone_cannot_be_restored(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(D2)
    versioned.handle.prune_versions(older_than=NOW)
    before = current(versioned)
    with pytest.raises(Refused) as caught:
        versioned.handle.restore("r-0002")
    assert kinds(caught.value) == ["kept_gone"]
    assert current(versioned) == before


def test_a_version_a_restore_went_back_to_is_current_and_is_not_pruned(versioned: Orders) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(D2)
    versioned.handle.restore("r-0002")
    assert told(versioned, D2) == [(D2, "r-0001", 2, True), (D2, "r-0002", 2, False)]
    assert versioned.handle.prune_versions(older_than=NOW).rows == 2
    assert (D2, "web", 1, 1200) in current(versioned)


def test_other_methods_have_no_versions(orders: Orders) -> None:
    orders.run(ALL)
    with pytest.raises(Misused) as caught:
        orders.handle.versions()
    assert "only append_version keeps versions" in caught.value.failures[0].found[0]


def test_before_the_first_run_there_are_none(versioned: Orders) -> None:
    assert versioned.handle.versions() == ()


def command(orders: Orders, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return how the command line ends, and what it says on stdout and stderr."""
    orders.database.let_go()
    code = cli.main(["--config", str(orders.file), "versions", "daily_orders", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_lists_prunes_only_with_consent_and_says_what_is_gone(
    versioned: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    versioned.run(ALL)
    versioned.correct(4, 1300)
    versioned.run(D2)
    code, out, err = command(versioned, capsys, D2)
    assert (code, err) == (0, "")
    assert out.startswith("2 versions of daily_orders: 1 current, 1 before")
    assert f"{D2}  r-0002  2 rows  current" in out

    code, out, err = command(versioned, capsys, D2, "--prune", "--older-than", "0")
    assert (code, out) == (3, "")
    assert "stopped[unconfirmed]" in err
    assert "1 versions with 2 rows would be deleted" not in err
    assert (
        f"if right:   reslice --config {versioned.file} versions daily_orders {D2} --prune --older-than 0 --yes" in err
    )
    assert told(versioned, D2) == [(D2, "r-0001", 2, False), (D2, "r-0002", 2, True)]

    code, out, err = command(versioned, capsys, D2, "--prune", "--older-than", "0", "--yes", "--json")
    answer = json.loads(out)
    assert (code, answer["run"], answer["pruned"], answer["exit_code"]) == (0, "r-0003", True, 0)
    assert [(each["slice"], each["run"], each["rows"]) for each in answer["versions"]] == [(D2, "r-0001", 2)]
    assert told(versioned, D2) == [(D2, "r-0002", 2, True)]


@pytest.mark.parametrize("words", [["--yes"], ["--older-than", "3"], ["--prune", "--older-than", "-1"], [""], ["soon"]])
def test_a_command_that_makes_no_sense_exits_2(
    versioned: Orders, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    versioned.run(ALL)
    code, out, err = command(versioned, capsys, *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err and "next:" in err
