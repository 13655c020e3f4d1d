"""The studio as a server on loopback: it answers until it is asked to stop, and then stops at once."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from reslice.studio.app import Studio, application
from reslice.studio.safety import Guarded

_GRACE_SECONDS = 0
"""How long requests that are at work may go on when the studio ends: their statements are stopped."""


class Server(uvicorn.Server):
    """A server that leaves signals to whoever started it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def server_of(studio: Studio, token: str, port: int) -> Server:
    """Return what answers requests that come to a port of this machine with the token; it logs none of them."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False  # an address holds the token
    config = uvicorn.Config(
        Guarded(application(studio), token, port),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return Server(config)


def serve(studio: Studio, listener: socket.socket, token: str, signals: Iterable[signal.Signals]) -> int:
    """Answer requests until one of the signals asks to stop; return its number, 0 when it was none."""
    server = server_of(studio, token, listener.getsockname()[1])
    threading.Thread(target=studio.listen_ahead, name="reslice-listen", daemon=True).start()
    with _listening(studio, server, signals) as asked:
        server.run(sockets=[listener])
    studio.stop()
    return asked[0] if asked else 0


@contextmanager
def _listening(studio: Studio, server: Server, signals: Iterable[signal.Signals]) -> Iterator[list[int]]:
    """End the server, and what is at work, when a signal asks to; give the signals that did."""
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        server.should_exit = True
        # A lock may be held by the very thread that was interrupted to run this.
        threading.Thread(target=studio.stop, name="reslice-stop", daemon=True).start()

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
