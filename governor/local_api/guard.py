"""Keeps web pages out of the TCP listener: Host must be ours, and a browser's Origin never is.

A page on any site can make a browser send requests to 127.0.0.1; DNS rebinding even gives it the
answers. Agents send neither a foreign Host nor an Origin.
"""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class LocalOnly:
    """ASGI middleware for the TCP listener of the local API."""

    def __init__(self, app: ASGIApp, allowed_hosts: frozenset[str]) -> None:
        self.app = app
        self.allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if its Host is ours and it comes from no web page."""
        if scope["type"] == "http" and not self._fits(scope):
            refusal = JSONResponse(
                {"error": "host", "message": "This API is for programs on this host."}, 421
            )
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _fits(self, scope: Scope) -> bool:
        headers = [(name, value) for name, value in scope["headers"] if name in (b"host", b"origin")]
        return len(headers) == 1 and headers[0][1].decode("latin-1") in self.allowed_hosts
