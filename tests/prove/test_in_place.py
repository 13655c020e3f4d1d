"""A proof in the database itself: the rows from before are there again, whatever becomes of the command or reslice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reslice.errors import OutcomeUnknown, Refused, Retryable
from reslice.prove import in_place
from reslice.prove.values import Subject, Verdict
from reslice.report_prove import proof_text
from tests.prove.shops import APPEND, BEFORE, GRAIN, REPLACE, Shop, execute, rows
from tests.prove.test_sandbox import RESLICE, wait_for

SORTED = sorted(BEFORE, key=repr)


def kept(shop: Shop) -> list[Path]:
    """Return the copies of rows beside the file."""
    return [each for each in shop.folder.iterdir() if each.name.startswith("reslice_kept_")]


def test_the_rows_from_before_are_put_back(shop: Shop) -> None:
    proof = shop.prove_sql(APPEND, in_place=True)
    assert proof.verdict is Verdict.NOT_REPEATABLE
    assert [each.state.rows for each in proof.runs] == [8, 11]
    assert (rows(shop), kept(shop)) == (SORTED, [])


def test_no_sandbox_is_spoken_of(shop: Shop) -> None:
    execute(shop, "DELETE FROM daily_orders")
    for text in ("DELETE FROM daily_orders; SELECT 1;", "SELECT 1;"):
        found = proof_text(shop.prove_sql(text, shop.bare(), in_place=True))
        assert "in the database itself" in found
        assert "sandbox" not in found


def test_every_column_is_put_back_also_those_that_are_not_compared(shop: Shop) -> None:
    execute(
        shop, "ALTER TABLE daily_orders ADD COLUMN loaded_at VARCHAR", "UPDATE daily_orders SET loaded_at = channel"
    )
    before = rows(shop)
    shop.prove_sql(
        "UPDATE daily_orders SET loaded_at = 'x', channel = 'y';", shop.bare(ignored=("loaded_at",)), in_place=True
    )
    assert rows(shop) == before


def test_a_failing_command_is_undone_as_well(shop: Shop) -> None:
    with pytest.raises(Retryable, match="exit code 1"):
        shop.prove_sql(f"DELETE FROM daily_orders; {APPEND} SELECT no_such;", in_place=True)
    assert (rows(shop), kept(shop)) == (SORTED, [])


def test_ctrl_c_is_undone_as_well(shop: Shop) -> None:
    mark = shop.folder / "begun"
    code = (
        "import duckdb, os, pathlib, sys, time; c = duckdb.connect(os.environ['RESLICE_PATH'])\n"
        "c.execute('DELETE FROM daily_orders'); c.close(); pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    )
    words = ["prove", "daily_orders", "--in-place", "--yes", "--", sys.executable, "-c", code, str(mark)]
    process = subprocess.Popen([*RESLICE, *words], cwd=shop.folder, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: mark.exists() or None)
    process.send_signal(2)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert (rows(shop), kept(shop)) == (SORTED, [])


def test_a_killed_proof_leaves_the_rows_and_the_way_to_put_them_back(shop: Shop) -> None:
    mark = shop.folder / "begun"
    code = (
        "import duckdb, os, pathlib, sys; c = duckdb.connect(os.environ['RESLICE_PATH'])\n"
        "c.execute('DELETE FROM daily_orders'); c.close(); pathlib.Path(sys.argv[1]).touch(); os.kill(os.getppid(), 9)"
    )
    words = ["prove", "daily_orders", "--in-place", "--yes", "--", sys.executable, "-c", code, str(mark)]
    process = subprocess.Popen([*RESLICE, *words], cwd=shop.folder, stderr=subprocess.PIPE, text=True)
    errors = process.communicate(timeout=30)[1]
    wait_for(lambda: mark.exists() or None)
    assert rows(shop) == []
    (copy,) = kept(shop)
    assert str(copy) in errors, "where the rows are is said before the command runs"

    proof = shop.prove(["true"], shop.bare(), in_place=True)
    assert any(str(copy) in note for note in proof.notes)
    statements = errors.split("put back by:  ")[1].split("\n")[0]
    execute(shop, *statements.split(";")[:-1])
    assert rows(shop) == SORTED
    copy.unlink()


def test_rows_that_cannot_be_put_back_are_kept_and_named(shop: Shop) -> None:
    job = (
        "DROP TABLE daily_orders; CREATE TABLE daily_orders (order_date DATE, channel VARCHAR, order_count BIGINT,"
        " amount_cents BIGINT CHECK (amount_cents < 1));"
    )
    with pytest.raises(OutcomeUnknown) as caught:
        shop.prove_sql(job, in_place=True)
    (failure,) = caught.value.failures
    assert (failure.kind, caught.value.exit_code) == ("not_put_back", 5)
    (copy,) = kept(shop)
    assert f"{copy} holds them" in failure.found[1]
    assert str(copy) in failure.next and "kept.kept" in failure.next
    copy.unlink()


def test_it_is_not_done_without_consent(shop: Shop) -> None:
    words = ["prove", "daily_orders", "--in-place", "--", "true"]
    done = subprocess.run([*RESLICE, *words], cwd=shop.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("stopped[unconfirmed]: daily_orders\n")
    assert "true  would run 2 times in duckdb:///shop.duckdb itself" in done.stderr
    assert "if right:   reslice prove daily_orders --in-place --yes -- true\n" in done.stderr
    assert (rows(shop), kept(shop)) == (SORTED, [])


def test_what_is_put_back_is_read_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "_replace", lambda _: None)
    with pytest.raises(OutcomeUnknown, match="rows are not those from before"):
        shop.prove_sql(REPLACE, in_place=True)
    for each in kept(shop):
        each.unlink()


def test_a_table_that_others_point_at_is_refused_in_place(shop: Shop) -> None:
    """Rows that are deleted to be put back may take rows of other tables with them."""
    execute(
        shop,
        "CREATE TABLE parent (day DATE PRIMARY KEY, n INTEGER)",
        "CREATE TABLE child (day DATE REFERENCES parent (day))",
        "CREATE VIEW seen AS SELECT * FROM daily_orders",
    )
    for table, grain, kind in (("parent", ("day",), "target_referenced"), ("seen", GRAIN, "target_not_table")):
        with pytest.raises(Refused) as caught:
            shop.prove(["true"], Subject(table, table, grain), in_place=True)
        assert caught.value.kind == kind
    assert kept(shop) == []
