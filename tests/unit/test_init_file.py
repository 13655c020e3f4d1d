"""One more target in a contract file: every other byte stays, and it reads back as what was there and the target."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reslice import contract_yaml
from reslice.contract import GrainColumn, SliceColumn, Unit
from reslice.errors import Misused
from reslice.init.draft import Draft, DraftMeasure, Proposal, Why
from reslice.init.file import contract_text
from reslice.init.text import new_file, scalar, source_text


def draft(name: str = "new", column: str = "day", unsure: tuple[str, ...] = ()) -> Draft:
    proposal = Proposal(
        grain=(GrainColumn(column), GrainColumn("kind", nulls_allowed=True)),
        grain_why="a key of the table",
        slice=SliceColumn(column, Unit.HOUR, "UTC"),
        slice_why="",
        measures=(DraftMeasure("n", 0, reason="never below 0"), DraftMeasure("x", None, nulls_allowed=True, scale=2)),
        left_out=(Why("id", "the database fills it"),),
    )
    return Draft(name, 'main."a table"', proposal, "SELECT 1\n", "sql/new.sql", "2026-01-01", "drafted", unsure)


TARGET = {
    "table": 'main."a table"',
    "source": "sql/new.sql",
    "grain": ["day", {"column": "kind", "nulls": "allow"}],
    "slice": {"column": "day", "unit": "hour", "timezone": "UTC"},
    "measures": {"n": {"min": 0}, "x": {"nulls": "allow", "scale": 2}},
}
OLD = "    table: t\n    source: f.sql\n    grain: [d]\n    slice: {column: d, unit: day}\n    measures: [n]\n"
FILES = {
    "plain": f"version: 1\nconnection: duckdb:///w.duckdb\ntargets:\n  old:\n{OLD}",
    "no line break at the end": f"version: 1\nconnection: duckdb:///w.duckdb\ntargets:\n  old:\n{OLD}".rstrip(),
    "keys behind": f"targets:\n  old:\n{OLD}\n\n# about the version\nversion: 1\nconnection: duckdb:///w.duckdb\n",
    "comments all over": f"# a\nversion: 1 # b\nconnection: duckdb:///w.duckdb\ntargets: # c\n  # d\n"
    f"  old: # e\n{OLD}    # f\n\n# g\n",
    "line breaks of Windows": f"version: 1\nconnection: duckdb:///w.duckdb\ntargets:\n  old:\n{OLD}".replace(
        "\n", "\r\n"
    ),
    "deep": "version: 1\nconnection: duckdb:///w.duckdb\ntargets:\n      old:\n" + OLD.replace("    ", "          "),
    "a document marker": f"---\nversion: 1\nconnection: duckdb:///w.duckdb\ntargets:\n  old:\n{OLD}...\n",
}


@pytest.mark.parametrize("form", FILES)
def test_a_target_is_added_and_nothing_else_changes(form: str, tmp_path: Path) -> None:
    file = tmp_path / "reslice.yml"
    file.write_bytes(FILES[form].encode())
    after = contract_text(draft(), file, "unused")
    before, found = contract_yaml.read(FILES[form]), contract_yaml.read(after)
    assert not found.mistakes
    assert found.data["targets"].pop("new") == TARGET
    assert found.data == before.data
    kept = [line for line in after.splitlines() if line in FILES[form].splitlines()]
    assert kept == FILES[form].splitlines()
    assert ("\r\n" in after) == ("\r\n" in FILES[form]) and after.replace("\r\n", "").count("\r") == 0


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nconnection: duckdb:///w.duckdb\ntargets: {old: {table: t, source: f.sql}}\n",
        '{"version": 1, "connection": "duckdb:///w.duckdb", "targets": {"old": {"table": "t"}}}\n',
    ],
)
def test_targets_in_braces_are_added_to_as_well(text: str, tmp_path: Path) -> None:
    file = tmp_path / "reslice.yml"
    file.write_text(text)
    found = contract_yaml.read(contract_text(draft(), file, "unused"))
    assert not found.mistakes
    assert found.data["targets"].pop("new") == TARGET
    assert found.data == contract_yaml.read(text).data


def test_a_file_that_cannot_be_added_to_is_told(tmp_path: Path) -> None:
    file = tmp_path / "reslice.yml"
    text = f"version: 1\nconnection: duckdb:///w.duckdb\ntargets:\n  new:\n{OLD}"
    file.write_text(text)  # a target of the name is there: adding it would replace it
    with pytest.raises(Misused, match="has a form that init cannot add to"):
        contract_text(draft(), file, "unused")
    assert file.read_text() == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_written_so_that_it_is_read_back(text: str) -> None:
    found = contract_yaml.read(f"{scalar(text)}: [{scalar(text)}, {{a: {scalar(text)}}}]\n")
    assert not found.mistakes
    assert found.data == {text: [text, {"a": text}]}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_doubt_and_name_make_a_file_that_is_read_back(text: str) -> None:
    written = new_file("duckdb:///w.duckdb", draft(name=text, column=text, unsure=(text,)))
    found = contract_yaml.read(written)
    assert not found.mistakes
    assert [*found.data["targets"]] == [text]
    assert found.data["targets"][text]["slice"]["column"] == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_doubt_leaves_the_comment_above_a_source(text: str) -> None:
    lines = source_text("SELECT 1", [text], [text]).split("\n")
    assert lines[-2:] == ["SELECT 1", ""]
    assert all(line.startswith("--") for line in lines[:-2])
