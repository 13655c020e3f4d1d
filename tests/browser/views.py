"""A page as somebody sees it: how wide, light or dark; and what it must never do there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Literal, cast

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class View:
    """A width in CSS pixels, and a colour scheme."""

    width: int
    theme: Theme

    def __str__(self) -> str:
        return f"{self.width} {self.theme}"


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESK = 390, 1280
VIEWS = tuple(View(width, theme) for width in (PHONE, DESK) for theme in cast("tuple[Theme, ...]", ("light", "dark")))


@dataclass
class Seen:
    """A page, what it asked for, and what the browser complained of: broken rules of the page's policy among it."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def asked_elsewhere(self, home: str) -> list[str]:
        """Return every address beyond `home` that was asked for."""
        return [each for each in self.asked if not each.startswith((home, "data:", "blob:"))]

    def violations(self) -> list[str]:
        """Return what axe-core finds wrong for people who do not see or do not use a mouse; empty is good."""
        found = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {node['html'][:200]} {node['target']}" for each in found for node in each["nodes"]]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window; 0 is good."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return max(0, int(wide))

    def focus_is_visible(self) -> bool:
        """Return whether a reader sees what has the focus: an outline, a ring or a line around it."""
        shown = """() => {
          const style = element => getComputedStyle(element);
          const isMarked = element => style(element).boxShadow !== "none"
            || (style(element).outlineStyle !== "none" && parseFloat(style(element).outlineWidth) > 0);
          const around = element => !element || element === document.body ? false
            : isMarked(element) || around(element.parentElement);
          return around(document.activeElement);
        }"""
        return bool(self.page.evaluate(shown))


def installed() -> str | None:
    """Return the browser that the system has; None leaves it to playwright."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def watched(context: BrowserContext) -> Seen:
    """Return a new page of which every request, error and message of trouble is noted."""
    seen = Seen(context.new_page())

    def note(request: Request) -> None:
        seen.asked.append(request.url)

    seen.page.on("request", note)
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on(
        "console", lambda said: seen.complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    return seen


def context_of(browser: Browser, view: View, *, script: bool = True) -> BrowserContext:
    """Return a browser's context, without a memory of others, in which pages look as in `view`."""
    return browser.new_context(
        viewport={"width": view.width, "height": 900},
        color_scheme=view.theme,
        java_script_enabled=script,
        device_scale_factor=1,
        reduced_motion="reduce",
    )
