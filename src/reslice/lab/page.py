"""The page: every state as a section of its own, rendered once; a small script only chooses which one is seen."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reslice.lab import sketches, words
from reslice.lab.choices import ALL_DAYS, DEFAULT, RANGES, TIMES, Choice, Days, Pattern, Start
from reslice.lab.states import Group, Results, Stage, State

_FOLDER = Path(__file__).with_name("template")
_SHARED = Path(__file__).parents[1] / "pages"
_WORD = re.compile(r"(:start|:end|\b[A-Z]{2,}\b)")


CHECKLIST = (
    ("Find the writes that cannot be run again.", "reslice audit jobs"),
    (
        "Run the job twice, in a copy of the database.",
        "reslice prove daily_orders --range 2026-01-01..2026-01-02 --sql append.sql --param start=2026-01-01"
        " --param end=2026-01-02",
    ),
    ("Write down table, key and slice.", "reslice init daily_orders --source daily_orders.sql"),
    ("Ask whether table, key and rights will do.", "reslice doctor daily_orders"),
    ("Look before anything is written.", "reslice plan daily_orders 2026-01-01..2026-01-02"),
    ("Take along the days that the same corrections touch.", "reslice plan daily_orders 2026-01-02 --with-affected"),
    ("Replace the range in one commit.", "reslice run daily_orders 2026-01-01..2026-01-02"),
    (
        "Let a scheduler give its interval, whose end is not included.",
        "reslice run daily_orders --interval 2026-01-01 2026-01-03",
    ),
    ("Ask both questions: repeats, and equal to the source?", "reslice verify daily_orders 2026-01-01..2026-01-02"),
    ("See which slices differ, over all there is.", "reslice status daily_orders"),
    ("Read what a run did, group by group.", "reslice show last --diff"),
    ("Know the way back before you need it.", "reslice restore last"),
)
"""What to do in production, in its order, and the command that does it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What the table reports for the range at one moment, in parts: right, too much, missing. Widths are percent."""

    name: str
    cents: int
    over: int
    short: int
    excess: int
    right_width: str
    over_width: str
    total_width: str
    short_width: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One group at one moment; without a group, `absent` says why. `excess`: cents above the orders."""

    group: Group | None
    absent: str
    excess: int
    note: str


@dataclass(frozen=True, slots=True)
class Line:
    """One key of the table, at every moment and in the orders."""

    key: tuple[str, str]
    is_inside: bool
    cells: tuple[Cell, ...]
    orders: Cell


def page_html(results: Results) -> str:
    """Return the whole page."""
    pages = Environment(loader=FileSystemLoader([_FOLDER, _SHARED]), autoescape=True, undefined=StrictUndefined)
    pages.trim_blocks = pages.lstrip_blocks = True
    for function in (words.figure, words.moved, words.counted, words.command_shown):
        pages.globals[function.__name__] = function
    style = _text(_SHARED / "base.css") + _text(_FOLDER / "lab.css")
    script = _text(_FOLDER / "lab.js")
    return pages.get_template("lab.html.j2").render(
        style=Markup(style),
        script=Markup(script),
        policy=Markup(policy(style, script)),
        states=[_state_values(state, _widest(results)) for state in results.states],
        lesson=_lesson_values(results),
        checklist=CHECKLIST,
        refusal=results.refusal,
        **_control_values(),
    )


def policy(style: str, script: str) -> str:
    """Return a policy that lets the page show itself and do nothing else: no address, no other script."""
    hashes = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script))
    rules = "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'"
    return rules.format(*hashes)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _control_values() -> dict[str, Any]:
    """Return what can be chosen, as the controls show it."""
    return {
        "patterns": [(pattern, words.NAMES[pattern], words.MEANINGS[pattern]) for pattern in Pattern],
        "ranges": [(str(days), words.range_shown(days), [(day, day in days) for day in ALL_DAYS]) for days in RANGES],
        "times": list(TIMES.values()),
        "starts": [(start, *words.STARTS[start]) for start in Start],
        "default": DEFAULT,
        "default_times": TIMES[DEFAULT.runs],
        "first_eight": [
            (
                Choice(pattern, days, runs, Start.CURRENT).address,
                Markup("{}, {}, {}").format(words.NAMES[pattern], words.range_shown(days), TIMES[runs]),
            )
            for pattern in (Pattern.APPEND, Pattern.REPLACE_SLICE)
            for days in RANGES
            for runs in TIMES
        ],
        "walk_begins": words.WALK_BEGINS.address,
        "walk_ends": words.WALK_ENDS,
    }


