"""What a reader of README and docs can see or paste is true: outputs, links, commands, SQL and Python."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click
import duckdb
import pytest

from docs import build, console, examples
from reslice import cli
from reslice.lab import sketches
from reslice.retail import load
from tests.docs.example_project import absent

PAGES = sorted(build.pages())
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(build.ROOT))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, kind: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(text_of(page)) if found["info"].split(" ")[0] == kind]


def lines_that_differ(page: Path, after: str) -> str:
    old, new = text_of(page).splitlines(), after.splitlines()
    pairs = [f"- {a}\n+ {b}" for a, b in zip(old, new, strict=False) if a != b][:8]
    return "\n".join([f"{named(page)} is out of date; python -m docs.build writes it", *pairs])


# Output.


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=named)
def test_the_output_below_each_command_is_what_it_prints(page: Path) -> None:
    if lack := examples.lacking(text_of(page)):
        absent(lack)
    after = console.with_output(text_of(page))
    assert after == text_of(page), lines_that_differ(page, after)


def test_only_what_differs_from_run_to_run_is_normalised() -> None:
    said = "r-0002 web 19000 3:2897175453215357490 2026-01-02 published\n  locked        7 ms\n"
    assert console.normal(said) == said.replace("7 ms", "11 ms")
    clocks = '2026-11-29 17:03:10 UTC by root@vm; "2026-11-29T17:03:10.123Z"'
    assert console.normal(clocks) == '2026-01-05 06:00:00 UTC by ada@etl; "2026-01-05T06:00:00.000Z"'


def test_an_output_that_is_wrong_on_the_page_is_found() -> None:
    page = "<!-- project: stale -->\n```console\n$ reslice plan daily_orders 2026-01-02\nplanned: nothing\n```\n"
    fresh = console.with_output(page)
    assert "amount_cents 7000 → 19000" in fresh and "planned: nothing" not in fresh
    assert console.with_output(fresh) == fresh
    elided = fresh.replace(fresh.split("\n")[4], "...", 1)
    assert console.with_output(elided) == elided


def test_the_front_page_shows_a_plan_a_run_and_the_same_run_again() -> None:
    commands = next(console.blocks(text_of(build.ROOT / "README.md"))).commands
    assert [command.split()[1] for command, _ in commands] == ["plan", "run", "run"]
    assert commands[1][0] == commands[2][0]
    assert commands[2][1][0].startswith("unchanged")


def test_the_accident_is_what_the_append_does() -> None:
    connection = duckdb.connect()
    load.create_pipeline(connection)
    for events in (load.initial_events(), load.follow_up_events()):
        load.load_events(connection, events, loaded_at=datetime(2026, 1, 4, 6, tzinfo=UTC))
    append = sketches.filled("append", "$start", "$end")
    days = {"start": "2026-01-01", "end": "2026-01-02"}
    seen = []
    for _ in range(3):
        connection.execute(append, days)
        rows = connection.execute("SELECT * FROM daily_orders WHERE order_date = '2026-01-02' AND channel = 'web'")
        measures = [row[2:] for row in rows.fetchall()]
        seen.append(tuple(map(sum, zip(*measures, strict=True))))
    accident = text_of(build.ROOT / "README.md").split("## The accident")[1].split("## The cure")[0]
    told = [(int(orders), int(cents)) for orders, cents in re.findall(r"\| (\d+) \| (\d+) \|", accident)]
    assert told == seen == [(2, 19000), (4, 38000), (6, 57000)]


# Links.


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", FENCE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{named(page)} links to {link}"
        if anchor:
            assert anchor in anchors(there), f"{named(page)} links to {link}"


def test_every_page_can_be_reached_from_the_front_page() -> None:
    seen: set[Path] = set()
    pending = [build.ROOT / "README.md"]
    while pending:
        page = pending.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)#\s]+)", text_of(page))
        pending += [(page.parent / link).resolve() for link in links if not re.match(r"[a-z]+:", link)]
    assert set(PAGES) <= seen


# Commands.


def commands_of(page: Path) -> Iterator[str]:
    """Yield every reslice command that a page shows, in a block or in a line."""
    prose = FENCE.sub("", text_of(page))
    for kind in ("console", "sh"):
        for block in blocks(page, kind):
            yield from re.findall(r"(?:^|^\$ |&& |\|\| )(reslice (?!\.).*)$", block, re.MULTILINE)
    yield from re.findall(r"`(reslice [a-z-][^`…]*)`", prose)
    yield from re.findall(r"^    (reslice .*)", prose, re.MULTILINE)


def words_of(shown: str) -> list[str]:
    """Return the words of a command up to where the shell ends it."""
    lexer = shlex.shlex(shown, posix=True, punctuation_chars=True)
    words = list(lexer)[1:]
    end = next((place for place, word in enumerate(words) if word[0] in ";|&<>"), len(words))
    return words[:end]


def test_every_command_on_every_page_parses() -> None:
    seen = 0
    for page in PAGES:
        for shown in commands_of(page):
            if "OPTIONS" in shown or "COMMAND" in shown:
                continue
            words = words_of(shown)
            while words and words[0] in ("-C", "--config"):
                words = words[2:]
            if not words or words[0].startswith("-"):
                continue
            seen += 1
            command = cli.root.commands.get(words[0])
            assert command is not None, f"{named(page)}: {shown}"
            context = click.Context(command, info_name=words[0])
            try:
                command.make_parser(context).parse_args(args=[word for word in words[1:] if word != "--help"])
            except click.UsageError as error:
                pytest.fail(f"{named(page)}: {shown}: {error.format_message()}")
    assert seen > 40


def test_a_command_that_is_none_is_found() -> None:
    with pytest.raises(click.UsageError):
        command = cli.root.commands["plan"]
        command.make_parser(click.Context(command)).parse_args(args=["daily_orders", "--no-such-option"])


# SQL and Python.


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    console.STATES["stale"](tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def test_the_python_of_the_api_page_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks(build.ROOT / "docs" / "api.md", "python")
    exec(compile(block, "api.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("Total(before=28700, after=29100)")
    assert lines[1:] == ["published r-0002 True", "True"]


def test_the_fingerprint_made_by_hand_is_the_one_in_the_ledger(project: Path) -> None:
    (block,) = blocks(build.ROOT / "docs" / "fingerprint.md", "python")
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(block, "fingerprint.md", "exec"), {})
    query = "SELECT fingerprint_after FROM reslice.run_slices WHERE run_id = 'r-0001' AND slice = '2026-01-03'"
    with duckdb.connect("retail.duckdb", read_only=True) as connection:
        assert connection.execute(query).fetchall() == [(said.getvalue().strip(),)]


# Promises, engine by engine.

PROMISE = re.compile(r'\[[^\]]+\]\((tests/[\w/]+\.py) "(test_\w+)"\)')


PLACE = re.compile(r"(?P<path>tests/[\w/]+\.py)::(?P<test>test_\w+)(?:\[(?P<case>.*)\])?")
BESIDE = {"test_fingerprints_are_equal_on_duckdb_postgresql_and_in_python": {"duckdb"}}
"""Tests that open an engine by themselves, beside the one that the names of their cases say."""


@cache
def collected() -> dict[tuple[str, str], set[str]]:
    """Return the tests of the files that promises name, as pytest collects them by default, each with its engines."""
    paths = sorted({path for _, _, path, _ in promises()})
    found: dict[tuple[str, str], set[str]] = {}
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    listed = subprocess.run([*asked, *paths], cwd=build.ROOT, capture_output=True, text=True, check=True).stdout
    for place in filter(None, map(PLACE.fullmatch, listed.splitlines())):
        path, test, case = place.group("path", "test", "case")
        engines = found.setdefault((path, test), set(BESIDE.get(test, ())))
        engines |= set(re.findall(r"duckdb|postgresql", case or "")) or (set() if engines else on_its_own(path))
    return found


def on_its_own(path: str) -> set[str]:
    """Return the engine of tests whose cases name none: crashes and races are of DuckDB, where no helper says else."""
    imports = re.findall(r"^(?:from|import) .*", text_of(build.ROOT / path), re.MULTILINE)
    return {"postgresql" if any("postgres" in each for each in imports) else "duckdb"}


def promises() -> Iterator[tuple[str, str, str, str]]:
    """Yield each cell of the table that names a test: what is promised, on which engine, and the file and the test."""
    table = text_of(build.ROOT / "README.md").partition("### On each engine")[2].partition("\n## ")[0]
    assert "| promise | DuckDB | PostgreSQL |" in table
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 15
    for row in rows:
        name, *cells = (cell.strip() for cell in row.strip("|").split(" | "))
        assert len(cells) == 2, name
        for engine, cell in zip(("duckdb", "postgresql"), cells, strict=True):
            found = PROMISE.fullmatch(cell)
            if found is None:
                assert cell in ("not promised", "no server", "no network", "the rights are of the file"), row
                continue
            yield name, engine, found[1], found[2]


def test_each_promise_of_an_engine_names_a_test_that_runs_on_it() -> None:
    runs = collected()
    for name, engine, path, test in promises():
        assert (path, test) in runs, f"{name}: {path} has no {test}"
        assert engine in runs[path, test], f"{name}: {test} of {path} does not run on {engine}"


def test_a_test_of_one_engine_holds_no_promise_of_the_other() -> None:
    of_duckdb = {
        ("tests/conformance/test_append_version.py", "test_replace_partition_is_refused_with_the_reason"),
        ("tests/crash/test_killed.py", "test_killed_before_a_statement"),
        ("tests/races/test_two_runs.py", "test_the_same_slices"),
    }
    of_postgresql = {
        ("tests/conformance/test_postgres_rights.py", "test_the_rights_of_the_page_are_enough"),
        ("tests/crash/test_postgres_killed.py", "test_killed_before_a_statement"),
        ("tests/races/test_histories.py", "test_a_sample_of_histories"),
    }
    runs = collected()
    assert all(runs[each] == {"duckdb"} for each in of_duckdb)
    assert all(runs[each] == {"postgresql"} for each in of_postgresql)
    assert runs["tests/conformance/test_rerun.py", "test_t05_1_a_group_without_a_source_row_is_removed"] == {
        "duckdb",
        "postgresql",
    }
