"""A real listener on loopback for tests: an app that remembers what reached it."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from governor.listening import BoundedProtocol, QuietServer, bind_tcp, make_server

Reply = Callable[[Request], Awaitable[Response]]


@dataclass
class Heard:
    """What reached the app: headers, body, the connection's state; in order."""

    requests: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    states: list[dict[str, object]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    server: QuietServer | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


async def accept(_request: Request) -> Response:
    return Response(b"taken", 202)


@contextlib.asynccontextmanager
async def listening(
    context: ssl.SSLContext | None,
    protocol: type[BoundedProtocol],
    reply: Reply = accept,
    *,
    sock: socket.socket | None = None,
    server_class: type[QuietServer] = QuietServer,
) -> AsyncIterator[Heard]:
    """Serve `POST /hooks` until the end of the block."""
    heard = Heard()

    async def hooks(request: Request) -> Response:
        heard.requests.append(dict(request.headers))
        heard.states.append(dict(request.scope["state"]))
        heard.arrived.set()
        heard.bodies.append(await request.body())
        return await reply(request)

    sock = sock or bind_tcp("127.0.0.1", 0)
    if sock.family != socket.AF_UNIX:
        heard.port = sock.getsockname()[1]
    made = make_server(Starlette(routes=[Route("/hooks", hooks, methods=["POST"])]), protocol, context)
    heard.server = server_class(made.config)
    task = asyncio.create_task(heard.server.serve(sockets=[sock]))
    try:
        await asyncio.wait_for(heard.server.opened.wait(), 10)
        yield heard
    finally:
        heard.server.should_exit = True
        await asyncio.wait_for(task, 30)
