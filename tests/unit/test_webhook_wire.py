"""wire: every body we write is read as it was meant; every other body is refused with its reason."""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.errors import LocalError
from governor.message import RESERVED_NAMES, TEXT_LIMIT, Envelope, UntrustedText
from governor.webhook.encodings import WHOLE_LIMIT, to_base64, to_instant
from governor.webhook.incoming import (
    Incoming,
    IncomingCancel,
    IncomingHello,
    IncomingMessage,
    IncomingRotate,
    IncomingStop,
    WireError,
    WireReason,
    WireType,
)
from governor.webhook.rotation import rotate_data
from governor.webhook.wire import BODY_LIMIT, deadline, decode, encode_control, encode_message
from tests.webhook_samples import EVA_FP, MALLORY, MAX_FP, NOW, envelope, sample_certificate

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
NAMES = st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True).filter(lambda name: name not in RESERVED_NAMES)
AGENTS = st.builds("{}@{}".format, NAMES, NAMES)
IDS = st.from_regex(r"[A-Za-z0-9_]{1,64}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def message(text: str = "hello", **changes: object) -> bytes:
    return encode_message(envelope(**changes), text, from_fp=MAX_FP, to_fp=EVA_FP, seq=7, now=NOW)


def control(kind: WireType, data: dict[str, Any]) -> bytes:
    return encode_control(kind, data, from_fp=MAX_FP, to_fp=EVA_FP, seq=7, now=NOW, expires_at=NOW + DAY)


def changed(
    body: bytes,
    data: Mapping[str, object] | None = None,
    *,
    top: Mapping[str, object] | None = None,
    drop: str = "",
) -> bytes:
    value = json.loads(body)
    value |= top or {}
    if isinstance(value["data"], dict):
        value["data"] |= data or {}
        value["data"].pop(drop, None)
    return json.dumps(value).encode()


def refusal(body: bytes) -> WireReason:
    with pytest.raises(WireError) as caught:
        decode(body, "m_1")
    assert caught.value.status == 422
    return caught.value.reason


@given(
    st.builds(
        envelope,
        id=IDS,
        sender=AGENTS,
        recipient=AGENTS,
        conversation=IDS,
        in_reply_to=st.none() | IDS,
        hops=st.integers(-WHOLE_LIMIT, WHOLE_LIMIT),
        lineage=st.lists(AGENTS, max_size=16).map(tuple),
        expires_at=st.integers(1, 24 * 3600 * 10**6).map(lambda us: NOW + timedelta(microseconds=us)),
    ),
    TEXTS,
    st.integers(0, WHOLE_LIMIT),
)
def test_a_message_comes_back(sent: Envelope, text: str, seq: int) -> None:
    body = encode_message(sent, text, from_fp=MAX_FP, to_fp=EVA_FP, seq=seq, now=NOW)
    assert decode(body, sent.id) == IncomingMessage(
        from_fp=MAX_FP,
        to_fp=EVA_FP,
        seq=seq,
        at=NOW,
        expires_at=sent.expires_at,
        envelope=sent,
        text=UntrustedText(text),
    )


def test_control_webhooks_come_back() -> None:
    every: dict[str, Any] = {"from_fp": MAX_FP, "to_fp": EVA_FP, "seq": 7, "at": NOW, "expires_at": NOW + DAY}
    rotate = rotate_data(MAX_FP, MALLORY, sample_certificate(), NOW + DAY)
    cases: dict[bytes, Incoming] = {
        control(WireType.STOP, {}): IncomingStop(**every),
        control(WireType.HELLO, {"open": True}): IncomingHello(**every, is_open=True),
        control(WireType.CANCEL, {"message": "m_9"}): IncomingCancel(**every, message_id="m_9"),
        control(WireType.ROTATE, rotate): IncomingRotate(
            **every,
            new_key=MALLORY.verify_key,
            new_certificate=sample_certificate(),
            overlap_until=NOW + DAY,
            proof=decode_proof(rotate["proof"]),
        ),
    }
    for body, meant in cases.items():
        assert decode(body, "w_1") == meant


def decode_proof(text: str) -> bytes:
    import base64  # noqa: PLC0415 - the other decoder, on purpose

    return base64.b64decode(text)


@pytest.mark.parametrize(
    ("kind", "data"),
    [(WireType.STOP, {"a": 1}), (WireType.HELLO, {"open": 1}), (WireType.CANCEL, {"message": "-"})],
)
def test_a_control_webhook_that_no_peer_would_take_is_not_written(
    kind: WireType, data: dict[str, Any]
) -> None:
    with pytest.raises(WireError):
        control(kind, data)


@pytest.mark.parametrize("text", ["", "a\ud800b", "\udfff", "a\0b"])
def test_a_text_that_cannot_cross_is_refused_on_both_sides(text: str) -> None:
    with pytest.raises(LocalError, match="UTF-8"):
        message(text)
    assert refusal(changed(message(), {"text": text})) is WireReason.TEXT


def test_the_limit_counts_code_points() -> None:
    longest = "\U0001f600" * TEXT_LIMIT
    assert decode(message(longest), "m_1").text == longest  # type: ignore[attr-defined]
    with pytest.raises(LocalError, match=str(TEXT_LIMIT)):
        message(longest + "a")
    assert refusal(changed(message(), {"text": longest + "a"})) is WireReason.TOO_LONG


def test_the_body_limit_holds_the_worst_spelling_of_the_longest_text() -> None:
    agent = "a" * 32 + "@" + "h" * 32
    body = message("a", sender=agent, recipient=agent, lineage=(agent,) * 16, conversation="c" * 64)
    worst = changed(body, {"text": "\U0001f600" * TEXT_LIMIT})  # the standard library escapes all of it
    assert len(worst) <= BODY_LIMIT
    assert isinstance(decode(worst, "m_1"), IncomingMessage)
    rotate = control(WireType.ROTATE, rotate_data(MAX_FP, MALLORY, b"c" * 4096, NOW + DAY))
    assert len(rotate) <= BODY_LIMIT
    assert refusal(b" " * (BODY_LIMIT + 1)) is WireReason.TOO_LONG


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xef\xbb\xbf" + message(),
        message().decode().encode("utf-16"),
        message("ü").decode().encode("latin-1"),
        message()[:-1],
        message() + b"x",
        message().replace(b'"hops":4', b'"hops":NaN'),
        message().replace(b'"hops":4', b'"hops":4.0'),
        message().replace(b'"hops":4', b'"hops":' + b"9" * 30),
        message().replace(b'"hops":4', b'"hops":4,"hops":4'),
        b'{"type":"stop",' + message()[1:],
        message().replace(b'"hops":4', b'"hops":' + b"[" * 60_000),
        changed(message(), top={"extra": 1}),
        changed(message(), {"extra": 1}),
        changed(message(), drop="text"),
        changed(message(), drop="v"),
        changed(message(), top={"data": []}),
        changed(message(), top={"data": None}),
    ],
)
def test_what_is_not_strict_json_of_our_keys_is_malformed(body: bytes) -> None:
    assert refusal(body) is WireReason.MALFORMED


