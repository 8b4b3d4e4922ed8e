"""One step in the life of a peer's message, with the audit record and the notice that belong to it."""

from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.notices import notify
from governor.message import InboundState
from governor.policy.lives import INBOUND_OPEN, InboundEvent, next_inbound
from governor.store.tables import Message
from governor.store.unit_of_work import UnitOfWork

KEEP_DROPPED = timedelta(hours=1)
"""How long an operator may look at the text of a dropped message."""


def move(
    uow: UnitOfWork, row: Message, event: InboundEvent, now: datetime, reason: str | None = None
) -> bool:
    """Take the step the table allows; False (and nothing changed) where it allows none."""
    after = next_inbound(InboundState(row.state), event)
    if after is None:
        return False
    row.state, row.reason = after, reason
    if after not in INBOUND_OPEN:
        _end(uow, row, after, now, reason)
    return True


def entry_of(event: AuditEvent, row: Message, reason: str | None = None) -> Entry:
    """Return the audit entry of a decision on this message."""
    return Entry(
        event,
        direction="in",
        peer=row.peer,
        agent=row.recipient.partition("@")[0],
        message_id=row.id,
        conversation=row.conversation,
        size=row.size,
        sha256=row.sha256,
        reason=reason,
    )


def _end(uow: UnitOfWork, row: Message, after: InboundState, now: datetime, reason: str | None) -> None:
    row.finished_at, row.text_erase_at = now, now + KEEP_DROPPED
    dropped = after is InboundState.DROPPED
    event = AuditEvent.MESSAGE_DROPPED if dropped else AuditEvent.MESSAGE_ENDED
    append(uow, now, entry_of(event, row, reason if dropped else f"{after}:{reason}" if reason else after))
    # The group is shared with the other side, so it is told that, not why (P5).
    notify(uow, now, f"{row.sender} -> {row.recipient}  {row.conversation}: {after}.", peer=row.peer)
