"""Submit: a local agent offers a message; it is queued or refused, in one transaction."""

import difflib
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import col

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
from governor.message import TEXT_LIMIT, Direction, Envelope, OutboundState, Refusal, UntrustedText, is_id
from governor.outbox.canary_alarm import give_alarm
from governor.policy.decide import decide
from governor.policy.lineage import Lineage, inherit, of_reply
from governor.policy.secrets import Found, find_secret
from governor.policy.state import LinkState, Offered
from governor.store.tables import Link, Message
from governor.store.unit_of_work import Store, UnitOfWork
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
class _Case:
    """What a submission is decided on: the open transaction, the offer, whom it would go to, a secret in it."""

    uow: UnitOfWork
    host: Host
    offer: Offer
    route: Route | None
    found: Found | None
    now: datetime

    @property
    def sender(self) -> str:
        return self.host.address(self.offer.sender)

    @property
    def to_self(self) -> bool:
        return self.route is None and self.offer.to in (self.offer.sender, self.sender)


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
_EXPLAIN_CANARY = (
    "The text carries a canary ({detail}): bait that was hidden here. Nothing passes until a human's GO."
)


def submit(store: Store, host: Host, offer: Offer) -> Submitted:
    """Queue a message, or raise RefusedError with policy's reason (audited) or LocalError (nonsense)."""
    now = host.clock.now()
    _check_form(offer)
    found = _secret_in(offer, host)
    with store.begin() as uow:
        outcome = _decide(_Case(uow, host, offer, find_route(uow, offer.to), found, now))
    if isinstance(outcome, RefusedError):
        raise outcome
    return outcome


def _check_form(offer: Offer) -> None:
    for name, value in (("conversation", offer.conversation), ("reply-to", offer.reply_to)):
        if value is not None and not is_id(value):
            raise LocalError(f"The {name} id is not an id. Copy it from: governor inbox")
    for start in range(0, len(offer.text), TEXT_LIMIT):  # policy refuses what is too long, with its reason
        if text_fault(offer.text[start : start + TEXT_LIMIT]):
            raise LocalError("The text holds U+0000 or a lone surrogate. Send plain UTF-8.")


def _secret_in(offer: Offer, host: Host) -> Found | None:
    """Search all that would leave: the agent chooses the conversation's id, too."""
    known = host.known_secrets()
    found = [find_secret(text, known) for text in (offer.text, offer.conversation or "")]
    return next((each for each in found if each and each.canary), found[0] or found[1])


def _decide(case: _Case) -> Submitted | RefusedError:
    uow, host, offer, route = case.uow, case.host, case.offer, case.route
    row = uow.get(Link, route.peer) if route else None
    asked = _asked(case)
    lineage = _lineage(case, asked)
    event = Offered(
        direction=Direction.OUT,
        size=len(offer.text),
        sender_known=offer.sender in local_agents(uow),
        recipient_known=row is not None or case.to_self,
        same=case.to_self,
        theirs=_theirs(case, asked),
        hops=lineage.hops,
        secret=case.found is not None,
    )
    if row is not None and route is not None:
        refusal = apply(uow, host, row, event, case.now).refusal
        if refusal is None:
            return _queue(case, route, row, asked, lineage)
    else:
        refusal = decide(LinkState(), event, host.rules(""), case.now).refusal
    return _refused(case, row, Refusal(refusal or Refusal.UNKNOWN_RECIPIENT))


def _asked(case: _Case) -> Message | None:
    """Return the message this one answers, if it was shown to the sender and came from the recipient."""
    if case.offer.reply_to is None or case.route is None:
        return None
    row = case.uow.one(
        Message,
        Message.id == case.offer.reply_to,
        Message.peer == case.route.peer,
        Message.direction == Direction.IN,
    )
    if (
        row is None
        or row.shown_at is None
        or (row.recipient, row.sender) != (case.sender, case.route.recipient)
    ):
        return None
    return row


def _theirs(case: _Case, asked: Message | None) -> bool:
    """Tell whether it answers what is not its sender's to answer, or enters a conversation of others."""
    offer, route = case.offer, case.route
    if route is None:
        return False
    if asked is not None:
        return offer.conversation not in (None, asked.conversation)
    if offer.reply_to is not None:
        return True
    if offer.conversation is None:
        return False
    parties = {case.sender, route.recipient}
    rows = case.uow.all(Message, Message.peer == route.peer, Message.conversation == offer.conversation)
    return any({row.sender, row.recipient} != parties for row in rows)


