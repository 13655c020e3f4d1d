"""A studio that answers on a port of this machine, in a thread of the test."""

from __future__ import annotations

import json
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

from reslice import serving
from reslice.errors import ResliceError
from reslice.studio.app import Studio
from reslice.studio.looking import Looking
from reslice.studio.server import server_of


@dataclass
class Answered:
    """An answer of the server."""

    status: int
    headers: Message
    text: str

    @property
    def json(self) -> Any:
        """What the text says as JSON."""
        return json.loads(self.text)


@dataclass
class Served:
    """The address of a studio, and what it was not made for."""

    address: str
    studio: Studio
    bugs: list[Exception] = field(default_factory=list)

    def get(self, path: str = "", *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answered:
        """Ask for a page below the token, and follow where it leads."""
        request = urllib.request.Request(self.address + path, method=method, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Answered(answer.status, answer.headers, answer.read().decode("utf-8"))
        except urllib.error.HTTPError as error:
            with error:
                return Answered(error.code, error.headers, error.read().decode("utf-8"))


@contextmanager
def served(contract: Path, *, place: str = "", connection: Any = None, **options: Any) -> Iterator[Served]:
    """Serve the studio of a contract file."""
    bugs: list[Exception] = []

    def on_bug(error: Exception) -> ResliceError:
        from reslice.cli_bug import internal_error

        bugs.append(error)
        return internal_error(error)

    studio = Studio(Looking(contract, connection), "shop", on_bug, place, **options)
    listener = serving.listen(0, "studio")
    token = secrets.token_urlsafe(24)
    server = server_of(studio, token, listener.getsockname()[1])
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield Served(f"{serving.address_of(listener)}{token}/", studio, bugs)
    finally:
        server.should_exit = True
        studio.stop()
        thread.join(20)
        assert not thread.is_alive(), "the server has not ended"
        assert not bugs, f"the studio failed: {bugs}"
