"""Console blocks of a page, run for real: each `$ command` in a project of the retail example, in the page's order.

A page says `<!-- project: NAME -->` where a fresh project begins; NAME is one of `STATES`. A fenced block whose info
string names a file (`yaml reslice.yml`) writes that file into the project. In an output, a line `...` stands for lines
left out: as many lines as the page has before and after it are kept.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from unittest import mock

import duckdb  # noqa: TID251 - a database is made here before reslice sees it

import reslice
from docs import examples
from reslice import cli
from reslice.lab import sketches
from reslice.retail import load

ELISION = "..."
_PART = re.compile(
    r"<!-- project: (?P<project>\w+) -->"
    r"|^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_MARK = "\x1d"
_PLAIN = re.compile(r"reslice [^|&;<>$`\\*?~#]*")
"""A command of reslice that means without a shell what it means in one."""
_NORMAL = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "2026-01-05 06:00:00 UTC"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|\+00:00)"), "2026-01-05T06:00:00.000Z"),
    (re.compile(r"(locked +|\"lock_milliseconds\": )\d+"), r"\g<1>11"),
    (re.compile(r"[\w.-]+@[\w.-]+"), "ada@etl"),
)
"""What differs from run to run: the ledger's clock, its lock time, and who ran it."""


@dataclass(frozen=True, slots=True)
class Block:
    """One console block: its project on the page (counted from 0), and each command with the lines below it."""

    project: int
    commands: tuple[tuple[str, tuple[str, ...]], ...]


def with_output(text: str) -> str:
    """Return a page with the real output below each command."""
    with tempfile.TemporaryDirectory() as folder:
        runner = _Runner(Path(folder))
        return _PART.sub(runner.fresh, text)


def blocks(text: str) -> Iterator[Block]:
    """Yield the console blocks of a page."""
    project = -1
    for found in _PART.finditer(text):
        project += found["project"] is not None
        if found["info"] == "console":
            yield Block(project, _commands(found["body"]))


