"""The reference pages say what the code says: nothing undocumented, nothing that the code does not have.

The tables are made from the code by `docs.reference`; beside comparing them with the pages, each list is taken here a
second time from another place: the help a user sees, the database a run leaves, the JSON of real commands.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from docs import build, console, meanings, reference
from reslice import approve, contract, errors, parameters, tables, values
from tests.docs.example_project import called

RESLICE = Path(sys.executable).with_name("reslice")
DOCS = build.ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def first_cells(text: str) -> list[str]:
    """Return what stands in backticks in the first cell of each table row."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def tables_of(name: str) -> dict[str, str]:
    """Return the made tables of a page, by name."""
    return dict(re.findall(r"<!-- table: ([a-z_. ]+) -->\n(.*?)<!-- end -->", page(name), re.DOTALL))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "shop"
    console.STATES["stale"](folder)
    return folder


def reslice(project: Path, *words: str) -> tuple[int, str]:
    code, out, _ = called(project, *words)
    return code, out


@pytest.mark.parametrize("path", sorted(build.pages()), ids=lambda path: path.name)
def test_the_tables_of_a_page_are_those_of_the_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert build.with_tables(text) == text, "python -m docs.build writes them"


def test_every_table_is_on_a_page() -> None:
    on_pages = re.findall(r"<!-- table: ([a-z_. ]+) -->", "".join(path.read_text("utf-8") for path in build.pages()))
    assert sorted(on_pages) == sorted(reference.TABLES)


def test_a_name_without_a_meaning_and_a_meaning_without_a_name_are_found() -> None:
    reference.agreed({"a": "", "b": ""}, ["b", "a"], "letters")
    with pytest.raises(AssertionError, match=r"without a meaning.*'c'"):
        reference.agreed({"a": ""}, ["a", "c"], "letters")
    with pytest.raises(AssertionError, match=r"does not have.*'b'"):
        reference.agreed({"a": "", "b": ""}, ["a"], "letters")


# The contract.


def test_every_field_of_a_contract_is_a_documented_key() -> None:
    keys = set(tables_of("contract.md")["contract"].split("`"))
    for name in contract.Guards.__dataclass_fields__:
        assert f"guards.{name}" in keys
    for name in contract.LedgerOptions.__dataclass_fields__:
        assert f"ledger.{name}" in keys
    for name in contract.Timeouts.__dataclass_fields__:
        assert f"timeouts.{name}" in keys
    made = {"name", "digest", "lines"}
    assert set(contract.Contract.__dataclass_fields__) - made <= keys


