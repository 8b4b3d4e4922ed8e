"""The peer API: `POST /hooks` and `GET /healthz`, and one answer for everything that proves nothing.

Order of the questions: declared length, TLS certificate, signature over the raw bytes, freshness,
addressee; only then is the body parsed, and only then may the answer depend on its content.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from governor.bell import Bell
from governor.directory.host import Host
from governor.directory.identity import KnownKey, known_keys, own_fingerprints
from governor.directory.refusals import Refusals
from governor.errors import PeerError, StoreError
from governor.inbound.accept import Arrival, accept
from governor.inbound.answers import BUSY, Answer
from governor.inbound.refusing import refuse_body
from governor.store.unit_of_work import Store
from governor.webhook.incoming import Incoming, WireError
from governor.webhook.listener import UNAUTHENTICATED
from governor.webhook.receipt import Receipt
from governor.webhook.signing import VerifiedWebhook, VerifyKey, verify_webhook
from governor.webhook.wire import BODY_LIMIT, deadline, decode

BODY_WITHIN_S = 10.0

SignReceipt = Callable[[Receipt], bytes]


@dataclass(frozen=True, slots=True)
class Gate:
    """What the routes work with. `mutual`: the TLS certificate must be of the peer that signed.

    `body_within_s` is how long a peer may take to send a body, in seconds.
    """

    store: Store
    host: Host
    bell: Bell
    refusals: Refusals
    sign_receipt: SignReceipt
    reader_down: Callable[[], bool]
    mutual: bool
    body_within_s: float = BODY_WITHIN_S


@dataclass(frozen=True, slots=True)
class Keys:
    """Which keys count at this instant: of the peers, and the names of our own."""

    peers: dict[str, KnownKey]
    own: frozenset[str]


def make_peer_app(gate: Gate) -> Starlette:
    """Return the app of the peer listener."""

    async def hooks(request: Request) -> Response:
        try:
            answer = await _answer(gate, request)
        except PeerError as error:
            gate.refusals.count(error.detail.replace(" ", "_").replace("-", "_"), gate.host.clock.now())
            return _unauthenticated(413 if error.detail == _TOO_LARGE else 401)
        except StoreError:
            answer = BUSY
        gate.bell.ring()
        retry = {} if answer.retry_after is None else {"retry-after": str(answer.retry_after)}
        return Response(answer.body, answer.status, retry, "application/json")

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def elsewhere(_request: Request, _error: Exception) -> Response:
        gate.refusals.count("route", gate.host.clock.now())
        return _unauthenticated(401)

    app = Starlette(
        routes=[Route("/hooks", hooks, methods=["POST"]), Route("/healthz", healthz)],
        exception_handlers={HTTPException: elsewhere},
    )
    app.router.redirect_slashes = False  # an answer that would tell one path from another
    return app


_TOO_LARGE = "length"


def _unauthenticated(status: int) -> Response:
    return Response(UNAUTHENTICATED, status, {"connection": "close"}, "application/json")


async def _answer(gate: Gate, request: Request) -> Answer:
    _check_head(request)
    now = gate.host.clock.now()
    keys = await asyncio.to_thread(_keys, gate.store, now)
    key = _signer(gate, request, keys)
    body = await _body(request, gate.body_within_s)
    webhook = verify_webhook([VerifyKey(key.public_key)], request.headers.raw, body, gate.host.clock.now())
    try:
        incoming = decode(body, webhook.id)
    except WireError as error:
        answer = await gate.store.run(refuse_body, gate.store, gate.host, key.peer, error.reason)
    else:
        answer = await _take(gate, keys, key, webhook, incoming, body)
    if answer.repeated is not None:
        gate.refusals.count(answer.repeated, gate.host.clock.now(), key.peer)
    return answer


async def _take(
    gate: Gate, keys: Keys, key: KnownKey, webhook: VerifiedWebhook, incoming: Incoming, body: bytes
) -> Answer:
    if incoming.from_fp != key.fingerprint:
        raise PeerError("signer")
    if incoming.to_fp not in keys.own:
        raise PeerError("addressee")
    until = deadline(gate.host.clock.now(), webhook.timestamp, incoming.expires_at)
    arrival = Arrival(key.peer, webhook.id, hashlib.sha256(body).hexdigest(), until, incoming)
    return await gate.store.run(
        lambda: accept(gate.store, gate.host, arrival, gate.sign_receipt, reader_down=gate.reader_down())
    )


def _check_head(request: Request) -> None:
    """Refuse by the headers alone what cannot be ours, before a byte of the body is read."""
    declared = request.headers.get("content-length", "")
    if not declared.isascii() or not declared.isdigit():
        raise PeerError("no_length")
    if int(declared[:12]) > BODY_LIMIT:
        raise PeerError(_TOO_LARGE)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise PeerError("content_type")


def _keys(store: Store, now: datetime) -> Keys:
    with store.reading() as uow:
        return Keys({key.fingerprint: key for key in known_keys(uow, now)}, own_fingerprints(uow))


def _signer(gate: Gate, request: Request, keys: Keys) -> KnownKey:
    """Return the key that the sender claims; its certificate, if TLS asked for one, is of the same peer."""
    key = keys.peers.get(request.headers.get("governor-key", ""))
    if key is None:
        raise PeerError("unknown_key")
    if gate.mutual:
        shown = request.scope.get("state", {}).get("peer_certificate")
        pinned = {known.certificate_fingerprint for known in keys.peers.values() if known.peer == key.peer}
        if shown not in pinned:
            raise PeerError("certificate")
    return key


async def _body(request: Request, within_s: float) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_LIMIT:
                    raise PeerError(_TOO_LARGE)
    except TimeoutError:
        raise PeerError("slow") from None
    except ClientDisconnect:
        raise PeerError("cut") from None
    return bytes(body)
