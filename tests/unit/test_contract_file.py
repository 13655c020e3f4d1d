"""A contract file is read whole: each mistake at its line, all at once, and no secret in any answer."""

from __future__ import annotations

import json
import string
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.contract_texts import FULL, SMALL, SQL, changed, contract, loaded, write_sql

from reslice import contract_schema, contract_yaml
from reslice.contract import (
    Action,
    ClosedThrough,
    GrainColumn,
    Guards,
    LedgerOptions,
    Line,
    Match,
    Measure,
    Method,
    SliceColumn,
    Stamp,
    StampValue,
    Timeouts,
    Unit,
)
from reslice.contract_file import load
from reslice.errors import Misused

SCHEMA = Path(contract_schema.__file__).with_name("contract.schema.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_sql(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_small_contract_has_defaults_for_the_rest(folder: Path) -> None:
    project = loaded(SMALL)
    assert project.path == Path("reslice.yml")
    assert project.connection.engine == "duckdb"
    assert project.connection.shown == project.connection.url == "duckdb:///retail.duckdb"
    assert project.connection.path is not None and project.connection.path.resolve() == folder / "retail.duckdb"
    assert list(project.targets) == ["daily"]
    daily = project.targets["daily"]
    assert (daily.name, daily.table, daily.columns) == (
        "daily",
        "daily_orders",
        ("order_date", "channel", "orders", "cents"),
    )
    assert (daily.source.name, daily.source.text) == ("sql/daily.sql", SQL["sql/daily.sql"])
    assert daily.slice == SliceColumn("order_date", Unit.DAY, "UTC")
    assert daily.measures == (Measure("orders", Decimal(1)), Measure("cents", Decimal(0)))
    assert (daily.stamps, daily.controls, daily.affected, daily.downstream) == ((), None, None, ())
    assert (daily.method, daily.guards, daily.ledger, daily.timeouts) == (
        Method.REPLACE_SLICE,
        Guards(),
        LedgerOptions(),
        Timeouts(),
    )


def test_a_full_contract_is_read_as_written() -> None:
    daily = contract(FULL)
    assert daily.table == 'main."daily orders"'
    assert daily.grain == (GrainColumn("order_date"), GrainColumn("channel", nulls_allowed=True))
    assert daily.slice == SliceColumn("order_date", Unit.WEEK, "Europe/Amsterdam")
    assert daily.measures == (
        Measure("orders", Decimal(1)),
        Measure("cents", Decimal("-0.10"), nulls_allowed=True, scale=2),
        Measure("no"),
    )
    assert str(daily.measures[1].minimum) == "-0.10"
    assert daily.stamps == (Stamp("loaded_at", StampValue.RUN_TIME), Stamp("batch_id", StampValue.RUN_ID))
    assert daily.controls is not None
    assert (daily.controls.name, daily.controls.query.name) == ("controls", "sql/control.sql")
    assert daily.controls.match == (Match("orders", "orders"), Match("rows", None))
    assert daily.method is Method.MERGE
    assert daily.guards == Guards(
        empty_slice=Action.ALLOW,
        total_change=Decimal("0.125"),
        removed_groups=Action.STOP,
        restored=Action.ALLOW,
        closed_through=ClosedThrough(days_ago=2),
        max_slices=12,
    )
    assert daily.affected is not None and daily.affected.text == SQL["sql/affected.sql"]
    assert [(each.name, each.match) for each in daily.downstream] == [("report", (Match("cents", "cents"),))]
    assert daily.ledger == LedgerOptions("books", 7)
    assert daily.timeouts == Timeouts(
        timedelta(hours=1), timedelta(milliseconds=500), timedelta(minutes=2), timedelta(seconds=1)
    )


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ("max_slices: 12", "max_slices: 1", "max_slices", 1),
        ("12.5%", "allow", "total_change", None),
        ("12.5%", '"0 %"', "total_change", Decimal(0)),
        ("2 days ago", "yesterday", "closed_through", ClosedThrough(days_ago=1)),
        ("2 days ago", "1 day ago", "closed_through", ClosedThrough(days_ago=1)),
        ("2 days ago", "2026-02-28", "closed_through", ClosedThrough(on=date(2026, 2, 28))),
    ],
)
def test_guards_are_read(old: str, new: str, key: str, expected: object) -> None:
    assert getattr(contract(changed(old, new, FULL)).guards, key) == expected


