"""The commands that look: history, show and the demo."""

from __future__ import annotations

from pathlib import Path

import click

from reslice.cli_commands import Command, json_option
from reslice.cli_page import check_page, page_option, write_page
from reslice.cli_session import Session


@click.command(
    cls=Command,
    examples=("reslice history", "reslice history daily_orders --limit 5"),
)
@click.argument("target", required=False)
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="How many runs at most.")
@json_option
@click.pass_obj
def history(session: Session, target: str | None, limit: int, is_json: bool) -> int:
    """List the runs of the ledger, the latest first."""
    session.command, session.is_json = "history", is_json
    runs = session.open().history(target, limit=limit)
    if is_json:
        from reslice.report_json import history_json

        session.say_json(history_json(runs, place=session.place))
        return 0
    from reslice.report_ledger import history_text

    session.say(history_text(runs, place=session.place))
    return 0


@click.command(
    cls=Command,
    examples=("reslice show r-0042", "reslice show last --diff", "reslice show last~1 --sql"),
)
@click.argument("run")
@click.option("--diff", "with_diff", is_flag=True, help="Every changed group that the ledger holds.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the statements that the run executed.")
@page_option
@json_option
@click.pass_obj
def show(session: Session, run: str, with_diff: bool, with_sql: bool, report: Path | None, is_json: bool) -> int:
    """Show one run of the ledger with its evidence.

    RUN is an id, the beginning of one, last, or last~1 for the one before.
    """
    session.command, session.is_json = "show", is_json
    check_page(report)
    found = session.open().show(run)
    if report is not None:
        write_page(session, report, found)
    if is_json:
        from reslice.report_json import show_json

        session.say_json(show_json(found, place=session.place))
        return 0
    from reslice.report_ledger import ledger_sql_text, show_text

    text = ledger_sql_text(found) if with_sql else show_text(found, with_diff=with_diff, place=session.place)
    session.say(text)
    return 0


@click.command(
    cls=Command,
    examples=("reslice demo", "reslice demo --into shop"),
)
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("reslice-demo"),
    show_default=True,
    help="Where to leave the project.",
)
@json_option
@click.pass_obj
def demo(session: Session, into: Path, is_json: bool) -> int:
    """Tell the story of a late correction on synthetic orders.

    A plan, a run, the same run again, and beside it the append that doubles a total. The project stays in DIR.
    """
    session.command, session.is_json = "demo", is_json
    from reslice.retail.demo import run
    from reslice.retail.demo_text import story_json

    # The way to DIR is printed to be pasted where the command was given, and -C has left that place.
    folder = into.absolute() if session.place else into
    if is_json:
        session.say_json(story_json(run(folder)))
        return 0
    run(folder, session.say)
    return 0
