"""The `governor` command as somebody types it, and a governor's local API for it to talk to."""

import asyncio
import contextlib
import io
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from governor_pair import Governor, GovernorPair

from governor.cli.credentials import Credential, Place, save_credential
from governor.cli.main import main
from governor.listening import BoundedProtocol, UnixPeerProtocol, bind_tcp, bind_unix, make_server
from governor.local_api.app import Room, make_app
from governor.local_api.guard import LocalOnly


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


class Terminal(io.TextIOWrapper):
    """Standard input that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def governor(
    *words: object,
    home: Path | None = None,
    stdin: bytes = b"",
    typed: type[io.TextIOWrapper] = io.TextIOWrapper,
) -> Said:
    """Run a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="") for _ in range(2))
    before, sys.stdin = sys.stdin, typed(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*(["--home", str(home)] if home else []), *map(str, words)])
    finally:
        sys.stdin = before
    for stream in (out, err):
        stream.flush()
    return Said(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def credential_of(side: Governor, *, tcp: str = "") -> Path:
    """Write the credential of a governor's agent into its home."""
    place = Place(str(side.home.socket), tcp)
    return save_credential(side.home.path, Credential(side.agent, side.token, place))


@contextlib.contextmanager
def local_api(side: Governor, pair: GovernorPair | None = None, *, tcp: bool = False) -> Iterator[str]:
    """Serve a governor's local API on its socket; yield the TCP address if `tcp`, else nothing.

    With `pair`, whatever is due at both governors is done meanwhile.
    """
    app = make_app(Room(side.store, side.host, side.bell))
    served = [(make_server(app, UnixPeerProtocol), bind_unix(side.home.socket))]
    address = ""
    if tcp:
        listener = bind_tcp("127.0.0.1", 0)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        served.append((make_server(LocalOnly(app, frozenset({address})), BoundedProtocol), listener))
    ready = threading.Event()

    async def work() -> None:
        while True:
            if pair is not None:
                await pair.settle()
            await side.bell.wait(0.05)

    async def serve() -> None:
        tasks = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in served]
        working = asyncio.create_task(work())
        for server, _sock in served:
            await server.opened.wait()
        ready.set()
        await asyncio.gather(*tasks)
        working.cancel()
        await asyncio.wait([working])
        if not working.cancelled():
            working.result()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield address
    finally:
        for server, _sock in served:
            server.should_exit = True
        thread.join(30)
        side.home.socket.unlink(missing_ok=True)
