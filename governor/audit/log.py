"""Adds records to the log, inside the transaction that makes them true."""

from datetime import datetime

from sqlmodel import col, select

from governor.audit.record import AuditEvent, Entry, canonical, genesis_hash, record_hash
from governor.errors import StoreError
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import UnitOfWork


def genesis(uow: UnitOfWork, at: datetime, host_name: str, fingerprint: str) -> AuditRecord:
    """Begin the log of a new host, named by its first signing key's fingerprint; once only."""
    if _last(uow) is not None:
        raise StoreError("the audit log has begun already; a host is made once.")
    entry = Entry(AuditEvent.HOST_MADE, detail={"name": host_name, "key": fingerprint})
    return _add(uow, 1, at, entry, genesis_hash(host_name, fingerprint))


def append(uow: UnitOfWork, at: datetime, entry: Entry) -> AuditRecord:
    """Add a record behind the last one; it is there if the caller's transaction commits."""
    seq, previous = head(uow)
    return _add(uow, seq + 1, at, entry, previous)


def head(uow: UnitOfWork) -> tuple[int, str]:
    """Return (seq, hash) of the last record: what an anchor signs or posts."""
    last = _last(uow)
    if last is None:
        raise StoreError("the audit log has no beginning; run `governor init`.")
    return last.seq, last.hash


def _last(uow: UnitOfWork) -> AuditRecord | None:
    return uow.session.exec(select(AuditRecord).order_by(col(AuditRecord.seq).desc()).limit(1)).first()


def _add(uow: UnitOfWork, seq: int, at: datetime, entry: Entry, previous: str) -> AuditRecord:
    row = AuditRecord(
        seq=seq,
        at=at,
        event=str(entry.event),
        direction=entry.direction,
        peer=entry.peer,
        agent=entry.agent,
        message_id=entry.message_id,
        conversation=entry.conversation,
        size=entry.size,
        sha256=entry.sha256,
        reason=entry.reason,
        detail=dict(entry.detail) if entry.detail is not None else None,
        previous=previous,
        hash=record_hash(canonical(seq, at, entry, previous)),
    )
    uow.add(row)
    return row