def _lineage(case: _Case, asked: Message | None) -> Lineage:
    if asked is not None:
        return of_reply(Lineage(asked.hops, tuple(asked.lineage)), case.sender)
    read = case.uow.all(
        Message,
        Message.direction == Direction.IN,
        Message.recipient == case.sender,
        col(Message.shown_at) >= case.now - INHERIT_FOR,
    )
    lineages = [Lineage(row.hops, tuple(row.lineage)) for row in read]
    recipient = case.route.recipient if case.route else ""
    return inherit(lineages, case.sender, recipient)


def _refused(case: _Case, row: Link | None, reason: Refusal) -> RefusedError:
    """Refuse; of a text with a secret keep kind and place alone: a PIN could be guessed from its hash."""
    found = case.found
    entry = Entry(
        AuditEvent.MESSAGE_REFUSED,
        direction=Direction.OUT,
        peer=row.peer if row else None,
        agent=case.offer.sender,
        size=len(case.offer.text),
        sha256=None if found else _sha256(case.offer.text),
        reason=reason,
        detail={"secret": found.kind, "where": found.where} if found else None,
    )
    append(case.uow, case.now, entry)
    if found and found.canary:
        give_alarm(case.uow, case.host, case.offer.sender, found, case.now)
        return RefusedError(reason, _EXPLAIN_CANARY.format(detail=found.where))
    if reason is Refusal.UNKNOWN_RECIPIENT:
        return RefusedError(reason, _unknown(case))
    detail = row.reason or "" if row else ""
    if reason is Refusal.LIMIT and row is not None:
        detail = f"{row.out_used} of {case.host.rules(row.peer).cap}"
    if found and reason is Refusal.SECRET:
        detail = f"{found.kind}, {found.where}"
        text = f"Refused a message of {case.sender}: it carries a secret ({detail})."
        notify(case.uow, case.now, text, peer=entry.peer)
    return RefusedError(reason, _EXPLAIN[reason].format(detail=detail))


def _unknown(case: _Case) -> str:
    name = case.offer.to
    if name in [form for agent in local_agents(case.uow) for form in (agent, case.host.address(agent))]:
        return f"{name} is an agent of this host, and messages go to other hosts only."
    near = difflib.get_close_matches(name, known_names(case.uow), n=1, cutoff=0.0)
    hint = f"Did you mean {near[0]}?" if near else "No peer is paired yet: governor pair offer"
    return f"No agent {name!r} is known here. {hint}"


def _queue(case: _Case, route: Route, row: Link, asked: Message | None, lineage: Lineage) -> Submitted:
    uow, host, offer, now = case.uow, case.host, case.offer, case.now
    row.seq_out += 1
    envelope = Envelope(
        id=host.new_id("m"),
        sender=case.sender,
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
    message = _message(envelope, route.peer, offer.text, body, now)
    uow.add(message)
    if asked is not None:
        acknowledge(uow, asked, now)
    entry = Entry(
        AuditEvent.MESSAGE_SUBMITTED,
        direction=Direction.OUT,
        peer=route.peer,
        agent=offer.sender,
        message_id=envelope.id,
        conversation=envelope.conversation,
        size=message.size,
        sha256=message.sha256,
    )
    append(uow, now, entry)
    counter = f"out {row.out_used}/{host.rules(route.peer).cap}"
    head = (
        f"{case.sender} -> {route.recipient}  {envelope.conversation}  {counter}  {message.size} characters"
    )
    notify(uow, now, head, peer=route.peer, foreign=offer.text)
    return Submitted(envelope.id, OutboundState.QUEUED, envelope.conversation, route.peer, route.recipient)


def _message(envelope: Envelope, peer: str, text: UntrustedText, body: bytes, now: datetime) -> Message:
    return Message(
        id=envelope.id,
        peer=peer,
        direction=Direction.OUT,
        state=OutboundState.QUEUED,
        sender=envelope.sender,
        recipient=envelope.recipient,
        conversation=envelope.conversation,
        in_reply_to=envelope.in_reply_to,
        hops=envelope.hops,
        lineage=list(envelope.lineage),
        size=len(text),
        sha256=_sha256(text),
        text=text,
        body=body,
        created_at=now,
        expires_at=envelope.expires_at,
        next_attempt_at=now,
        text_erase_at=now + KEEP_SENT,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
