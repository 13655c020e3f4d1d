"""What an audit answers, as text, JSON, SARIF and commands of GitHub Actions; expected by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from reslice.audit.finding import Audited, Finding, Place, Sort, Unparsed
from reslice.audit.rule import rules
from reslice.audit.runner import audit
from reslice.report_audit import audit_json, audit_text, exit_code, github_lines, rule_text, rules_text
from reslice.report_sarif import sarif
from tests.audit.sarif_shape import SHAPE

PLACE = Place("jobs/a b.sql", 2, 3, 2, 8)
FOUND = Finding(PLACE, "RS101", "A title", "found: 50%, twice\nhere", "do this", Sort.FINDING, ("\tinsert x",), "daily")
NOTE = Finding(Place("b.sql", 1, 1, 3, 2), "RS301", "B", "b", "c", Sort.NOTE, ("with a as (", "  select 1", ") x"))
OPEN = Finding(Place("c.sql", 7, 1, 7, 1), "RS202", "C", "cc", "d", Sort.UNKNOWN, ("x",))
QUIET = Finding(Place("d.sql", 1, 1, 1, 1), "RS102", "D", "d", "e", Sort.FINDING, ("x",), reason="seen")
BARE = Finding(Place("d.sql", 5, 1, 5, 1), "RS102", "D", "d", "e", Sort.FINDING, ("x",))
WHOLE = Audited(
    ("jobs/a b.sql", "b.sql", "c.sql", "d.sql", "e.sql"),
    (FOUND,),
    (NOTE,),
    (OPEN,),
    (Unparsed("e.sql", 4, 2, "no text"),),
    (QUIET, BARE),
    (("duckdb", 3), ("tsql", 1)),
)
NOTHING = Audited(("a.sql",), (), (), (), ())

TEXT = """\
b.sql:1:1: note RS301 B: b
  1 | with a as (
    | ^^^^^^^^^^^
  2 |   select 1
    |   ^^^^^^^^
  3 | ) x
    | ^^
  help: c

c.sql:7:1: unknown RS202 C: cc
  7 | x
    | ^
  help: d

e.sql:4:2: not read: no text

jobs/a b.sql:2:3: RS101 A title: found: 50%, twice\\nhere
  2 |  insert x
    |   ^^^^^^
  help: do this