@pytest.mark.parametrize("kind", ["", "go", "MESSAGE", "message ", 1, None, [], {}, ["message"], True])
def test_unknown_types_are_refused(kind: object) -> None:
    assert refusal(changed(message(), top={"type": kind})) is WireReason.TYPE


@pytest.mark.parametrize("version", [0, 2, -1])
def test_other_versions_are_refused_whatever_their_keys(version: int) -> None:
    assert refusal(changed(message(), {"v": version, "more": True})) is WireReason.VERSION


NOT_IDS = ["", "a-b", "a.b", "a" * 65, "ü", "a\n", 1, [], {}]
NOT_AGENTS = [
    "",
    "max",
    "max@",
    "@h",
    "a@b@c",
    "Max@h",
    "max@h\n",
    "operator@h",
    "max@governor",
    "a@" + "b" * 33,
    1,
    None,
]
NOT_COUNTS = [-1, True, "1", None, []]
NOT_INSTANTS = ["", "2026-12-01", "2026-02-30T00:00:00.000000Z", 1, None, []]
NOT_FINGERPRINTS = ["", "a" * 63, "A" * 64, "g" * 64, 1, None]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("v", ["1", True, None, [], "1.5"]),
        ("from", NOT_FINGERPRINTS),
        ("to", NOT_FINGERPRINTS),
        ("seq", NOT_COUNTS),
        ("expires_at", NOT_INSTANTS),
        ("sender", NOT_AGENTS),
        ("recipient", NOT_AGENTS),
        ("conversation", [*NOT_IDS, None]),
        ("in_reply_to", NOT_IDS),
        ("hops", ["4", True, None, []]),
        ("lineage", [*([agent] for agent in NOT_AGENTS), ["max@h"] * 17, None, "max@h", {"max@h": 1}]),
        ("text", [1, None, [], {}, True]),
    ],
)
def test_values_outside_their_grammar_are_refused(name: str, values: list[object]) -> None:
    for value in values:
        assert refusal(changed(message(), {name: value})) is WireReason.FIELD, value


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (WireType.HELLO, {"open": False}, {"open": ["true", 1, None]}),
        (WireType.CANCEL, {"message": "m_1"}, {"message": [*NOT_IDS, None]}),
        (
            WireType.ROTATE,
            rotate_data(MAX_FP, MALLORY, sample_certificate(), NOW + DAY),
            {
                "new_public_key": ["", "whpk_AAAA", 1, None],
                "new_certificate": ["", "!", 1, to_base64(b"c" * 4097)],
                "overlap_until": NOT_INSTANTS,
                "proof": ["", to_base64(b"s" * 63), 1, None],
            },
        ),
    ],
)
def test_values_of_control_webhooks_are_held_to_their_grammar(
    kind: WireType, good: dict[str, Any], bad: dict[str, list[object]]
) -> None:
    for name, values in bad.items():
        for value in values:
            assert refusal(changed(control(kind, good), {name: value})) is WireReason.FIELD, (name, value)
        assert refusal(changed(control(kind, good), drop=name)) is WireReason.MALFORMED


