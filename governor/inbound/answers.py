"""What an authenticated peer is told; one body for each status, whatever the cause (P5)."""

import json
from dataclasses import dataclass

from governor.webhook.incoming import WireReason


@dataclass(frozen=True, slots=True)
class Answer:
    """What the peer is told: an HTTP status and a body. `retry_after` in seconds, with 503.

    `repeated` names a refusal that was recorded within the last minute already, so only counts.
    """

    status: int
    body: bytes
    retry_after: int | None = None
    repeated: str | None = None


CLOSED = Answer(423, b'{"error":"closed"}')
BUSY = Answer(503, b'{"error":"busy"}', retry_after=10)
CONFLICT = Answer(409, b'{"error":"conflict"}')


def unprocessable(reason: WireReason) -> Answer:
    """Answer an authenticated webhook that makes no sense."""
    return Answer(
        422, json.dumps({"error": "unprocessable", "reason": reason}, separators=(",", ":")).encode()
    )
