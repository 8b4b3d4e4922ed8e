"""Control webhooks of a peer: stop, hello, cancel, rotate. They are taken also while the link is closed."""

from collections.abc import Callable
from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.delivery.inbox import WITHDRAWN
from governor.directory.host import Host
from governor.directory.links import Actor, apply
from governor.directory.notices import notify
from governor.directory.open_messages import open_out
from governor.directory.peer_keys import take_rotation
from governor.inbound.answers import BUSY, Answer, unprocessable
from governor.inbound.lives import move
from governor.inbound.refusing import refused, webhook_refused
from governor.message import Direction, OutboundState, PauseReason, Switch
from governor.policy.lives import InboundEvent
from governor.policy.state import FaultSeen, StopGiven
from governor.store.tables import ControlTaken, Link, Message
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.incoming import (
    Incoming,
    IncomingCancel,
    IncomingHello,
    IncomingRotate,
    IncomingStop,
    WireReason,
)

CONTROL_LIMIT = 20
"""Control webhooks a peer may send a minute."""


def take_control(uow: UnitOfWork, host: Host, link: Link, incoming: Incoming, now: datetime) -> Answer | None:
    """Let a control webhook do what it may; None means taken. A STOP that still closes has no limit."""
    closes = isinstance(incoming, IncomingStop) and link.switch != Switch.STOPPED
    taken = uow.all(ControlTaken, ControlTaken.peer == link.peer)
    recent = [row for row in taken if row.at > now - timedelta(minutes=1)]
    if len(recent) >= CONTROL_LIMIT and not closes:
        return refused(uow, now, webhook_refused(link.peer, "control_limit"), BUSY)
    for row in taken:
        if row not in recent:
            uow.session.delete(row)
    refusal = _TAKE[type(incoming)](uow, host, link, incoming, now)
    if refusal is None:
        uow.add(ControlTaken(peer=link.peer, at=now))
        entry = Entry(
            AuditEvent.CONTROL_TAKEN,
            direction=Direction.IN,
            peer=link.peer,
            detail={"type": _NAMES[type(incoming)]},
        )
        append(uow, now, entry)
    return refusal


def _stop(uow: UnitOfWork, host: Host, link: Link, _incoming: Incoming, now: datetime) -> Answer | None:
    apply(uow, host, link, StopGiven(by_peer=True), now, Actor(f"peer {link.peer}"))
    return None


def _hello(uow: UnitOfWork, _host: Host, link: Link, incoming: Incoming, now: datetime) -> Answer | None:
    """Take the hint that the peer is open again: what waits for it is tried at once."""
    if not isinstance(incoming, IncomingHello) or not incoming.is_open:
        return None
    for row in open_out(uow, Message.peer == link.peer, Message.state == OutboundState.QUEUED):
        row.next_attempt_at = now
    return None


def _cancel(uow: UnitOfWork, _host: Host, link: Link, incoming: Incoming, now: datetime) -> Answer | None:
    """Withdraw a message of the peer's; one that is unknown or has ended stays as it is."""
    if isinstance(incoming, IncomingCancel):
        row = uow.one(
            Message,
            Message.id == incoming.message_id,
            Message.peer == link.peer,
            Message.direction == Direction.IN,
        )
        if row is not None:
            move(uow, row, InboundEvent.CANCELLED, now, WITHDRAWN)
    return None


def _rotate(uow: UnitOfWork, host: Host, link: Link, incoming: Incoming, now: datetime) -> Answer | None:
    """Take the peer's new key; the link pauses until a human has looked."""
    if not isinstance(incoming, IncomingRotate) or not take_rotation(uow, link.peer, incoming, now):
        return refused(uow, now, webhook_refused(link.peer, "rotation"), unprocessable(WireReason.FIELD))
    apply(uow, host, link, FaultSeen(PauseReason.KEY_CHANGED), now)
    append(uow, now, Entry(AuditEvent.PEER_KEY_CHANGED, peer=link.peer, reason="rotated"))
    notify(
        uow,
        now,
        f"{link.peer} has a new key. GO if its operator expects that.",
        peer=link.peer,
        lane="answer",
        version=link.version,
    )
    return None


_TAKE: dict[type, Callable[[UnitOfWork, Host, Link, Incoming, datetime], Answer | None]] = {
    IncomingStop: _stop,
    IncomingHello: _hello,
    IncomingCancel: _cancel,
    IncomingRotate: _rotate,
}

_NAMES: dict[type, str] = {
    IncomingStop: "stop",
    IncomingHello: "hello",
    IncomingCancel: "cancel",
    IncomingRotate: "rotate",
}
