"""signing: what a valid webhook is (Standard Webhooks, v1a), and that nothing else is one."""

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from governor.errors import ConfigError, PeerError
from governor.webhook.encodings import SpellingError
from governor.webhook.signing import (
    Context,
    SigningKey,
    VerifyKey,
    accepts_in_context,
    sign_in_context,
    sign_webhook,
    signed_headers,
    verify_webhook,
)
from tests.webhook_samples import EVA, MALLORY, MAX, NOW

BODY = b'{"type":"message"}'
IDS = st.from_regex(r"[A-Za-z0-9_]{1,64}", fullmatch=True)

Pairs = list[tuple[bytes, bytes]]


def headers(**changes: str) -> Pairs:
    found = signed_headers([MAX], "m_1", NOW, BODY)
    found |= {f"webhook-{name}": value for name, value in changes.items()}
    return [(name.encode(), value.encode("latin-1")) for name, value in found.items()]


def verify(pairs: Pairs, body: bytes = BODY, now: datetime = NOW) -> str:
    return verify_webhook([MAX.verify_key], pairs, body, now).id


def refusal(pairs: Pairs, body: bytes = BODY, now: datetime = NOW) -> str:
    with pytest.raises(PeerError) as caught:
        verify(pairs, body, now)
    assert caught.value.message == PeerError("other").message  # one answer for all
    return caught.value.detail


def test_known_answer_made_with_the_library_alone() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    signature = private.sign(b'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W.1674087231.{"a": 1}')
    pairs = [
        (b"Webhook-Id", b"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"),
        (b"webhook-timestamp", b"1674087231"),
        (b"WEBHOOK-SIGNATURE", b"v1a," + base64.b64encode(signature)),
    ]
    key = VerifyKey.from_public("whpk_" + base64.b64encode(private.public_key().public_bytes_raw()).decode())
    at = datetime.fromtimestamp(1674087231, UTC)
    found = verify_webhook([key], pairs, b'{"a": 1}', at)
    assert (found.id, found.timestamp, found.key) == ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", at, key)


def test_known_answer_of_rfc_8032() -> None:
    """RFC 8032, section 7.1, test 2."""
    key = SigningKey(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    raw = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    assert key.verify_key.raw == raw
    assert key.verify_key.fingerprint == hashlib.sha256(raw).hexdigest()
    assert key.sign(b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540")


def test_keys_are_written_and_read() -> None:
    assert SigningKey.from_secret(MAX.secret()) == MAX
    assert VerifyKey.from_public(MAX.verify_key.public()) == MAX.verify_key
    assert MAX.secret() == "whsk_" + base64.b64encode(b"m" * 32).decode()
    assert "6d6d" not in repr(MAX)
    assert "mmm" not in repr(MAX)


@pytest.mark.parametrize("text", ["", "whpk_", "whsk_" + "A" * 43 + "=", "whpk_" + "A" * 42 + "==", "whpk_ü"])
def test_other_public_keys_are_refused(text: str) -> None:
    with pytest.raises(SpellingError):
        VerifyKey.from_public(text)


@pytest.mark.parametrize("text", ["", "whsk_", "whpk_" + "A" * 43 + "=", "whsk_" + "A" * 42 + "=="])
def test_other_secrets_are_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ConfigError, match="damaged") as caught:
        SigningKey.from_secret(text)
    assert "AAAA" not in str(caught.value)


def test_keys_have_32_bytes() -> None:
    with pytest.raises(SpellingError):
        VerifyKey(b"short")
    with pytest.raises(ConfigError):
        SigningKey(b"short")


@given(IDS, st.binary(max_size=200), st.integers(1, 4_000_000_000))
def test_what_is_signed_is_verified(webhook_id: str, body: bytes, seconds: int) -> None:
    now = datetime.fromtimestamp(seconds, UTC)
    pairs = [
        (name.encode(), value.encode())
        for name, value in signed_headers([EVA], webhook_id, now, body).items()
    ]
    found = verify_webhook([MAX.verify_key, EVA.verify_key], pairs, body, now)
    assert (found.id, found.timestamp, found.key) == (webhook_id, now, EVA.verify_key)


def _flips(raw: bytes) -> Iterator[bytes]:
    for place in range(len(raw)):
        for bit in range(8):
            yield raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :]


def test_no_bit_of_the_body_can_change() -> None:
    for body in _flips(BODY):
        assert refusal(headers(), body) == "signature"


def test_no_bit_of_a_header_can_change() -> None:
    pairs = headers()
    for place, (name, value) in enumerate(pairs):
        for changed in _flips(value):
            refusal([*pairs[:place], (name, changed), *pairs[place + 1 :]])
        for changed in _flips(name):
            if changed.lower() != name:  # 0x20 of a letter: header names have no case
                refusal([*pairs[:place], (changed, value), *pairs[place + 1 :]])


@given(st.binary(max_size=120), st.binary(max_size=40), st.binary(max_size=20))
def test_noise_is_refused(signature: bytes, webhook_id: bytes, timestamp: bytes) -> None:
    pairs = [
        (b"webhook-id", webhook_id),
        (b"webhook-timestamp", timestamp),
        (b"webhook-signature", signature),
    ]
    refusal(pairs)
    refusal([*headers()[:2], (b"webhook-signature", signature)])


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_missing_or_twice_is_refused(name: str) -> None:
    pairs = headers()
    assert refusal([pair for pair in pairs if pair[0] != name.encode()]) == f"no {name}"
    double = next(pair for pair in pairs if pair[0] == name.encode())
    assert refusal([*pairs, (double[0].upper(), double[1])]) == f"{name} twice"


def test_other_headers_do_not_matter() -> None:
    assert verify([(b"host", b"a"), *headers(), (b"host", b"\xff")]) == "m_1"


