"""A plan file says exactly what was compared, is read back exactly, and anything else is refused in four parts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reslice import plan_file
from reslice.contract import Action, Contract, GrainColumn, Measure, SliceColumn, SqlFile, Unit
from reslice.errors import Misused
from reslice.plan_file import PlanFile
from reslice.ranges import Range, Scope
from reslice.values import Counts, Diff, Fingerprint, Guard, Outcome, Run, SliceDiff, Total

CONTRACT = Contract(
    name="daily_orders",
    table="daily_orders",
    source=SqlFile("sql/daily_orders.sql", Path("sql/daily_orders.sql"), "SELECT 1"),
    grain=(GrainColumn("order_date"), GrainColumn("channel")),
    slice=SliceColumn("order_date", Unit.DAY, "Europe/Amsterdam"),
    measures=(Measure("amount_cents"),),
    digest="9f3c2a51",
)
SCOPE = Scope.of(Range(Unit.DAY, "Europe/Amsterdam", date(2026, 1, 1), date(2026, 1, 2)))
RUN = Run(
    command="plan",
    target="daily_orders",
    table="retail.main.daily_orders",
    scope=SCOPE,
    outcome=Outcome.PLANNED,
    diff=Diff(
        scope=SCOPE,
        slices=(
            SliceDiff(date(2026, 1, 1), "2026-01-01", Fingerprint(2, 700), Fingerprint(1, 300), removed=1, unchanged=1),
            SliceDiff(date(2026, 1, 2), "2026-01-02", Fingerprint(2, 500), Fingerprint(2, 2**70), changed=2),
        ),
        groups=(),
        groups_left_out=0,
        totals={"amount_cents": Total(28700, 29100), "price": Total(None, Decimal("0.10"))},
        columns=("amount_cents", "channel", "order_date", "price"),
    ),
    guards=(
        Guard("empty_slice", Action.STOP, False, "", ""),
        Guard("removed_groups", Action.REPORT, True, "", ""),
        Guard("total_change", Action.STOP, True, "", ""),
    ),
)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
EXPECTED = PlanFile(
    target="daily_orders",
    table="retail.main.daily_orders",
    scope_text="2026-01-01..2026-01-02",
    unit=Unit.DAY,
    zone="Europe/Amsterdam",
    contract_digest="9f3c2a51",
    base=Fingerprint(4, 1200),
    staged=Fingerprint(3, 300 + 2**70),
    columns=("amount_cents", "channel", "order_date", "price"),
    guards=("total_change",),
    counts=Counts(0, 2, 1, 1),
    totals={"amount_cents": Total(28700, 29100), "price": Total(None, Decimal("0.10"))},
    tool_version="0.1.0",
    created_at=NOON,
)


def test_it_names_what_was_compared_and_the_guards_that_stop() -> None:
    assert plan_file.of(RUN, CONTRACT, created_at=NOON) == EXPECTED


def test_it_is_read_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan_file.write(path, EXPECTED)
    found = plan_file.read(path)
    assert found == EXPECTED
    assert str(found.totals["price"].after) == "0.10", "a decimal keeps its digits"
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_it_is_dated_now_unless_told_otherwise() -> None:
    before = datetime.now(UTC)
    assert before <= plan_file.of(RUN, CONTRACT).created_at <= datetime.now(UTC)


def test_an_earlier_plan_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan_file.write(path, EXPECTED)
    plan_file.write(path, replace(EXPECTED, target="weekly_orders"))
    assert plan_file.read(path).target == "weekly_orders"


@pytest.mark.parametrize("content", ["", "SELECT 1", "{}", "[]", '{"schema": "other/1"}', '{"schema": 7}'])
def test_another_file_is_not_overwritten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(Misused) as caught:
        plan_file.write(path, EXPECTED)
    assert caught.value.kind == "usage"
    assert path.read_text() == content


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Misused, match="not overwritten"):
        plan_file.write(path, EXPECTED)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="No such file or directory"):
        plan_file.write(tmp_path / "no" / "plan.json", EXPECTED)


def written(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "plan.json"
    plan_file.write(path, EXPECTED)
    value: dict[str, Any] = json.loads(path.read_text())
    return value


FIELDS = [
    "target",
    "table",
    "range",
    "unit",
    "timezone",
    "contract_digest",
    "fingerprint",
    "guards",
    "diff",
    "totals",
    "tool_version",
    "created_at",
]


def test_these_are_all_its_fields(tmp_path: Path) -> None:
    assert list(written(tmp_path)) == ["schema", *FIELDS]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("wrong", [None, "", 7, -1, True, [7], {"base": 1}])
def test_a_field_that_is_wrong_is_named(tmp_path: Path, name: str, wrong: object) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(written(tmp_path) | {name: wrong}))
    with pytest.raises(Misused) as caught:
        plan_file.read(path)
    assert caught.value.kind == "plan_unreadable"
    if not isinstance(wrong, dict):
        assert f"its {name} is not as reslice writes it" in caught.value.failures[0].found[0]


@pytest.mark.parametrize("name", ["schema", *FIELDS])
def test_a_field_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    value = written(tmp_path)
    del value[name]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(value))
    with pytest.raises(Misused, match=f"it has no {name}"):
        plan_file.read(path)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ({"fingerprint": {"base": "4", "staged": "3:1", "columns": ["a"]}}, "base"),
        ({"fingerprint": {"base": "4:1", "staged": "x:1", "columns": ["a"]}}, "staged"),
        ({"fingerprint": {"base": "4:1", "staged": "3:1", "columns": "a"}}, "columns"),
        ({"diff": {"added": 0, "changed": 0, "removed": 0, "unchanged": True}}, "unchanged"),
        ({"diff": {"added": 0, "changed": -1, "removed": 0, "unchanged": 1}}, "changed"),
        ({"totals": {"a": {"before": "sNaN", "after": 1}}}, "before"),
        ({"totals": {"a": {"before": 1, "after": "ten"}}}, "after"),
        ({"totals": {"a": {"before": 1, "after": 1.5}}}, "after"),
        ({"created_at": "2026-01-05T12:00:00"}, "created_at"),
        ({"unit": "fortnight"}, "unit"),
    ],
)
def test_a_value_that_is_wrong_within_is_named(tmp_path: Path, part: dict[str, Any], wrong: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(written(tmp_path) | part))
    with pytest.raises(Misused, match=f"its {wrong} is not as reslice writes it"):
        plan_file.read(path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "it has no schema"),
        (b'{"schema": "reslice/plan-file/2"}', "it says schema 'reslice/plan-file/2'"),
        (b'{"schema": "reslice/plan/1"}', "it says schema 'reslice/plan/1'"),
        (b" " * 10_000_001, "it is larger than"),
    ],
)
def test_another_file_is_not_read(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(Misused) as caught:
        plan_file.read(path)
    assert caught.value.kind == "plan_unreadable"
    assert found in caught.value.failures[0].found[0]


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="No such file or directory"):
        plan_file.read(tmp_path / "plan.json")


def test_a_folder_is_no_plan_file(tmp_path: Path) -> None:
    assert not plan_file.is_plan_file(tmp_path)
    with pytest.raises(Misused, match="cannot be read"):
        plan_file.read(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FIELDS), json_values)
def test_any_value_in_any_field_is_read_or_refused(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps(written(tmp_path) | {name: value}))
    try:
        found = plan_file.read(path)
    except Misused as error:
        assert error.kind == "plan_unreadable"
    else:
        plan_file.write(tmp_path / "again.json", found)
        assert plan_file.read(tmp_path / "again.json") == found
