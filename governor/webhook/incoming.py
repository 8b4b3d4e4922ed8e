"""What a webhook can say: one frozen class per type, and why an authentic body is refused."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from governor.errors import GovernorError
from governor.message import Envelope, UntrustedText
from governor.webhook.signing import VerifyKey


class WireType(StrEnum):
    """What a webhook is."""

    MESSAGE = "message"
    STOP = "stop"
    HELLO = "hello"
    CANCEL = "cancel"
    ROTATE = "rotate"


class WireReason(StrEnum):
    """Why an authentic body is refused; the peer gets this word and no other."""

    MALFORMED = "malformed"  # not strict JSON, or a key missing or unknown
    VERSION = "version"  # a wire version we do not speak
    TYPE = "type"  # no such type
    FIELD = "field"  # a value outside its grammar
    TEXT = "text"  # empty, or not valid Unicode
    TOO_LONG = "too_long"
    EXPIRY = "expiry"  # expires before it was made, or too late
    SENDER = "sender"  # no agent of the peer that sent it
    RECIPIENT = "recipient"  # no agent of ours
    REPLY = "reply"  # answers what was not asked, or enters a conversation of others


class WireError(GovernorError):
    """The body of a webhook is not what both sides agreed on."""

    code = "wire"
    status = 422

    def __init__(self, reason: WireReason) -> None:
        super().__init__(f"The body of a webhook was refused: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What every webhook says inside its signed body.

    `from_fp` and `to_fp` are key fingerprints: the caller checks that they are the key that signed
    and a key of ours. `seq` counts what the sender sent us, for reconciling only. `at` is when the
    body was made, `expires_at` when it is void, both by the sender's clock.
    """

    from_fp: str
    to_fp: str
    seq: int
    at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage(Incoming):
    """A message for one of our agents; names, hops and lineage are the peer's claim."""

    envelope: Envelope
    text: UntrustedText


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingStop(Incoming):
    """The peer's humans said STOP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingHello(Incoming):
    """The peer's side of the link is open (or not): a hint to retry and nothing more."""

    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCancel(Incoming):
    """The sender takes a message back."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRotate(Incoming):
    """The peer changes its key and certificate; `proof` is the new key's signature over that."""

    new_key: VerifyKey
    new_certificate: bytes
    overlap_until: datetime
    proof: bytes
