"""The committed page of the lab: every number in every state against the oracle, and what it may never do."""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from hashlib import sha256

import click
import pytest

from reslice.cli import root
from reslice.lab import PAGE
from reslice.retail.oracle import Totals, totals, within
from tests.lab.expected import DEFAULT, SOURCE, STATES, Expected, Key, groups
from tests.lab.tree import Node, read

TEXT = PAGE.read_text(encoding="utf-8")
TREE = read(TEXT)
SECTIONS = {each.attributes["id"] or "": each for each in TREE.all("section", "state")}
states = pytest.mark.parametrize("expected", STATES.values(), ids=STATES)


def section_of(expected: Expected) -> Node:
    return SECTIONS[expected.address]


def key_of(row: Node) -> Key:
    head = row.one("th")
    return head.one("span", "day").text, head.one("span", "channel").text


def figures_of(cell: Node) -> tuple[list[int], list[int]]:
    """Return the difference that is marked in a cell, if any, and its cents, orders and rows, if any."""
    marked = [number for each in cell.all("span", "excess") for number in each.figures]
    return marked, cell.figures[len(marked) :]


def shown(found: Totals | None) -> list[int]:
    return [] if found is None else [found.cents, found.orders, found.rows]


def test_every_state_is_a_section_and_one_is_the_default() -> None:
    assert SECTIONS.keys() == STATES.keys()
    assert [each.attributes["id"] for each in TREE.all("section", "default")] == [DEFAULT]


@states
def test_the_groups_are_the_oracles_at_every_moment(expected: Expected) -> None:
    body = section_of(expected).one("table", "groups").one("tbody")
    assert [key_of(row) for row in body.all("tr")] == expected.every_key
    right = groups(SOURCE)
    for row in body.all("tr"):
        key = key_of(row)
        is_inside = str(expected.days.start) <= key[0] <= str(expected.days.end)
        assert ("inside" in row.classes) == is_inside
        assert ("inside the range" in row.words) == is_inside, "not by colour alone"
        for cell, table in zip(row.all("td"), (*expected.tables, SOURCE), strict=True):
            found = groups(table).get(key)
            excess = (found.cents if found else 0) - (right[key].cents if key in right else 0)
            assert figures_of(cell) == ([excess] if excess else [], shown(found))


@states
def test_what_became_of_a_group_is_said_in_words(expected: Expected) -> None:
    right, tables = groups(SOURCE), [groups(table) for table in expected.tables]
    for row in section_of(expected).one("table", "groups").one("tbody").all("tr"):
        key = key_of(row)
        for place, (cell, table) in enumerate(zip(row.all("td"), tables, strict=False)):
            was_there = place > 0 and key in tables[place - 1]
            assert ("removed" in cell.words) == (was_there and key not in table)
            assert ("no order any more" in cell.words) == (key in table and key not in right)


@states
def test_the_totals_are_the_oracles(expected: Expected) -> None:
    rows = section_of(expected).one("tfoot").all("tr")
    assert [row.one("th").words for row in rows] == ["in the range", "whole table"]
    for row, is_range in zip(rows, (True, False), strict=True):
        for cell, table in zip(row.all("td"), (*expected.tables, SOURCE), strict=True):
            found, right = (totals(within(each, expected.days) if is_range else each) for each in (table, SOURCE))
            excess = found.cents - right.cents
            assert figures_of(cell) == ([excess] if excess else [], shown(found))


@states
def test_the_bars_are_as_long_as_the_oracle_says(expected: Expected) -> None:
    widest = max(each.in_range(table).cents for each in STATES.values() for table in each.tables)
    right = expected.in_range(SOURCE).cents
    bars = section_of(expected).all("div", "bar")
    for bar, table in zip(bars, expected.tables, strict=True):
        cents, (over, short) = expected.in_range(table).cents, expected.over_and_short(table)
        assert bar.one("span", "amount").figures == [cents, *([over] if over else []), *([-short] if short else [])]
        assert ("too much" in bar.words, "missing" in bar.words) == (over > 0, short > 0)
        assert percent(bar.one("rect", "right"), "width") == pytest.approx(100 * (cents - over) / widest, abs=0.01)
        assert percent(bar.one("line", "tick"), "x1") == pytest.approx(100 * right / widest, abs=0.01)
        hatched = bar.all("rect", "over")
        assert len(hatched) == (over > 0)
        for each in hatched:
            assert percent(each, "width") == pytest.approx(100 * over / widest, abs=0.01)
        dashed = bar.all("rect", "short")
        assert len(dashed) == (cents < right)
        for each in dashed:
            assert percent(each, "x") == pytest.approx(100 * cents / widest, abs=0.01)
            assert percent(each, "width") == pytest.approx(100 * (right - cents) / widest, abs=0.01)
    assert section_of(expected).one("p", "legend").figures == [right]


