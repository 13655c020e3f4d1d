"""What the page says of states that the retail orders do not have: figures that cancel out, one of a kind, many."""

from __future__ import annotations

import re

from markupsafe import Markup

from reslice.lab import words
from reslice.lab.choices import RANGES, Choice, Pattern, Start
from reslice.lab.states import Group, Stage, State, Sum


def stage(name: str, *groups: Group) -> Stage:
    """A table that holds only these groups, all inside the range."""
    figures = [(each.rows, each.orders, each.cents) for each in groups]
    total = Sum(*map(sum, zip(*figures, strict=True)))
    return Stage(name, total, total, groups, ())


def state(before: Stage, last: Stage, orders: Stage, *, repeats: bool = True, is_equal: bool = False) -> State:
    choice = Choice(Pattern.UPSERT, RANGES[0], 1, Start.CURRENT)
    return State(choice, (before, last), orders, repeats, is_equal, is_equal)


def plain(text: Markup) -> str:
    return re.sub("<[^>]*>", "", text)


STORE, WEB = Group("2026-01-01", "store", 1, 1, 500), Group("2026-01-02", "web", 1, 1, 500)
LESS, MORE = Group("2026-01-01", "store", 1, 1, 499), Group("2026-01-02", "web", 2, 2, 501)
ORDERS = stage("orders", STORE, WEB)


def test_differences_that_cancel_out_are_no_equality() -> None:
    found = state(ORDERS, stage("after run 1", LESS, MORE), ORDERS)
    verdict = words.verdict(found)
    told = f"{verdict.begins}{plain(verdict.loud)}{plain(verdict.ends)}"
    assert told == "One run, and the total is right by chance: 2 groups differ."
    assert plain(verdict.glance) == "2 groups wrong after one run"
    assert words.badge(found).text == "Safe to run again, and wrong"
    assert [plain(fact) for fact in words.facts(found)] == [
        "The orders of the range add up to 1,000 cents.",
        "1 of 2 groups in the range stands in more than one row.",
        "2026-01-01 store holds less than the orders: 1 cent missing.",
    ]
    repeats, equal = words.answers(found)
    assert (repeats.yes, equal.yes, plain(equal.why)) == (True, False, "2 groups of the range differ.")


def test_rows_that_the_groups_hide_are_not_called_equal() -> None:
    """Two rows of one key that add up to the orders' one: the groups are told apart by their physical rows."""
    halves = Group("2026-01-02", "web", 2, 1, 500)
    found = state(ORDERS, stage("after run 1", STORE, halves), ORDERS)
    assert words.differing(found) == [("2026-01-02", "web")]
    _, equal = words.answers(found)
    assert (equal.yes, plain(equal.why)) == (False, "1 group of the range differs.")


def test_each_group_that_has_gone_or_stayed_has_a_sentence_of_its_own() -> None:
    late = Group("2026-01-02", "app", 1, 1, 1)
    gone = words.facts(state(ORDERS, stage("after run 1", late), stage("orders", late), is_equal=True))
    assert [plain(fact) for fact in gone[1:]] == [
        "2026-01-01 store has no order any more, and its row is gone.",
        "2026-01-02 web has no order any more, and its row is gone.",
    ]
    stayed = words.facts(state(ORDERS, stage("after run 1", STORE, WEB, late), stage("orders", late)))
    assert [plain(fact) for fact in stayed[1:]] == [
        "2026-01-01 store has no order any more and is still there, with 500 cents.",
        "2026-01-02 web has no order any more and is still there, with 500 cents.",
    ]


def test_a_figure_stands_without_separators_too() -> None:
    assert words.figure(1234567) == '<data value="1234567">1,234,567</data>'
    assert words.moved(-12400) == '<data value="-12400">\N{MINUS SIGN}12,400</data>'
    assert words.moved(400) == '<data value="400">+400</data>'
