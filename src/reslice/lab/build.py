"""Make the page and its figures afresh: `python -m reslice.lab.build`. A test fails while they are out of date."""

from __future__ import annotations

import sys

from reslice.lab import PAGE, measure, states
from reslice.lab.page import page_html


def main() -> int:
    """Write both files, and name them."""
    results = measure.results()
    for path, text in ((states.FILE, states.to_text(results)), (PAGE, page_html(results))):
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {path.name}, {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
