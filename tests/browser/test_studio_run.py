"""Pages of runs in a real browser: what a reader sees in both widths and themes, the filter, and the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.views import DESK, PHONE, View
from tests.conformance.databases import opened
from tests.conformance.orders import D1, D2, D3, Orders
from tests.studio.pages_of import pages_of
from tests.studio.served import Served

HOSTILE = ("<img src=x onerror=document.title='hit'>", "\u202egnp.exe", "line\nbreak", "", "NULL", "x" * 300)
DAYS = 60


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A ledger of three runs: many days, three of them corrected, and one day with keys that mean harm."""
    folder: Path = tmp_path_factory.mktemp("studio")
    orders = Orders(opened("duckdb", folder), filled=False)
    days = f"SELECT 100 + i, DATE '2024-02-01' + i::INTEGER, 'web', 1000 + 37 * (i % 11) FROM range({DAYS}) AS made(i)"
    orders.database.execute(f"INSERT INTO orders_fact {days}")
    orders.run("2024-02-01..2024-03-31")
    orders.correct(4, 1700)
    orders.correct(1, 900)
    orders.cancel("order_id = 8")
    orders.run("2024-02-01..2024-03-31")
    for place, key in enumerate(HOSTILE):
        orders.order(900 + place, D2, key, 50 + place)
    orders.run(D2)
    with pages_of(orders) as served:
        yield served
    orders.database.close()


PAGES = {
    "run": "run/r-0002",
    "hostile": "run/r-0003",
    "filtered": "run/r-0003?text=e&change=added",
    "compare": "compare?a=r-0002&b=r-0003",
    "lines": "run/r-0002/series?measure=amount_cents",
    "one_slice": "run/r-0003/series?measure=amount_cents",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_sound_wherever_it_is_read(studio: Served, open_page: Open, view: View, name: str) -> None:
    seen = open_page(studio.address + PAGES[name], view)
    assert seen.violations() == []
    assert seen.overflow() == 0
    assert seen.complaints == [] and seen.asked_elsewhere(studio.address) == []
    assert "hit" not in seen.page.title()


def rows(page: Page) -> list[str]:
    return page.locator("#diff-part tbody tr").all_inner_texts()


def test_the_filter_answers_while_it_is_typed_and_the_address_keeps_it(studio: Served, open_page: Open) -> None:
    seen = open_page(studio.address + PAGES["hostile"])
    assert len(rows(seen.page)) == len(HOSTILE)
    loaded = len([each for each in seen.asked if each.endswith(".css")])

    seen.page.get_by_label("Text in the key").press_sequentially("ONERROR")

    expect(seen.page.get_by_role("status")).to_have_text("1 of 6 recorded groups have “ONERROR” in their key.")
    assert HOSTILE[0] in rows(seen.page)[0]
    expect(seen.page).to_have_url(re.compile(r"/run/r-0003\?text=ONERROR$"))
    assert len([each for each in seen.asked if each.endswith(".css")]) == loaded, "the page was not loaded again"
    assert seen.page.get_by_label("Text in the key").evaluate("each => each === document.activeElement")
    assert seen.complaints == [] and seen.page.title() != "hit"

    seen.page.get_by_label("Kind of change").select_option("removed")
    expect(seen.page.locator("#diff-part")).to_contain_text("No recorded group is like that.")
    seen.page.reload()
    expect(seen.page.get_by_label("Kind of change")).to_have_value("removed")


def test_the_filter_works_without_a_script(studio: Served, open_page: Open) -> None:
    seen = open_page(studio.address + PAGES["run"], script=False)
    seen.page.get_by_label("Kind of change").select_option("removed")
    seen.page.get_by_role("button", name="Show").click()
    expect(seen.page).to_have_url(re.compile("change=removed"))
    assert [each.split("\t")[:3] for each in rows(seen.page)] == [["-removed", D3, "phone"]]


def test_another_run_is_chosen_to_be_compared_with(studio: Served, open_page: Open) -> None:
    seen = open_page(studio.address + PAGES["run"])
    seen.page.get_by_role("combobox", name="Compare r-0002 with").select_option("r-0001")
    seen.page.get_by_role("button", name="Compare").click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("r-0002 beside r-0001")
    seen.page.get_by_role("link", name="r-0001 beside r-0002").click()
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("r-0001 beside r-0002")
    seen.page.get_by_role("link", name="moved by both, to other values").click()
    expect(seen.page.locator("#groups-table")).to_be_visible()
    assert seen.complaints == []


def test_a_measure_leads_to_its_series_and_each_width_has_its_picture(
    studio: Served, open_page: Open, view: View
) -> None:
    seen = open_page(studio.address + PAGES["run"], view)
    seen.page.get_by_role("link", name="amount_cents, slice by slice").click()
    pictures = seen.page.get_by_role("img")
    expect(pictures).to_have_count(2)  # a close look, and the whole
    shown = seen.page.locator("figure .wide" if view.width == DESK else "figure .narrow")
    expect(shown.first).to_be_visible()
    hidden = seen.page.locator("figure .narrow" if view.width == DESK else "figure .wide")
    expect(hidden.first).to_be_hidden()
    box = shown.first.bounding_box()
    assert box is not None and box["width"] <= view.width
    assert pictures.first.get_attribute("aria-labelledby")
    assert view.width in (PHONE, DESK)
    # The three days held 4,200, 1,950 and 5,999 cents, and one order more each, of 1,259, 1,296 and 1,333.
    cells = seen.page.locator("#slices-table ~ tbody tr").all_inner_texts()
    assert [each.split("\t")[:4] for each in cells] == [
        [D1, "5,459", "5,359", "\N{MINUS SIGN}100"],
        [D2, "3,246", "3,746", "+500"],
        [D3, "7,332", "6,333", "\N{MINUS SIGN}999"],
    ]


def test_the_way_back_can_be_copied(studio: Served, open_page: Open) -> None:
    seen = open_page(studio.address + PAGES["run"])
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.page.get_by_role("button", name="Copy the command: Put back what it replaced").click()
    expect(seen.page.get_by_role("button", name="Copy the command: Put back")).to_have_text("Copied")
    assert seen.page.evaluate("navigator.clipboard.readText()") == "reslice restore r-0002"


def test_the_keyboard_alone_reaches_everything_and_the_focus_is_seen(studio: Served, open_page: Open) -> None:
    seen = open_page(studio.address + PAGES["run"])
    reached: list[str] = []
    for _ in range(60):
        seen.page.keyboard.press("Tab")
        name = seen.page.evaluate(
            "(() => { const each = document.activeElement;"
            " return each === document.body ? '' : each.name || each.textContent.trim().slice(0, 40); })()"
        )
        if not name:
            break
        reached.append(name)
        assert seen.focus_is_visible(), name
        if seen.page.evaluate("document.activeElement.tagName") == "SUMMARY":
            seen.page.keyboard.press("Enter")
            assert seen.page.locator("details").first.get_attribute("open") is not None
    assert reached[0] == "Skip to the content"
    for name in ("text", "change", "b", "Compare", "amount_cents", "The same as JSON"):
        assert name in reached, reached
