"""PeerClient against real listeners: what it asks, what it believes, what it never does."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from governor.listening import BoundedProtocol
from governor.webhook.client import ANSWER_LIMIT, Fault, PeerAddress, PeerClient, PostError
from governor.webhook.listener import PeerCertificateProtocol
from governor.webhook.tls import server_context
from tests.listeners import Heard, listening
from tests.webhook_samples import write_pair

BODY = b'{"type":"stop"}'
LOOPBACK: dict[str, Any] = {"allow_loopback": True}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_pair(tmp_path / "eva.pem", "eva-host")
    return tmp_path / "eva.pem"


@pytest.fixture
async def client(own: Path) -> AsyncIterator[PeerClient]:
    made = PeerClient(own, allow_loopback=True)
    yield made
    await made.close()


def proxied(port: int, name: str = "max-host") -> PeerAddress:
    return PeerAddress(name, f"http://127.0.0.1:{port}", (), public_tls=True)


def replying(**options: Any) -> Callable[[Request], Awaitable[Response]]:  # noqa: ANN401 - as Response takes them
    async def reply(_request: Request) -> Response:
        return Response(**options)

    return reply


async def _fault(client: PeerClient, address: PeerAddress) -> PostError:
    with pytest.raises(PostError) as caught:
        await client.post(address, {}, BODY)
    assert address.name in caught.value.message
    return caught.value


async def test_it_sends_the_headers_it_is_given_and_few_others(client: PeerClient) -> None:
    async with listening(None, PeerCertificateProtocol) as heard:
        await client.post(proxied(heard.port), {"webhook-id": "w_1"}, BODY)
        assert heard.states == [{"peer_certificate": None}]
        assert heard.requests == [
            {
                "host": f"127.0.0.1:{heard.port}",
                "content-length": str(len(BODY)),
                "content-type": "application/json",
                "user-agent": "bridge-governor",
                "accept-encoding": "identity",
                "webhook-id": "w_1",
            }
        ]


async def test_answers_come_back_as_they_are(client: PeerClient) -> None:
    reply = replying(content=b"busy", status_code=503, headers={"retry-after": "30"})
    async with listening(None, BoundedProtocol, reply) as heard:
        answer = await client.post(proxied(heard.port), {}, BODY)
    assert answer.status == 503
    assert answer.body == b"busy"
    assert answer.retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("0", timedelta(0)),
        ("99999999999999999999", timedelta(hours=1)),
        ("-1", None),
        ("1.5", None),
        ("Tue, 01 Dec 2026 12:00:00 GMT", None),
        ("", None),
    ],
)
async def test_retry_after_is_believed_within_bounds(
    client: PeerClient, value: str, meant: timedelta | None
) -> None:
    async with listening(
        None, BoundedProtocol, replying(status_code=503, headers={"retry-after": value})
    ) as heard:
        assert (await client.post(proxied(heard.port), {}, BODY)).retry_after == meant


@pytest.mark.parametrize(
    ("date", "meant"),
    [
        (b"Tue, 01 Dec 2026 12:00:00 GMT", datetime(2026, 12, 1, 12, tzinfo=UTC)),
        (b"yesterday", None),
        (b"Fri, 31 Dec 9999 23:59:59 -2300", None),
        (b"Tue, 01 Dec 2026 12:00:00 -0000", None),
        (b"", None),
    ],
)
async def test_a_strange_date_is_no_date(client: PeerClient, date: bytes, meant: datetime | None) -> None:
    raw = b"HTTP/1.1 202 Accepted\r\ndate: " + date + b"\r\ncontent-length: 0\r\n\r\n"
    async with _raw_server(raw) as port:
        assert (await client.post(proxied(port), {}, BODY)).date == meant


@contextlib.asynccontextmanager
async def _raw_server(answer: bytes) -> AsyncIterator[int]:
    """Serve connections that read a request, answer these bytes and close; yield the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(BODY))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    "answer",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\nshort", b"\x15\x03\x03"],
)
async def test_what_is_no_whole_answer_counts_as_cut(client: PeerClient, answer: bytes) -> None:
    async with _raw_server(answer) as port:
        fault = await _fault(client, proxied(port))
    assert (fault.kind, fault.left) == (Fault.CUT, True)


