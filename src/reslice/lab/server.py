"""A server of one page, for this machine alone: it reads nothing but the request line and the Host header."""

from __future__ import annotations

import re
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reslice.serving import is_own_host

_POLICY = re.compile(rb'http-equiv="Content-Security-Policy" content="([^"]+)"')
SECONDS_PER_REQUEST = 10.0
"""How long a client may keep a connection without asking for anything."""


def serve(listener: socket.socket, page: bytes) -> None:
    """Answer GET / and HEAD / with the page until the program is stopped; everything else is not found."""
    _Server(listener, page).serve_forever(poll_interval=0.2)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Server
    server_version = "reslice"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS_PER_REQUEST

    def do_GET(self) -> None:
        """Answer with the page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer as to GET, without the page."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        status, kind, body = self.server.answer(self.path, self.headers.get("Host"))
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.server.safety.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal is the reader's."""


class _Server(ThreadingHTTPServer):
    """What listens already, and the page."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, page: bytes) -> None:
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()
        self.page = page
        policy = _POLICY.search(page)
        assert policy, "the page has a policy"
        self.safety = {
            "Content-Security-Policy": f"{policy[1].decode('ascii')}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    def answer(self, path: str, host: str | None) -> tuple[HTTPStatus, str, bytes]:
        """Return what is said to a request: its status, the kind of text, and the text."""
        if not is_own_host(host, self.server_port):
            return HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"not a name of this machine\n"
        if path != "/":
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is one page: /\n"
        return HTTPStatus.OK, "text/html", self.page

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