@pytest.mark.parametrize("stamp", NOT_INSTANTS)
def test_the_timestamp_is_an_instant(stamp: object) -> None:
    assert refusal(changed(message(), top={"timestamp": stamp})) is WireReason.FIELD


def test_a_life_has_bounds() -> None:
    assert refusal(message(expires_at=NOW)) is WireReason.EXPIRY
    assert refusal(message(expires_at=NOW - MINUTE)) is WireReason.EXPIRY
    assert refusal(message(expires_at=NOW + DAY + timedelta(microseconds=1))) is WireReason.EXPIRY
    assert decode(message(expires_at=NOW + DAY), "m_1").expires_at == NOW + DAY


def test_the_ends_of_time_are_no_fault() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    first = datetime.min.replace(tzinfo=UTC)
    body = changed(message(), {"expires_at": to_instant(first)}, top={"timestamp": to_instant(last)})
    assert refusal(body) is WireReason.EXPIRY
    assert refusal(changed(message(), {"expires_at": to_instant(last)})) is WireReason.EXPIRY
    assert deadline(NOW, first, last) == NOW + DAY
    assert deadline(NOW, last, first) == NOW


def test_the_deadline_is_what_was_left_when_it_was_sent() -> None:
    ahead = NOW + timedelta(hours=3)  # the sender's clock
    assert deadline(NOW, ahead, ahead + MINUTE) == NOW + MINUTE
    assert deadline(NOW, ahead, ahead) == NOW


@given(st.binary(max_size=200))
def test_noise_is_refused(body: bytes) -> None:
    refusal(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(sorted(json.loads(message())["data"])),
)
def test_any_json_in_any_field_gives_a_message_or_a_reason(value: object, name: str) -> None:
    with contextlib.suppress(WireError):
        decode(changed(message(), {name: value}), "m_1")
