"""A real Chromium: Debian's where there is one, else the one that playwright has installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright

from tests.browser.views import DESK, PHONE, VIEWS, Seen, View, context_of, installed, watched

Open = Callable[..., Seen]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=installed())
        except Error as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"no Chromium can be started here: {error.message.splitlines()[0]}")
        yield started
        started.close()


DEFAULT_VIEWS = (View(PHONE, "dark"), View(DESK, "light"))
VIEW_PARAMS = [pytest.param(each, marks=() if each in DEFAULT_VIEWS else pytest.mark.slow) for each in VIEWS]


@pytest.fixture(params=VIEW_PARAMS, ids=str)
def view(request: pytest.FixtureRequest) -> View:
    """Both widths and both themes; all four of them are slow."""
    view: View = request.param
    return view


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open an address in a view of its own: `open_page(address, view)`, with `script=False` without JavaScript."""
    contexts: list[BrowserContext] = []

    def opened(address: str, view: View = VIEWS[-2], *, script: bool = True) -> Seen:
        contexts.append(context_of(browser, view, script=script))
        seen = watched(contexts[-1])
        seen.page.goto(address)
        return seen

    yield opened
    for each in contexts:
        each.close()
