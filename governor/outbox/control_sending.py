"""The two transactions around an attempt to send a control webhook. The switch does not hold them back."""

from dataclasses import dataclass
from datetime import datetime

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.identity import active_fingerprint, peer_fingerprint
from governor.outbox.outcome import Outcome, backoff
from governor.policy.lives import OutboundEvent
from governor.store.tables import ControlWebhook, Link
from governor.store.unit_of_work import Store, UnitOfWork
from governor.webhook.incoming import WireType
from governor.webhook.wire import encode_control

_FINAL = frozenset({OutboundEvent.RECEIPT_CAME, OutboundEvent.REFUSED_BY_PEER})


@dataclass(frozen=True, slots=True)
class ControlParcel:
    """A control webhook that is being sent."""

    id: str
    peer: str
    body: bytes


def pick_control(store: Store, host: Host, most: int) -> list[ControlParcel]:
    """Give up what is late and return what is due; its time moves on, so it is not picked twice."""
    now = host.clock.now()
    with store.reading() as uow:
        if not any(
            row.next_attempt_at <= now for row in uow.all(ControlWebhook, ControlWebhook.state == "pending")
        ):
            return []
    with store.begin() as uow:
        rows = uow.all(ControlWebhook, ControlWebhook.state == "pending")
        for row in rows:
            if now >= row.expires_at:
                row.state = "given_up"
        due = [row for row in rows if row.state == "pending" and row.next_attempt_at <= now][:most]
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
        entry = Entry(
            AuditEvent.CONTROL_SENT,
            direction="out",
            peer=row.peer,
            reason=outcome.reason,
            detail={"type": row.type},
        )
        append(uow, now, entry)


def recover_control(uow: UnitOfWork, now: datetime) -> None:
    """After a start: what was being sent is due again."""
    for row in uow.all(ControlWebhook, ControlWebhook.state == "pending"):
        row.next_attempt_at = now


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
        expires_at=row.expires_at,
    )