def test_timeouts_may_be_none_for_a_statement_and_zero_for_waiting() -> None:
    timeouts = contract(changed("{wait: 1h, lock: 500ms, statement: 2m", "{wait: 0s, statement: none", FULL)).timeouts
    assert (timeouts.wait, timeouts.lock, timeouts.statement) == (timedelta(0), timedelta(seconds=5), None)


def test_measures_may_be_a_plain_list() -> None:
    text = SMALL.partition("    measures:")[0] + "    measures: [orders, cents]\n"
    daily = contract(text)
    assert daily.measures == (Measure("orders"), Measure("cents"))
    assert daily.lines["measures.cents"] == Line("reslice.yml", 9, 24, "measures: [orders, cents]")


def test_a_minimum_keeps_every_digit() -> None:
    digits = "1234567890123456789012345678.0123456789"
    daily = contract(changed("min: 0", f"min: {digits}"))
    assert str(daily.measures[1].minimum) == digits


def test_a_source_may_use_instants_instead_of_days() -> None:
    assert contract(changed("sql/daily.sql", "sql/instants.sql")).source.text == SQL["sql/instants.sql"]


@pytest.mark.parametrize(
    ("written", "quoted"),
    [
        ("cents: {min: 0}  # never below 0 in 4200 rows", "cents: {min: 0}"),
        ("'cents': {min: 0}  # it's 5% of \"all\"", "'cents': {min: 0}"),
        ('"cents": {"min": 0}  # quotes', '"cents": {"min": 0}'),
    ],
)
def test_a_line_is_quoted_without_the_comment_behind_it(written: str, quoted: str) -> None:
    daily = contract(changed("cents: {min: -0.10, nulls: allow, scale: 2}", written, FULL))
    assert daily.lines["measures.cents"].text == quoted
    assert daily.quote("measures.cents", "").startswith(f"{quoted}  (reslice.yml, line ")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('table: "a # b"  # c', 'table: "a # b"'),
        ('table: "a \\" # b"  # c', 'table: "a \\" # b"'),
        ("table: 'it''s # b' # c", "table: 'it''s # b'"),
        ("table: a#b", "table: a#b"),
        ("table: a \t# c", "table: a"),
        ("table: it's  # c", "table: it's"),
        ("grain: [day,'a # b']  # c", "grain: [day,'a # b']"),
        ('{"table":"a # b"}  # c', '{"table":"a # b"}'),
        ('table: "goes on # in the next line', 'table: "goes on # in the next line'),
        ("# a comment alone", ""),
    ],
)
def test_only_a_comment_is_no_part_of_a_line(line: str, text: str) -> None:
    assert contract_yaml.Document([line]).text_of(1) == text


def test_lines_say_where_each_key_stands() -> None:
    lines = contract(FULL).lines
    grain = "grain: [order_date, {column: channel, nulls: allow}]"
    assert lines["source"] == Line("reslice.yml", 7, 5, "source: sql/daily.sql")
    assert lines["grain"] == Line("reslice.yml", 8, 5, grain)
    assert lines["grain.channel"] == Line("reslice.yml", 8, 25, grain)
    assert lines["grain.channel.nulls"] == Line("reslice.yml", 8, 43, grain)
    assert lines["slice.unit"].column == 33
    assert lines["measures.cents.min"] == Line("reslice.yml", 12, 15, "cents: {min: -0.10, nulls: allow, scale: 2}")
    assert lines["guards.total_change"] == Line("reslice.yml", 19, 7, "total_change: 12.5%")
    assert lines["controls.match.orders"].line == 15
    assert "guards.empty_slice" not in contract(SMALL).lines


