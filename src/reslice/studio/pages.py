"""A view as a page of HTML, or as its `.json` twin."""

from __future__ import annotations

import json
import re
from calendar import month_abbr
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reslice.layout import counted
from reslice.page_template import PAGES, environment

if TYPE_CHECKING:
    from jinja2 import Environment

    from reslice.studio.links import Links
    from reslice.studio.values import View

FOLDER = Path(__file__).parent
STATIC = {
    "base.css": (PAGES / "base.css", "text/css; charset=utf-8"),
    "studio.css": (FOLDER / "static" / "studio.css", "text/css; charset=utf-8"),
    "run.css": (FOLDER / "static" / "run.css", "text/css; charset=utf-8"),
    "run.js": (FOLDER / "static" / "run.js", "text/javascript; charset=utf-8"),
    "icon.svg": (FOLDER / "static" / "icon.svg", "image/svg+xml"),
    "studio.js": (FOLDER / "static" / "studio.js", "text/javascript; charset=utf-8"),
}
"""The files beside the pages, and what they are."""


def html(view: View, links: Links, address: str, project_name: str) -> str:
    """Return the page of a view that stands at `address`."""
    frame = {
        "links": links,
        "twin": links.twin(address),
        "project_name": project_name,
        "refresh_seconds": view.refresh_seconds,
    }
    return _templates().get_template(f"{view.name}.html.j2").render({**view.values, **view.drawn, **frame})


def twin(view: View) -> str:
    """Return the `.json` twin of a view: the same values, without separators."""
    return json.dumps(view.json, ensure_ascii=False, indent=1)


def number(value: int | Decimal | str | None, none: str = "\N{EN DASH}") -> str:
    """Return an exact number with its thousands separated; decimals may be given as text."""
    if value is None:
        return none
    exact = Decimal(value)
    return f"{exact:,f}".replace("-", "\N{MINUS SIGN}") if exact.is_finite() else str(exact)


def signed(value: int | Decimal | str | None) -> str:
    """Return a difference with its sign, its thousands separated; nothing where there is none."""
    if value is None:
        return ""
    text = number(value)
    return f"+{text}" if Decimal(value) > 0 else text


def when(value: datetime | str | None) -> str:
    """Return an instant to the minute, in UTC; the year of one that is not of this year."""
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, datetime) else value
    day = date.fromisoformat(text[:10])
    year = "" if day.year == datetime.now(UTC).year else f" {day.year}"
    return f"{day.day} {month_abbr[day.month]}{year} {text[11:16]}"


_DAYS = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.\.(\d{4}-\d{2}-\d{2}))?")
_HOUR = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})([+-]\d{2}:\d{2})?")
_PARTS_SHOWN = 3


def said(range_text: str) -> str:
    """Return a range of days as people say it, `2 to 4 Mar 2026`, and hours likewise; any other as it is typed.

    Hours keep their offset, because a clock shows some of them twice. Of many ranges the first stand for all.
    """
    parts = range_text.split(",")
    if len(parts) > _PARTS_SHOWN + 1:
        return f"{said(','.join(parts[:_PARTS_SHOWN]))} and {len(parts) - _PARTS_SHOWN} more ranges"
    hours = [_HOUR.fullmatch(each) for each in range_text.split("..")]
    if all(hours):
        words = ([said(hour[1]), hour[2], hour[3] or ""] for hour in hours if hour is not None)
        return " to ".join(" ".join(filter(None, each)) for each in words)
    found = _DAYS.fullmatch(range_text)
    if found is None:
        return range_text.replace("..", " to ").replace(",", ", ")
    first, last = date.fromisoformat(found[1]), date.fromisoformat(found[2] or found[1])
    end = f"{last.day} {month_abbr[last.month]} {last.year}"
    if first == last:
        return end
    begin = [str(first.day)]
    if (first.year, first.month) != (last.year, last.month):
        begin.append(month_abbr[first.month])
    if first.year != last.year:
        begin.append(str(first.year))
    return f"{' '.join(begin)} to {end}"


def lasted(milliseconds: float | None) -> str:
    """Return a time in the unit that suits it: milliseconds, seconds, minutes or hours."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


@cache
def _templates() -> Environment:
    found = environment(FOLDER / "templates")
    filters: Mapping[str, Any] = {
        "number": number,
        "signed": signed,
        "said": said,
        "when": when,
        "lasted": lasted,
        "counted": counted,
    }
    found.filters.update(filters)
    return found
