"""restore: put back what a run replaced, after a person has looked at it and said yes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from reslice.cli_commands import Command, confirmed, json_option
from reslice.cli_page import check_page, page_option, with_page
from reslice.cli_run import answer, wait_time
from reslice.cli_session import Session
from reslice.errors import Failure, Stopped
from reslice.layout import counted, fitted

if TYPE_CHECKING:
    from reslice.values import Run


@click.command(
    cls=Command,
    examples=(
        "reslice restore r-0042",
        "reslice restore r-0042 2026-01-02 --yes",
        'reslice restore r-0042 --yes --reason "the rates file was wrong"',
    ),
)
@click.argument("run")
@click.argument("range", required=False)
@click.option(
    "--yes", is_flag=True, help="Do it without asking. Without a terminal nothing is done unless it is given."
)
@click.option("--reason", default="", metavar="TEXT", help="Why; the ledger keeps it.")
@click.option("--wait", metavar="TIME", help="How long to wait for another run, such as 10m, 5s or 0s.")
@page_option
@json_option
@click.pass_obj
def restore(session: Session, /, **given: Any) -> int:
    """Put back the rows that one run replaced.

    All of its slices, or those of RANGE. RUN is an id, the beginning of one, last, or last~1. A restore is a run of its
    own, which can be restored as well. It is refused where a later run, or somebody else, has written to a slice since.
    """
    session.begin("restore", is_json=given["is_json"], range=given["range"])
    for name in ("run", "range"):
        if given[name] == "":
            raise click.UsageError(f"{name.upper()} is empty.")
    check_page(given["report"])
    project, named = session.open(), {"run": given["run"], "range": given["range"]}
    if not given["yes"]:
        planned = session.work(project, lambda on_step: project.plan_restore(**named, on_step=on_step), is_last=False)
        named["run"] = planned.restores  # what was shown is what is done: `last` may be another run by then
        if planned.diff is not None and planned.diff.differing:
            _ask(session, planned, given, project.target(planned.target).contract.table)
    options = {"reason": given["reason"], "wait": wait_time(given["wait"]), "on_opened": session.learn}
    found = with_page(
        session,
        project,
        given["report"],
        lambda: session.work(project, lambda on_step: project.restore(**named, **options, on_step=on_step)),
    )
    return answer(session, found, given)


def _ask(session: Session, planned: Run, given: dict[str, Any], table: str) -> None:
    """Show what would be put back, and go on only when a person says yes; Stopped[unconfirmed] otherwise."""
    from reslice.next_command import next_command
    from reslice.report import run_text

    if not given["is_json"] and session.log is None and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo(fitted(run_text(planned, place=session.place), sys.stderr.encoding), err=True)
        if confirmed("\nPut these rows back?"):
            return
        found: tuple[str, ...] = ("no was answered",)
    else:
        found = ("there is no terminal to ask on, and no --yes", _would_do(planned))
    asked = "a person who has looked and says yes"
    failure = Failure("unconfirmed", asked, found, f"reslice show {planned.restores} --diff")
    about = f"{planned.target}, restore {planned.restores}"
    stopped = Stopped(about, [failure], unchanged=f"{table} is as it was; nothing was written")
    stopped.consent, stopped.run = next_command(planned), planned
    raise stopped


def _would_do(planned: Run) -> str:
    """Say in one line what a restore would do."""
    from reslice.report import change_text, counts_text
    from reslice.values import Total

    assert planned.diff is not None, "what is asked about was compared"
    diff = planned.diff
    rows = change_text(Total(diff.base.rows, diff.staged.rows))
    return f"{counted(len(diff.differing), 'slice')} would be put back: {counts_text(diff.counts)}; rows {rows}"