def percent(node: Node, name: str) -> float:
    return float((node.attributes[name] or "").removesuffix("%"))


@states
def test_the_verdict_is_one_sentence_and_says_how_far_off_the_table_is(expected: Expected) -> None:
    verdict = section_of(expected).one("h2", "verdict")
    assert verdict.words.startswith(("One run, and ", "Two runs, and ")[expected.runs - 1])
    assert verdict.words.endswith(".") and verdict.words.count(".") == 1
    if expected.excess:
        word = "too much" if expected.excess > 0 else "too little"
        assert verdict.one("em").words == f"{abs(expected.excess):,} cents {word}"
        assert verdict.figures == [abs(expected.excess)]
    else:
        assert expected.is_equal_in_range
        assert verdict.figures == [expected.in_range(SOURCE).cents]
        moved = groups(expected.tables[0]) != groups(expected.tables[-1])
        assert ("nothing has moved" in verdict.words) == (not moved)
    glance = section_of(expected).attributes["data-glance"] or ""
    assert f"{abs(verdict.figures[0]):,}" in glance


@states
def test_both_answers_are_given_with_a_sign_and_a_word(expected: Expected) -> None:
    told = {each.one("dt").words: each.one("dd").words for each in section_of(expected).one("dl", "answers").all("div")}
    answers = {"repeats": expected.repeats, "equal to the source": expected.is_equal_in_range}
    assert told.keys() == answers.keys()
    for question, is_so in answers.items():
        assert told[question].startswith("✓ yes " if is_so else "✕ no ")
    badge = section_of(expected).one("p", "badge").words
    assert badge == (
        "✕ Not safe to run again"
        if not expected.repeats
        else "✓ Safe to run again"
        if expected.is_equal_in_range
        else "! Safe to run again, and wrong"
    )


@states
def test_the_facts_behind_the_verdict_hold(expected: Expected) -> None:
    facts = [each.words for each in section_of(expected).one("ul", "found").all("li")]
    last, right = (groups(within(table, expected.days)) for table in (expected.tables[-1], SOURCE))
    assert facts.pop(0) == f"The orders of the range add up to {expected.in_range(SOURCE).cents:,} cents."
    repeated = [key for key, found in last.items() if found.rows > 1]
    if repeated:
        assert facts.pop(0).startswith(f"{len(repeated)} of {len(last)} groups in the range stand")
    for key in sorted(last.keys() - right.keys()):
        held = last[key].cents
        assert facts.pop(0) == f"{' '.join(key)} has no order any more and is still there, with {held:,} cents."
    _, short = expected.over_and_short(expected.tables[-1])
    if short:
        assert f"less than the orders: {short:,} cents missing." in facts.pop(0)
    for key in sorted(groups(within(expected.tables[0], expected.days)).keys() - last.keys()):
        assert facts.pop(0) == f"{' '.join(key)} has no order any more, and its row is gone."
    outside = [
        day
        for day in ("2026-01-01", "2026-01-03")
        if not expected.days.start <= type(expected.days.start).fromisoformat(day) <= expected.days.end
    ]
    for day in outside:
        there, wanted = (
            {key: value for key, value in groups(table).items() if key[0] == day}
            for table in (expected.tables[-1], SOURCE)
        )
        if there != wanted:
            assert facts.pop(0) == f"{day}, outside the range, is not what the orders say: no run was asked for it."
    assert facts == []


@states
def test_the_sql_has_its_two_bounds_marked_as_often_as_they_stand_there(expected: Expected) -> None:
    code = section_of(expected).one("pre")
    start, end = (f"DATE '{day}'" for day in expected.days)
    assert {each.text for each in code.all("mark")} == {start, end}
    assert len(code.all("mark")) == code.text.count("DATE '")
    assert ":start" not in code.text and ":end" not in code.text


@states
def test_every_number_stands_in_the_data_without_separators_too(expected: Expected) -> None:
    section = section_of(expected)
    assert section.figures
    told = section.text_without_figures().replace(section.one("pre").text, "")
    told = re.sub(r"2026-01-0[1-3]", "", told).replace("after run 1", "").replace("after run 2", "")
    assert re.findall(r"\d+", told.replace("Key", "")) == []


