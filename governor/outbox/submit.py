"""Submit: a local agent offers a message; it is queued or refused, in one transaction."""

import difflib
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta


from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.delivery.inbox import acknowledge
from governor.directory.agents import local_agents
from governor.directory.host import Host
from governor.directory.identity import active_fingerprint, peer_fingerprint
from governor.directory.links import apply
from governor.directory.notices import notify
from governor.directory.routes import Route, find_route, known_names
from governor.errors import LocalError, RefusedError
from governor.message import Direction, Envelope, OutboundState, Refusal, UntrustedText, is_id
from governor.policy.decide import decide
from governor.policy.lineage import Lineage, fresh, inherit, of_reply
from governor.policy.secrets import find_secret
from governor.policy.state import LinkState, Offered
from governor.store.tables import Link, Message
from governor.store.unit_of_work import Store, UnitOfWork
from governor.webhook.incoming import WireReason
from governor.webhook.wire import encode_message
from governor.webhook.wire_fields import text_fault

INHERIT_FOR = timedelta(minutes=10)
"""A send without reply-to inherits the lineage of what its agent read within this time."""

KEEP_SENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Offer:
    """What an agent asks to send. `sender` follows from its credential, never from the request."""

    sender: str
    to: str
    text: UntrustedText
    conversation: str | None = None
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """A message that was taken into the outbox."""

    id: str
    state: OutboundState
    conversation: str
    peer: str
    recipient: str


_EXPLAIN: dict[Refusal, str] = {
    Refusal.UNKNOWN_SENDER: "You are not registered here.",
    Refusal.SELF_SEND: "A message to yourself is not sent.",
    Refusal.EMPTY: "The text is empty.",
    Refusal.TOO_LONG: "The text is too long; shorten it or send it in parts.",
    Refusal.DIRECTION: "This host's settings do not let messages out on that link.",
    Refusal.REVOKED: "The link has ended. Only the operator can pair anew.",
    Refusal.STOPPED: "A human said STOP. Wait for GO; do not retry before.",
    Refusal.PAUSED: "The link is paused ({detail}). Wait for a human's GO; do not retry before.",
    Refusal.UNWATCHED: "No human has been active lately. Wait for a human's GO; do not retry before.",
    Refusal.LIMIT: "The allowance of this direction is used up ({detail}). Wait for a human's GO.",
    Refusal.HOPS: "This content was forwarded too often; it goes no further.",
    Refusal.NOT_YOURS: "That message or conversation is not yours to answer.",
    Refusal.SECRET: "The text carries a secret ({detail}). Take it out and send again.",
}


def submit(store: Store, host: Host, offer: Offer) -> Submitted:
    """Queue a message, or raise RefusedError with policy's reason (audited) or LocalError (nonsense)."""
    now = host.clock.now()
    _check_form(offer)
    with store.begin() as uow:
        route = find_route(uow, offer.to)
        outcome = _decide(uow, host, offer, route, now)
    if isinstance(outcome, RefusedError):
        raise outcome
    return outcome


def _check_form(offer: Offer) -> None:
    for name, value in (("conversation", offer.conversation), ("reply-to", offer.reply_to)):
        if value is not None and not is_id(value):
            raise LocalError(f"The {name} id is not an id. Copy it from: governor inbox")
    if offer.text and text_fault(offer.text) is WireReason.TEXT:
        raise LocalError("The text holds U+0000 or a lone surrogate. Send plain UTF-8.")


def _decide(
    uow: UnitOfWork, host: Host, offer: Offer, route: Route | None, now: datetime
) -> Submitted | RefusedError:
    sender = host.address(offer.sender)
    row = uow.get(Link, route.peer) if route else None
    asked = _asked(uow, offer, sender, route)
    lineage = _lineage(uow, asked, sender, route.recipient if route else "", now)
    found = find_secret(offer.text, host.known_secrets)
    event = Offered(
        direction=Direction.OUT,
        size=len(offer.text),
        sender_known=offer.sender in local_agents(uow),
        recipient_known=row is not None,
        same=offer.to in (offer.sender, sender),
        theirs=_theirs(uow, offer, sender, route, asked),
        hops=lineage.hops,
        secret=found is not None,
    )
    if row is not None and route is not None:
        refusal = apply(uow, host, row, event, now).refusal
        if refusal is None:
            return _queue(uow, host, offer, route, row, asked, lineage, now)
    else:
        refusal = decide(LinkState(), event, host.rules(""), now).refusal
    reason = Refusal(refusal or Refusal.UNKNOWN_RECIPIENT)
    where = f"{found.kind}, {found.where}" if found and reason is Refusal.SECRET else ""
    return _refused(uow, host, offer, route, row, reason, where, now)


def _asked(uow: UnitOfWork, offer: Offer, sender: str, route: Route | None) -> Message | None:
    """Return the message this one answers, if it is the sender's to answer."""
    if offer.reply_to is None or route is None:
        return None
    row = uow.one(
        Message, Message.id == offer.reply_to, Message.peer == route.peer, Message.direction == "in"
    )
    if row is None or row.shown_at is None or (row.recipient, row.sender) != (sender, route.recipient):
        return None
    return row


