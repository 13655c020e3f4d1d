"""The studio: pages on this machine that show the state of every target, or a copy of them as files."""

from __future__ import annotations

import importlib.util
import secrets
import signal
from pathlib import Path
from typing import Any

import click

from reslice import serving
from reslice.cli_bug import internal_error
from reslice.cli_commands import Command, json_option
from reslice.cli_session import Session
from reslice.errors import Failure, Misused
from reslice.layout import escaped
from reslice.stopping import heard

_NEEDED = ("starlette", "uvicorn")


@click.command(
    cls=Command,
    examples=(
        "reslice studio",
        "reslice studio --port 8080 --no-browser",
        "reslice studio --export studio-copy",
    ),
)
@serving.serving_options
@click.option(
    "--export",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a copy of the pages into DIR, to be opened without a server, and end.",
)
@json_option
@click.pass_obj
def studio(session: Session, port: int, no_browser: bool, export: Path | None, is_json: bool) -> int:
    """Show the state of every target on pages that only read.

    Prints an address that only this machine answers, and answers until Ctrl-C. It writes nothing: the pages show the
    commands to copy.
    """
    session.begin("studio", is_json=is_json)
    if export is not None:
        return _export(session, export)
    _refuse_without_extra()
    session.open()  # a mistake in the contract is said here, and not on a page
    listener = serving.listen(port, "studio")
    token = secrets.token_urlsafe(24)
    address = f"{serving.address_of(listener)}{token}/"
    if is_json:
        session.say_json(_answer(address))
    else:
        session.say(address)
    from reslice.studio.app import Studio
    from reslice.studio.looking import Looking
    from reslice.studio.server import serve

    path = Path(session.config).absolute()
    pages = Studio(Looking(path), path.parent.name or "/", internal_error, session.place)
    if not no_browser and not is_json:
        serving.open_browser(address)
    session.note("Ctrl-C ends it")
    asked = serve(pages, listener, token, heard())
    session.note("ended")
    return 0 if asked in (0, signal.SIGINT) else 128 + asked


def _export(session: Session, folder: Path) -> int:
    """Write the copy, and say where it begins."""
    from reslice.studio.export import export, refuse

    refuse(folder)
    project = session.open()
    name = project.path.resolve().parent.name or "/"
    files = export(project, folder, name=name, place=session.place)
    first = folder / "index.html"
    if session.is_json:
        session.say_json(_answer(export=str(first), files=files))
    else:
        session.say(f"wrote {files} files; the first page is {escaped(str(first))}")
    return 0


def _answer(address: str | None = None, export: str | None = None, files: int | None = None) -> dict[str, Any]:
    """Return the answer as JSON has it: the address that is served, or where the copy begins."""
    about = {"schema": "reslice/studio/1", "address": address, "export": export, "files_copied": files}
    return about | {"error": None, "next": "", "exit_code": 0}


def _refuse_without_extra() -> None:
    """Refuse where what serves the pages is not installed: Misused[usage]."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        found = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        failure = Failure(
            "usage", "the extra studio, with what serves pages", (found,), "pip install 'reslice[studio]'"
        )
        raise Misused("reslice studio", [failure], unchanged="nothing was read or written")
