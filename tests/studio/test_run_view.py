"""One run's page in the studio: what was kept of it, with figures for people, and the way to the runs around it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reslice.errors import Refused, Stopped
from reslice.project import Project
from reslice.report_json import show_json
from reslice.studio import pages, run_view
from reslice.studio.figures import figure
from reslice.studio.links import Links
from reslice.studio.values import Ask
from tests.conformance.databases import Database
from tests.conformance.orders import D1, D2, D3, Orders, Target
from tests.html_page import Page
from tests.studio.pages_of import hrefs, page, pages_of, words

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
HOSTILE = {
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "\"' onload='alert(1)": "\"' onload='alert(1)",
    "\u202egnp.exe\u2066": "\\u202egnp.exe\\u2066",
    "line\nbreak": "line\\nbreak",
    "": "''",
    "NULL": "'NULL'",
    "{{ 7 * 7 }}": "{{ 7 * 7 }}",
    "long " * 400: f"'{'long ' * 400}'",
}
"""Keys, and how a page shows each."""


def changed(orders: Orders) -> str:
    """Publish a run in which one group of each kind moves; return its id."""
    orders.correct(1, 1_234_567)  # D1 web: 3,500 becomes 1,237,067
    orders.cancel("order_id = 8")  # D3 phone is removed: 999 in one order
    orders.order(9, D2, "phone", 640)
    run = orders.run(f"{D1}..{D3}")
    assert run.id is not None
    return run.id


DIFF = [
    ["~ changed", D1, "web", "2", "2", DASH, "3,500", "1,237,067", "+1,233,567"],
    ["- removed", D3, "phone", "1", DASH, f"{MINUS}1", "999", DASH, f"{MINUS}999"],
    ["+ added", D2, "phone", DASH, "1", "+1", DASH, "640", "+640"],
]


def test_the_page_of_a_run(orders: Orders) -> None:
    run_id = changed(orders)

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}")

    assert found.rows("Groups")[1:] == DIFF
    assert found.rows("Each measure") == [
        ["rows", "6", "6", "none"],
        ["order_count", "8", "8", "none"],
        ["amount_cents", "12,149", "1,245,357", "+1,233,208"],
    ]
    text = words(found)
    assert f"published daily_orders, {D1}..{D3} both days included, 3 slices" in text
    assert "target changed yes groups added 1 changed 1 removed 1 unchanged 4" in text
    assert f"reslice restore {run_id}" in text and f"reslice verify daily_orders {D1}..{D3}" in text
    assert "3 groups, those that move most first." in text
    assert {"value": "1237067"} in found.named("data") and {"value": "-999"} in found.named("data")


def test_the_twin_has_what_show_has_with_plain_numbers(orders: Orders) -> None:
    run_id = changed(orders)
    shown = show_json(orders.handle.project.show(run_id))

    with pages_of(orders) as studio:
        twin = studio.get(f"run/{run_id}.json").json

    assert twin["schema"] == "reslice/studio_run/1"
    same = ("run", "slices", "groups", "groups_left_out", "sql", "next")
    assert {name: twin[name] for name in same} == {name: json.loads(json.dumps(shown[name])) for name in same}
    assert twin["run"]["totals"]["amount_cents"] == {"before": 12149, "after": 1245357}
    assert twin["groups"][0]["after"] == {"order_count": 2, "amount_cents": 1237067}


@pytest.mark.parametrize(
    ("query", "rows", "said"),
    [
        ("text=PHONE", DIFF[1:], "2 of 3 recorded groups have “PHONE” in their key."),
        (
            f"text={D1[:7]}&change=changed",
            DIFF[:1],
            "1 of 3 recorded groups have “2024-03” in their key and are changed.",
        ),
        ("change=added", DIFF[2:], "1 of 3 recorded groups are added."),
        ("change=nonsense", DIFF, "3 groups, those that move most first."),
    ],
)
def test_groups_are_filtered_by_a_text_in_the_key_and_by_the_kind_of_change(
    orders: Orders, query: str, rows: list[list[str]], said: str
) -> None:
    run_id = changed(orders)

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}?{query}")
        twin = studio.get(f"run/{run_id}.json?{query}").json

    assert found.rows("Groups")[1:] == rows and said in words(found)
    assert len(twin["groups"]) == len(rows) and twin["groups_recorded"] == 3


def test_no_group_is_like_that(orders: Orders) -> None:
    run_id = changed(orders)
    with pages_of(orders) as studio:
        text = words(page(studio, f"run/{run_id}?text=nowhere"))
    assert "0 of 3 recorded groups have “nowhere” in their key." in text and "No recorded group is like that." in text


@pytest.mark.only("duckdb")
def test_what_is_left_out_is_counted_and_the_rest_has_pages(orders: Orders) -> None:
    many = "SELECT 100 + i, DATE '2024-03-02', 'shop ' || i, 10 * i FROM range(1, 601) AS made(i)"
    orders.database.execute(f"INSERT INTO orders_fact {many}")
    run = orders.run(D2)

    with pages_of(orders) as studio:
        first = page(studio, f"run/{run.id}")
        third = page(studio, f"run/{run.id}?page=3")
        beyond = page(studio, f"run/{run.id}?page=9999")

    # 600 groups are new; the ledger holds the 500 that move most: 6,000 cents down to 1,010.
    assert "500 groups, those that move most first; 100 more that moved less are left out of the ledger." in words(
        first
    )
    assert len(first.rows("Groups 1 to 100 of 500")) == 101
    assert first.rows("Groups 1 to 100 of 500")[1][2:] == ["shop 600", DASH, "1", "+1", DASH, "6,000", "+6,000"]
    assert third.rows("Groups 201 to 300 of 500")[1][2] == "shop 400"
    assert beyond.rows("Groups 401 to 500 of 500")[100][2] == "shop 101"
    assert f"run/{run.id}?page=2#diff" in hrefs(first) and f"run/{run.id}?page=4#diff" in hrefs(third)


def test_keys_that_mean_harm_are_text(orders: Orders) -> None:
    orders.declare(grain=["order_date", {"column": "channel", "nulls": "allow"}])
    for place, key in enumerate([*HOSTILE, None]):
        orders.order(100 + place, D2, key, 50 + place)
    run = orders.run(D2)

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run.id}")
        hidden = page(studio, f"run/{run.id}?text=%3Cscript")
        twin = studio.get(f"run/{run.id}.json").json

    shown = {row[2] for row in found.rows("Groups")[1:]}
    assert shown == {" ".join(each.split()) for each in HOSTILE.values()} | {"NULL"}
    assert len(found.named("script")) == 2 and "<b>" not in found.source
    assert hidden.rows("Groups")[1:] == [
        ["+ added", D2, "<script>alert(1)</script>", DASH, "1", "+1", DASH, "50", "+50"]
    ]
    assert {group["key"]["channel"] for group in twin["groups"]} == {*HOSTILE, None}


def test_the_runs_around_it(orders: Orders) -> None:
    first = orders.run(D1)
    run_id = changed(orders)
    orders.run("2024-05-01")
    undone = orders.restore(run_id)
    later = orders.verify(D3, record=True)

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}")
        of_restore = page(studio, f"run/{undone.id}")
        twin = studio.get(f"run/{run_id}.json").json

    # The run over another month is after it, and not over its range.
    assert [row[:3] for row in found.rows("Later runs")] == [
        [undone.id, f"{D1}..{D3}", "restored"],
        [later.id, D3, "verify failed"],
    ]
    assert f"← {first.id} before it" in words(found) and f"{undone.id} puts back what this run replaced" in words(found)
    assert {f"run/{first.id}", f"run/{undone.id}", f"compare?a={run_id}&b={undone.id}"} <= {*hrefs(found)}
    assert f"{run_id} puts back what it replaced" in words(of_restore)
    assert twin["later_count"] == 2 and [each["id"] for each in twin["named_by"]] == [undone.id]
    assert twin["before"] == first.id


def test_a_refusal_is_not_put_down_to_the_rows_when_it_is_a_later_run(orders: Orders) -> None:
    first = changed(orders)
    orders.correct(1, 5)
    orders.run(D1)
    with pytest.raises(Refused, match="later_run"):
        orders.restore(first)
    with pages_of(orders) as studio:
        found = words(page(studio, "run/last"))
    assert "A rule was broken, and nothing was published." in found and "later_run" in found


def test_a_run_that_was_stopped_and_the_one_that_approves_it(orders: Orders) -> None:
    orders.declare(guards={"removed_groups": "stop", "total_change": "allow", "empty_slice": "allow"})
    orders.cancel("order_id = 8")
    error = orders.fails("run", Stopped, D3)
    approved = orders.run(approve=error.run.id)

    with pages_of(orders) as studio:
        found = page(studio, f"run/{error.run.id}")
        after = page(studio, f"run/{approved.id}")

    text = words(found)
    assert "Why it ended removed_groups Asked:" in text and "Unchanged:" in text
    assert f"{approved.id} approves the diff of this run" in text
    assert f"{error.run.id} approves its diff" not in text
    assert f"run/{error.run.id}" in hrefs(after)


def test_targets_with_ledgers_of_their_own(engine: Database) -> None:
    """Both ledgers have a run r-0001: an address names the target as well, and so does every one on the page."""
    declared = {}
    for name in ("one", "two"):
        engine.execute(f"CREATE TABLE {name} (day date, amount bigint)")
        engine.execute(f"CREATE TABLE {name}_facts (day date, amount bigint)")
        engine.insert(f"{name}_facts", [(D1, len(name)), (D2, 5)])
        query = f"SELECT day, sum(amount) AS amount FROM {name}_facts WHERE day BETWEEN :start AND :end GROUP BY day"
        (engine.folder / f"{name}.sql").write_text(query)
        slices = {"slice": {"column": "day", "unit": "day"}, "grain": ["day"], "measures": {"amount": {}}}
        declared[name] = {"table": name, "source": f"{name}.sql", "ledger": {"schema": f"ledger_{name}"}, **slices}
    two = Target(engine, "two", declared["two"], (engine.folder / "two.sql").read_text())
    contract = {"version": 1, "connection": engine.url, "targets": declared}
    two.file.write_text(json.dumps(contract))
    two.source((engine.folder / "two.sql").read_text(), "two")
    for name in ("one", "two"):
        engine.project(two.file).target(name).run(D1)
        engine.project(two.file).target(name).run(D2)

    with pages_of(two) as studio:
        found = page(studio, "run/r-0001?target=two")
        filtered = page(studio, "run/r-0001?target=two&change=added")
        series = page(studio, "run/r-0001/series?target=two&measure=amount")
        both = page(studio, "compare?a=r-0001&b=r-0002&target=two")
        unclear = studio.get("run/r-0001")

    assert found.rows("Groups")[1:] == [["+ added", D1, DASH, "3", "+3"]] == filtered.rows("Groups")[1:]
    assert series.rows("1 slice") == [[D1, "none", "3", "+3", "0", "1"]]
    assert "two runs of two" in words(both)
    runs = [each for each in hrefs(found) if each.startswith(("run/", "compare"))]
    assert runs and all("target=two" in each for each in runs)
    assert {"type": "hidden", "name": "target", "value": "two"} in found.named("input")
    assert unclear.status == 404 and "r-0001 of one, r-0001 of two" in " ".join(Page(unclear.text).text.split())


@pytest.mark.parametrize(
    ("asked", "named"), [("r-9999", "'r-9999'"), ("%00", "'?'"), ("%F0%9F%A7%BE", "'\N{RECEIPT}'")]
)
def test_an_unknown_run_is_said_in_four_parts(orders: Orders, asked: str, named: str) -> None:
    orders.run(D1)
    with pages_of(orders) as studio:
        answer = studio.get(f"run/{asked}")
    assert answer.status == 404
    text = " ".join(Page(answer.text).text.split())
    assert "run_unknown Asked: a RUN is an id" in text and f"no run matches {named}" in text and "Next:" in text


def test_a_copy_has_no_form_and_every_recorded_group(orders: Orders) -> None:
    run_id = changed(orders)
    project: Project = orders.handle.project
    links = Links("../", is_static=True, kept=frozenset({("daily_orders", run_id)}))
    view = run_view.view(Ask(project, links, path={"run": run_id}))
    found = Page(pages.html(view, links, f"run/{run_id}.html", "shop"))
    assert found.named("form") == [] and found.rows("Groups")[1:] == DIFF


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (1234567, '<data value="1234567">1,234,567</data>'),
        ("-1234.50", f'<data value="-1234.50">{MINUS}1,234.50</data>'),
        ("+0.10", '<data value="0.10">+0.10</data>'),
        ("9007199254740993.01", '<data value="9007199254740993.01">9,007,199,254,740,993.01</data>'),
        ("none", "none"),
        ("NaN", "NaN"),
        ("1 <b>", "1 <b>"),
    ],
)
def test_a_figure_is_separated_for_people_and_plain_for_programs(value: Any, made: str) -> None:
    assert str(figure(value)) == made
    assert hasattr(figure(value), "__html__") == made.startswith("<data"), "other text is escaped where it is put in"
