"""Accepts connections and takes them through TLS: so many at once and no more.

A stranger who never begins TLS costs a descriptor and shows no certificate. Without a bound here a few
hundred of them would leave none for the local API, the database and the readers.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, ClassVar, Final

_ACCEPT_AGAIN_S: Final = 0.5


class Doorstep:
    """Accepts the connections of one listening socket; those whose TLS is not made yet are few.

    When there are too many of these, the oldest gives way: an honest peer is through in milliseconds.
    """

    waiting_limit: ClassVar[int] = 64

    def __init__(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: dict[str, Any]
    ) -> None:
        """Listen; `tls` holds `loop.connect_accepted_socket`'s arguments about TLS."""
        self._sock, self._protocol, self._tls = sock, protocol, tls
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Task[None], None] = {}
        self._again: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._accept)

    def close(self) -> None:
        """Accept nothing more and cut what is not through TLS; the socket is left to who made it."""
        self._loop.remove_reader(self._sock.fileno())
        if self._again is not None:
            self._again.cancel()
        for task in self._waiting:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until all that `close` cut is gone."""
        await asyncio.gather(*self._waiting, return_exceptions=True)

    def _accept(self) -> None:
        try:
            connection, _address = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no descriptor is free: to look again at once would keep the loop from freeing one
            self._loop.remove_reader(self._sock.fileno())
            self._again = self._loop.call_later(
                _ACCEPT_AGAIN_S, self._loop.add_reader, self._sock.fileno(), self._accept
            )
            return
        if len(self._waiting) >= self.waiting_limit:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.cancel()
        task = self._loop.create_task(self._greet(connection))
        self._waiting[task] = None
        task.add_done_callback(lambda done: self._waiting.pop(done, None))

    async def _greet(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # also what TLS says, and its time-out: strangers are no news
            await self._loop.connect_accepted_socket(self._protocol, connection, **self._tls)
