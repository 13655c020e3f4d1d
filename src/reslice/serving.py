"""What a command needs to serve pages to this machine alone: a port of the loopback, its names, and a browser."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from reslice.errors import Failure, Misused

Function = TypeVar("Function", bound=Callable[..., Any])

LOOPBACK = "127.0.0.1"


def serving_options(function: Function) -> Function:
    """Add --port and --no-browser."""
    for decorate in (
        click.option("--no-browser", is_flag=True, help="Print the address, and open no browser."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            metavar="N",
            default=0,
            show_default=True,
            help="The port on this machine; 0 is one that is free.",
        ),
    ):
        function = decorate(function)
    return function


def listen(port: int, command: str) -> socket.socket:
    """Return a socket that listens on the loopback alone; Misused[usage] where the port cannot be had."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        found = f"{os.strerror(error.errno)}: {LOOPBACK}:{port}" if error.errno else str(error)
        failure = Failure("usage", f"port {port} of this machine", (found,), f"reslice {command} --port 0")
        raise Misused(f"{command} --port {port}", [failure], unchanged="nothing was read or written") from error


def address_of(listener: socket.socket) -> str:
    """Return the address of what listens, with a / at its end."""
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}/"


def is_own_host(host: str | None, port: int) -> bool:
    """Whether a request names this machine; one that a foreign name led here is not answered."""
    return host in (f"{LOOPBACK}:{port}", f"localhost:{port}") or (port == 80 and host in (LOOPBACK, "localhost"))


def open_browser(address: str) -> bool:
    """Show the address in the reader's browser; False where there is no screen, or no browser."""
    if sys.platform not in ("win32", "darwin") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
