"""What stands before the routes: no web page on the TCP listener, and no request without end.

A page on any site can make a browser send requests to 127.0.0.1; DNS rebinding even gives it the
answers. Agents send neither a foreign Host nor an Origin.
"""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_LIMIT = 1024 * 1024
"""Longest body in bytes: a text far beyond the limit must still get policy's own answer."""


class LocalOnly:
    """ASGI middleware for the TCP listener of the local API."""

    def __init__(self, app: ASGIApp, allowed_hosts: frozenset[str]) -> None:
        self.app = app
        self.allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if its Host is ours and it comes from no web page."""
        if scope["type"] == "http" and not self._fits(scope):
            refusal = JSONResponse(
                {"error": "host", "message": "This API is for programs on this host."},
                HTTPStatus.MISDIRECTED_REQUEST,
            )
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _fits(self, scope: Scope) -> bool:
        headers = [(name, value) for name, value in scope["headers"] if name in (b"host", b"origin")]
        return len(headers) == 1 and headers[0][1].decode("latin-1") in self.allowed_hosts


class Bounded:
    """ASGI middleware: a body that grows too long is a 413, raised where the route reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the bytes of the body as they come; the declared length could be missing."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > REQUEST_LIMIT:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self.app(scope, counted, send)
