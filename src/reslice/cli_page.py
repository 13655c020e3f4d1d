"""`--report FILE`: the page of a run, whatever became of it. A page that fails changes neither run nor exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reslice import page_file
from reslice.errors import Failure, Misused, ResliceError

if TYPE_CHECKING:
    from reslice.cli_session import Session
    from reslice.project import Project
    from reslice.recorded import LedgerRun
    from reslice.values import Run

Function = TypeVar("Function", bound=Callable[..., Any])


def page_option(function: Function) -> Function:
    """Add --report."""
    kind = click.Path(dir_okay=False, path_type=Path)
    help_text = "Write the run as one HTML page, to keep or to attach to a ticket."
    return click.option("--report", metavar="FILE", type=kind, help=help_text)(function)


def check_page(path: Path | None) -> None:
    """Refuse, before anything else is done, a FILE that no page can be written to."""
    refuse_dash("--report", path)
    found = "" if path is None else page_file.trouble(path)
    if found:
        raise click.UsageError(f"--report: {found}.")


def refuse_dash(option: str, path: Path | None) -> None:
    """Refuse `-`: the answer is what goes to stdout."""
    if path is not None and str(path) == "-":
        raise click.UsageError(f"{option}: - is no file; the answer itself goes to stdout.")


def with_page(session: Session, project: Project, path: Path | None, work: Callable[[], Run]) -> Run:
    """Return or raise what `work` does, after writing the page of its run."""
    try:
        found = work()
    except ResliceError as error:
        if path is not None:
            _write_or_warn(session, project, path, error.run)
        raise
    if path is not None:
        _write_or_warn(session, project, path, found)
    return found


def write_page(session: Session, path: Path, run: LedgerRun) -> None:
    """Write the page of a run that was asked for; Misused when that is not possible."""
    from reslice.page import page_html

    try:
        page_file.write(path, page_html(run, place=session.place))
        session.note(f"wrote {path}")
    except OSError as error:
        failure = Failure("usage", "a page that can be written", (f"{path}: {_said(error)}",), "reslice show --help")
        raise Misused(f"page of {run.id}", [failure], unchanged="the file is as it was") from error


def _write_or_warn(session: Session, project: Project, path: Path, run: Run | None) -> None:
    """Write the page of a run as the ledger has it by now; a warning says why there is none."""
    if run is None or run.id is None:
        session.warn(f"{path} was not written: the run ended before it stood in the ledger")
        return
    try:
        from reslice.page import page_html

        recorded = project.show(run.id, target=run.target)
        page_file.write(path, page_html(recorded, place=session.place))
        session.note(f"wrote {path}")
    except Exception as error:  # The run is over: a page, whatever is wrong with it, says nothing else about it.
        session.warn(f"{path} was not written: {_said(error)}")


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