async def test_an_answer_that_is_too_long_is_not_read(client: PeerClient) -> None:
    async with listening(None, BoundedProtocol, replying(content=b"x" * ANSWER_LIMIT)) as heard:
        assert len((await client.post(proxied(heard.port), {}, BODY)).body) == ANSWER_LIMIT
    async with listening(None, BoundedProtocol, replying(content=b"x" * (ANSWER_LIMIT + 1))) as heard:
        fault = await _fault(client, proxied(heard.port))
    assert (fault.kind, fault.left) == (Fault.ANSWER, True)


async def test_a_compressed_answer_is_not_unpacked(client: PeerClient) -> None:
    reply = replying(content=b"\x1f\x8b not gzip", headers={"content-encoding": "gzip"})
    async with listening(None, BoundedProtocol, reply) as heard:
        assert (await client.post(proxied(heard.port), {}, BODY)).body == b"\x1f\x8b not gzip"


async def test_no_redirect_is_followed_and_no_cookie_kept(client: PeerClient) -> None:
    headers = {"location": "/hooks", "set-cookie": "a=b"}
    async with listening(None, BoundedProtocol, replying(status_code=307, headers=headers)) as heard:
        for _ in range(2):
            assert (await client.post(proxied(heard.port), {}, BODY)).status == 307
        assert len(heard.requests) == 2
        assert "cookie" not in heard.requests[1]


