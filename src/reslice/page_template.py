"""The templates of pages: whatever is put into one is escaped twice, in one place.

Once so that no character hides or moves another, and once for HTML.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reslice.layout import escaped

if TYPE_CHECKING:
    from jinja2 import Environment

PAGES = Path(__file__).parent / "pages"
"""The templates of the pages that stand alone, and the parts that others share with them."""


def environment(*folders: Path) -> Environment:
    """Return an environment that finds templates in `folders`, then in `PAGES`; a name it is not given is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader([*folders, PAGES])
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=safe)
    pages.trim_blocks = pages.lstrip_blocks = True
    return pages


def safe(value: Any) -> Any:
    """Return what a template is about to put in, without a character that hides or moves another."""
    is_made = hasattr(value, "__html__")  # by a macro of the template, of values that went through here
    return escaped(value) if isinstance(value, str) and not is_made else value
