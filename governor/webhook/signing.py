"""Ed25519 keys and what they sign: webhooks (Standard Webhooks, `v1a`) and documents of ours.

Specification: the Standard Webhooks document, "Signature scheme", and RFC 8032. The signed content
of a webhook is `id.timestamp.body` over the raw bytes. The specification leaves the form of keys
open; here `whpk_` is followed by the base64 of the 32-byte public key, `whsk_` by the base64 of the
32-byte seed.

Why no signature of one kind passes for another: what is signed in a Context begins with
`bridge-governor`, then a hyphen; a webhook's content begins with an id out of letters, digits and
underscores, then a full stop. So the first character outside that alphabet tells the two apart. A
Context ends at its only newline, so none is the beginning of another.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from governor.errors import ConfigError, PeerError
from governor.message import is_id
from governor.webhook.encodings import SpellingError, from_base64, to_base64

TOLERANCE: Final = timedelta(minutes=5)
"""How far a webhook's timestamp may be from our clock, either way."""

SIGNATURES_LIMIT: Final = 4
"""Most signatures in one header; an overlap of keys needs two."""

KEY_LENGTH: Final = 32
SIGNATURE_LENGTH: Final = 64

# Eight points of the curve have an order of at most 8. As a public key each accepts signatures that
# can be made up for any text, so whoever offers one can deny everything and be played by anybody.
_P: Final = 2**255 - 19
_Y: Final = 2**255 - 1  # the bits of a public key that are its y (RFC 8032, section 5.1.2)
_Y8: Final = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER: Final = frozenset({0, 1, _P - 1, _Y8, _P - _Y8})

_VERSION: Final = "v1a,"
_PUBLIC: Final = "whpk_"
_SECRET: Final = "whsk_"  # noqa: S105 - a prefix, not a secret
_ID: Final = "webhook-id"
_TIMESTAMP: Final = "webhook-timestamp"
_SIGNATURE: Final = "webhook-signature"
_SECONDS = re.compile(r"[1-9][0-9]{0,10}", re.ASCII)


class Context(Enum):
    """What a document is that we sign, other than a webhook."""

    RECEIPT = b"bridge-governor/receipt/1\n"
    ROTATION = b"bridge-governor/rotation/1\n"
    PAIRING = b"bridge-governor/pairing/1\n"


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """A public key: its 32 raw bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_LENGTH:
            raise SpellingError("a public key has 32 bytes")
        if (int.from_bytes(self.raw, "little") & _Y) % _P in _SMALL_ORDER:
            raise SpellingError("a key of small order accepts signatures that nobody made")

    @classmethod
    def from_public(cls, text: str) -> Self:
        """Read `whpk_...`; raise SpellingError if it is anything else."""
        return cls(_key_bytes(_PUBLIC, text))

    def public(self) -> str:
        """Return the key as `whpk_` and base64."""
        return _PUBLIC + to_base64(self.raw)

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the raw bytes in lower-case hex."""
        return hashlib.sha256(self.raw).hexdigest()

    def accepts(self, signature: bytes, signed: bytes) -> bool:
        """Tell whether this key made the signature over these bytes."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, signed)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key: its 32-byte seed, which no repr shows."""

    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.seed) != KEY_LENGTH:
            raise ConfigError("A signing key has 32 bytes; make a new one with: governor rotate")

    @classmethod
    def from_secret(cls, text: str) -> Self:
        """Read `whsk_...` as `secret` wrote it; raise ConfigError if it is anything else."""
        try:
            return cls(_key_bytes(_SECRET, text))
        except SpellingError:  # its text could hold a part of the key
            message = (
                "The signing key is damaged: `whsk_` and 44 characters expected. Restore it, or pair anew."
            )
            raise ConfigError(message) from None

    def secret(self) -> str:
        """Return the key as `whsk_` and base64, for its 0600 file."""
        return _SECRET + to_base64(self.seed)

    @property
    def verify_key(self) -> VerifyKey:
        """Return the public half."""
        return VerifyKey(Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw())

    def sign(self, signed: bytes) -> bytes:
        """Return the 64-byte signature over these bytes."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(signed)


@dataclass(frozen=True, slots=True)
class VerifiedWebhook:
    """Headers that hold: the id, when its sender says it was sent, and the key that signed it."""

    id: str
    timestamp: datetime
    key: VerifyKey


def sign_webhook(key: SigningKey, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return one signature, `v1a,<base64>`, for the `webhook-signature` header; timestamp in Unix seconds."""
    if not is_id(webhook_id):
        raise ValueError("an id with other characters could shift the bounds of what is signed")
    return _VERSION + to_base64(key.sign(_content(webhook_id, str(timestamp), body)))