5 files: 1 finding, 1 note
not counted as safe: 1 write that reading cannot decide, 1 place that could not be read
suppressed: 2 findings
dialect: a guess (duckdb in 3 files, tsql in 1 file); --dialect NAME says it
way out: reslice init daily --source 'jobs/a b.sql'
next: reslice rule RS101"""


def test_the_text_names_place_rule_and_way_on() -> None:
    assert audit_text(WHOLE) == TEXT


def test_the_text_of_nothing_says_so() -> None:
    assert audit_text(NOTHING) == "1 file: no finding\nnext: reslice rule"


def test_colors_change_nothing_but_the_colors() -> None:
    colored = audit_text(WHOLE, colored=True)
    assert "\x1b[1;31mRS101\x1b[0m" in colored
    plain = colored
    for code in ("1;31", "1;33", "1;34", "31", "1", "0"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == TEXT


def test_the_way_out_leads_to_the_project() -> None:
    assert "way out: reslice init -C shop daily --source" in audit_text(WHOLE, place="-C shop").replace(
        "reslice -C shop init", "reslice init -C shop"
    )


def test_a_long_line_is_shown_around_what_is_found() -> None:
    line = "select " + "a, " * 200 + "now() from b " + "-- x" * 100
    at = line.index("now()") + 1
    finding = Finding(Place("a.sql", 1, at, 1, at + 4), "RS101", "A", "a", "b", Sort.FINDING, (line,))
    text = audit_text(Audited(("a.sql",), (finding,), (), (), ()))
    shown, carets = text.splitlines()[1:3]
    assert len(shown) < 130 and shown.endswith("…")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "now()"


def test_carets_stand_below_wide_and_hostile_characters() -> None:
    line = "select '日本\x1b[2J', x"
    at = line.index("x", 10) + 1
    finding = Finding(Place("a.sql", 1, at, 1, at), "RS101", "A", "\x1b[31m", "b", Sort.FINDING, (line,))
    text = audit_text(Audited(("a\n.sql",), (finding,), (), (), ()))
    assert "\x1b" not in text
    assert text.splitlines()[1:3] == ["  1 | select '日本\\x1b[2J', x", "    | " + " " * 22 + "^"]


def test_the_json_has_every_list() -> None:
    value = audit_json(WHOLE)
    assert value["schema"] == "reslice/audit/1" and value["files"] == 5 and value["exit_code"] == 1
    assert value["findings"] == [
        {
            "path": "jobs/a b.sql",
            "line": 2,
            "column": 3,
            "end_line": 2,
            "end_column": 8,
            "code": "RS101",
            "title": "A title",
            "detail": "found: 50%, twice\nhere",
            "help": "do this",
            "table": "daily",
        }
    ]
    assert [each["code"] for each in value["notes"]] == ["RS301"]
    assert [each["code"] for each in value["unknown"]] == ["RS202"]
    assert value["unparsed"] == [{"path": "e.sql", "line": 4, "column": 2, "why": "no text"}]
    assert [(each["sort"], each["reason"]) for each in value["suppressed"]] == [("finding", "seen"), ("finding", "")]
    assert value["dialects_guessed"] == {"duckdb": 3, "tsql": 1}
    assert json.loads(json.dumps(value)) == value


def test_only_findings_end_with_one() -> None:
    assert exit_code(WHOLE) == 1
    assert exit_code(Audited(WHOLE.files, (), WHOLE.notes, WHOLE.unknown, WHOLE.unparsed, WHOLE.suppressed)) == 0


def test_the_commands_of_github_are_escaped() -> None:
    lines = github_lines(WHOLE).splitlines()
    assert lines[:4] == [
        "::error file=jobs/a b.sql,line=2,endLine=2,col=3,endColumn=8,title=RS101 A title"
        "::found: 50%25, twice%0Ahere; do this",
        "::warning file=c.sql,line=7,endLine=7,col=1,endColumn=1,title=RS202 C::cc; d",
        "::notice file=b.sql,line=1,endLine=3,col=1,title=RS301 B::b; c",
        "::warning file=e.sql,line=4,col=2,title=not read::no text",
    ]
    strange = Finding(Place("a,b:c%.sql", 1, 1, 1, 1), "RS101", "x: y, z", "d", "h", Sort.FINDING)
    assert github_lines(Audited((), (strange,), (), (), ())).splitlines()[0] == (
        "::error file=a%2Cb%3Ac%25.sql,line=1,endLine=1,col=1,endColumn=1,title=RS101 x%3A y%2C z::d; h"
    )


def results(value: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["ruleId"], each["level"], each.get("kind"), each.get("suppressions"))
        for each in value["runs"][0]["results"]
    ]


def test_sarif_has_rules_regions_and_suppressions() -> None:
    value = sarif(WHOLE)
    jsonschema.validate(value, SHAPE)
    run = value["runs"][0]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [*rules()]
    assert results(value) == [
        ("RS101", "error", None, None),
        ("RS202", "none", "open", None),
        ("RS301", "note", None, None),
        ("RS102", "error", None, [{"kind": "inSource", "justification": "seen"}]),
        ("RS102", "error", None, [{"kind": "inSource"}]),
    ]
    for each in run["results"]:
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "jobs/a%20b.sql", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {
        "startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 9, "snippet": {"text": "\tinsert x"}
    }  # fmt: skip
    (invocation,) = run["invocations"]
    assert [each["message"]["text"] for each in invocation["toolExecutionNotifications"]] == ["not read: no text"]


def test_the_shape_that_is_tested_refuses_what_sarif_does_not_know() -> None:
    value = sarif(WHOLE)
    value["runs"][0]["results"][0]["severity"] = "high"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, SHAPE)


def test_a_file_outside_the_working_folder_has_its_own_address() -> None:
    finding = Finding(Place("/tmp/ä.sql", 1, 1, 1, 1), "RS101", "A", "a", "b", Sort.FINDING)
    value = sarif(Audited(("/tmp/ä.sql",), (finding,), (), (), ()))
    jsonschema.validate(value, SHAPE)
    place = value["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "file:///tmp/%C3%A4.sql"}


@pytest.fixture
def corpus() -> Iterator[None]:
    before = Path.cwd()
    os.chdir(Path(__file__).parent)
    yield
    os.chdir(before)


def test_everything_that_the_corpus_finds_fits_each_format(corpus: None) -> None:
    found = audit([Path("cases")])
    assert found.findings
    jsonschema.validate(sarif(found), SHAPE)
    assert len(results(sarif(found))) == len((*found.findings, *found.notes, *found.unknown, *found.suppressed))
    assert len(audit_json(found)["findings"]) == len(found.findings)
    for line in github_lines(found).splitlines()[: len(found.findings)]:
        assert line.startswith("::error file=cases/")


# Rules.


def test_the_list_of_rules_names_each() -> None:
    lines = rules_text([*rules().values()]).splitlines()
    assert [line[:5] for line in lines[:-2]] == [*rules()]
    assert lines[-1] == f"next: reslice rule {next(iter(rules()))}"


def test_the_page_of_a_rule_is_its_docstring() -> None:
    text = rule_text(rules()["RS101"])
    assert text.startswith("RS101: An aggregate is appended\n\nEach run adds")
    assert "Bad (postgres):\n\n    insert into daily_orders\n" in text
    assert text.endswith("before the insert.")
