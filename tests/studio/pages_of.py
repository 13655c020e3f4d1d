"""Pages of a target's runs, asked of a studio that is served, and taken apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from tests.conformance.orders import Target
from tests.html_page import Page
from tests.studio.served import Served, served


@contextmanager
def pages_of(target: Target) -> Iterator[Served]:
    """Serve the studio of a target's contract; it opens the database itself."""
    if target.database.name == "duckdb":
        target.database.close()  # one process has the file, and the suite opens it again when it is needed
    with served(target.file) as studio:
        yield studio


def page(studio: Served, path: str) -> Page:
    """Return a page that is there, and hold it to what every page of the studio is held to."""
    answer = studio.get(path)
    assert answer.status == 200, answer.text
    found = Page(answer.text)
    keeps_the_policy(found)
    can_be_read_without_seeing_it(found)
    return found


def keeps_the_policy(found: Page) -> None:
    """Hold a page to `default-src 'self'`: no style or script in it, none from elsewhere, and nothing that hides."""
    assert found.named("style") == [] and "javascript:" not in found.source
    assert all(each.get("src", "").startswith("/") for each in found.named("script"))  # type: ignore[union-attr]
    for tag, attributes in found.elements:
        for name, value in attributes.items():
            assert name != "style" and not name.startswith("on"), (tag, name)
            assert name not in ("src", "href", "action") or not re.match(r"(?i)\s*[a-z]+:|//", value or ""), value
    assert [each for each in found.source if not each.isprintable() and each != "\n"] == []


def can_be_read_without_seeing_it(found: Page) -> None:
    """Hold a page to headings in order, tables with a caption and headings, and names that are there once."""
    assert [len(found.named(tag)) for tag in ("title", "h1", "main")][1:] == [1, 1]
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    assert len(found.named("table")) == len(found.named("caption")) == len(found.tables)
    assert all(each.get("scope") in ("col", "row", "colgroup") for each in found.named("th"))
    ids = [str(attributes["id"]) for _, attributes in found.elements if "id" in attributes]
    assert [each for each, count in Counter(ids).items() if count > 1] == []
    for _, attributes in found.elements:
        assert all(each in ids for each in str(attributes.get("aria-labelledby") or "").split())


def words(found: Page) -> str:
    """Return the text of a page with single spaces."""
    return " ".join(found.text.split())


def hrefs(found: Page) -> list[str]:
    """Return where the links of a page lead, without the token."""
    return [re.sub(r"^/[^/]+/", "", str(each.get("href"))) for each in found.named("a")]
