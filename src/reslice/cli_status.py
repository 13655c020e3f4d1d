"""status: how every slice of a target stands to its source."""

from __future__ import annotations

from typing import Any

import click

from reslice.cli_commands import Command, json_option
from reslice.cli_run import begin, scope_of, target_of
from reslice.cli_session import Session


@click.command(
    cls=Command,
    examples=(
        "reslice status daily_orders",
        "reslice status daily_orders 2026-01",
        "reslice status daily_orders --since r-0042",
    ),
)
@click.argument("target", required=False)
@click.argument("range", required=False)
@click.option(
    "--interval", nargs=2, metavar="START END", help="A scheduler's interval in place of RANGE; END is not included."
)
@click.option("--again", metavar="RUN", help="The target and range of an earlier run, in place of RANGE.")
@click.option("--since", metavar="RUN|TIME", help="Only the slices that corrections since then touch.")
@json_option
@click.pass_obj
def status(session: Session, /, **given: Any) -> int:
    """Tell which slices of the target differ from their source.

    Nothing is written. A slice is equal, differs, is missing (the source has rows, the target none) or extra (the other
    way round); exits 1 when one is not equal. Without RANGE: from the first slice of the target to the last that is
    over.
    """
    begin(session, "status", given)
    if given["target"] is None and given["again"] is None:
        raise click.UsageError("TARGET is missing.")
    if given["since"] == "":
        raise click.UsageError("--since is empty.")
    project = session.open()
    target, scope = target_of(project, given), scope_of(given)
    found = session.work(project, lambda on_step: target.status(**scope, since=given["since"], on_step=on_step))
    from reslice.report_json import as_json, exit_code

    code = exit_code(found)
    session.answer(found, code)
    if session.is_json:
        session.say_json(as_json(found, place=session.place))
        return code
    from reslice.report_status import status_text

    session.say(status_text(found, place=session.place))
    return code
