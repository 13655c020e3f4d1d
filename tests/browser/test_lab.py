"""The lab in a real browser: every state clicked through, by mouse and by keyboard, beside the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from reslice.lab import PAGE
from tests.browser.conftest import Open
from tests.browser.views import DESK, PHONE, Seen, View
from tests.lab.command import serving_lab
from tests.lab.expected import DEFAULT, SOURCE, STATES, Expected, groups

ADDRESS = PAGE.as_uri()
ACCIDENT = "Two runs, and the table reports 58,200 cents too much."
UPSERT = "upsert/2026-01-01..2026-01-02/twice/before_follow_up"
WALK = [
    "append/2026-01-01..2026-01-02/once/current",
    "append/2026-01-01..2026-01-02/twice/current",
    "replace_slice/2026-01-01..2026-01-02/twice/current",
    UPSERT,
    "bounds_disagree/2026-01-01..2026-01-02/twice/current",
    "merge_scoped_delete/2026-01-01..2026-01-02/twice/before_follow_up",
    "where-to-go",
]
SHOWN = """() => {
  const seen = [...document.querySelectorAll(".state")].filter((each) => each.checkVisibility());
  const values = (cell) => [...cell.querySelectorAll("data")].map((each) => Number(each.value));
  const words = (element) => element.innerText.replace(/\\s+/g, " ").trim();
  return seen.map((state) => ({
    address: state.id,
    hash: location.hash.slice(1),
    verdict: words(state.querySelector("h2")),
    answers: [...state.querySelectorAll(".answers strong")].map(words),
    bars: [...state.querySelectorAll(".bar .amount")].map((each) => values(each)[0]),
    rows: [...state.querySelectorAll("tbody tr")].map((row) => [...row.cells].slice(1).map(values)),
    chosen: [...document.querySelectorAll("#controls :checked")].map((each) => each.value),
    glance: document.getElementById("glance").textContent,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
}"""

HIDDEN_STATES_GO = "document.querySelectorAll('.state:not(.shown)').forEach((state) => state.remove())"
"""Nobody is told of them; to look through all of them takes axe half a minute."""


def shown(page: Page) -> dict[str, Any]:
    """Return the one state that a reader sees."""
    found: list[dict[str, Any]] = page.evaluate(SHOWN)
    assert len(found) == 1, [each["address"] for each in found]
    return found[0]


def arrived(page: Page, address: str) -> dict[str, Any]:
    """Wait until a link, or a step in the history, has led to a state, which the browser tells the page later."""
    page.wait_for_function("address => document.querySelector('.state.shown')?.id === address", arg=address)
    return shown(page)


def choose(page: Page, address: str) -> None:
    """Click the radio buttons of a state, as a mouse does, one after the other."""
    for name, value in zip(("pattern", "range", "times", "start"), address.split("/"), strict=True):
        page.evaluate(
            "([name, value]) => document.querySelector(`[name=${name}][value='${value}']`).click()", [name, value]
        )


def cells_of(expected: Expected) -> list[list[list[int]]]:
    """Return the figures of each row of the table, moment by moment, the orders last: the difference, if any, first."""
    right, rows = groups(SOURCE), []
    for key in expected.every_key:
        row = []
        for table in (*expected.tables, SOURCE):
            found = groups(table).get(key)
            excess = (found.cents if found else 0) - (right[key].cents if key in right else 0)
            row.append(([excess] if excess else []) + ([found.cents, found.orders, found.rows] if found else []))
        rows.append(row)
    return rows


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_every_state_is_reached_by_clicks_and_shows_what_the_oracle_says(open_page: Open, width: int) -> None:
    seen = open_page(ADDRESS, View(width, "light"))
    for expected in reversed(STATES.values()):
        choose(seen.page, expected.address)
        found = shown(seen.page)
        assert (found["address"], found["hash"]) == (expected.address, expected.address)
        assert "/".join(sorted(found["chosen"])) == "/".join(sorted(expected.address.split("/")))
        assert found["rows"] == cells_of(expected)
        assert found["bars"] == [expected.in_range(table).cents for table in expected.tables]
        wanted = ["✓ yes" if each else "✕ no" for each in (expected.repeats, expected.is_equal_in_range)]
        assert found["answers"] == wanted
        number = abs(expected.excess) or expected.in_range(SOURCE).cents
        assert f"{number:,} cent" in found["verdict"] and f"{number:,}" in found["glance"]
        assert found["overflow"] <= 0
    assert seen.complaints == []


def test_the_accident_is_what_a_reader_sees_first(open_page: Open) -> None:
    seen = open_page(ADDRESS)
    assert shown(seen.page)["address"] == DEFAULT
    expect(seen.page.locator(".state:visible h2")).to_have_text(
        "Two runs, and the table reports 58,200 cents too much."
    )
    expect(seen.page.locator("#more")).not_to_have_attribute("open", "")


def test_the_mouse_chooses_what_stands_in_sight_and_behind_more(open_page: Open) -> None:
    page = open_page(ADDRESS).page
    page.get_by_text("replace slice", exact=True).first.click()
    page.get_by_text("once", exact=True).click()
    assert shown(page)["address"] == "replace_slice/2026-01-01..2026-01-02/once/current"
    page.get_by_text("More", exact=True).click()
    page.get_by_text("insert missing", exact=True).click()
    page.get_by_text("before the follow-up", exact=True).click()
    assert shown(page)["address"] == "insert_missing/2026-01-01..2026-01-02/once/before_follow_up"


@pytest.mark.parametrize(("is_allowed", "word"), [(True, "Copied"), (False, "Selected")])
def test_the_sql_is_copied_or_where_it_may_not_be_selected(open_page: Open, *, is_allowed: bool, word: str) -> None:
    page = open_page("about:blank").page
    take = "window.taken = text;" if is_allowed else "throw new Error('not allowed');"
    page.add_init_script(
        f"Object.defineProperty(navigator, 'clipboard', {{value: {{writeText: async (text) => {{ {take} }}}}}});"
    )
    page.goto(ADDRESS)
    page.locator(".copy:visible").click()
    expect(page.locator(".copy:visible")).to_have_text(word)
    text = page.evaluate("window.taken" if is_allowed else "getSelection().toString()")
    assert text.startswith("INSERT INTO daily_orders") and "BETWEEN DATE '2026-01-01' AND DATE '2026-01-02'" in text
    choose(page, UPSERT)
    choose(page, DEFAULT)
    expect(page.locator(".copy:visible")).to_have_text("Copy")


# Without a mouse.


def test_the_keyboard_alone_chooses_every_control(open_page: Open) -> None:
    page = open_page(ADDRESS).page
    press = page.keyboard.press

    def tab_to(locator: str) -> None:
        for _ in range(10):
            press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", locator):
                return
        raise AssertionError(f"Tab never comes to {locator}")

    tab_to("#theme")
    press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    tab_to("[name=pattern]")
    press("ArrowDown")
    assert shown(page)["address"] == "replace_slice/2026-01-01..2026-01-02/twice/current"
    assert page.evaluate("document.activeElement.value") == "replace_slice", "the focus stays where it was"
    tab_to("[name=range]")
    press("ArrowDown")
    tab_to("[name=times]")
    press("ArrowUp")
    assert shown(page)["address"] == "replace_slice/2026-01-02..2026-01-03/once/current"
    tab_to("summary")
    press("Enter")
    tab_to("[name=start]")
    press("ArrowDown")
    assert shown(page)["address"] == "replace_slice/2026-01-02..2026-01-03/once/before_follow_up"
    tab_to(".next a")
    press("Enter")
    assert shown(page)["address"] == "replace_slice/2026-01-02..2026-01-03/twice/before_follow_up"


def test_whatever_has_the_focus_is_seen_to_have_it(open_page: Open, view: View) -> None:
    seen = open_page(ADDRESS, view)
    stops = 0
    while True:
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("document.activeElement === document.body || document.activeElement === null"):
            break
        assert seen.focus_is_visible(), seen.page.evaluate("document.activeElement.outerHTML")
        stops += 1
        assert stops < 60
    assert stops > 12


# The walk, the history, the address.


def test_next_walks_through_and_the_back_button_walks_back(open_page: Open) -> None:
    page = open_page(ADDRESS).page
    page.get_by_text("Walk through it").click()
    for place, address in enumerate(WALK[:-1]):
        found = arrived(page, address)
        assert found["hash"] == address
        assert "/".join(sorted(found["chosen"])) == "/".join(sorted(address.split("/")))
        # What is read aloud next is the verdict.
        page.wait_for_function("document.activeElement === document.querySelector('.state.shown h2')")
        if place < len(WALK) - 1:
            page.locator(".state:visible .next a").click()
    expect(page.locator("#where-to-go")).to_be_in_viewport()
    assert shown(page)["address"] == WALK[-2], "the checklist is no state"
    for address in reversed(WALK[:-1]):
        page.go_back()
        arrived(page, address)
    page.go_back()
    arrived(page, DEFAULT)


def test_the_back_button_takes_a_choice_back(open_page: Open) -> None:
    page = open_page(ADDRESS).page
    choose(page, UPSERT)
    page.reload()
    assert shown(page)["address"] == UPSERT
    page.go_back()
    page.go_forward()
    assert arrived(page, UPSERT)["hash"] == UPSERT


def test_an_address_with_a_state_opens_that_state(open_page: Open) -> None:
    seen = open_page(f"{ADDRESS}#{UPSERT}")
    found = shown(seen.page)
    assert (found["address"], sorted(found["chosen"])) == (UPSERT, sorted(UPSERT.split("/")))
    expect(seen.page.locator("#more")).to_have_attribute("open", "")
    assert seen.complaints == []


@pytest.mark.parametrize(
    "hash", ["#nonsense", "#append/2026-01-01..2026-01-02/thrice/current", "#%E0%A4%A", "#", "#<b>"]
)
def test_an_address_that_names_nothing_is_the_default(open_page: Open, hash: str) -> None:
    seen = open_page(ADDRESS + hash)
    assert shown(seen.page)["address"] == DEFAULT
    choose(seen.page, UPSERT)
    seen.page.evaluate("(hash) => { location.hash = hash; }", hash)
    seen.page.wait_for_function("document.querySelector('.state.default').checkVisibility()")
    assert shown(seen.page)["address"] == DEFAULT
    assert seen.complaints == []


# What it must not do, and what it must not need.


def test_nothing_is_asked_for_but_the_page_itself(open_page: Open) -> None:
    seen = open_page(ADDRESS)
    seen.page.context.set_offline(True)
    seen.page.reload()
    choose(seen.page, UPSERT)
    seen.page.locator("#theme").click()
    assert set(seen.asked) <= {ADDRESS, "data:,"}
    assert seen.complaints == []


def test_the_command_serves_the_same_page_and_nothing_else_is_asked_for(open_page: Open) -> None:
    with serving_lab() as (_, home):
        seen = open_page(f"{home}#{UPSERT}")
        assert shown(seen.page)["address"] == UPSERT
        seen.page.locator(".state:visible .next a").click()
        arrived(seen.page, WALK[4])
        seen.page.reload()
        assert shown(seen.page)["address"] == WALK[4]
    assert {address.partition("#")[0] for address in seen.asked} <= {home, "data:,"}
    assert seen.complaints == []


def test_without_javascript_the_default_is_read_and_the_links_lead_on(open_page: Open) -> None:
    page = open_page(ADDRESS, script=False).page
    visible = page.locator(".state:visible")
    expect(visible).to_have_count(1)
    expect(visible.locator("h2")).to_have_text(ACCIDENT)
    expect(page.locator("#controls")).to_be_hidden()
    visible.locator(".next a").click()
    expect(visible).to_have_count(1)
    expect(visible).to_have_id("replace_slice/2026-01-01..2026-01-02/twice/current")
    page.get_by_text("append, 2026-01-02..2026-01-03, once").click()
    expect(visible).to_have_id("append/2026-01-02..2026-01-03/once/current")
    expect(page.locator(".lesson")).to_be_visible()


def test_where_nothing_may_be_stored_the_theme_changes_all_the_same(open_page: Open) -> None:
    seen = open_page("about:blank")
    seen.page.add_init_script(
        "for (const name of ['getItem', 'setItem']) Storage.prototype[name] = () => { throw new Error('no store'); };"
    )
    seen.page.goto(ADDRESS)
    button, root = seen.page.locator("#theme"), seen.page.locator("html")
    expect(button).to_have_text("Theme: auto")
    for theme in ("light", "dark"):
        button.click()
        expect(button).to_have_text(f"Theme: {theme}")
        expect(root).to_have_attribute("data-theme", theme)
    button.click()
    expect(button).to_have_text("Theme: auto")
    assert root.get_attribute("data-theme") is None
    assert seen.complaints == []


def test_the_theme_is_kept_and_is_what_the_page_is_painted_in(open_page: Open) -> None:
    page = open_page(ADDRESS, View(DESK, "light")).page
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.reload()
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 22)"


# For everybody, on paper, at once.


def test_axe_finds_nothing_and_the_page_is_as_wide_as_the_window(open_page: Open, view: View) -> None:
    seen = open_page(f"{ADDRESS}#insert_missing/2026-01-01..2026-01-02/twice/before_follow_up", view)
    assert seen.overflow() == 0
    seen.page.evaluate(HIDDEN_STATES_GO)
    assert seen.violations() == []


def test_on_paper_stands_the_chosen_state_and_the_lesson(open_page: Open) -> None:
    page = open_page(f"{ADDRESS}#{UPSERT}", View(DESK, "dark")).page
    page.emulate_media(media="print")
    assert shown(page)["address"] == UPSERT
    for selector, is_printed in (("#controls", False), ("#theme", False), (".lesson", True), ("footer", True)):
        assert page.locator(selector).is_visible() is is_printed
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_content_is_there_in_half_a_second(open_page: Open) -> None:
    """One of ten openings: on a machine that does much else, the first are not."""
    took = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    times: list[float] = []
    while len(times) < 10 and min(times, default=1000) >= 500:
        seen: Seen = open_page(ADDRESS)
        seen.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        times.append(float(seen.page.evaluate(took)))
    assert min(times) < 500, times
