"""The command `lab`: it serves one page to this machine, and says where it stands as a file."""

from __future__ import annotations

import click

from reslice.cli_commands import Command
from reslice.cli_session import Session
from reslice.serving import address_of, listen, open_browser, serving_options


@click.command(
    cls=Command,
    examples=("reslice lab", "reslice lab --port 8000 --no-browser"),
)
@serving_options
@click.pass_obj
def lab(session: Session, port: int, no_browser: bool) -> int:
    """Show in a browser what a second run does to a table.

    One page on synthetic orders: append beside replace, run once and twice. It works without a network, and also as the
    file that is named. Ctrl-C ends it.
    """
    session.command = "lab"
    from reslice.lab import PAGE
    from reslice.lab.server import serve

    with listen(port, "lab") as listener:
        address = address_of(listener)
        session.say(f"{address}\nthe same page as a file: {PAGE}")
        try:
            if not no_browser:
                open_browser(address)
            session.note("Ctrl-C ends it")
            serve(listener, PAGE.read_bytes())
        except KeyboardInterrupt:
            session.note("ended")
    return 0
