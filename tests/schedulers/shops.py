"""The environments of the schedulers, and a shop whose orders are few enough to add up by hand."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "schedulers"


def environment_of(name: str) -> Path:
    """Return the folder of programs of a scheduler's environment; without one, skip, or fail where CI wants it all."""
    programs = ROOT / f".venv-{name}" / "bin"
    if (programs.parent / ".ready").exists():
        return programs
    missing = f"there is no {name} here; make .venv-{name}/.ready makes it"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing)
    pytest.skip(missing)


def make_shop(folder: Path) -> Path:
    """Make the example's project with its database in `folder`."""
    copytree(EXAMPLES / "shop", folder)
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute((folder / "setup.sql").read_text())
    return folder


def without_waiting(shop: Path) -> None:
    """Let a busy database be said at once, and not after the ten minutes of the default."""
    contract = shop / "reslice.yml"
    slices = "    slice: {"
    contract.write_text(contract.read_text().replace(slices, "    timeouts: {wait: 0s}\n" + slices))


def execute(shop: Path, sql: str) -> None:
    with duckdb.connect(str(shop / "shop.duckdb")) as connection:
        connection.execute(sql)


def rows(shop: Path, table: str) -> list[tuple[str, str, int, int]]:
    """Return a target's rows in order: the slice as text, channel, orders, cents."""
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as connection:
        found = connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
    return [(str(slice), channel, orders, cents) for slice, channel, orders, cents in found]


def states(shop: Path) -> list[tuple[str, str]]:
    """Return the range and end of every run in the ledger, the oldest first."""
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT range_text, state FROM reslice.runs ORDER BY id").fetchall()


def variables(shop: Path, **more: str) -> dict[str, str]:
    """Return an environment like that of a service: little, and where the shop is."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "SHOP": str(shop), "SHOP_DATABASE": f"duckdb:///{shop / 'shop.duckdb'}", **more}


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that one of the test processes has filled, and the others have waited for."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / name, shared / f"{name}.done"
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def drive(command: list[str | Path], environment: dict[str, str], log: Path) -> None:
    """Run a driver to its end; what it said is in `log`, and its end in the failure."""
    with log.open("w") as said:
        ended = subprocess.run(
            command, env=environment, stdout=said, stderr=subprocess.STDOUT, timeout=300, check=False
        )
    assert ended.returncode == 0, log.read_text()[-4000:]
