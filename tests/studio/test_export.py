"""A copy of the studio as files: whole, without a server, and never among the files of somebody else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reslice.cli import main
from tests.conformance.databases import Database, DuckDBDatabase
from tests.studio.shop import UNCONTROLLED, Shop
from tests.studio.test_safety import HOSTILE


class Addresses(HTMLParser):
    """Every address that a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.forms = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.forms += tag == "form"
        self.found += [value for name, value in attrs if name in ("href", "src", "action") and value is not None]


def read(path: Path) -> Addresses:
    page = Addresses()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    (tmp_path / "shop").mkdir()
    return Shop(DuckDBDatabase(tmp_path / "shop"))


def export(shop: Shop, folder: Path, *options: str) -> int:
    shop.database.let_go()
    return main(["-C", str(shop.folder), "studio", "--export", str(folder), *options])


def test_a_copy_has_every_page_and_leads_from_each_to_each(shop: Shop, tmp_path: Path) -> None:
    shop.live()
    shop.declare({"daily_orders": UNCONTROLLED, HOSTILE: UNCONTROLLED})
    copy = tmp_path / "copy"
    assert export(shop, copy) == 0
    pages = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*.html"))
    assert [page for page in pages if page.startswith("run/")] == [
        f"run/r-{number:04d}.html" for number in range(1, 12)
    ]
    assert {
        "index.html",
        "target/daily_orders.html",
        "target/daily_orders~2025.html",
        "target/daily_orders~2026.html",
    } <= {*pages}
    reached: set[str] = set()
    for name in pages:
        assert (copy / name).with_suffix(".json").is_file() or name.count(".") > 1
        found = read(copy / name)
        assert found.forms == 0, f"{name} asks a server"
        for address in found.found:
            if address.startswith("#"):
                continue
            assert not re.match(r"[a-z]+:|/", address), f"{name} leads to {address}"
            path = ((copy / name).parent / address.partition("#")[0]).resolve()
            assert path.is_file(), f"{name} leads to {address}, which is not there"
            reached.add(path.relative_to(copy.resolve()).as_posix())
    assert set(pages) - {"target/daily_orders.html"} <= reached | {"index.html"}
    assert json.loads((copy / "target" / "daily_orders~2025.json").read_text())["period"] == "2025"


def test_a_copy_says_the_same_as_the_page(engine: Database, tmp_path: Path) -> None:
    from tests.studio.served import served

    shop = Shop(engine)
    shop.fill(days=20)
    shop.target().run("2025-11-01..2025-11-20")
    assert export(shop, tmp_path / "copy") == 0
    with served(shop.contract) as site:
        twin = site.get("target/daily_orders.json").json
    assert json.loads((tmp_path / "copy" / "target" / "daily_orders.json").read_text()) == twin


def test_a_copy_takes_the_place_of_an_earlier_one(shop: Shop, tmp_path: Path) -> None:
    shop.fill(days=3)
    shop.target().run("2025-11-01")
    copy = tmp_path / "copy"
    assert export(shop, copy) == 0
    (copy / "mine.txt").write_text("mine")
    shop.declare({"renamed": UNCONTROLLED})
    assert export(shop, copy) == 0
    assert not (copy / "target" / "daily_orders.html").exists() and (copy / "target" / "renamed.html").is_file()
    assert (copy / "mine.txt").read_text() == "mine"


def test_files_beside_a_copy_are_not_touched_whatever_its_list_says(shop: Shop, tmp_path: Path) -> None:
    shop.fill(days=3)
    copy = tmp_path / "copy"
    copy.mkdir()
    precious = tmp_path / "precious.txt"
    precious.write_text("kept")
    (copy / "reslice-studio.json").write_text(json.dumps({"files": ["../precious.txt", str(precious), 5]}))
    assert export(shop, copy) == 0
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_folder_of_somebody_else_is_refused(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_folder: bool
) -> None:
    place = tmp_path / "theirs"
    if is_folder:
        place.mkdir()
        (place / "index.html").write_text("theirs")
    else:
        place.write_text("theirs")
    assert export(shop, place) == 2
    err = capsys.readouterr().err
    assert all(f"  {part}:" in err for part in ("asked", "found", "unchanged", "next"))
    assert [path.read_text() for path in ([*place.iterdir()] if is_folder else [place])] == ["theirs"]


def test_a_target_that_is_called_like_a_period_of_another_has_pages_of_its_own(shop: Shop, tmp_path: Path) -> None:
    shop.fill("2025-12-01", days=62)
    shop.declare({"daily_orders": UNCONTROLLED, "daily_orders.2025": UNCONTROLLED})
    shop.target("daily_orders").run("2025-12..2026-01")
    shop.target("daily_orders.2025").run("2025-12-01..2025-12-05")
    assert export(shop, tmp_path / "copy") == 0
    folder = tmp_path / "copy" / "target"
    twins = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert {name: (twin["target"], twin["period"], len(twin["slices"])) for name, twin in twins.items()} == {
        "daily_orders": ("daily_orders", "2026", 90),
        "daily_orders~2025": ("daily_orders", "2025", 31),
        "daily_orders~2026": ("daily_orders", "2026", 90),
        "daily_orders.2025": ("daily_orders.2025", "2025", 31),
        "daily_orders.2025~2025": ("daily_orders.2025", "2025", 31),
    }


def test_a_folder_below_a_file_is_said_and_nothing_was_written(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("theirs")
    assert export(shop, tmp_path / "file" / "copy") == 2
    assert "unchanged:  nothing was written" in capsys.readouterr().err


def test_a_copy_as_json(shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    assert export(shop, copy, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["address"], found["export"]) == (None, str(copy / "index.html"))
    assert found["files_copied"] == len(json.loads((copy / "reslice-studio.json").read_text())["files"])


@pytest.mark.parametrize("name", ["x" * 300, "a/" + "y" * 300])
def test_a_name_that_no_folder_can_have_is_said(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert export(shop, tmp_path / name) == 2
    err = capsys.readouterr().err
    assert all(f"  {part}:" in err for part in ("asked", "found", "unchanged", "next")) and "bug" not in err
