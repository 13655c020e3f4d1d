"""Two runs beside each other: what is in both, in one alone, and what is not the same; by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reslice.recorded import LedgerRun, LedgerSlice
from reslice.studio.compared import MovedBy, compared
from reslice.values import Check, ControlLine, GroupDiff
from tests.conformance.orders import D1, D2, D3, D4, Orders
from tests.golden import samples
from tests.html_page import Page
from tests.studio.pages_of import page, pages_of, words

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"


def two(orders: Orders) -> tuple[str, str]:
    """Publish two runs: over the first two days, and then over the second and the third."""
    orders.correct(1, 1100)  # D1 web: 3,500 becomes 3,600
    orders.correct(4, 1300)  # D2 web: 1,200 becomes 1,300
    first = orders.run(f"{D1}..{D2}")
    orders.correct(4, 1700)  # D2 web again: 1,700
    orders.correct(5, 310)  # D2 store: 750 becomes 760
    orders.cancel("order_id = 8")  # D3 phone is removed
    second = orders.run(f"{D2}..{D3}")
    assert first.id is not None and second.id is not None
    return first.id, second.id


BOTH = ["both to other values", D2, "web", "1", "1", f"1,200 {ARROW} 1,300 +100", f"1,300 {ARROW} 1,700 +400"]


def rows_of(first: str, second: str) -> list[list[str]]:
    return [
        BOTH,
        [first, D1, "web", "2", DASH, f"3,500 {ARROW} 3,600 +100", DASH],
        [second, D2, "store", DASH, "2", DASH, f"750 {ARROW} 760 +10"],
        [second, D3, "phone", DASH, f"1 {ARROW} {DASH} {MINUS}1", DASH, f"999 {ARROW} {DASH} {MINUS}999"],
    ]


def test_two_runs_beside_each_other(orders: Orders) -> None:
    first, second = two(orders)

    with pages_of(orders) as studio:
        found = page(studio, f"compare?a={first}&b={second}")

    assert found.rows("Groups")[1:] == rows_of(first, second)
    assert found.rows("Each measure")[1:] == [
        ["rows", "4", "4", DASH, "4", "3", f"{MINUS}1"],
        ["order_count", "6", "6", DASH, "5", "4", f"{MINUS}1"],
        ["amount_cents", "6,150", "6,350", "+200", "8,049", "7,460", f"{MINUS}589"],
    ]
    text = words(found)
    assert f"1 slice in {first} alone: {D1}" in text and f"1 slice in {second} alone: {D3}" in text
    assert "slice in both 1 of them end with other rows 1 group that both moved 1 to other values 1" in text
    assert f"Of 1 slice in both, 1 ends with other rows; in 1, {second} found the rows that {first} ends with." in text
    facts = {row[0]: row[1:] for row in found.rows("Facts")}
    assert facts["range"] == [
        f"{D1}..{D2}, both days included, 2 slices",
        f"{D2}..{D3}, both days included, 2 slices",
        "different",
    ]
    assert facts["groups"] == ["0 added, 2 changed, 0 removed", "0 added, 2 changed, 1 removed", "different"]
    assert facts["table"][2] == facts["method"][2] == "same" and facts["took"][2] == facts["at"][2] == ""


def test_the_twin_says_the_same_with_plain_numbers(orders: Orders) -> None:
    first, second = two(orders)

    with pages_of(orders) as studio:
        twin = studio.get(f"compare.json?a={first}&b={second}").json

    assert twin["schema"] == "reslice/studio_compare/1" and (twin["a"]["id"], twin["b"]["id"]) == (first, second)
    assert (twin["slices_only_a"], twin["slices_only_b"]) == ([D1], [D3])
    assert [(each["slice"], each["same"], each["follows"]) for each in twin["slices"]] == [(D2, False, True)]
    assert [(each["moved_by"], each["ends_differ"], each["key"]["channel"]) for each in twin["groups"]] == [
        ("both", True, "web"),
        ("a", False, "web"),
        ("b", False, "store"),
        ("b", False, "phone"),
    ]
    assert twin["groups"][0]["a"] == {
        "change": "changed",
        "before": {"order_count": 1, "amount_cents": 1200},
        "after": {"order_count": 1, "amount_cents": 1300},
    }
    assert twin["groups"][3]["a"] is None and twin["groups"][3]["b"]["after"] is None


@pytest.mark.parametrize(("kind", "places"), [("ends", [0]), ("both", [0]), ("first", [1]), ("second", [2, 3])])
def test_groups_of_one_kind(orders: Orders, kind: str, places: list[int]) -> None:
    first, second = two(orders)
    with pages_of(orders) as studio:
        found = page(studio, f"compare?a={first}&b={second}&groups={kind}")
    every = rows_of(first, second)
    assert found.rows("Groups")[1:] == [every[place] for place in places]


def test_the_same_range_twice(orders: Orders) -> None:
    orders.correct(4, 1300)
    first, second = orders.run(D2), orders.run(D2)

    with pages_of(orders) as studio:
        found = page(studio, f"compare?a={first.id}&b={second.id}")

    text = words(found)
    assert "Of 1 slice in both, none end with other rows; in 1," in text
    assert "Every rule ended alike." in text
    assert {row[0]: row[3] for row in found.rows("Facts")}["outcome"] == "different"
    assert found.rows("Groups")[1:] == [[first.id, D2, "web", "1", DASH, f"1,200 {ARROW} 1,300 +100", DASH]]


def test_lines_of_sql_that_differ_are_told_apart(empty_orders: Orders) -> None:
    first, second = empty_orders.run(D1), empty_orders.run(D2)
    with pages_of(empty_orders) as studio:
        answer = studio.get(f"compare?a={first.id}&b={second.id}")
    # The first line of the statements is a comment, which begins with dashes itself.
    assert re.search(r'<span class="removed">--- \S*source\.sql, with ', answer.text)
    assert f'<span class="names">--- {first.id}</span>' in answer.text
    assert "reslice_source_\N{HORIZONTAL ELLIPSIS}" in answer.text


def test_runs_that_share_no_slice(orders: Orders) -> None:
    first, second = orders.run(D1), orders.run(f"{D3}..{D4}")
    with pages_of(orders) as studio:
        text = words(page(studio, f"compare?a={first.id}&b={second.id}"))
    assert "No slice is in both." in text and "Neither run moved a group that the ledger lists." in text
    assert f"2 slices in {second.id} alone: {D3}..{D4}" in text


def test_two_runs_are_needed(orders: Orders) -> None:
    run = orders.run(D1)
    with pages_of(orders) as studio:
        without, unknown = studio.get(f"compare?a={run.id}"), studio.get(f"compare?a={run.id}&b=r-0999")
    for answer, found in ((without, "b is not given"), (unknown, "no run matches 'r-0999'")):
        text = " ".join(Page(answer.text).text.split())
        assert answer.status == 404 and found in text and "Next:" in text


def test_runs_of_two_targets_are_not_compared(orders: Orders) -> None:
    first = orders.run(D1)
    orders.database.execute(
        "UPDATE reslice.runs SET target = 'other', table_name = 'x.y.other' WHERE id = ?", [first.id]
    )
    second = orders.run(D1)
    with pages_of(orders) as studio:
        answer = studio.get(f"compare?a={first.id}&b={second.id}")
    text = " ".join(Page(answer.text).text.split())
    assert answer.status == 404 and "Asked: two runs of one target" in text
    assert f"{first.id} is a run of other, and {second.id} of daily_orders" in text


# Without a database


def test_a_slice_is_the_same_when_both_end_with_the_same_rows() -> None:
    def run(run_id: str, base: str, staged: str, after: str | None) -> LedgerRun:
        each = LedgerSlice("2026-01-01", "published" if after else "open", base, staged, after, 0, 1, 0, 0)
        return replace(samples.LEDGER_RUN, id=run_id, slice_rows=(each,))

    first = run("r-0001", "1:100", "1:200", "1:200")
    (pair,) = compared(first, run("r-0002", "1:200", "1:300", None)).slices
    assert pair.follows and not pair.is_same, "what was recomputed stands for a run that wrote nothing"
    (pair,) = compared(first, run("r-0003", "1:150", "1:200", None)).slices
    assert pair.is_same and not pair.follows


def test_keys_are_the_same_by_their_values_and_kinds() -> None:
    def run(*keys: object) -> LedgerRun:
        changed = samples.GROUPS[0]
        groups = tuple(GroupDiff(changed.change, changed.slice, {"k": key}, {"n": 1}, {"n": 2}) for key in keys)
        return replace(samples.LEDGER_RUN, groups=groups)

    pairs = compared(run(1, None, "a"), run("1", None, "")).groups
    assert [(pair.moved_by, pair.any.key["k"]) for pair in pairs] == [
        (MovedBy.BOTH, None),
        (MovedBy.FIRST, 1),
        (MovedBy.FIRST, "a"),
        (MovedBy.SECOND, "1"),
        (MovedBy.SECOND, ""),
    ]


def test_rules_and_controls_that_differ() -> None:
    held, broken = Check("key_null", True, "none"), Check("key_null", False, "2 rows", stops=True)
    minimum = [Check("measure_minimum", ok, text) for ok, text in ((False, "a is 0"), (False, "b is 0"), (True, ""))]
    line = ControlLine("controls", "orders", "sum(order_count)", 4, 4)
    first = replace(samples.LEDGER_RUN, checks=(held, *minimum[:2]), controls=(line,))
    second = replace(samples.LEDGER_RUN, checks=(broken, minimum[0], minimum[2]), controls=(replace(line, target=5),))

    found = compared(first, second)

    assert found.checks == (("key_null", held, broken), ("measure_minimum", minimum[1], minimum[2]))
    assert found.controls == (("orders", line, replace(line, target=5)),)
    assert compared(first, first).checks == compared(first, first).controls == ()


def test_statements_differ_by_more_than_the_names_of_temporary_tables() -> None:
    def run(run_id: str, token: str, day: str) -> LedgerRun:
        sql = (f'SELECT 1 FROM temp."reslice_staged_{token}"', f"DELETE FROM t WHERE day = '{day}'")
        return replace(samples.LEDGER_RUN, id=run_id, sql=sql)

    first = run("r-0001", "0123456789ab", "2026-01-01")
    assert compared(first, run("r-0002", "ba9876543210", "2026-01-01")).sql == ()
    assert compared(first, run("r-0003", "ba9876543210", "2026-01-02")).sql == (
        "--- r-0001",
        "+++ r-0003",
        "@@ -1,3 +1,3 @@",
        ' SELECT 1 FROM temp."reslice_staged_…"',
        " ",
        "-DELETE FROM t WHERE day = '2026-01-01'",
        "+DELETE FROM t WHERE day = '2026-01-02'",
    )
