"""The peer API in the hands of somebody who holds no key, another key, or an old webhook (P7)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import pytest
from crafted import fingerprints, message, signed
from governor_pair import Governor, GovernorPair, pair_up

from governor.store.tables import Message
from governor.webhook.signing import SigningKey
from governor.webhook.wire import BODY_LIMIT

MALLORY = SigningKey(b"m" * 32)


class Request(NamedTuple):
    """What somebody sends; `certificate` is the one that TLS has seen."""

    headers: dict[str, str]
    body: bytes
    certificate: str | None
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed


Make = Callable[[GovernorPair], Request]


def whole(pair: GovernorPair, **changed: Any) -> Request:  # noqa: ANN401 - any field
    """Return a request that is taken, but for what is changed."""
    body = message(pair.max, pair.eva)
    return Request(signed(pair.max, body), body, pair.max.certificate)._replace(**changed)


def with_headers(pair: GovernorPair, **changed: str | None) -> Request:
    request = whole(pair)
    names = {name.replace("_", "-"): value for name, value in changed.items()}
    kept = {name: value for name, value in (request.headers | names).items() if value is not None}
    return request._replace(headers=kept)


def forged(pair: GovernorPair) -> Request:
    body = message(pair.max, pair.eva)
    return Request(signed(pair.max, body, key=MALLORY), body, pair.max.certificate)


def unknown_key(pair: GovernorPair) -> Request:
    request = forged(pair)
    return request._replace(headers=request.headers | {"governor-key": MALLORY.verify_key.fingerprint})


def dated(pair: GovernorPair, **by: float) -> Request:
    body = message(pair.max, pair.eva)
    headers = signed(pair.max, body, at=pair.clock.now() + timedelta(**by))
    return Request(headers, body, pair.max.certificate)


def re_targeted(pair: GovernorPair) -> Request:
    """Take what Max's governor signed for Zoe's."""
    zoe = pair.third()
    body = message(pair.max, zoe)
    return Request(signed(pair.max, body), body, pair.max.certificate)


def in_the_name_of_another(pair: GovernorPair) -> Request:
    """Sign with Zoe's own key a body that says it is from Max's."""
    zoe = pair.third()
    pair_with_eva(pair, zoe)
    body = message(pair.max, pair.eva)
    return Request(signed(zoe, body), body, zoe.certificate)


def certificate_of_another(pair: GovernorPair) -> Request:
    zoe = pair.third()
    pair_with_eva(pair, zoe)
    return whole(pair, certificate=zoe.certificate)


def pair_with_eva(pair: GovernorPair, zoe: Governor) -> None:
    pair_up(pair.eva, zoe)


def revoked(pair: GovernorPair) -> Request:
    request = whole(pair)
    pair.eva.revoke("max-host")
    return request


def another_id(pair: GovernorPair) -> Request:
    return with_headers(pair, webhook_id="m_other")


def another_body(pair: GovernorPair) -> Request:
    return whole(pair, body=message(pair.max, pair.eva, "v2.0.0"))


UNAUTHENTICATED: dict[str, Make] = {
    "nothing": lambda _pair: Request({}, b"", None),
    "forged": forged,
    "unknown key": unknown_key,
    "stale": lambda pair: dated(pair, minutes=-6),
    "from the future": lambda pair: dated(pair, minutes=6),
    "re-targeted": re_targeted,
    "in the name of another": in_the_name_of_another,
    "certificate of another": certificate_of_another,
    "no certificate": lambda pair: whole(pair, certificate=None),
    "revoked": revoked,
    "replayed under another id": another_id,
    "replayed with another body": another_body,
    "no signature": lambda pair: with_headers(pair, webhook_signature=None),
    "no id": lambda pair: with_headers(pair, webhook_id=None),
    "no key": lambda pair: with_headers(pair, governor_key=None),
    "id out of its grammar": lambda pair: with_headers(pair, webhook_id="m.1"),
    "signature of another version": lambda pair: with_headers(pair, webhook_signature="v1,AAAA"),
    "wrong content type": lambda pair: with_headers(pair, content_type="text/plain"),
    "no content type": lambda pair: with_headers(pair, content_type=""),
    "length that is no number": lambda pair: with_headers(pair, content_length="-1"),
    "wrong method": lambda pair: whole(pair, more={"method": "PUT"}),
    "get": lambda pair: whole(pair, more={"method": "GET"}),
    "wrong route": lambda pair: whole(pair, more={"url": "/"}),
    "docs": lambda pair: whole(pair, more={"url": "/docs", "method": "GET"}),
    "slash": lambda pair: whole(pair, more={"url": "/hooks/"}),
    "local route": lambda pair: whole(pair, more={"url": "/v1/inbox", "method": "GET"}),
    "healthz by post": lambda pair: whole(pair, more={"url": "/healthz"}),
}


async def ask(pair: GovernorPair, request: Request) -> httpx.Response:
    return await pair.eva.hook(request.headers, request.body, request.certificate, **request.more)


def told(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    return (
        answer.status_code,
        answer.content,
        [pair for pair in answer.headers.multi_items() if pair[0] != "date"],
    )


@pytest.fixture
async def open_pair(pair: GovernorPair) -> GovernorPair:
    pair.go()
    await pair.settle()
    return pair


async def test_the_whole_request_is_taken(open_pair: GovernorPair) -> None:
    assert (await ask(open_pair, whole(open_pair))).status_code == 202


@pytest.mark.parametrize("name", UNAUTHENTICATED)
async def test_all_that_proves_nothing_gets_one_answer_and_changes_nothing(
    open_pair: GovernorPair, name: str
) -> None:
    request = UNAUTHENTICATED[name](open_pair)
    before = open_pair.eva.everything()
    answer = await ask(open_pair, request)
    assert told(answer) == told(await ask(open_pair, Request({}, b"", None)))
    assert answer.status_code == 401
    assert open_pair.eva.everything() == before
    open_pair.clock.advance(minutes=1)
    open_pair.eva.tick()
    (record, *_) = open_pair.eva.audit("webhook_refused")
    assert record.detail["count"] in (1, 2)
    assert record.peer is None


async def test_each_kind_of_refusal_is_told_apart_on_this_side(open_pair: GovernorPair) -> None:
    for make in (forged, unknown_key, lambda pair: dated(pair, minutes=-6)):
        await ask(open_pair, make(open_pair))
    open_pair.clock.advance(minutes=1)
    open_pair.eva.tick()
    assert {row.reason for row in open_pair.eva.audit("webhook_refused")} == {
        "signature",
        "unknown_key",
        "stale",
    }


async def test_healthz_says_ok_and_nothing_else(open_pair: GovernorPair) -> None:
    answer = await open_pair.eva.hook({}, b"", None, method="GET", url="/healthz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


async def raw(governor: Governor, headers: dict[str, str], chunks: AsyncIterator[bytes]) -> tuple[int, int]:
    """Speak ASGI to the peer API; return the status and how many chunks of the body were taken."""
    taken, status = 0, 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        async for chunk in chunks:
            taken += 1
            return {"type": "http.request", "body": chunk, "more_body": True}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        nonlocal status
        status = event.get("status", status)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/hooks",
        "raw_path": b"/hooks",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {"peer_certificate": governor.network["max-host"].certificate},
    }
    await governor.peer_app(scope, receive, send)  # type: ignore[arg-type]
    return status, taken


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 10_000


async def test_a_huge_body_is_refused_by_its_declared_length_before_it_is_read(
    open_pair: GovernorPair,
) -> None:
    headers = whole(open_pair).headers | {"content-type": "application/json"}
    assert await raw(open_pair.eva, headers | {"content-length": "10485760"}, endless()) == (413, 0)
    assert await raw(open_pair.eva, headers | {"content-length": str(BODY_LIMIT + 1)}, endless()) == (413, 0)


async def test_a_body_without_a_length_is_not_read(open_pair: GovernorPair) -> None:
    headers = whole(open_pair).headers | {"content-type": "application/json"}
    assert await raw(open_pair.eva, headers, endless()) == (401, 0)


async def test_nobody_unknown_has_a_body_read(open_pair: GovernorPair) -> None:
    headers = unknown_key(open_pair).headers | {"content-type": "application/json", "content-length": "9"}
    assert await raw(open_pair.eva, headers, endless()) == (401, 0)


async def test_a_body_longer_than_it_said_ends_at_the_limit(open_pair: GovernorPair) -> None:
    headers = whole(open_pair).headers | {"content-type": "application/json", "content-length": "9"}
    status, taken = await raw(open_pair.eva, headers, endless())
    assert status == 413
    assert taken == BODY_LIMIT // 10_000 + 1


async def test_a_slow_body_is_cut(open_pair: GovernorPair) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    headers = whole(open_pair).headers | {"content-type": "application/json", "content-length": "900"}
    assert (await raw(open_pair.eva, headers, slow()))[0] == 401


def malformed(pair: GovernorPair) -> Iterator[tuple[bytes, str]]:
    """Yield bodies that nobody's program would make, and why each is refused."""
    good = json.loads(message(pair.max, pair.eva))

    def changed(**data: Any) -> bytes:  # noqa: ANN401 - any JSON
        return json.dumps(good | {"data": good["data"] | data}, separators=(",", ":")).encode()

    for body in (
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"null",
        b"[" * 5_000,
        b'{"type":"message","type":"stop"}',
        b"NaN",
    ):
        yield body, "malformed"
    yield json.dumps(good | {"type": "shutdown"}).encode(), "type"
    yield changed(v=2), "version"
    yield changed(text=""), "text"
    yield changed(text="a\x00"), "text"
    yield changed(text="\ud800"), "text"
    yield changed(text="a" * 10_001), "too_long"
    yield changed(text=7), "field"
    yield changed(hops="4"), "field"
    yield changed(lineage=["max@max-host"] * 17), "field"
    yield changed(sender="operator@max-host"), "field"
    yield changed(conversation="../../etc"), "field"
    yield changed(extra=1), "malformed"
    yield changed(expires_at="2026-03-04T09:00:00.000000Z"), "expiry"


