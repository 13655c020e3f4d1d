"""What a browser is kept from on pages of the studio, and a copy of them that is opened from a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from reslice.cli import main
from tests.browser.conftest import Open
from tests.browser.views import View
from tests.conformance.databases import opened
from tests.studio.served import Served, served
from tests.studio.shop import DAILY, UNCONTROLLED, Shop
from tests.studio.test_safety import HOSTILE


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(opened("duckdb", tmp_path_factory.mktemp("studio")))
    shop.live()
    shop.declare({"daily_orders": DAILY, HOSTILE: UNCONTROLLED})
    shop.target(HOSTILE).run("2025-11-01..2025-11-03")
    shop.database.let_go()
    return shop


@pytest.fixture(scope="module")
def studio(shop: Shop) -> Iterator[Served]:
    with served(shop.contract) as site:
        yield site


@pytest.fixture(scope="module")
def copy(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    assert main(["-C", str(shop.folder), "studio", "--export", str(folder)]) == 0
    return folder


def test_a_script_that_got_in_would_not_run(studio: Served, open_page: Open) -> None:
    """Whatever is put into the page by mistake, the policy keeps it from being a script, or from calling out."""
    page = open_page(f"{studio.address}target/daily_orders").page
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'hit'";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src='x' onerror=\\"document.title = 'hit'\\">");
    }""")
    page.wait_for_timeout(200)
    assert page.title() != "hit"
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'kept')") == "kept"


def test_the_page_is_not_put_into_a_frame(studio: Served, open_page: Open, tmp_path: Path) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(f'<iframe src="{studio.address}"></iframe>')
    page = open_page(frame.as_uri()).page
    page.wait_for_timeout(500)
    assert all("daily_orders" not in each.content() for each in page.frames if each != page.main_frame)


@pytest.mark.parametrize(
    "name", ["index.html", "target/daily_orders.html", "target/daily_orders~2025.html", "run/r-0008.html"]
)
def test_a_copy_is_read_from_a_folder(copy: Path, open_page: Open, view: View, name: str) -> None:
    seen = open_page((copy / name).as_uri(), view)
    assert seen.overflow() == 0 and seen.complaints == []
    assert seen.asked_elsewhere(copy.as_uri()) == []
    assert seen.violations() == []  # last: what looks for them asks for the style again, which a file may not
    assert (
        seen.page.evaluate("getComputedStyle(document.querySelector('h1')).letterSpacing") != "normal"
    )  # it has its style


def test_a_copy_is_walked_from_page_to_page(copy: Path, open_page: Open) -> None:
    page = open_page((copy / "index.html").as_uri()).page
    page.get_by_role("link", name="daily_orders").first.click()
    page.get_by_role("link", name="2025").click()
    expect(page.get_by_role("heading", name="Slices of 2025")).to_be_visible()
    page.get_by_role("link", name="r-0008").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("daily_orders")
    page.get_by_role("banner").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 targets")
