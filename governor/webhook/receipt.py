"""The signed receipt in the answer 202: what the peer's governor took, and where its wire log stood."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from governor.errors import TransportError
from governor.message import is_fingerprint
from governor.webhook.encodings import (
    SpellingError,
    from_base64,
    from_instant,
    from_json,
    from_object,
    to_base64,
    to_instant,
    to_json,
)
from governor.webhook.signing import Context, SigningKey, VerifyKey, accepts_in_context, sign_in_context

RECEIPT_LIMIT = 1_024
"""Longest receipt in bytes; one of ours has about 400."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The webhook's id, the SHA-256 of its body, the new head of the wire log, when it was taken."""

    webhook_id: str
    sha256: str
    head: str
    at: datetime


def sign_receipt(key: SigningKey, receipt: Receipt) -> bytes:
    """Return the body of the answer 202."""
    return _document(receipt, sign_in_context(key, Context.RECEIPT, to_json(_fields(receipt))))


def verify_receipt(keys: Iterable[VerifyKey], body: bytes, webhook_id: str, sha256: str) -> Receipt:
    """Return the receipt for exactly this webhook, or raise TransportError: nothing is proven then.

    The document is written anew from what was read and must come out the same, so no other
    spelling of it is taken.
    """
    bad = TransportError("The peer's governor answered with a bad receipt; the message is tried again.")
    if len(body) > RECEIPT_LIMIT:
        raise bad
    try:
        found = from_object(from_json(body), ("at", "head", "id", "sha256", "signature"))
        receipt = Receipt(found["id"], found["sha256"], found["head"], from_instant(found["at"]))
        signature = from_base64(found["signature"])
        well_formed = is_fingerprint(receipt.head)
    except (SpellingError, TypeError) as error:  # TypeError: a number where a string belongs
        raise bad from error
    same = (receipt.webhook_id, receipt.sha256) == (webhook_id, sha256)
    if not (well_formed and same and _document(receipt, signature) == body):
        raise bad
    payload = to_json(_fields(receipt))
    if not any(accepts_in_context(key, Context.RECEIPT, payload, signature) for key in keys):
        raise bad
    return receipt


def _fields(receipt: Receipt) -> dict[str, Any]:
    return {
        "id": receipt.webhook_id,
        "sha256": receipt.sha256,
        "head": receipt.head,
        "at": to_instant(receipt.at),
    }


def _document(receipt: Receipt, signature: bytes) -> bytes:
    return to_json(_fields(receipt) | {"signature": to_base64(signature)})
