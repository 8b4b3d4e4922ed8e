"""The words of the domain: names, ids, the two kinds of text, states.

Everything here is a closed grammar or a frozen value. A peer's string that fits none of the
grammars is refused at the border (promise P1), so nothing further in has to wonder.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

UntrustedText = NewType("UntrustedText", str)
"""Text as a peer sent it: before the reader. Never shown to an agent."""

CleanText = NewType("CleanText", str)
"""Text after the reader and its checks. `governor.inbound.finish` is its only maker."""

TEXT_LIMIT = 10_000
"""Longest text of a message, in Unicode code points."""

HOPS = 4
"""How many forwards a message may go through."""

RESERVED_NAMES = frozenset({"operator", "governor", "human", "system"})

_NAME = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_ADDRESS = re.compile(r"[a-z0-9-]{1,32}@[a-z0-9-]{1,32}", re.ASCII)
_FINGERPRINT = re.compile(r"[0-9a-f]{64}", re.ASCII)


def is_name(value: str) -> bool:
    """Tell whether value is a permitted name of an agent or a governor."""
    return _NAME.fullmatch(value) is not None and value not in RESERVED_NAMES


def is_id(value: str) -> bool:
    """Tell whether value is a permitted id of a message, conversation or webhook."""
    return _ID.fullmatch(value) is not None


def is_address(value: str) -> bool:
    """Tell whether value is a full name such as `eva@eva-host`."""
    return _ADDRESS.fullmatch(value) is not None


def is_fingerprint(value: str) -> bool:
    """Tell whether value is a SHA-256 fingerprint in lower-case hex."""
    return _FINGERPRINT.fullmatch(value) is not None


class Direction(StrEnum):
    """Which way a message crosses a link, seen from this host."""

    IN = "in"
    OUT = "out"


class LinkDirection(StrEnum):
    """Which directions a link is open to, by this host's settings."""

    BOTH = "both"
    IN = "in"
    OUT = "out"


class Switch(StrEnum):
    """A link's state; all but `running` are closed."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    REVOKED = "revoked"


class PauseReason(StrEnum):
    """Why a link is paused."""

    AWAITING_FIRST_GO = "awaiting_first_go"
    UNWATCHED = "unwatched"  # five minutes without human activity
    SLEPT = "slept"
    CLOCK_WENT_BACK = "clock_went_back"
    KEY_CHANGED = "key_changed"
    READER_DOWN = "reader_down"
    RIVAL_POLLER = "rival_poller"  # Telegram answered 409
    UNSEEN = "unseen"  # the mirror could not be posted, or Telegram not polled
    SETTINGS_LOOSENED = "settings_loosened"
    STOP_FILE = "stop_file"  # a file named STOP lies in the home
    CANARY_TOUCHED = "canary_touched"  # an agent of ours offered planted bait to a peer


class Refusal(StrEnum):
    """Why policy said no; the first that applies is the reason."""

    UNKNOWN_SENDER = "unknown_sender"
    UNKNOWN_RECIPIENT = "unknown_recipient"
    SELF_SEND = "self_send"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    DIRECTION = "direction"
    REVOKED = "revoked"
    STOPPED = "stopped"
    PAUSED = "paused"
    UNWATCHED = "unwatched"
    LIMIT = "limit"
    HOPS = "hops"
    NOT_YOURS = "not_yours"  # reply to, or conversation of, somebody else
    SECRET = "secret"  # noqa: S105 - a reason, not a secret


class OutboundState(StrEnum):
    """Life of a message of ours."""

    QUEUED = "queued"
    HELD = "held"
    SENDING = "sending"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNCONFIRMED = "unconfirmed"


class InboundState(StrEnum):
    """Life of a message of a peer's."""

    RECEIVED = "received"
    READING = "reading"
    HELD = "held"
    READY = "ready"
    ACKED = "acked"
    DROPPED = "dropped"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What travels with a text: who, to whom, in which conversation, how far.

    `sender` and `recipient` are addresses (`max@max-host`). `lineage` names the agents the
    content went through, oldest first.
    """

    id: str
    sender: str
    recipient: str
    conversation: str
    in_reply_to: str | None
    hops: int
    lineage: tuple[str, ...]
    expires_at: datetime
