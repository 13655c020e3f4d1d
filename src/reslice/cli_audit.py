"""The commands about the writes of others: audit reads them, rule explains what it looks for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reslice.cli_commands import Command, json_option
from reslice.cli_session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reslice.audit.files import Files
    from reslice.audit.finding import Audited
    from reslice.audit.runner import Progress
    from reslice.errors import Misused

FORMATS = ("text", "json", "sarif", "github")
_QUIET_SECONDS, _TICK_SECONDS = 0.5, 0.1
_UNTOUCHED = "nothing was run or written"


@click.command(
    cls=Command,
    examples=(
        "reslice audit jobs/",
        "reslice audit nightly.sql --dialect snowflake",
        "reslice audit . --format sarif > audit.sarif",
        "reslice audit . --format github",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--dialect", metavar="NAME", help="The SQL dialect of the files, such as snowflake.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="text, json, sarif for code scanning, or github for the log of an action.",
)
@json_option
@click.pass_obj
def audit(session: Session, /, paths: tuple[str, ...], dialect: str | None, form: str | None, *, is_json: bool) -> int:
    """Say which writes of SQL files, dbt projects and Python cannot be run again.

    A PATH is a file, a folder with all below it, or a pattern. Nothing that is read is run, and nothing is asked of a
    database. It ends with 1 when a write is unsafe; what cannot be read or decided is told, and not counted as safe.
    Where nothing could be read it ends with 2.
    """
    if is_json and form not in (None, "json"):
        raise click.UsageError("--json is --format json: give one of them.")
    form = "json" if is_json else form or "text"
    session.begin("audit", is_json=form == "json")
    found = _audited(paths, dialect)
    from reslice import report_audit

    blind = report_audit.blind_error(found, paths)
    if form == "json":
        if blind is not None:
            return session.fail(blind, command="audit", known=report_audit.found_json(found))
        session.say_json(report_audit.audit_json(found, place=session.place))
    elif form == "sarif":
        from reslice.report_sarif import sarif

        session.say_json(sarif(found))
    elif form == "github":
        session.say(report_audit.github_lines(found))
    else:
        session.say(report_audit.audit_text(found, place=session.place, colored=_is_colored()))
    return report_audit.exit_code(found) if blind is None else session.fail(blind, command="audit")


def _audited(paths: Sequence[str], dialect: str | None) -> Audited:
    from reslice.audit.files import files_of
    from reslice.audit.reader import READERS
    from reslice.audit.runner import audit_files
    from reslice.reading.parse import check_dialect

    if dialect is not None:
        dialect = check_dialect(dialect, "audit")
    files = files_of([_short(Path(path)) for path in paths], READERS)
    if files.missing:
        raise _missing(files)
    if not files.sources and not files.unparsed:
        kinds = "*.sql, *.py and dbt_project.yml"
        raise _misused(" ".join(paths), f"no file to read is there; looked for {kinds}, and not in hidden folders")
    with _progress() as on_progress:
        return audit_files(files, dialect, on_progress)


def _short(path: Path) -> Path:
    """Return a path as it is shown: from the folder that is worked in, where it lies below it."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


def _missing(files: Files) -> Misused:
    found = [
        f"nothing matches {path}, in {Path.cwd()}"
        if any(sign in str(path) for sign in "*?[")
        else f"there is no {path}"
        for path in files.missing
    ]
    first = files.missing[0]
    error = _misused(str(first), *found)
    folder = first.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(first.name, names, n=1)
    error.meant = (str(first), str(folder / near[0])) if near and len(files.missing) == 1 else None
    return error


def _misused(about: str, *found: str, asked: str = "PATH, a file or folder that is there") -> Misused:
    from reslice.errors import Failure, Misused

    return Misused(about, [Failure("usage", asked, found, "reslice audit --help")], unchanged=_UNTOUCHED)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show on a terminal how much is done."""
    from reslice.progress import line_on

    told = time.monotonic() + _QUIET_SECONDS
    with line_on(sys.stderr) as line:

        def tell(done: int, total: int) -> None:
            nonlocal told
            if time.monotonic() > told:
                told = time.monotonic() + _TICK_SECONDS
                line.show(f"reading  {100 * done // total}%")

        yield tell


def _is_colored() -> bool:
    """Whether the answer goes to a terminal that shows colors, and nobody minds them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@click.command(cls=Command, examples=("reslice rule RS101", "reslice rule"))
@click.argument("code", required=False)
@json_option
@click.pass_obj
def rule(session: Session, /, code: str | None, *, is_json: bool) -> int:
    """Explain what audit looks for: without CODE all rules, with it one of them.

    Its page says why a write cannot be run again, with a bad and a good example, and what to do.
    """
    session.begin("rule", is_json=is_json)
    from reslice import report_audit
    from reslice.audit.rule import rules

    known = rules()
    if code is not None and code.upper() not in known:
        raise _unknown(code, [*known])
    shown = [*known.values()] if code is None else [known[code.upper()]]
    if is_json:
        way_on = f"reslice rule {shown[0].code}" if code is None else "reslice audit --help"
        session.say_json(report_audit.rules_json(shown, way_on=way_on))
    elif code is None:
        session.say(report_audit.rules_text(shown))
    else:
        session.say(report_audit.rule_text(shown[0], colored=_is_colored()))
    return 0


def _unknown(code: str, known: list[str]) -> Misused:
    from reslice.errors import Failure, Misused

    near = get_close_matches(code.upper(), known, n=1)
    found = f"no rule is called {code}" + (f"; did you mean {near[0]}?" if near else "")
    error = Misused("rule", [Failure("usage", "CODE of a rule", (found,), "reslice rule")], unchanged=_UNTOUCHED)
    error.meant = (code, near[0]) if near else None
    return error
