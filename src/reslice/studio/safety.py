"""Who may ask the studio what: somebody on this machine, by the address that was printed, and only to look."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer says: nothing of another place is loaded, kept, framed or told where the reader came from."""

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?")


class Guarded:
    """An application behind the rules: the name of this machine, the token, and no more than GET.

    A page of another site that has its name point to this machine is refused by the Host header. Without the token, or
    with another, every address is one that is not there.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here is a WebSocket, and uvicorn closes one that is not answered
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, safely)
            return
        token = scope["path"].split("/", 2)[1]
        await self._app({**scope, "root_path": f"/{token}"}, receive, safely)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        """Return why a request is not answered; None when it is."""
        if not self._is_here([value for name, value in scope["headers"] if name == b"host"]):
            return PlainTextResponse("not the host of this page\n", 400)
        parts = scope["path"].encode("utf-8", "surrogatepass").split(b"/", 2)
        if len(parts) < 2 or not secrets.compare_digest(parts[1], self._token):
            return PlainTextResponse("not found\n", 404)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this page is only looked at\n", 405, {"Allow": "GET, HEAD"})
        return None

    def _is_here(self, hosts: list[bytes]) -> bool:
        """Whether exactly one Host is named, and it is this machine at the port we listen on."""
        if len(hosts) != 1:
            return False
        found = _HOST.fullmatch(hosts[0].decode("latin-1").lower())
        return found is not None and int(found[1] or 80) == self._port
