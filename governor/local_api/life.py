"""A message's whole life as its own agent may see it."""

from typing import Any

from sqlmodel import col, select

from governor.directory.host import Host
from governor.errors import NotYoursError
from governor.message import Direction, OutboundState
from governor.policy.lives import OUTBOUND_OPEN
from governor.store.tables import AuditRecord, Message
from governor.store.unit_of_work import Store, UnitOfWork

_PRIVATE_EVENTS = frozenset({"message_received", "message_read"})
"""Of an inbound message an agent sees what concerns it, not that others were dropped."""


def state_of_message(store: Store, host: Host, agent: str, message_id: str) -> dict[str, Any]:
    """Return id, state, reason, attempts and whether the sender's question is settled for now.

    `settled`: the message has its end, or at least one attempt failed, so that waiting longer may be
    long. Raises NotYoursError for somebody else's message.
    """
    with store.reading() as uow:
        row = _own(uow, host, agent, message_id)
        waiting = row.direction == Direction.OUT and OutboundState(row.state) in OUTBOUND_OPEN
        return {
            "id": row.id,
            "state": row.state,
            "reason": row.reason or row.error,
            "attempts": row.attempts,
            "settled": not waiting or (row.state == OutboundState.QUEUED and row.attempts > 0),
            "expires_at": row.expires_at,
        }


def life_of(store: Store, host: Host, agent: str, message_id: str) -> dict[str, Any]:
    """Return a message of this agent (sent, or shown to it) with each step of its life and its time."""
    with store.reading() as uow:
        row = _own(uow, host, agent, message_id)
        steps = uow.session.exec(
            select(AuditRecord)
            .where(
                AuditRecord.message_id == row.id,
                AuditRecord.peer == row.peer,
                AuditRecord.direction == row.direction,
                col(AuditRecord.event).not_in(_PRIVATE_EVENTS if row.direction == Direction.IN else ()),
            )
            .order_by(col(AuditRecord.seq))
        )
        return {
            "id": row.id,
            "direction": row.direction,
            "from": row.sender,
            "to": row.recipient,
            "conversation": row.conversation,
            "in_reply_to": row.in_reply_to,
            "state": row.state,
            "reason": row.reason or row.error,
            "size": row.size,
            "sha256": row.sha256 if row.direction == Direction.OUT else None,
            "text": row.text if row.direction == Direction.OUT else row.clean,
            "created_at": row.created_at,
            "expires_at": row.expires_at,
            "attempts": row.attempts if row.direction == Direction.OUT else None,
            "steps": [{"at": step.at, "event": step.event, "reason": step.reason} for step in steps],
        }


def _own(uow: UnitOfWork, host: Host, agent: str, message_id: str) -> Message:
    address = host.address(agent)
    for row in uow.all(Message, Message.id == message_id):
        if row.direction == Direction.OUT and row.sender == address:
            return row
        if row.direction == Direction.IN and row.recipient == address and row.shown_at is not None:
            return row
    raise NotYoursError(f"You have no message {message_id!r}.")
