"""What a view is asked and what it answers: plain values, of which the page and its `.json` twin are both made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reslice.studio.jobs import Jobs
from reslice.studio.standing import Words

if TYPE_CHECKING:
    from reslice.project import Project
    from reslice.studio.links import Links

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_HASHED = 16


@dataclass(frozen=True, slots=True)
class Ask:
    """What a page is asked for.

    `place` leads to the project in commands (`-C shop`). `path` are the words of the address that name something, such
    as `run`; `query` those behind the question mark, of a repeated one the first.
    """

    project: Project
    links: Links
    place: str = ""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    words: Words = field(default_factory=Words)
    jobs: Jobs = field(default_factory=Jobs)

    def word(self, name: str) -> str:
        """Return a word of the query; empty when it is not given."""
        return self.query.get(name, "").strip()


@dataclass(frozen=True, slots=True)
class View:
    """The answer of a page. `values` are as JSON has them, `drawn` is what only the page needs: pictures, addresses.

    A page that asks its reader to wait is loaded again after `refresh_seconds`.
    """

    name: str
    values: Mapping[str, Any]
    drawn: Mapping[str, Any] = field(default_factory=dict)
    refresh_seconds: int | None = None

    @property
    def json(self) -> dict[str, Any]:
        """The twin of the page."""
        return {"schema": f"reslice/studio_{self.name}/1", **self.values}


def slug(name: str) -> str:
    """Return how a target is called in addresses and files: as it is where that is plain, else by a digest."""
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and not name.endswith((".json", ".html"))
    return name if is_plain else "~" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASHED]


def instant(moment: datetime | None) -> str | None:
    """Return an instant as ISO text in UTC, to the millisecond; as `show --json` has it."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