def _commands(body: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    commands: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            assert commands, f"a console block begins with a command, not with {line!r}"
            commands[-1][1].append(line)
    return tuple((command, tuple("\n".join(lines).rstrip("\n").split("\n"))) for command, lines in commands)


class _Runner:
    """Goes through the parts of one page in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.project: Path | None = None

    def fresh(self, found: re.Match[str]) -> str:
        """Return one part of the page as it should be."""
        if found["project"] is not None:
            self.count += 1
            self.project = self.folder / str(self.count) / "shop"
            STATES[found["project"]](self.project)
            return found[0]
        kind, _, file = found["info"].partition(" ")
        if file:
            assert self.project is not None, f"no project that {file} belongs to"
            (self.project / file).parent.mkdir(parents=True, exist_ok=True)
            (self.project / file).write_text(found["body"], encoding="utf-8")
        if kind != "console":
            return found[0]
        assert self.project is not None, "a console block needs a project"
        return f"```console\n{_run(_commands(found['body']), self.project)}```"


def _run(commands: tuple[tuple[str, tuple[str, ...]], ...], project: Path) -> str:
    """Run the commands of one block, and return the block's text."""
    is_plain = all(_PLAIN.fullmatch(command) for command, _ in commands)
    said = [_called(command, project) for command, _ in commands] if is_plain else _in_a_shell(commands, project)
    assert not any("a bug in reslice" in each for each in said), "a page shows no bug"
    parts = []
    for (command, before), output in zip(commands, map(normal, said), strict=True):
        lines = _elided(output.rstrip("\n").split("\n"), before)
        parts.append("\n".join([f"$ {command}", *lines] if lines != [""] else [f"$ {command}"]))
    return "\n\n".join(parts) + "\n"


def _called(command: str, project: Path) -> str:
    """Run one command of reslice in this process, and return what it prints."""
    said = io.BytesIO()
    stream = io.TextIOWrapper(said, encoding="utf-8", write_through=True)
    with (
        mock.patch.dict(os.environ, _environment() | {"COLUMNS": "80"}),
        chdir(project),
        redirect_stdout(stream),
        redirect_stderr(stream),
    ):
        cli.main(shlex.split(command)[1:])
    return said.getvalue().decode()


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def _in_a_shell(commands: tuple[tuple[str, tuple[str, ...]], ...], project: Path) -> list[str]:
    """Run the commands one after the other in one shell, and return what each of them prints."""
    script = "".join(f"{command}\n_code=$?; printf '{_MARK}'; (exit $_code)\n" for command, _ in commands)
    shell = ["sh", "-c", f"exec 2>&1\n{script}"]
    ended = subprocess.run(
        shell, cwd=project, env=os.environ | _environment(), capture_output=True, timeout=120, check=False
    )
    outputs = ended.stdout.decode().split(_MARK)[:-1]
    assert len(outputs) == len(commands), f"the shell stopped early: {outputs[-1:]}"
    return outputs


def _elided(lines: list[str], before: tuple[str, ...]) -> list[str]:
    """Return the output with the lines left out that the page leaves out."""
    if ELISION not in before:
        return lines
    head = before.index(ELISION)
    tail = len(before) - head - 1
    return [*lines[:head], ELISION, *lines[len(lines) - tail :]]


def normal(text: str) -> str:
    """Return text without what differs from run to run."""
    for pattern, instead in _NORMAL:
        text = pattern.sub(instead, text)
    return text


# The projects.


def _empty(project: Path) -> None:
    """Make the example as it begins: events are there, the target is empty, nothing has run."""
    copytree(load.PROJECT, project)
    with duckdb.connect(str(project / "retail.duckdb")) as connection:
        load.create_pipeline(connection)
        load.load_events(connection, load.initial_events(), loaded_at=datetime(2026, 1, 4, 6, tzinfo=UTC))


def _follow_up(project: Path, database: str) -> None:
    with duckdb.connect(str(project / database)) as connection:
        load.load_events(connection, load.follow_up_events(), loaded_at=datetime.now(UTC))


def _stale(project: Path) -> None:
    """Make the example after its first run, r-0001, when the follow-up has arrived."""
    _empty(project)
    reslice.open(project / "reslice.yml").target("daily_orders").run("2026-01-01..2026-01-03")
    _follow_up(project, "retail.duckdb")


def _whole(project: Path) -> None:
    """Make `stale`, with a float measure and two stamps in the target."""
    _stale(project)
    with duckdb.connect(str(project / "retail.duckdb")) as connection:
        for column in ("amount DOUBLE", "loaded_at TIMESTAMPTZ", "batch_id VARCHAR"):
            connection.execute(f"ALTER TABLE daily_orders ADD COLUMN {column}")
        connection.execute("UPDATE daily_orders SET amount = amount_cents / 100")
    source = project / "sql" / "daily_orders.sql"
    cents = "sum(amount_cents) AS amount_cents"
    text = source.read_text(encoding="utf-8")
    assert cents in text, "the source sums cents"
    source.write_text(text.replace(cents, f"{cents},\n    sum(amount_cents) / 100 AS amount"), encoding="utf-8")


def _own(project: Path) -> None:
    """Make somebody's own database: a table that was filled by hand and is stale, and no contract yet."""
    project.mkdir(parents=True)
    with duckdb.connect(str(project / "warehouse.duckdb")) as connection:
        load.create_pipeline(connection)
        load.load_events(connection, load.initial_events(), loaded_at=datetime(2026, 1, 4, 6, tzinfo=UTC))
        connection.execute(sketches.filled("append", "$start", "$end"), {"start": "2026-01-01", "end": "2026-01-03"})
    _follow_up(project, "warehouse.duckdb")


def _gone(project: Path) -> None:
    """Make `stale`, and lose every order of 2026-01-03 from the source."""
    _stale(project)
    with duckdb.connect(str(project / "retail.duckdb")) as connection:
        connection.execute("DELETE FROM order_events WHERE order_date = '2026-01-03'")


STATES: dict[str, Callable[[Path], None]] = {
    "empty": _empty,
    "stale": _stale,
    "whole": _whole,
    "own": _own,
    "gone": _gone,
    "grocery": examples.grocery,
    "flights": examples.flights,
    "lineitem": examples.lineitem,
}
"""The projects a page can start from, by name."""
