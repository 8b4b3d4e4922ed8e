"""The two transactions around an attempt: pick what may leave now, settle what came of it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.links import apply, is_open
from governor.directory.notices import notify
from governor.directory.open_messages import open_out
from governor.directory.wire_entries import log_crossing
from governor.message import Direction, OutboundState, Switch
from governor.outbox.outcome import Outcome, backoff
from governor.policy.lives import OUTBOUND_OPEN, UNAUTHENTICATED_TRIES, OutboundEvent, next_outbound
from governor.policy.state import Ticked
from governor.store.tables import Link, Message
from governor.store.unit_of_work import Store, UnitOfWork

UNDER_WAY = 4
"""Messages of one link that are being sent at one time: as many as the client has places for a peer, so
that a picked one need not wait there, and a slow peer keeps no other waiting."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that is being sent: its row, and the bytes to send."""

    n: int
    id: str
    peer: str
    body: bytes
    sha256: str
    left_before: bool


def pick(store: Store, host: Host) -> list[Parcel]:
    """Expire what is late and mark as `sending` what may leave now: one message per conversation.

    A link's switch is asked in this transaction, and once more right before the request begins (P2).
    """
    now = host.clock.now()
    if not _anything_due(store, host, now):
        return []
    with store.begin() as uow:
        expire_late(uow, now)
        chosen: list[Message] = []
        for link in uow.all(Link):
            apply(uow, host, link, Ticked(), now)
            if link.switch == Switch.RUNNING:
                chosen += _due(uow, link.peer, now)
        parcels = [_parcel(row) for row in chosen]
        for row in chosen:
            _move(uow, row, OutboundEvent.PICKED, now)
            append(uow, now, _entry(AuditEvent.MESSAGE_SENDING, row))
            row.left, row.attempts = True, row.attempts + 1
        return parcels


def _anything_due(store: Store, host: Host, now: datetime) -> bool:
    """Tell, without a writing transaction, whether any message is late, or due on an open link."""
    with store.reading() as uow:
        rows = open_out(uow)
        if any(row.expires_at <= now for row in rows):
            return True
        peers = {row.peer for row in rows if _is_due(row, now)}
        return any(is_open(host, link, now) for link in uow.all(Link, col(Link.peer).in_(peers)))


def settle(store: Store, host: Host, parcel: Parcel, outcome: Outcome, jitter: float) -> None:
    """Write what came of an attempt. An outcome for a message that has ended meanwhile changes nothing."""
    now = host.clock.now()
    with store.begin() as uow:
        row = uow.get(Message, parcel.n)
        if row is None:
            return
        if not outcome.left:
            row.left = parcel.left_before
        event = outcome.event
        if event is OutboundEvent.NOT_AUTHENTICATED:
            row.not_authenticated += 1
            if row.not_authenticated >= UNAUTHENTICATED_TRIES:
                event = OutboundEvent.NOT_AUTHENTICATED_AGAIN
        if not _move(uow, row, event, now, outcome.reason):
            return
        row.error = outcome.reason
        if row.state == OutboundState.ACCEPTED:
            row.receipt, row.error = outcome.receipt, None
            log_crossing(uow, row.peer, Direction.OUT, row.id, parcel.sha256, now)
            append(uow, now, _entry(AuditEvent.MESSAGE_ACCEPTED, row))
        elif row.state == OutboundState.QUEUED:
            row.next_attempt_at = now + backoff(row.attempts, outcome, jitter)


def expire_late(uow: UnitOfWork, now: datetime) -> None:
    """End the messages whose time is over: expired, or unconfirmed where bytes ever left."""
    for row in open_out(uow):
        if now >= row.expires_at:
            _move(uow, row, OutboundEvent.EXPIRED, now, "expired")


def end_all(uow: UnitOfWork, peer: str, event: OutboundEvent, now: datetime) -> None:
    """Let one event (revoked) happen to every open message to a peer."""
    for row in open_out(uow, Message.peer == peer):
        _move(uow, row, event, now, str(event))


def recover(uow: UnitOfWork, now: datetime) -> int:
    """After a start: what was being sent is queued again, with the same id and bytes."""
    rows = open_out(uow, Message.state == OutboundState.SENDING)
    for row in rows:
        _move(uow, row, OutboundEvent.RESTARTED, now)
        row.next_attempt_at = now
    return len(rows)


def _due(uow: UnitOfWork, peer: str, now: datetime) -> list[Message]:
    """Return the first open message of each conversation, where it is queued and its time has come."""
    rows = open_out(uow, Message.peer == peer)
    first: dict[str, Message] = {}
    for row in rows:
        first.setdefault(row.conversation, row)
    room = UNDER_WAY - sum(row.state == OutboundState.SENDING for row in rows)
    return [row for row in first.values() if _is_due(row, now)][: max(room, 0)]


def _is_due(row: Message, now: datetime) -> bool:
    return row.state == OutboundState.QUEUED and (row.next_attempt_at is None or row.next_attempt_at <= now)


def _move(
    uow: UnitOfWork, row: Message, event: OutboundEvent, now: datetime, reason: str | None = None
) -> bool:
    """Take the step the table allows; False (and nothing changed) where it allows none."""
    after = next_outbound(OutboundState(row.state), event, left=row.left)
    if after is None:
        return False
    row.state = after
    if after not in OUTBOUND_OPEN:
        row.finished_at, row.reason = now, reason
        if after is not OutboundState.ACCEPTED:
            append(uow, now, _entry(AuditEvent.MESSAGE_ENDED, row, f"{after}:{reason}" if reason else after))
            notify(
                uow,
                now,
                f"{row.sender} -> {row.recipient}  {row.conversation}: {after} ({reason}).",
                peer=row.peer,
            )
    return True


def _parcel(row: Message) -> Parcel:
    body = row.body or b""
    return Parcel(row.n or 0, row.id, row.peer, body, hashlib.sha256(body).hexdigest(), row.left)


def _entry(event: AuditEvent, row: Message, reason: str | None = None) -> Entry:
    return Entry(
        event,
        direction="out",
        peer=row.peer,
        agent=row.sender.partition("@")[0],
        message_id=row.id,
        conversation=row.conversation,
        size=row.size,
        sha256=row.sha256,
        reason=reason,
    )
