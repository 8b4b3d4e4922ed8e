"""listening: sockets that are ours alone, servers that end, requests that have an end."""

import asyncio
import errno
import os
import signal
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from governor.doorstep import Doorstep
from governor.errors import ConfigError
from governor.listening import BoundedProtocol, QuietServer, UnixPeerProtocol, bind_tcp, bind_unix, peer_uid
from governor.webhook.tls import client_context, server_context
from tests.listeners import Heard, listening
from tests.webhook_samples import write_pair

REQUEST = b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi"


class Quick(BoundedProtocol):
    request_within_s = 0.3


class Few(BoundedProtocol):
    connections_limit = 3


class Short(BoundedProtocol):
    head_limit = 200


async def connect(heard: Heard) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", heard.port)


async def _listens(heard: Heard) -> bool:
    try:
        (await connect(heard))[1].close()
    except ConnectionError:
        return False
    return True


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Return all that comes until the connection ends; fail if it does not end."""
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")
    )
    await asyncio.wait_for(reader.readexactly(length), 10)
    return head.split(b"\r\n")[0]


def test_a_taken_port_is_named() -> None:
    taken = bind_tcp("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with pytest.raises(ConfigError, match=rf"Port {port} on 127.0.0.1 is taken.*governor.toml"):
        bind_tcp("127.0.0.1", port)
    taken.close()
    bind_tcp("127.0.0.1", port).close()


@pytest.mark.parametrize(
    ("host", "port"), [("192.0.2.1", 18802), ("no.such.name.invalid", 1), ("127.0.0.1", 70_000)]
)
def test_an_address_that_is_not_ours_is_named(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match=f"{host}:{port} cannot"):
        bind_tcp(host, port)


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
def test_a_unix_socket_is_for_its_user_or_group(tmp_path: Path, mode: int, *, group: bool) -> None:
    path = tmp_path / "governor.sock"
    before = os.umask(0o022)
    with bind_unix(path, group=group):
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.stat().st_gid == tmp_path.stat().st_gid
    assert os.umask(before) == 0o022


def test_a_socket_left_behind_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "governor.sock"
    bind_unix(path).close()
    assert path.exists()
    with bind_unix(path), pytest.raises(ConfigError, match="in use"):
        bind_unix(path)
    bind_unix(path).close()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "governor.sock"
    path.write_text("dear diary")
    target = tmp_path / "link.sock"
    target.symlink_to(path)
    for name in (path, target):
        with pytest.raises(ConfigError, match="in the way"):
            bind_unix(name)
    assert path.read_text() == "dear diary"


@pytest.mark.parametrize("name", ["a" * 200, "missing/governor.sock"])
def test_a_path_that_cannot_be_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="No socket can be made"):
        bind_unix(tmp_path / name)


def test_the_kernel_says_who_is_there() -> None:
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        assert peer_uid(one) == os.getuid()


async def test_the_app_learns_who_is_there(tmp_path: Path) -> None:
    path = tmp_path / "governor.sock"
    async with listening(None, UnixPeerProtocol, sock=bind_unix(path)) as heard:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(REQUEST)
        assert b" 202 " in await answer(reader)
        writer.close()
        assert heard.states == [{"peer_uid": os.getuid()}]


async def test_signals_stay_with_the_daemon() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    async with listening(None, BoundedProtocol):
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_a_request_under_way_is_answered_before_the_end() -> None:
    release = asyncio.Event()

    async def reply(_request: Request) -> Response:
        await release.wait()
        return Response(status_code=202)

    async with listening(None, BoundedProtocol, reply) as heard:
        reader, writer = await connect(heard)
        writer.write(REQUEST)
        await heard.arrived.wait()
        assert heard.server is not None
        heard.server.should_exit = True
        while await _listens(heard):  # noqa: ASYNC110 - the server tells nobody when it closes
            await asyncio.sleep(0)
        release.set()
        assert b" 202 " in await answer(reader)
        writer.close()


async def test_many_requests_use_one_connection() -> None:
    async with listening(None, BoundedProtocol) as heard:
        reader, writer = await connect(heard)
        for _ in range(3):
            writer.write(REQUEST)
            assert b" 202 " in await answer(reader)
        writer.close()
        assert heard.bodies == [b"hi"] * 3


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"POST",
        b"POST /hooks HTTP/1.1\r\nhost: a\r\nx-slow: ",
        b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhi",
        b"POST /hooks HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
        REQUEST + b"POST",
    ],
)
async def test_a_request_that_never_ends_is_cut(sent: bytes) -> None:
    async with listening(None, Quick) as heard:
        reader, writer = await connect(heard)
        writer.write(sent)
        await rest(reader)
        writer.close()


async def test_a_request_that_trickles_is_cut() -> None:
    """Each byte is in time, the whole is not."""
    async with listening(None, Quick) as heard:
        reader, writer = await connect(heard)
        ended = asyncio.create_task(rest(reader))
        writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n")
        while not ended.done():
            writer.write(b"x")
            await asyncio.sleep(0.02)
        await ended
        writer.close()
        assert heard.bodies == []


async def test_a_request_that_was_answered_early_ends_too() -> None:
    async def too_large(_scope: object, _receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with listening(None, Quick) as heard:
        assert heard.server is not None
        heard.server.config.loaded_app = too_large
        reader, writer = await connect(heard)
        writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nh")
        assert b" 413 " in await answer(reader)
        writer.write(b"i")
        assert await rest(reader) == b""
        writer.close()


async def test_the_answer_may_take_longer_than_the_request() -> None:
    async def slow(_request: Request) -> Response:
        await asyncio.sleep(3 * Quick.request_within_s)
        return Response(status_code=202)

    async with listening(None, Quick, slow) as heard:
        reader, writer = await connect(heard)
        writer.write(REQUEST)
        assert b" 202 " in await answer(reader)
        writer.close()


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
async def test_a_head_without_end_or_too_long_is_refused(end: bytes) -> None:
    async with listening(None, Short) as heard:
        reader, writer = await connect(heard)
        writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 300 + end)
        assert b" 202 " not in await rest(reader)
        writer.close()
        assert heard.requests == []


async def test_the_limit_of_the_head_does_not_count_the_body() -> None:
    async with listening(None, Short) as heard:
        reader, writer = await connect(heard)
        body = b"x" * 5_000
        for _ in range(2):
            writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n" + body[:900])
            await heard.arrived.wait()
            writer.write(body[900:])
            assert b" 202 " in await answer(reader)
            heard.arrived.clear()
        writer.close()
        assert heard.bodies == [body, body]


async def test_a_second_request_before_the_first_answer_is_refused() -> None:
    async with listening(None, BoundedProtocol) as heard:
        reader, writer = await connect(heard)
        writer.write(REQUEST * 1_000)
        assert (await rest(reader)).count(b" 202 ") <= 1
        writer.close()
        assert len(heard.requests) <= 1


async def test_the_connection_that_waits_longest_gives_way() -> None:
    async with listening(None, Few) as heard:
        held = [await connect(heard) for _ in range(3)]
        for reader, writer in (held[0], held[2], held[1]):
            writer.write(REQUEST)
            await answer(reader)
        for number, (reader, _) in enumerate((held[0], held[2]), 1):
            held.append(await connect(heard))
            held[-1][1].write(REQUEST)
            assert b" 202 " in await answer(held[-1][0])
            assert await rest(reader) == b"", number
        held[1][1].write(REQUEST)
        assert b" 202 " in await answer(held[1][0])
        for _, writer in held:
            writer.close()


async def test_who_trickles_does_not_stay_young() -> None:
    async with listening(None, Few) as heard:
        held = [await connect(heard) for _ in range(3)]
        held[1][1].write(REQUEST)
        await answer(held[1][0])
        held[2][1].write(REQUEST)
        await answer(held[2][0])
        held[0][1].write(REQUEST[:-1])  # all but its end, last of all
        await heard.arrived.wait()
        held.append(await connect(heard))
        assert await rest(held[0][0]) == b""
        for _, writer in held:
            writer.close()


async def test_a_request_under_way_gives_way_to_nobody() -> None:
    released, heard_all = asyncio.Event(), asyncio.Semaphore(0)

    async def held_back(_request: Request) -> Response:
        heard_all.release()
        await released.wait()
        return Response(status_code=202)

    async with listening(None, Few, held_back) as heard:
        busy = [await connect(heard) for _ in range(3)]
        for _, writer in busy:
            writer.write(REQUEST)
            await asyncio.wait_for(heard_all.acquire(), 10)
        reader, writer = await connect(heard)
        assert await rest(reader) == b""
        writer.close()
        released.set()
        for reader, writer in busy:
            assert b" 202 " in await answer(reader)
            writer.close()


class Patient(QuietServer):
    handshake_within_s = 60.0


async def test_strangers_before_tls_are_bounded_and_keep_nobody_out(tmp_path: Path) -> None:
    der = write_pair(tmp_path / "max.pem", "max-host")
    eva = write_pair(tmp_path / "eva.pem", "eva-host")
    client = client_context(tmp_path / "eva.pem", [der])
    context = server_context(tmp_path / "max.pem", [eva])
    async with listening(context, BoundedProtocol, server_class=Patient) as heard:
        strangers = [await connect(heard) for _ in range(Doorstep.waiting_limit)]
        reader, writer = await asyncio.open_connection("127.0.0.1", heard.port, ssl=client)
        writer.write(REQUEST)
        assert b" 202 " in await answer(reader)
        assert await rest(strangers[0][0]) == b""  # the oldest gave way
        for _, stranger in [*strangers, (reader, writer)]:
            stranger.close()


class Poor(socket.socket):
    """A listening socket of a process that has no descriptor left, for a while."""

    def __init__(self, failures: int) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self.failures, self.tried = failures, asyncio.Event()
        self.bind(("127.0.0.1", 0))
        self.listen()

    def accept(self) -> tuple[socket.socket, object]:
        self.tried.set()
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_without_a_free_descriptor_who_comes_waits_a_little() -> None:
    listener = Poor(failures=2)
    async with listening(None, BoundedProtocol, sock=listener) as heard:
        reader, writer = await connect(heard)
        writer.write(REQUEST)
        assert b" 202 " in await answer(reader)
        writer.close()
        assert listener.failures == 0


async def test_an_end_while_no_descriptor_is_free(tmp_path: Path) -> None:
    write_pair(tmp_path / "max.pem", "max-host")
    listener = Poor(failures=1_000_000)
    context = server_context(tmp_path / "max.pem", [])
    async with listening(context, BoundedProtocol, sock=listener) as heard:
        _reader, writer = await connect(heard)
        await asyncio.wait_for(listener.tried.wait(), 10)
        writer.close()


async def test_an_end_while_tls_is_not_made_yet(tmp_path: Path) -> None:
    write_pair(tmp_path / "max.pem", "max-host")
    async with listening(server_context(tmp_path / "max.pem", []), BoundedProtocol) as heard:
        reader, writer = await connect(heard)
        await asyncio.sleep(0.05)
    assert await rest(reader) == b""
    writer.close()


async def test_a_handshake_that_never_ends_is_cut(tmp_path: Path) -> None:
    class Impatient(QuietServer):
        handshake_within_s = 0.3

    write_pair(tmp_path / "max.pem", "max-host")
    context = server_context(tmp_path / "max.pem", [])
    async with listening(context, BoundedProtocol, server_class=Impatient) as heard:
        reader, writer = await connect(heard)
        assert await rest(reader) == b""
        writer.close()
