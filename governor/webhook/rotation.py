"""The change of a key: the webhook is signed by the old key, the proof inside it by the new one.

Without the proof, a peer could announce a key that is somebody else's. The proof names both keys
and the certificate, so it is good for this one change.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from governor.webhook.certificates import certificate_fingerprint
from governor.webhook.encodings import to_base64, to_instant
from governor.webhook.signing import Context, SigningKey, VerifyKey, accepts_in_context, sign_in_context

OVERLAP_LIMIT: Final = timedelta(days=7)
"""Longest time for which two keys of a peer are valid."""


@dataclass(frozen=True, slots=True)
class RotationProof:
    """What the new key signs: from which key (its fingerprint) to which, with which certificate (DER)."""

    old_fp: str
    new_key: VerifyKey
    new_certificate: bytes

    def payload(self) -> bytes:
        """Return the signed bytes: three fingerprints of fixed length, one a line."""
        lines = (self.old_fp, self.new_key.fingerprint, certificate_fingerprint(self.new_certificate))
        return "\n".join(lines).encode("ascii")

    def accepts(self, signature: bytes) -> bool:
        """Tell whether the new key signed this change."""
        return accepts_in_context(self.new_key, Context.ROTATION, self.payload(), signature)


def overlap_end(received_at: datetime, at: datetime, overlap_until: datetime) -> datetime:
    """Return until when the old key is good by our clock; `at` and `overlap_until` are the sender's."""
    return received_at + min(max(overlap_until - at, timedelta(0)), OVERLAP_LIMIT)


def rotate_data(
    old_fp: str, new_key: SigningKey, new_certificate: bytes, overlap_until: datetime
) -> dict[str, Any]:
    """Return the data of the `rotate` webhook, proof included."""
    proof = RotationProof(old_fp, new_key.verify_key, new_certificate)
    return {
        "new_public_key": proof.new_key.public(),
        "new_certificate": to_base64(new_certificate),
        "overlap_until": to_instant(overlap_until),
        "proof": to_base64(sign_in_context(new_key, Context.ROTATION, proof.payload())),
    }
