"""doctor: what is wrong with a target, its ledger or the database, and what to do about it."""

from __future__ import annotations

import click

from reslice.cli_commands import Command, json_option
from reslice.cli_session import Session


@click.command(
    cls=Command,
    examples=(
        "reslice doctor",
        "reslice doctor daily_orders",
        "reslice doctor daily_orders --probe",
    ),
)
@click.argument("target", required=False)
@click.option(
    "--probe", is_flag=True, help="Also try what the database really does, in a place that is gone afterwards."
)
@json_option
@click.pass_obj
def doctor(session: Session, target: str | None, probe: bool, is_json: bool) -> int:
    """Say what is wrong with contract, table, ledger and database.

    Nothing is written, and no source is evaluated. Without TARGET: every target. Exits 1 when something is wrong; a
    warning exits 0.
    """
    session.command, session.is_json = "doctor", is_json
    found = session.open().doctor(target, probe=probe)
    from reslice.report_doctor import diagnosis_json, diagnosis_text, exit_code

    session.code = exit_code(found)
    if is_json:
        session.say_json(diagnosis_json(found, place=session.place))
    else:
        session.say(diagnosis_text(found, place=session.place))
    return session.code