def _lesson_values(results: Results) -> dict[str, Any]:
    """Return the states and groups that the lesson speaks of."""
    upserted, merged = (
        results.state(Choice(pattern, RANGES[0], 2, Start.BEFORE_FOLLOW_UP))
        for pattern in (Pattern.UPSERT, Pattern.MERGE_SCOPED_DELETE)
    )
    accident = results.state(DEFAULT)
    (stale,) = (group for group in upserted.last.groups if group.key in words.differing(upserted))
    return {
        "accident": [stage.group(("2026-01-02", "web")) for stage in accident.stages],
        "accident_address": accident.choice.address,
        "stale": stale,
        "stale_name": words.named([stale]),
        "upserted": upserted.choice.address,
        "merged": merged.choice.address,
        "half": Choice(Pattern.REPLACE_SLICE, RANGES[1], 2, Start.BEFORE_FOLLOW_UP).address,
    }


def _state_values(state: State, widest: int) -> dict[str, Any]:
    """Return everything the template names of one state."""
    choice = state.choice
    return {
        "choice": choice,
        "times": TIMES[choice.runs],
        "verdict": words.verdict(state),
        "badge": words.badge(state),
        "facts": words.facts(state),
        "answers": words.answers(state),
        "next": words.next_step(choice),
        "range": str(choice.days),
        "range_shown": words.range_shown(choice.days),
        "bars": [_bar(stage, state, widest) for stage in state.stages],
        "tick": _percent(state.orders.range.cents, widest),
        "ordered": state.orders.range.cents,
        "moments": [stage.name for stage in state.stages],
        "lines": list(_lines(state)),
        "totals": [("in the range", _sums(state, "range")), ("whole table", _sums(state, "table"))],
        "sql": sql_marked(choice.pattern, choice.days),
        "sketch": _sketch_words(choice.pattern),
    }


def _sketch_words(pattern: Pattern) -> str:
    """Return what a sketch says of itself, without what it says of all of them."""
    told = sketches.comment(pattern).removeprefix("A teaching sketch for throw-away copies: ")
    return told[0].upper() + told[1:]


def _widest(results: Results) -> int:
    """Return the largest sum of any range: all bars of the page have one scale."""
    return max(stage.range.cents for state in results.states for stage in (*state.stages, state.orders))


def _percent(cents: int, widest: int) -> str:
    return f"{100 * cents / widest:.2f}%"


def _bar(stage: Stage, state: State, widest: int) -> Bar:
    inside = {group.key for each in (stage, state.orders) for group in words.groups_inside(state, each.groups)}
    differences = [_cents(stage, key) - _cents(state.orders, key) for key in inside]
    over, short = sum(each for each in differences if each > 0), -sum(each for each in differences if each < 0)
    cents = stage.range.cents
    return Bar(
        name=stage.name,
        cents=cents,
        over=over,
        short=short,
        excess=cents - state.orders.range.cents,
        right_width=_percent(cents - over, widest),
        over_width=_percent(over, widest),
        total_width=_percent(cents, widest),
        short_width=_percent(max(0, state.orders.range.cents - cents), widest),
    )


def _cents(stage: Stage, key: tuple[str, str]) -> int:
    group = stage.group(key)
    return group.cents if group else 0


def _lines(state: State) -> Iterable[Line]:
    """Yield every key that stands in the table at any moment, or in the orders."""
    inside = {str(day) for day in ALL_DAYS if day in state.choice.days}
    for key in sorted({group.key for stage in (*state.stages, state.orders) for group in stage.groups}):
        cells = []
        for before, stage in zip((None, *state.stages), state.stages, strict=False):
            cells.append(_cell(stage, before, state.orders, key))
        ordered = state.orders.group(key)
        yield Line(key, key[0] in inside, tuple(cells), Cell(ordered, "no order", 0, ""))


def _cell(stage: Stage, before: Stage | None, orders: Stage, key: tuple[str, str]) -> Cell:
    group, ordered = stage.group(key), orders.group(key)
    excess = _cents(stage, key) - _cents(orders, key)
    if group is not None:
        return Cell(group, "", excess, "no order any more" if ordered is None else "")
    was_there = before is not None and before.group(key) is not None
    absent = "removed" if was_there else "not there yet" if ordered is not None else "gone"
    return Cell(None, absent, excess, "")


def _sums(state: State, part: str) -> list[dict[str, Any]]:
    """Return what the range or the whole table adds up to at each moment, and in the orders last.

    What is off is `asked` for where the range is off: no run was asked for the days outside.
    """
    ordered = getattr(state.orders, part)
    return [
        {
            "sum": getattr(stage, part),
            "excess": getattr(stage, part).cents - ordered.cents,
            "asked": stage.range.cents != state.orders.range.cents,
        }
        for stage in (*state.stages, state.orders)
    ]


def sql_marked(pattern: Pattern, days: Days) -> Markup:
    """Return the SQL of one run as it was executed, with its keywords and its two bounds told apart."""
    bounds = {":start": f"DATE '{days.start}'", ":end": f"DATE '{days.end}'"}
    pieces = []
    for position, piece in enumerate(_WORD.split(sketches.statement(pattern))):
        if piece in bounds:
            pieces.append(Markup("<mark>{}</mark>").format(bounds[piece]))
        else:
            pieces.append(Markup("<b>{}</b>").format(piece) if position % 2 else Markup.escape(piece))
    return Markup("").join(pieces)
