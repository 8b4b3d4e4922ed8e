"""POSTs webhooks to peers, and to nothing else: no redirect, no proxy, no cookie, bounded in all.

httpx is used at its transport, below everything that a client would do of itself.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import httpx

from governor.errors import LocalError, TransportError
from governor.webhook.peer_url import is_local, read_peer_url
from governor.webhook.tls import client_context, public_context

ANSWER_LIMIT: Final = 16 * 1024
"""Longest body of an answer in bytes."""

CONNECT_WITHIN: Final = timedelta(seconds=5)
ANSWER_WITHIN: Final = timedelta(seconds=15)
"""For the whole of a POST, its wait for a place included."""

RETRY_LIMIT: Final = timedelta(hours=1)
"""Longest Retry-After that is believed."""

_PLACES: Final = 4  # messages in flight per peer
_URGENT_PLACES: Final = 2  # kept free of them, so that a STOP never waits for a slow answer
_KEEP_ALIVE_S: Final = 30.0  # shorter than the listener's, so that we never reuse what it is closing


class Fault(StrEnum):
    """What went wrong between the two governors."""

    ADDRESS = "address"  # the URL, or what its name leads to, is not permitted
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    CUT = "cut"  # the connection broke, or the peer was forgotten
    ANSWER = "answer"  # not HTTP, or too long


class PostError(TransportError):
    """The POST gave no answer; `left` tells whether bytes of it may have reached the peer."""

    def __init__(self, kind: Fault, peer: str, *, left: bool) -> None:
        super().__init__(f"The governor of {peer} gave no answer ({kind}). Look at: governor peers")
        self.kind = kind
        self.left = left


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """A peer's name, its confirmed URL and its pinned certificates (DER), current and old.

    `public_tls`: a proxy shows a certificate of a public authority at that URL instead.
    """

    name: str
    url: str
    certificates: tuple[bytes, ...]
    public_tls: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the peer's listener said; `date` is its clock, to show a difference to ours."""

    status: int
    body: bytes
    retry_after: timedelta | None = None
    date: datetime | None = None


class _AddressError(Exception):
    """A name led to an address that is not permitted."""


class _AnswerError(Exception):
    """The answer is too long."""


_FAILURES: Final = (httpx.HTTPError, ssl.SSLError, OSError, _AddressError, _AnswerError)
"""Why a POST fails; TimeoutError is an OSError. httpx lets what TLS says while it reads pass as it is."""

