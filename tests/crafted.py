"""Webhooks as a governor could make them, and as its program never would: signed with its real key."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from governor_pair import Governor

from governor.directory.identity import active_fingerprint, peer_fingerprint
from governor.message import Envelope
from governor.webhook.incoming import WireType
from governor.webhook.signing import SigningKey, signed_headers
from governor.webhook.wire import encode_control, encode_message


def fingerprints(sender: Governor, receiver: Governor) -> tuple[str, str]:
    """Return what the sender writes as `from` and `to`."""
    with sender.store.reading() as uow:
        return active_fingerprint(uow), peer_fingerprint(uow, receiver.host.name)


def message(  # noqa: PLR0913 - all that a message says
    sender: Governor,
    receiver: Governor,
    text: str = "v1.0.0",
    *,
    conversation: str = "c_crafted",
    in_reply_to: str | None = None,
    by: str | None = None,
    to: str | None = None,
    hops: int = 4,
    lineage: tuple[str, ...] = (),
    keep_for: timedelta = timedelta(minutes=10),
) -> bytes:
    """Return the body of a message; `by` and `to` are addresses."""
    now = sender.clock.now()
    envelope = Envelope(
        id="in_the_header",
        sender=by or sender.host.address(sender.agent),
        recipient=to or receiver.host.address(receiver.agent),
        conversation=conversation,
        in_reply_to=in_reply_to,
        hops=hops,
        lineage=lineage,
        expires_at=now + keep_for,
    )
    own, theirs = fingerprints(sender, receiver)
    return encode_message(envelope, text, from_fp=own, to_fp=theirs, seq=1, now=now)


def control(
    sender: Governor, receiver: Governor, kind: WireType, data: Mapping[str, object] | None = None
) -> bytes:
    """Return the body of a control webhook."""
    own, theirs = fingerprints(sender, receiver)
    now = sender.clock.now()
    return encode_control(
        kind, data or {}, from_fp=own, to_fp=theirs, seq=1, now=now, expires_at=now + timedelta(minutes=1)
    )


def own_key(sender: Governor) -> SigningKey:
    with sender.store.reading() as uow:
        return sender.home.keyring.signing_key(active_fingerprint(uow))


def signed(
    sender: Governor,
    body: bytes,
    webhook_id: str = "m_crafted",
    *,
    at: datetime | None = None,
    key: SigningKey | None = None,
) -> dict[str, str]:
    """Return the headers of a webhook, signed now by the sender's own key if no other is given."""
    headers = signed_headers([key or own_key(sender)], webhook_id, at or sender.clock.now(), body)
    return headers | {"governor-key": own_key(sender).verify_key.fingerprint}