async def test_malformed_bodies_with_a_right_signature_are_422_with_a_word_of_ours(
    open_pair: GovernorPair,
) -> None:
    before = open_pair.eva.everything()
    for number, (body, reason) in enumerate(malformed(open_pair)):
        headers = signed(open_pair.max, body, f"m_{number}")
        answer = await open_pair.eva.hook(headers, body, open_pair.max.certificate)
        assert (answer.status_code, answer.json()) == (422, {"error": "unprocessable", "reason": reason}), (
            body
        )
    after = open_pair.eva.everything()
    records = open_pair.eva.audit("webhook_refused")
    assert len(records) == len({row.reason for row in records})  # the first of each, in this minute
    assert {row.peer for row in records} == {"max-host"}
    for table in before.keys() - {"audit_record"}:
        assert after[table] == before[table], table
    open_pair.clock.advance(minutes=1)
    open_pair.eva.tick()
    totals = [row for row in open_pair.eva.audit("webhook_refused") if row.detail]
    counted = {row.reason: row.detail["count"] for row in totals if row.detail}
    assert counted["malformed"] == 8  # nine of them, one on record before


async def test_a_body_that_is_not_for_our_key_is_nobodys_even_if_malformed(open_pair: GovernorPair) -> None:
    own, _theirs = fingerprints(open_pair.max, open_pair.eva)
    good = json.loads(message(open_pair.max, open_pair.eva))
    good["data"] |= {"to": own}
    body = json.dumps(good).encode()
    answer = await open_pair.eva.hook(signed(open_pair.max, body), body, open_pair.max.certificate)
    assert answer.status_code == 401


async def test_an_expired_webhook_is_void_however_fresh_its_signature(open_pair: GovernorPair) -> None:
    body = message(open_pair.max, open_pair.eva, keep_for=timedelta(minutes=1))
    open_pair.clock.advance(seconds=61)
    answer = await open_pair.eva.hook(signed(open_pair.max, body), body, open_pair.max.certificate)
    assert answer.json() == {"error": "unprocessable", "reason": "expiry"}


async def test_a_replay_gets_the_stored_answer_and_later_none(open_pair: GovernorPair) -> None:
    request = whole(open_pair)
    first = await ask(open_pair, request)
    again = await ask(open_pair, request)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert len(open_pair.eva.rows(Message)) == 1
    assert open_pair.eva.link("max-host").in_used == 1
    open_pair.clock.advance(minutes=6)
    assert (await ask(open_pair, request)).status_code == 401  # stale, before the id is looked at