def _theirs(uow: UnitOfWork, offer: Offer, sender: str, route: Route | None, asked: Message | None) -> bool:
    if route is None:
        return False
    if offer.reply_to is not None and asked is None:
        return True
    if asked is not None:
        return offer.conversation not in (None, asked.conversation)
    if offer.conversation is None:
        return False
    parties = {sender, route.recipient}
    rows = uow.all(Message, Message.peer == route.peer, Message.conversation == offer.conversation)
    return any({row.sender, row.recipient} != parties for row in rows)


def _lineage(uow: UnitOfWork, asked: Message | None, sender: str, recipient: str, now: datetime) -> Lineage:
    if asked is not None:
        return of_reply(Lineage(asked.hops, tuple(asked.lineage)), sender)
    read = uow.all(
        Message,
        Message.direction == "in",
        Message.recipient == sender,
        Message.shown_at >= now - INHERIT_FOR,  # type: ignore[operator]  # a column, not a value
    )
    if not read:
        return fresh(sender)
    return inherit([Lineage(row.hops, tuple(row.lineage)) for row in read], sender, recipient)


def _refused(
    uow: UnitOfWork,
    host: Host,
    offer: Offer,
    route: Route | None,
    row: Link | None,
    reason: Refusal,
    where: str,
    now: datetime,
) -> RefusedError:
    secret = reason is Refusal.SECRET
    entry = Entry(
        AuditEvent.MESSAGE_REFUSED,
        direction="out",
        peer=route.peer if route else None,
        agent=offer.sender,
        size=len(offer.text),
        sha256=None if secret else _sha256(offer.text),
        reason=reason,
        detail={"where": where} if secret else None,
    )
    append(uow, now, entry)
    if secret:
        notify(uow, now, f"Refused a message of {host.address(offer.sender)}: it carries a secret ({where}).")
    detail = where or (row.reason if row and reason is Refusal.PAUSED else "")
    if row and reason is Refusal.LIMIT:
        detail = f"{row.out_used} of {host.rules(row.peer).cap}"
    if reason is Refusal.UNKNOWN_RECIPIENT:
        return RefusedError(reason, _unknown(uow, offer.to))
    return RefusedError(reason, _EXPLAIN[reason].format(detail=detail))


def _unknown(uow: UnitOfWork, name: str) -> str:
    names = known_names(uow)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
    hint = f"Did you mean {near[0]}?" if near else "No peer is paired yet: governor pair offer"
    return f"No agent {name!r} is known here. {hint}"


def _queue(
    uow: UnitOfWork,
    host: Host,
    offer: Offer,
    route: Route,
    row: Link,
    asked: Message | None,
    lineage: Lineage,
    now: datetime,
) -> Submitted:
    row.seq_out += 1
    envelope = Envelope(
        id=host.new_id("m"),
        sender=host.address(offer.sender),
        recipient=route.recipient,
        conversation=asked.conversation if asked else offer.conversation or host.new_id("c"),
        in_reply_to=asked.id if asked else None,
        hops=lineage.hops,
        lineage=lineage.through,
        expires_at=now + host.expires,
    )
    body = encode_message(
        envelope,
        offer.text,
        from_fp=active_fingerprint(uow),
        to_fp=peer_fingerprint(uow, route.peer),
        seq=row.seq_out,
        now=now,
    )
    size, digest = len(offer.text), _sha256(offer.text)
    uow.add(
        Message(
            id=envelope.id,
            peer=route.peer,
            direction="out",
            state=OutboundState.QUEUED,
            sender=envelope.sender,
            recipient=envelope.recipient,
            conversation=envelope.conversation,
            in_reply_to=envelope.in_reply_to,
            hops=envelope.hops,
            lineage=list(envelope.lineage),
            size=size,
            sha256=digest,
            text=offer.text,
            body=body,
            created_at=now,
            expires_at=envelope.expires_at,
            next_attempt_at=now,
            text_erase_at=now + KEEP_SENT,
        )
    )
    if asked is not None and asked.acked_at is None:
        acknowledge(uow, asked, now)
    append(
        uow,
        now,
        Entry(
            AuditEvent.MESSAGE_SUBMITTED,
            direction="out",
            peer=route.peer,
            agent=offer.sender,
            message_id=envelope.id,
            conversation=envelope.conversation,
            size=size,
            sha256=digest,
        ),
    )
    cap = host.rules(route.peer).cap
    head = f"{envelope.sender} -> {envelope.recipient}  {envelope.conversation}  out {row.out_used}/{cap}  {size} characters"
    notify(uow, now, head, peer=route.peer, foreign=offer.text)
    return Submitted(envelope.id, OutboundState.QUEUED, envelope.conversation, route.peer, route.recipient)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
