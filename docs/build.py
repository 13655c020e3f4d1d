"""Bring the pages up to date: `python -m docs.build` writes them, and a test compares them with what it would write.

Two things on a page are made, all else is written by hand: what stands between `<!-- table: NAME -->` and
`<!-- end -->` comes from the code (`reference`), and the output below each `$ command` of a console block from running
it (`console`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from docs import console, examples, reference

ROOT = Path(__file__).parents[1]
_TABLE = re.compile(r"<!-- table: (?P<name>[a-z_. ]+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield every page a reader may open: the front page, everything below docs, and the examples."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / "examples").glob("*/README.md"))


def with_tables(text: str) -> str:
    """Return a page with its tables made from the code as it is now."""

    def fresh(found: re.Match[str]) -> str:
        return f"<!-- table: {found['name']} -->\n{reference.TABLES[found['name']]()}\n<!-- end -->"

    return _TABLE.sub(fresh, text)


def main() -> int:
    """Write every page whose made parts are out of date, and name it."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        if lack := examples.lacking(before):
            print(f"left {page.relative_to(ROOT)}: {lack}")
            continue
        after = console.with_output(with_tables(before))
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
