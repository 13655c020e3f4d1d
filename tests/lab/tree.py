"""A page of HTML as a tree, so that a test can ask what stands in which part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "wbr", "hr", "img"}


@dataclass
class Node:
    """An element: its attributes, and what it holds, texts among it."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())

    @property
    def text(self) -> str:
        pieces = [each if isinstance(each, str) else each.text for each in self.children]
        return "".join(pieces)

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    @property
    def figures(self) -> list[int]:
        """The numbers of the page's data below it; each is checked against the text that a reader sees."""
        found = []
        for each in self.all("data"):
            value = int(each.attributes["value"] or "")
            shown = each.text.replace(",", "").replace("\N{MINUS SIGN}", "-").replace("+", "")
            assert value == int(shown), each
            found.append(value)
        return found

    def all(self, tag: str, name: str = "") -> list[Node]:
        """Return the elements of a tag below it, with a class where one is named."""
        return [each for each in self.below() if each.tag == tag and (not name or name in each.classes)]

    def one(self, tag: str, name: str = "") -> Node:
        (found,) = self.all(tag, name)
        return found

    def below(self) -> Iterator[Node]:
        for each in self.children:
            if isinstance(each, Node):
                yield each
                yield from each.below()

    def text_without_figures(self) -> str:
        return "".join(
            each if isinstance(each, str) else "" if each.tag == "data" else each.text_without_figures()
            for each in self.children
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"an attribute stands twice: {attrs}"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(text: str) -> Node:
    """Return the root of a page; every element must be closed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], [each.tag for each in reader.open]
    return reader.root