def signed_headers(keys: Iterable[SigningKey], webhook_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the three headers of a webhook sent now, signed by each of the keys."""
    timestamp = int(now.timestamp())
    signatures = [sign_webhook(key, webhook_id, timestamp, body) for key in keys]
    return {_ID: webhook_id, _TIMESTAMP: str(timestamp), _SIGNATURE: " ".join(signatures)}


def verify_webhook(
    keys: Iterable[VerifyKey],
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
    now: datetime,
    tolerance: timedelta = TOLERANCE,
) -> VerifiedWebhook:
    """Return what the headers prove, or raise PeerError, whatever is wrong.

    `headers` are the raw pairs of the request, because a mapping would hide that one came twice.
    One valid signature by one of the keys is enough: during an overlap a peer signs with two.
    """
    values = _only(headers)
    webhook_id, seconds = values[_ID], values[_TIMESTAMP]
    if not is_id(webhook_id):
        raise PeerError("id")
    if _SECONDS.fullmatch(seconds) is None:
        raise PeerError("timestamp")
    timestamp = datetime.fromtimestamp(int(seconds), UTC)
    if abs(now - timestamp) > tolerance:
        raise PeerError("stale" if timestamp < now else "future")
    signatures = _signatures(values[_SIGNATURE])
    content = _content(webhook_id, seconds, body)
    for key in keys:
        if any(key.accepts(signature, content) for signature in signatures):
            return VerifiedWebhook(webhook_id, timestamp, key)
    raise PeerError("signature")


def sign_in_context(key: SigningKey, context: Context, payload: bytes) -> bytes:
    """Return the signature over a document of ours, of no use in any other context."""
    return key.sign(context.value + payload)


def accepts_in_context(key: VerifyKey, context: Context, payload: bytes, signature: bytes) -> bool:
    """Tell whether the key signed this document in this context."""
    return key.accepts(signature, context.value + payload)


def _key_bytes(prefix: str, text: str) -> bytes:
    if not text.startswith(prefix):
        raise SpellingError(f"a key of this kind begins with {prefix}")
    return from_base64(text.removeprefix(prefix), KEY_LENGTH)


def _content(webhook_id: str, seconds: str, body: bytes) -> bytes:
    return f"{webhook_id}.{seconds}.".encode("ascii") + body


def _only(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        if name not in (_ID, _TIMESTAMP, _SIGNATURE):
            continue
        if name in values:
            raise PeerError(f"{name} twice")
        values[name] = raw_value.decode("latin-1")
    for name in (_ID, _TIMESTAMP, _SIGNATURE):
        if name not in values:
            raise PeerError(f"no {name}")
    return values


def _signatures(value: str) -> list[bytes]:
    parts = value.split(" ", SIGNATURES_LIMIT)
    if len(parts) > SIGNATURES_LIMIT:
        raise PeerError("too many signatures")
    if not all(part.startswith(_VERSION) for part in parts):
        raise PeerError("signature version")
    try:
        return [from_base64(part.removeprefix(_VERSION), SIGNATURE_LENGTH) for part in parts]
    except SpellingError as error:
        raise PeerError("signature form") from error
