"""prove: run anybody's command twice in a sandbox, and say whether the table is the same, and right."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reslice.cli_commands import Command, confirmed, json_option
from reslice.cli_session import Session
from reslice.errors import Failure, Stopped

if TYPE_CHECKING:
    from reslice.contract import Connection
    from reslice.prove.values import Proof, Subject, Task

_WORDS = "reslice.command"


class ProveCommand(Command):
    """A command that takes the words behind `--` as those of another one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take away the words of the other command before the options are read."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_WORDS] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what stands behind the name in the usage line."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


@click.command(
    cls=ProveCommand,
    examples=(
        "reslice prove daily_orders --range 2026-01 -- dbt run --select daily_orders",
        "reslice prove --table daily_orders --grain order_date,channel -- python job.py {path}",
        "reslice prove daily_orders --sql append.sql --param start=2026-01-01 --param end=2026-01-02",
        "reslice prove daily_orders --crash --at-once -- python job.py {path}",
    ),
)
@click.argument("target", required=False)
@click.option("--range", "range_text", metavar="RANGE", help="The slices that the command is meant to write.")
@click.option("--table", metavar="TABLE", help="The table, where no contract names it; needs --grain.")
@click.option("--grain", metavar="COLUMNS", help="The columns of which there is one row per combination: a,b.")
@click.option("--slice-column", metavar="COLUMN", help="The column by whose days --range is meant, without a contract.")
@click.option("--connection", metavar="URL", help="The database, in place of the one that the contract file names.")
@click.option("--sql", metavar="FILE", type=click.Path(path_type=Path), help="Run a SQL file in place of a command.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A value for :NAME in FILE. Repeatable.")
@click.option("--times", type=click.IntRange(2, 20), default=2, show_default=True, help="How often it is run.")
@click.option(
    "--ignore", multiple=True, metavar="COLUMN", help="A column that may differ, such as a stamp. Repeatable."
)
@click.option("--crash", is_flag=True, help="Also kill it at random moments: is the table old or new each time?")
@click.option("--at-once", is_flag=True, help="Also start two at the same time: is anything doubled?")
@click.option(
    "--tries", type=click.IntRange(1, 1000), default=5, show_default=True, help="How often --crash and --at-once try."
)
@click.option("--seed", type=int, metavar="N", help="Makes the moments of --crash again.")
@click.option("--timeout", metavar="TIME", help="How long one run may take, such as 10m.")
@click.option("--keep", is_flag=True, help="Keep the sandbox, and say where it is.")
@click.option("--in-place", is_flag=True, help="Run in the database itself; the table is put back afterwards.")
@click.option("--yes", is_flag=True, help="Do it in place without asking.")
@click.option("-v", "verbose", is_flag=True, help="Show what the command said.")
@json_option
@click.pass_context
def prove(context: click.Context, /, **given: Any) -> int:
    """Run anybody's command twice in a sandbox, and compare the table.

    The command finds a copy of the database by RESLICE_URL, RESLICE_PATH (DuckDB) and PGHOST, PGDATABASE, …
    (PostgreSQL), and by {url} and {path} in its words. Exits 0 only when run 2 leaves what run 1 left and, where a
    contract names the source, the table equals it.
    """
    session: Session = context.obj
    session.begin("prove", is_json=given["is_json"], target=given["target"], range=given["range_text"])
    words = context.meta.get(_WORDS, ())
    _hide_password(session, given["connection"])
    _check(given, words)
    _check_used(context, given)
    connection, subject = _subject(session, given)
    task = _task(given, words)
    if task.in_place and not given["yes"]:
        _ask(session, connection, subject, task)
    found = _worked(session, connection, subject, task)
    return _answer(session, found, verbose=given["verbose"])


def _hide_password(session: Session, url: str | None) -> None:
    """Let the command that was typed be told again without the password of its --connection."""
    from reslice import contract_connection

    if url is not None:
        shown = contract_connection.masked(url)
        words = [word.replace(url, shown) for word in shlex.split(session.typed)]
        session.typed = session.typed if shown == url else shlex.join(words)


def _check(given: dict[str, Any], words: tuple[str, ...]) -> None:
    """Refuse words that say nothing, or the same thing twice."""
    if (given["target"] is None) == (given["table"] is None):
        raise click.UsageError("TARGET of the contract file, or --table with --grain: one of them.")
    if given["table"] is not None and not (given["grain"] or "").strip(" ,"):
        raise click.UsageError("--table needs --grain: the columns of which there is one row per combination.")
    if given["target"] is not None and (given["grain"] is not None or given["slice_column"] is not None):
        raise click.UsageError("--grain and --slice-column are for --table: the contract says what a target's are.")
    if given["table"] is not None and (given["range_text"] is None) != (given["slice_column"] is None):
        raise click.UsageError("--range and --slice-column go together where no contract says what a slice is.")
    if bool(words) == (given["sql"] is not None):
        raise click.UsageError("COMMAND behind --, or --sql FILE: one of them.")
    if given["in_place"] and (given["crash"] or given["at_once"] or given["keep"]):
        raise click.UsageError("--crash, --at-once and --keep need a sandbox: leave --in-place out.")