async def test_no_proxy_of_the_environment_is_used(
    client: PeerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(None, BoundedProtocol) as proxy, listening(None, BoundedProtocol) as heard:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert (await client.post(proxied(heard.port), {}, BODY)).status == 202
        assert proxy.requests == []


async def test_a_connection_is_used_again(client: PeerClient) -> None:
    async with listening(None, BoundedProtocol) as heard:
        for _ in range(3):
            await client.post(proxied(heard.port), {}, BODY)
        assert heard.server is not None
        assert len(heard.server.server_state.connections) == 1


async def test_nobody_there(client: PeerClient) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        fault = await _fault(client, proxied(free.getsockname()[1]))
    assert (fault.kind, fault.left) == (Fault.CONNECT, False)


async def test_no_answer_in_time(own: Path) -> None:
    async def never(_request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    client = PeerClient(own, allow_loopback=True, answer_within=timedelta(milliseconds=300))
    async with listening(None, BoundedProtocol, never) as heard:
        fault = await _fault(client, proxied(heard.port))
        await client.close()
    assert (fault.kind, fault.left) == (Fault.TIMEOUT, True)


@pytest.mark.parametrize(
    "address",
    [
        PeerAddress("max-host", "http://127.0.0.1:1", ()),  # plain, past the pins
        PeerAddress("max-host", "http://max.example", (), public_tls=True),
        PeerAddress("max-host", "https://max.example/path", ()),
        PeerAddress("max-host", "nonsense", ()),
    ],
)
async def test_urls_that_are_not_permitted(client: PeerClient, address: PeerAddress) -> None:
    fault = await _fault(client, address)
    assert (fault.kind, fault.left) == (Fault.ADDRESS, False)


async def test_loopback_needs_the_flag(own: Path) -> None:
    client = PeerClient(own)
    async with listening(None, BoundedProtocol) as heard:
        for host in ("127.0.0.1", "localhost", "169.254.169.254"):
            fault = await _fault(client, PeerAddress("max-host", f"https://{host}:{heard.port}", ()))
            assert (fault.kind, fault.left) == (Fault.ADDRESS, False)


async def test_a_name_that_leads_to_loopback_gets_no_byte(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS may say anything, and something else each time: what counts is where the socket leads."""
    real = socket.getaddrinfo

    def lying(host: str | bytes, *rest: Any, **options: Any) -> Any:  # noqa: ANN401 - as the real one
        return real("127.0.0.1" if host in {"max.example", b"max.example"} else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lying)
    got = bytearray()
    ended = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.extend(await reader.read())
        writer.close()
        ended.set()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for public in (True, False):
        client = PeerClient(own)
        address = PeerAddress("max-host", f"https://max.example:{port}", (), public_tls=public)
        fault = await _fault(client, address)
        assert (fault.kind, fault.left) == (Fault.ADDRESS, False)
        await asyncio.wait_for(ended.wait(), 10)
        ended.clear()
        await client.close()
    assert got == b""
    server.close()


async def test_public_tls_asks_the_public_authorities(client: PeerClient, tmp_path: Path) -> None:
    pin = write_pair(tmp_path / "max.pem", "max-host")
    async with listening(server_context(tmp_path / "max.pem", []), PeerCertificateProtocol) as heard:
        fault = await _fault(client, PeerAddress("max-host", heard.url, (pin,), public_tls=True))
        assert (fault.kind, fault.left) == (Fault.TLS, False)


class _Gate:
    """Replies that wait until the gate is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def reply(self, request: Request) -> Response:
        if "urgent" not in request.headers:
            await self.open.wait()
        return Response(status_code=202)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what happens inside the app sets no event
            await asyncio.sleep(0.01)


async def test_places_are_bounded_and_urgent_webhooks_do_not_wait_for_one(client: PeerClient) -> None:
    gate = _Gate()
    async with listening(None, BoundedProtocol, gate.reply) as heard:
        slow = [asyncio.create_task(client.post(proxied(heard.port), {}, BODY)) for _ in range(7)]
        await _until(lambda: len(heard.requests) == 4)
        stop = await client.post(proxied(heard.port), {"urgent": "1"}, BODY, urgent=True)
        assert stop.status == 202
        assert len(heard.requests) == 5  # and none of the other three
        gate.open.set()
        assert [answer.status for answer in await asyncio.gather(*slow)] == [202] * 7


async def test_one_slow_peer_does_not_hold_up_another(client: PeerClient) -> None:
    gate = _Gate()
    async with (
        listening(None, BoundedProtocol, gate.reply) as slow,
        listening(None, BoundedProtocol) as quick,
    ):
        waiting = [asyncio.create_task(client.post(proxied(slow.port, "slow"), {}, BODY)) for _ in range(9)]
        await slow.arrived.wait()
        assert (await client.post(proxied(quick.port, "quick"), {}, BODY)).status == 202
        gate.open.set()
        await asyncio.gather(*waiting)


async def _cut_while(client: PeerClient, heard: Heard, cut: Callable[[], Awaitable[object]]) -> None:
    waiting = [asyncio.create_task(client.post(proxied(heard.port), {}, BODY)) for _ in range(6)]
    await _until(lambda: len(heard.requests) == 4)
    await cut()
    found = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
    assert [type(error) for error in found] == [PostError] * 6
    faults = [error for error in found if isinstance(error, PostError)]
    assert {fault.kind for fault in faults} == {Fault.CUT}
    assert sorted(fault.left for fault in faults) == [False] * 2 + [True] * 4  # two had no place yet


async def test_forget_cuts_what_is_under_way(client: PeerClient) -> None:
    gate = _Gate()
    async with listening(None, BoundedProtocol, gate.reply) as heard:
        await _cut_while(client, heard, lambda: client.forget("max-host"))
        gate.open.set()
        await client.forget("max-host")
        assert len(heard.requests) == 4
        assert (await client.post(proxied(heard.port), {}, BODY)).status == 202


async def test_close_cuts_what_is_under_way(client: PeerClient) -> None:
    gate = _Gate()
    async with listening(None, BoundedProtocol, gate.reply) as heard:
        await _cut_while(client, heard, client.close)
        gate.open.set()


async def test_forget_cuts_what_is_still_connecting(client: PeerClient) -> None:
    """A TLS handshake that never ends: after `forget`, nothing may be sent when it does."""
    connected = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = PeerAddress("max-host", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ())
    waiting = asyncio.create_task(client.post(address, {}, BODY))
    await asyncio.wait_for(connected.wait(), 10)
    await client.forget("max-host")
    with pytest.raises(PostError) as caught:
        await asyncio.wait_for(waiting, 10)
    assert caught.value.kind is Fault.CUT
    server.close()


async def test_changed_certificates_or_url_cut_the_old_connections(client: PeerClient) -> None:
    gate = _Gate()
    async with (
        listening(None, BoundedProtocol, gate.reply) as heard,
        listening(None, BoundedProtocol) as moved,
    ):
        old = asyncio.create_task(client.post(proxied(heard.port), {}, BODY))
        await heard.arrived.wait()
        assert (await client.post(proxied(moved.port), {}, BODY)).status == 202
        with pytest.raises(PostError):
            await asyncio.wait_for(old, 10)
        gate.open.set()


async def test_a_new_certificate_of_our_own_is_shown_after_close(
    tmp_path: Path, client: PeerClient, own: Path
) -> None:
    pin = write_pair(tmp_path / "max.pem", "max-host")
    context = server_context(tmp_path / "max.pem", [])
    async with listening(context, PeerCertificateProtocol) as heard:
        address = PeerAddress("max-host", heard.url, (pin,))
        await _fault(client, address)
        context.pin([write_pair(own, "eva-host")])
        await client.close()
        assert (await client.post(address, {}, BODY)).status == 202