@pytest.mark.parametrize("webhook_id", ["", "a.b", "a-b", "a b", "a\n", "ü", "a" * 65])
def test_ids_outside_the_grammar_are_refused(webhook_id: str) -> None:
    seconds = int(NOW.timestamp())
    content = f"{webhook_id}.{seconds}.".encode("latin-1") + BODY
    signature = "v1a," + base64.b64encode(MAX.sign(content)).decode()
    assert refusal(headers(id=webhook_id, signature=signature)) == "id"
    with pytest.raises(ValueError, match="id"):
        sign_webhook(MAX, webhook_id, seconds, BODY)


@pytest.mark.parametrize(
    "form", ["{}.0", "+{}", "0{}", " {}", "{} ", "{}e0", "-{}", "", "0", "9" * 12, "1_796_126_400"]
)
def test_timestamps_have_one_spelling(form: str) -> None:
    text = form.format(int(NOW.timestamp()))
    signature = "v1a," + base64.b64encode(MAX.sign(f"m_1.{text}.".encode() + BODY)).decode()
    assert refusal(headers(timestamp=text, signature=signature)) == "timestamp"


def test_freshness_has_a_bound_both_ways() -> None:
    tolerance, second = timedelta(minutes=5), timedelta(seconds=1)
    assert verify(headers(), now=NOW + tolerance) == verify(headers(), now=NOW - tolerance) == "m_1"
    assert refusal(headers(), now=NOW + tolerance + second) == "stale"
    assert refusal(headers(), now=NOW - tolerance - second) == "future"
    assert refusal(headers(timestamp="99999999999")) == "future"


def test_one_of_several_signatures_is_enough() -> None:
    other = sign_webhook(MALLORY, "m_1", int(NOW.timestamp()), BODY)
    own = sign_webhook(MAX, "m_1", int(NOW.timestamp()), BODY)
    assert verify(headers(signature=f"{other} {own}")) == "m_1"
    assert verify(headers(signature=" ".join([other] * 3 + [own]))) == "m_1"
    assert refusal(headers(signature=" ".join([other] * 4 + [own]))) == "too many signatures"
    assert refusal(headers(signature=other)) == "signature"


@pytest.mark.parametrize(
    ("form", "detail"),
    [
        ("v1,{}", "signature version"),
        ("v2a,{}", "signature version"),
        ("V1a,{}", "signature version"),
        ("{}", "signature version"),
        ("v1a,{} ", "signature version"),
        ("v1a,{}  v1a,{}", "signature version"),
        ("v1a,{} v9,{}", "signature version"),
        ("v1a,{}=", "signature form"),
        ("v1a, {}", "signature version"),
        ("v1a,{}\t", "signature form"),
        ("v1a,{}v1a,{}", "signature form"),
        ("v1a,", "signature form"),
        ("v1a,AAAA", "signature form"),
        ("", "signature version"),
    ],
)
def test_signatures_have_one_spelling(form: str, detail: str) -> None:
    raw = sign_webhook(MAX, "m_1", int(NOW.timestamp()), BODY).removeprefix("v1a,")
    assert refusal(headers(signature=form.replace("{}", raw))) == detail


def test_no_unused_bit_of_base64_makes_a_second_spelling() -> None:
    value = dict(headers())[b"webhook-signature"].decode()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    assert value.endswith("==")
    for step in range(1, 16):
        other = letters[letters.index(value[-3]) ^ step]
        assert refusal(headers(signature=value[:-3] + other + "==")) == "signature form"


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64), st.binary(max_size=40))
def test_any_key_and_signature_give_a_plain_no(raw: bytes, signature: bytes, signed: bytes) -> None:
    try:
        key = VerifyKey(raw)
    except SpellingError:
        return  # a weak key: the next test
    assert key.accepts(signature, signed) is False


def _weak_keys() -> list[bytes]:
    """Return every encoding of the eight points of small order on edwards25519, worked out anew."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p

    def root(square: int) -> int:
        found = pow(square, (p + 3) // 8, p)
        return found if found * found % p == square else found * pow(2, (p - 1) // 4, p) % p

    # Of order 8 is a point whose double has y = 0: d y^4 + 2 y^2 - 1 = 0.
    y8 = root((-1 - root((1 + d) % p)) * pow(d, -1, p) % p)
    assert (d * y8**4 + 2 * y8**2 - 1) % p == 0
    small = {0, 1, p - 1, y8, p - y8}
    values = [y for y in range(p, 2**255) if y % p in small] + sorted(small)
    return [(y | sign << 255).to_bytes(32, "little") for y in values for sign in (0, 1)]


def test_keys_that_accept_made_up_signatures_are_refused() -> None:
    weak = _weak_keys()
    assert len(weak) == 14
    for raw in weak:
        with pytest.raises(SpellingError, match="small order"):
            VerifyKey(raw)
        with pytest.raises(SpellingError):
            VerifyKey.from_public("whpk_" + base64.b64encode(raw).decode())


@pytest.mark.parametrize("context", list(Context))
def test_a_context_verifies_its_own_and_no_other(context: Context) -> None:
    signature = sign_in_context(MAX, context, b"payload")
    assert [
        other for other in Context if accepts_in_context(MAX.verify_key, other, b"payload", signature)
    ] == [context]
    assert not accepts_in_context(MAX.verify_key, context, b"payloae", signature)
    assert not accepts_in_context(EVA.verify_key, context, b"payload", signature)


def test_no_context_is_the_beginning_of_another_or_of_a_webhook() -> None:
    for context in Context:
        assert context.value.endswith(b"\n")
        assert context.value.count(b"\n") == 1
        assert context.value.startswith(b"bridge-")
        assert not any(other.value.startswith(context.value) for other in Context if other is not context)
