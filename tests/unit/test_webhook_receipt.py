"""receipt, wire_log: a 202 counts only with a signed receipt for this very webhook."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.errors import TransportError
from governor.message import Direction
from governor.webhook.receipt import RECEIPT_LIMIT, Receipt, sign_receipt, verify_receipt
from governor.webhook.signing import VerifyKey
from governor.webhook.wire_log import genesis, next_head
from tests.webhook_samples import EVA, EVA_FP, MALLORY, MAX, MAX_FP, NOW

HASH = hashlib.sha256(b"body").hexdigest()
HEAD = genesis(EVA_FP, MAX_FP)
RECEIPT = Receipt("m_1", HASH, HEAD, NOW)
KEYS = [MAX.verify_key, EVA.verify_key]


def is_bad(body: bytes, webhook_id: str = "m_1", sha256: str = HASH, keys: list[VerifyKey] = KEYS) -> bool:
    with pytest.raises(TransportError, match="bad receipt"):
        verify_receipt(keys, body, webhook_id, sha256)
    return True


def test_a_receipt_is_verified() -> None:
    body = sign_receipt(EVA, RECEIPT)
    assert verify_receipt(KEYS, body, "m_1", HASH) == RECEIPT
    assert len(body) < RECEIPT_LIMIT / 2


def test_a_receipt_for_another_webhook_is_bad() -> None:
    body = sign_receipt(EVA, RECEIPT)
    assert is_bad(body, webhook_id="m_2")
    assert is_bad(body, sha256=hashlib.sha256(b"other").hexdigest())
    assert is_bad(body, keys=[MALLORY.verify_key])
    assert is_bad(body, keys=[])


def test_no_bit_of_a_receipt_can_change() -> None:
    body = sign_receipt(EVA, RECEIPT)
    for place in range(len(body)):
        for bit in range(8):
            assert is_bad(body[:place] + bytes([body[place] ^ 1 << bit]) + body[place + 1 :])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"x" * (RECEIPT_LIMIT + 1),
        sign_receipt(EVA, RECEIPT) + b" ",
        b" " + sign_receipt(EVA, RECEIPT),
        sign_receipt(EVA, RECEIPT).replace(b":", b": ", 1),
        sign_receipt(EVA, RECEIPT).replace(b"}", b',"more":1}'),
        sign_receipt(EVA, RECEIPT).replace(b'"id":"m_1"', b'"id":1'),
        sign_receipt(EVA, RECEIPT).replace(b'"at":"', b'"at":1,"at":"'),
        sign_receipt(EVA, RECEIPT).replace(b'"signature":"', b'"signature":["').replace(b'"}', b'"]}'),
    ],
)
def test_other_documents_are_bad(body: bytes) -> None:
    assert is_bad(body)


@pytest.mark.parametrize("head", ["", "g" * 64, 5, None])
def test_a_head_outside_its_grammar_is_bad_even_if_signed(head: object) -> None:
    assert is_bad(sign_receipt(EVA, Receipt("m_1", HASH, head, NOW)))  # type: ignore[arg-type]


def test_the_wire_log_names_the_host_the_peer_and_the_order() -> None:
    assert genesis(MAX_FP, EVA_FP) != genesis(EVA_FP, MAX_FP)
    first = next_head(HEAD, Direction.IN, "m_1", HASH)
    assert first == next_head(HEAD, Direction.IN, "m_1", HASH)
    expected = f"{HEAD}\nin\nm_1\n{HASH}".encode()
    assert first == hashlib.sha256(b"bridge-governor/wire-log/1\n" + expected).hexdigest()


@given(st.sampled_from(Direction), st.sampled_from(Direction), st.sampled_from(["m_1", "m_2"]), st.booleans())
def test_every_part_of_an_entry_is_in_the_head(
    one: Direction, two: Direction, webhook_id: str, same: bool
) -> None:
    sha256 = HASH if same else hashlib.sha256(b"other").hexdigest()
    equal = (one, "m_1", HASH) == (two, webhook_id, sha256)
    assert (next_head(HEAD, one, "m_1", HASH) == next_head(HEAD, two, webhook_id, sha256)) is equal


def test_the_order_of_entries_is_in_the_head() -> None:
    def after(*ids: str) -> str:
        head = HEAD
        for webhook_id in ids:
            head = next_head(head, Direction.IN, webhook_id, HASH)
        return head

    assert after("m_1", "m_2") != after("m_2", "m_1")
    assert after("m_1") != after("m_1", "m_1")