def test_a_file_below_the_current_folder_is_shown_relative(folder: Path) -> None:
    (folder / "reslice.yml").write_text(SMALL)
    assert load(folder / "reslice.yml").targets["daily"].lines["table"].file == "reslice.yml"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1\n", "# a comment\nversion: 1\n"),
        ("duckdb:///retail.duckdb", "duckdb:///other.duckdb"),
        ("min: 0", "min: 0.00"),
        ("    table", "    ledger: {keep_days: 1}\n    timeouts: {wait: 1s}\n    table"),
    ],
)
def test_the_digest_stays_when_nothing_computed_or_checked_changes(old: str, new: str) -> None:
    before = contract(SMALL).digest
    assert len(before) == 64 and set(before) <= set(string.hexdigits.lower())
    assert contract(changed(old, new)).digest == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("table: daily_orders", "table: other"),
        ("unit: day", "unit: week"),
        ("unit: day", "unit: day, timezone: Asia/Kolkata"),
        ("min: 0", "min: 0.01"),
        ("min: 0", "nulls: allow"),
        ("channel]", "{column: channel, nulls: allow}]"),
        ("sql/daily.sql", "sql/instants.sql"),
        ("    table", "    guards: {total_change: 51%}\n    table"),
        ("    table", "    affected: sql/affected.sql\n    table"),
        ("    table", "    controls: {source: sql/control.sql, match: {x: count(*)}}\n    table"),
    ],
)
def test_the_digest_moves_with_what_is_computed_or_checked(old: str, new: str) -> None:
    assert contract(changed(old, new)).digest != contract(SMALL).digest


def test_the_digest_knows_the_text_of_the_sql() -> None:
    before = contract(SMALL).digest
    Path("sql/daily.sql").write_bytes(SQL["sql/daily.sql"].replace("\n", "\r\n").encode())
    assert contract(SMALL).digest == before
    Path("sql/daily.sql").write_text(SQL["sql/daily.sql"].replace("facts", "fact"))
    assert contract(SMALL).digest != before


def test_the_published_schema_is_the_one_of_the_models() -> None:
    assert json.loads(SCHEMA.read_text()) == contract_schema.json_schema()


def test_the_published_schema_takes_what_load_takes() -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for text in (SMALL, FULL, SMALL.partition("    measures:")[0] + "    measures: [orders]\n"):
        loaded(text)
        validator.validate(plain(contract_yaml.read(text).data))
    for old, new in (
        ("version: 1", "version: 2"),
        ("table:", "tabel:"),
        ("unit: day", "unit: dya"),
        ("min: 1", "min: x"),
    ):
        assert not validator.is_valid(plain(contract_yaml.read(changed(old, new)).data)), new


def plain(value: object) -> object:
    """Decimals as floats: jsonschema knows no Decimal."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return float(value) if isinstance(value, Decimal) else value


def test_every_mapping_with_fixed_keys_knows_its_near_keys() -> None:
    def models(schema: dict[str, object]) -> Iterator[str]:
        defs = schema["$defs"]
        assert isinstance(defs, dict)
        yield from defs

    known = {model.__name__ for model in contract_schema._MODELS.values()}
    assert known == {*models(contract_schema.json_schema()), "File"}


def survives(text: str) -> None:
    """Load text as a contract: nothing but a ResliceError of kind contract may come out, and it can be shown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sql(folder)
        (folder / "reslice.yml").write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            project = load(folder / "reslice.yml", environ={})
        except Misused as error:
            assert error.kind == "contract"
            assert all("\n" not in line for line in error.failures[0].found)
            str(error).encode()
        else:
            assert replace(project.connection, url="").shown


YAML_PIECES = st.lists(
    st.sampled_from(
        [*"{}[],:&*!|>'\"%@`#?-~", ": ", "- ", "\n", "\n  ", "\n    ", "\t", "a", "b: ", "version: 1", "targets:",
         "---\n", "...",
         "&a ", "*a", "!!int ", "<<: ", "null", "true", "1e99", "0x1", "\\0", "\x85", "\u2028",
         "\ufeff", "\0", "\ud800"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@given(st.text(max_size=80) | YAML_PIECES)
@example("\x85a: b: c")
@example("? ? ? a")
@example("version: 1\nconnection: x\ntargets: {'\\n': {}}")
def test_no_text_is_too_strange_for_load(text: str) -> None:
    survives(text)


@given(st.sampled_from([SMALL, FULL]), st.data())
def test_no_damage_to_a_contract_is_too_strange_for_load(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(YAML_PIECES | st.text(max_size=3)) + text[end:]
    survives(text)
