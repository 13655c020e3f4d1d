"""versions: what append_version has kept in a table, and letting go of what is old."""

from __future__ import annotations

import shlex
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from reslice.cli_commands import Command, confirmed, json_option
from reslice.cli_session import Session
from reslice.errors import Failure, Stopped
from reslice.layout import counted

if TYPE_CHECKING:
    from reslice.recorded import Version


@click.command(
    cls=Command,
    examples=(
        "reslice versions daily_orders 2026-01-02",
        "reslice versions daily_orders --prune --older-than 90",
    ),
)
@click.argument("target")
@click.argument("range", required=False)
@click.option("--prune", "is_pruning", is_flag=True, help="Delete versions that are not current.")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=click.IntRange(0, 36_500),
    help="With --prune: only those replaced more than DAYS ago. keep_days of the contract unless said.",
)
@click.option(
    "--yes", is_flag=True, help="Delete without asking. Without a terminal nothing is done unless it is given."
)
@json_option
@click.pass_obj
def versions(session: Session, /, **given: Any) -> int:
    """List the versions that a table holds, or delete old ones.

    Only for targets with method: append_version. A current version is never deleted, and readers see no difference; a
    version that is gone cannot be restored.
    """
    session.begin("versions", is_json=given["is_json"], target=given["target"], range=given["range"])
    for name in ("target", "range"):
        if given[name] == "":
            raise click.UsageError(f"{name.upper()} is empty.")
    if not given["is_pruning"] and (given["days"] is not None or given["yes"]):
        raise click.UsageError("--older-than and --yes are for --prune.")
    from reslice.report_versions import pruned_text, versions_json, versions_text

    target = session.open().target(given["target"])
    if not given["is_pruning"]:
        found = target.versions(given["range"])
        name = target.contract.name
        if session.is_json:
            session.say_json(versions_json(name, found, None, place=session.place))
        else:
            session.say(versions_text(name, found, place=session.place))
        return 0
    older_than = timedelta(days=target.contract.ledger.keep_days if given["days"] is None else given["days"])
    if not given["yes"]:
        _ask(session, target.old_versions(given["range"], older_than=older_than, on_step=session.hear), given)
    pruned = target.prune_versions(given["range"], older_than=older_than, on_step=session.hear)
    if session.is_json:
        session.say_json(versions_json(target.contract.name, pruned.versions, pruned, place=session.place))
    else:
        session.say(pruned_text(target.contract.name, pruned, place=session.place))
    return 0


def _ask(session: Session, old: tuple[Version, ...], given: dict[str, Any]) -> None:
    """Go on only when a person says yes, or when there is nothing to delete; Stopped[unconfirmed] otherwise."""
    if not old:
        return
    rows = sum(each.rows for each in old)
    many = f"{counted(len(old), 'version')} with {counted(rows, 'row')}"
    told = f"{many} would be deleted, from {old[0].slice} to {old[-1].slice}"
    can_ask = not given["is_json"] and session.log is None and sys.stdin.isatty() and sys.stderr.isatty()
    if can_ask and confirmed(f"{told}. Delete them?"):
        return
    found = f"{told}; " + ("no was answered" if can_ask else "there is no terminal to ask on, and no --yes")
    look = " ".join(["reslice versions", *(shlex.quote(given[name]) for name in ("target", "range") if given[name])])
    days = "" if given["days"] is None else f" --older-than {given['days']}"
    failure = Failure("unconfirmed", "a person who has looked and says yes", (found,), look)
    stopped = Stopped(f"versions of {given['target']}", [failure], unchanged="no version was deleted")
    stopped.consent = f"{look} --prune{days} --yes"
    raise stopped
