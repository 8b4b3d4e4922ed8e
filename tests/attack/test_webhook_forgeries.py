"""Forged, stale, re-targeted and re-used signatures: none is worth anything (P7).

Each attacker here holds a key of its own, sees everything that crosses, and may send anything.
"""

import base64
import json
from datetime import timedelta

import pytest

from governor.errors import LocalError, PeerError, TransportError
from governor.message import Direction
from governor.webhook.encodings import from_base64, to_base64, to_json
from governor.webhook.incoming import IncomingRotate, WireError, WireReason, WireType
from governor.webhook.pairing_line import Offer, decode_offer, encode_offer
from governor.webhook.receipt import Receipt, sign_receipt, verify_receipt
from governor.webhook.rotation import RotationProof, rotate_data
from governor.webhook.signing import (
    Context,
    SigningKey,
    accepts_in_context,
    sign_in_context,
    signed_headers,
    verify_webhook,
)
from governor.webhook.wire import decode, encode_control, encode_message
from governor.webhook.wire_log import genesis, next_head
from tests.webhook_samples import EVA, EVA_FP, MALLORY, MAX, MAX_FP, NOW, envelope, sample_certificate

Pairs = list[tuple[bytes, bytes]]
BODY = encode_message(envelope(), "Schön, 1.0 — ok?", from_fp=MAX_FP, to_fp=EVA_FP, seq=1, now=NOW)


def signed_by(key: SigningKey, body: bytes = BODY) -> Pairs:
    return [
        (name.encode(), value.encode()) for name, value in signed_headers([key], "m_1", NOW, body).items()
    ]


def with_signature(raw: bytes) -> Pairs:
    return [*signed_by(MAX)[:2], (b"webhook-signature", b"v1a," + base64.b64encode(raw))]


def is_forged(pairs: Pairs, body: bytes = BODY, *, later: timedelta = timedelta(0)) -> bool:
    with pytest.raises(PeerError):
        verify_webhook([MAX.verify_key], pairs, body, NOW + later)
    return True


def test_another_key_is_nobody() -> None:
    assert is_forged(signed_by(MALLORY))
    assert verify_webhook([MAX.verify_key], signed_by(MAX), BODY, NOW).key == MAX.verify_key


def test_nobody_is_known_by_no_key() -> None:
    with pytest.raises(PeerError):
        verify_webhook([], signed_by(MAX), BODY, NOW)


def test_a_recording_is_stale_after_five_minutes() -> None:
    assert is_forged(signed_by(MAX), later=timedelta(minutes=5, seconds=1))


def test_a_recording_cannot_be_made_young_again() -> None:
    pairs = dict(signed_by(MAX)) | {b"webhook-timestamp": str(int(NOW.timestamp()) + 600).encode()}
    assert is_forged(list(pairs.items()), later=timedelta(minutes=10))


def test_a_recording_cannot_get_a_new_id() -> None:
    pairs = dict(signed_by(MAX)) | {b"webhook-id": b"m_2"}
    assert is_forged(list(pairs.items()))


def test_the_bounds_between_id_timestamp_and_body_cannot_be_shifted() -> None:
    seconds = str(int(NOW.timestamp())).encode()
    body = seconds + b"." + BODY
    assert is_forged([(b"webhook-id", b"m_1"), (b"webhook-timestamp", seconds), signed_by(MAX)[2]], body)
    assert is_forged([(b"webhook-id", b"m_1." + seconds), *signed_by(MAX)[1:]])


def test_a_body_written_anew_is_another_body() -> None:
    value = json.loads(BODY)
    for again in (
        json.dumps(value).encode(),
        json.dumps(value, ensure_ascii=False).encode(),
        json.dumps(value, separators=(",", ":")).encode(),
        BODY.replace("ö".encode(), "o\u0308".encode()),
        BODY.replace("ö".encode(), rb"\u00f6"),
        BODY + b"\n",
        b" " + BODY,
    ):
        assert again != BODY
        assert is_forged(signed_by(MAX), again)


def test_a_header_of_the_attacker_beside_the_right_one_is_refused() -> None:
    for name, value in signed_by(MALLORY):
        assert is_forged([*signed_by(MAX), (name, value)])
        assert is_forged([(name.title(), value), *signed_by(MAX)])


def test_a_webhook_for_another_governor_names_it_inside_what_is_signed() -> None:
    incoming = decode(BODY, "m_1")
    assert (incoming.from_fp, incoming.to_fp) == (MAX_FP, EVA_FP)
    other = BODY.replace(EVA_FP.encode(), MALLORY.verify_key.fingerprint.encode())
    assert is_forged(signed_by(MAX), other)


def test_a_receipt_is_no_webhook() -> None:
    """Eva receives what Mallory wrote and signs a receipt; that signature must not speak for her."""
    receipt = json.loads(sign_receipt(EVA, Receipt("m_1", "a" * 64, genesis(EVA_FP, MAX_FP), NOW)))
    raw = from_base64(receipt.pop("signature"))
    payload = to_json(receipt)
    assert accepts_in_context(EVA.verify_key, Context.RECEIPT, payload, raw)
    for body in (payload, Context.RECEIPT.value + payload, payload.partition(b".")[2], b""):
        pairs = [*signed_by(EVA, body)[:2], (b"webhook-signature", b"v1a," + base64.b64encode(raw))]
        with pytest.raises(PeerError):
            verify_webhook([EVA.verify_key], pairs, body, NOW)


