"""What a reader of README and docs can see or paste is true: outputs, links, commands, SQL and Python."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import click
import duckdb
import pytest

from docs import build, console, examples
from reslice import cli
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
    append = (load.FOLDER / "append.sql").read_text().replace(":start", "$start").replace(":end", "$end")
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


def test_the_questions_to_the_ledger_have_answers(project: Path) -> None:
    import reslice

    target = reslice.open("reslice.yml").target("daily_orders")
    target.run("2026-01-01..2026-01-02")
    with pytest.raises(reslice.Stopped):
        target.run("2026-01-03")
    target.run("2026-01-03", allow=["total_change"], reason="one more order than yesterday")
    queries = blocks(build.ROOT / "docs" / "ledger.md", "sql")
    with duckdb.connect("retail.duckdb", read_only=True) as connection:
        answers = [connection.execute(query).fetchall() for query in queries]
    failed, published, consents, moved, kept = answers
    assert [row[:5] for row in failed] == [("r-0003", "daily_orders", "2026-01-03", "stopped", "total_change")]
    assert [(row[0], row[2]) for row in published] == [
        ("2026-01-01", "r-0002"),
        ("2026-01-02", "r-0002"),
        ("2026-01-03", "r-0004"),
    ]
    assert [(row[0], row[4]) for row in consents] == [("r-0004", "one more order than yesterday")]
    assert [row[1:3] for row in moved] == [("r-0001", "added"), ("r-0002", "changed")]
    assert [row[0] for row in kept] == ["r-0002"] and kept[0][1]


def test_kept_rows_come_back_by_the_statements_of_the_page(project: Path) -> None:
    import reslice

    with duckdb.connect("retail.duckdb") as connection:
        before = connection.execute("SELECT * FROM daily_orders ORDER BY ALL").fetchall()
    reslice.open("reslice.yml").target("daily_orders").run("2026-01-01..2026-01-02")
    page = text_of(build.ROOT / "docs" / "ledger.md")
    script = re.search(r"^    BEGIN;\n(?:    .*\n)+", page, re.MULTILINE)
    assert script is not None
    with duckdb.connect("retail.duckdb") as connection:
        after = connection.execute("SELECT * FROM daily_orders ORDER BY ALL").fetchall()
        kept = connection.execute("SELECT kept_table FROM reslice.runs WHERE id = 'r-0002'").fetchall()[0][0]
        connection.execute(script[0].replace("reslice.kept_…", kept))
        restored = connection.execute("SELECT * FROM daily_orders ORDER BY ALL").fetchall()
    assert restored == before != after


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


def test_each_promise_of_an_engine_names_a_test_that_there_is() -> None:
    table = text_of(build.ROOT / "README.md").partition("### On each engine")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 15
    for row in rows:
        name, *cells = (cell.strip() for cell in row.strip("|").split(" | "))
        assert len(cells) == 2, name
        for cell in cells:
            found = PROMISE.fullmatch(cell)
            if found is None:
                assert cell in ("not promised", "no server", "no network", "the rights are of the file"), row
                continue
            path, test = found.groups()
            assert f"\ndef {test}(" in text_of(build.ROOT / path), f"{name}: {path} has no {test}"
