"""The page of a run: its structure is read with a parser, its figures are those of the fixture arrays, by hand."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from reslice.page import SLICES_SHOWN, page_html
from reslice.recorded import LedgerRun, LedgerSlice
from reslice.values import Change, Check, ControlLine, Counts, GroupDiff, Total
from tests.golden import samples
from tests.golden.test_golden import agree
from tests.html_page import Page

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 7 * 7 }}{% raw %}",
    "</style></pre></code>",
    "nul\0and\x1b[2Jescape",
    "\u202egnp.exe\u2066",
    "\U0001f9fe receipt",
    "line\nbreak\ttab",
    "\ud800",
]


def page(run: LedgerRun, place: str = "") -> Page:
    return Page(page_html(run, place=place))


RUNS = {
    "published": samples.LEDGER_RUN,
    "stopped": samples.LEDGER_STOPPED,
    "running": samples.LEDGER_RUNNING,
    "gone": samples.LEDGER_GONE,
    "many": samples.LEDGER_MANY,
    "unchanged": replace(
        samples.LEDGER_RUN,
        state="unchanged",
        groups=(),
        counts=Counts(unchanged=3),
        slice_rows=(LedgerSlice("2026-01-01", "unchanged", "1:300", "1:300", None, 0, 0, 0, 1),),
    ),
    "verify": replace(samples.LEDGER_RUN, kind="verify", state="failed", slice_rows=()),
}


def test_a_page_as_a_whole() -> None:
    agree("page_published.html", page_html(samples.LEDGER_RUN, place="-C shop").rstrip("\n"))


# What it says


def test_it_says_what_was_asked_what_became_of_it_and_who_asked() -> None:
    text = " ".join(page(samples.LEDGER_RUN).text.split())
    assert "2026-01-01..2026-01-02 both days included, 2 slices" in text
    assert "published daily_orders, 2026-01-01..2026-01-02" in text
    assert "target changed yes" in text
    assert "retail.main.daily_orders" in text
    assert "anna@laptop" in text and "2026-01-05 06:00:00 UTC" in text
    assert "the correction of o100 moved it to another day" in text
    assert "Let pass by a person: removed_groups for the range." in text
    assert "took 1.1 seconds" in text and "7 ms" in text
    assert "reslice 0.1.0" in text and "DuckDB 2.0.1" in text and "9f3c2a51" in text


def test_the_diff_is_a_table_with_the_largest_movement_first() -> None:
    shuffled = (samples.GROUPS[2], samples.GROUPS[1], samples.GROUPS[0])
    assert page(replace(samples.LEDGER_RUN, groups=shuffled)).rows("Groups") == [
        ["- removed", "2026-01-01", "web", "1 -1", "12000 -12000"],
        ["~ changed", "2026-01-02", "web", "1 → 2 +1", "7000 → 19000 +12000"],
        ["~ changed", "2026-01-02", "store", "1", "5200 → 5600 +400"],
    ]


def test_totals_have_both_sides_and_the_difference() -> None:
    assert page(samples.LEDGER_RUN).rows("Each measure") == [
        ["rows", "4", "3", "-1"],
        ["order_count", "4", "4", "none"],
        ["amount_cents", "28700", "29100", "+400"],
    ]


def test_money_keeps_every_digit() -> None:
    group = GroupDiff(Change.CHANGED, "2026-01-02", {"day": "2026-01-02"}, {"price": "0.10"}, {"price": "1000.30"})
    text_group = replace(group, before={"price": "1.0", "label": "1.10"}, after={"price": "1.0", "label": "1.20"})
    long = Total(
        Decimal("-123456789012345678901234567890123456.78"), Decimal("987654321098765432109876543210987654.32")
    )
    run = replace(samples.LEDGER_RUN, groups=(group, text_group), totals={"price": Total(None, 2**70), "long": long})
    assert page(run).rows("Groups") == [
        ["~ changed", "2026-01-02", "0.10 → 1000.30 +1000.20", "NULL"],
        ["~ changed", "2026-01-02", "1.0", "1.10 → 1.20"],
    ]
    assert page(run).rows("Each measure")[1:] == [
        ["price", "none", "1180591620717411303424", "none"],
        [
            "long",
            "-123456789012345678901234567890123456.78",
            "987654321098765432109876543210987654.32",
            "+1111111110111111111011111111101111111.10",
        ],
    ]


def test_what_is_left_out_is_said() -> None:
    found = page(samples.LEDGER_MANY)
    assert len(found.rows("Groups, those that move most first; 1000 more are left out")) == 24
    assert "1000 more groups move, none of them further than these; the ledger does not hold them." in found.text
    slices = tuple(
        LedgerSlice(f"slice {number}", "published", "1:1", "1:2", "1:2", 0, 1, 0, 0)
        for number in range(SLICES_SHOWN + 7)
    )
    same = LedgerSlice("slice x", "unchanged", "1:1", "1:1", None, 0, 0, 0, 1)
    found = page(replace(samples.LEDGER_RUN, slice_rows=(same, *slices)))
    assert len(found.rows("Slices that differed; 7 more are left out")) == SLICES_SHOWN
    assert "1 more slice holds the same rows as before, or none, and is not listed." in found.text


def test_checks_that_did_not_hold_come_first_and_are_named_in_words() -> None:
    checks = (
        Check("key_repeated", True, "no key is repeated"),
        Check("total_change", False, "moves by 57.5%", stops=True),
        Check("removed_groups", False, "1 group"),
        Check("empty_slice", False, "a slice", consented=True, stops=False),
    )
    assert page(replace(samples.LEDGER_STOPPED, checks=checks)).rows("Rules") == [
        ["total_change", "stopped the run", "moves by 57.5%"],
        ["removed_groups", "reported", "1 group"],
        ["empty_slice", "let pass by a person", "a slice"],
        ["key_repeated", "held", "no key is repeated"],
    ]
    refused = replace(samples.LEDGER_STOPPED, state="refused", checks=(Check("key_null", False, "2 rows", stops=True),))
    assert page(refused).rows("Rules") == [["key_null", "broken", "2 rows"]]


def test_controls_have_both_figures() -> None:
    off = ControlLine("controls", "net", "sum(net)", 5, 4, tuple(f"2026-01-0{day}" for day in range(1, 8)))
    found = page(replace(samples.LEDGER_RUN, controls=(*samples.CONTROLS, off)))
    assert found.rows("Figures of the source") == [
        [
            "net",
            "sum(net)",
            "5",
            "4",
            "differs in 2026-01-01, 2026-01-02, 2026-01-03, 2026-01-04, 2026-01-05 and 2 more",
        ],
        ["orders", "sum(order_count)", "4", "4", "equal in every slice"],
        ["cents", "sum(amount_cents)", "29100", "29100", "equal in every slice"],
    ]
    assert "Not reconciled: no control declared." in page(replace(samples.LEDGER_RUN, controls=())).text


def test_a_restore_says_what_it_puts_back() -> None:
    text = " ".join(page(replace(samples.LEDGER_RUN, kind="restore", state="restored", restores="r-0001")).text.split())
    assert "restored daily_orders, 2026-01-01..2026-01-02" in text
    assert "puts back what r-0001 replaced" in text
    assert "reslice restore r-0002" in text, "a restore can be undone as well"


def test_a_stop_says_why_in_four_parts() -> None:
    text = " ".join(page(samples.LEDGER_STOPPED, "-C shop").text.split())
    assert "Why it ended removed_groups Asked: removed_groups: stop (reslice.yml, line 14)" in text
    assert "1 group would be removed e.g. (2026-01-01, web) order_count 1, amount_cents 12000" in text
    assert "Unchanged: nothing was written Next: reslice -C shop run --approve r-0001" in text
    assert "target changed no" in text


def test_every_failure_is_on_it() -> None:
    failures = [
        {"kind": "key_null", "asked": "a", "found": ["2 rows"]},
        {"kind": "key_repeated", "asked": "b", "found": []},
    ]
    run = replace(samples.LEDGER_STOPPED, state="refused", error={"failures": failures, "unchanged": "all", "next": ""})
    found = page(run)
    assert "key_null" in found.text and "key_repeated" in found.text and "2 rows" in found.text


@pytest.mark.parametrize(
    ("change", "words", "changed"),
    [
        ({}, "published", "yes"),
        ({"state": "unchanged", "slice_rows": ()}, "unchanged", "no"),
        ({"state": "refused", "slice_rows": ()}, "refused", "no"),
        ({"state": "failed", "slice_rows": ()}, "failed", "no"),
        ({"state": "failed"}, "failed", "yes, in part"),
        ({"state": "requested", "slice_rows": ()}, "not finished", "not known"),
        ({"state": "requested", "alive": True}, "running", "not known yet"),
        ({"kind": "verify", "state": "unchanged"}, "verified", "no"),
        ({"kind": "verify", "state": "failed"}, "not verified", "no"),
    ],
)
def test_how_it_ended_is_a_word_and_not_a_colour(change: dict[str, Any], words: str, changed: str) -> None:
    text = " ".join(page(replace(samples.LEDGER_RUN, **change)).text.split())
    assert f"{words} daily_orders, 2026-01-01..2026-01-02" in text
    assert f"target changed {changed} groups added" in text


def test_rows_written_again_did_not_change_the_target() -> None:
    again = tuple(replace(each, fingerprint_after=each.fingerprint_base) for each in samples.LEDGER_RUN.slice_rows)
    text = " ".join(page(replace(samples.LEDGER_RUN, slice_rows=again)).text.split())
    assert "target changed no" in text
    assert "The same rows were written again: 2 slices." in text
    assert "there is nothing to put back" in text


def test_the_way_back_is_a_command() -> None:
    text = page(samples.LEDGER_RUN, "-C shop").text
    assert "reslice -C shop restore r-0002\n" in text
    assert "reslice -C shop restore r-0002 2026-01-01" in text
    assert "reslice -C shop verify daily_orders 2026-01-01..2026-01-02" in text
    assert "restore" not in page(samples.LEDGER_STOPPED).text


def test_the_sql_is_the_one_that_show_prints() -> None:
    text = page(samples.LEDGER_RUN).text
    assert 'DELETE FROM "daily_orders" WHERE "order_date" >= $start AND "order_date" < $next;' in text
    assert "No statement was executed" in page(samples.LEDGER_STOPPED).text


# How it is built


@pytest.mark.parametrize("name", RUNS)
def test_it_stands_alone(name: str) -> None:
    """No script, no address, no other file; and the browser is told to load none."""
    found = page(RUNS[name])
    assert found.named("script") == found.named("link") == found.named("img") == found.named("iframe") == []
    for tag, attributes in found.elements:
        for attribute in attributes:
            assert attribute not in ("src", "href", "srcset", "action", "data", "style"), (tag, attribute)
            assert not attribute.startswith("on"), (tag, attribute)
    style = found.source.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style
    assert not re.search(r"https?://", found.source)
    policy = [each["content"] for each in found.named("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize("name", RUNS)
def test_it_can_be_read_without_seeing_it(name: str) -> None:
    found = page(RUNS[name])
    assert found.source.startswith("<!DOCTYPE html>")
    assert found.named("html") == [{"lang": "en"}]
    assert [len(found.named(tag)) for tag in ("title", "h1", "main", "header", "footer")] == [1] * 5
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    assert len(found.named("table")) == len(found.named("caption")) == len(found.tables)
    for heading in found.named("th"):
        assert heading.get("scope") in ("col", "row")
    ids = [str(attributes["id"]) for _, attributes in found.elements if "id" in attributes]
    assert [each for each, count in Counter(ids).items() if count > 1] == []
    for _, attributes in found.elements:
        assert attributes.get("aria-labelledby", ids[0]) in ids
        assert "tabindex" not in attributes or attributes.get("role") == "region"
    for rows in found.tables.values():
        assert len({len(row) for row in rows}) == 1, "every row has as many cells as there are headings"


def test_it_is_light_or_dark_narrow_or_wide_and_can_be_printed() -> None:
    style = page_html(samples.LEDGER_RUN).split("<style>")[1].split("</style>")[0]
    assert "color-scheme: light dark;" in style
    for medium in ("(max-width: 30rem)", "(min-width: 60rem)", "print"):
        assert f"@media {medium}" in style
    assert "width=device-width" in page_html(samples.LEDGER_RUN)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_stands_out_from_what_is_behind_it() -> None:
    """At least 4.5 to 1, in both colour schemes, as the accessibility guidelines ask for text of any size."""
    style = page_html(samples.LEDGER_RUN).split("<style>")[1]
    screen = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", style)
    light, dark = ({name: both[scheme] for name, *both in screen} for scheme in (0, 1))
    printed = light | dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", style))
    pairs = [(tone, "page") for tone in ("text", "quiet", "accent", "good", "warn", "bad")]
    pairs += [(tone, back) for tone in ("text", "quiet", "accent") for back in ("raised", "accent-page")]
    pairs += [(tone, f"{tone}-page") for tone in ("good", "warn", "bad")]
    pairs += [("text", "warn-page"), ("text", "bad-page")]
    for colours in (light, dark, printed):
        for front, back in pairs:
            high, low = sorted((_luminance(colours[front]), _luminance(colours[back])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back)


# Values that mean harm


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_no_value_leaves_its_place(value: str) -> None:
    """Wherever a value comes from, the page has the same elements with it as without, and no character that hides."""
    plain, hostile = page(_everywhere("plain")), page(_everywhere(value))
    assert hostile.elements == plain.elements
    hidden = [each for each in hostile.source if not each.isprintable() and each != "\n"]
    assert hidden == []
    hostile.source.encode("utf-8")


def test_what_is_escaped_can_still_be_read() -> None:
    found = page(_everywhere("<b>\u202e\0"))
    assert ["~ changed", "<b>\\u202e\\x00", "<b>\\u202e\\x00 → 2"] in found.rows("Groups")
    assert "&lt;b&gt;" in found.source and "<b>" not in found.source


def _everywhere(value: str) -> LedgerRun:
    """Return a run that has the value in every place where text of a user or of a database may stand."""
    group = GroupDiff(Change.CHANGED, "2026-01-01", {value: value}, {"m": value}, {"m": 2})
    failure = {"kind": "x", "asked": value, "found": [value], "next": value}
    return replace(
        samples.LEDGER_RUN,
        target=value,
        table=value,
        actor=value,
        reason=value,
        approves=value,
        engine_version=value,
        columns=(value,),
        totals={value: Total(1, 2)},
        checks=(Check("key_repeated", False, value),),
        controls=(ControlLine(value, value, value, 1, 2, (value,)),),
        warnings=(value,),
        error=failure | {"failures": [failure], "unchanged": value},
        sql=(f"SELECT '{value}'",),
        groups=(group,),
    )
