"""Put the retail example into a database: the pipeline's tables and views, and events as they arrive.

Works on a connection that is handed in and never opens or closes one. Nothing here recomputes or publishes anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

FOLDER = Path(__file__).parent
PROJECT = FOLDER / "project"
"""The example project: `reslice.yml` and its SQL files, ready to be copied."""

EVENT_FIELDS = ("event_id", "order_id", "order_date", "channel", "amount_cents", "source_version", "updated_at")
WHOLE_NUMBERS = ("amount_cents", "source_version")

Event = Mapping[str, str | int | None]
"""One event by field name. Every field may be None: what an event lacks is for the pipeline to reject."""


class Connection(Protocol):
    """What is asked of a database connection; an open DuckDB connection has it."""

    def execute(self, query: str, /) -> Any:
        """Run every statement of `query`."""

    def executemany(self, query: str, parameters: Any, /) -> Any:
        """Run `query` once per row of parameters."""


def initial_events() -> list[Event]:
    """Return the events of the first load, in order of arrival."""
    return read_events(FOLDER / "initial_events.json")


def follow_up_events() -> list[Event]:
    """Return the events that arrive later: corrections, repeats, a stale one, a late one and a mistake."""
    return read_events(FOLDER / "follow_up_events.json")


def read_events(path: Path) -> list[Event]:
    """Return the `events` array of a JSON file.

    Raises ValueError when an event has other fields than `EVENT_FIELDS`, or a value the column of `order_events` could
    not hold as it is (a fraction of a cent would be rounded in silence).
    """
    events: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["events"]
    for position, event in enumerate(events, start=1):
        mistakes = shape_mistakes(event)
        if mistakes:
            raise ValueError(f"{path.name}, event {position}: {'; '.join(mistakes)}")
    return list(events)


def shape_mistakes(event: Mapping[str, Any]) -> list[str]:
    """Return what keeps an event out of `order_events`, empty when nothing does. Its meaning is not looked at."""
    if set(event) != set(EVENT_FIELDS):
        return [f"fields are {', '.join(sorted(event))}; expected {', '.join(EVENT_FIELDS)}"]
    expected = {field: int if field in WHOLE_NUMBERS else str for field in EVENT_FIELDS}
    return [
        f"{field} is {event[field]!r}, not {'a whole number' if kind is int else 'text'}"
        for field, kind in expected.items()
        if event[field] is not None and type(event[field]) is not kind
    ]


def create_pipeline(connection: Connection) -> None:
    """Create `order_events`, the views over it and an empty `daily_orders` in an empty database."""
    connection.execute((PROJECT / "sql" / "pipeline.sql").read_text(encoding="utf-8"))


def load_events(connection: Connection, events: Iterable[Event], *, loaded_at: datetime) -> None:
    """Add `events` to `order_events` as arrived at `loaded_at`, an instant with its offset from UTC.

    Nothing is checked or left out: the pipeline must see repeats and mistakes. Raises ValueError for an instant
    without an offset, which a database would read in its session's time zone.
    """
    if loaded_at.utcoffset() is None:
        raise ValueError(f"loaded_at needs its offset from UTC: {loaded_at.isoformat()}")
    rows: Sequence[list[Any]] = [[*(event[field] for field in EVENT_FIELDS), loaded_at] for event in events]
    placeholders = ", ".join("?" * (len(EVENT_FIELDS) + 1))
    columns = ", ".join((*EVENT_FIELDS, "loaded_at"))
    connection.executemany(f"INSERT INTO order_events ({columns}) VALUES ({placeholders})", rows)
