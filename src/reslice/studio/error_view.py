"""The page of an error: its four parts, in words; what may go away by itself is looked at again."""

from __future__ import annotations

from reslice.errors import ResliceError
from reslice.layout import placed
from reslice.report_json import error_value
from reslice.studio.values import View

AGAIN_SECONDS = 2
"""How long a page that says "busy" stands before it is loaded again."""


def view(error: ResliceError, place: str) -> View:
    """Return what is wrong, what was found, what stayed as it was, and what to do."""
    values = error_value(error, place=place) | {
        "word": error.word,
        "about": error.about,
        "retry": error.retry,
    }
    values["next"] = placed(error.next, place)
    drawn = {"again_seconds": AGAIN_SECONDS if error.retry else None}
    return View("error", values, drawn, AGAIN_SECONDS if error.retry else None)
