"""The body of a webhook, `{"type", "timestamp", "data"}`: written one way, read strictly.

The id of a message is the id in the signed header and stands nowhere else, so the two cannot differ.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from governor.errors import LocalError
from governor.message import TEXT_LIMIT, Envelope
from governor.webhook.encodings import SpellingError, from_json, from_object, to_instant, to_json
from governor.webhook.incoming import (
    Incoming,
    IncomingCancel,
    IncomingHello,
    IncomingMessage,
    IncomingRotate,
    IncomingStop,
    WireError,
    WireReason,
    WireType,
)
from governor.webhook.wire_fields import (
    LIFE_LIMIT,
    VERSION,
    checked,
    instant,
    read_fields,
    text_fault,
)

_ESCAPED: Final = 12  # bytes of one code point at worst: two escapes \uXXXX of a surrogate pair
_ENVELOPE: Final = 8_192  # all that is not text: a lineage of 16, or a certificate, and room to spare

BODY_LIMIT: Final = TEXT_LIMIT * _ESCAPED + _ENVELOPE
"""Longest body in bytes; a longer one is refused by its declared length, unread."""

_TEXT_FAULTS: Final = {
    WireReason.TEXT: "The text is empty or not valid Unicode (lone surrogate, NUL). Send plain UTF-8.",
    WireReason.TOO_LONG: f"The text is longer than {TEXT_LIMIT} characters. Shorten it or send it in parts.",
}


def encode_message(
    envelope: Envelope, text: str, *, from_fp: str, to_fp: str, seq: int, now: datetime
) -> bytes:
    """Return the body of a message; `envelope.id` goes into the header.

    Raise LocalError if no peer could take the text.
    """
    if fault := text_fault(text):
        raise LocalError(_TEXT_FAULTS[fault])
    data = {
        "sender": envelope.sender,
        "recipient": envelope.recipient,
        "conversation": envelope.conversation,
        "in_reply_to": envelope.in_reply_to,
        "hops": envelope.hops,
        "lineage": list(envelope.lineage),
        "text": text,
    }
    return _body(WireType.MESSAGE, now, _every(from_fp, to_fp, seq, envelope.expires_at) | data)


def encode_control(
    kind: WireType,
    data: Mapping[str, Any],
    *,
    from_fp: str,
    to_fp: str,
    seq: int,
    now: datetime,
    expires_at: datetime,
) -> bytes:
    """Return the body of a stop, hello, cancel or rotate; raise WireError if no peer would take it.

    `data` are the fields of that type alone: none for stop, `{"open": bool}` for hello,
    `{"message": id}` for cancel, `rotation.rotate_data` for rotate.
    """
    body = _body(kind, now, _every(from_fp, to_fp, seq, expires_at) | dict(data))
    decode(body, "self_check")
    return body


def decode(body: bytes, webhook_id: str) -> Incoming:
    """Return what an authenticated body says, or raise WireError with the reason for the 422."""
    if len(body) > BODY_LIMIT:
        raise WireError(WireReason.TOO_LONG)
    try:
        outer = from_object(from_json(body), ("type", "timestamp", "data"))
    except SpellingError as error:
        raise WireError(WireReason.MALFORMED) from error
    if outer["type"] not in list(WireType):
        raise WireError(WireReason.TYPE)
    kind = WireType(outer["type"])
    at = checked(instant, outer["timestamp"])
    data = read_fields(kind, outer["data"])
    if not timedelta(0) < data["expires_at"] - at <= LIFE_LIMIT:
        raise WireError(WireReason.EXPIRY)
    every = {
        "from_fp": data["from"],
        "to_fp": data["to"],
        "seq": data["seq"],
        "at": at,
        "expires_at": data["expires_at"],
    }
    return _READ[kind](webhook_id, data, every)


def deadline(received_at: datetime, signed_at: datetime, expires_at: datetime) -> datetime:
    """Return until when a webhook is good, by our clock; `received_at` itself means: no longer.

    What counts is the time left between the sending (the timestamp in the signed header) and the
    expiry, both by the sender's clock, so the two clocks need not agree.
    """
    return received_at + min(max(expires_at - signed_at, timedelta(0)), LIFE_LIMIT)


def _every(from_fp: str, to_fp: str, seq: int, expires_at: datetime) -> dict[str, Any]:
    return {"v": VERSION, "from": from_fp, "to": to_fp, "seq": seq, "expires_at": to_instant(expires_at)}


def _body(kind: WireType, now: datetime, data: Mapping[str, Any]) -> bytes:
    return to_json({"type": kind, "timestamp": to_instant(now), "data": data})


def _message(webhook_id: str, data: dict[str, Any], every: dict[str, Any]) -> IncomingMessage:
    envelope = Envelope(
        id=webhook_id,
        sender=data["sender"],
        recipient=data["recipient"],
        conversation=data["conversation"],
        in_reply_to=data["in_reply_to"],
        hops=data["hops"],
        lineage=data["lineage"],
        expires_at=data["expires_at"],
    )
    return IncomingMessage(**every, envelope=envelope, text=data["text"])


def _rotate(data: dict[str, Any], every: dict[str, Any]) -> IncomingRotate:
    return IncomingRotate(
        **every,
        new_key=data["new_public_key"],
        new_certificate=data["new_certificate"],
        overlap_until=data["overlap_until"],
        proof=data["proof"],
    )


_READ: Final[Mapping[WireType, Callable[[str, dict[str, Any], dict[str, Any]], Incoming]]] = {
    WireType.MESSAGE: _message,
    WireType.STOP: lambda _id, _data, every: IncomingStop(**every),
    WireType.HELLO: lambda _id, data, every: IncomingHello(**every, is_open=data["open"]),
    WireType.CANCEL: lambda _id, data, every: IncomingCancel(**every, message_id=data["message"]),
    WireType.ROTATE: lambda _id, data, every: _rotate(data, every),
}
