"""The series of a measure before and after a run: exact in the table and in the twin, and drawn to scale."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from reslice.series import Amount, Point
from reslice.studio import series_view
from reslice.studio.chart import BARS_MAX, close_up, picture, round_ticks
from tests.conformance.orders import D1, D2, D3, SOURCE, Orders
from tests.html_page import Page
from tests.studio.pages_of import hrefs, page, pages_of, words

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def changed(orders: Orders) -> str:
    """Publish a run that moves the second day by 100 cents and the third by -999; return its id."""
    orders.correct(4, 1300)
    orders.cancel("order_id = 8")
    run = orders.run(f"{D1}..{D3}")
    assert run.id is not None
    return run.id


def test_a_measure_slice_by_slice(orders: Orders) -> None:
    run_id = changed(orders)

    with pages_of(orders) as studio:
        moved = page(studio, f"run/{run_id}/series?measure=amount_cents")
        every = page(studio, f"run/{run_id}/series?measure=amount_cents&show=all")

    rows = [
        [D1, "4,200", "4,200", DASH, "2", "2"],
        [D2, "1,950", "2,050", "+100", "2", "2"],
        [D3, "5,999", "5,000", f"{MINUS}999", "2", "1"],
    ]
    assert moved.rows("2 slices") == rows[1:] and every.rows("3 slices") == rows
    assert "before 12,149 after 11,250 slices moved 2" in words(moved)
    assert f"run/{run_id}/series?measure=amount_cents&show=all" in hrefs(moved)
    assert f"run/{run_id}/series?measure=order_count" in hrefs(moved)
    assert [each["aria-current"] for each in moved.named("a") if "aria-current" in each] == ["page"]


def test_the_rows_slice_by_slice(orders: Orders) -> None:
    run_id = changed(orders)
    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}/series")
    assert found.rows("2 slices") == [[D2, "2", "2", DASH], [D3, "2", "1", f"{MINUS}1"]]


def test_the_twin_is_exact(orders: Orders) -> None:
    run_id = changed(orders)
    with pages_of(orders) as studio:
        twin = studio.get(f"run/{run_id}/series.json?measure=amount_cents").json
    assert twin["schema"] == "reslice/studio_series/1"
    assert (twin["run"], twin["measure"], twin["measures"]) == (run_id, "amount_cents", ["order_count", "amount_cents"])
    assert twin["slices"][2] == {
        "slice": D3,
        "moved": True,
        "before": {"rows": 2, "total": 5999, "known": True},
        "after": {"rows": 1, "total": 5000, "known": True},
    }
    assert (len(twin["slices"]), twin["slices_unknown"], twin["trouble"]) == (3, 0, [])


def test_what_is_not_known_any_more_is_said(orders: Orders) -> None:
    run_id = changed(orders)
    orders.database.execute("UPDATE daily_orders SET amount_cents = 1 WHERE order_date = '2024-03-01'")

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}/series?measure=amount_cents&show=all")
        twin = studio.get(f"run/{run_id}/series.json?measure=amount_cents").json

    assert found.rows("3 slices")[0] == [D1, "not known", "not known", DASH, "2", "2"]
    assert "not known 1" in words(found) and "not in the table, and not found where runs keep" in words(found)
    assert twin["slices_unknown"] == 1
    assert twin["slices"][0]["before"] == {"rows": 2, "total": None, "known": False}


def test_a_contract_that_has_changed_is_said_and_the_rows_are_still_known(orders: Orders) -> None:
    run_id = changed(orders)
    orders.declare(measures={"amount_cents": {}})
    orders.source(SOURCE.replace("count(*) AS order_count, ", ""))

    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}/series?measure=amount_cents")
        rows = page(studio, f"run/{run_id}/series")
        twin = studio.get(f"run/{run_id}/series.json?measure=amount_cents").json

    assert "The sums are not known" in found.text and found.tables == {}
    assert f"{run_id} compared amount_cents, channel, order_count, order_date" in words(found)
    assert len(rows.rows("2 slices")) == 2
    assert twin["slices"] == [] and len(twin["trouble"]) == 1


def test_a_measure_that_the_run_does_not_have(orders: Orders) -> None:
    run_id = changed(orders)
    with pages_of(orders) as studio:
        answer = studio.get(f"run/{run_id}/series?measure=%3Cscript%3E")
    text = " ".join(Page(answer.text).text.split())
    assert answer.status == 404 and f"{run_id} has totals of order_count, amount_cents" in text


def test_a_measure_with_a_name_that_means_harm(orders: Orders) -> None:
    name = 'net <b>&"?#'
    quoted = '"' + name.replace('"', '""') + '"'
    orders.make_target(f"order_date date, channel varchar, {quoted} bigint")
    orders.declare(measures={name: {"nulls": "allow"}})
    orders.source(
        f"SELECT order_date, channel, sum(amount_cents) AS {quoted} FROM orders_fact"
        " WHERE order_date BETWEEN :start AND :end GROUP BY order_date, channel"
    )
    run = orders.run(D1)

    with pages_of(orders) as studio:
        of_run = page(studio, f"run/{run.id}")
        (address,) = [each for each in hrefs(of_run) if "series?measure=" in each]
        found = page(studio, address)

    assert found.rows("1 slice") == [[D1, "none", "4,200", "+4,200", "0", "2"]]
    assert f"{name} before and after {run.id}" in words(found) and found.named("b") == []


@pytest.mark.only("duckdb")
def test_adding_up_is_bounded_in_time(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = changed(orders)

    def endless(engine: Any, *_: Any) -> None:
        engine.ledger._session.execute("SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b")

    monkeypatch.setattr(series_view, "points", endless)
    monkeypatch.setattr(series_view, "SECONDS_MAX", 1)
    with pages_of(orders) as studio:
        found = page(studio, f"run/{run_id}/series?measure=amount_cents")
        assert "adding up the rows took longer than 1 seconds" in words(found)
        assert len(page(studio, f"run/{run_id}/series").rows("2 slices")) == 2, "the file is free again"


@pytest.mark.only("duckdb")
def test_a_decade_of_days_has_pages_and_a_picture_of_its_size(empty_orders: Orders) -> None:
    days = "SELECT i, DATE '2014-01-01' + i::INTEGER, 'web', 100 + i FROM range(3650) AS made(i)"
    empty_orders.database.execute("DELETE FROM orders_fact")
    empty_orders.database.execute(f"INSERT INTO orders_fact {days}")
    run = empty_orders.run("2014-01-01..2023-12-29")

    with pages_of(empty_orders) as studio:
        first = page(studio, f"run/{run.id}/series?measure=amount_cents")
        last = page(studio, f"run/{run.id}/series?measure=amount_cents&page=10")

    assert first.rows("Slices 1 to 366 of 3,650")[0][:3] == ["2014-01-01", "none", "100"]
    assert last.rows("Slices 3,295 to 3,650 of 3,650")[-1][:3] == ["2023-12-29", "none", "3,749"]
    assert max(len(str(each["d"])) for each in first.named("path")) < 40_000


# The picture


def point(label: str, before: Any, after: Any, *, known: bool = True) -> Point:
    first, last = Amount(1, before, is_known=known), Amount(1, after, is_known=known)
    return Point(label, first, last, moved=before != after)


@pytest.mark.parametrize(
    ("low", "high", "is_whole", "ticks"),
    [
        (0, 0, True, [0, 1]),
        (0, 3, True, [0, 1, 2, 3]),
        (0, 7, True, [0, 2, 4, 6, 8]),
        (0, 23_456, True, [0, 5_000, 10_000, 15_000, 20_000, 25_000]),
        (-40, 60, True, [-40, -20, 0, 20, 40, 60]),
        (0, 0.3, False, ["0.0", "0.1", "0.2", "0.3"]),
        (-0.02, 0, False, ["-0.020", "-0.015", "-0.010", "-0.005", "0.000"]),
    ],
)
def test_axes_have_round_figures(low: float, high: float, is_whole: bool, ticks: list[Any]) -> None:
    assert round_ticks(low, high, is_whole=is_whole) == [Decimal(each) for each in ticks]


def test_bars_are_as_high_as_their_figures() -> None:
    drawn = picture([point("a", 50, 100), point("b", -25, -25)], width=1000, height=320)
    heights = {(each["slice"], each["side"]): (each["y"], each["height"]) for each in drawn["bars"]}
    # From -50 to 100 in 260 units.
    assert [float(each["label"].replace(MINUS, "-")) for each in drawn["ticks"]] == [-50, 0, 50, 100]
    zero = drawn["zero"]
    assert zero == pytest.approx(14 + 260 * 100 / 150, abs=0.01)
    assert heights["a", "after"] == pytest.approx((14, zero - 14), abs=0.02)
    assert heights["a", "before"][1] == pytest.approx(heights["a", "after"][1] / 2, abs=0.02)
    assert heights["b", "before"] == pytest.approx((zero, 260 * 25 / 150), abs=0.02)
    lefts = [each["x"] for each in drawn["bars"]]
    assert lefts == sorted(lefts) and all(each["x"] + each["width"] <= drawn["right"] for each in drawn["bars"])


def test_one_slice_is_a_pair_of_bars() -> None:
    drawn = picture([point("2026-01-01", 5, 6)], width=380, height=260)
    assert [each["side"] for each in drawn["bars"]] == ["before", "after"] and drawn["after"] == ""
    assert [each["label"] for each in drawn["slices"]] == ["2026-01-01"]


def test_lines_have_gaps_where_nothing_is_known_and_before_is_drawn_where_it_differs() -> None:
    points = [point(str(place), 10, 10) for place in range(BARS_MAX + 9)]
    points[5] = point("5", None, None, known=False)
    points[20] = point("20", 10, 12)
    drawn = picture(points, width=1000, height=320)
    assert drawn["bars"] == []
    assert drawn["after"].count("M") == 2 and len(re.findall("[ML]", drawn["after"])) == len(points) - 1 + 2
    assert len(re.findall("[ML]", drawn["before"])) == 3 + 1, "the slice that moved and one on either side"
    assert len(drawn["moved"]) == len(drawn["unknown"]) == 1
    assert drawn["moved"][0]["x"] == pytest.approx(drawn["left"] + (988 - drawn["left"]) * 20 / 40, abs=0.01)


def test_many_slices_are_drawn_with_their_lowest_and_highest() -> None:
    points = [point(str(place), 0, 1000 if place == 1801 else place % 7) for place in range(3650)]
    drawn = picture(points, width=380, height=260)
    heights = [float(each) for each in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn["after"])]
    assert min(heights) == 14, "the one high slice is not lost"
    assert len(heights) < 3 * 380 and drawn["is_dense"]


def test_figures_that_cannot_be_drawn_are_left_out() -> None:
    drawn = picture([point("a", Decimal("NaN"), Decimal("Infinity")), point("b", 1, 2)], width=380, height=260)
    assert [each["slice"] for each in drawn["bars"]] == ["b", "b"]
    assert picture([], width=380, height=260)["bars"] == []


def test_a_close_look_at_what_moved() -> None:
    points = [point(str(place), 1, 2 if 100 <= place < 103 else 1) for place in range(365)]
    near = close_up(points)
    assert (near[0].slice, near[-1].slice) == ("93", "109"), "seven on either side"
    assert close_up([point(str(place), 1, 2) for place in range(365)]) == ()
    assert close_up([point(str(place), 1, 1) for place in range(365)]) == ()