def test_a_webhook_is_no_receipt() -> None:
    """Max may sign a webhook whose body is whatever Mallory likes; no receipt comes of it."""
    fields = {"id": "m_1", "sha256": "a" * 64, "head": "b" * 64, "at": "2026-12-01T12:00:00.000000Z"}
    for body in (to_json(fields), Context.RECEIPT.value + to_json(fields)):
        value = dict(signed_by(MAX, body))[b"webhook-signature"].decode()
        answer = to_json(fields | {"signature": value.removeprefix("v1a,")})
        with pytest.raises(TransportError):
            verify_receipt([MAX.verify_key], answer, "m_1", "a" * 64)


def test_no_document_of_one_context_is_one_of_another() -> None:
    payload = b"payload"
    for context in Context:
        raw = sign_in_context(MAX, context, payload)
        assert is_forged(with_signature(raw), payload)
        assert is_forged(with_signature(raw), context.value + payload)
        for other in set(Context) - {context}:
            assert not accepts_in_context(MAX.verify_key, other, payload, raw)


def test_the_old_key_cannot_prove_a_new_key() -> None:
    """Whoever stole the old key announces a key that is not his, such as Eva's."""
    proof = RotationProof(MAX_FP, EVA.verify_key, sample_certificate())
    data = rotate_data(MAX_FP, EVA, sample_certificate(), NOW + timedelta(days=1))
    data["proof"] = to_base64(sign_in_context(MAX, Context.ROTATION, proof.payload()))
    body = encode_control(
        WireType.ROTATE,
        data,
        from_fp=MAX_FP,
        to_fp=EVA_FP,
        seq=1,
        now=NOW,
        expires_at=NOW + timedelta(hours=1),
    )
    incoming = decode(body, "w_1")
    assert isinstance(incoming, IncomingRotate)
    assert not RotationProof(MAX_FP, incoming.new_key, incoming.new_certificate).accepts(incoming.proof)


def test_a_proof_for_one_certificate_is_none_for_another() -> None:
    data = rotate_data(MAX_FP, MALLORY, sample_certificate(), NOW)
    proof = from_base64(data["proof"])
    assert RotationProof(MAX_FP, MALLORY.verify_key, sample_certificate()).accepts(proof)
    assert not RotationProof(MAX_FP, MALLORY.verify_key, b"another").accepts(proof)
    assert not RotationProof(EVA_FP, MALLORY.verify_key, sample_certificate()).accepts(proof)


def test_an_offer_cannot_be_given_another_url_or_key() -> None:
    offer = Offer(
        "max-host",
        ("max",),
        "https://100.64.0.7",
        MAX.verify_key,
        sample_certificate(),
        NOW + timedelta(hours=1),
    )
    document = encode_offer(offer, MAX).split(".")[1]
    raw = base64.urlsafe_b64decode(document + "=" * (-len(document) % 4))
    signature = encode_offer(offer, MAX).split(".")[2]
    for old, new in (
        (b"100.64.0.7", b"100.64.0.8"),
        (MAX.verify_key.public().encode(), MALLORY.verify_key.public().encode()),
    ):
        assert old in raw
        word = base64.urlsafe_b64encode(raw.replace(old, new)).rstrip(b"=").decode()
        with pytest.raises(LocalError, match="altered"):
            decode_offer(f"bgpair1.{word}.{signature}", NOW)


def test_a_peer_cannot_speak_as_operator_or_governor() -> None:
    for name in ("operator", "governor", "human", "system"):
        for field in ("sender", "recipient"):
            body = encode_message(
                envelope(**{field: f"{name}@max-host"}), "hi", from_fp=MAX_FP, to_fp=EVA_FP, seq=1, now=NOW
            )
            with pytest.raises(WireError) as caught:
                decode(body, "m_1")
            assert caught.value.reason is WireReason.FIELD


def test_a_log_cannot_be_shortened_or_re_ordered_under_its_head() -> None:
    entries = [("m_1", "a" * 64), ("m_2", "b" * 64), ("m_3", "c" * 64)]

    def head(chosen: list[tuple[str, str]]) -> str:
        found = genesis(EVA_FP, MAX_FP)
        for webhook_id, sha256 in chosen:
            found = next_head(found, Direction.IN, webhook_id, sha256)
        return found

    others = [entries[:2], entries[1:], entries[::-1], [*entries, entries[0]], [entries[0], entries[2]]]
    assert head(entries) not in [head(other) for other in others]


@pytest.mark.parametrize("depth", [1_000, 60_000])
def test_a_deep_or_doubled_body_with_a_right_signature_is_a_plain_refusal(depth: int) -> None:
    for body in (b"[" * depth, b'{"a":' * depth, BODY[:-1] + b',"type":"stop"}'):
        assert verify_webhook([MAX.verify_key], signed_by(MAX, body), body, NOW).id == "m_1"
        with pytest.raises(WireError) as caught:
            decode(body, "m_1")
        assert caught.value.reason in {WireReason.MALFORMED, WireReason.TOO_LONG}
