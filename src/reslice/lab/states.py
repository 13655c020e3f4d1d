"""What came of each choice, as the committed file holds it: result sets of DuckDB, one state per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from reslice.lab.choices import Choice, Days, Pattern, Start

FILE = Path(__file__).with_name("states.json")
NOTE = "Synthetic orders, not accounting revenue. Made by DuckDB from sql/: python -m reslice.lab.build"


@dataclass(frozen=True, slots=True)
class Sum:
    """What a table, or a part of it, adds up to: a row that stands there twice counts twice."""

    rows: int
    orders: int
    cents: int


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one key, added up, and how many physical rows they are."""

    order_date: str
    channel: str
    rows: int
    orders: int
    cents: int

    @property
    def key(self) -> tuple[str, str]:
        """The values of the target key."""
        return self.order_date, self.channel


@dataclass(frozen=True, slots=True)
class Stage:
    """A table at one moment: its groups, its physical rows (day, channel, orders, cents) and two sums."""

    name: str
    table: Sum
    range: Sum
    groups: tuple[Group, ...]
    rows: tuple[tuple[str, str, int, int], ...]

    def group(self, key: tuple[str, str]) -> Group | None:
        """Return the group of a key, None where there is none."""
        return next((group for group in self.groups if group.key == key), None)


@dataclass(frozen=True, slots=True)
class State:
    """What came of a choice: the table before and after each run, and what the orders add up to.

    `repeats`: one more run after the first leaves the same rows. The two others compare the table after the last run
    with the orders: in the range, and everywhere.
    """

    choice: Choice
    stages: tuple[Stage, ...]
    orders: Stage
    repeats: bool
    equal_in_range: bool
    equal_everywhere: bool

    @property
    def before(self) -> Stage:
        """The table before the first run."""
        return self.stages[0]

    @property
    def last(self) -> Stage:
        """The table after the last run."""
        return self.stages[-1]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What came of an append to a table whose key is enforced: the database's words, and the table after them."""

    key: str
    message: str
    before: Sum
    after: Sum


@dataclass(frozen=True, slots=True)
class Results:
    """All that the page shows."""

    states: tuple[State, ...]
    refusal: Refusal

    def state(self, choice: Choice) -> State:
        """Return what came of one choice."""
        return next(state for state in self.states if state.choice == choice)


def to_text(results: Results) -> str:
    """Return the results as the text of the file."""
    lines = ",\n".join(_line(_state_value(state)) for state in results.states)
    refusal = _line(asdict(results.refusal))
    return f'{{"note": {json.dumps(NOTE)},\n"states": [\n{lines}\n],\n"enforced_key": {refusal}}}\n'


def from_text(text: str) -> Results:
    """Return the results that a file holds."""
    value = json.loads(text)
    key = value["enforced_key"]
    refusal = Refusal(key["key"], key["message"], Sum(**key["before"]), Sum(**key["after"]))
    return Results(tuple(_state(each) for each in value["states"]), refusal)


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _state_value(state: State) -> dict[str, Any]:
    choice = state.choice
    return {
        "address": choice.address,
        "pattern": choice.pattern,
        "start_date": str(choice.days.start),
        "end_date": str(choice.days.end),
        "runs": choice.runs,
        "start": choice.start,
        "stages": [asdict(stage) for stage in state.stages],
        "orders": asdict(state.orders),
        "repeats": state.repeats,
        "equal_in_range": state.equal_in_range,
        "equal_everywhere": state.equal_everywhere,
    }


def _state(value: Mapping[str, Any]) -> State:
    days = Days(date.fromisoformat(value["start_date"]), date.fromisoformat(value["end_date"]))
    return State(
        choice=Choice(Pattern(value["pattern"]), days, value["runs"], Start(value["start"])),
        stages=tuple(_stage(each) for each in value["stages"]),
        orders=_stage(value["orders"]),
        repeats=value["repeats"],
        equal_in_range=value["equal_in_range"],
        equal_everywhere=value["equal_everywhere"],
    )


def _stage(value: Mapping[str, Any]) -> Stage:
    return Stage(
        name=value["name"],
        table=Sum(**value["table"]),
        range=Sum(**value["range"]),
        groups=tuple(Group(**each) for each in value["groups"]),
        rows=tuple((day, channel, orders, cents) for day, channel, orders, cents in value["rows"]),
    )
