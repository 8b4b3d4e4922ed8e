"""The per-link wire log: what crossed, by id and hash, chained; its head stands in every receipt."""

from datetime import datetime

from sqlmodel import col, select

from governor.directory.identity import active_fingerprint, peer_fingerprint
from governor.message import Direction
from governor.store.tables import WireEntry
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.wire_log import genesis, next_head


def wire_head(uow: UnitOfWork, peer: str) -> str:
    """Return the head of the wire log of a link (SHA-256, hex)."""
    newest = select(WireEntry).where(WireEntry.peer == peer).order_by(col(WireEntry.n).desc()).limit(1)
    last = uow.session.exec(newest).first()
    return last.head if last else genesis(active_fingerprint(uow), peer_fingerprint(uow, peer))


def log_crossing(
    uow: UnitOfWork, peer: str, direction: Direction, webhook_id: str, sha256: str, at: datetime
) -> str:
    """Add a webhook that crossed the link, once, and return the head."""
    head = wire_head(uow, peer)
    known = uow.one(
        WireEntry,
        WireEntry.peer == peer,
        WireEntry.direction == direction,
        WireEntry.webhook_id == webhook_id,
    )
    if known is not None:
        return head
    head = next_head(head, direction, webhook_id, sha256)
    uow.add(WireEntry(peer=peer, direction=direction, webhook_id=webhook_id, sha256=sha256, head=head, at=at))
    return head
