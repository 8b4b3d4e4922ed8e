"""Accept: an authenticated webhook of a peer is taken or refused, in one transaction, before the answer.

The order of the questions: known id, expiry, control type, switch, gate, room, recipient. The 202 is only
sent once the message, the counter, the audit record and the answer itself are committed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent
from governor.directory.agents import local_agents
from governor.directory.host import Host
from governor.directory.links import apply, state_of
from governor.directory.open_messages import unread
from governor.directory.wire_entries import log_crossing
from governor.errors import PeerError
from governor.inbound.answers import BUSY, CLOSED, CONFLICT, Answer, unprocessable
from governor.inbound.control import take_control
from governor.inbound.lives import entry_of
from governor.inbound.refusing import refused, webhook_refused
from governor.message import Direction, InboundState, Refusal, Switch
from governor.policy.decide import decide
from governor.policy.lineage import Lineage, received
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
    """Take a webhook or say why not. Retries of a known one get the stored answer and change nothing.

    Raises PeerError when its peer was revoked since it was authenticated.
    """
    now = host.clock.now()
    with store.begin() as uow:
        peer, link = uow.get(Peer, arrival.peer), uow.get(Link, arrival.peer)
        if peer is None or link is None or peer.state != "confirmed":
            raise PeerError("revoked")
        known = uow.get(SeenWebhook, (arrival.peer, arrival.webhook_id))
        if known is not None and known.sha256 == arrival.sha256:
            return Answer(202, known.answer)
        if known is not None or _used_before(uow, arrival):
            return refused(uow, now, webhook_refused(arrival.peer, "conflict"), CONFLICT)
        if arrival.deadline <= now:
            entry = webhook_refused(arrival.peer, WireReason.EXPIRY)
            return refused(uow, now, entry, unprocessable(WireReason.EXPIRY))
        if isinstance(arrival.incoming, IncomingMessage):
            refusal = _message(uow, host, link, arrival, arrival.incoming, now, reader_down=reader_down)
        else:
            refusal = take_control(uow, host, link, arrival.incoming, now)
        return refusal or _taken(uow, arrival, sign, now)


def _used_before(uow: UnitOfWork, arrival: Arrival) -> bool:
    """Tell whether the id is that of a message whose answer is forgotten by now."""
    same = (Message.id == arrival.webhook_id, Message.peer == arrival.peer, Message.direction == Direction.IN)
    return uow.one(Message, *same) is not None


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
"""What is told on an open link. Every other refusal is told as closed: a peer learns no cause, nor the cap."""


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
    envelope = incoming.envelope
    lineage = received(envelope.hops, envelope.lineage, envelope.sender)
    event = _offered(uow, host, arrival.peer, incoming, lineage.hops)
    busy = "reader_down" if reader_down else "no_room" if unread(uow) >= ROOM else None
    # Said only of what would be taken else: a closed link tells of nothing but being closed.
    if busy and decide(state_of(link), event, host.rules(link.peer), now).refusal is None:
        return refused(uow, now, webhook_refused(arrival.peer, busy), BUSY)
    refusal = apply(uow, host, link, event, now).refusal
    row = _row(arrival, incoming, lineage, now)
    if refusal is not None:
        answer = _ANSWER_OF.get(Refusal(refusal), CLOSED) if link.switch == Switch.RUNNING else CLOSED
        return refused(uow, now, entry_of(AuditEvent.MESSAGE_REFUSED_IN, row, refusal), answer)
    append(uow, now, entry_of(AuditEvent.MESSAGE_RECEIVED, row))
    uow.add(row)
    return None


def _offered(uow: UnitOfWork, host: Host, peer: str, incoming: IncomingMessage, hops: int) -> Offered:
    envelope = incoming.envelope
    agent, _, recipient_host = envelope.recipient.partition("@")
    return Offered(
        direction=Direction.IN,
        size=len(incoming.text),
        sender_known=envelope.sender.partition("@")[2] == peer,
        recipient_known=recipient_host == host.name and agent in local_agents(uow),
        same=envelope.sender == envelope.recipient,
        theirs=_theirs(uow, peer, incoming),
        hops=hops,
    )


def _row(arrival: Arrival, incoming: IncomingMessage, lineage: Lineage, now: datetime) -> Message:
    envelope, text = incoming.envelope, incoming.text
    return Message(
        id=envelope.id,
        peer=arrival.peer,
        direction=Direction.IN,
        state=InboundState.RECEIVED,
        sender=envelope.sender,
        recipient=envelope.recipient,
        conversation=envelope.conversation,
        in_reply_to=envelope.in_reply_to,
        hops=lineage.hops,
        lineage=list(lineage.through),
        size=len(text),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        created_at=now,
        expires_at=arrival.deadline,
    )


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
        and row.direction == Direction.OUT
        and (row.sender, row.recipient) == (envelope.recipient, envelope.sender)
        for row in rows
    )
