"""The command line: it parses, calls one function, prints, and ends with the exit code that says what to do next.

Results go to stdout, talk and errors to stderr; with --json everything is one JSON value on stdout. What is wrong is
always said in four parts, and never as a traceback. Nothing heavy is imported until a command needs it.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from reslice import __version__, cli_bug, cli_log
from reslice.cli_audit import audit, rule
from reslice.cli_commands import Group
from reslice.cli_doctor import doctor
from reslice.cli_init import init
from reslice.cli_lab import lab
from reslice.cli_look import demo, history, show
from reslice.cli_prove import prove
from reslice.cli_restore import restore
from reslice.cli_run import plan, run, verify
from reslice.cli_session import Session
from reslice.cli_status import status
from reslice.cli_studio import studio
from reslice.cli_versions import versions
from reslice.errors import Failure, Interrupted, Misused, ResliceError
from reslice.stopping import SIGNALS, heard


@click.group(
    cls=Group,
    name="reslice",
    sections={
        "every day": (plan, run, verify, status, history, show, restore, versions),
        "set up": (init, doctor),
        "others' code": (audit, prove, rule),
        "learn, look": (demo, lab, studio),
    },
    examples=(
        "reslice plan daily_orders 2026-01-01..2026-01-02",
        "reslice run daily_orders 2026-01-01..2026-01-02",
        "reslice demo",
    ),
    invoke_without_command=True,
)
@click.option("-C", "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="Work in DIR.")
@click.option("--config", metavar="FILE", help="The contract file, reslice.yml unless said.")
@click.option(
    "--log-format",
    type=click.Choice(cli_log.FORMATS),
    envvar=cli_log.VARIABLE,
    metavar="FORMAT",
    default="text",
    help="What is said on stderr as text, or as json: one object per line.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context, directory: str | None, config: str | None, log_format: str) -> int:
    """Recompute a closed slice of a table and replace it, as often as you like, with the same result."""
    session: Session = context.obj
    session.log_as(log_format)
    session.take_place(directory, config)
    if context.invoked_subcommand is None:
        session.say(context.get_help())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. Whatever happens, it is said in words."""
    _hold_streams()
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    own = given[: given.index("--")] if "--" in given else given  # what stands behind are words of another command
    session = Session(is_json="--json" in own, typed=shlex.join(["reslice", *given]))
    session.log_as("json" if cli_log.is_json_asked(given, os.environ) else "text")
    started_in = "."
    if arguments is None:
        _listen(session)
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins costs more than a contract
    try:
        started_in = _here()
        return _dispatch(given, session)
    except Exception as error:  # The one place: an error that nobody foresaw is told as what it is.
        return session.fail(cli_bug.internal_error(error), command=session.command)
    finally:
        with suppress(OSError):  # the folder may be gone by now
            os.chdir(started_in)
        if arguments is None and session.is_over:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def _here() -> str:
    """Return the folder the command works in; "." where it is gone, which whoever needs a file then says."""
    try:
        return os.getcwd()
    except OSError:
        return "."


def _listen(session: Session) -> None:
    """Let signals end this program until its work is over; from then on the exit code tells of the target."""

    def note(number: int, _frame: FrameType | None) -> None:
        if session.is_over:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if session.log is not None:
            session.log.write_last("it was asked to stop before its work began", 128 + number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in heard():
        signal.signal(number, note)


def _hold_streams() -> None:
    """Let closed standard streams lead nowhere, so that no database file is opened in the place of one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _dispatch(given: list[str], session: Session) -> int:
    """Run the command; what is foreseen to go wrong becomes four parts and an exit code."""
    try:
        found: Any = root.main(given, prog_name="reslice", standalone_mode=False, obj=session)
        code = session.ended(found if isinstance(found, int) else 0)
        session.finish(code)
        return code
    except ResliceError as error:
        return session.fail(error, command=session.command)
    except click.ClickException as error:
        return session.fail(_usage_error(error), command=_command_of(error))
    except (click.Abort, KeyboardInterrupt):
        # An answer that was being printed is over: its exit code says what became of the target.
        if session.code is not None:
            return session.code
        session.signal_number = signal.SIGINT
        return session.fail(_interrupted(), command=session.command)


def _command_of(error: click.ClickException) -> str:
    """Return the command that was misused; `error` when it is not known which."""
    context: click.Context | None = getattr(error, "ctx", None)
    return "error" if context is None or context.parent is None else str(context.info_name)


def _usage_error(error: click.ClickException) -> Misused:
    """Return a mistake on the command line in the form of every other error."""
    context: click.Context | None = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "reslice"
    usage = " ".join(context.get_usage().split()).removeprefix("Usage: ") if context is not None else path
    failure = Failure("usage", usage, (error.format_message(),), f"{path} --help")
    return Misused(path, [failure], unchanged="nothing was read or written")


def _interrupted() -> Interrupted:
    failure = Failure("interrupted", "a command to its end", ("it was asked to stop",), "")
    return Interrupted("reslice", [failure], unchanged="no table is half written")
