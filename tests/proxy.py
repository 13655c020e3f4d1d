"""A proxy before a PostgreSQL server that understands so much of its messages as it takes to fail at a chosen one.

It follows what clients send, statement by statement, and asks `fault` what becomes of each. Connections lead on to a
Unix socket or a TCP port of the server. Everything runs in threads of the test's own process.
"""

from __future__ import annotations

import enum
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102


class Fault(enum.Enum):
    """What becomes of one statement."""

    NONE = enum.auto()
    DROP_BEFORE = enum.auto()
    """The connection is gone, and the statement has not reached the server."""
    DROP_AFTER = enum.auto()
    """The server has done it; then the connection is gone, and the answer with it."""
    CUT_CLIENT = enum.auto()
    """The server gets it; the client is cut off at once, while the server sees its own end as it was."""
    CUT_BOTH = enum.auto()
    """The server gets it, and both ends are gone while it works."""
    SWALLOW = enum.auto()
    """The server does not get it, and the client hears nothing: neither of the two sees an end."""
    MUTE = enum.auto()
    """The server does it, and the client never hears so."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement on its way: its text, its number in its connection from 1, and the connection's, from 1."""

    text: str
    number: int
    connection: int


Decide = Callable[[Statement], Fault]


def nothing(_statement: Statement) -> Fault:
    """Let everything pass."""
    return Fault.NONE


@dataclass
class Proxy:
    """Listens on a port of its own. `server` is the folder of the server's socket and the port that names it.

    `refuse_after` says for how many seconds nobody is let in once a fault has been; None is for ever.
    """

    server: tuple[Path, int]
    fault: Decide = nothing
    refuse_after: float | None = 0.0
    seen: list[Statement] = field(default_factory=list)
    faults: list[Statement] = field(default_factory=list)
    happened: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._connections = 0
        self._closed = False
        self._closed_until: float | None = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str, user: str) -> str:
        """Return the URL of a database through the proxy."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        """Let go of every connection."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._open:
                _end(each)

    def let_in(self) -> None:
        """Let everybody in again."""
        self._closed_until = 0.0

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._closed_until is None or time.monotonic() < self._closed_until:
                _reset(client)
                continue
            with self._lock:
                self._connections += 1
                number = self._connections
            threading.Thread(target=self._serve, args=(client, number), daemon=True).start()

    def _serve(self, client: socket.socket, number: int) -> None:
        folder, port = self.server
        server = socket.socket(socket.AF_UNIX)
        with self._lock:
            self._open += [client, server]
        try:
            server.connect(str(folder / f".s.PGSQL.{port}"))
            if self._begin(client, server):
                _Pair(self, client, server, number).run()
        except (OSError, ValueError):  # an end that was closed meanwhile is no file any more
            pass
        finally:
            _end(client)
            _end(server)

    def _begin(self, client: socket.socket, server: socket.socket) -> bool:
        """Pass the first message on; return whether statements follow."""
        while True:
            head = _exactly(client, 8)
            length, code = struct.unpack("!II", head)
            if code in (_SSL, _GSS):
                client.sendall(b"N")
                continue
            server.sendall(head + _exactly(client, length - 8))
            if code == _CANCEL:
                server.recv(1)
                return False
            return True

    def decide(self, statement: Statement) -> Fault:
        """Return what becomes of a statement, and take note of it."""
        self.seen.append(statement)
        found = self.fault(statement)
        if found is not Fault.NONE:
            self.faults.append(statement)
            if self.refuse_after != 0.0:
                self._closed_until = None if self.refuse_after is None else time.monotonic() + self.refuse_after
        return found


class _Pair:
    """One client and its server process."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket, number: int) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._number = number
        self._statements = 0
        self._fault = Fault.NONE
        self._from_client = b""
        self._from_server = b""

    def run(self) -> None:
        """Pass messages on until one of the two is gone, or a fault is over."""
        ends = [self._client, self._server]
        while ends:
            ready, _, _ = select.select(ends, [], [], 0.5)
            if self._proxy._closed:
                return
            for end in ready:
                data = _received(end)
                if not data:
                    if self._fault in (Fault.MUTE, Fault.SWALLOW, Fault.CUT_CLIENT) and end is self._server:
                        ends.remove(end)  # the client does not hear of it
                        continue
                    return
                if end is self._client:
                    if not self._to_server(data):
                        return
                elif not self._to_client(data):
                    return
            if self._fault is Fault.CUT_CLIENT and self._client in ends and not self._from_client:
                ends.remove(self._client)
                _reset(self._client)
                self._proxy.happened.set()

    def _to_server(self, data: bytes) -> bool:
        """Pass messages of the client on; return whether it goes on."""
        self._from_client += data
        passed = b""
        while (message := _message(self._from_client)) is not None:
            self._from_client = self._from_client[len(message) :]
            text = _statement(message)
            if text is not None and self._fault is Fault.NONE:
                self._statements += 1
                self._fault = self._proxy.decide(Statement(text, self._statements, self._number))
            if self._fault is Fault.DROP_BEFORE:
                self._server.sendall(passed)
                self._drop()
                return False
            if self._fault is Fault.SWALLOW:
                self._proxy.happened.set()
                continue
            passed += message
        self._server.sendall(passed)
        if self._fault is Fault.MUTE:
            self._proxy.happened.set()
        if self._fault is Fault.CUT_BOTH and not self._from_client:
            time.sleep(0.05)  # the server has begun
            self._drop()
            return False
        return True

    def _to_client(self, data: bytes) -> bool:
        """Pass messages of the server on, while its answers are not lost; return whether it goes on."""
        if self._fault is Fault.NONE:
            self._client.sendall(data)
            return True
        self._from_server += data
        while (message := _message(self._from_server)) is not None:
            self._from_server = self._from_server[len(message) :]
            if message[:1] == b"Z" and self._fault is Fault.DROP_AFTER:
                self._drop()
                return False
        return True

    def _drop(self) -> None:
        _reset(self._client)
        _end(self._server)
        self._proxy.happened.set()


def _statement(message: bytes) -> str | None:
    """Return the text of a message that brings a statement: Query, or Parse of the extended protocol."""
    if message[:1] == b"Q":
        return message[5:-1].decode(errors="replace")
    if message[:1] == b"P":
        return message[5:].split(b"\0")[1].decode(errors="replace")
    return None


def _message(data: bytes) -> bytes | None:
    """Return the first message of what was received; None when it is not there whole."""
    if len(data) < 5:
        return None
    length = struct.unpack("!I", data[1:5])[0] + 1
    return data[:length] if len(data) >= length else None


def _exactly(end: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = end.recv(count - len(data))
        if not more:
            raise OSError("the client went away")
        data += more
    return data


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _reset(end: socket.socket) -> None:
    """Close a connection as a network does that breaks: with a reset."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
