"""A comment takes away the finding it is about, and no other; it needs a reason and has to have an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from reslice.audit.runner import audit
from reslice.audit.suppress import suppressions
from reslice.audit.text import Text

APPEND = "insert into {table}\nselect day, count(*) from orders group by day;\n"


def answered(tmp_path: Path, text: str) -> tuple[list[tuple[str, int]], list[tuple[str, int, str]]]:
    """Return code and line of what is found, and code, line and reason of what is suppressed."""
    file = tmp_path / "job.sql"
    file.write_text(text, encoding="utf-8")
    found = audit([file], "postgres")
    assert not found.unparsed
    return (
        [(each.code, each.place.line) for each in (*found.findings, *found.notes, *found.unknown)],
        [(each.code, each.place.line, each.reason) for each in found.suppressed],
    )


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("-- reslice: ignore RS101 each batch comes once\n", 2),
        ("-- reslice: ignore RS101 each batch comes once\n\n-- what the loader brings\n", 4),
        ("/* reslice: ignore RS101 each batch comes once */\n", 2),
        ("{# reslice: ignore RS101 each batch comes once #}\n", 2),
        ("{#- reslice: ignore RS101 each batch comes once -#}\n", 2),
        ("-- reslice:ignore rs101: each batch comes once\n", 2),
        ("    --reslice: ignore RS101 - each batch comes once\n", 2),
    ],
)
def test_a_comment_above_the_statement_suppresses(tmp_path: Path, before: str, line: int) -> None:
    assert answered(tmp_path, before + APPEND.format(table="a")) == ([], [("RS101", line, "each batch comes once")])


def test_a_comment_on_the_line_suppresses(tmp_path: Path) -> None:
    text = (
        "insert into a -- reslice: ignore RS101 each batch comes once\nselect day, count(*) from orders group by day;\n"
    )
    assert answered(tmp_path, text) == ([], [("RS101", 1, "each batch comes once")])


def test_a_comment_above_a_statement_reaches_what_is_found_further_down_in_it(tmp_path: Path) -> None:
    text = "-- reslice: ignore RS101 seen\nwith o as (\n  select day from orders\n)\n" + APPEND.format(table="a")
    assert answered(tmp_path, text) == ([], [("RS101", 2, "seen")])


def test_the_next_statement_is_not_suppressed(tmp_path: Path) -> None:
    text = "-- reslice: ignore RS101 seen\n" + APPEND.format(table="a") + APPEND.format(table="b")
    assert answered(tmp_path, text) == ([("RS101", 4)], [("RS101", 2, "seen")])


def test_another_code_is_not_suppressed(tmp_path: Path) -> None:
    text = "-- reslice: ignore RS301 seen\n" + APPEND.format(table="a")
    assert answered(tmp_path, text) == ([("RS902", 1), ("RS101", 2)], [])


def test_several_codes_are_each_used_or_told(tmp_path: Path) -> None:
    text = "-- reslice: ignore RS301, RS101 seen\n" + APPEND.format(table="a")
    assert answered(tmp_path, text) == ([("RS902", 1)], [("RS101", 2, "seen")])
    (finding,) = audit([tmp_path / "job.sql"], "postgres").findings
    assert "RS301" in finding.detail and "RS101" not in finding.detail


def test_a_reason_is_missed_and_the_finding_is_suppressed_all_the_same(tmp_path: Path) -> None:
    text = "-- reslice: ignore RS101\n" + APPEND.format(table="a")
    assert answered(tmp_path, text) == ([("RS901", 1)], [("RS101", 2, "")])


@pytest.mark.parametrize("comment", ["RS999 seen", "the whole file", "", "append"])
def test_a_comment_that_names_no_rule_has_no_effect(tmp_path: Path, comment: str) -> None:
    text = f"-- reslice: ignore {comment}\n" + APPEND.format(table="a")
    assert answered(tmp_path, text) == ([("RS902", 1), ("RS101", 2)], [])


def test_a_comment_without_effect_is_found_after_the_last_statement_too(tmp_path: Path) -> None:
    assert answered(tmp_path, "select 1;\n-- reslice: ignore RS101 seen\n") == ([("RS902", 2)], [])


def test_in_a_file_that_is_read_in_part_no_comment_is_called_unused(tmp_path: Path) -> None:
    file = tmp_path / "job.sql"
    file.write_text("-- reslice: ignore RS101 seen\ninsert into into a (;\n")
    found = audit([file], "postgres")
    assert found.unparsed and not found.findings


def test_what_stands_in_a_string_or_is_quoted_is_no_comment() -> None:
    text = "select '-- reslice: ignore RS101 no'; -- write `-- reslice: ignore RS101 why`\n"
    assert not list(suppressions(Text("x.sql", text)))


def test_a_line_of_blanks_is_read_at_once() -> None:
    text = "-- reslice: ignore RS101" + " " * 500_000 + "x" + "#" * 500_000
    (found,) = suppressions(Text("x.sql", text))
    assert found.reason.startswith("x#")
