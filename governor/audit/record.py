"""What an audit record says, and the bytes and hashes that chain it to the one before."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from governor.message import is_fingerprint, is_id

Value = str | int | float | bool | None

UNFIT = "unfit"
"""Stands for a string outside its grammar: a text never gets into the log (promise P9), and a wrong
string never keeps a STOP from being recorded."""

_WHO = re.compile(r"[a-z0-9-]{1,32}(@[a-z0-9-]{1,32})?", re.ASCII)
_KEY = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_WORDS = re.compile(r"(?=.{1,128}\Z)[!-~]{1,80}( [!-~]{1,80}){0,7}", re.ASCII)
_WHOLE = 2**53
"""JSON readers keep whole numbers below this exact (RFC 8785, section 3.2.2.3)."""


class AuditEvent(StrEnum):
    """What was decided or happened; the word for it in the log."""

    HOST_MADE = "host_made"
    STARTED = "started"
    STOPPED_RUNNING = "stopped_running"
    SETTINGS_CHANGED = "settings_changed"
    TEXT_ERASED = "text_erased"

    AGENT_ADDED = "agent_added"
    AGENT_REMOVED = "agent_removed"
    AGENT_JOINED = "agent_joined"

    PEER_OFFERED = "peer_offered"
    PEER_CONFIRMED = "peer_confirmed"
    PEER_REVOKED = "peer_revoked"
    PEER_KEY_CHANGED = "peer_key_changed"
    KEY_ROTATED = "key_rotated"

    CANARY_PLANTED = "canary_planted"
    CANARY_REMOVED = "canary_removed"
    CANARY_TOUCHED = "canary_touched"

    OPERATOR_ENROLLED = "operator_enrolled"
    CODE_REFUSED = "code_refused"
    CODE_LOCKED = "code_locked"
    HUMAN_ACTED = "human_acted"
    GO = "go"
    GO_REFUSED = "go_refused"
    STOP = "stop"
    PAUSED = "paused"

    MESSAGE_SUBMITTED = "message_submitted"
    MESSAGE_REFUSED = "message_refused"
    MESSAGE_SENDING = "message_sending"
    MESSAGE_ACCEPTED = "message_accepted"
    MESSAGE_ENDED = "message_ended"  # refused by the peer, expired, cancelled, unconfirmed: see reason

    MESSAGE_RECEIVED = "message_received"
    MESSAGE_REFUSED_IN = "message_refused_in"
    MESSAGE_READ = "message_read"
    MESSAGE_DROPPED = "message_dropped"
    MESSAGE_SHOWN = "message_shown"
    MESSAGE_ACKED = "message_acked"

    WEBHOOK_REFUSED = "webhook_refused"  # totals of a minute: see detail
    CONTROL_SENT = "control_sent"
    CONTROL_TAKEN = "control_taken"


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision, for the log.

    `agent` is ours, `peer` the other governor. `size` is of the text, in code points, `sha256` of its
    UTF-8 form in lower-case hex; the text itself has no place here. `reason` and the strings of `detail`
    are words of ours or ids: ASCII, at most eight words and 128 characters. What does not fit becomes
    `UNFIT`.
    """

    event: AuditEvent
    direction: str | None = None
    peer: str | None = None
    agent: str | None = None
    message_id: str | None = None
    conversation: str | None = None
    size: int | None = None
    sha256: str | None = None
    reason: str | None = None
    detail: Mapping[str, Value] | None = None

    def __post_init__(self) -> None:
        for name, fits in _FITS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, str(value) if fits(str(value)) else UNFIT)
        if self.detail is not None:
            object.__setattr__(self, "detail", {_key(key): _value(of) for key, of in self.detail.items()})


_FITS: dict[str, Callable[[str], object]] = {
    "direction": {"in", "out"}.__contains__,
    "peer": _WHO.fullmatch,
    "agent": _WHO.fullmatch,
    "message_id": is_id,
    "conversation": is_id,
    "sha256": is_fingerprint,
    "reason": _WORDS.fullmatch,
}


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) else UNFIT


def _value(value: Value) -> Value:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value) if _WORDS.fullmatch(value) else UNFIT
    return value if math.isfinite(value) and abs(value) < _WHOLE else UNFIT


def instant(at: datetime) -> str:
    """Write an aware datetime as the log does: `2026-01-02T03:04:05.000006Z`."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def canonical(seq: int, at: datetime, entry: Entry, previous: str) -> bytes:
    """Return the bytes that are hashed: JSON after RFC 8785, all fields always there."""
    fields: dict[str, object] = {
        "seq": seq,
        "at": instant(at),
        "event": entry.event,
        "direction": entry.direction,
        "peer": entry.peer,
        "agent": entry.agent,
        "message_id": entry.message_id,
        "conversation": entry.conversation,
        "size": entry.size,
        "sha256": entry.sha256,
        "reason": entry.reason,
        "detail": entry.detail,
        "previous": previous,
    }
    return canonical_json(fields)


def canonical_json(fields: Mapping[str, object]) -> bytes:
    """Return JSON with sorted keys and no spaces, in UTF-8; raises ValueError for what has no JSON form."""
    return json.dumps(
        fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def record_hash(line: bytes) -> str:
    """Return the hash of a record from its canonical bytes, in lower-case hex."""
    return hashlib.sha256(b"bridge-governor audit record v1\0" + line).hexdigest()


def genesis_hash(host_name: str, fingerprint: str) -> str:
    """Return what the first record has in place of a previous hash: it binds the log to its host."""
    context = f"bridge-governor audit genesis v1\0{host_name}\0{fingerprint}"
    return hashlib.sha256(context.encode()).hexdigest()
