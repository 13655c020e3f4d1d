"""The sandbox of a DuckDB file: what is in the copy, what is left of it, and what is noticed beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import duckdb
import pytest

from reslice.engines.duckdb import sandbox as duckdb_sandbox
from reslice.errors import Interrupted, Refused, Retryable
from reslice.prove.asked import task_of
from reslice.prove.proving import Proving
from reslice.prove.values import Verdict
from tests.prove.shops import BEFORE, REPLACE, Shop, execute, rows

RESLICE = [sys.executable, "-c", "import sys; from reslice.cli import main; sys.exit(main())"]


def test_what_is_only_in_the_log_is_in_the_copy(shop: Shop) -> None:
    """A process that was killed leaves its last commits in the write-ahead log beside the file."""
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]);"
        "c.execute(\"INSERT INTO daily_orders VALUES ('2026-01-03', 'web', 7, 700)\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(shop.connection.path)], check=True)
    assert (shop.folder / "shop.duckdb.wal").exists()
    proof = shop.prove(["true"], shop.bare())
    assert (proof.before.rows, proof.before.totals["order_count"]) == (6, 12)
    assert (shop.folder / "shop.duckdb.wal").exists(), "the original is not even checkpointed"


def test_a_file_that_another_process_writes_is_busy(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_sandbox, "WAIT", duckdb_sandbox.WAIT * 0)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(shop.connection.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
        with pytest.raises(Retryable, match=f"process {other.pid}") as caught:
            shop.prove(["true"])
        other.stdin.close()
    assert caught.value.kind == "database_busy"


def test_no_handle_is_kept_on_the_copy_while_the_command_runs(shop: Shop) -> None:
    code = "import duckdb, os; duckdb.connect(os.environ['RESLICE_PATH']).execute('CREATE TABLE more (n INTEGER)')"
    assert shop.prove([sys.executable, "-c", f"{code}.execute('DROP TABLE more')"], shop.bare()).runs


def test_a_command_that_writes_to_the_database_itself_is_noticed(shop: Shop) -> None:
    code = (
        "import duckdb, sys; duckdb.connect(sys.argv[1])"
        ".execute(\"INSERT INTO daily_orders VALUES ('2026-01-02', 'app', 1, 1)\")"
    )
    proof = shop.prove([sys.executable, "-c", code, str(shop.connection.path)], shop.bare())
    assert (proof.verdict, proof.did_nothing) == (Verdict.NOT_PROVEN, True)
    assert proof.real_changed == (
        "shop.main.daily_orders itself, not the copy, changed while the command ran: 5 rows before, 7 now"
    )


def test_a_write_to_another_table_of_the_database_itself_is_none(shop: Shop) -> None:
    code = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('CREATE OR REPLACE TABLE other (n INTEGER)')"
    assert shop.prove([sys.executable, "-c", code, str(shop.connection.path)], shop.bare()).real_changed == ""


def test_a_kept_sandbox_stays_and_is_named(shop: Shop, sandboxes: Path) -> None:
    proof = shop.prove_sql(REPLACE, keep=True)
    path = Path(proof.kept)
    assert path.is_relative_to(sandboxes)
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*), sum(amount_cents) FROM daily_orders").fetchall() == [(4, 32200)]
    assert shop.prove_sql(REPLACE).notes == (), "the next proof leaves it alone"
    assert path.exists()
    shutil.rmtree(path.parents[1])


def test_a_proof_that_is_killed_leaves_nothing_that_blocks_and_the_next_one_removes_it(
    shop: Shop, sandboxes: Path
) -> None:
    words = ["prove", "daily_orders", "--", "sh", "-c", "sleep 60"]
    process = subprocess.Popen([*RESLICE, *words], cwd=shop.folder, stderr=subprocess.PIPE)
    folder = wait_for(lambda: next((each for each in sandboxes.glob("*/reslice_evidence.duckdb")), None)).parent
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert folder.exists()
    assert json.loads((folder / "owner.json").read_text())["pid"] == process.pid

    proof = shop.prove_sql(REPLACE)
    assert proof.verdict is Verdict.PROVEN
    assert proof.notes == (f"removed {folder}, which a proof that was killed had left",)
    assert not folder.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_the_sandbox(
    shop: Shop, sandboxes: Path, number: signal.Signals, code: int
) -> None:
    mark = shop.folder / "begun"
    words = ["prove", "daily_orders", "--", "sh", "-c", f"echo $$ > {mark}; sleep 60"]
    process = subprocess.Popen([*RESLICE, *words], cwd=shop.folder, stderr=subprocess.PIPE, text=True)
    pid = int(wait_for(lambda: mark.read_text() if mark.exists() and mark.read_text() else None))
    process.send_signal(number)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == code
    assert errors.startswith("interrupted[interrupted]: daily_orders\n")
    assert "unchanged:  the command was ended, and the sandbox is gone\n" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert rows(shop) == sorted(BEFORE, key=repr)
    assert [*sandboxes.iterdir()] == []


def test_a_proof_is_stopped_from_another_thread(shop: Shop) -> None:
    proving = Proving(shop.connection, shop.subject(), task_of(["sleep", "60"]))
    timer = threading.Timer(0.5, proving.interrupt)
    timer.start()
    with pytest.raises(Interrupted):
        proving.prove()
    timer.join()


def test_two_proofs_at_once_are_not_in_each_others_way(shop: Shop) -> None:
    found: list[Verdict] = []
    threads = [threading.Thread(target=lambda: found.append(shop.prove_sql(REPLACE).verdict)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Verdict.PROVEN] * 2


def test_without_room_there_is_no_sandbox(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(shop.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(Refused) as caught:
        shop.prove(["true"])
    assert (caught.value.kind, caught.value.exit_code) == ("sandbox", 3)


def test_a_name_with_wildcards_copies_its_own_log(tmp_path: Path) -> None:
    for name in ("a[1].duckdb", "a1.duckdb", "a1.duckdb.wal", "a[1].duckdb.wal", "a[1].duckdb.txt"):
        (tmp_path / name).write_text("")
    found = duckdb_sandbox.files_of(tmp_path / "a[1].duckdb")
    assert [each.name for each in found] == ["a[1].duckdb", "a[1].duckdb.wal"]


def test_the_database_is_the_same_bytes_afterwards(shop: Shop) -> None:
    execute(shop, "CHECKPOINT")
    assert shop.connection.path is not None
    before = shop.connection.path.read_bytes()
    shop.prove_sql(REPLACE)
    assert shop.connection.path.read_bytes() == before


Value = TypeVar("Value")


def wait_for(found: Callable[[], Value | None]) -> Value:
    """Return what a function gives as soon as it gives something."""
    until = time.monotonic() + 30
    while (value := found()) is None:
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)
    return value


def test_a_table_that_the_command_drops_in_the_database_itself_is_noticed(shop: Shop) -> None:
    code = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('DROP TABLE IF EXISTS daily_orders')"
    proof = shop.prove([sys.executable, "-c", code, str(shop.connection.path)], shop.bare())
    assert "shop.main.daily_orders itself, not the copy, cannot be looked at" in proof.real_changed
