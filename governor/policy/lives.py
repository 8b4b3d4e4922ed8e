"""The lives of messages as tables: which event leads from which state to which.

A pair that stands in no table means nothing: the caller changes nothing. Whether a link is open is
no part of a message's life; who picks, shows or wakes asks the switch.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from governor.message import InboundState, OutboundState

UNAUTHENTICATED_TRIES: Final = 3
"""How often the peer may answer 401 before a message is given up."""


class OutboundEvent(StrEnum):
    """What can happen to a message of ours."""

    SUBMITTED = "submitted"
    HELD_FOR_REVIEW = "held_for_review"
    RELEASED = "released"
    PICKED = "picked"  # a request to the peer begins
    RECEIPT_CAME = "receipt_came"  # 202 with a valid receipt
    CLOSED_AT_PEER = "closed_at_peer"  # 423
    TRANSPORT_FAILED = "transport_failed"  # no answer that counts: network, 5xx, bad receipt
    NOT_AUTHENTICATED = "not_authenticated"  # 401, the caller counts
    NOT_AUTHENTICATED_AGAIN = "not_authenticated_again"  # 401 for the third time
    REFUSED_BY_PEER = "refused_by_peer"  # 409, 413, 422
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REVOKED = "revoked"
    RESTARTED = "restarted"  # the governor


class InboundEvent(StrEnum):
    """What can happen to a message of a peer's."""

    ACCEPTED = "accepted"  # answered with 202
    PICKED = "picked"  # a reader starts
    READ = "read"  # and every check passed
    HELD_FOR_REVIEW = "held_for_review"
    RELEASED = "released"
    DROPPED = "dropped"  # failed check, dead reader, 60 s; or a reviewer said no
    EXPIRED = "expired"
    CANCELLED = "cancelled"  # by the peer
    REVOKED = "revoked"
    RESTARTED_FIRST = "restarted_first"  # the governor, during the first read of this message
    RESTARTED_AGAIN = "restarted_again"  # and once more
    ACKED = "acked"


_O, _OE = OutboundState, OutboundEvent
_I, _IE = InboundState, InboundEvent

OUTBOUND_STARTS: Final[Mapping[OutboundEvent, OutboundState]] = {
    _OE.SUBMITTED: _O.QUEUED,
    _OE.HELD_FOR_REVIEW: _O.HELD,
}
"""How a message of ours comes into being."""

OUTBOUND: Final[Mapping[tuple[OutboundState, OutboundEvent], OutboundState]] = {
    (_O.QUEUED, _OE.PICKED): _O.SENDING,
    (_O.QUEUED, _OE.EXPIRED): _O.EXPIRED,
    (_O.QUEUED, _OE.CANCELLED): _O.CANCELLED,
    (_O.QUEUED, _OE.REVOKED): _O.CANCELLED,
    (_O.HELD, _OE.RELEASED): _O.QUEUED,
    (_O.HELD, _OE.EXPIRED): _O.EXPIRED,
    (_O.HELD, _OE.CANCELLED): _O.CANCELLED,
    (_O.HELD, _OE.REVOKED): _O.CANCELLED,
    (_O.SENDING, _OE.RECEIPT_CAME): _O.ACCEPTED,
    (_O.SENDING, _OE.CLOSED_AT_PEER): _O.QUEUED,
    (_O.SENDING, _OE.TRANSPORT_FAILED): _O.QUEUED,
    (_O.SENDING, _OE.NOT_AUTHENTICATED): _O.QUEUED,
    (_O.SENDING, _OE.NOT_AUTHENTICATED_AGAIN): _O.REFUSED,
    (_O.SENDING, _OE.REFUSED_BY_PEER): _O.REFUSED,
    (_O.SENDING, _OE.EXPIRED): _O.UNCONFIRMED,
    (_O.SENDING, _OE.CANCELLED): _O.UNCONFIRMED,
    (_O.SENDING, _OE.REVOKED): _O.UNCONFIRMED,
    (_O.SENDING, _OE.RESTARTED): _O.QUEUED,
    # Given up while a request was under way, whose answer then settles what became of it.
    (_O.UNCONFIRMED, _OE.RECEIPT_CAME): _O.ACCEPTED,
    (_O.UNCONFIRMED, _OE.REFUSED_BY_PEER): _O.REFUSED,
}
"""The life of a message of ours of which nothing ever left."""