_BEFORE_SENDING: Final = (_AddressError, httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Of these, when no byte of the request can have left."""

_FAULT_OF: Final[Mapping[Fault, tuple[type[Exception], ...]]] = {
    Fault.ADDRESS: (_AddressError,),
    Fault.ANSWER: (_AnswerError,),
    Fault.TLS: (ssl.SSLError,),
    Fault.TIMEOUT: (httpx.TimeoutException, TimeoutError),
    Fault.CONNECT: (httpx.ConnectError,),
}
"""In this order: the first that applies is the kind; else the connection was cut."""

_TIMEOUTS: Final = {
    "connect": CONNECT_WITHIN.total_seconds(),
    "read": ANSWER_WITHIN.total_seconds(),
    "write": ANSWER_WITHIN.total_seconds(),
    "pool": ANSWER_WITHIN.total_seconds(),
}
_HEADERS: Final = {
    "content-type": "application/json",
    "user-agent": "bridge-governor",
    "accept-encoding": "identity",  # the bound on an answer is on what was sent
}


@dataclass(slots=True)
class _Line:
    """The connections to one peer and what is under way on them."""

    address: PeerAddress
    transport: httpx.AsyncHTTPTransport
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_PLACES))
    under_way: set[asyncio.Timeout] = field(default_factory=set)
    is_cut: bool = False


class PeerClient:
    """POSTs to peers, showing the TLS certificate in the PEM file `own` (key and certificate)."""

    def __init__(
        self, own: Path, *, allow_loopback: bool = False, answer_within: timedelta = ANSWER_WITHIN
    ) -> None:
        self._own = own
        self._allow_loopback = allow_loopback
        self._answer_within = answer_within
        self._lines: dict[str, _Line] = {}

    async def post(
        self, peer: PeerAddress, headers: Mapping[str, str], body: bytes, *, urgent: bool = False
    ) -> Answer:
        """POST a webhook to the peer's /hooks, or raise PostError.

        Messages to one peer wait for a place; an `urgent` control webhook does not wait behind them.
        """
        request = self._request(peer, headers, body)
        line = await self._line(peer)
        begun = False
        try:
            async with asyncio.timeout(self._answer_within.total_seconds()) as limit:
                line.under_way.add(limit)
                try:
                    async with contextlib.nullcontext() if urgent else line.places:
                        begun = True
                        return await _exchange(line.transport, request)
                finally:
                    line.under_way.discard(limit)
        except _FAILURES as error:
            kind = Fault.CUT if line.is_cut else _fault(error)
            left = begun and not isinstance(error, _BEFORE_SENDING)
            raise PostError(kind, peer.name, left=left) from error

    async def forget(self, name: str) -> None:
        """Cut everything to this peer at once, what is under way included."""
        line = self._lines.pop(name, None)
        if line is not None:
            await _cut(line)

    async def close(self) -> None:
        """Cut everything to all peers; the next POST reads our own certificate anew."""
        for name in list(self._lines):
            await self.forget(name)

    def _request(self, peer: PeerAddress, headers: Mapping[str, str], body: bytes) -> httpx.Request:
        try:
            url = read_peer_url(peer.url, allow_loopback=self._allow_loopback)
        except LocalError as error:
            raise PostError(Fault.ADDRESS, peer.name, left=False) from error
        if url.scheme != "https" and not peer.public_tls:  # it would go past the pins
            raise PostError(Fault.ADDRESS, peer.name, left=False)
        extensions: dict[str, Any] = {"timeout": _TIMEOUTS}
        if not self._allow_loopback:
            extensions["trace"] = _watch
        return httpx.Request(
            "POST", f"{url}/hooks", headers={**_HEADERS, **headers}, content=body, extensions=extensions
        )

    async def _line(self, peer: PeerAddress) -> _Line:
        old = self._lines.get(peer.name)
        if old is not None and old.address == peer:
            return old
        line = self._lines[peer.name] = _Line(peer, self._transport(peer))
        if old is not None:  # its URL or certificates changed
            await _cut(old)
        return line

    def _transport(self, peer: PeerAddress) -> httpx.AsyncHTTPTransport:
        context = public_context() if peer.public_tls else client_context(self._own, peer.certificates)
        limits = httpx.Limits(
            max_connections=_PLACES + _URGENT_PLACES,
            max_keepalive_connections=_URGENT_PLACES,
            keepalive_expiry=_KEEP_ALIVE_S,
        )
        return httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)


async def _exchange(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> Answer:
    response = await transport.handle_async_request(request)
    try:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > ANSWER_LIMIT:
                raise _AnswerError
    finally:
        await response.aclose()
    retry_after, date = response.headers.get("retry-after", ""), response.headers.get("date", "")
    return Answer(response.status_code, bytes(body), _seconds(retry_after), _date(date))


async def _cut(line: _Line) -> None:
    line.is_cut = True
    now = asyncio.get_running_loop().time()
    for limit in line.under_way:
        if not limit.expired():
            limit.reschedule(now)
    await line.transport.aclose()


async def _watch(event: str, info: Mapping[str, Any]) -> None:
    """Look at the address a name led to, before TLS begins (httpcore's `trace` extension)."""
    if event != "connection.connect_tcp.complete":
        return
    stream = info["return_value"]
    if is_local(stream.get_extra_info("server_addr")[0]):
        await stream.aclose()
        raise _AddressError


def _fault(error: BaseException) -> Fault:
    for kind, errors in _FAULT_OF.items():
        if any(isinstance(link, errors) for link in _links(error)):
            return kind
    return Fault.CUT


def _links(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it came from: httpx wraps what the TLS layer said."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _seconds(value: str) -> timedelta | None:
    """Read Retry-After in seconds (RFC 9110, 10.2.3); its other form, a date, is not for us."""
    if not (value.isascii() and value.isdigit()):
        return None
    return min(timedelta(seconds=int(value[:6])), RETRY_LIMIT)


def _date(value: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(value)
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, TypeError, OverflowError):
        return None
