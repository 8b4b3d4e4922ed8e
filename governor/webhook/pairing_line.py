"""The line by which two governors get to know each other: what `governor pair offer` prints.

`bgpair1.` and two words of base64url: a JSON document and the offered key's signature over it. The
signature finds errors of copying and proves that the offerer holds the key; that it is the right
governor's key only the operators can tell, by comparing the phrases.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from governor.errors import LocalError
from governor.message import RESERVED_NAMES, is_name
from governor.webhook.certificates import certificate_fingerprint, check_certificate
from governor.webhook.encodings import (
    SpellingError,
    from_base64,
    from_base64url,
    from_instant,
    from_json,
    from_object,
    to_base64,
    to_base64url,
    to_instant,
    to_json,
)
from governor.webhook.peer_url import read_peer_url
from governor.webhook.signing import (
    SIGNATURE_LENGTH,
    Context,
    SigningKey,
    VerifyKey,
    accepts_in_context,
    sign_in_context,
)

PREFIX: Final = "bgpair1."
LINE_LIMIT: Final = 12_288
AGENTS_LIMIT: Final = 64

_NAMES: Final = ("name", "agents", "url", "public_key", "certificate", "public_tls", "expires_at")
_AGAIN: Final = "Copy it again, from bgpair1 to the end."
_ALTERED: Final = f"The pairing line was altered on its way. {_AGAIN}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a governor says of itself.

    `certificate` (DER) is the one it shows as a TLS client, and at `url` too unless `public_tls`:
    then a proxy there (such as Tailscale Serve) shows a certificate of a public authority.
    """

    name: str
    agents: tuple[str, ...]
    url: str
    public_key: VerifyKey
    certificate: bytes
    expires_at: datetime
    public_tls: bool = False

    @property
    def certificate_fingerprint(self) -> str:
        """Return the SHA-256 of the certificate in lower-case hex."""
        return certificate_fingerprint(self.certificate)


def encode_offer(offer: Offer, key: SigningKey) -> str:
    """Return the line, signed by the offered key."""
    document = to_json(
        {
            "name": offer.name,
            "agents": list(offer.agents),
            "url": offer.url,
            "public_key": offer.public_key.public(),
            "certificate": to_base64(offer.certificate),
            "public_tls": offer.public_tls,
            "expires_at": to_instant(offer.expires_at),
        }
    )
    signature = sign_in_context(key, Context.PAIRING, document)
    return f"{PREFIX}{to_base64url(document)}.{to_base64url(signature)}"


def decode_offer(line: str, now: datetime, *, allow_loopback: bool = False) -> Offer:
    """Return the offer of a line, or raise LocalError that says what is wrong with it.

    White space inside is what a terminal or a mail program put there, and is dropped.
    """
    word = "".join(line.split())
    if not word.startswith(PREFIX):
        raise LocalError(
            f"That is not a pairing line: it begins with {PREFIX} and comes from: governor pair offer"
        )
    if len(word) > LINE_LIMIT:
        raise LocalError(f"The pairing line is too long. {_AGAIN}")
    offer = _read(_document(word))
    if not (is_name(offer.name) and len(offer.agents) <= AGENTS_LIMIT and all(map(is_name, offer.agents))):
        taken = ", ".join(sorted(RESERVED_NAMES))
        raise LocalError(
            f"The line has a name that is not permitted ([a-z0-9-], up to 32, and not: {taken})."
        )
    if len(set(offer.agents)) != len(offer.agents):
        raise LocalError("The line names an agent twice. Ask for a new line.")
    if offer.expires_at <= now:
        raise LocalError("The pairing line has expired. Ask for a new one: governor pair offer")
    read_peer_url(offer.url, allow_loopback=allow_loopback)
    check_certificate(offer.certificate, now)
    return offer


def _document(word: str) -> bytes:
    """Return the signed document, its signature checked."""
    document, _, signature = word.removeprefix(PREFIX).partition(".")
    if len(signature) < len(to_base64url(bytes(SIGNATURE_LENGTH))):
        raise LocalError(f"The pairing line was cut off. {_AGAIN}")
    try:
        signed, raw = from_base64url(document), from_base64url(signature)
        key = VerifyKey.from_public(from_json(signed)["public_key"])
    except (SpellingError, KeyError, TypeError, AttributeError) as error:
        raise LocalError(_ALTERED) from error
    if not accepts_in_context(key, Context.PAIRING, signed, raw):
        raise LocalError(_ALTERED)
    return signed


def _read(document: bytes) -> Offer:
    """Return the offer of a document whose signature holds, the types of its fields checked."""
    try:
        found = from_object(from_json(document), _NAMES)
        _typed(found)
        return Offer(
            name=found["name"],
            agents=tuple(found["agents"]),
            url=found["url"],
            public_key=VerifyKey.from_public(found["public_key"]),
            certificate=from_base64(found["certificate"]),
            expires_at=from_instant(found["expires_at"]),
            public_tls=found["public_tls"],
        )
    except SpellingError as error:
        raise LocalError(
            "The pairing line is of another version. Use the same bridge-governor on both sides."
        ) from error


def _typed(found: dict[str, Any]) -> None:
    texts = ("name", "url", "certificate", "expires_at")
    agents = found["agents"]
    if not (
        all(isinstance(found[name], str) for name in texts)
        and isinstance(agents, list)
        and all(isinstance(agent, str) for agent in agents)
        and isinstance(found["public_tls"], bool)
    ):
        raise SpellingError("a value of the wrong type")