OUTBOUND_LEFT: Final[Mapping[tuple[OutboundState, OutboundEvent], OutboundState]] = {
    (_O.QUEUED, _OE.EXPIRED): _O.UNCONFIRMED,
    (_O.QUEUED, _OE.CANCELLED): _O.UNCONFIRMED,
    (_O.QUEUED, _OE.REVOKED): _O.UNCONFIRMED,
}
"""Where it differs once bytes of the message have left: the peer may have it."""

INBOUND_STARTS: Final[Mapping[InboundEvent, InboundState]] = {_IE.ACCEPTED: _I.RECEIVED}
"""How a message of a peer's comes into being."""

INBOUND: Final[Mapping[tuple[InboundState, InboundEvent], InboundState]] = {
    (_I.RECEIVED, _IE.PICKED): _I.READING,
    (_I.RECEIVED, _IE.EXPIRED): _I.EXPIRED,
    (_I.RECEIVED, _IE.CANCELLED): _I.CANCELLED,
    (_I.RECEIVED, _IE.REVOKED): _I.DROPPED,
    (_I.READING, _IE.READ): _I.READY,
    (_I.READING, _IE.HELD_FOR_REVIEW): _I.HELD,
    (_I.READING, _IE.DROPPED): _I.DROPPED,
    (_I.READING, _IE.EXPIRED): _I.EXPIRED,
    (_I.READING, _IE.CANCELLED): _I.CANCELLED,
    (_I.READING, _IE.REVOKED): _I.DROPPED,
    (_I.READING, _IE.RESTARTED_FIRST): _I.RECEIVED,
    # It may be this very message that kills the governor.
    (_I.READING, _IE.RESTARTED_AGAIN): _I.DROPPED,
    (_I.HELD, _IE.RELEASED): _I.READY,
    (_I.HELD, _IE.DROPPED): _I.DROPPED,
    (_I.HELD, _IE.EXPIRED): _I.EXPIRED,
    (_I.HELD, _IE.CANCELLED): _I.CANCELLED,
    (_I.HELD, _IE.REVOKED): _I.DROPPED,
    (_I.READY, _IE.ACKED): _I.ACKED,
    (_I.READY, _IE.EXPIRED): _I.EXPIRED,
    # It stays in the inbox and is shown as withdrawn: the agent may have seen it already.
    (_I.READY, _IE.CANCELLED): _I.READY,
    (_I.READY, _IE.REVOKED): _I.DROPPED,
}
"""The life of a message of a peer's."""

OUTBOUND_OPEN: Final = frozenset({_O.QUEUED, _O.HELD, _O.SENDING})
"""Unfinished: these keep their place in the allowance at a GO."""

OUTBOUND_FINAL: Final = frozenset(_O) - OUTBOUND_OPEN
"""The ends. Only `unconfirmed` may still be settled, by the peer's word."""

INBOUND_OPEN: Final = frozenset({_I.RECEIVED, _I.READING, _I.HELD, _I.READY})
"""Unfinished: these keep their place in the allowance at a GO."""

INBOUND_FINAL: Final = frozenset(_I) - INBOUND_OPEN
"""The ends."""


def next_outbound(state: OutboundState, event: OutboundEvent, *, left: bool) -> OutboundState | None:
    """Return the state that follows, or None if the event means nothing in this one.

    `left` says that bytes of the message ever went towards the peer, in this attempt or an earlier one.
    """
    key = (state, event)
    return OUTBOUND_LEFT.get(key, OUTBOUND.get(key)) if left else OUTBOUND.get(key)


def next_inbound(state: InboundState, event: InboundEvent) -> InboundState | None:
    """Return the state that follows, or None if the event means nothing in this one."""
    return INBOUND.get((state, event))
