"""The pictures of the front page, taken of the real pages by a real browser: `python -m docs.pictures`.

The lab is the page of the wheel. The studio shows the grocery example's year by day: published, run again, then
corrected, and compared with its source.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.story import RESLICE, command, module
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright
from tests.browser.views import DESK, VIEWS, View, context_of, installed

from reslice.lab import PAGE

IMAGES = Path(__file__).parent / "images"
TARGET = "daily_store_sales"
CORRECTED = "from=2017-03-12&to=2017-03-13"
HEIGHTS = {"lab": 1250, "studio": 960}
STATES = {"light": "", "dark": "#replace_slice/2026-01-01..2026-01-02/twice/current"}
COMPARE_SECONDS = 60


def main() -> None:
    """Take every picture afresh."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        project = Path(name) / "grocery"
        make_year(project)
        browser = playwright.chromium.launch(executable_path=installed())
        for view in (each for each in VIEWS if each.width == DESK):
            take(browser, view, "lab", PAGE.as_uri() + STATES[view.theme])
            with studio(project) as address:
                take(browser, view, "studio", f"{address}target/{TARGET}", compare=True)
        browser.close()


def make_year(project: Path) -> None:
    """Publish a year, run it again, and let eleven baskets be corrected."""
    module("grocery.load", "--into", project)
    for _ in range(2):
        command(RESLICE, "-C", project, "run", TARGET, "2017")
    module("grocery.correct", "--into", project)


@contextmanager
def studio(project: Path) -> Iterator[str]:
    """Serve the studio of a project, and give its address."""
    words: list[str | Path] = [RESLICE, "-C", project, "studio", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().strip()
        finally:
            served.terminate()


def take(browser: Browser, view: View, name: str, address: str, *, compare: bool = False) -> None:
    """Take the upper part of a page as a picture of it."""
    context = context_of(browser, view)
    page = context.new_page()
    page.goto(address)
    if compare:
        compare_all(page)
        page.goto(f"{address}?{CORRECTED}")
    clip: FloatRect = {"x": 0, "y": 0, "width": view.width, "height": HEIGHTS[name]}
    page.screenshot(path=IMAGES / f"{name}_{view.theme}.png", full_page=True, clip=clip)
    context.close()


def compare_all(page: Page) -> None:
    """Compare every slice with its source, and wait for the answer."""
    page.get_by_text("Compare every slice").click()
    page.get_by_text("Compared with the source at").wait_for(timeout=COMPARE_SECONDS * 1000)


if __name__ == "__main__":
    main()
