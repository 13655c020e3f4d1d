"""A page of HTML taken apart, so that a test can ask for its elements, its text and the rows of its tables."""

from __future__ import annotations

from html.parser import HTMLParser

BLOCKS = {"p", "h1", "h2", "h3", "dt", "dd", "li", "pre", "td", "th", "caption"}
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, the text below each id, and rows of each table."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self._cell: list[str] | None = None
        self._caption = False
        self.source = text
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute stands twice: {attrs}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], False
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._cell = []
        if tag == "caption":
            self._caption = True
            self._key = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag in BLOCKS:
            self.text += "\n"
        if tag in ("td", "th"):
            assert self._cell is not None
            self._rows[-1].append(" ".join(" ".join(self._cell).split()))
            self._cell = None
        if tag == "caption":
            self._caption = False
        if tag == "table":
            self.tables[self._key] = self._rows

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        self.text += data
        if self._caption:
            self._key += data
        if self._cell is not None:
            self._cell.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def rows(self, caption: str) -> list[list[str]]:
        """Return the rows of the one table whose caption begins so, without its headings."""
        (found,) = [rows for key, rows in self.tables.items() if key.startswith(caption)]
        return found[1:]
