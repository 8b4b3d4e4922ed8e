"""What a peer's answer means for the webhook that was sent: one table, pure.

Classes: 202 with a valid receipt is acceptance; 423 waits for the peer's GO; 401 is tried three
times; 409, 413 and 422 are final; everything else is temporary.
"""

import json
from dataclasses import dataclass
from datetime import timedelta

from governor.policy.lives import OutboundEvent
from governor.webhook.signing import TOLERANCE

CLOSED_RETRY = timedelta(seconds=30)
BACKOFF_FIRST = timedelta(seconds=1)
BACKOFF_MOST = timedelta(seconds=30)

_EVENT_OF_STATUS: dict[int, OutboundEvent] = {
    401: OutboundEvent.NOT_AUTHENTICATED,
    409: OutboundEvent.REFUSED_BY_PEER,
    413: OutboundEvent.REFUSED_BY_PEER,
    422: OutboundEvent.REFUSED_BY_PEER,
    423: OutboundEvent.CLOSED_AT_PEER,
}

_REASON_OF_STATUS: dict[int, str] = {
    401: "peer_not_authenticated",
    409: "peer_id_conflict",
    413: "peer_too_large",
    423: "peer_closed",
    503: "peer_busy",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended. `reason` fits a closed grammar; `receipt` only with acceptance.

    `left` is False when no byte of this attempt can have reached the peer.
    """

    event: OutboundEvent
    reason: str | None = None
    retry_after: timedelta | None = None
    receipt: str | None = None
    left: bool = True


CLOSED_HERE = Outcome(OutboundEvent.TRANSPORT_FAILED, "closed_here", left=False)
"""The link closed between picking the message and beginning its request."""


def outcome_of(
    status: int,
    body: bytes,
    retry_after: timedelta | None,
    reasons: frozenset[str],
    *,
    skew: timedelta = timedelta(0),
) -> Outcome:
    """Classify an answer that is not a 202 (a 202 needs its receipt checked).

    `reasons` are the reasons a 422 may carry; any other is called `peer_refused`. `skew` is how far
    the peer's clock is from ours: a 401 may mean no more than that.
    """
    event = _EVENT_OF_STATUS.get(status, OutboundEvent.TRANSPORT_FAILED)
    reason = _REASON_OF_STATUS.get(status, f"peer_status_{status}")
    if status == 422:  # noqa: PLR2004 - RFC 9110
        reason = _named_reason(body, reasons)
    if event is OutboundEvent.NOT_AUTHENTICATED and abs(skew) > TOLERANCE:
        reason = "peer_clock_differs"
    return Outcome(event, reason, retry_after)


def _named_reason(body: bytes, reasons: frozenset[str]) -> str:
    try:
        reason = json.loads(body.decode()).get("reason")
    except (ValueError, AttributeError, RecursionError):
        return "peer_refused"
    return f"peer_{reason}" if isinstance(reason, str) and reason in reasons else "peer_refused"


def backoff(attempts: int, outcome: Outcome, jitter: float) -> timedelta:
    """Return how long to wait after this many attempts; `jitter` in 0..1 spreads it by a quarter."""
    if outcome.event is OutboundEvent.CLOSED_AT_PEER:
        return CLOSED_RETRY
    if outcome.retry_after is not None:
        return min(max(outcome.retry_after, BACKOFF_FIRST), timedelta(minutes=5))
    doublings = min(max(attempts - 1, 0), 10)
    wait = min(BACKOFF_FIRST * (1 << doublings), BACKOFF_MOST)
    return wait * (0.75 + 0.5 * jitter)
