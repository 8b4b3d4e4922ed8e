"""Sockets and servers for both listeners: bound by us, bounded in time, size and number, quiet about signals.

uvicorn alone would take the process's signals, make a Unix socket that everybody may use, exit the
process when a port is taken, wait for ever for a request that does not end, and let strangers who
never begin TLS use up the process's descriptors.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from governor.doorstep import Doorstep
from governor.errors import ConfigError

KEEP_ALIVE_S: Final = 45
"""How long a connection may idle between two requests."""

DRAIN_S: Final = 2
"""How long requests under way may take after the listener was told to stop."""

_BACKLOG: Final = 64


class _UnwantedError(Exception):
    """A request that no client of ours makes; raised inside the parser, which then gives up."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with an end: of a request's head, of the time it takes, of the connections at once.

    A request must have arrived whole within the deadline, counted from the connection or from the
    first byte after the last request; else the connection is cut. Answers may take their time. When
    there are too many connections, the one that has brought no whole request for longest gives way:
    who only holds connections keeps nobody out.
    """

    connections_limit: ClassVar[int] = 64
    head_limit: ClassVar[int] = 16 * 1024
    request_within_s: ClassVar[float] = 20.0

    _deadline: asyncio.TimerHandle | None = None
    _head: int = 0
    _in_head: bool = True
    _came_at: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline; with too many connections, cut one."""
        super().connection_made(transport)
        self._came_at = self.loop.time()
        self._await_request()
        if len(self.connections) > self.connections_limit:
            others = [other for other in self.connections if isinstance(other, BoundedProtocol)]
            waiting = [other for other in others if other is not self and other.waits]
            min(waiting, key=lambda other: other._came_at, default=self).transport.abort()  # noqa: SLF001 - of this class

    @property
    def waits(self) -> bool:
        """Tell whether nothing is asked here: no request has come, or not yet whole, or its answer is given."""
        idle = self.cycle is None or self.cycle.response_complete or self._deadline is not None
        return idle and not self.transport.is_closing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._request_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, within the limit of a head that has not ended."""
        if self._deadline is None:
            self._await_request()
        self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > self.head_limit:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Start the deadline of a request whose first bytes came with the end of the last one."""
        if self._deadline is None:
            self._await_request()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse a head that is too long, and a second request before the first has its answer."""
        if sum(len(name) + len(value) for name, value in self.headers) > self.head_limit:
            raise _UnwantedError
        if self.cycle is not None and not self.cycle.response_complete:
            raise _UnwantedError  # pipelining: thousands of requests fit into one read
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the deadline: the request is here."""
        self._in_head, self._head, self._came_at = True, 0, self.loop.time()
        self._request_came()
        super().on_message_complete()
        if self.cycle.response_complete:  # answered early; no other timer ends the connection now
            self._await_request()

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(self.request_within_s, self.transport.abort)

    def _request_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class UnixPeerProtocol(BoundedProtocol):
    """HTTP on a Unix socket; `scope["state"]["peer_uid"]` is the user at the other end, or None."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel who is there."""
        uid = peer_uid(transport.get_extra_info("socket"))
        self.app_state = {**self.app_state, "peer_uid": uid}
        super().connection_made(transport)


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user id at the other end of a Unix connection, or None where the kernel tells none."""
    if sys.platform == "linux":  # unix(7): struct ucred {pid, uid, gid}
        layout = "=iII"
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
        _pid, uid, _gid = struct.unpack(layout, raw)
        return int(uid)
    if sys.platform == "darwin":  # sys/un.h: LOCAL_PEERCRED; sys/ucred.h: struct xucred {version, uid, ...}
        raw = connection.getsockopt(0, 1, 76)
        version, uid = struct.unpack_from("=II", raw)
        return int(uid) if version == 0 else None
    return None


class QuietServer(uvicorn.Server):
    """A uvicorn server among others in one process; `should_exit = True` drains and ends it."""

    handshake_within_s: ClassVar[float] = 5.0
    goodbye_within_s: ClassVar[float] = 1.0

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.opened = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on sockets that are bound already, with bounds on how long TLS may take."""
        await self.lifespan.startup()
        tls: dict[str, Any] = {}
        if self.config.ssl is not None:
            tls["ssl"] = self.config.ssl
            tls["ssl_handshake_timeout"] = self.handshake_within_s
            tls["ssl_shutdown_timeout"] = self.goodbye_within_s
        self.servers = [Doorstep(sock, self._protocol, tls) for sock in sockets or []]  # type: ignore[misc]
        self.started = True
        self.opened.set()

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


def make_server(
    app: ASGIApp, protocol: type[BoundedProtocol], context: ssl.SSLContext | None = None
) -> QuietServer:
    """Return a server; run it with `serve(sockets=[...])`, wait for `opened`."""
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # what strangers send must not fill the log
        access_log=False,
        proxy_headers=False,  # who is there follows from the connection, never from a header
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
        ssl_context_factory=(lambda _config, _default: context) if context is not None else None,
    )
    return QuietServer(config)


def bind_tcp(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raise ConfigError that names it if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)  # here, not later: only this finds that another listens already
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(_unbound(host, port, error)) from error
    return listener


def bind_unix(path: Path, *, group: bool = False) -> socket.socket:
    """Return a Unix socket bound to a path, 0600, or 0660 for the group of its folder.

    A socket that a crash left behind is replaced; one that answers is in use: ConfigError.
    """
    clear_socket(path, "another governor runs there. Look with: governor service status")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The mode is set by the umask, so that there is no instant in which others can connect.
        before = os.umask(0o117 if group else 0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        if group:
            os.chown(path, -1, path.parent.stat().st_gid)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"No socket can be made at {path} ({error}). Set another path or its folder's rights."
        ) from error
    return listener


def clear_socket(path: Path, user: str) -> None:
    """Remove a socket that nobody answers at; raises ConfigError with `user` where somebody does."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"{path} is in the way: it is not a socket. Move it, or set another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    raise ConfigError(f"{path} is in use: {user}")


def _unbound(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Stop what uses it, or set another port in governor.toml."
    return f"{host}:{port} cannot be listened on ({error}). Correct it in governor.toml."