def test_the_walk_goes_from_append_once_to_the_checklist_in_six_clicks() -> None:
    (begin,) = [each for each in TREE.all("a") if each.words == "Walk through it"]
    seen = [(begin.attributes["href"] or "").removeprefix("#")]
    while seen[-1] in SECTIONS:
        seen.append((SECTIONS[seen[-1]].one("p", "next").one("a").attributes["href"] or "").removeprefix("#"))
    assert seen == [
        "append/2026-01-01..2026-01-02/once/current",
        "append/2026-01-01..2026-01-02/twice/current",
        "replace_slice/2026-01-01..2026-01-02/twice/current",
        "upsert/2026-01-01..2026-01-02/twice/before_follow_up",
        "bounds_disagree/2026-01-01..2026-01-02/twice/current",
        "merge_scoped_delete/2026-01-01..2026-01-02/twice/before_follow_up",
        "where-to-go",
    ]


def test_every_link_leads_to_a_place_on_the_page() -> None:
    places = {each.attributes["id"] for each in TREE.below() if "id" in each.attributes}
    links = [each.attributes["href"] or "" for each in TREE.all("a")]
    assert len(links) > 48
    assert {link.removeprefix("#") for link in links} <= places
    assert len(places) == sum("id" in each.attributes for each in TREE.below()), "an id stands twice"


def test_there_is_no_address_of_elsewhere_and_nothing_to_type() -> None:
    assert (
        "http:" not in TEXT
        and "https:" not in TEXT
        and "//"
        not in "".join((each.attributes.get(name) or "") for each in TREE.below() for name in ("src", "href", "action"))
    )
    assert {each.attributes["type"] for each in TREE.all("input")} == {"radio"}
    assert TREE.all("textarea") + TREE.all("iframe") + TREE.all("img") == []


def test_the_policy_allows_the_one_style_and_the_one_script_by_their_hashes() -> None:
    (policy,) = [each.attributes["content"] or "" for each in TREE.all("meta") if "http-equiv" in each.attributes]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert (rules["default-src"], rules["base-uri"], rules["form-action"]) == ("'none'", "'none'", "'none'")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        text = TREE.one(tag).text
        assert rules[rule] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert not [name for each in TREE.below() for name in each.attributes if name.startswith("on") or name == "style"]


def test_the_page_is_small() -> None:
    assert len(TEXT.encode()) < 700_000


def test_the_data_are_called_synthetic() -> None:
    assert "synthetic" in TREE.one("footer").words and "not accounting revenue" in TREE.one("footer").words


# The lesson.

LESSON = TREE.one("div", "lesson")
TOPICS = [
    "the-accident",
    "correct-select",
    "append-right",
    "range-transaction",
    "merge",
    "partitions",
    "stable-key",
    "not-proven",
    "where-to-go",
]


def test_the_lesson_has_its_parts_in_order() -> None:
    assert [each.attributes["id"] for each in LESSON.all("h2")] == TOPICS


def test_the_figures_of_the_lesson_are_the_oracles() -> None:
    accident = [groups(table)["2026-01-02", "web"] for table in STATES[DEFAULT].tables]
    whole = totals(SOURCE)
    assert [(each.orders, each.cents) for each in accident] == [(2, 19000), (4, 38000), (6, 57000)]
    assert LESSON.figures == [
        *(number for each in accident for number in (each.orders, each.cents)),
        *(whole.rows, whole.orders, whole.cents),
        12000,
    ]


def commands() -> list[str]:
    return [each.text for each in LESSON.all("code", "command")]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_checklist_is_one_that_reslice_understands(line: str) -> None:
    program, name, *words = shlex.split(line)
    assert program == "reslice"
    command = root.commands[name]
    assert isinstance(command, click.Command)
    command.make_context(name, [*words], parent=click.Context(root, info_name="reslice"), resilient_parsing=False)


def test_the_checklist_has_a_command_for_each_item() -> None:
    items = LESSON.one("ol", "checklist").all("li")
    assert len(items) >= 10
    assert {shlex.split(item.one("code").text)[1] for item in items} >= {
        "audit",
        "prove",
        "init",
        "doctor",
        "plan",
        "run",
        "verify",
        "status",
        "show",
        "restore",
    }
