"""Two governors, their keys and a message between them, for the tests of what crosses the wire."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from governor.message import Envelope
from governor.webhook.certificates import make_certificate, new_tls_key, tls_pem
from governor.webhook.signing import SigningKey

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
MAX = SigningKey(b"m" * 32)
EVA = SigningKey(b"e" * 32)
MALLORY = SigningKey(b"x" * 32)
MAX_FP, EVA_FP = MAX.verify_key.fingerprint, EVA.verify_key.fingerprint


def envelope(**changes: object) -> Envelope:
    fields: dict[str, object] = {
        "id": "m_1",
        "sender": "max@max-host",
        "recipient": "eva@eva-host",
        "conversation": "c_1",
        "in_reply_to": None,
        "hops": 4,
        "lineage": ("max@max-host",),
        "expires_at": NOW + timedelta(minutes=10),
    }
    return Envelope(**(fields | changes))  # type: ignore[arg-type]


@cache
def sample_certificate() -> bytes:
    return make_certificate(new_tls_key(), "max-host", ["127.0.0.1"], NOW, timedelta(days=365))


def write_pair(path: Path, name: str, *, now: datetime | None = None, days: int = 365) -> bytes:
    """Write a new TLS key and certificate to path; return the certificate's DER."""
    key = new_tls_key()
    der = make_certificate(key, name, ["127.0.0.1", "::1"], now or datetime.now(UTC), timedelta(days=days))
    path.write_bytes(tls_pem(key, der))
    return der
