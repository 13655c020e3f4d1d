"""Every figure of the retail example that a reader sees is one the oracle computes, in plain Python and without SQL.

Looked at are README, docs and what the demo prints. The ten cases of the comparison have rows of their own; what is
right in each is counted here again, by hand-written rules over those rows.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from docs import build, console
from reslice.retail import oracle

RESLICE = Path(sys.executable).with_name("reslice")
ORACLE = oracle.figures()
OTHER_NUMBERS = {
    "contract.md": {3660, 100_000_000, 36500, 5432, 60000},  # limits of keys, a port, milliseconds
    "comparison.md": None,  # rows of its own, see below
    "performance.md": None,  # measurements
    "audit-quality.md": None,  # other people's projects
    "prove.md": {45500, 75700, 41100},  # 15300 + 30200, and once more; 29100 + 12000, which is stale
    "way-out.md": {66500, 101200},  # 31800 + 34700, and once more
    "proofs.md": None,  # the rows of the comparison, see test_proofs
    "lab.md": {8000},  # a port
    "studio.md": {100_000, 3650},  # the ledger that its test is about
    "writers.md": None,  # two stories of their own, which a test runs
    "postgres.md": None,  # a story of its own, which a test runs
}
"""Numbers from 1000 up that a page holds and that are no figures of the example; None: the page is not about it."""


class Triple(NamedTuple):
    """Rows, orders and cents of a group, a range or a table."""

    rows: int
    orders: int
    cents: int


def everything(value: Any) -> Iterator[Any]:
    """Yield a JSON value and all that is in it."""
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everything(each)


NUMBERS = {value for value in everything(ORACLE) if isinstance(value, int)}
TRIPLES = {
    Triple(value["rows"], value["orders"], value["cents"])
    for value in everything(ORACLE)
    if isinstance(value, dict) and {"rows", "orders", "cents"} <= value.keys()
}
GROUPS = {
    (value["order_date"], value["channel"], value["orders"], value["cents"])
    for value in everything(ORACLE)
    if isinstance(value, dict) and {"order_date", "orders"} <= value.keys()
}
EMPTY = Triple(0, 0, 0)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("demo") / "shop"
    ended = subprocess.run([RESLICE, "demo", "--into", folder], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.replace(str(folder), "shop")


def shown_to_a_reader() -> list[Path]:
    told = (path for path in build.pages() if "examples" not in path.parts)  # those compute their own figures
    names = [path for path in told if OTHER_NUMBERS.get(path.name, ()) is not None]
    return [path for path in names if path.name not in ("CONTRIBUTING.md", "CHANGELOG.md")]


def strange_numbers(text: str) -> set[int]:
    """Return the numbers of 1000 and more that the oracle does not have; no dates, ids, digests, versions."""
    text = re.sub(r"\b[0-9a-f]{12,}\b|\b\d+:\d{6,}\b|\br-\d+\b", " ", text)
    text = re.sub(r"\b\d{4}-(?:\d\d(?:-\d\d)?|Q\d|W\d\d)\b|\b0001\b|\b9999\b|`\d{4}`", " ", text)
    text = re.sub(r"`2026`", " ", text)
    found = set()
    for sign, digits in re.findall(r"(?<![\w.])([+-]?)(\d{4,}|\d{1,3}(?:,\d{3})+)(?![\w])", text):
        number = int(digits.replace(",", ""))
        if not sign and number not in NUMBERS:
            found.add(number)
    return found


def wrong_lines(text: str) -> list[str]:
    """Return the lines of plans and runs whose figures are not the oracle's."""
    return [*wrong_groups(text), *wrong_totals(text), *wrong_differences(text), *wrong_sentences(text)]


_GROUP = re.compile(
    r"^ *[-+~] (\d{4}-\d\d-\d\d) (\w+) +order_count (\d+)(?: → (\d+))? +amount_cents (\d+)(?: → (\d+))?", re.MULTILINE
)
_TOTALS = re.compile(
    r"^ *rows +(\d+)(?: → (\d+))?\n *order_count +(\d+|none)(?: → (\d+|none))?.*\n"
    r" *amount_cents +(\d+|none)(?: → (\d+|none))?",
    re.MULTILINE,
)


def wrong_groups(text: str) -> list[str]:
    wrong = []
    for found in _GROUP.finditer(text):
        day, channel, orders, orders_after, cents, cents_after = found.groups()
        pairs = {(int(orders), int(cents)), (int(orders_after or orders), int(cents_after or cents))}
        wrong += [found[0] for pair in pairs if (day, channel, *pair) not in GROUPS]
    return wrong


def wrong_totals(text: str) -> list[str]:
    wrong = []
    for found in _TOTALS.finditer(text):
        before = [found[1], found[3], found[5]]
        after = [found[2] or found[1], found[4] or found[3], found[6] or found[5]]
        told = (Triple(*(0 if value == "none" else int(value) for value in values)) for values in (before, after))
        wrong += [found[0] for each in told if each not in TRIPLES | {EMPTY}]
    return wrong


def wrong_differences(text: str) -> list[str]:
    found = re.findall(r"((\d+) → (\d+) \(([+-]\d+)\))", text)
    return [line for line, before, after, difference in found if int(after) - int(before) != int(difference)]


