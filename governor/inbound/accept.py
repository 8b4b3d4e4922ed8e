"""Accept: an authenticated webhook of a peer is taken or refused, in one transaction, before the answer.

The order of the questions: known id, control type, switch, gate, room, recipient. The 202 is only
sent once the message, the counter, the audit record and the answer itself are committed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import col

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.agents import local_agents
from governor.directory.host import Host
from governor.directory.links import apply
from governor.directory.wire_entries import log_crossing
from governor.inbound.answers import BUSY, CLOSED, CONFLICT, Answer, unprocessable
from governor.inbound.control import take_control
from governor.message import Direction, InboundState, Refusal
from governor.policy.lineage import received
from governor.policy.lives import INBOUND_OPEN
from governor.policy.state import Offered
from governor.store.tables import Link, Message, Peer, SeenWebhook
from governor.store.unit_of_work import Store, UnitOfWork
from governor.webhook.incoming import Incoming, IncomingMessage, WireReason
from governor.webhook.receipt import Receipt

ROOM = 500
"""How many unread messages of all peers may wait; beyond that peers are told to come back."""

REMEMBER_FOR = timedelta(hours=1)
"""How long after its expiry a webhook's id is still known."""

SignReceipt = Callable[[Receipt], bytes]


@dataclass(frozen=True, slots=True)
class Arrival:
    """An authenticated webhook: from which peer, its id, hash of its bytes, until when, and its content."""

    peer: str
    webhook_id: str
    sha256: str
    deadline: datetime
    incoming: Incoming


def accept(
    store: Store, host: Host, arrival: Arrival, sign: SignReceipt, *, reader_down: bool = False
) -> Answer:
    """Take a webhook or say why not. Retries of a known one get the stored answer and change nothing."""
    now = host.clock.now()
    with store.begin() as uow:
        known = uow.get(SeenWebhook, (arrival.peer, arrival.webhook_id))
        if known is not None:
            return Answer(202, known.answer) if known.sha256 == arrival.sha256 else CONFLICT
        peer, link = uow.get(Peer, arrival.peer), uow.get(Link, arrival.peer)
        if peer is None or link is None or peer.state != "confirmed":
            return CLOSED  # revoked between authentication and this transaction
        if isinstance(arrival.incoming, IncomingMessage):
            refusal = _message(uow, host, link, arrival, arrival.incoming, now, reader_down=reader_down)
        else:
            refusal = take_control(uow, host, link, arrival.incoming, now)
        return refusal or _taken(uow, arrival, sign, now)


def _taken(uow: UnitOfWork, arrival: Arrival, sign: SignReceipt, now: datetime) -> Answer:
    head = log_crossing(uow, arrival.peer, Direction.IN, arrival.webhook_id, arrival.sha256, now)
    body = sign(Receipt(webhook_id=arrival.webhook_id, sha256=arrival.sha256, head=head, at=now))
    uow.add(
        SeenWebhook(
            peer=arrival.peer,
            webhook_id=arrival.webhook_id,
            sha256=arrival.sha256,
            answer=body,
            keep_until=max(arrival.deadline, now) + REMEMBER_FOR,
        )
    )
    return Answer(202, body)


_ANSWER_OF: dict[Refusal, Answer] = {
    Refusal.UNKNOWN_RECIPIENT: unprocessable(WireReason.RECIPIENT),
    Refusal.UNKNOWN_SENDER: unprocessable(WireReason.SENDER),
    Refusal.SELF_SEND: unprocessable(WireReason.SENDER),
    Refusal.EMPTY: unprocessable(WireReason.TEXT),
    Refusal.TOO_LONG: unprocessable(WireReason.TOO_LONG),
    Refusal.NOT_YOURS: unprocessable(WireReason.REPLY),
}
"""Every other refusal is told as closed: a peer learns no cause, and not the cap either."""


def _message(
    uow: UnitOfWork,
    host: Host,
    link: Link,
    arrival: Arrival,
    incoming: IncomingMessage,
    now: datetime,
    *,
    reader_down: bool,
) -> Answer | None:
    """Take the message as policy decides; None means taken."""
    envelope, text = incoming.envelope, incoming.text
    sender_host = envelope.sender.partition("@")[2]
    agent, _, recipient_host = envelope.recipient.partition("@")
    lineage = received(envelope.hops, envelope.lineage, envelope.sender)
    event = Offered(
        direction=Direction.IN,
        size=len(text),
        sender_known=sender_host == arrival.peer,
        recipient_known=recipient_host == host.name and agent in local_agents(uow),
        same=envelope.sender == envelope.recipient,
        theirs=_theirs(uow, arrival.peer, incoming),
        hops=lineage.hops,
    )
    waiting = uow.all(Message, Message.direction == "in", col(Message.finished_at).is_(None))
    if len([row for row in waiting if InboundState(row.state) in INBOUND_OPEN]) >= ROOM or reader_down:
        return BUSY
    decision = apply(uow, host, link, event, now)
    digest = hashlib.sha256(text.encode()).hexdigest()
    entry = Entry(
        AuditEvent.MESSAGE_RECEIVED if decision.refusal is None else AuditEvent.MESSAGE_REFUSED_IN,
        direction="in",
        peer=arrival.peer,
        agent=agent,
        message_id=arrival.webhook_id,
        conversation=envelope.conversation,
        size=len(text),
        sha256=digest,
        reason=decision.refusal,
    )
    append(uow, now, entry)
    if decision.refusal is not None:
        return _ANSWER_OF.get(Refusal(decision.refusal), CLOSED)
    uow.add(
        Message(
            id=envelope.id,
            peer=arrival.peer,
            direction="in",
            state=InboundState.RECEIVED,
            sender=envelope.sender,
            recipient=envelope.recipient,
            conversation=envelope.conversation,
            in_reply_to=envelope.in_reply_to,
            hops=lineage.hops,
            lineage=list(lineage.through),
            size=len(text),
            sha256=digest,
            text=text,
            created_at=now,
            expires_at=arrival.deadline,
        )
    )
    return None


def _theirs(uow: UnitOfWork, peer: str, incoming: IncomingMessage) -> bool:
    """Tell whether it answers what was not asked of its sender, or enters a conversation of others."""
    envelope = incoming.envelope
    parties = {envelope.sender, envelope.recipient}
    rows = uow.all(Message, Message.peer == peer, Message.conversation == envelope.conversation)
    if any({row.sender, row.recipient} != parties for row in rows):
        return True
    if envelope.in_reply_to is None:
        return False
    return not any(
        row.id == envelope.in_reply_to
        and row.direction == "out"
        and (row.sender, row.recipient) == (envelope.recipient, envelope.sender)
        for row in rows
    )
