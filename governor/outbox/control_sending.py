"""The two transactions around an attempt to send a control webhook. The switch does not hold them back."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.identity import active_fingerprint, peer_fingerprint
from governor.directory.notices import notify
from governor.directory.wire_entries import log_crossing
from governor.message import Direction
from governor.outbox.outcome import Outcome, backoff
from governor.policy.lives import OutboundEvent
from governor.store.tables import ControlWebhook, Link
from governor.store.unit_of_work import Store, UnitOfWork
from governor.webhook.incoming import WireType
from governor.webhook.wire import encode_control
from governor.webhook.wire_fields import LIFE_LIMIT

_FINAL = frozenset({OutboundEvent.RECEIPT_CAME, OutboundEvent.REFUSED_BY_PEER})


@dataclass(frozen=True, slots=True)
class ControlParcel:
    """A control webhook that is being sent."""

    id: str
    peer: str
    body: bytes


def pick_control(store: Store, host: Host) -> list[ControlParcel]:
    """Give up what is late and return what is due; its time moves on, so it is not picked twice."""
    now = host.clock.now()
    with store.reading() as uow:
        if not any(min(row.next_attempt_at, row.expires_at) <= now for row in _pending(uow)):
            return []
    with store.begin() as uow:
        for row in _pending(uow):
            if now >= row.expires_at:
                _give_up(uow, row, now)
        due = [row for row in _pending(uow) if row.next_attempt_at <= now]
        for row in due:
            row.body = row.body or _encode(uow, row, now)
            row.attempts += 1
            row.next_attempt_at = row.expires_at  # until it is settled
        return [ControlParcel(row.id, row.peer, row.body or b"") for row in due]


def settle_control(store: Store, host: Host, parcel: ControlParcel, outcome: Outcome, jitter: float) -> None:
    """Write what came of an attempt."""
    now = host.clock.now()
    with store.begin() as uow:
        row = uow.get(ControlWebhook, parcel.id)
        if row is None or row.state != "pending":
            return
        if outcome.event not in _FINAL:
            row.next_attempt_at = now + backoff(row.attempts, outcome, jitter)
            return
        row.state = "done" if outcome.event is OutboundEvent.RECEIPT_CAME else "given_up"
        if row.state == "done":
            sha256 = hashlib.sha256(parcel.body).hexdigest()
            log_crossing(uow, row.peer, Direction.OUT, row.id, sha256, now)
        append(uow, now, _entry(row, outcome.reason))


def recover_control(uow: UnitOfWork, now: datetime) -> None:
    """After a start: what was being sent is due again."""
    for row in _pending(uow):
        row.next_attempt_at = now


def _pending(uow: UnitOfWork) -> list[ControlWebhook]:
    return uow.all(ControlWebhook, ControlWebhook.state == "pending")


def _give_up(uow: UnitOfWork, row: ControlWebhook, now: datetime) -> None:
    row.state = "given_up"
    append(uow, now, _entry(row, "expired"))
    if row.type == WireType.STOP:
        notify(
            uow,
            now,
            f"STOP did not reach {row.peer}. This side is closed all the same.",
            peer=row.peer,
            lane="answer",
        )


def _entry(row: ControlWebhook, reason: str | None) -> Entry:
    return Entry(
        AuditEvent.CONTROL_SENT, direction="out", peer=row.peer, reason=reason, detail={"type": row.type}
    )


def _encode(uow: UnitOfWork, row: ControlWebhook, now: datetime) -> bytes:
    link = uow.get(Link, row.peer)
    seq = link.seq_out if link else 0
    return encode_control(
        WireType(row.type),
        row.data,
        from_fp=active_fingerprint(uow),
        to_fp=peer_fingerprint(uow, row.peer),
        seq=seq,
        now=now,
        expires_at=min(row.expires_at, now + LIFE_LIMIT),  # further off only where the clock went back
    )