def wrong_sentences(text: str) -> list[str]:
    """Return what is told of a table or a group in words: `5 rows, 6 orders, 34700 cents`, `2 orders, 19000 cents`."""
    wrong = []
    for words, rows, orders, cents in re.findall(r"((?:(\d+) rows?, )?(\d+) orders?, (\d+) cents)", text):
        possible = {each for each in TRIPLES if rows in ("", str(each.rows))}
        if (int(orders), int(cents)) not in {each[1:] for each in possible}:
            wrong.append(words)
    return wrong


@pytest.mark.parametrize("page", shown_to_a_reader(), ids=lambda path: path.name)
def test_every_figure_of_the_example_on_a_page_is_the_oracles(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert strange_numbers(text) <= (OTHER_NUMBERS.get(page.name) or set())
    assert wrong_lines(text) == []


def test_the_pages_show_figures_enough_to_be_worth_a_check() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in shown_to_a_reader())
    assert len(_GROUP.findall(text)) > 20 and len(_TOTALS.findall(text)) > 8
    assert len(list(console.blocks(text))) > 8


def test_every_figure_that_the_demo_prints_is_the_oracles(demo: str) -> None:
    assert strange_numbers(demo) == set()
    assert wrong_lines(demo) == []
    for figure in ("19000", "38000", "57000"):
        assert figure in demo


@pytest.mark.parametrize(
    ("told", "looked_for"),
    [
        ("web on 2026-01-02 has 19001 cents", strange_numbers),
        ("  ~ 2026-01-02 web   order_count 1 → 3   amount_cents 7000 → 19000", wrong_lines),
        ("  rows          4 → 3\n  order_count   4\n  amount_cents  28700 → 29200 (+500)", wrong_lines),
        ("amount_cents  28700 → 29100 (+401)", wrong_lines),
        ("the whole of daily_orders: 5 rows, 6 orders, 32200 cents", wrong_lines),
        ("appended once: 4 orders, 19000 cents", wrong_lines),
    ],
)
def test_a_wrong_figure_is_found(told: str, looked_for: Any) -> None:
    assert looked_for(told)


# The ten cases: rows of their own, counted here by plain Python.

Order = tuple[str, str, str | None, int]


def case_orders() -> list[Order]:
    """Return the orders of the comparison, as its page lists them."""
    page = (build.ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (o\d+) \| (\d\d) \| (\w+) \| (\d+) \|$", page, re.MULTILINE)
    return [(order, f"01-{day}", channel, int(cents)) for order, day, channel, cents in rows]


def daily(orders: list[Order]) -> dict[tuple[str, str | None], tuple[int, int]]:
    """Return orders and cents per day and channel."""
    groups: dict[tuple[str, str | None], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, day, channel, cents in orders:
        count, total = groups[day, channel]
        groups[day, channel] = (count + 1, total + cents)
    return dict(groups)


def totals(*groups: tuple[int, int]) -> Triple:
    return Triple(len(groups), sum(count for count, _ in groups), sum(cents for _, cents in groups))


def rerun(before: list[Order], after: list[Order], *days: str) -> Triple:
    """Return the target when the days are computed again from the orders after, the others left as they were."""
    old, new = daily(before), daily(after)
    kept = [value for (day, _), value in old.items() if day not in days]
    return totals(*kept, *(value for (day, _), value in new.items() if day in days))


def right_answers() -> dict[str, Triple]:
    """Return what the target holds in each case when all is well."""
    orders = case_orders()
    filled = totals(*daily(orders).values())
    cancelled = [order for order in orders if order[0] != "o300"]
    moved = [("o100", "01-02", "web", 5000) if order[0] == "o100" else order for order in orders]
    nameless: list[Order] = [*orders, ("o204", "01-02", None, 3000)]
    late: list[Order] = [*orders, ("o303", "01-03", "web", 900)]
    return {
        "C1": filled,
        "C2": rerun(orders, cancelled, "01-03"),
        "C3": rerun(orders, moved, "01-01", "01-02"),
        **dict.fromkeys(("C4", "C5", "C6", "C7", "C8"), filled),
        "C9": rerun(orders, nameless, "01-02"),
        "C10": rerun(orders, late, "01-03"),
    }


def test_the_right_answers_of_the_ten_cases_are_right() -> None:
    page = (build.ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    told = {
        case: Triple(int(rows), int(orders), int(cents))
        for case, rows, orders, cents in re.findall(
            r"^\| (C\d+) \|[^|]*\| (\d+) / (\d+) / (\d+) \|", page, re.MULTILINE
        )
    }
    assert told == right_answers()
    orders = case_orders()
    assert len(orders) == 10 and told["C1"] == Triple(8, 10, 56500)
    moved = [("o100", "01-02", "web", 5000) if order[0] == "o100" else order for order in orders]
    assert rerun(orders, moved, "01-02") == Triple(8, 11, 61500)
    assert "01-02 alone gives 8 / 11 / 61500" in page


def test_the_rows_of_the_page_are_those_that_the_cases_run_on() -> None:
    from tests.conformance.test_ten_cases import FACTS

    assert case_orders() == [(order, day.removeprefix("2026-"), channel, cents) for order, day, channel, cents in FACTS]


def test_each_case_is_proved_by_a_test_that_is_there() -> None:
    page = (build.ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (C\d+) \| `(\w+\.py)` `(test_\w+)` \|$", page.split("## The proof")[1], re.MULTILINE)
    assert {case for case, _, _ in told} == set(right_answers())
    for case, file, name in told:
        tree = ast.parse((build.ROOT / "tests" / "conformance" / file).read_text(encoding="utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, f"{case}: {file} {name}"