def test_the_default_of_each_guard_and_timeout_is_the_one_on_the_page() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| .*? \| (?:`([^`]*)`|\w+) \|", page("contract.md"), re.MULTILINE))
    guards = contract.Guards()
    assert rows["guards.empty_slice"] == guards.empty_slice
    assert rows["guards.removed_groups"] == guards.removed_groups
    assert rows["guards.restored"] == guards.restored
    assert guards.total_change is not None and rows["guards.total_change"] == f"{guards.total_change * 100:.0f}%"
    assert rows["guards.max_slices"] == str(guards.max_slices)
    assert rows["ledger.schema"] == contract.LedgerOptions().schema
    assert rows["ledger.keep_days"] == str(contract.LedgerOptions().keep_days)
    seconds = {"10m": 600, "5s": 5, "30s": 30}
    for name in ("wait", "lock", "idle"):
        assert seconds[rows[f"timeouts.{name}"]] == getattr(contract.Timeouts(), name).total_seconds()
    assert rows["timeouts.statement"] == "none" and contract.Timeouts().statement is None


def test_every_placeholder_is_on_the_contracts_page() -> None:
    text = page("contract.md").split("## SQL files")[1]
    assert {name.removeprefix(":") for name in first_cells(text) if name.startswith(":")} == set(parameters.KNOWN)


def test_the_schema_for_editors_is_the_one_in_the_package() -> None:
    from reslice import contract_schema

    published = json.loads((build.ROOT / "src" / "reslice" / "contract.schema.json").read_text())
    assert published == contract_schema.json_schema()


# Commands.


@pytest.mark.parametrize("command", ["", *reference.commands()])
def test_every_option_of_the_help_is_on_the_page(command: str) -> None:
    told = tables_of("commands.md")[f"command {command or 'reslice'}"]
    help_text = subprocess.run(
        [RESLICE, *filter(None, [command]), "--help"], capture_output=True, text=True, check=True
    )
    options = set(re.findall(r"^  (--?[A-Za-z-]+)", help_text.stdout.split("Options:")[1], re.MULTILINE)) - {"--help"}
    assert options
    assert options == {cell.split()[0] for cell in first_cells(told)}


def test_every_command_of_the_help_has_a_section() -> None:
    help_text = subprocess.run([RESLICE, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+)  +[A-Z]", help_text.split("--help")[1], re.MULTILINE)
    assert commands and set(commands) == set(reference.commands())
    assert set(re.findall(r"^## ([a-z]+)$", page("commands.md"), re.MULTILINE)) == set(commands)


def test_every_guard_a_consent_can_name_is_on_the_page() -> None:
    line = re.search(r"`--allow GUARD --reason TEXT` consents to one of (.*?)\. ", page("commands.md"), re.DOTALL)
    assert line is not None and tuple(re.findall(r"`(\w+)`", line[1])) == approve.GUARDS


@pytest.mark.parametrize(("form", "meaning"), meanings.RANGE_FORMS)
def test_every_form_of_a_range_is_read(form: str, meaning: str) -> None:
    from reslice.ranges import Scope

    unit = contract.Unit.HOUR if "hour" in meaning else contract.Unit.WEEK if "week" in meaning else contract.Unit.DAY
    found = Scope.parse(form, contract.SliceColumn("day", unit))
    slices = {
        "one": 1,
        "an ISO week": 1,
        "a month": 31,
        "a quarter": 90,
        "a year": 365,
        "an hour": 1,
        "two": 31,
        "several": 4,
    }
    assert found.count == next(count for words, count in slices.items() if meaning.startswith(words))


def test_the_json_of_real_commands_has_the_fields_of_the_page(project: Path) -> None:
    of_a_target = ("plan", "run", "verify", "status", "restore", "history", "show", "init", "doctor", "versions")
    commands = (*of_a_target, "audit", "rule", "studio")
    told: dict[str, set[str]] = {name: set() for name in (*commands, "plan --sql")}
    for field, of in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", tables_of("commands.md")["json"], re.MULTILINE):
        for name in commands if of.strip() == "all" else of.strip().split(", "):
            told[name].add(field)
    told["plan --sql"] |= told["plan"]
    words = {
        "plan": ("plan", "daily_orders", "2026-01"),
        "plan --sql": ("plan", "daily_orders", "2026-01", "--sql"),
        "run": ("run", "daily_orders", "2026-01-01..2026-01-02"),
        "verify": ("verify", "daily_orders", "2026-01"),
        "status": ("status", "daily_orders", "2026-01"),
        "restore": ("restore", "last", "--yes"),
        "history": ("history",),
        "show": ("show", "last"),
        "init": ("init", "copy", "--table", "daily_orders"),
        "doctor": ("doctor", "daily_orders"),
        "versions": ("versions", "daily_orders"),
        "audit": ("audit", "sql"),
        "rule": ("rule", "RS101"),
        "studio": ("studio", "--export", "copy"),
    }
    for name, command in words.items():
        code, out = reslice(project, *command, "--json")
        answer: dict[str, Any] = json.loads(out)
        assert set(answer) == told[name], name
        assert answer["exit_code"] == code
        assert answer["schema"] == f"reslice/{command[0]}/1"


# Errors and exit codes.


def test_every_kind_is_under_its_exit_code() -> None:
    sections = re.split(r"^## ", page("errors.md"), flags=re.MULTILINE)
    told: dict[str, int] = {}
    for section in sections[1:]:
        heading = section.split("\n")[0]
        if ": exit " in heading:
            told |= {kind: int(heading.split(": exit ")[1].split()[0]) for kind in first_cells(section)}
    assert told == {name: kind.error.exit_code for name, kind in errors.KINDS.items()}


def test_the_exit_codes_of_both_pages_are_those_of_the_code() -> None:
    classes = {kind.error for kind in errors.KINDS.values()}
    codes = {"0", "1", "129", "143", *(str(error.exit_code) for error in classes)}
    assert set(first_cells(page("exit-codes.md"))) == codes
    night = (build.ROOT / "README.md").read_text("utf-8").split("## At night")[1].split("## Promised")[0]
    assert set(re.findall(r"`(\d+)`", night)) == codes


def test_a_scheduler_retries_only_what_may_help() -> None:
    for error in {kind.error for kind in errors.KINDS.values()} - {errors.Interrupted}:
        _, _, scheduler = meanings.EXIT_CODES[error.exit_code]
        assert error.retry == (scheduler in ("retry", "run again")), error


# The ledger.


def test_the_ledger_a_run_leaves_has_the_tables_and_columns_of_the_page(project: Path) -> None:
    with duckdb.connect(str(project / "retail.duckdb"), read_only=True) as connection:
        found = connection.execute(
            "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()"
            " WHERE schema_name = 'reslice' GROUP BY table_name"
        ).fetchall()
    kept = [(name, columns) for name, columns in found if name.startswith("kept_")]
    assert {name: columns for name, columns in found if not name.startswith("kept_")} == {
        name.removeprefix("ledger "): first_cells(table) for name, table in tables_of("ledger.md").items()
    }
    assert [columns for _, columns in kept] == [["reslice:run", "order_date", "channel", "order_count", "amount_cents"]]
    assert '`"reslice:run"`' in page("ledger.md") and "`kept_…`" in page("ledger.md")


def test_the_words_of_the_ledger_are_those_of_the_code() -> None:
    runs = tables_of("ledger.md")["ledger runs"]
    states = re.search(r"`state` \| \w+ \| ([^|]+) \|", runs)
    assert states is not None
    assert set(re.findall(r"\w+", states[1])) - {"or"} == {state.value for state in values.State}


# Decisions, types, and the API.


def test_every_decision_is_in_the_index_and_tells_its_failure_in_steps() -> None:
    files = sorted((DOCS / "decisions").glob("*.md"))
    assert [path.name[:3] for path in files] == [f"{number:03d}" for number in range(1, len(files) + 1)]
    for path in files:
        title = re.match(r"# (.+)\n", path.read_text("utf-8"))
        assert title is not None and f"[{title[1]}](decisions/{path.name})" in page("README.md")
        assert "**Decision.**" in path.read_text("utf-8")
        assert len(re.findall(r"^\d+\. ", path.read_text("utf-8"), re.MULTILINE)) >= 3


def test_every_family_of_types_is_on_the_fingerprints_page_with_what_it_may_be() -> None:
    from reslice import stage

    names = {tables.Family.TIMESTAMPTZ: "timestamp with time zone"}
    table = dict(re.findall(r"^\| ([a-z ]+) \|.*?\| ((?:yes|no) \| [^|]+) \|$", page("fingerprint.md"), re.MULTILINE))
    for family in set(tables.Family) - {tables.Family.OTHER}:
        grain, measure = table.pop(names.get(family, family.value)).split(" | ")
        assert (grain == "yes") == (family in stage.GRAIN_FAMILIES), family
        assert (measure == "yes" or family is tables.Family.FLOAT) == (family in stage.MEASURE_FAMILIES), family
    assert not table


def test_every_public_name_is_on_the_apis_page() -> None:
    import reslice as package

    assert first_cells(tables_of("api.md")["names"]) == [f"reslice.{name}" for name in package.__all__]