def _check_used(context: click.Context, given: dict[str, Any]) -> None:
    """Refuse an option that would change nothing."""
    are_tries_given = context.get_parameter_source("tries") is not ParameterSource.DEFAULT
    if given["params"] and given["sql"] is None:
        raise click.UsageError("--param is for --sql.")
    if given["seed"] is not None and not given["crash"]:
        raise click.UsageError("--seed is for --crash: it makes the moments again at which the command is killed.")
    if are_tries_given and not (given["crash"] or given["at_once"]):
        raise click.UsageError("--tries is for --crash and --at-once; how often it is run is --times.")
    if given["yes"] and not given["in_place"]:
        raise click.UsageError("--yes is for --in-place: a sandbox is nothing to agree to.")


def _subject(session: Session, given: dict[str, Any]) -> tuple[Connection, Subject]:
    """Return the database, and what the table in it is: as the contract says, or as the words do."""
    from reslice import contract_connection
    from reslice.prove import asked

    named = None if given["connection"] is None else asked.connection_of(given["connection"])
    if given["table"] is not None:
        grain = [name.strip() for name in given["grain"].split(",") if name.strip()]
        words = (given["slice_column"], given["range_text"], given["ignore"])
        subject = asked.table_subject(given["table"], grain, *words)
        url = given["connection"] or ""
        if url and contract_connection.masked(url) == url:
            subject = replace(subject, connection=url)
        return named or session.open()._file.connection, subject
    project = session.open()
    subject = asked.target_subject(project.target(given["target"]).contract, given["range_text"], given["ignore"])
    return named or project._file.connection, subject


def _task(given: dict[str, Any], words: tuple[str, ...]) -> Task:
    from reslice.prove.asked import task_of

    parameters = {}
    for text in given["params"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--param is NAME=VALUE, not {text}.")
        if name in parameters:
            raise click.UsageError(f"--param {name} is given twice.")
        parameters[name] = value
    names = ("times", "keep", "in_place", "crash", "at_once", "tries", "seed")
    options = {name: given[name] for name in names} | {"timeout": _timeout(given["timeout"])}
    return task_of(words, sql=given["sql"], parameters=parameters, **options)


def _timeout(text: str | None) -> timedelta | None:
    from reslice.given import read_wait

    try:
        return None if text is None else read_wait(text)
    except ValueError as error:
        raise click.UsageError(f"--timeout: {error}") from error


def _ask(session: Session, connection: Connection, subject: Subject, task: Task) -> None:
    """Say what a proof in place touches, and go on only when a person says yes; Stopped[unconfirmed] otherwise."""
    touched = (
        f"{task.shown}  would run {task.times} times in {connection.shown} itself",
        f"every row of {subject.table} is put back afterwards; whatever else the command writes stays",
    )
    if not session.is_json and session.log is None and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo("\n".join(touched), err=True)
        if confirmed("\nRun it there?"):
            return
        found: tuple[str, ...] = ("no was answered",)
    else:
        found = ("there is no terminal to ask on, and no --yes", *touched)
    failure = Failure(
        "unconfirmed", "a person who has looked and says yes", found, "the same command without --in-place"
    )
    stopped = Stopped(subject.name, [failure], unchanged="the command was not run")
    stopped.consent = _consenting(session)
    raise stopped


def _consenting(session: Session) -> str:
    """Return what was typed with --yes, which stands before the words of the command."""
    words = shlex.split(session.typed)
    place = words.index("--") if "--" in words else len(words)
    return shlex.join([*words[:place], "--yes", *words[place:]])


def _worked(session: Session, connection: Connection, subject: Subject, task: Task) -> Proof:
    """Return what was found; meanwhile signals end the command, and a terminal shows how far it is."""
    from reslice.progress import Worker
    from reslice.prove.proving import Proving

    proving = Proving(connection, subject, task)
    worker = Worker(proving, sys.stderr, session.named_log())

    def work() -> Proof:
        try:
            return proving.prove(worker.on_step, session.note)
        finally:
            session.is_over = True

    try:
        return worker.call(work)
    finally:
        session.signal_number = worker.signal_number


def _answer(session: Session, found: Proof, *, verbose: bool) -> int:
    from reslice.report_prove import proof_text, warnings_of
    from reslice.report_prove_json import proof_json

    session.code = found.exit_code
    if session.log is not None:
        for text in warnings_of(found):
            session.warn(text)
    if verbose and session.log is None:
        for each in found.runs:
            click.echo(f"--- run {each.number}, {each.seconds:.1f} s\n{each.output}".rstrip("\n"), err=True)
    if session.is_json:
        session.say_json(proof_json(found, place=session.place))
    else:
        session.say(proof_text(found, place=session.place))
    return session.code
