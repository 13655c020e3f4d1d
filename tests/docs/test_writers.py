"""The stories of the page on live writers happen as they are told there."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import pytest

from docs import build, console

PAGE = (build.ROOT / "docs" / "writers.md").read_text(encoding="utf-8")
STORY = re.compile(r"<!-- story: ([a-z ]+) -->\n```python\n(.*?)```\n(?:[^`]*?```text\n(.*?)```)?", re.DOTALL)
GUARD = re.search(r"^```yaml\n(.*?)```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The retail example with its follow-up arrived, and the guard of the page."""
    folder = tmp_path / "shop"
    console.STATES["stale"](folder)
    assert GUARD is not None
    contract = folder / "reslice.yml"
    contract.write_text(f"{contract.read_text(encoding='utf-8')}    {GUARD[1]}", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def told(name: str) -> Iterator[tuple[str, str]]:
    """Yield each block of a story, with the output that the page shows below it."""
    for story, code, output in STORY.findall(PAGE):
        if story == name:
            yield code, output


def happens(name: str) -> None:
    """Run the blocks of a story in one program, and hold each to what the page shows."""
    names: dict[str, Any] = {"__name__": name}
    blocks = list(told(name))
    assert len(blocks) == 2
    for code, output in blocks:
        assert output, "every block says what comes out"
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile(code, "writers.md", "exec"), names)
        assert said.getvalue() == output
    names["connection"].close()


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "retail.duckdb"), read_only=True) as connection:
        return connection.execute(
            "SELECT CAST(order_date AS VARCHAR), channel, order_count, amount_cents FROM daily_orders"
            " WHERE order_date < '2026-02-01' ORDER BY ALL"
        ).fetchall()


def test_today_is_counted_while_the_past_is_rewritten(shop: Path) -> None:
    happens("event loop")
    assert rows(shop) == [
        ("2026-01-01", "store", 1, 4500),
        ("2026-01-02", "store", 1, 5600),
        ("2026-01-02", "web", 2, 19000),
        ("2026-01-03", "app", 1, 3100),
    ]


def test_a_row_of_a_closed_day_is_put_right_by_hand(shop: Path) -> None:
    happens("support")
    assert rows(shop) == [
        ("2026-01-01", "store", 1, 4500),
        ("2026-01-02", "store", 1, 6000),
        ("2026-01-02", "web", 2, 19000),
        ("2026-01-03", "app", 1, 3100),
    ]


def test_the_lock_by_itself_is_used_as_the_page_shows(shop: Path) -> None:
    (code,) = re.findall(r"## With the lock\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    before = rows(shop)
    names: dict[str, Any] = {}
    exec(compile(code, "writers.md", "exec"), names)
    names["connection"].close()
    assert rows(shop) == before
    with duckdb.connect(str(shop / "retail.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT generation FROM reslice.fences").fetchall() == [(2,)]
